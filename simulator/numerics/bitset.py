"""Bit sets of three levels: membership changes and the next member in a few nanoseconds, whatever the size.

A set is three int64 arrays of 32-bit words: `low` a bit an item, `mid` a bit a word of `low`, `top` of `mid`.
"""

from __future__ import annotations

import numpy as np

from ..base.codes import WORD
from ..compiler.jit import entry
from .instructions import trailing_zeros


def words(items: int) -> tuple[int, int, int]:
    """Lengths of `low`, `mid` and `top` for a set over `items` items."""
    low = -(-items // WORD)
    mid = -(-low // WORD)
    return low, mid, -(-mid // WORD)


@entry
def include(low, mid, top, item):
    """Modify the set in place: add `item`."""
    word = item // WORD
    before = low[word]
    low[word] = before | 1 << (item % WORD)
    if before == 0:
        group = word // WORD
        mid[group] |= 1 << (word % WORD)
        top[group // WORD] |= 1 << (group % WORD)


@entry
def exclude(low, mid, top, item):
    """Modify the set in place: remove `item`."""
    word = item // WORD
    after = low[word] & ~(1 << (item % WORD))
    low[word] = after
    if after == 0:
        group = word // WORD
        mid[group] &= ~(1 << (word % WORD))
        if mid[group] == 0:
            top[group // WORD] &= ~(1 << (group % WORD))


@entry
def next_member(low, mid, top, start):
    """Smallest member >= `start`, or -1."""
    word = start // WORD
    if word >= low.size:
        return -1
    rest = low[word] >> (start % WORD)
    if rest != 0:
        return start + trailing_zeros(rest)
    word += 1
    group = word // WORD
    if group >= mid.size:
        return -1
    rest = mid[group] >> (word % WORD)
    if rest == 0:
        group += 1
        block = group // WORD
        if block >= top.size:
            return -1
        rest = top[block] >> (group % WORD)
        while rest == 0:
            block += 1
            if block >= top.size:
                return -1
            rest = top[block]
            group = block * WORD
        group += trailing_zeros(rest)
        word = group * WORD
        rest = mid[group]
    word += trailing_zeros(rest)
    return word * WORD + trailing_zeros(low[word])


def members(low: np.ndarray, mid: np.ndarray, top: np.ndarray, count: int) -> np.ndarray:
    """The `count` smallest members, ascending, as a new int64 array."""
    found = np.empty(count, np.int64)
    write_members(low, mid, top, found)
    return found


@entry
def write_members(low, mid, top, found):
    """Modify `found`: as many of the smallest members as it has places, ascending."""
    item = -1
    for i in range(found.size):
        item = next_member(low, mid, top, item + 1)
        found[i] = item
