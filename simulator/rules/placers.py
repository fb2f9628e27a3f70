"""Placers: which free GPUs a gang takes. Each fills `s.gang` and says whether it could; nothing else changes.

Ties go to the lowest index throughout. Inside a machine a gang takes the slot with the fewest free GPUs that suffice,
else slots with most free GPUs first.
"""

from ..kernels.bits import next_member
from ..kernels.codes import CONSOLIDATED, COUNT, SCATTER, SKEW, WORD
from ..kernels.jit import kernel
from ..kernels.random import random_word
from ..tiers import MACHINE, NETWORK, RACK


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
        return _take_lowest(s, 0, s.n_gpus, need)
    if placer == CONSOLIDATED:
        if need <= s.largest_machine:
            return find_within(s, need, MACHINE)
        return _take_whole_machines(s, need)
    if placer == SCATTER:
        return _take_random(s, job, need)
    return find_within(s, need, MACHINE) or find_within(s, need, RACK) or find_within(s, need, NETWORK)


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
            _take_in_machine(s, machine, need)
        return machine >= 0
    rack = tightest(s.rack_free, 0, s.n_racks, need)
    if rack >= 0:
        _take_in_rack(s, rack, need)
        return True
    if scope == RACK:
        return False
    last_free, last = s.n_gpus + 1, -1
    while True:  # no rack suffices: all of the one with most free GPUs, then the tightest for the rest
        rack = _next_largest(s.rack_free, 0, s.n_racks, last_free, last)
        last_free, last = s.rack_free[rack], rack
        take = min(need, last_free)
        _take_in_rack(s, rack, take)
        need -= take
        if need == 0:
            return True
        rack = _tightest_after(s.rack_free, 0, s.n_racks, need, last_free, last)
        if rack >= 0:
            _take_in_rack(s, rack, need)
            return True


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
    """As `tightest`, among those that come after (last_free, last) in the order of most free first."""
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
def _take_in_rack(s, rack, need):
    first = s.rack_first_machine[rack]
    end = first + s.rack_machines[rack]
    last_free, last = s.n_gpus + 1, -1
    while need > 0:
        machine = _tightest_after(s.machine_free, first, end, need, last_free, last)
        if machine >= 0:
            _take_in_machine(s, machine, need)
            return
        machine = _next_largest(s.machine_free, first, end, last_free, last)
        last_free, last = s.machine_free[machine], machine
        _take_in_machine(s, machine, last_free)
        need -= last_free


@kernel
def _take_in_machine(s, machine, need):
    first = s.machine_first_slot[machine]
    end = first + s.machine_slots[machine]
    if end == first + 1 or need == s.machine_free[machine]:
        gpu = s.machine_first_gpu[machine]
        _take_lowest(s, gpu, gpu + s.machine_gpus[machine], need)
        return
    last_free, last = s.n_gpus + 1, -1
    while need > 0:
        slot = _tightest_after(s.slot_free, first, end, need, last_free, last)
        if slot < 0:
            slot = _next_largest(s.slot_free, first, end, last_free, last)
        last_free, last = s.slot_free[slot], slot
        take = min(need, last_free)
        gpu = s.slot_first_gpu[slot]
        _take_lowest(s, gpu, gpu + s.slot_gpus[slot], take)
        need -= take


@kernel
def _take_lowest(s, first, end, need):
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
    """Wholly free machines, lowest index first; the last one may be used in part."""
    for machine in range(s.n_machines):
        size = s.machine_gpus[machine]
        if s.machine_free[machine] == size:
            take = min(need, size)
            _take_in_machine(s, machine, take)
            need -= take
            if need == 0:
                return True
    return False


@kernel
def _take_random(s, job, need):
    """A uniform choice among the free GPUs, drawn from (seed, job, number of starts): the same however often asked."""
    gpu = -1
    for i in range(s.free_gpus):
        gpu = next_member(s.free_low, s.free_mid, s.free_top, gpu + 1)
        s.gang[i] = gpu
    for i in range(need):
        other = i + random_word(s.seed, (job << 8) + s.starts[job] + 1, i) % (s.free_gpus - i)
        swap = s.gang[i]
        s.gang[i] = s.gang[other]
        s.gang[other] = swap
    s.gang_size = need
    return True
