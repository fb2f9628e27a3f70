"""Features of the present: what `TimeShift-v0` shows to an agent.

Counts n of jobs read n / (n + 32) where nothing else is said; times t (seconds, GPU-seconds) are log1p(t) /
log1p(horizon), slowdowns f log(f) / log(1000), all cut at 1; a slack t, which may be below 0, is 1/2 + or - half of
what |t| would be. Excess is what jobs want of a link above its capacity, on average over their unified circle, as a
fraction of the capacity (1 - the compatibility score of paper cassini), cut at 1. Everything lies in [0, 1]; rows
without a job, and candidates that are not legal, are zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...simulator.jobs.estimates import known_left
from ..window import CROWD, LOG_WORST
from .timeshift_offers import OFFER

CLUSTER = (
    "time since the first arrival",
    "free GPUs",
    "GPUs on failed machines",
    "waiting jobs",
    "held jobs",
    "running jobs",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "GPUs d asked in the window: d / (d + GPUs)",
    "links that several jobs use, of all",
    "running jobs that meet others on a link, of those that run",
    "1: a placement is chosen; 0: shifts are",
    "jobs whose shift is still to be chosen at this instant, this one included",
)
QUEUE = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time since it arrived or lost its GPUs",
    "time since it arrived",
    "isolated run time left",
    "isolated GPU-seconds left",
    "GPU-seconds attained",
    "1: it has run before",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
RUNNING = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time on these GPUs",
    "time since it arrived",
    "isolated run time left",
    "slowdown over its time on these GPUs",
    "1: its shift is chosen now",
    "time of an iteration alone: t / (1 + t)",
    "part of an iteration in which it wants its links, alone",
    "highest rate of a flow, of its slowest link",
    "links that it uses, of all",
    "links that it shares, of its own",
    "jobs that it is joined with by links, of those that run",
    "1: it has a shift",
    "its shift, of its period",
    "excess on its links, the mean, as all are turned now",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
ACTIONS = ("1: legal", "1: no more now", "1: place", "1: leave its shift as it is", "1: shift", "1: run free")
TURNS = (
    "excess on the job's links as it is turned now",
    "excess on its links, the least of all rotations",
    "excess on its links, the mean over rotations",
    "excess on its links, the most of all rotations",
    "part of the instant's shifts that are chosen",
    "iterations left n: log2(1 + n) / 24",
)
CANDIDATES = (*ACTIONS, *OFFER, *TURNS)
LEGAL_COLUMN, NO_MORE_COLUMN, PLACE_COLUMN, LEAVE_COLUMN, SHIFT_COLUMN, FREE_COLUMN = range(6)
FIRST_OFFER, FIRST_TURN = len(ACTIONS), len(ACTIONS) + len(OFFER)


def crowd(count: Any) -> Any:
    """Numbers of jobs as features."""
    return count / (count + CROWD)


def observe_queue(s: np.void, w: np.void, shown: np.ndarray) -> int:
    """Write the rows of the waiting jobs, float32 (slots, columns); returns the GPUs that they ask."""
    jobs = w["waiting_job"][: int(w["waiting_shown"])]
    if not len(jobs):
        return 0
    rows = shown[: len(jobs)]
    gpus = s["gpus"][jobs]
    left_s = known_left(s, jobs, s["iterations_left"][jobs]) * s["base_iteration_s"][jobs]
    _observe_size(s, rows, gpus)
    now_s = float(s["now_s"])
    rows[:, 3] = _time(w, now_s - s["waiting_since_s"][jobs])
    rows[:, 4] = _time(w, now_s - s["arrival_s"][jobs])
    rows[:, 5] = _time(w, left_s)
    rows[:, 6] = _time(w, left_s * gpus)
    rows[:, 7] = _time(w, s["attained_s"][jobs] * gpus)
    rows[:, 8] = s["starts"][jobs] > 0
    rows[:, 9] = _slack(s, w, jobs, left_s)
    return int(gpus.sum())


def observe_running(s: np.void, w: np.void, shown: np.ndarray) -> np.ndarray:
    """Write what the record says about running jobs, float32 (slots, columns); returns the jobs in the slots."""
    jobs = w["running_job"][: int(w["running_shown"])]
    if not len(jobs):
        return jobs
    rows = shown[: len(jobs)]
    _observe_size(s, rows, s["gpus"][jobs])
    now_s = float(s["now_s"])
    on_gpus_s = np.maximum(0.0, now_s - s["since_s"][jobs])
    rows[:, 3] = _time(w, now_s - s["started_s"][jobs])
    rows[:, 4] = _time(w, now_s - s["arrival_s"][jobs])
    left = np.maximum(0.0, s["iterations_left"][jobs] - on_gpus_s / s["iteration_s"][jobs])
    left_s = known_left(s, jobs, left) * s["base_iteration_s"][jobs]
    rows[:, 5] = _time(w, left_s)
    rows[:, 17] = _slack(s, w, jobs, left_s)
    slowdown = np.maximum(1.0, s["iteration_s"][jobs] / s["base_iteration_s"][jobs])
    rows[:, 6] = np.minimum(1.0, np.log(slowdown) / LOG_WORST)
    return jobs


def _observe_size(s: np.void, rows: np.ndarray, gpus: np.ndarray) -> None:
    """Write the first columns of any row."""
    rows[:, 0] = 1.0
    rows[:, 1] = gpus / int(s["n_gpus"])
    rows[:, 2] = np.log2(1.0 + gpus) / math.log2(1.0 + int(s["n_gpus"]))


def _time(w: np.void, value: np.ndarray) -> np.ndarray:
    """Times as features."""
    return np.minimum(1.0, np.log1p(np.maximum(0.0, value)) / float(w["log_horizon"]))


def _slack(s: np.void, w: np.void, jobs: np.ndarray, left_s: np.ndarray) -> np.ndarray:
    """As `window.scaled_slack`, of several jobs whose isolated run times left are known."""
    deadline_s = s["deadline_s"][jobs]
    slack_s = deadline_s - float(s["now_s"]) - left_s
    half = np.copysign(0.5 * _time(w, np.abs(slack_s)), slack_s)
    return np.where(np.isinf(deadline_s), 1.0, 0.5 + half)


def observe_cluster(s: np.void, w: np.void, shown: np.ndarray, asked: int) -> None:
    """Write what the record says about the cluster."""
    gpus, jobs = int(s["n_gpus"]), int(s["n_jobs"])
    shown[0] = float(_time(w, np.array(float(s["now_s"] - s["start_s"]))))
    shown[1] = int(s["free_gpus"]) / gpus
    shown[2] = int(s["down_gpus"]) / gpus
    shown[3] = crowd(int(s["waiting"]))
    shown[4] = crowd(int(s["held"]))
    shown[5] = crowd(int(s["running"]))
    shown[6] = int(s["next_arrival"]) / jobs
    shown[7] = int(s["done"]) / jobs
    shown[8] = asked / (asked + gpus)
