"""Endless runs, e.g. where machines fail too fast: now and then the clock looks whether any work has got less."""

from __future__ import annotations

import math

from ..base.codes import DONE, RUNNING
from ..compiler.jit import kernel

EVENTS_BETWEEN_CHECKS = 100_000  # events without one that arrives or finishes, from one look to the next,
A_JOB = 100  # and so many more for every job that is there
AT_ONCE = 10_000_000  # events at one instant
LEAST_DONE = 1e-4  # of the work that was left when looked at before, what must be done since
TO_HORIZON = 1e9  # events: a run that is at its horizon after fewer has an end, whatever gets done


@kernel
def renew(s):
    """Modify `s`: a job has arrived or finished: all begins anew."""
    _wait(s)
    s.best_left_s = math.inf


@kernel
def _wait(s):
    s.endless_check_at = s.events + EVENTS_BETWEEN_CHECKS + A_JOB * (s.next_arrival - s.done)


@kernel
def is_endless(s):
    """Modify `s`; true if nothing came of all events since the last check. Called once `s.endless_check_at` is over."""
    if s.endless_check_at == 0:
        renew(s)
        return False
    left_s = _left_s(s)
    if left_s >= (1.0 - LEAST_DONE) * s.best_left_s and not _reaches_horizon(s):
        return True
    s.best_left_s = left_s
    _wait(s)
    return False


@kernel
def _reaches_horizon(s):
    """True if the horizon is not too many events away, as they have come so far."""
    passed_s = s.now_s - s.start_s
    return passed_s > 0.0 and (s.horizon_s - s.now_s) / passed_s * s.events <= TO_HORIZON


@kernel
def _left_s(s):
    """Isolated run time that is left of the jobs in the system; of none, the time until the next one arrives."""
    if s.next_arrival == s.done:
        return s.arrival_s[s.next_arrival] - s.now_s
    total_s = 0.0
    for job in range(s.next_arrival):
        if s.status[job] != DONE:
            left = s.iterations_left[job]
            if s.status[job] == RUNNING:
                left -= max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
            total_s += max(0.0, left) * s.base_iteration_s[job]
    return total_s
