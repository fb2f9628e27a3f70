"""Without extras: `evaluate --logdir`, its pictures and `compare` work, and import none of the heavy libraries."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from clustergym.tests.support.paths import ROOT

ABSENT = ("torch", "stable_baselines3", "sb3_contrib", "matplotlib", "tensorboard", "PIL", "optuna")
# Runs commands in a process in which these libraries cannot be imported, and tells what was tried and said.
PROGRAM = """
import contextlib, io, json, sys
absent, commands = json.loads(sys.argv[1])
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from clustergym.experiments import cli
told = []
for command in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(command)
    told.append([status, out.getvalue(), err.getvalue()])
print(json.dumps([told, sorted(name for name in absent if name in sys.modules)]))
"""
SMALL = ("--topology", "flat:machines=4", "--workload", "poisson:jobs=20,backlog=10", "--network", "none", "--quiet")


def without_extras(*commands):
    arguments = json.dumps([ABSENT, [[str(word) for word in command] for command in commands]])
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, arguments], check=True, capture_output=True, text=True, timeout=300
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A folder that was evaluated and compared so, what was said, and what was imported."""
    logs = tmp_path_factory.mktemp("light") / "logs"
    evaluate = ("evaluate", "Delay", *SMALL, "--policies", "fifo srtf", "--seeds", "0-1", "--logdir", logs)
    compare = ("compare", logs, "--pictures", logs / "for-paper")
    paper = ("compare", logs, "--pictures", logs / "for-paper", "--as", "svg,pdf")
    return logs, *without_extras(evaluate, compare, paper)


def test_results_pictures_and_report_are_written(evaluated):
    logs, told, _ = evaluated
    assert [status for status, _, _ in told[:2]] == [0, 0]
    assert (
        (logs / "results.parquet").exists() and (logs / "jct-cdf.svg").exists() and (logs / "gantt-fifo.svg").exists()
    )
    assert "<!doctype html>" in (logs / "report.html").read_text()
    assert (logs / "for-paper" / "queue.svg").exists()


def test_nothing_heavy_is_imported(evaluated):
    assert evaluated[2] == []


def test_what_is_left_out_is_one_sentence_that_names_the_extra(evaluated):
    logs, told, _ = evaluated
    lines = told[0][1].splitlines()
    left_out = 'no event files: TensorBoard logs need tensorboard; install it with: pip install "clustergym[report]"'
    assert lines[-1] == left_out
    assert not list(logs.rglob("events.out*"))
    status, out, err = told[2]
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert 'pictures as PDF and PNG need matplotlib; install it with: pip install "clustergym[report]"' in err


def test_learning_curves_need_tensorboard_and_say_so(evaluated, tmp_path):
    """A folder of a training beside one of an evaluation: the evaluation is shown; alone, it is refused."""
    training = tmp_path / "training"
    (training / "agent").mkdir(parents=True)
    (training / "agent" / "events.out.tfevents.0000000001.agent").write_bytes(b"")
    page = tmp_path / "page.html"
    told, _ = without_extras(("compare", evaluated[0], training, "--out", page), ("compare", training, "--out", page))
    assert told[0][0] == 0 and told[0][2].count("\n") == 1
    assert f"{training}: its learning curves are left out: TensorBoard logs need tensorboard" in told[0][2]
    assert "<table>" in page.read_text()
    assert (told[1][0], told[1][1], told[1][2].count("\n")) == (1, "", 1)
    assert 'pip install "clustergym[report]"' in told[1][2]


def test_the_core_has_what_the_light_install_needs():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {requirement.partition(">")[0].partition("~")[0] for requirement in project["dependencies"]}
    assert {"jinja2", "pyarrow"} <= core and not core & {"torch", "matplotlib", "tensorboard"}
    report = {requirement.partition(">")[0] for requirement in project["optional-dependencies"]["report"]}
    assert report == {"matplotlib", "tensorboard"}
