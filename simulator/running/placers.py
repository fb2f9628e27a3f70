"""Placers: the free GPUs of a gang. Each fills `s.gang` and says whether it could; nothing else changes.

Ties go to the lowest index. Inside a machine a gang takes the slot with the fewest free GPUs that suffice, else slots
with most free GPUs first.
"""

from ..base.codes import AFFINITY, CONSOLIDATED, COUNT, FIRST, FIRST_SKEW, SCATTER, SKEW, WORD
from ..base.tiers import MACHINE, NETWORK, RACK
from ..compiler.jit import kernel
from ..numerics.bitset import next_member
from ..numerics.random import random_word, seed_of
from ..record.feature_groups import gpu_of


@kernel
def find_gang(s, job, placer):
    """Modify `s.gang`: free GPUs for `job` by the placer of that code; False if it finds none."""
    need = s.gpus[job]
    if need > s.free_gpus:
        return False
    s.gang_size = 0
    if placer == SKEW:
        placer = CONSOLIDATED if s.class_skewed[s.demand[job]] else COUNT
    if placer == COUNT:
        return take_lowest(s, 0, s.n_gpus, need)
    if placer == CONSOLIDATED:
        if need <= s.largest_machine:
            return find_within(s, need, MACHINE)
        return _take_whole_machines(s, need)
    if placer == SCATTER:
        return _take_random(s, job, 0, s.n_gpus, s.free_gpus)
    if placer == AFFINITY:
        return _find_affine(s, job)
    if placer == FIRST_SKEW:
        return _find_first_by_skew(s, need, s.class_skewed[s.demand[job]])
    return find_at(s, need, MACHINE, placer) or find_at(s, need, RACK, placer) or find_at(s, need, NETWORK, placer)


@kernel
def find_at(s, need, scope, placer):
    """`find_within`, or under the placer `first` the first place in the order of the scan that has room."""
    if placer == FIRST:
        return find_first(s, need, scope)
    return find_within(s, need, scope)


@kernel
def find_within(s, need, scope):
    """Modify `s.gang`: `need` free GPUs inside one machine, one rack or anywhere (`scope` = MACHINE, RACK, NETWORK).

    MACHINE: the machine with the fewest free GPUs that suffice. RACK: the rack with the fewest free GPUs that suffice;
    in it, fewest machines. NETWORK: fewest racks, in each fewest machines. Returns False if there is no room.
    """
    s.gang_size = 0
    if need > s.free_gpus:
        return False
    if scope == MACHINE:
        machine = tightest(s.machine_free, 0, s.n_machines, need)
        if machine >= 0:
            take_in_machine(s, machine, need)
        return machine >= 0
    rack = tightest(s.rack_free, 0, s.n_racks, need)
    if rack >= 0:
        take_in_rack(s, rack, need)
        return True
    if scope == RACK:
        return False
    last_free, last = s.n_gpus + 1, -1
    while True:  # no rack suffices: all of the one with most free GPUs, then the tightest for the rest
        rack = _next_largest(s.rack_free, 0, s.n_racks, last_free, last)
        last_free, last = s.rack_free[rack], rack
        take = min(need, last_free)
        take_in_rack(s, rack, take)
        need -= take
        if need == 0:
            return True
        rack = _tightest_after(s.rack_free, 0, s.n_racks, need, last_free, last)
        if rack >= 0:
            take_in_rack(s, rack, need)
            return True


@kernel
def find_in_machine(s, machine, need, placer):
    """Modify `s.gang`: `need` free GPUs of a machine that has as many, which ones as `find_at` chooses inside it."""
    s.gang_size = 0
    if placer != FIRST:
        take_in_machine(s, machine, need)
    elif not _take_first_slot_of(s, machine, need):
        take_lowest(s, s.machine_first_gpu[machine], s.n_gpus, need)


@kernel
def tightest(free, first, end, need):
    """Index in [first, end) of the smallest `free` >= need, or -1."""
    best = -1
    best_free = 1 << 30
    for i in range(first, end):
        here = free[i]
        if need <= here < best_free:
            if here == need:
                return i
            best, best_free = i, here
    return best


@kernel
def _tightest_after(free, first, end, need, last_free, last):
    best = -1
    best_free = 1 << 30
    for i in range(first, end):
        here = free[i]
        if need <= here < best_free and (here < last_free or (here == last_free and i > last)):
            best, best_free = i, here
    return best


@kernel
def _next_largest(free, first, end, last_free, last):
    """Index after (last_free, last) in the order of most free first, lowest index on ties."""
    best = -1
    best_free = -1
    for i in range(first, end):
        here = free[i]
        if here > best_free and (here < last_free or (here == last_free and i > last)):
            best, best_free = i, here
    return best


@kernel
def take_in_rack(s, rack, need):
    """Modify `s.gang`: append `need` free GPUs of a rack that has as many: one machine if one can, else the fewest."""
    first = s.rack_first_machine[rack]
    end = first + s.rack_machines[rack]
    last_free, last = s.n_gpus + 1, -1
    while need > 0:
        machine = _tightest_after(s.machine_free, first, end, need, last_free, last)
        if machine >= 0:
            take_in_machine(s, machine, need)
            return
        machine = _next_largest(s.machine_free, first, end, last_free, last)
        last_free, last = s.machine_free[machine], machine
        take_in_machine(s, machine, last_free)
        need -= last_free


@kernel
def take_in_machine(s, machine, need):
    """Modify `s.gang`: append `need` free GPUs of a machine that has as many: one slot if one can, else the fewest."""
    first = s.machine_first_slot[machine]
    end = first + s.machine_slots[machine]
    if end == first + 1 or need == s.machine_free[machine]:
        gpu = s.machine_first_gpu[machine]
        take_lowest(s, gpu, gpu + s.machine_gpus[machine], need)
        return
    last_free, last = s.n_gpus + 1, -1
    while need > 0:
        slot = _tightest_after(s.slot_free, first, end, need, last_free, last)
        if slot < 0:
            slot = _next_largest(s.slot_free, first, end, last_free, last)
        last_free, last = s.slot_free[slot], slot
        take = min(need, last_free)
        gpu = s.slot_first_gpu[slot]
        take_lowest(s, gpu, gpu + s.slot_gpus[slot], take)
        need -= take


@kernel
def take_lowest(s, first, end, need):
    """Modify `s.gang`: append the `need` lowest free GPUs in [first, end); False if there are not so many."""
    size = s.gang_size
    full = size + need
    gpu = first
    while size < full:
        gpu = next_member(s.free_low, s.free_mid, s.free_top, gpu)
        if gpu < 0 or gpu >= end:
            return False
        rest = s.free_low[gpu // WORD] >> (gpu % WORD)
        while rest & 1 and size < full and gpu < end:  # neighbours are often free too
            s.gang[size] = gpu
            size += 1
            gpu += 1
            rest >>= 1
    s.gang_size = size
    return True


@kernel
def _take_whole_machines(s, need):
    """Wholly free machines of one rack if it has enough of them, else of all racks; lowest index first.

    Enough are machines whose GPUs together suffice. Of several racks the one with the fewest wholly free machines,
    lowest index on ties. The last machine may be used in part.
    """
    rack = _fullest_rack_of_whole(s, need)
    first, end = 0, s.n_machines
    if rack >= 0:
        first = s.rack_first_machine[rack]
        end = first + s.rack_machines[rack]
    for machine in range(first, end):
        size = s.machine_gpus[machine]
        if s.machine_free[machine] == size:
            take = min(need, size)
            take_in_machine(s, machine, take)
            need -= take
            if need == 0:
                return True
    return False


@kernel
def _fullest_rack_of_whole(s, need):
    """The rack with the fewest wholly free machines among those whose wholly free machines have `need` GPUs; or -1."""
    best = -1
    fewest = s.n_machines + 1
    for rack in range(s.n_racks):
        if s.rack_free[rack] < need:
            continue
        first = s.rack_first_machine[rack]
        whole = 0
        gpus = 0
        for machine in range(first, first + s.rack_machines[rack]):
            if s.machine_free[machine] == s.machine_gpus[machine]:
                whole += 1
                gpus += s.machine_gpus[machine]
        if gpus >= need and whole < fewest:
            best, fewest = rack, whole
    return best


@kernel
def _take_random(s, job, first, end, free):
    """A uniform choice among the `free` free GPUs of [first, end), fixed by seed, job and number of starts."""
    need = s.gpus[job]
    gpu = first - 1
    for i in range(free):
        gpu = next_member(s.free_low, s.free_mid, s.free_top, gpu + 1)
        s.gang[i] = gpu
    for i in range(need):
        other = i + random_word(seed_of(s), (job << 8) + s.starts[job] + 1, i) % (free - i)
        swap = s.gang[i]
        s.gang[i] = s.gang[other]
        s.gang[other] = swap
    s.gang_size = need
    return True


@kernel
def find_first(s, need, scope):
    """Modify `s.gang`: `need` free GPUs in the first place that has room; lowest free GPUs inside it.

    MACHINE: the first slot, else the first machine, in the topology's order of machines. RACK: the rack of lowest
    index. NETWORK: the lowest free GPUs. As the authors' simulator of paper dally places. False if there is no room.
    """
    s.gang_size = 0
    if need > s.free_gpus:
        return False
    if scope == MACHINE:
        return _take_first_slot(s, need) or _take_first_machine(s, need)
    if scope == RACK:
        for rack in range(s.n_racks):
            if s.rack_free[rack] >= need:
                first = s.machine_first_gpu[s.rack_first_machine[rack]]
                return take_lowest(s, first, s.n_gpus, need)
        return False
    return take_lowest(s, 0, s.n_gpus, need)


@kernel
def _take_first_slot(s, need):
    for i in range(s.n_machines):
        machine = s.machine_scan[i]
        if s.machine_free[machine] >= need and _take_first_slot_of(s, machine, need):
            return True
    return False


@kernel
def _take_first_slot_of(s, machine, need):
    first = s.machine_first_slot[machine]
    for slot in range(first, first + s.machine_slots[machine]):
        if s.slot_free[slot] >= need:
            return take_lowest(s, s.slot_first_gpu[slot], s.n_gpus, need)
    return False


@kernel
def _take_first_machine(s, need):
    for i in range(s.n_machines):
        machine = s.machine_scan[i]
        if s.machine_free[machine] >= need:
            return take_lowest(s, s.machine_first_gpu[machine], s.n_gpus, need)
    return False


@kernel
def _find_first_by_skew(s, need, skewed):
    """Tiresias in the authors' simulator of paper dally.

    The first machine with room; else one rack; else, unless the model is skewed, anywhere. Its test of the gang against
    the size of a machine looks at the number of free GPUs instead, so a skewed gang takes a rack if more are free.
    Setting: dally, Sec. V-C: Tiresias in its authors' simulator.
    """
    s.gang_size = 0
    if _take_first_machine(s, need):
        return True
    if (s.free_gpus + 1 > s.largest_machine or not skewed) and find_first(s, need, RACK):
        return True
    return (need > s.largest_rack or not skewed) and find_first(s, need, NETWORK)


@kernel
def _find_affine(s, job):
    """Gandiva in the authors' simulator of paper dally: a gang that fits a machine goes where its like went before.

    Larger gangs: random free GPUs. Others: the most free machine that is dedicated to their size; while none is, the
    most free one dedicated to no size (`dedicate` makes it theirs); else the most free one. A machine is dedicated by
    its place in its rack, in all racks at once. With `fallback_defect`, when none dedicated to the size has room, the
    last machine looked at counts instead of the most free one: with room, the gang takes random GPUs of the whole
    cluster, else it waits. Paper: gandiva, affinity, as in the simulator behind paper dally.
    """
    need = s.gpus[job]
    s.gang_size = 0
    if need > s.largest_machine:
        return _take_random(s, job, 0, s.n_gpus, s.free_gpus)
    wanted = need if _is_dedicated(s, need) else 0
    machine = _most_free(s, need, wanted)
    if machine < 0 and wanted > 0 and s.fallback_defect:
        return _last_free(s) >= need and _take_random(s, job, 0, s.n_gpus, s.free_gpus)
    if machine < 0:
        machine = _most_free(s, need, -1)
    if machine < 0:
        return False
    first = s.machine_first_gpu[machine]
    return _take_random(s, job, first, first + s.machine_gpus[machine], s.machine_free[machine])


@kernel
def _is_dedicated(s, size):
    """True if a machine is dedicated to gangs of `size`; places are those of the largest rack."""
    for place in range(s.n_machines):
        if s.machine_affinity[place] == size:
            return True
    return False


@kernel
def _most_free(s, need, affinity):
    best = -1
    for i in range(s.n_machines):
        machine = s.machine_scan[i]
        free = s.machine_free[machine]
        if free < need or (best >= 0 and free <= s.machine_free[best]):
            continue
        if affinity < 0 or s.machine_affinity[place_in_rack(s, machine)] == affinity:
            best = machine
    return best


@kernel
def _last_free(s):
    for i in range(s.n_machines - 1, -1, -1):
        if s.machine_free[s.machine_scan[i]] > 0:
            return s.machine_free[s.machine_scan[i]]
    return 0


@kernel
def place_in_rack(s, machine):
    """Index of a machine among those of its rack."""
    return machine - s.rack_first_machine[s.machine_rack[machine]]


@kernel
def dedicate(s, job):
    """Modify `s`: the machine of a gang that started inside it is its size's from now on, if both are free.

    Paper: gandiva, affinity, as in the simulator behind paper dally.
    """
    place = place_in_rack(s, s.gpu_machine[gpu_of(s, s.first_gpu[job])])
    if s.tier[job] <= MACHINE and s.machine_affinity[place] == 0 and not _is_dedicated(s, s.gpus[job]):
        s.machine_affinity[place] = s.gpus[job]


@kernel
def find_better(s, job, placer):
    """Modify `s.gang`: free GPUs at a better tier than the job's, in a machine, or a rack for larger gangs; or False.

    Paper: gandiva, migration, as in paper dally, Sec. V-C.
    """
    if s.tier[job] < RACK or s.free_gpus == 0:
        return False
    need = s.gpus[job]
    if need <= s.largest_machine:
        machine = _most_free(s, need, -1)
        if machine < 0:
            return False
        s.gang_size = 0
        first = s.machine_first_gpu[machine]
        return take_lowest(s, first, first + s.machine_gpus[machine], need)
    return s.tier[job] == NETWORK and find_at(s, need, RACK, placer)
