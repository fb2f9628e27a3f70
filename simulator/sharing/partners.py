"""What changes on a GPU, and for the jobs beside it, when a job comes to share it or leaves it."""

from ..base.codes import RATED, SLOWED
from ..compiler.jit import kernel
from ..numerics.bitset import exclude, include
from .berths import ask_rate, ease, excess, other_on, slowed
from .exclusive_gpus import hold_alone


@kernel
def join_gpu(s, gpu, job):
    """Modify `s`: `job`, in a berth of a GPU, counts there; partners may need new rates; 1 if the GPU was free."""
    load = s.gpu_load[gpu] + 1
    s.gpu_load[gpu] = load
    if load == 1:
        exclude(s.free_low, s.free_mid, s.free_top, gpu)
        s.busy_gpus += 1
        hold_alone(s, job, 1)
        if s.jobs_per_gpu > 1:
            include(s.open_low, s.open_mid, s.open_top, gpu)
        return 1
    if load == s.jobs_per_gpu:
        exclude(s.open_low, s.open_mid, s.open_top, gpu)
    if load == 2:
        s.shared_gpus += 1
        other = other_on(s, gpu, job)
        hold_alone(s, other, -1)
        slowdown = slowed(s, excess(s, other, job))
        if slowdown > s.slowdown[other]:  # else another GPU is as slow for it
            s.slowdown[other] = slowdown
            ask_rate(s, other, SLOWED)
    else:
        rate_partners(s, gpu, job)
    return 0


@kernel
def leave_gpu(s, gpu, job):
    """Modify `s`: undo `join_gpu`, before `job` leaves its berth; returns 1 if the GPU is free."""
    load = s.gpu_load[gpu] - 1
    s.gpu_load[gpu] = load
    if load == 0:
        include(s.free_low, s.free_mid, s.free_top, gpu)
        s.busy_gpus -= 1
        hold_alone(s, job, -1)
        if s.jobs_per_gpu > 1:
            exclude(s.open_low, s.open_mid, s.open_top, gpu)
        return 1
    if load + 1 == s.jobs_per_gpu:
        include(s.open_low, s.open_mid, s.open_top, gpu)
    if load == 1:
        s.shared_gpus -= 1
        other = other_on(s, gpu, job)
        hold_alone(s, other, 1)
        ease(s, other)
        if slowed(s, excess(s, other, job)) >= s.slowdown[other]:  # else another GPU is slower for it
            ask_rate(s, other, RATED)
    else:
        rate_partners(s, gpu, job)
        _ease_partners(s, gpu, job)
    return 0


@kernel
def _ease_partners(s, gpu, job):
    for layer in range(s.jobs_per_gpu):
        other = s.gpu_job[layer * s.gpu_slot.size + gpu]
        if other >= 0 and other != job:
            ease(s, other)


@kernel
def rate_partners(s, gpu, job):
    """Modify `s`: those beside a job on a GPU are to be rated anew."""
    for layer in range(s.jobs_per_gpu):
        other = s.gpu_job[layer * s.gpu_slot.size + gpu]
        if other >= 0 and other != job:
            ask_rate(s, other, RATED)
