"""Sorting in place, as compiled code that makes no arrays needs it."""

from ....simulator.compiler.jit import kernel

RUN = 12  # sorted by insertion


@kernel
def _insert(order, key, begin, end):
    for i in range(begin + 1, end):
        moved = order[i]
        hole = i
        while hole > begin and key[order[hole - 1]] < key[moved]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = moved


@kernel
def _merge(source, target, key, begin, middle, end):
    left = begin
    right = middle
    for i in range(begin, end):
        if right >= end or (left < middle and key[source[left]] >= key[source[right]]):
            target[i] = source[left]
            left += 1
        else:
            target[i] = source[right]
            right += 1


@kernel
def sort_falling(order, spare, key, n):
    """Modify `order` and `spare`, int64 (>= n,): `order` becomes 0 to n - 1 by falling key, equal keys as they are."""
    for i in range(n):
        order[i] = i
    for begin in range(0, n, RUN):
        _insert(order, key, begin, min(begin + RUN, n))
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            _merge(order, spare, key, begin, min(begin + width, n), min(begin + 2 * width, n))
        for i in range(n):
            order[i] = spare[i]
        width *= 2
