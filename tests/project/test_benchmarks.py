"""The benchmarks run and print what docs/results/benchmarks.md says; how fast anything is, is not tested."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

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
    assert {"dally", "engine", "environment", "learning", "network", "philly", "sharing"} <= set(listed)
    assert all(summary.endswith(".") for summary in listed.values())


@pytest.fixture(scope="module")
def engine():
    """The program of `clustergym bench engine`, and what it says once."""
    program = _load(_programs()["engine"])
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        assert program.main(["--quick", "--json", "--quiet"]) == 0
    return program, json.loads(told.getvalue())


def test_engine(engine):
    _, document = engine
    assert [(row["policy"], row["workload"]) for row in document["events"]] == [
        ("fifo", "philly-like"),
        ("las", "philly-like"),
        ("fifo", "poisson"),
        ("las", "poisson"),
    ]
    for row in document["events"]:
        assert row["events"] >= 2 * row["jobs"]  # arrivals and completions
        assert row["events_per_s"] >= row["events_per_s_median"] > 0
        assert row["same_finish_times"] is True  # else the two do not do the same work
        assert row["ratio"] == pytest.approx(row["events_per_s"] / row["reference_events_per_s"])
    assert {row["policy"] for row in document["scaling"]} == {"fifo", "las"}
    assert all(len(row["ns_per_event_by_tenth"]) == 10 for row in document["scaling"])
    assert all(row["steps_per_s"] >= row["steps_per_s_with_resets"] > 0 for row in document["environment"])
    assert [row["start"] for row in document["startup"]] == ["warm"]
    assert isinstance(document["missed"], list)


def test_engine_follows_its_seed(engine):
    program, _ = engine
    case = program.cases(quick=True)[0]
    first, again, other = (program.measure(case, seed)["mean_gang"] for seed in (3, 3, 4))
    assert first == again != other


def test_sharing(capsys):
    document = bench(capsys, "sharing")
    assert {row["policy"] for row in document["events"]} == {"sjf", "sjf-ffs", "sjf-bsbf"}
    for row in document["events"]:
        assert row["events"] == 2 * row["jobs"]
        assert (row["shared"] > 0.0) == (row["policy"] != "sjf")
        assert row["events_per_s"] >= row["events_per_s_median"] > 0
    assert {row["policy"] for row in document["passes"]} == {"sjf-ffs", "sjf-bsbf"}
    assert all(row["mean_s"] > 0.0 for row in document["passes"])
    for row in document["pollux"]:
        assert row["jobs"] == 5
        assert row["cpu_s"] > 0.0


def test_network(capsys):
    document = bench(capsys, "network")
    placed = {(row["network"], row["placement"]): row for row in document["events"]}
    assert {("testbed", "near"), ("testbed", "scattered"), ("48 links", "4 links drawn")} < set(placed)
    for row in placed.values():
        assert row["events_per_s"] >= row["events_per_s_median"] > 0
        assert row["events"] > 10 * row["jobs"] and row["slowdown"] >= 1.0
        assert 0.0 < row["filled"] <= row["jobs"]
    assert placed["testbed", "near"]["filled"] < placed["testbed", "scattered"]["filled"]


def test_philly(capsys):
    document = bench(capsys, "philly")
    assert document["generated"] is True
    assert [row["policy"] for row in document["policies"]] == ["fifo", "las", "tiresias"]
    for row in document["policies"]:
        assert row["jobs"] == 200
        parts_s = sum(row[key] for key in ("import_s", "read_s", "reset_s", "run_s"))
        assert 0 < parts_s <= row["cpu_s"]
        assert row["peak_rss_bytes"] > 2**20
        assert row["jct_mean"] > 0


def test_philly_takes_a_trace(capsys, tmp_path):
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,aa\n"
        "2017-10-09 06:13:03,2951.0,8,23608.0,aa\n"
    )
    document = bench(capsys, "philly", str(path))
    assert (document["source"], document["generated"]) == ("philly.csv", False)
    assert [row["jobs"] for row in document["policies"]] == [2, 2, 2]


def test_dally(capsys):
    document = bench(capsys, "dally")
    assert [row["policy"].partition(":")[0] for row in document["batch"]] == ["tiresias", "dally", "dally-nowait"]
    for row in document["batch"]:
        assert (row["jobs"], row["generated"]) == (60, True)
        assert row["cpu_s_median"] >= row["cpu_s"] > 0
        assert row["met"] == (row["cpu_s"] < row["cpu_target_s"])
    philly = document["philly"]
    assert (philly["policy"], philly["jobs"], philly["generated"]) == ("dally", 200, True)
    assert 0 < sum(philly[key] for key in ("import_s", "read_s", "reset_s", "run_s")) <= philly["cpu_s"]
    assert philly["comm_time_mean"] > 0  # models were drawn, and their gangs communicate


def test_environment(capsys):
    document = bench(capsys, "environment")
    shapes = [(row["observation"], row["slots"], row["preemption"]) for row in document["steps"]]
    assert shapes == [(kind, 8, stops) for kind in ("dict", "flat") for stops in (True, False)]
    assert all(row["steps_per_s"] > 0 for row in document["steps"])
    kinds = {row["kind"]: row for row in document["kinds"]}
    assert {"advance", "hold", "preempt", "migrate"} < set(kinds)
    assert kinds["advance"]["steps"] > 0
    assert document["memory"]["record_bytes"] > 0


def test_learning(capsys):
    pytest.importorskip("sb3_contrib", reason="needs the extra agents")
    document = bench(capsys, "learning")
    played = [(row["interface"], row["environments"]) for row in document["environments"]]
    assert len(played) == len(set(played)) and {n for _, n in played} == {1, 4}
    assert all(row["steps_per_s"] > 0 for row in document["environments"])
    assert [row["learner"] for row in document["training"]] == ["MaskablePPO, mlp", "MaskablePPO, candidates"]
    for row in document["training"]:
        assert row["steps_per_s"] > 0 and row["parameters"] > 0 and 0 < row["share_of_rollout"] < 1


def test_tables_are_printed_without_json(engine, capsys):
    program, document = engine
    program.print_tables(document)
    said = capsys.readouterr().out
    assert "million events per CPU second" in said
    assert "Delay-v0" in said


def test_a_missed_target_is_printed_as_missed(engine, capsys):
    row = {"wall_s": 2.0, "wall_s_median": 2.0, "cpu_s": 2.0, "cpu_s_median": 2.0}
    startup = [{"start": "warm", "runs": 1, "target": 1.0, "met": False, **row}]
    engine[0].print_tables({"events": [], "scaling": [], "environment": [], "startup": startup})
    assert "MISSED" in capsys.readouterr().out


def test_geo(capsys):
    document = bench(capsys, "geo")
    rows = document["tetris"]
    assert [(row["version"], row["tables"]) for row in rows] == [
        (version, tables) for tables in (50, 100) for version in ("tetris-v1", "tetris-v2")
    ]
    day = document["day"][0]
    assert day["attempts"] > 0 and day["workloads"] > 100 and 0.0 < day["allocation_rate"] <= 1.0
    assert day["cpu_s"] == pytest.approx(day["draw_s"] + day["reset_s"] + day["play_s"])
    for row in rows:
        assert row["cost_after"] < row["cost_before"]
        assert row["moves"] > 0 and row["uses"] > row["tables"]
        assert row["cpu_s"] == pytest.approx(row["placement_s"] + row["climbing_s"] + row["replicas_s"])
        assert row["peak_bytes"] > 2**20
    assert [row["name"] for row in document["fast"]] == [
        "a decision of RMS without preemption",
        "a decision of RMS with preemption",
        "a GMS scan of 1,000 workloads",
    ]
    assert all(row["p99_s"] >= row["median_s"] > 0 and row["jobs"] > 0 for row in document["fast"])


def test_start(capsys):
    rows = bench(capsys, "start")["start"]
    assert rows[0]["name"] == "import clustergym" and all(row["cpu_s"] > 0.0 for row in rows)


@pytest.mark.slow
def test_cold_start(capsys):
    """Grouping-v0 with nothing ready, again where other environments came before, in the large class, and all ready."""
    document = bench(capsys, "cold-start")
    kinds = ("alone", "together", "large", "ready")
    assert [(row["environment"], row["kind"]) for row in document["runs"]] == [
        ("clustergym/Grouping-v0", kind) for kind in kinds
    ]
    alone, together, large, ready = (row["cpu_s"] for row in document["runs"])
    assert ready < large < together and alone == document["cpu_s"]
    assert 0 < document["runs"][0]["cache_bytes"] < 300e6
