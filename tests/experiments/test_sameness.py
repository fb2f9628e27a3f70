"""Which runs are the same run, and what tables make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clustergym.experiments import cli
from clustergym.experiments.comparing.intervals import against, by_policy
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.playing.runs import Run, distinct, is_same, same_as, twins
from clustergym.experiments.report import load, numbers
from clustergym.experiments.settings.evaluation_setting import Setting

TRACE = "job_id,arrival_s,gpus,duration_s\na,0,8,100\nb,0,8,50\nc,10,4,25\nd,12,8,5\n"


def run(policy: str, seed: int, *jct_s: float, **more: float) -> Run:
    return Run(policy, seed, {"jct_mean": float(np.mean(jct_s)), **more}, len(jct_s), np.array(jct_s))


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return str(path)


def printed(capsys, *arguments: str) -> str:
    assert cli.run([*arguments, "--quiet"]) == 0
    return capsys.readouterr().out


def test_runs_are_the_same_if_every_job_and_every_metric_is():
    one = run("a", 0, 1.0, 3.0, deadlines=float("nan"))
    assert is_same(one, run("b", 1, 1.0, 3.0, deadlines=float("nan")))
    assert not is_same(one, run("a", 0, 3.0, 1.0, deadlines=float("nan")))  # the same mean, of other jobs
    assert not is_same(one, run("a", 0, 1.0, 3.0, deadlines=0.0))
    assert not is_same(one, run("a", 0, 1.0, np.nextafter(3.0, 4.0), deadlines=float("nan")))


def test_only_runs_that_are_all_the_same_count_as_one():
    """A policy that draws may give the same run twice: these are two draws."""
    assert len(distinct([run("a", seed, 5.0) for seed in range(10)])) == 1
    assert len(distinct([run("a", seed, 5.0 if seed else 6.0) for seed in range(10)])) == 10


def test_ten_seeds_of_one_run_are_one_pair():
    runs = [run(policy, seed, value) for policy, value in (("fifo", 10.0), ("sjf", 8.0)) for seed in range(10)]
    found = against(runs, "fifo")["sjf"]
    assert (found.lower, found.seeds, found.ratio.runs) == (1, 1, 1)
    assert found.ratio.mean == 0.8 and found.ratio.is_sure and not found.ratio.is_below(1.0)
    assert by_policy(runs)["sjf"]["jct_mean"].runs == 1


def test_a_policy_that_draws_has_an_interval_against_one_that_does_not():
    runs = [run("fifo", seed, 10.0) for seed in range(6)] + [run("random", seed, 8.0 + seed / 10) for seed in range(6)]
    found = against(runs, "fifo")
    assert (found["random"].lower, found["random"].seeds) == (6, 6)
    assert found["random"].ratio.is_below(1.0)
    assert found["fifo"].seeds == 1


def test_twins_are_found_by_their_runs():
    """c is a's twin on every seed; d on one of two; e was played on fewer seeds, which says nothing."""
    values = {"a": (1.0, 2.0), "b": (3.0, 4.0), "c": (1.0, 2.0), "d": (1.0, 3.0), "e": (1.0,), "f": (1.0, 2.0)}
    runs = [run(policy, seed, value) for policy, mine in values.items() for seed, value in enumerate(mine)]
    assert twins(runs) == {"c": "a", "f": "a"}
    assert same_as(runs) == ["c, f: same runs as a"]


def test_a_trace_under_rules_is_one_run(capsys, monkeypatch, trace):
    monkeypatch.setenv("COLUMNS", "140")
    setting = ("evaluate", "Delay", "--workload", trace, "--topology", "flat:machines=1", "--network", "none")
    out = printed(capsys, *setting, "--policies", "fifo srtf sjf", "--baseline", "fifo")
    assert "1 of 1" in out and "of 10" not in out
    assert "nothing depends on the seed: one run stands for all seeds" in out
    assert "slices:file=TRACE and resampled:file=TRACE" in " ".join(out.split())
    assert "interval of the mean" not in out
    drawn = printed(capsys, *setting, "--policies", "fifo random", "--baseline", "fifo")
    assert "nothing of fifo depends on the seed" in drawn


def test_a_verdict_counts_runs_not_seeds(trace):
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=1", trace, "none")
    played = evaluate(setting, ["fifo"], range(3))
    section = load.section(setting, [(Path("a"), played)], None)
    assert "in one run" in numbers.verdict(section)


def test_a_report_names_twins_and_says_what_few_seeds_show():
    setting = Setting.of("clustergym/Delay-v0", "dally", "poisson", "none")
    base = [run("greedy", seed, 10.0 + seed, 20.0 + seed) for seed in range(4)]
    better = [
        replace(one, policy="sjf", metrics={"jct_mean": 0.9 * one.metrics["jct_mean"] + one.seed / 9}) for one in base
    ]
    for one in (*base, *better):
        one.metrics["jobs_finished"] = 2.0
    twin = [replace(one, policy="twin") for one in base]
    section = load.section(setting, [(Path("a"), [*base, *better, *twin])], "greedy")
    assert "twin: same runs as greedy." in numbers.warnings(section)
    told = {row["policy"]: row for row in numbers.as_json(section)["policies"]}
    assert told["twin"]["same_as"] == "greedy" and told["sjf"]["same_as"] is None
    assert told["sjf"]["ratio"]["high"] < 1.0 and told["sjf"]["ratio"]["runs"] == 4
    assert "fewer than 5 seeds show nothing" in numbers.verdict(section)


def test_a_verdict_for_the_baseline_says_how_sure_it_is():
    """150, 90 and 130 s against 99, 100 and 101 s are 370/300; a fourth seed of the other is its own."""
    setting = Setting.of("clustergym/Delay-v0", "dally", "poisson", "none")
    base = [run("greedy", seed, 99.0 + seed, jobs_finished=1.0) for seed in range(3)]
    other = [run("sjf", seed, jct, jobs_finished=1.0) for seed, jct in enumerate((150.0, 90.0, 130.0, 1000.0))]
    said = numbers.verdict(load.section(setting, [(Path("a"), [*base, *other])], "greedy"))
    assert "greedy has the shortest mean JCT: 100 s over 3 seeds; sjf, the next, needs 1.233 times as long" in said
    assert said.endswith(", so the two cannot be told apart).")


def test_the_table_says_which_policies_are_the_same(capsys):
    """Timers of half a day and of ever: no job waits so long in 12 jobs."""
    small = (
        "--workload",
        "poisson:jobs=12,backlog=4",
        "--seeds",
        "0-1",
        "--policies",
        "dally-manual fifo dally-consolidated",
    )
    out = printed(capsys, "evaluate", "Delay", *small)
    assert "dally-consolidated: same runs as dally-manual" in out


def test_few_seeds_have_no_star(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    small = ("evaluate", "Delay", "--policies", "random greedy", "--baseline", "random")
    few = printed(capsys, *small, "--seeds", "0-3").partition("against random")[2]
    assert "*" not in few.replace("no * on fewer than 5 seeds", "")
    assert "*" in printed(capsys, *small, "--seeds", "0-9").partition("against random")[2]


def test_a_head_says_what_is_not_as_usual(capsys):
    """`las` may stop jobs, so what that costs is said; `fifo` may not. No job shares GPUs here, packs or restores."""
    out = printed(capsys, "evaluate", "Delay", "--seed", "0", "--policies", "fifo las sjf:head=strict")
    head = " ".join(out.partition("knows")[0].split())  # wherever its lines end
    fifo, las, sjf = "fifo order=fifo head=skip placer=count", "las order=las head=skip placer=count", "sjf:head=strict"
    assert f"{fifo} {las} preemption_cost=0 thresholds=3250/7200 {sjf} order=sjf head=strict placer=count" in head


def test_a_mean_of_one_run_is_printed_like_those_of_many(capsys):
    row = printed(capsys, "evaluate", "Delay", "--seed", "0", "--policies", "fifo").splitlines()[-2]
    assert all("." not in cell for cell in row.split()[2:4])
