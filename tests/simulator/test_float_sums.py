"""Sums are rounded the same way on every Python."""

from __future__ import annotations

from clustergym.simulator.numerics.float_sums import sum_in_order


def test_each_addition_is_rounded():
    """Python's own sum makes up for the 1 that is lost, from 3.12 on."""
    assert sum_in_order([1e16, 1.0, 1.0]) == 1e16
    assert sum_in_order([1.0, 1.0, 1e16]) == 1e16 + 2.0
    assert sum_in_order([]) == 0.0
