"""Paper harmony: runs of job groups and what is seen of them, and rows that are computations of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ....policies import Policy
from ....simulator.base.decisions import Advance
from ....simulator.base.errors import Stalled
from ....simulator.groups.group_simulator import GroupSimulator
from ...charts import axes, plots
from ...charts.chart import Shape, upright
from ...comparing.intervals import estimate, paired_ratio
from ...playing.over_time import bin_means
from ..case import Case, Outcome
from ..engine import Play, RowContext
from ..paper_pictures import looks, picture
from ..rows import Row, bounded, printed, table
from ..schema import Line

MACHINES = 100
BIN_S = 600.0  # of a picture: fluctuations between two decision points that lie nearer are averaged
SAME_WORK = 0.01  # relative: CPU ratio and makespan ratio are one result
FLAT = 0.1  # relative: the published ratios fall by 5 and 3 %
KEPT_UP_TO, KEPT = 7.5, 90.0  # %: up to so large an error more than so much of the speed-up is kept
STEEP_AT, STEEP = 20.0, 50.0  # "rapidly degrades": ours, less than half of the gain is left


def grouped(case: Case) -> Mapping[str, Any]:
    """Play it.

    Metrics with `alpha_mean`, `alpha_least`, `alpha_most`: share of its input that an executed job has on disk, over
    time; `decisions`: instants at which something was decided; `stalled`: 1: jobs were left that could never run, and
    there is nothing else. `jct_s`, (jobs,), in order of arrival; `group_size`, `group_machines`, (groups,), jobs and
    machines of each of all different groups that were decided on; `group_job`: their jobs, one group after another;
    `use_s`, (p,), decision points and the end; `cpu_use`, `network_use`, (p,), shares of all machines' from each on.
    """
    simulator, policy = case.begun()
    decider = policy.decider(simulator)
    assert decider is not None
    seen = _Seen(simulator)
    try:
        _play(simulator, decider, seen)
    except Stalled:
        return {"metrics": {"stalled": 1.0}, "jct_s": np.zeros(0), **seen.columns()}
    metrics = {**simulator.metrics(), **seen.metrics(), "stalled": 0.0}
    return {"metrics": metrics, "jct_s": simulator.jobs()["jct_s"], **seen.columns()}


class _Seen:
    """What is looked at while a run is played."""

    def __init__(self, simulator: GroupSimulator) -> None:
        self.meter = simulator.meter
        self.found: dict[tuple[tuple[int, ...], int], None] = {}
        self.decided = 0
        self.alpha_s = self.job_s = 0.0
        self.least, self.most = np.inf, 0.0

    def look(self, simulator: GroupSimulator) -> None:
        """At the groups that are to be."""
        view = simulator.view
        for group in view.groups.tolist():
            self.found[tuple(view.members(group)), view.machines_of(group)] = None

    def passed(self, simulator: GroupSimulator, since_s: float) -> None:
        """At the jobs that were executed until now."""
        view, s = simulator.view, simulator.state
        jobs = [job for job in view.running.tolist() if view.is_executed(job)]
        if jobs:
            alpha, elapsed_s = s.alpha[jobs], float(s.now_s) - since_s
            self.alpha_s += elapsed_s * float(alpha.sum())
            self.job_s += elapsed_s * len(jobs)
            self.least, self.most = min(self.least, float(alpha.min())), max(self.most, float(alpha.max()))

    def metrics(self) -> dict[str, float]:
        mean = self.alpha_s / self.job_s if self.job_s else 0.0
        return {
            "alpha_mean": mean,
            "alpha_least": min(self.least, self.most),
            "alpha_most": self.most,
            "decisions": float(self.decided),
        }

    def columns(self) -> dict[str, np.ndarray]:
        use = self.meter.over_time()
        return {
            "group_size": np.array([len(members) for members, _ in self.found], np.float64),
            "group_machines": np.array([machines for _, machines in self.found], np.float64),
            "group_job": np.array([job for members, _ in self.found for job in members], np.float64),
            "use_s": use.time_s,
            "cpu_use": use.cpu,
            "network_use": use.network,
        }


def _play(simulator: GroupSimulator, policy: Policy, seen: _Seen) -> None:
    while not simulator.ended:
        decided = 0
        for decision in simulator.asked(policy):
            simulator.apply(decision)
            decided = 1
        seen.decided += decided
        seen.look(simulator)
        since_s = simulator.view.now_s
        simulator.advance()
        seen.passed(simulator, since_s)


def _speedup(play: Play, line: Line, column: str, at: str, over: str = "harmony") -> float:
    """How many times shorter the mean is than that of `isolated`."""
    return play.runs.ratio(play.take(line, column), "isolated", over, at).mean


def same_work(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """COMP is conserved, so without moves, and but for the collector, CPU and makespan are one result."""
    ours, isolated = line.policies
    cpu = play.runs.ratio(play.number("gpu_utilisation", 100.0), ours, isolated, line.at[0])
    makespan = play.runs.ratio(play.number("makespan", 1.0, 3600.0), isolated, ours, line.at[0])
    words = f"{line.at[0]}: ratio of CPU use over that of makespans"
    bounds = (1.0 - SAME_WORK, 1.0 + SAME_WORK)
    yield bounded(words, "1 (one result)", cpu.mean / makespan.mean, bounds)


def always_busy(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Were the CPU of all machines busy all the time."""
    (at,) = play.group(play.entry.at)
    isolated = play.runs.each(play.number("makespan", 1.0, 3600.0), "isolated", at)
    least = []
    for case in play.cases("harmony", at):
        workload = case.workload
        assert workload.ps is not None
        least.append(float((workload.iterations * workload.ps.comp_machine_s).sum()) / MACHINES / 3600.0)
    found = estimate([one / two for one, two in zip(isolated, least, strict=True)])
    yield printed("bound: isolated's makespan over that with the CPU always busy", found, "x")


def jobs_a_group(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Jobs that run together over groups, in the mean."""
    jobs, groups = (
        play.runs.each(play.number(name), "harmony", here.at) for name in ("jobs_running_mean", "groups_mean")
    )
    yield printed(f"{play.label(here.at)}: jobs a group", paired_ratio(jobs, groups))


def spread(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """What is gained where jobs arrive 8 minutes apart, over what is gained where all come at once."""
    places = play.group(play.entry.at)
    for column, paper in zip(line.columns, line.paper, strict=True):
        at_once, apart = (_speedup(play, line, column, at) for at in (places[0], places[-1]))
        words = f"ratio of {column} at a gap of 8 minutes over that at 0"
        yield table(words, paper, apart / at_once, "x", FLAT)


def readings(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Each reading, and by how much it moves the two ratios of the first."""
    base: dict[str, float] = {}
    for at in play.group(play.entry.at):
        for column, paper in zip(line.columns, line.paper, strict=True):
            found = play.runs.ratio(play.take(line, column), "isolated", "harmony", at)
            moved = 100.0 * (found.mean / base.setdefault(column, found.mean) - 1.0)
            yield printed(f"{play.label(at)}: {column}", found, "x", f"{paper:g}; moved {moved:+.1f} %")
        running = play.runs.mean(play.number("jobs_running_mean"), "harmony", at)
        yield printed(f"{play.label(at)}: jobs that run together", running, "", "27.2")


def sensitivity(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """How much of Harmony's gain is kept where what it measures is wrong."""
    for group, words in zip(play.entry.at, ("", "memory without limit: "), strict=True):
        places = {float(play.label(at).split()[1]): at for at in play.group([group])}
        for column in line.columns:
            gains = {error: 100.0 * (_speedup(play, line, column, at) - 1.0) for error, at in places.items()}
            yield printed(f"{words}gain in {column} without error", gains[0.0], "%")
            for error, gain in list(gains.items())[1:]:
                kept, what = 100.0 * gain / gains[0.0], f"{words}gain in {column} that is kept, error {error:g} %"
                if error <= KEPT_UP_TO:
                    yield bounded(what, f"over {KEPT:g} %", kept, (KEPT, float("inf")), "%")
                elif error == STEEP_AT:
                    yield bounded(what, "a steep loss", kept, (-float("inf"), STEEP), "%")
                else:
                    yield printed(what, kept, "%")


def nearest(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Which number of machines of an isolated job comes nearest to the derived use, and which has most."""
    name, take = here.at, play.number("cpu_utilisation", 100.0)
    paper, used = {"all": (58.3, 5), "compute": (57.3, 7), "communication": (58.5, 5)}[name]
    found = {int(one.removeprefix("dop=")): play.runs.mean(take, one, name).mean for one in line.policies}
    near = min(found, key=lambda dop: abs(found[dop] - paper))
    yield printed(f"{name}: dop nearest to the derived use", near, "", f"{used} (in use)")
    yield printed(f"{name}: dop of most CPU use", max(found, key=lambda dop: found[dop]))


def best_plan(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The shortest of many plans on each workload."""
    take, plans = play.number("jct_mean", 1.0, 3600.0), line.policies[: 2 if play.options.quick else None]
    shortest = np.min([play.runs.each(take, plan, here.at) for plan in plans], axis=0).tolist()
    found = paired_ratio(shortest, play.runs.each(take, "harmony", here.at))
    yield printed(f"{play.label(here.at)}: the best of {len(plans)} plans / harmony", found, "x")


def decision_times(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """What a policy takes for what it decides at an instant, on average over a run."""
    for word in line.given["policies"]:
        case = play.cases(word, "room, default")[0]
        taken_s, instants = 0.0, 0
        for counts in (False, True):  # the first run may compile
            simulator, made = case.begun()
            policy = made.decider(simulator)
            assert policy is not None
            while not simulator.ended:
                began_s = time.perf_counter()
                decision = simulator.ask(policy)
                taken_s += counts * (time.perf_counter() - began_s)
                instants += counts and isinstance(decision, Advance)
                simulator.apply(decision)
        yield printed(f"time of a decision: {word}", 1000.0 * taken_s / instants, "ms")


def use_drawn(play: Play) -> list[Path]:
    """Figure 11: CPU above, network below, of the first workload; an upright line where a policy's last job is done."""
    outcomes = {policy: play.runs.of(policy, "80 jobs")[0] for policy in ("isolated", "harmony")}
    stop_s = max(float(one["use_s"][-1] - one["use_s"][0]) for one in outcomes.values())
    x, y = axes.durations(0.0, stop_s), axes.linear(0.0, 102.0)
    look, charts = looks(outcomes), []
    for what, key, mean in (("CPU", "cpu_use", "cpu_utilisation"), ("network", "network_use", "network_utilisation")):
        lines = {policy: binned(one, 100.0 * one[key]) for policy, one in outcomes.items()}
        names = {policy: f"{policy} (mean {100.0 * one.metrics[mean]:.0f} %)" for policy, one in outcomes.items()}
        about: dict[str, Any] = {"x_label": "time; upright: all jobs are done", "y_label": f"{what} use [%]"}
        summary = "; ".join(names.values())
        chart = plots.curves(lines, look, x, y, title=f"{what} (Figure 11)", summary=summary, **about)
        ends = [
            Shape(f"thin {look[policy].classes}", [upright(float(x.at(edges_s[-1])), 0.0, 1.0)])
            for policy, (edges_s, _) in lines.items()
        ]
        named = [(look[policy].classes, name) for policy, name in names.items()]
        charts.append(replace(chart, legend=named).with_shapes(*ends))
    return picture(play.options, "harmony-use", charts)


def binned(outcome: Outcome, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges from 0 s to the end, and the means of a share between them."""
    begin_s, stop_s = outcome["use_s"][0], outcome["use_s"][-1]
    edges_s = np.append(np.arange(begin_s, stop_s, BIN_S), stop_s)
    return edges_s - begin_s, bin_means(outcome["use_s"], share, edges_s)
