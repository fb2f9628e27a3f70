"""What every view of a run has: which run and instant it is, and its record, read-only. Used by views of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

from ..numerics.random import draw_seed


class Fields(Protocol):
    """A record by field (raw_record.py)."""

    @property
    def record(self) -> np.void:
        """That record."""


class Recorded(Protocol):
    """A simulator as such a view sees it."""

    runs: int

    @property
    def records(self) -> np.recarray:
        """Array of one record."""

    @property
    def raw(self) -> Fields:
        """The same record for readers of many fields."""


class RecordView:
    """The part of a view that fits any kind of simulator, which it does not hand on."""

    _simulator: Recorded

    def __init__(self, simulator: Any) -> None:
        self._simulator = simulator
        self._sealed: tuple[Fields, np.void] | None = None

    @property
    def run(self) -> Hashable:
        """Which run this is: another one after each `reset` and `restore`, and for each simulator."""
        return self, self._simulator.runs

    @property
    def instant(self) -> int:
        """Number of the decision point."""
        return int(self._simulator.raw.record["instants"])

    @property
    def decisions(self) -> int:
        """Decisions that were carried out in this run so far, whatever made them."""
        return int(self._simulator.raw.record["decisions"])

    @property
    def seed(self) -> int:
        """The seed of the run, for what draws from it: from now on the run is one that depends on it."""
        return draw_seed(self._simulator.raw.record)

    @property
    def now_s(self) -> float:
        """The clock, seconds."""
        return float(self._simulator.raw.record["now_s"])

    @property
    def record(self) -> np.void:
        """The record of the run by field (simulator/record), read-only; it changes as the run goes on."""
        raw = self._simulator.raw
        if self._sealed is None or self._sealed[0] is not raw:
            array = self._simulator.records.view(np.ndarray).view(raw.record.dtype)
            self._sealed = raw, sealed(array)[0]
        return self._sealed[1]

    def read_by(self, entry: Callable[..., Any], *arguments: Any) -> Any:
        """`entry(records, row, *arguments)` of compiled code that only reads the record."""
        return entry(self._simulator.records, 0, *arguments)


def sealed(array: np.ndarray) -> np.ndarray:
    """An unshared array, read-only from now on unless empty (`Generator.permutation` writes to an empty one)."""
    array.flags.writeable = not array.size
    return array
