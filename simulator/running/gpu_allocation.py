"""The free GPUs and the jobs on the others. A gang is handed over in `s.gang[:s.gang_size]`."""

from ..base.codes import FREE
from ..base.tiers import MACHINE, NETWORK, RACK, SLOT
from ..compiler.jit import entry, kernel
from ..flows.sessions import go
from ..numerics.bitset import exclude, include
from ..record.feature_groups import gpu_of, has_berths, has_regions
from ..sharing.berths import free_berth, memory_taken
from ..sharing.partners import join_gpu, leave_gpu


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
    return _tier_of(s, 0, s.gang_size)


@kernel
def _tier_of(s, begin, end):
    tier = SLOT
    for i in range(begin + 1, end):
        tier = tier_between(s, tier, s.gang[begin], s.gang[i])
    return tier


@kernel
def _note_parts(s, job):
    """Modify `s`: the tier of each part with GPUs of the workload that has just got `s.gang`; returns the outermost."""
    outermost = SLOT
    begin = 0
    for part in range(s.part_units.shape[1]):
        end = begin + s.part_units[job, part]
        if s.part_profile[job, part] >= 0:
            s.part_tier[job, part] = _tier_of(s, begin, end)
            outermost = max(outermost, s.part_tier[job, part])
        begin = end
    return outermost


@kernel
def _note_span(s, job):
    """Modify `s`: note whether the job that has just got `s.gang` lies in several regions, where gangs may not."""
    begin = 0
    region = 0
    while s.apart_end[region] <= s.gang[0]:
        begin = s.apart_end[region]
        region += 1
    for i in range(1, s.gang_size):
        if not begin <= s.gang[i] < s.apart_end[region]:
            s.spanning = job + 1


@kernel
def _held_tier(s, job, tier):
    """Modify `s`: see `_note_parts` and `_note_span`; the tier of a job whose `s.gang` lies within `tier`."""
    if has_regions(s):
        return _note_parts(s, job)
    if s.n_apart > 1 and tier == NETWORK:
        _note_span(s, job)
    return tier


@kernel
def is_spread(s, job):
    """True if a running job lies on a worse tier than its size needs: on several machines, or racks, not on one."""
    return (s.tier[job] == NETWORK and s.gpus[job] <= s.largest_rack) or (
        s.tier[job] == RACK and s.gpus[job] <= s.largest_machine
    )


@kernel
def note_change(s):
    """Modify `s`: what was found out about what jobs hold, and until when (greedy_wait.py, room.py), is out of date."""
    s.changes += 1
    s.foresees = 0


@kernel
def occupy(s, job):
    """Modify `s`: `job` holds the GPUs of `s.gang`, with room, in order; returns their (parts' outermost) tier."""
    note_change(s)
    if has_berths(s):
        return _occupy_berths(s, job)
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
    return _held_tier(s, job, tier)


@kernel
def _occupy_berths(s, job):
    bytes_each = memory_taken(s, job)
    first = s.gang[0]
    slot = s.gpu_slot[first]
    tier = SLOT
    run = 0
    previous = -1
    for i in range(s.gang_size):
        gpu = s.gang[i]
        berth = free_berth(s, gpu)
        s.gpu_job[berth] = job
        if previous < 0:
            s.first_gpu[job] = berth
        else:
            s.gpu_next[previous] = berth
        previous = berth
        s.gpu_memory_used[gpu] += bytes_each
        if s.gpu_slot[gpu] != slot:
            change_free(s, slot, -run)
            run = 0
            slot = s.gpu_slot[gpu]
            tier = tier_between(s, tier, first, gpu)
        run += join_gpu(s, gpu, job)
    change_free(s, slot, -run)
    s.gpu_next[previous] = FREE
    return _held_tier(s, job, tier)


@kernel
def recall_gang(s, job):
    """Modify `s.gang`: the GPUs that a running job holds."""
    s.gang_size = 0
    berth = s.first_gpu[job]
    while berth != FREE:
        s.gang[s.gang_size] = gpu_of(s, berth)
        s.gang_size += 1
        berth = s.gpu_next[berth]


@kernel
def vacate(s, job):
    """Modify `s`: the GPUs of `job` are free. The chain through `gpu_next` stays readable until they are taken."""
    go(s, job)
    vacate_gang(s, s.first_gpu[job])


@kernel
def vacate_gang(s, first):
    """Modify `s`: the gang whose list begins with `first` is free."""
    note_change(s)
    if has_berths(s):
        _vacate_berths(s, first)
        return
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
def _vacate_berths(s, first):
    job = s.gpu_job[first]
    bytes_each = memory_taken(s, job)
    berth = first
    slot = s.gpu_slot[gpu_of(s, berth)]
    run = 0
    while berth != FREE:
        gpu = gpu_of(s, berth)
        s.gpu_memory_used[gpu] -= bytes_each
        if s.gpu_slot[gpu] != slot:
            change_free(s, slot, run)
            run = 0
            slot = s.gpu_slot[gpu]
        run += leave_gpu(s, gpu, job)
        s.gpu_job[berth] = FREE
        berth = s.gpu_next[berth]
    change_free(s, slot, run)


@kernel
def sign_gpus(s, job):
    """Modify `s`: mark the berths of `job` as those that it held last (see `gang_was_held_by`)."""
    gpu = s.first_gpu[job]
    while gpu != FREE:
        s.gpu_last_job[gpu] = job
        s.gpu_last_start[gpu] = s.starts[job]
        gpu = s.gpu_next[gpu]


@kernel
def lift(s, job):
    """Modify the set and the counts only: as if `job` held nothing, to try a placement. Undone by `lower`."""
    berth = s.first_gpu[job]
    while berth != FREE:
        gpu = gpu_of(s, berth)
        if has_berths(s):
            s.gpu_load[gpu] -= 1
        if not has_berths(s) or s.gpu_load[gpu] == 0:
            count_free(s, gpu)
        berth = s.gpu_next[berth]


@kernel
def lower(s, job):
    """Modify the set and the counts only: undo `lift`."""
    berth = s.first_gpu[job]
    while berth != FREE:
        gpu = gpu_of(s, berth)
        if not has_berths(s) or s.gpu_load[gpu] == 0:
            count_taken(s, gpu)
        if has_berths(s):
            s.gpu_load[gpu] += 1
        berth = s.gpu_next[berth]


@kernel
def gang_was_held_by(s, job):
    """True if `s.gang` is the very set of GPUs that `job` held at the last `sign_gpus`."""
    if has_berths(s):
        return _berths_were_held_by(s, job)
    if s.gang_size != s.gpus[job]:
        return False
    for i in range(s.gang_size):
        gpu = s.gang[i]
        if s.gpu_last_job[gpu] != job or s.gpu_last_start[gpu] != s.stop_starts[job]:
            return False
    return True


@kernel
def _berths_were_held_by(s, job):
    if s.gang_size != s.stop_gpus[job]:
        return False
    for i in range(s.gang_size):
        found = False
        for layer in range(s.jobs_per_gpu):
            berth = layer * s.gpu_slot.size + s.gang[i]
            found |= s.gpu_last_job[berth] == job and s.gpu_last_start[berth] == s.stop_starts[job]
        if not found:
            return False
    return True
