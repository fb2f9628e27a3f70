"""An indexed heap: the smallest (key, item) first, any item movable in logarithmic time.

A heap is a slice of three arrays: `key` and `item` from `base` on, and `place[item]`, the item's offset from `base`, or
-1. Several heaps may share the arrays. Four children a node: fewer cache lines than two.
"""

import math

from ..compiler.jit import entry, kernel

ARITY = 4


@kernel
def _before(key_a, item_a, key_b, item_b):
    return key_a < key_b or (key_a == key_b and item_a < item_b)


@kernel
def _rise(key, item, place, base, hole, new_key, new_item):
    while hole > 0:
        parent = (hole - 1) // ARITY
        parent_key = key[base + parent]
        parent_item = item[base + parent]
        if not _before(new_key, new_item, parent_key, parent_item):
            break
        key[base + hole] = parent_key
        item[base + hole] = parent_item
        place[parent_item] = hole
        hole = parent
    key[base + hole] = new_key
    item[base + hole] = new_item
    place[new_item] = hole
    return hole


@kernel
def _sink(key, item, place, base, count, hole, new_key, new_item):
    while True:
        child = ARITY * hole + 1
        if child >= count:
            break
        best = child
        best_key = key[base + child]
        best_item = item[base + child]
        end = min(child + ARITY, count)
        for other in range(child + 1, end):
            # Which child is least is a coin toss: selecting is cheaper than branching.
            other_key = key[base + other]
            other_item = item[base + other]
            better = (other_key < best_key) | ((other_key == best_key) & (other_item < best_item))
            best = other if better else best
            best_key = other_key if better else best_key
            best_item = other_item if better else best_item
        if not _before(best_key, best_item, new_key, new_item):
            break
        key[base + hole] = best_key
        item[base + hole] = best_item
        place[best_item] = hole
        hole = best
    key[base + hole] = new_key
    item[base + hole] = new_item
    place[new_item] = hole


@entry
def push(key, item, place, base, count, new_key, new_item):
    """Modify the heap of `count` items in place: add an item that is not in it; the caller counts."""
    _rise(key, item, place, base, count, new_key, new_item)


@entry
def remove(key, item, place, base, count, old_item):
    """Modify the heap of `count` items in place: take out an item that is in it; the caller counts."""
    hole = place[old_item]
    place[old_item] = -1
    last = count - 1
    if hole != last:
        _move(key, item, place, base, last, hole, key[base + last], item[base + last])


@kernel
def _move(key, item, place, base, count, hole, new_key, new_item):
    if _rise(key, item, place, base, hole, new_key, new_item) == hole:
        _sink(key, item, place, base, count, hole, new_key, new_item)


@entry
def change(key, item, place, base, count, moved_item, new_key):
    """Modify the heap in place: give an item that is in it a new key."""
    _move(key, item, place, base, count, place[moved_item], new_key, moved_item)


@kernel
def schedule_event(s, item, time_s):
    """Modify `s`: the next event of `item` is at `time_s`; infinity takes it off the heap."""
    place = s.event_position[item]
    if time_s == math.inf:
        if place >= 0:
            remove(s.event_key, s.event_item, s.event_position, 0, s.event_count, item)
            s.event_count -= 1
    elif place >= 0:
        change(s.event_key, s.event_item, s.event_position, 0, s.event_count, item, time_s)
    else:
        push(s.event_key, s.event_item, s.event_position, 0, s.event_count, time_s, item)
        s.event_count += 1
