"""Times of the jobs that have finished, of which metrics are made: one kernel call for all of them."""

from __future__ import annotations

import math

import numpy as np

from ..base.codes import DONE
from ..compiler.jit import entry, kernel
from ..lifecycle.lifecycle import isolated_s
from ..numerics.rounding import SAME_INSTANT
from ..record.feature_groups import has_berths
from ..record.raw_record import RawRecord

JCT, QUEUED, COMM, SLOWDOWN, FAIRNESS = range(5)  # rows of `FinishedJobs.times`
TIMES = 5
LAST_FINISH_S, LEFT, LATE, DUE = range(4)  # places in `totals` of `write_times`
TOTALS = 4
EVERY = np.zeros(0, np.bool_)


class FinishedJobs:
    """The finished jobs of a run, or those `among` bool (jobs,); None: all.

    Attributes:
        count: how many of them have finished.
        times: float64 (TIMES, count), in order of arrival: JCT, queueing delay and exposed communication, seconds;
            slowdown; finish-time fairness (metrics.py).
        last_finish_s: when the last of them finished; -inf where none has.
        late, due: how many were late for their deadline by now, finished or not; of how many with a deadline.
    """

    def __init__(self, raw: RawRecord, among: np.ndarray | None = None) -> None:
        times, totals = np.empty((TIMES, int(raw.record["n_jobs"]))), np.empty(TOTALS)
        chosen = EVERY if among is None else np.ascontiguousarray(among, np.bool_)
        self.count = int(raw.call(write_times, chosen, times, totals))
        self.times = times[:, : self.count]
        self.last_finish_s, left, self.late, self.due = totals.tolist()
        self.are_all = left == 0.0

    def means(self) -> list[float]:
        """Of `times`, row by row; nan where no job has finished."""
        if not self.count:
            return [float("nan")] * TIMES
        return [total / self.count for total in np.add.reduce(self.times, axis=1).tolist()]


@entry
def write_times(states, row, among, times, totals):
    """Modify `times`, float64 (TIMES, jobs), and `totals`; returns how many jobs have finished: columns of `times`.

    Args:
        among: bool (jobs,), the jobs of the run that count; (0,): all.
        totals: float64 (TOTALS,): when the last one finished, how many have not, how many were late, how many are due.
    """
    s = states[row]
    count, left, late, due = 0, 0, 0, 0
    last_s = -math.inf
    for job in range(s.n_jobs):
        if among.size > 0 and not among[job]:
            continue
        deadline_s = s.deadline_s[job]
        due += deadline_s < math.inf
        if s.status[job] != DONE:
            left += 1
            late += deadline_s <= s.now_s
            continue
        finish_s = s.finish_s[job]
        late += finish_s > deadline_s * (1.0 + SAME_INSTANT)
        last_s = max(last_s, finish_s)
        jct_s = finish_s - s.arrival_s[job]
        times[JCT, count] = jct_s
        times[QUEUED, count] = s.queued_s[job]
        times[COMM, count] = s.comm_s[job]
        times[SLOWDOWN, count] = jct_s / isolated_s(s, job)
        times[FAIRNESS, count] = jct_s / _alone_s(s, job)
        count += 1
    totals[LAST_FINISH_S], totals[LEFT], totals[LATE], totals[DUE] = last_s, left, late, due
    return count


@kernel
def _alone_s(s, job):
    """What Themis (NSDI'20) calls T_independent: run time on a 1/N share of the GPUs, N the mean number of jobs."""
    share = s.n_gpus / max(1.0, s.mean_active[job])
    asked = s.own_gpus[job] if has_berths(s) else s.gpus[job]
    return isolated_s(s, job) * max(1.0, asked / share)
