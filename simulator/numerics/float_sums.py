"""Sums of floating-point numbers that are the same on every Python: from 3.12 on, `sum` makes up for rounding."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add


def sum_in_order(values: Iterable[float]) -> float:
    """The sum of numbers, added one after another from 0, which decides how it is rounded; 0.0 of none."""
    return reduce(add, values, 0.0)
