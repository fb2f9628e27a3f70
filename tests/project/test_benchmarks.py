"""The benchmarks run and print what docs/results/benchmarks.md says; how fast anything is, is not tested."""

from __future__ import annotations

import json

import pytest

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.cli import run
from clustergym.experiments.commands.bench import _load, _programs


def bench(capsys, *arguments: str) -> dict:
    """The JSON document of one quick benchmark."""
    status = run(["bench", *arguments, "--quick", "--json", "--quiet"])
    said = capsys.readouterr()
    assert status == 0, said.err
    document = json.loads(said.out)
    assert document["machine"]["cores"] >= 1
    return document


def test_they_are_listed(capsys):
    assert run(["bench", "--json"]) == 0
    listed = {row["name"]: row["summary"] for row in json.loads(capsys.readouterr().out)}
    assert {
        "engine",
        "environment",
        "learning",
        "network",
        "many-machines",
        "start",
        "cold-start",
        "resampled-coverage",
    } == set(listed)
    assert all(summary.endswith(".") for summary in listed.values())


def test_engine(capsys):
    document = bench(capsys, "engine")
    played = [(row["policy"], row["workload"]) for row in document["events"]]
    assert played == [(name, mix) for mix in ("philly-like", "poisson") for name in ("fifo", "las")]
    for row in document["events"]:
        assert row["events"] >= 2 * row["jobs"]  # arrivals and completions
        assert row["events_per_s"] >= row["events_per_s_median"] > 0
        assert row["same_finish_times"] is True  # else the two do not do the same work
        assert row["ratio"] == pytest.approx(row["events_per_s"] / row["reference_events_per_s"])
    assert all((row["shared"] > 0.0) == (row["policy"] != "sjf") for row in document["shared"])
    assert {row["policy"] for row in document["shared"]} == {"sjf", "sjf-ffs", "sjf-bsbf"}
    assert all(row["ns_per_event"] > 0 for row in document["scaling"])
    assert {row["policy"] for row in document["scaling"]} == {"fifo", "las"}


def test_workloads_are_drawn_by_the_seed_at_the_load():
    at_load = _load(_programs()["engine"]).at_load
    first, again, other = (at_load("poisson:jobs=50", 0.5, 8, seed) for seed in (3, 3, 4))
    assert (first.gpus == again.gpus).all() and (first.gpus != other.gpus).any()
    assert (first.gpus * first.duration_s).sum() == pytest.approx(0.5 * 8 * first.arrival_s[-1])


def test_network(capsys):
    document = bench(capsys, "network")
    placed = {(row["network"], row["workers"]): row for row in document["events"]}
    assert {("testbed", "near"), ("testbed", "scattered"), ("48 links", "4 links drawn")} < set(placed)
    for row in placed.values():
        assert row["events_per_s"] >= row["events_per_s_median"] > 0
        assert row["slowdown"] >= 1.0 and 0.0 < row["filled"] <= row["jobs"]
    assert placed["testbed", "near"]["filled"] < placed["testbed", "scattered"]["filled"]
    assert {row["jobs"] for row in document["rotations"]} == {2, 3, 4, 5, 6}


def test_environment(capsys):
    document = bench(capsys, "environment")
    shapes = [(row["observation"], row["slots"], row["preemption"]) for row in document["steps"]]
    assert shapes == [(kind, 8, stops) for kind in ("dict", "flat") for stops in (True, False)]
    assert all(row["steps_per_s"] >= row["steps_per_s_with_resets"] > 0 for row in document["steps"])
    assert ["clustergym/" + row["environment"] for row in document["environments"]] == list(ENVIRONMENTS)
    assert document["memory"][0]["record_bytes"] > 0


def test_learning(capsys):
    pytest.importorskip("sb3_contrib", reason="needs the extra agents")
    document = bench(capsys, "learning")
    played = [(row["interface"], row["environments"]) for row in document["environments"]]
    assert len(played) == len(set(played)) and {n for _, n in played} == {1, 4}
    assert all(row["steps_per_s"] > 0 for row in document["environments"])
    assert [row["network"] for row in document["training"]] == ["mlp", "candidates"]
    for row in document["training"]:
        assert row["steps_per_s"] > 0 and row["parameters"] > 0 and 0 < row["environment_share_of_rollout"] < 1


def test_tables_are_printed_without_json(capsys):
    assert run(["bench", "start", "--quick"]) == 0
    said = capsys.readouterr()
    assert "CPU seconds of a process." in said.out and "100 jobs, poisson" in said.out
    assert "start: 5 measured" in said.err


def test_start(capsys):
    rows = bench(capsys, "start")["start"]
    assert rows[0]["name"] == "import clustergym" and all(row["cpu_s"] > 0.0 for row in rows)


def test_resampled_coverage(capsys):
    """The interval of another log is sqrt(11) times as long as that of the mean of 10 draws, where both are short."""
    rows = bench(capsys, "resampled-coverage")["coverage"]
    assert [(row["load"], row["block_h"]) for row in rows] == [(load, b) for load in (0.7, 1.0) for b in (3, 6, 24)]
    assert all(2.5 < row["another log, width"] / row["of the mean, width"] < 4.5 for row in rows)
    assert all(row["another log"] >= row["of the mean"] for row in rows)


@pytest.mark.slow
def test_cold_start(capsys):
    """Grouping-v0 with nothing ready, in the large class, and all ready."""
    row, together = bench(capsys, "cold-start")["first_use"]
    assert (row["environment"], together["environment"]) == ("Grouping-v0", "together")
    assert row["ready_s"] < row["then_large_s"] < row["compiled_alone_s"] == together["compiled_alone_s"]
    assert 0 < row["cache_mb"] < 300
