"""A cluster in numbers, for rewards that a user writes (envs/reward.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..simulator.base.codes import DONE
from .outcome import TERMINATED, TRUNCATED, USED_GPUS, WAITING_JOBS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster in numbers, at a decision point or at the end of an episode.

    Attributes:
        time_s: the clock, seconds from the workload's origin.
        waiting_jobs: arrived without GPUs, whether held or not.
        running_jobs, finished_jobs, total_jobs: with GPUs; done; of the workload.
        used_gpus, total_gpus: held by jobs, and all; in regions with CPU machines, in Grouping-v0 machines.
        active_job_s: job-seconds from arrival to finish, or to now, of all jobs: its growth is what `jct` charges.
        slowdown_sum: the same, of each job in its isolated run times: what `slowdown` charges.
        late_jobs: jobs that have missed their deadline, in regions that started late: what `slo` charges.
        decisions: actions of the episode.
        terminated, truncated: whether the episode has ended.
    """

    time_s: float
    waiting_jobs: int
    running_jobs: int
    finished_jobs: int
    total_jobs: int
    used_gpus: int
    total_gpus: int
    active_job_s: float
    slowdown_sum: float
    late_jobs: int
    decisions: int
    terminated: bool
    truncated: bool

    @property
    def active_jobs(self) -> int:
        """Jobs that have arrived and are not finished."""
        return self.waiting_jobs + self.running_jobs

    @classmethod
    def of(cls, s: np.void, w: np.void, outcome: Sequence[float]) -> Snapshot:
        """The present, from a simulator's record, a window, and the outcome of the last step."""
        waiting, running, finished, used = (int(count) for count in outcome[WAITING_JOBS : USED_GPUS + 1])
        jobs, gpus, decisions = int(s["n_jobs"]), int(s["n_gpus"]), int(w["decisions"])
        sums = float(s["active_integral"]), float(s["slowdown_integral"])
        ended = outcome[TERMINATED] > 0.0, outcome[TRUNCATED] > 0.0
        return cls(float(s["now_s"]), waiting, running, finished, jobs, used, gpus, *sums, _late(s), decisions, *ended)

    @classmethod
    def before_all(cls, s: np.void) -> Snapshot:
        """The first arrival, without jobs."""
        return cls(float(s["start_s"]), 0, 0, 0, int(s["n_jobs"]), 0, int(s["n_gpus"]), 0.0, 0.0, 0, 0, False, False)


def _late(s: np.void) -> int:
    """As `reward.total_cost` of `slo`."""
    if "late_starts" in (s.dtype.names or ()) and s["cluster_region"].size > 1:
        return int(s["late_starts"])
    late, due, now_s = int(s["late"]), int(s["next_due"]), s["now_s"]
    while due < s["n_due"] and s["deadline_s"][s["due"][due]] <= now_s:
        late += int(s["status"][s["due"][due]] != DONE)
        due += 1
    return late
