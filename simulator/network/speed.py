"""How fast a placed job runs: the one question that kernels put to the network."""

from ..kernels.jit import kernel


@kernel
def iteration_time_s(s, job):
    """Seconds per iteration of a job on the GPUs that it holds: isolated time x slowdown of its profile at its tier."""
    return s.base_iteration_s[job] * s.tier_factor[s.profile[job], s.tier[job]]
