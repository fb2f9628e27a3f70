"""Two tables that move together, where neither move by itself is allowed or gains: a wider climb than the paper's."""

from ..compiler.jit import entry, kernel
from .climb import SLIGHT, change_to, fits_cpu, total_size, weigh
from .cost import move
from .ledger import REGIONS


@kernel
def _fits_storage(l, first, first_home, second, target):
    """Expression 4 after both moves, of which the first is made; what is broken before may not get worse."""
    at_first = l.home[first]
    held = l.stored[at_first]
    if l.home[second] == at_first:
        held -= l.kib[second]
    if target == at_first:
        held += l.kib[second]
    if held > max(l.storage[at_first], l.stored[at_first] - l.kib[first]):
        return False
    if target == at_first:
        return True
    before = l.stored[target] + (l.kib[first] if target == first_home else 0)
    return l.stored[target] + l.kib[second] <= max(l.storage[target], before)


@kernel
def _try_partners(l, first, first_home, change, met, partner, begin, end, least, total, choice):
    """Modify `choice` in place: the best partner after the first table's move; returns the least change so far."""
    for place in range(begin, end):
        second = partner[place]
        weigh(l, second)
        for target in range(l.extent[REGIONS]):
            if target == l.home[second]:
                continue
            both = change + change_to(l, second, target, total)
            if both >= least or l.met[0] + l.met_change[target] < min(l.threshold[0], met):
                continue
            if _fits_storage(l, first, first_home, second, target) and fits_cpu(l, second, target):
                least = both
                choice[0] = l.home[first]
                choice[1] = second
                choice[2] = target
    return least


@entry
def pair_up(l, first, partner, begin, end, choice):
    """Modify the ledger: move a table with one of its partners, begin to end - 1, as gains most, if any does.

    `choice`, int64 (3,), gets the new home, the partner and its new home. CPU quotas must allow one move after the
    other. Returns the gain, or 0.
    """
    total = total_size(l)
    home, met = l.home[first], l.met[0]
    least = -SLIGHT
    choice[0] = -1
    for target in range(l.extent[REGIONS]):
        if target == home:
            continue
        weigh(l, first)
        if not fits_cpu(l, first, target):
            continue
        change = change_to(l, first, target, total)
        move(l, first, target)
        least = _try_partners(l, first, home, change, met, partner, begin, end, least, total, choice)
        move(l, first, home)
    if choice[0] < 0:
        return 0.0
    move(l, first, choice[0])
    move(l, choice[1], choice[2])
    return -least
