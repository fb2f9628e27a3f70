"""Paper sjf-bsbf: its runs, which share GPUs, what is counted of them, and rows that are computations of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ....simulator.cluster.topology import Topology
from ....simulator.workloads import open_workload
from ...comparing.intervals import Estimate, paired_ratio
from ..case import Case, Outcome
from ..engine import Play, RowContext
from ..rows import Row, printed
from ..schema import Line

LARGE_GPUS = 4  # a large job has more
HOUR_S = 3600.0
FIGURE_4A_S = 0.75 * HOUR_S


def shared(case: Case) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    Metrics with `shared_rate`: of the time that a GPU is held, the share in which two jobs hold it. `jct_s`,
    `queued_s`, `alone_s`: completion time, time without GPUs, isolated run time, seconds; `gpus`, asked; `model`.
    """
    simulator, policy = case.begun()
    simulator.run(policy.decider(simulator))
    jobs, s = simulator.jobs(), simulator.state
    return {
        "metrics": simulator.metrics() | {"shared_rate": float(s.shared_integral / s.busy_integral)},
        "jct_s": jobs["jct_s"],
        "queued_s": jobs["queueing_delay_s"],
        "alone_s": jobs["duration_s"],
        "gpus": simulator.workload.gpus.astype(np.float64),  # of the table: those that an elastic job had last
        "model": [str(name) for name in jobs["model"]],
    }


def calibrated(
    case: Case, policies: Sequence[str], jobs: Sequence[int], seeds: Sequence[int], by_class: bool
) -> Mapping[str, Any]:
    """Play parameters of a workload, with every number of jobs, under policies that share no GPU.

    Returns `numbers`, means over workloads by number of jobs, then policy, then column; `loads`, by number of jobs.

    Args:
        case: its workload has all parameters but the number of jobs and the seed.
        policies: words.
        jobs: the numbers of jobs that it is played with.
        seeds: of the workloads.
        by_class: the numbers are the mean completion times of all, large and small jobs, in hours; else the makespan
            and the mean completion time, in seconds.
    """
    gpus = Topology.load(case.setting.topology).num_gpus
    numbers, loads = [], []
    for count in jobs:
        words = [f"{case.setting.workload},jobs={count},seed={seed}" for seed in seeds]
        for policy in policies:
            found = [Outcome.of(shared(case.on(policy, workload=word))) for word in words]
            numbers.append(np.mean([_numbers(one, by_class) for one in found], axis=0))
        loads.append(np.mean([open_workload(word).offered_load(gpus) for word in words]))
    return {"numbers": np.concatenate(numbers), "loads": np.array(loads)}


def _numbers(found: Outcome, by_class: bool) -> list[float]:
    if by_class:
        return [jct_h(found, column) for column in ("all", "large", "small")]
    return [found.metrics["makespan"], float(found["jct_s"].mean())]


def jct_h(outcome: Outcome, column: str = "all") -> float:
    """Average completion time of the jobs of a column of Tables III and IV, hours."""
    return _mean(_of(outcome, "jct_s", column)) / HOUR_S


def queue_h(outcome: Outcome, column: str = "all") -> float:
    """Average time without GPUs, hours."""
    return _mean(_of(outcome, "queued_s", column)) / HOUR_S


def stretch(outcome: Outcome, column: str = "all") -> float:
    """How many times longer jobs hold GPUs than they would run alone, in the mean; whatever they waited."""
    alone_h = _mean(_of(outcome, "alone_s", column)) / HOUR_S
    return (jct_h(outcome, column) - queue_h(outcome, column)) / alone_h


def queue_of_model_s(outcome: Outcome, model: str = "bert") -> float:
    """Average time without GPUs of the jobs of a model, seconds."""
    return _mean(outcome["queued_s"][outcome["model"] == model])


def shortest_jct_h(outcome: Outcome, share: float = 0.4) -> float:
    """Average completion time of the `share` of the jobs that completed soonest, hours."""
    return _mean(np.sort(outcome["jct_s"])[: round(share * len(outcome["jct_s"]))]) / HOUR_S


def below_500_s(outcome: Outcome) -> float:
    """Jobs whose completion time is below 500 s, %."""
    return 100.0 * float((outcome["jct_s"] < 500.0).mean())


def below_500_alone(outcome: Outcome) -> float:
    """Jobs whose isolated run time is, %."""
    return 100.0 * float((outcome["alone_s"] < 500.0).mean())


def within_075_h(outcome: Outcome) -> float:
    """Jobs whose completion time is at most that of Figure 4a's sentence, %."""
    return 100.0 * float((outcome["jct_s"] <= FIGURE_4A_S).mean())


def _of(outcome: Outcome, name: str, column: str) -> np.ndarray:
    large = outcome["gpus"] > LARGE_GPUS
    return outcome[name][{"all": np.ones_like(large), "large": large, "small": ~large}[column]]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def met(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """How many published completion times of the table are met within another tolerance in a setting."""
    table, tolerance = play.entry.rows[0], line.given["tolerance"]
    published = {key: value for one in play.entry.rows[:2] for key, value in one.paper.items()}
    judged = table.model_copy(update={"tolerance": tolerance})
    cells = [
        play.row(judged, replace(here, paper=published, policy=policy, column=column, value=value))
        for policy in line.policies
        for column, value in table.columns.items()
    ]
    words = f"{play.label(here.at)}: {line.given['whose']} within {100 * tolerance:g} %, of {len(cells)}"
    yield printed(words, sum(row.ok is True for row in cells))


def crossing(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """From how many jobs on SJF-BSBF is below Pollux, on a straight line between the loads that were played."""
    ours, other = line.policies
    behind = {int(at.split()[0]): play.runs.ratio(jct_h, ours, other, at).mean for at in play.group(play.entry.at)}
    at = float("nan")
    for few, more in pairwise(behind):
        if behind[few] >= 1.0 > behind[more]:
            at = few + (more - few) * (behind[few] - 1.0) / (behind[few] - behind[more])
    yield Row("jobs from which sjf-bsbf is below pollux", (120.0, 240.0), at, (120.0, 240.0))


def falls(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Notes where more interference gives a lower mean JCT, and what changed there."""
    for group in play.entry.at:
        for policy in line.policies:
            for few, more in pairwise(play.group([group])):
                found = paired_ratio(*play.runs.pair(jct_h, policy, more, policy, few))
                if found.mean < 1.0:
                    play.notes.append(_fall(play, policy, few, more, found))
    yield from ()


def _fall(play: Play, policy: str, few: str, more: str, found: Estimate) -> str:
    mean, low, high = (100.0 * (1.0 - value) for value in (found.mean, found.high, found.low))
    before, after = (100.0 * play.runs.mean(play.number("shared_rate"), policy, at).mean for at in (few, more))
    return (
        f"{policy}: from {play.label(few)} to {play.label(more)} the average JCT falls by {mean:.1f} % [{low:.1f}, "
        f"{high:.1f}]; held GPU time with two jobs {before:.1f} % before, {after:.1f} % after"
        + "; its interval has no fall, too"
        * (found.high >= 1.0)
    )
