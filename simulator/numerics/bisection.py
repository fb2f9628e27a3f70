"""Bisection in an ascending array of integers."""

from ..compiler.jit import kernel


@kernel
def lower_place(ascending, count, value):
    """How many of the first `count` entries are below `value`: where it is, or belongs."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
