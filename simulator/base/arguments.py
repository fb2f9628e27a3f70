"""Arguments as users give them: numbers, seconds, flags and ranges, each checked with one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import InputError


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """A tuple of numbers, as floats."""
    try:
        return tuple(float(item) for item in value)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: expected numbers in a tuple") from None


def number(name: str, value: Any, expected: str = "a number") -> float:
    """A number, as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r:.100}: expected {expected}") from None


def seconds(name: str, value: Any) -> float:
    """Seconds > 0, as a float; infinity for None."""
    given = number(name, math.inf if value is None else value, "seconds > 0")
    if not given > 0.0:
        raise InputError(f"{name} = {value!r}: expected seconds > 0")
    return given


def expect_single(given: Mapping[str, Any]) -> None:
    """InputError for an option that is given an array or a collection: each has one value."""
    for name, value in given.items():
        if isinstance(value, np.ndarray | list | tuple | dict | set):
            shown = " ".join(repr(value).split())
            raise InputError(f"{name} = {shown:.80}: expected one value, found a {type(value).__name__}")


def check_flag(name: str, value: Any) -> None:
    """InputError unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} = {value!r}: expected True or False")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """InputError unless `value` is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} = {value!r:.100}: expected a whole number from {low} to {high}")


def checked_seed(value: Any) -> int:
    """A seed, which is a whole number from 0 to 2**63 - 1; InputError for anything else."""
    check_range("seed", value, 0, 2**63 - 1)
    return int(value)
