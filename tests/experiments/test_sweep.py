"""`evaluate --sweep`: one parameter at several values."""

from __future__ import annotations

import json

import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.playing import evaluation
from clustergym.experiments.settings.sweeping import Sweep, load, with_parameter
from clustergym.experiments.storing import store
from clustergym.simulator.base.errors import InputError

WORDS = {
    "workload": "poisson:jobs=12,load=0.9",
    "topology": "dally:racks=2,machines=4",
    "network": "penalty:table=chronus",
}
SMALL = ("evaluate", "Delay", "--workload", "poisson:jobs=12,load=0.9", "--policies", "fifo greedy", "--quiet")


def test_values_from_to():
    assert load("load=0.5..1.2:8", WORDS, []) == Sweep(
        "workload", "load", ("0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.1", "1.2")
    )
    assert load("racks=4..1:4", WORDS, []).values == ("4", "3", "2", "1")
    assert load("topology.racks=1/8", WORDS, []) == Sweep("topology", "racks", ("1", "8"))
    assert load("jobs=1000000..2000000:3", WORDS, []).values == ("1000000", "1500000", "2000000")
    assert load("load=0.1234561..0.1234564:4", WORDS, []).values[1:3] == ("0.1234562", "0.1234563")
    assert load("mtbf_s=1e5/inf", WORDS, ["mtbf_s"]) == Sweep("", "mtbf_s", ("1e5", "inf"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("load", "expected KEY=a..b:n"),
        ("load=1..x:3", "expected KEY=a..b:n"),
        ("load=1..2:1", "expected from 2 to 200 values"),
        ("load=1/1", "expected KEY=a..b:n"),
        ("load=0.5-1.2", "expected KEY=a..b:n"),
        ("load=0.5..1.2", "expected KEY=a..b:n"),
        ("load=0.5:1.2:8", "expected KEY=a..b:n"),
        ("speed=1/2", "'speed' stands in none of poisson"),
        ("policy.margin=1/2", "unknown 'policy'; known: workload, topology, network"),
    ],
)
def test_what_cannot_be_meant_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        load(text, WORDS, [])


def test_a_parameter_of_two_must_say_whose():
    words = {**WORDS, "network": "contention:load=1"}
    with pytest.raises(InputError, match=r"say workload\.load or network\.load"):
        load("load=1/2", words, [])


def test_a_file_has_no_parameters(tmp_path):
    with pytest.raises(InputError, match="is a file and has no parameters"):
        load("workload.load=1/2", {**WORDS, "workload": str(tmp_path / "jobs.csv")}, [])


def test_a_word_with_another_value():
    assert with_parameter("poisson:jobs=12,load=0.9", "load", "2") == "poisson:jobs=12,load=2"
    assert with_parameter("poisson:jobs=12,load=0.9", "jobs", "3") == "poisson:jobs=3,load=0.9"
    assert with_parameter("poisson", "jobs", "3") == "poisson:jobs=3"
    assert with_parameter("poisson:jobs=12", "load", "2") == "poisson:jobs=12,load=2"
    assert with_parameter("py:mine.py:draw", "load", "2") == "py:mine.py:draw,load=2"
    assert with_parameter("poisson:overload=1,load=1", "load", "2") == "poisson:overload=1,load=2"


def test_each_value_is_an_evaluation_of_its_own(tmp_path, capsys):
    """The table has what an evaluation at that value has, and a folder a value."""
    arguments = (
        *SMALL,
        "--seeds",
        "0-1",
        "--sweep",
        "load=0.5/2",
        "--logdir",
        str(tmp_path / "out"),
        "--baseline",
        "fifo",
    )
    assert run([*arguments]) == 0
    out = capsys.readouterr().out
    folders = [path.name for path in sorted((tmp_path / "out").iterdir()) if path.is_dir()]
    assert folders == ["workload.load=0.5", "workload.load=2"]
    for value in ("0.5", "2"):
        found = store.read(tmp_path / "out" / f"workload.load={value}")
        assert found.setting.workload == f"poisson:jobs=12,load={value}"
        assert len(found.runs) == 4
        mean = sum(run.metrics["jct_mean"] for run in found.runs if run.policy == "greedy") / 2
        assert f"{mean:,.{1 if mean < 1000 else 0}f}" in out


def test_a_sweep_goes_on(tmp_path, monkeypatch):
    played = []
    play = evaluation.play
    monkeypatch.setattr(evaluation, "play", lambda *given, **more: played.append(given[1:3]) or play(*given, **more))
    arguments = [*SMALL, "--seeds", "0", "--logdir", str(tmp_path / "out"), "--json"]
    assert run([*arguments, "--sweep", "load=0.5/2"]) == 0
    assert len(played) == 4
    assert run([*arguments, "--sweep", "load=0.5/2/3"]) == 0
    assert len(played) == 6


def test_a_key_of_set_is_swept(capsys):
    assert run([*SMALL, "--seeds", "0", "--sweep", "horizon_s=1000/1e9", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["policy"], row["sweep"], row["setting"]["horizon_s"]) for row in rows] == [
        (policy, {"horizon_s": value}, float(value)) for value in ("1000", "1e9") for policy in ("fifo", "greedy")
    ]


def test_a_sweep_says_what_it_cannot_do(tmp_path, capsys):
    assert run([*SMALL, "--sweep", "load=1/2", "--decisions", str(tmp_path / "d.csv")]) == 2
    assert "--decisions goes without --sweep" in capsys.readouterr().err
    assert run([*SMALL, "--sweep", "speed=1/2"]) == 2
    assert run([*SMALL, "--sweep", "load=1/fast"]) != 0
    assert "load" in capsys.readouterr().err
