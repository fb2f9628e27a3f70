"""Starts of jobs: `lifecycle.start`, and the record of waits."""

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..dally import note_accepted


@kernel
def start(s, job):
    """Modify `s`: the waiting or held job runs on `s.gang`."""
    if lifecycle.start(s, job) and s.timing:
        note_accepted(s, job)
