"""A tournament of numbered seats: which of them has the smallest (key, item), where many keys change between two looks.

A heap moves an item as far as its key demands, and every step is a guess of the processor that fails as often as not.
Here a change always plays all matches on the way to the root, without a guess: a third of the time with a few dozen
items. Seats 0 to count - 1 are taken; matches are played between 2^k seats, and empty ones have the key inf.
"""

import math

from .jit import kernel


@kernel
def replay(key, item, winner, size, seat):
    """Modify `winner`: the matches on the way from a seat to the root, `winner[1]`; of `size` seats."""
    best = seat
    best_key, best_item = key[seat], item[seat]
    other = seat ^ 1
    node = (size + seat) >> 1
    while True:
        other_key, other_item = key[other], item[other]
        wins = (other_key < best_key) | ((other_key == best_key) & (other_item < best_item))
        best = other if wins else best
        best_key = other_key if wins else best_key
        best_item = other_item if wins else best_item
        winner[node] = best
        if node == 1:
            break
        other = winner[node ^ 1]
        node >>= 1


@kernel
def enter(key, item, place, winner, count, new_item):
    """Modify the tournament of `count` items: one more, with the key inf; returns its seats. The caller counts."""
    key[count] = math.inf
    item[count] = new_item
    place[new_item] = count
    size = _seats(count + 1)
    if size > _seats(count):
        _replay_all(key, item, winner, count + 1, size)
    else:
        replay(key, item, winner, size, count)
    return size


@kernel
def remove(key, item, place, winner, count, old_item):
    """Modify the tournament of `count` items: one less, whose seat the last one takes; returns its seats."""
    seat, last = place[old_item], count - 1
    place[old_item] = -1
    if seat != last:
        key[seat] = key[last]
        item[seat] = item[last]
        place[item[last]] = seat
    key[last] = math.inf
    size = _seats(last)
    if size < _seats(count):
        _replay_all(key, item, winner, last, size)
    else:
        replay(key, item, winner, size, last)
        replay(key, item, winner, size, seat)
    return size


@kernel
def _seats(count):
    """How many seats that many items have: 2^k, at least 2."""
    size = 2
    while size < count:
        size *= 2
    return size


@kernel
def _replay_all(key, item, winner, count, size):
    """Modify the tournament: all matches between `size` seats, of which `count` are taken."""
    for seat in range(count, size):
        key[seat] = math.inf
    for seat in range(0, size, 2):
        replay(key, item, winner, size, seat)
