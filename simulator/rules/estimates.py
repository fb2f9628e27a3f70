"""How long jobs still run."""

from ..kernels.jit import kernel
from .orders import left_now


@kernel
def isolated_left_s(s, job):
    """Isolated run time left of a job now, seconds."""
    return left_now(s, job) * s.base_iteration_s[job]


@kernel
def expected_end_s(s, job):
    """When a running job is taken to end if it goes on as fast as now."""
    return s.planned_finish_s[job]
