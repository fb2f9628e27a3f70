"""Columns of observations by name: what each is, its unit and its range, in one place.

A table of columns is a tuple of their places: `QUEUE.slack` is the number of that column, in Python and, as a constant,
in kernels; `described(QUEUE)` says what it is. Documentation, agents and kernels read the same table, so a column is
added in one line here and written in one line of a kernel.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FLAG = "0 or 1"
SHARE, OF_ALL, OF_ITS_OWN = "share", "share of all", "share of its own"
OVER_SUPPLY = "demand over supply x: x / (1 + x)"
TIME = "s, logarithmic"
SERVICE = "GPU-s, logarithmic"
RATIO = "ratio, logarithmic"
JOBS = "jobs n: n / (n + 32)"
FEW_JOBS = "jobs n: n / (n + 4)"
SLACK = "s, logarithmic on both sides of 1/2"
THIRDS = "0, 1/3, 2/3 or 1"
LARGEST_MACHINE = "share of the largest machine"
IGNORANCE = "0 known, 1/2 estimated, 1 not known"


@dataclass(frozen=True)
class Column:
    """A column: what it is, the unit of what it says, and the range of its values."""

    text: str
    unit: str = SHARE
    low: float = 0.0
    high: float = 1.0


def flag(text: str) -> Column:
    """A column that is 1 where something holds, else 0."""
    return Column(text, FLAG)


def table(**columns: Column) -> Any:
    """A tuple of the places of columns, by their names, from 0 on."""
    make: Any = namedtuple  # for type checkers, which want to see the names
    kind = make("Columns", columns)
    kind.described = columns
    return kind(*range(len(columns)))


def joined(*tables: Any) -> Any:
    """One table of the columns of several, in their order. Raises ValueError if two have one name."""
    pairs = [pair for one in tables for pair in described(one).items()]
    columns = dict(pairs)
    if len(columns) < len(pairs):
        raise ValueError(f"two columns have one name: {[name for name, _ in pairs]}")
    return table(**columns)


def described(columns: Any) -> Mapping[str, Column]:
    """The columns of a table, by name."""
    found: Mapping[str, Column] = type(columns).described
    return found


def names_of(tables: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of all columns, by the part of the observation that they are in."""
    return {part: list(described(columns)) for part, columns in tables.items()}


JOB_SIZE = table(  # the first columns of a job's row, where window.py writes them
    present=flag("a job stands here"),
    gpus=Column("GPUs"),
    size=Column("its size", "log2(1 + GPUs) / log2(1 + cluster)"),
)
