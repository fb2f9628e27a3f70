"""What is built and published: metadata, the ways in, the source distribution, and an installed wheel at work."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import clustergym
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def run(*command: str | Path, cwd: Path = ROOT, **more) -> str:
    """What a command prints; its whole output where it fails."""
    outcome = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=1200, check=False, **more
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_the_module_is_the_command():
    assert run(sys.executable, "-P", "-m", "clustergym", "--version").strip() == f"clustergym {clustergym.__version__}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    """The script of a shell asks the program itself; "ev" can only become evaluate."""
    variables = {"bash": {"COMP_WORDS": "clustergym ev", "COMP_CWORD": "1"}}
    asked = {
        "_TYPER_COMPLETE_ARGS": "clustergym ev",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        **variables.get(shell, {}),
    }
    environment = {**os.environ, **asked, "_CLUSTERGYM_COMPLETE": f"complete_{shell}"}
    printed = run(sys.executable, "-P", "-m", "clustergym", env=environment)
    assert "evaluate" in printed and "train" not in printed


def test_what_is_imported_lazily_is_known_to_type_checkers():
    """Under TYPE_CHECKING the package names what its __getattr__ brings, from the same modules."""
    tree = ast.parse(inspect.getsource(clustergym))
    block = next(node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    told = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    rooms = {name for name, module in told.items() if module is None}
    assert rooms == set(clustergym._ROOMS)
    assert {name: f".{module}" for name, module in told.items() if module} == clustergym._LAZY
    assert all(hasattr(clustergym, name) for name in clustergym._LAZY)


def test_citation_and_metadata_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == clustergym.__version__
    assert re.search(r"^license: (.*)$", citation, re.MULTILINE)[1] == PROJECT["license"] == "MIT"
    authors = [author["name"] for author in PROJECT["authors"]]
    assert (
        authors == ["The clustergym authors"]
        and authors[0] in citation
        and authors[0] in (ROOT / "LICENSE").read_text()
    )


def test_the_text_for_an_index_has_no_link_that_only_works_here(monkeypatch):
    """An index shows one file: relative links and pictures would lead nowhere."""
    setuptools = pytest.importorskip("setuptools")
    given = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path(str(ROOT / "setup.py"))
    text = given["long_description"]
    assert "## Install" in text and "How to write a policy" in text
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []


def test_every_extra_that_a_sentence_names_is_there():
    """In brackets after `clustergym` or `.`, in code, docs, the notebook, make and continuous integration."""
    folders = ("simulator", "policies", "envs", "agents", "experiments", "docs", ".github")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("[A-Zc]*"))
    texts = [
        path.read_text()
        for path in files
        if path.suffix in {"", ".py", ".md", ".ipynb", ".yml", ".txt"} and path.is_file()
    ]
    named = {
        name
        for text in texts
        for part in re.findall(r"[\" ](?:clustergym|\.)\[([a-z,]+)\]", text)
        for name in part.split(",")
    }
    assert {"agents", "report", "render", "video", "tune", "ray", "dev", "all"} <= named <= set(EXTRAS)


def test_all_is_what_runs_in_one_process_and_video_is_what_a_film_needs():
    """Ray, GPU kernels, docs and tests are extras apart; ffmpeg, 165 MB, comes with `video` and `all` only."""
    parts = set(re.fullmatch(r"clustergym\[(.*)\]", *EXTRAS["all"])[1].split(","))
    assert parts == set(EXTRAS) - {"all", "ray", "rllib", "gpu", "docs", "dev"}
    having = {extra for extra, packages in EXTRAS.items() if any("ffmpeg" in package for package in packages)}
    assert having == {"video"}
    drawing = {package for package in EXTRAS["render"] if not package.startswith("pygame")}
    assert drawing < set(EXTRAS["video"])


def test_continuous_integration_runs_what_the_project_runs():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "run: .ci/run" in workflow
    assert f'"{PROJECT["requires-python"].removeprefix(">=")}"' in workflow


def test_the_image_is_built_of_what_is_there():
    """What the Dockerfile needs is not ignored: every package, the metadata, the pins."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    needed = {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "py.typed", "*.py", *clustergym._ROOMS}
    assert needed == let_through


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path, Path]:
    """A virtual environment, the sdist of the tracked files, and the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    source, made = folder / "source", folder / "dist"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    if not listed:
        pytest.skip("not a clone: the tracked files are unknown")
    for name in filter(None, listed.split("\0")):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    stale = source / "build" / "lib" / "clustergym" / "renamed_long_ago.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    fetched = subprocess.run([python, "-m", "pip", "install", "-q", "setuptools>=77"], capture_output=True, check=False)
    if fetched.returncode:
        pytest.skip("no package index to fetch setuptools from")
    build = "import sys, setuptools.build_meta as backend; print(getattr(backend, sys.argv[1])(sys.argv[2]))"
    made.mkdir()
    run(python, "-c", build, "build_sdist", made, cwd=source)
    sdist = next(made.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    unpacked = next((folder / "unpacked").iterdir())
    shutil.copytree(source / "build", unpacked / "build")
    run(python, "-c", build, "build_wheel", made, cwd=unpacked)
    return python, sdist, next(made.glob("*.whl"))


@pytest.mark.slow
def test_the_sdist_is_the_whole_tree(built):
    """Tests with their data, docs, constraints: all that git tracks but its own settings."""
    with tarfile.open(built[1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    tracked = set(run("git", "ls-files").splitlines())
    assert tracked - inside == {".gitignore"}


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_of_earlier_builds(built):
    with zipfile.ZipFile(built[2]) as archive:
        names = set(archive.namelist())
    assert {
        "clustergym/__main__.py",
        "clustergym/py.typed",
        "clustergym/simulator/network/data/artist_layers.csv",
        "clustergym/experiments/reproduce/dally/dally.yaml",
    } <= names
    assert not any("renamed_long_ago" in name or "/tests/" in name or name.endswith("setup.py") for name in names)


@pytest.mark.slow
def test_an_installed_wheel_lists_and_evaluates(built, tmp_path):
    """The light install, at the pinned versions, outside the source tree: no torch, and the size that README says."""
    python, _, wheel = built
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    (said,) = re.findall(r"^pip install \.  # ([\d,]+) MB", (ROOT / "README.md").read_text(), re.MULTILINE)
    blocks = sum(path.lstat().st_blocks for path in python.parents[1].rglob("*"))
    assert blocks * 512 / 2**20 == pytest.approx(int(said.replace(",", "")), rel=0.2)
    assert "clustergym/Delay-v0" in run(python, "-m", "clustergym", "envs", cwd=tmp_path)
    words = ("evaluate", "Delay", "--policies", "fifo las", "--workload", "poisson:jobs=20", "--seeds", "0", "--json")
    rows = json.loads(run(python.with_name("clustergym"), *words, "--quiet", cwd=tmp_path))
    assert [row["policy"] for row in rows] == ["fifo", "las"]
    assert all(row["metrics"]["jobs_finished"] == 20 for row in rows)
    lacking = (
        "import importlib.util as u; print([n for n in ('torch', 'matplotlib', 'stable_baselines3') if u.find_spec(n)])"
    )
    assert run(python, "-c", lacking, cwd=tmp_path).strip() == "[]"


COUNTED = """
import sys
import gymnasium
from clustergym.experiments.cli import run
from clustergym.experiments.playing.warming import Part, warm
from clustergym.simulator.compiler.compiling import _Compiled
made = []
_Compiled._made = lambda self, key, arguments, before=_Compiled._made: made.append(self) or before(self, key, arguments)
if sys.argv[1] == "step":
    warm(Part(sys.argv[2], None), False)
else:
    assert run(sys.argv[1:]) == 0
print([one.py_func.__qualname__ for one in made])
"""


@pytest.mark.slow
def test_a_prebuilt_wheel_compiles_nothing_and_a_killed_build_leaves_none(built, tmp_path):
    """The six environments, and an evaluation, each with an empty cache; at most 15 MB. Ten minutes on two cores."""
    source, dist = tmp_path / "source", tmp_path / "dist"
    with tarfile.open(built[1]) as archive:
        archive.extractall(source, filter="data")
    words = ["-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", dist, *source.iterdir()]
    environ = os.environ | {"CLUSTERGYM_PREBUILT": "1"}
    building = subprocess.Popen([sys.executable, *words], env=environ, start_new_session=True)
    with pytest.raises(subprocess.TimeoutExpired):
        building.wait(30)
    os.killpg(building.pid, signal.SIGKILL)
    building.wait()
    assert not list(dist.glob("*"))
    subprocess.run([sys.executable, *words], env=environ, check=True)
    (wheel,) = dist.iterdir()
    assert not wheel.name.endswith("-any.whl") and wheel.stat().st_size < 15e6
    zipfile.ZipFile(wheel).extractall(tmp_path / "package")
    lines = [("step", name) for name in ENVIRONMENTS]
    lines.append(("evaluate", "Delay", "--policies", "fifo srtf tiresias greedy dally", "--seeds", "0-1", "--quiet"))
    for number, line in enumerate(lines):
        own = {"PYTHONPATH": str(tmp_path / "package"), "NUMBA_CACHE_DIR": str(tmp_path / f"cache{number}")}
        said = run(sys.executable, "-c", COUNTED, *line, cwd=tmp_path, env=os.environ | own)
        assert said.splitlines()[-1] == "[]", line
