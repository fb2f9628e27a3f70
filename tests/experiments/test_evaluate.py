"""Evaluation: published figures, paired seeds, recordings that agree with the simulator, intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.cli import run
from clustergym.experiments.comparing.intervals import estimate
from clustergym.experiments.playing.evaluation import evaluate, play
from clustergym.experiments.playing.recording import WORDS, decisions, timeline
from clustergym.experiments.playing.runs import Run
from clustergym.experiments.settings.evaluation_setting import Setting, workload_of
from clustergym.experiments.storing.results import write_decisions
from clustergym.simulator.base.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.workloads import Workload

SETTING = Setting.of(
    "clustergym/Delay-v0", "dally:racks=2,machines=4", "poisson:jobs=40,backlog=20", "penalty:table=chronus"
)

# Results of three public simulators and of a counting program, which agree to every printed digit: traces of 160 and of
# 480 jobs on 64 GPUs, no overheads. policy: (mean JCT, makespan, preemptions) of each.
PUBLISHED = {
    "fifo:head=strict,placer=count": ((2907.456, 37420, 0), (3765.606, 132207, 0)),
    "fifo:head=skip,placer=count": ((2706.194, 37420, 0), (3476.775, 132207, 0)),
    "sjf:head=strict,placer=count": ((2775.081, 37420, 0), (3449.754, 132207, 0)),
    "sjf:head=skip,placer=count": ((2706.194, 37420, 0), (3378.223, 132207, 0)),
    "srtf:placer=count": ((2733.144, 40395, 62), (3328.529, 143831, 85)),
    "srsf:placer=count": ((2664.794, 39999, 12), (3314.623, 135225, 36)),
    "las:placer=count,thresholds=3250/7200": ((2701.444, 37420, 18), (3380.635, 132271, 82)),
    "fifo:head=strict,placer=consolidated": ((3054.981, 37420, 0), (5100.354, 136452, 0)),
    "sjf:head=strict,placer=consolidated": ((2860.062, 37420, 0), (3749.644, 137194, 0)),
}
# Its preemption rules are not stated: printed, not required.
ORIENTATION = "srtf:placer=consolidated,preemption_cost=40/60"
ORIENTATION_FIGURES = ((2785.450, 41077, 73), (3414.458, 151248, 92))


@pytest.mark.reproduction
@pytest.mark.parametrize("number", [0, 1], ids=["160 jobs", "480 jobs"])
def test_published_figures_of_other_simulators(capsys, shared_traces, number):
    trace = shared_traces / "oracle" / ("common_160.csv", "common_480.csv")[number]
    words = " ".join([*PUBLISHED, ORIENTATION])
    cluster = ("--network", "none", "--topology", "flat:machines=8,gpus_per_machine=8")
    status = run(
        ["evaluate", "Delay", *cluster, "--workload", str(trace), "--policies", words, "--seed", "0", "--json"]
    )
    out = capsys.readouterr().out
    assert status == 0
    ours = {
        row["policy"]: tuple(row["metrics"][name] for name in ("jct_mean", "makespan", "preemptions"))
        for row in json.loads(out)
    }
    print(f"{ORIENTATION}: ours {ours.pop(ORIENTATION)}, theirs (for orientation) {ORIENTATION_FIGURES[number]}")
    assert {policy: (round(mean, 3), *rest) for policy, (mean, *rest) in ours.items()} == {
        policy: figures[number] for policy, figures in PUBLISHED.items()
    }


def test_every_policy_sees_the_same_jobs_of_a_seed():
    """Total isolated GPU time is a fingerprint of a workload."""
    runs = evaluate(SETTING, ["fifo", "sjf"], [3, 4])
    work = [np.sum(workload_of(SETTING, seed).duration_s) for seed in (3, 4)]
    assert work[0] != work[1]
    assert [(run.policy, run.seed) for run in runs] == [("fifo", 3), ("fifo", 4), ("sjf", 3), ("sjf", 4)]
    assert runs[0].metrics["jct_mean"] != runs[1].metrics["jct_mean"]


def test_a_workload_with_its_own_seed_is_the_same_for_all():
    fixed = Setting.of(SETTING.environment, SETTING.topology, SETTING.workload + ",seed=7", SETTING.network)
    runs = evaluate(fixed, ["fifo", "random"], [0, 1])
    means = [run.metrics["jct_mean"] for run in runs]
    assert means[0] == means[1]
    assert means[2] != means[3]  # its order is drawn
    assert play(SETTING, "fifo", 7).metrics["jct_mean"] == means[0]


def test_progress_ends_at_the_number_of_runs():
    seen: list[float] = []
    evaluate(SETTING, ["fifo", "las"], [0, 1, 2], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(6)


@pytest.mark.parametrize("word", [*policies.able("Delay"), "las:head=strict,placer=consolidated,preemption_cost=30"])
@pytest.mark.parametrize("failing", [False, True])
def test_a_recorded_run_is_the_run(word, failing):
    """Same metrics to the last bit; and the recorded stretches account for every GPU-second held."""
    more = {"mtbf_s": 60_000.0} if failing else {}
    setting = Setting.of(SETTING.environment, SETTING.topology, SETTING.workload, SETTING.network, **more)
    plain, recorded = play(setting, word, 5), play(setting, word, 5, record=True)
    assert recorded.metrics == plain.metrics
    assert np.array_equal(recorded.jct_s, plain.jct_s)
    words = [row[2] for row in recorded.decisions]
    assert words.count("preempt") == plain.metrics["preemptions"]
    times = [float(row[0]) for row in recorded.decisions]
    assert times == sorted(times)
    line = recorded.timeline
    held = sum(len(gpus) * (end - start) for gpus, start, end in zip(line.gpus, line.start_s, line.end_s, strict=True))
    every = line.num_gpus * (line.stop_s - line.begin_s)
    assert held / every == pytest.approx(plain.metrics["allocation_rate"])
    assert_no_gpu_is_held_twice(line)


def assert_no_gpu_is_held_twice(line) -> None:
    until = np.zeros(line.num_gpus)
    for gpus, start_s, end_s in zip(line.gpus, line.start_s, line.end_s, strict=True):
        held = list(gpus)
        assert start_s <= end_s
        assert np.all(until[held] <= start_s)
        until[held] = end_s


class Restless:
    """Holds each job once for 5 s, starts it, moves it once if there is room, and stops and restarts job 0 in place."""

    def __init__(self) -> None:
        self.held, self.moved, self.again = set(), set(), False

    def decide(self, view):
        for job in view.queue.tolist():
            if job not in self.held:
                self.held.add(job)
                return Hold(job, view.now_s + 5.0)
            if self.again and job == 0:
                return Start(0, (0, 1))
            if (gpus := view.find_gpus(job, "count")) is not None:
                return Start(job, gpus)
        for job in view.running.tolist():
            if job == 0 and not self.again:
                self.again = True
                return Preempt(0)
            if job == 1 and job not in self.moved and len(view.free_gpus) >= 1:
                self.moved.add(job)
                return Migrate(job, [int(view.free_gpus[-1])])
        return Advance()


def test_decisions_of_a_python_policy():
    """Two jobs on 4 GPUs. Job 0 is stopped and started in place at one instant: that is no decision."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=4")
    simulator.reset(Workload.from_arrays("two", [0.0, 1.0], [2, 1], [20.0, 10.0]))
    seen = [(entry.time_s, entry.job, WORDS[entry.kind], entry.gpus) for entry in decisions(simulator, Restless())]
    assert seen == [
        (0.0, 0, "hold", ()),
        (1.0, 1, "hold", ()),
        (5.0, 0, "start", (0, 1)),
        (6.0, 1, "start", (2,)),
        (6.0, 1, "migrate", (3,)),
    ]
    assert simulator.metrics()["preemptions"] == 0
    assert simulator.jobs()["finish_s"].tolist() == [25.0, 16.0]


def test_a_timeline_knows_queue_and_use():
    """8 GPUs, strict FIFO: b (8 GPUs) waits for a until 100, c (4) for b until 150 and ends at 175."""
    simulator = Simulator("flat:machines=1", rule=policies.make("fifo:head=strict").rule)
    simulator.reset(Workload.from_arrays("three", [0.0, 0.0, 10.0], [1, 8, 4], [100.0, 50.0, 25.0]))
    line = timeline(simulator, decisions(simulator))
    assert line.end_s.tolist() == [100.0, 150.0, 175.0]
    assert [part.tolist() for part in line.busy_gpus()] == [[0, 100, 150, 175], [1, 8, 4, 0]]
    assert [part.tolist() for part in line.queue_length()] == [[0, 10, 100, 150, 175], [1, 2, 1, 0, 0]]


def test_a_failed_machine_ends_the_stretch():
    """One machine, one job: stretches end when the machine fails, and begin when it is back."""
    simulator = Simulator("flat:machines=1", failures=Failures(mtbf_s=500.0, mttr_s=100.0, checkpoint_s=1.0))
    simulator.reset(Workload.from_arrays("one", [0.0], [8], [2000.0]), seed=1)
    line = timeline(simulator, decisions(simulator))
    metrics = simulator.metrics()
    assert len(line.job) == metrics["failures"] + 1 > 1
    assert np.all(line.start_s[1:] > line.end_s[:-1])
    assert float(np.sum(line.end_s - line.start_s)) * 8 == pytest.approx(
        metrics["allocation_rate"] * 8 * metrics["makespan"]
    )


def test_the_interval_holds_the_mean_and_narrows_with_more_seeds():
    values = np.random.default_rng(1).normal(10.0, 2.0, 400)
    few, many = estimate(values[:10]), estimate(values)
    assert few.low < few.mean < few.high
    assert many.high - many.low < few.high - few.low
    assert (many.high - many.low) / 2 == pytest.approx(1.96 * 2.0 / 20.0, rel=0.15)
    assert estimate(values[:10]) == few


def test_one_seed_and_equal_values_have_no_interval():
    assert estimate([5.0]).is_sure
    assert estimate([5.0, 5.0, 5.0]).is_sure
    assert not estimate([5.0, 6.0]).is_sure
    assert estimate([float("nan"), 6.0]).mean == 6.0
    assert estimate([]).is_sure


def test_nothing_half_written_is_left_behind(tmp_path: Path):
    from clustergym.experiments.console.terminal import written_whole

    path = tmp_path / "result"
    path.write_text("old")
    with pytest.raises(RuntimeError), written_whole(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    with written_whole(path) as draft:
        draft.write_text("new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["result"]
    assert path.read_text() == "new"


def test_written_decisions_have_shifts_where_there_are_any(tmp_path):
    started, shifted = ("0.0", "a", "start", "0.0.0 0.1.0", "", "early"), ("0.0", "a", "shift", "", "0.05", "")
    lines = []
    for decided in ((started,), (started, shifted)):
        write_decisions([Run("p", 0, {}, 1, np.array([1.0]), decided)], tmp_path / "decisions.csv")
        lines.append((tmp_path / "decisions.csv").read_text().splitlines())
    assert lines[0] == ["policy,seed,time_s,job_id,decision,gpus,why", "p,0,0.0,a,start,0.0.0 0.1.0,early"]
    assert lines[1][0] == "policy,seed,time_s,job_id,decision,gpus,shift_s,why"
    assert lines[1][2] == "p,0,0.0,a,shift,,0.05,"
