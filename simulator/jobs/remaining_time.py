"""How long jobs still run: in truth, and as far as it is known (simulator/jobs/estimates.py).

Exact estimates stay exact to the bit. While a job has done less than its estimate, the rest of that is left; one that
outlives it needs as long again as it has run. Without knowledge nothing is left. A waiting job's value does not change.
"""

from ..base.codes import RUNNING, TIMES_EXACT, TIMES_HIDDEN
from ..compiler.jit import kernel
from ..numerics.rounding import NEAR


@kernel
def left_now(s, job):
    """Iterations left of a job now, running or not: in truth."""
    left = s.iterations_left[job]
    if s.status[job] == RUNNING:
        left -= max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
    return left


@kernel
def known_left(s, job):
    """Iterations left of a job now, as far as is known."""
    if s.known_times == TIMES_EXACT:
        return left_now(s, job)
    return 0.0 if s.known_times == TIMES_HIDDEN else _estimated_left_s(s, job) / s.base_iteration_s[job]


@kernel
def known_of(s, job, left):
    """Of `left` iterations of a job in truth as many as are known."""
    if s.known_times == TIMES_EXACT:
        return left
    if s.known_times == TIMES_HIDDEN:
        return 0.0
    done_s = (s.iterations[job] - left) * s.base_iteration_s[job]
    return (done_s if _is_outlived(s, job, done_s) else s.estimate_s[job] - done_s) / s.base_iteration_s[job]


@kernel
def isolated_left_s(s, job):
    """Isolated run time left of a job now, seconds, as far as is known."""
    if s.known_times == TIMES_EXACT:
        return left_now(s, job) * s.base_iteration_s[job]
    return 0.0 if s.known_times == TIMES_HIDDEN else _estimated_left_s(s, job)


@kernel
def isolated_whole_s(s, job):
    """Isolated run time of the whole job, seconds, as far as is known: its estimate until it has outlived that."""
    if s.known_times == TIMES_EXACT:
        return s.iterations[job] * s.base_iteration_s[job]
    if s.known_times == TIMES_HIDDEN:
        return 0.0
    done_s = _done_s(s, job)
    return 2.0 * done_s if _is_outlived(s, job, done_s) else s.estimate_s[job]


@kernel
def expected_end_s(s, job):
    """When a running job is taken to end if it goes on as fast as now; the present, where nothing is known."""
    if s.known_times == TIMES_EXACT:
        return s.planned_finish_s[job]
    if s.known_times == TIMES_HIDDEN:  # also of a job that restores
        return s.now_s
    return max(s.now_s, s.since_s[job]) + known_left(s, job) * s.iteration_s[job]


@kernel
def weighed_left(s, job):
    """Iterations left, for weighing one job against another: where nothing is known, all are as long, a second each."""
    return 1.0 / s.base_iteration_s[job] if s.known_times == TIMES_HIDDEN else known_left(s, job)


@kernel
def _estimated_left_s(s, job):
    done_s = _done_s(s, job)
    return done_s if _is_outlived(s, job, done_s) else s.estimate_s[job] - done_s


@kernel
def _done_s(s, job):
    return (s.iterations[job] - left_now(s, job)) * s.base_iteration_s[job]


@kernel
def _is_outlived(s, job, done_s):
    """True if a job has done all the work of its estimate, but for rounding."""
    return done_s >= s.estimate_s[job] * (1.0 - NEAR)
