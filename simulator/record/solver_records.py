"""What a solver remembers of a run, as records beside those of the runs, of the same capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .extents import Block, blocks_of, used_parts
from .field_axes import RUN, Field, dtype_of
from .zeroed import zeroed


@dataclass(frozen=True)
class SolverFields:
    """The fields of such a record.

    Attributes:
        of: those beside a record of this capacity.
        used: how many entries of partly used arrays are in use, by what they are of (field_axes.py), beside a record of
            this extent.
    """

    of: Callable[[Any], Sequence[Field]]
    used: Callable[[Any], Mapping[str, int]]

    def empty(self, capacity: Any, n: int = 1) -> np.recarray:
        """`n` zeroed records."""
        return zeroed(n, _dtype(self, capacity))


class SolverRecord:
    """The only record of an array by item, `record["level"]`, and its bytes, to save it (packed_records.py).

    Args:
        solvers: the array. capacity, extent: of the run beside it; only without them it cannot be saved.
    """

    def __init__(self, fields: SolverFields, solvers: np.ndarray, capacity: Any, extent: Any = None) -> None:
        array = solvers.view(np.ndarray)
        self.record: np.void = array.view(_dtype(fields, capacity))[0]
        self.data: np.ndarray = array.view(np.uint8)
        self.extent, self._fields, self._capacity = extent, fields, capacity

    def running_parts(self, extent: Any) -> list[np.ndarray]:
        """Views of the bytes that matter for as long as a run of that extent goes on."""
        used = self._fields.used(extent)
        return used_parts(self.data, _blocks(self._fields, self._capacity, frozenset(used)), used)

    def become(self, other: SolverRecord) -> None:
        """Go on as `other`, of no larger capacity."""
        for name in other.record.dtype.names or ():
            value = other.record[name]
            if isinstance(value, np.ndarray):
                self.record[name][tuple(slice(size) for size in value.shape)] = value
            else:
                self.record[name] = value


@cache
def _dtype(fields: SolverFields, capacity: Any) -> np.dtype:
    return dtype_of(fields.of(capacity))


@cache
def _blocks(fields: SolverFields, capacity: Any, of: frozenset[str]) -> list[Block]:
    return blocks_of(fields.of(capacity), _dtype(fields, capacity), of, (RUN,))
