"""Sums of floating-point numbers that are the same on every Python: from 3.12 on, `sum` makes up for rounding."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

from ..compiler.jit import kernel


def sum_in_order(values: Iterable[float]) -> float:
    """The sum of numbers, added one after another from 0, which decides how it is rounded; 0.0 of none."""
    return reduce(add, values, 0.0)


@kernel
def sum_as_numpy(values):
    """The sum of an array, float64 (n,), rounded as `numpy.sum` rounds it for up to 128 numbers."""
    whole = values.size - values.size % 8 if values.size >= 8 else 0
    total = 0.0
    if whole > 0:
        total = (_every_eighth(values, 0, whole) + _every_eighth(values, 1, whole)) + (
            _every_eighth(values, 2, whole) + _every_eighth(values, 3, whole)
        )
        total += (_every_eighth(values, 4, whole) + _every_eighth(values, 5, whole)) + (
            _every_eighth(values, 6, whole) + _every_eighth(values, 7, whole)
        )
    for i in range(whole, values.size):
        total += values[i]
    return total


@kernel
def _every_eighth(values, first, end):
    total = values[first]
    for i in range(first + 8, end, 8):
        total += values[i]
    return total
