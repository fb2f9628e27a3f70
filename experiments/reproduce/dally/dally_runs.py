"""Paper dally: runs of which something is kept over time, and rows that are computations of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np

from ....simulator.base.errors import InputError
from ...comparing.intervals import Estimate, paired_difference, paired_ratio
from ...playing.evaluation import play
from ...playing.over_time import bin_means
from ..case import Case, Outcome
from ..case_runs import improvement
from ..engine import Play, RowContext
from ..rows import Row, bounded, printed, ratio
from ..schema import Line

POINTS = 1000  # of a series
CROWDED = 0.5  # a timer is tuned while the cluster is crowded: until so many of the jobs are left
APART = 1.8  # most of the ratio natively, over that under the authors' semantics


def used(case: Case) -> Mapping[str, Any]:
    """A run at POINTS times from the first arrival to the end.

    Beside metrics and `jct_s`, float64 (POINTS,): `time_s`, seconds from the first arrival; `held_gpus`, in the mean
    since the time before; `jobs_left`, not finished yet.
    """
    run = play(case.setting, case.policy, case.seed, record=True)
    line = run.timeline
    assert line is not None
    edges, leaves = np.linspace(line.begin_s, line.stop_s, POINTS + 1), np.sort(line.leave_s)
    return {
        "metrics": run.metrics,
        "jct_s": run.jct_s,
        "time_s": edges[1:] - line.begin_s,
        "held_gpus": bin_means(*line.busy_gpus(), edges),
        "jobs_left": (len(leaves) - np.searchsorted(leaves, edges[1:], side="right")).astype(np.float64),
    }


def timed(case: Case, gpus: int) -> Mapping[str, Any]:
    """A run, looked at after every pass: `timer_s`, the tuned rack timer of jobs of `gpus` GPUs, and `jobs_left`."""
    simulator, _ = case.begun()
    s = simulator.state
    times, timers, left = [], [], []
    timer_s = 0.0
    while not simulator.ended:
        simulator.schedule()
        timer_s = tuned_rack_timer_s(s, gpus, timer_s)
        times.append(float(s.now_s - s.start_s))
        timers.append(timer_s)
        left.append(float(s.n_jobs - s.done))
        simulator.advance()
    grid_s = np.linspace(0.0, times[-1], POINTS + 1)[1:]
    place = np.searchsorted(times, grid_s, side="right") - 1
    series = {"time_s": grid_s, "timer_s": np.array(timers)[place], "jobs_left": np.array(left)[place]}
    return {"jct_s": simulator.jobs()["jct_s"], "metrics": simulator.metrics(), **series}


def tuned_rack_timer_s(s: np.record, gpus: int, before_s: float) -> float:
    """The rack timer that jobs of `gpus` GPUs were last refused by, seconds; `before_s` if it is not known anew."""
    demand = int(np.searchsorted(s.class_gpus[: s.n_classes], gpus))
    if demand >= s.n_classes or s.class_gpus[demand] != gpus:
        raise InputError(f"reproduce: no job of the set asks {gpus} GPUs")
    waits = 2 * demand + 1
    return float(s.waits_timer[waits] * s.tuner_unit_s) if s.waits_known[waits] else before_s


def half_idle_s(outcome: Outcome) -> float:
    """Seconds from the last time that half of 8 racks' GPUs are held to the end."""
    busy = np.flatnonzero(outcome["held_gpus"] >= 0.5 * 8 * 64)
    since_s = outcome["time_s"][busy[-1]] if len(busy) else 0.0
    return float(outcome["time_s"][-1] - since_s)


def last_jobs_s(outcome: Outcome) -> float:
    """Seconds from the time that 95 % of the jobs are done to the end."""
    few = np.flatnonzero(outcome["jobs_left"] <= 0.05 * len(outcome["jct_s"]))
    return float(outcome["time_s"][-1] - outcome["time_s"][few[0]])


def crowded(outcome: Outcome) -> np.ndarray:
    """At which times more than CROWDED of the jobs are left, bool (POINTS,)."""
    return np.asarray(outcome["jobs_left"] > CROWDED * len(outcome["jct_s"]))


def late_timer_h(outcome: Outcome) -> float:
    """Mean of the timer over the time in which more than CROWDED of the jobs are left, hours."""
    then = crowded(outcome)
    return float(outcome["timer_s"][then].mean() / 3600.0) if then.any() else 0.0


def _lower(play: Play, line: Line, column: str | None, at: str) -> Estimate:
    return improvement(*play.runs.pair(play.take(line, column), line.policies[0], at, line.over[0], at))


def at_most(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """By how much a policy is below another where that is most, over settings, and numbers if there are several."""
    found = {
        ", ".join(filter(None, (column, play.label(at)))): _lower(play, line, column, at)
        for column, at in product(line.columns or [None], play.group(line.at))
    }
    where = max(found, key=lambda one: found[one].mean)
    yield ratio(f"{line.what} below {line.over[0]}, at most ({where})", line.paper, found[where])


def mean_over_sizes(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The mean of the same over settings."""
    mean = float(np.mean([_lower(play, line, None, at).mean for at in play.group(line.at)]))
    yield ratio(f"{line.what} below {line.over[0]}, mean over cluster sizes", line.paper, mean)


def one_order(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """How far a single machine order lies from the mean of all: why one run ranks nothing."""
    (at,) = play.group(line.at)
    size = play.label(at)
    each = {policy: np.array(play.runs.each(play.take(line, None), policy, at)) for policy in line.policies}
    for policy, makespans in each.items():
        apart, words = (
            100.0 * (makespans / makespans.mean() - 1.0),
            f"makespan of {policy} in one machine order over its mean",
        )
        yield printed(f"{words}, least, {size}", apart.min(), "%")
        yield printed(f"{words}, most, {size}", apart.max(), "%")
    first, second = each.values()
    yield printed(f"machine orders in which dally is before tiresias, {size}", 100.0 * (first < second).mean(), "%")


def longer(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """By how much the timer of a smaller cluster is above that of the next larger one."""
    for smaller, larger in pairwise(play.group(play.entry.at)):
        small_h, large_h = (play.runs.each(late_timer_h, line.policies[0], at) for at in (smaller, larger))
        found = paired_difference(small_h, large_h)
        what = f"{line.what}, {play.label(smaller)} minus {play.label(larger)}"
        yield bounded(what, line.paper, found, (float(np.nextafter(0.0, 1.0)), float("inf")), "h")


def apart(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Dally over greedy natively, over the same under the authors' semantics."""
    take, policies = play.take(line, None), (line.policies[0], line.over[0])
    each = ([play.runs.each(take, one, at) for one in policies] for at in play.group(line.at))
    native, theirs = (paired_ratio(dally, greedy).mean for dally, greedy in each)
    what = f"dally / greedy, {line.given['label']}, events over artist-sim"
    yield bounded(what, None, native / theirs, (-float("inf"), APART))
