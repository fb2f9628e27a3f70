"""How fast a job runs on certain GPUs: the one question that kernels put to the network."""

from ..compiler.jit import kernel
from ..network.collectives import gang_fraction, units_fraction
from ..network.step_time import stretch
from ..record.feature_groups import has_berths, has_regions
from .gpu_allocation import recall_gang


@kernel
def iteration_time_s(s, job):
    """Modify scratch space of `s`: seconds per iteration of a job on the GPUs that it holds, left in `s.gang` too."""
    if s.net_models > 0:
        recall_gang(s, job)
    return gang_iteration_s(s, job, s.tier[job])


@kernel
def gang_iteration_s(s, job, tier):
    """Modify scratch space of `s`: `solo_iteration_s` of a job on `s.gang`, of that tier, with its sub-batch."""
    if has_berths(s):
        return solo_iteration_s(s, job, tier, s.sub_batch[job])
    return _placed_s(s, job, tier)


@kernel
def solo_iteration_s(s, job, tier, sub_batch):
    """Modify scratch space of `s`: seconds per iteration of a job, alone on `s.gang`, in passes of `sub_batch`.

    Where the network is measured, `stretch` is relative to the isolated time, else to that of the placement.
    """
    if s.net_steps:
        return s.base_iteration_s[job] * stretch(s, job, tier, sub_batch)
    return _placed_s(s, job, tier) * stretch(s, job, tier, sub_batch)


@kernel
def _placed_s(s, job, tier):
    """Modify scratch space of `s`: seconds per iteration of a job's whole batch, alone on `s.gang`.

    Compute time x slowdown of its profile at its tier; with `net_models` (network allreduce) over its share of the
    iteration, at the placement's shape.
    """
    if has_regions(s):
        return _slowest_part_s(s, job)
    if s.net_models > 0:
        return s.compute_iteration_s[job] / gang_fraction(s, job)
    return s.compute_iteration_s[job] * s.tier_factor[s.profile[job], tier]


@kernel
def _slowest_part_s(s, job):
    slowest_s = 0.0
    begin = 0
    for part in range(s.part_units.shape[1]):
        end = begin + s.part_units[job, part]
        profile = s.part_profile[job, part]
        if profile >= 0 and s.net_models > 0:
            slowest_s = max(slowest_s, s.compute_iteration_s[job] / units_fraction(s, profile, begin, end))
        elif profile >= 0:
            slowest_s = max(slowest_s, s.compute_iteration_s[job] * s.tier_factor[profile, s.part_tier[job, part]])
        begin = end
    return slowest_s if slowest_s > 0.0 else s.compute_iteration_s[job]
