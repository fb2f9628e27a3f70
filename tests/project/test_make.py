"""What `make` does with a virtual environment that is there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clustergym.tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def clone(tmp_path) -> Path:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`make` with a Python that does nothing and succeeds, as if no other make ran these tests."""
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "PYTHON=true", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["demo", "test", ".venv/.ready"])
def test_make_does_not_clear_a_virtual_environment_of_the_users(clone, target):
    """One sentence with the remedy; the user's stays."""
    kept = clone / ".venv" / "bin" / "python"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    outcome = make(clone, target)
    assert outcome.returncode != 0
    said = ".venv was not made by make, which would clear it: rename or remove it, then make again"
    assert outcome.stdout.splitlines() == [said]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("mark", ["nothing", "src", "ready of another folder"])
def test_make_makes_its_own_virtual_environment_anew(clone, mark):
    """One that is not there, whose installation was stopped, or that was copied from elsewhere."""
    if mark == "src":
        (clone / ".venv" / "src").mkdir(parents=True)
        (clone / ".venv" / "src" / "clustergym").symlink_to("../..")
    elif mark != "nothing":
        (clone / ".venv").mkdir()
        (clone / ".venv" / ".ready").write_text("/elsewhere")
    assert make(clone, ".venv/.ready").stdout.startswith("installing clustergym[")


def test_docs_need_the_extra_docs_alone(clone):
    """In a virtual environment of their own, without learners, plots and tests; nothing of .venv is used."""
    planned = make(clone, "-n", "docs").stdout
    assert '-e ".[docs]"' in planned
    assert ".venv/" not in planned
    assert "agents" not in planned


def test_pages_are_searched_from_disk_and_load_nothing_from_elsewhere():
    """The offline plugin would load the script of its worker from a server, if no polyfill had that name."""
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "\n  - offline " in settings
    assert "\n  polyfills: [iframe-worker.js]" in settings
    assert "http" not in (ROOT / "docs" / "iframe-worker.js").read_text()
