"""What `make` does with a virtual environment that is there."""

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
    """`make` with a Python that does nothing and succeeds."""
    return subprocess.run(["make", "PYTHON=true", *words], cwd=folder, capture_output=True, text=True)


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
