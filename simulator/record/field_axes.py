"""The declaration of a record's fields: a name, a type, and an `Axis`, which tells how much of it is in use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

# What arrays may have an entry for, where not all of their room is mostly in use.
JOB = "job"
GPU = "GPU"
SEAT = "seat"  # of a running job
LINK = "link"
USE = "use"  # of a link by a job
READ = "read"  # of a table by a job
LOGGED = "logged"  # decision, or GPU of one

# How long what stands in an array means something.
RUN = ""  # from the time it is written
OVERWRITTEN = "overwritten"  # as long: for as many as are written, which overwrites what stands there
COUNTED = "counted"  # as long: but only as far as a count, a flag or a list says, which is cleared
MEMO = "memo"  # whatever is written: it needs clearing only if there is something in it
CALL = "call"  # until the kernel returns

FEW = 16  # entries of an array that lies with the numbers


class Axis(NamedTuple):
    """What an array has an entry for.

    Attributes:
        of: one of the words above; "": its room is always in use. more: further entries behind.
        length: how many of them there is room for. layers: so many arrays of this length follow each other.
    """

    of: str
    length: int
    layers: int = 1
    more: int = 0

    @property
    def size(self) -> int:
        """Entries in all."""
        return self.layers * self.length + self.more

    def and_more(self, more: int) -> Axis:
        """The same with entries behind."""
        return self._replace(more=more)


Shape = tuple[Axis | int, ...]  # a number: its room is always in use
Field = tuple[str, str] | tuple[str, str, Shape] | tuple[str, str, Shape, str]  # name, type, shape, how long it holds

# The seed of a run, and whether a number has been drawn from it (numerics/random.py).
CHANCE: list[Field] = [("seed", "i8"), ("is_drawn", "i8")]


def shape_of(field: Field) -> Shape:
    """Its axes; none for a number."""
    return field[2] if len(field) > 2 else ()


def held(field: Field) -> str:
    """How long it means something: RUN, OVERWRITTEN, COUNTED, MEMO or CALL."""
    return field[3] if len(field) > 3 else RUN


def dtype_of(fields: Iterable[Field]) -> np.dtype:
    """The record that has them, numbers first: most of them are looked at together; then arrays of a few."""
    listed = sorted(fields, key=_rank)
    return np.dtype([(field[0], field[1], _numbers(shape_of(field))) for field in listed], align=True)


def _rank(field: Field) -> int:
    shape = shape_of(field)
    return 0 if not shape else 1 if len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= FEW else 2


def head_bytes(fields: Iterable[Field], dtype: np.dtype) -> int:
    """How long the numbers and arrays of a few are, at the front of a record."""
    behind = (first for field, _, first in declared(list(fields), dtype) if _rank(field) == 2)
    return next(behind, dtype.itemsize)


def _numbers(shape: Shape) -> tuple[int, ...]:
    return tuple(axis.size if isinstance(axis, Axis) else axis for axis in shape)


def holding(fields: Iterable[Field], *holds: str) -> list[str]:
    """Names of those that hold so long."""
    return [field[0] for field in fields if held(field) in holds]


def declared(fields: Collection[Field], dtype: np.dtype) -> Iterator[tuple[Field, np.dtype, int]]:
    """Fields in the order of the record, with their type there and where they begin, bytes."""
    known = {field[0]: field for field in fields}
    for name in dtype.names or ():
        kind, first = dtype.fields[name][:2]  # type: ignore[index]
        yield known[name], kind, first
