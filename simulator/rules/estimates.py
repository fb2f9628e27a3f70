"""Run times as far as they are known."""

from ..kernels.jit import kernel
from .orders import left_now


@kernel
def isolated_left_s(s, job):
    """Isolated run time left of a job now, seconds, as far as it is known."""
    return left_now(s, job) * s.base_iteration_s[job]


@kernel
def expected_end_s(s, job):
    """When a running job is taken to end at its present speed, seconds."""
    return s.planned_finish_s[job]
