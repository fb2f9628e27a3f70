"""Runs of paper dally of which something is kept over time: GPUs held and jobs left, or a tuned timer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....simulator.base.errors import InputError
from ...playing.evaluation import play
from ...playing.over_time import bin_means
from ..case import Case

POINTS = 1000  # of a series


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
