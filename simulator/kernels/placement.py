"""Which GPUs are free, and who holds the others. A gang is handed over in `s.gang[:s.gang_size]`."""

from ..tiers import MACHINE, NETWORK, RACK, SLOT
from .bits import exclude, include
from .codes import FREE
from .jit import entry, kernel


@kernel
def change_free(s, slot, by):
    """Modify the counts of `s`: `by` more GPUs of a slot are free (fewer if negative)."""
    s.slot_free[slot] += by
    machine = s.slot_machine[slot]
    before = s.machine_free[machine]
    after = before + by
    s.machine_free[machine] = after
    # The free GPUs of a machine count as fragmented unless it is wholly free.
    size = s.machine_gpus[machine]
    if before != size:
        s.fragmented_gpus -= before
    if after != size:
        s.fragmented_gpus += after
    s.rack_free[s.machine_rack[machine]] += by
    s.free_gpus += by


@kernel
def count_free(s, gpu):
    """Modify `s`: `gpu` is free from now on, in the set and in the counts."""
    include(s.free_low, s.free_mid, s.free_top, gpu)
    change_free(s, s.gpu_slot[gpu], 1)


@kernel
def count_taken(s, gpu):
    """Modify `s`: `gpu` is not free any more."""
    exclude(s.free_low, s.free_mid, s.free_top, gpu)
    change_free(s, s.gpu_slot[gpu], -1)


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


@entry
def tier_of_gang(s):
    """Innermost tier that holds the whole of `s.gang`."""
    tier = SLOT
    for i in range(1, s.gang_size):
        tier = tier_between(s, tier, s.gang[0], s.gang[i])
    return tier


@kernel
def is_spread(s, job):
    """True if a running job lies on a worse tier than its size needs: on several machines, or racks, not on one."""
    return (s.tier[job] == NETWORK and s.gpus[job] <= s.largest_rack) or (
        s.tier[job] == RACK and s.gpus[job] <= s.largest_machine
    )


@kernel
def occupy(s, job):
    """Modify `s`: `job` holds the free GPUs of `s.gang`, in that order; returns their tier."""
    first = s.gang[0]
    s.first_gpu[job] = first
    slot = s.gpu_slot[first]
    tier = SLOT
    run = 0  # GPUs of `slot` so far: counts change once a run, not once a GPU
    previous = first
    for i in range(s.gang_size):
        gpu = s.gang[i]
        s.gpu_job[gpu] = job
        s.gpu_next[previous] = gpu
        previous = gpu
        exclude(s.free_low, s.free_mid, s.free_top, gpu)
        if s.gpu_slot[gpu] != slot:
            change_free(s, slot, -run)
            run = 0
            slot = s.gpu_slot[gpu]
            tier = tier_between(s, tier, first, gpu)
        run += 1
    change_free(s, slot, -run)
    s.gpu_next[previous] = FREE
    return tier


@kernel
def recall_gang(s, job):
    """Modify `s.gang`: the GPUs that a running job holds."""
    s.gang_size = 0
    gpu = s.first_gpu[job]
    while gpu != FREE:
        s.gang[s.gang_size] = gpu
        s.gang_size += 1
        gpu = s.gpu_next[gpu]


@kernel
def vacate(s, job):
    """Modify `s`: the GPUs of `job` are free. The chain through `gpu_next` stays readable until they are taken."""
    vacate_gang(s, s.first_gpu[job])


@kernel
def vacate_gang(s, first):
    """Modify `s`: the gang whose list begins with `first` is free."""
    gpu = first
    slot = s.gpu_slot[gpu]
    run = 0
    while gpu != FREE:
        s.gpu_job[gpu] = FREE
        include(s.free_low, s.free_mid, s.free_top, gpu)
        if s.gpu_slot[gpu] != slot:
            change_free(s, slot, run)
            run = 0
            slot = s.gpu_slot[gpu]
        run += 1
        gpu = s.gpu_next[gpu]
    change_free(s, slot, run)


@kernel
def sign_gpus(s, job):
    """Modify `s`: mark the GPUs of `job` as those that it held last (see `gang_was_held_by`)."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        s.gpu_last_job[gpu] = job
        s.gpu_last_start[gpu] = s.starts[job]
        gpu = s.gpu_next[gpu]


@kernel
def lift(s, job):
    """Modify the set and the counts only: as if `job` held nothing, to try a placement. Undone by `lower`."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        count_free(s, gpu)
        gpu = s.gpu_next[gpu]


@kernel
def lower(s, job):
    """Modify the set and the counts only: undo `lift`."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        count_taken(s, gpu)
        gpu = s.gpu_next[gpu]


@kernel
def gang_was_held_by(s, job):
    """True if `s.gang` is the very set of GPUs that `job` held at the last `sign_gpus`."""
    if s.gang_size != s.gpus[job]:
        return False
    for i in range(s.gang_size):
        gpu = s.gang[i]
        if s.gpu_last_job[gpu] != job or s.gpu_last_start[gpu] != s.stop_starts[job]:
            return False
    return True
