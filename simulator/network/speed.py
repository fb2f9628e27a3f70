"""How fast a placed job runs: the one question that kernels put to the network."""

from ..kernels.jit import kernel
from .collectives import placed_fraction


@kernel
def iteration_time_s(s, job):
    """Modify scratch space of `s`: seconds per iteration of a job on the GPUs that it holds.

    Without `net_models`: isolated time x slowdown of its profile at its tier. With them (network allreduce): compute
    time over its share of the iteration, at the shape of the placement.
    """
    if s.net_models > 0:
        return s.base_iteration_s[job] / placed_fraction(s, job)
    return s.base_iteration_s[job] * s.tier_factor[s.profile[job], s.tier[job]]
