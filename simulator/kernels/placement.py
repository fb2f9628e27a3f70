"""Which GPUs are free, and who holds the others. A gang is handed over in `s.gang[:s.gang_size]`."""

from ..tiers import MACHINE, NETWORK, RACK, SLOT
from .bits import exclude, include
from .codes import FREE
from .jit import kernel


@kernel
def count_free(s, gpu):
    """Modify `s`: `gpu` is free from now on, in the set and in the counts of its slot, machine and rack."""
    include(s.free_low, s.free_mid, s.free_top, gpu)
    machine = s.gpu_machine[gpu]
    free = s.machine_free[machine]
    s.machine_free[machine] = free + 1
    # A machine counts as fragmented while some, but not all, of its GPUs are free.
    if free + 1 == s.machine_gpus[machine]:
        s.fragmented_gpus -= free
    else:
        s.fragmented_gpus += 1
    s.slot_free[s.gpu_slot[gpu]] += 1
    s.rack_free[s.machine_rack[machine]] += 1
    s.free_gpus += 1


@kernel
def count_taken(s, gpu):
    """Modify `s`: `gpu` is not free any more."""
    exclude(s.free_low, s.free_mid, s.free_top, gpu)
    machine = s.gpu_machine[gpu]
    free = s.machine_free[machine]
    s.machine_free[machine] = free - 1
    if free == s.machine_gpus[machine]:
        s.fragmented_gpus += free - 1
    else:
        s.fragmented_gpus -= 1
    s.slot_free[s.gpu_slot[gpu]] -= 1
    s.rack_free[s.machine_rack[machine]] -= 1
    s.free_gpus -= 1


@kernel
def tier_between(s, tier, first, gpu):
    """The tier of a gang that had `tier` and holds GPU `first`, after `gpu` joins it."""
    if tier < MACHINE and s.gpu_slot[first] != s.gpu_slot[gpu]:
        tier = MACHINE
    if tier < RACK and s.gpu_machine[first] != s.gpu_machine[gpu]:
        tier = RACK
    if tier == RACK and s.machine_rack[s.gpu_machine[first]] != s.machine_rack[s.gpu_machine[gpu]]:
        tier = NETWORK
    return tier


@kernel
def tier_of_gang(s):
    """Innermost tier that holds the whole of `s.gang`."""
    tier = SLOT
    for i in range(1, s.gang_size):
        tier = tier_between(s, tier, s.gang[0], s.gang[i])
    return tier


@kernel
def occupy(s, job):
    """Modify `s`: `job` holds the free GPUs of `s.gang`, in that order; returns their tier."""
    first = s.gang[0]
    previous = FREE
    tier = SLOT
    for i in range(s.gang_size):
        gpu = s.gang[i]
        count_taken(s, gpu)
        s.gpu_job[gpu] = job
        if previous == FREE:
            s.first_gpu[job] = gpu
        else:
            s.gpu_next[previous] = gpu
        tier = tier_between(s, tier, first, gpu)
        previous = gpu
    s.gpu_next[previous] = FREE
    return tier


@kernel
def vacate(s, job):
    """Modify `s`: the GPUs of `job` are free. The chain through `gpu_next` stays readable until they are taken."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        s.gpu_job[gpu] = FREE
        s.gpu_last_job[gpu] = job
        s.gpu_last_start[gpu] = s.starts[job]
        count_free(s, gpu)
        gpu = s.gpu_next[gpu]


@kernel
def lift(s, job):
    """Modify the counts of `s` only: as if `job` held nothing, to try a placement. Undone by `lower`."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        count_free(s, gpu)
        gpu = s.gpu_next[gpu]


@kernel
def lower(s, job):
    """Modify the counts of `s` only: undo `lift`."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        count_taken(s, gpu)
        gpu = s.gpu_next[gpu]


@kernel
def gang_was_held_by(s, job):
    """True if `s.gang` is the very set of GPUs that `job` held last, and nobody has held since."""
    if s.gang_size != s.gpus[job]:
        return False
    for i in range(s.gang_size):
        gpu = s.gang[i]
        if s.gpu_last_job[gpu] != job or s.gpu_last_start[gpu] != s.starts[job]:
            return False
    return True
