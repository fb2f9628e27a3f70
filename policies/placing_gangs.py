"""Gangs on free GPUs, as close together as possible, and placements of several gangs that are drawn: compiled.

Random numbers come as words of 32 bits. The kernels use them up as a `numpy.random.Generator` does, so they draw what
Python draws.

Arguments of all kernels:
    floor: int64 (2, G), the machine and the rack of each GPU, machines ascending.
    scratch: int64 (SCRATCH, G). Its row MARKS says what each GPU is to the gang: FREE, TAKEN, or 0.
    words: int64 (k,), random. used: int64 (1,), how many of them are used up, more than k where they are too few.
"""

from ..simulator.compiler.jit import entry, kernel
from ..simulator.numerics.random import MASK32

FREE, TAKEN = 1, 2
MARKS, MACHINES, RACKS, CHOSEN, SHARES, ORDER = range(6)  # rows of the scratch
SCRATCH = 6
NOWHERE = -1
TOO_FEW_WORDS = -1


@kernel
def _next_word(words, used):
    used[0] += 1
    return words[used[0] - 1] if used[0] <= words.size else 0


@kernel
def _below(words, used, count):
    """A number in [0, count), as `Generator.integers(count)` draws it (Lemire's method)."""
    if count == 1:
        return 0
    product = _next_word(words, used) * count
    if product & MASK32 < count:
        least = ((1 << 32) - count) % count
        while product & MASK32 < least and used[0] <= words.size:
            product = _next_word(words, used) * count
    return product >> 32


@kernel
def _shuffle(words, used, order):
    """Modify `order`, int64 (n,): 0 to n - 1, as `Generator.permutation(n)` draws them."""
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        mask = i
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> shift
        j = _next_word(words, used) & mask
        while j > i:
            j = _next_word(words, used) & mask
        order[i], order[j] = order[j], order[i]


@kernel
def _any_of(free, least, words, used):
    """A group, drawn, with at least so many free GPUs; NOWHERE: none has."""
    enough = 0
    for group in range(free.size):
        enough += int(free[group] >= least)
    if enough == 0:
        return NOWHERE
    left = _below(words, used, enough)
    for group in range(free.size):
        left -= int(free[group] >= least)
        if left < 0:
            return group
    return NOWHERE


@kernel
def _best_of(free, least):
    """The group with the fewest free GPUs, but at least so many; NOWHERE: none has."""
    best = NOWHERE
    for group in range(free.size):
        if free[group] >= least and (best < 0 or free[group] < free[best]):
            best = group
    return best


@kernel
def _most_of(free):
    most = 0
    for group in range(free.size):
        if free[group] > free[most]:
            most = group
    return most


@kernel
def _next_group(free, size, is_drawn, words, used):
    """The group that gives GPUs next, where so many are still to be taken; groups that have given have none."""
    group = _any_of(free, size, words, used) if is_drawn else _best_of(free, size)
    if group < 0:
        group = _any_of(free, 1, words, used) if is_drawn else _most_of(free)
    return group


@kernel
def _count(floor, scratch, rack):
    """Modify the scratch: free GPUs of each machine, and of each rack; of one rack only unless it is NOWHERE."""
    scratch[MACHINES, :] = 0
    scratch[RACKS, :] = 0
    for gpu in range(floor.shape[1]):
        if scratch[MARKS, gpu] == FREE and (rack == NOWHERE or floor[1, gpu] == rack):
            scratch[MACHINES, floor[0, gpu]] += 1
            scratch[RACKS, floor[1, gpu]] += 1


@kernel
def _take(floor, scratch, machine, count):
    """Modify the scratch: the first free GPUs of a machine are taken."""
    for gpu in range(floor.shape[1]):
        if count > 0 and floor[0, gpu] == machine and scratch[MARKS, gpu] == FREE:
            scratch[MARKS, gpu] = TAKEN
            count -= 1


@kernel
def _take_gang(floor, scratch, size, is_drawn, words, used):
    """Modify the scratch: `size` of the free GPUs are taken, see `place` of equivalent_placements.py."""
    machine_free = scratch[MACHINES, : floor[0, floor.shape[1] - 1] + 1]
    rack_free = scratch[RACKS, : machine_free.size]
    _count(floor, scratch, NOWHERE)
    machine = _any_of(machine_free, size, words, used) if is_drawn else _best_of(machine_free, size)
    if machine >= 0:
        _take(floor, scratch, machine, size)
        return
    racks = 0
    while size > 0:  # all racks are chosen before any machine
        rack = _next_group(rack_free, size, is_drawn, words, used)
        scratch[CHOSEN, racks], scratch[SHARES, racks] = rack, min(rack_free[rack], size)
        size -= scratch[SHARES, racks]
        rack_free[rack] = 0
        racks += 1
    for i in range(racks):
        left = scratch[SHARES, i]
        _count(floor, scratch, scratch[CHOSEN, i])
        while left > 0:
            machine = _next_group(machine_free, left, is_drawn, words, used)
            _take(floor, scratch, machine, min(machine_free[machine], left))
            left -= min(machine_free[machine], left)
            machine_free[machine] = 0


@kernel
def _spans(floor, scratch, racks, machines):
    """Whether the GPUs that are taken lie in so many racks, on so many machines; modifies the scratch."""
    scratch[MACHINES, :] = 0
    scratch[RACKS, :] = 0
    for gpu in range(floor.shape[1]):
        if scratch[MARKS, gpu] == TAKEN:
            machines -= int(scratch[MACHINES, floor[0, gpu]] == 0)
            racks -= int(scratch[RACKS, floor[1, gpu]] == 0)
            scratch[MACHINES, floor[0, gpu]] = scratch[RACKS, floor[1, gpu]] = 1
    return racks == 0 and machines == 0


@kernel
def _leave_with(scratch, gang):
    """Modify `gang`: the GPUs that are taken, ascending; and the scratch: they are not free any more."""
    place = 0
    for gpu in range(scratch.shape[1]):
        if scratch[MARKS, gpu] == TAKEN:
            scratch[MARKS, gpu] = 0
            gang[place] = gpu
            place += 1


@entry
def place_gang(floor, scratch, is_drawn, words, used, gang):
    """Modify `gang`, int64 (size,): as many of the GPUs that are FREE as it has room for, ascending.

    `is_drawn`: they are any that lie as close together, else the best fit; see `place` of equivalent_placements.py.
    """
    _take_gang(floor, scratch, gang.size, is_drawn, words, used)
    _leave_with(scratch, gang)


@entry
def draw_placements(floor, scratch, pool, movers, tries, words, used, found):
    """Modify `found`, int64 (n, GPUs of all movers): different placements of the movers, gang after gang, ascending.

    The first one is there already. Returns their number, or TOO_FEW_WORDS.

    Args:
        pool: int64 (G,), FREE for the GPUs that movers may have, else 0.
        movers: int64 (3, movers), of each its GPUs, and the racks and machines that it must span, 0: any.
        tries: how many are drawn, at most.
    """
    number = 1
    for _ in range(tries):
        if number == found.shape[0]:
            break
        is_placed = _place_all(floor, scratch, pool, movers, words, used, found[number])
        if used[0] > words.size:
            return TOO_FEW_WORDS
        number += int(is_placed and _is_new(found, number))
    return number


@kernel
def _place_all(floor, scratch, pool, movers, words, used, found):
    """Modify `found`: a placement that is drawn; False if a gang would span otherwise."""
    order = scratch[ORDER, : movers.shape[1]]
    _shuffle(words, used, order)
    for gpu in range(pool.size):
        scratch[MARKS, gpu] = pool[gpu]
    for i in range(order.size):
        mover = order[i]
        size, racks, machines = movers[0, mover], movers[1, mover], movers[2, mover]
        _take_gang(floor, scratch, size, True, words, used)
        if racks > 0 and not _spans(floor, scratch, racks, machines):
            return False
        first = 0
        for before in range(mover):
            first += movers[0, before]
        _leave_with(scratch, found[first : first + size])
    return True


@kernel
def _is_new(found, number):
    for earlier in range(number):
        differ = 0
        for i in range(found.shape[1]):
            differ += int(found[earlier, i] != found[number, i])
        if differ == 0:
            return False
    return True
