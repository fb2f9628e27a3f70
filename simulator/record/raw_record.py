"""A state record that is written often: cleared and copied only as far as it is in use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..compiler.compile_messages import about
from ..compiler.jit import direct
from .extents import Block, blocks_of, used_parts
from .field_axes import COUNTED, GPU, JOB, LINK, LOGGED, MEMO, OVERWRITTEN, READ, RUN, SEAT, USE, head_bytes, holding
from .state import CLUSTER_ARRAYS, JOB_FLOATS, JOB_INTEGERS, PER_BERTH, Capacity, state_dtype, state_fields
from .zeroed import SPARSE_BYTES

STEP = 1024  # in which some are counted, so that what is in use is rarely looked up anew


class Extent(NamedTuple):
    """How much of a record is in use: of arrays with an entry for each of them, the first so many."""

    jobs: int
    gpus: int
    links: int = 0
    uses: int = 0
    entries: int = 0  # of the log

    @property
    def used(self) -> dict[str, int]:
        """Entries in use by what they are of; of running jobs there are no more than jobs."""
        uses = dict.fromkeys((USE, READ), self.uses)
        return {JOB: self.jobs, SEAT: self.jobs, GPU: self.gpus, LINK: self.links, LOGGED: self.entries, **uses}


@cache
def _blocks(capacity: Capacity, is_running: bool) -> list[Block]:
    holds = (RUN, OVERWRITTEN, COUNTED, MEMO) if is_running else (RUN,)
    return blocks_of(state_fields(capacity), state_dtype(capacity), Extent(0, 0).used, holds)


@cache
def _head_bytes(capacity: Capacity) -> int:
    return head_bytes(state_fields(capacity), state_dtype(capacity))


@cache
def _codes(capacity: Any) -> dict[Callable[..., Any], Callable[..., Any]]:
    return {}


@cache
def _names(capacity: Capacity, *holds: str) -> list[str]:
    return holding(state_fields(capacity), *holds)


class CalledRecord:
    """The only record of an array, which entries take without numba's look at the types of their arguments.

    Args:
        records: the array.
        capacity: what the record has room for.
    """

    def __init__(self, records: np.recarray, capacity: Any) -> None:
        self.records, self.capacity, self._codes = records, capacity, _codes(capacity)

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """`kernel(records, 0, *arguments)`, an entry that is always given arguments of the same types."""
        code = self._codes.get(kernel)
        if code is None:
            with about(f"the simulator for up to {self.capacity.words}"):
                code = self._codes[kernel] = direct(kernel, self.records, 0, *arguments)
                return code(self.records, 0, *arguments)
        return code(self.records, 0, *arguments)


class RawRecord(CalledRecord):
    """The only record of an array by item, `record["gpus"]`: np.record looks every field up in Python.

    Attributes:
        data: its bytes. head: those of its numbers, and of arrays of a few.
        cluster: int64 (arrays of CLUSTER_ARRAYS, GPUs), which follow each other.
        berths: int64 (arrays of PER_BERTH, layers, GPUs).
        job_floats: float64 (JOB_FLOATS, jobs). job_integers: int64 (JOB_INTEGERS, jobs).
    """

    def __init__(self, records: np.recarray, capacity: Capacity) -> None:
        super().__init__(records, capacity)
        array = records.view(np.ndarray)
        self.data = array.view(np.uint8)
        dtype = state_dtype(capacity)
        self.record: np.void = array.view(dtype)[0]
        self.head = self.data[: _head_bytes(capacity)]
        self.cluster = self._together(CLUSTER_ARRAYS, np.int64, capacity.gpus)
        self.berths = self._together(PER_BERTH, np.int64, capacity.seats).reshape(-1, capacity.berths, capacity.gpus)
        self.job_floats = self._together(JOB_FLOATS, np.float64, capacity.jobs)
        self.job_integers = self._together(JOB_INTEGERS, np.int64, capacity.jobs)
        self._known: tuple[Extent, bool] | None = None
        self._parts: list[np.ndarray] = []

    def _together(self, names: tuple[str, ...], kind: type, length: int) -> np.ndarray:
        first = self.record.dtype.fields[names[0]][1]  # type: ignore[index]
        return self.data[first : first + 8 * len(names) * length].view(kind).reshape(-1, length)

    @property
    def extent(self) -> Extent:
        """How much is in use."""
        s, capacity = self.record, self.capacity
        jobs, uses = int(s["n_jobs"]), 0
        if capacity.links:
            uses = int(s["n_uses"])
        elif capacity.uses and jobs:
            uses = int(s["first_read"][jobs - 1] + s["n_reads"][jobs - 1])
        entries = max(int(s["log_count"]), int(s["log_gpus"]), int(s["copy_log_count"]))
        return Extent(jobs, int(s["n_gpus"]), int(s["n_links"]), -(-uses // STEP) * STEP, -(-entries // STEP) * STEP)

    def clear(self, jobs: int, gpus: int) -> None:
        """As good as new for `jobs` jobs on `gpus` GPUs."""
        if self.record["shapes"] > 0:
            for name in _names(self.capacity, MEMO):
                self.record[name][:] = 0
        for part in self._parts_of(_both(self.extent, Extent(jobs, gpus)), is_running=False):
            part.fill(0)

    def take_over(self, other: RawRecord) -> None:
        """Become as `other`, a record of the same capacity that has been written and has not run yet."""
        own, written = self.record, other.record
        holds = (OVERWRITTEN, MEMO) if own["shapes"] > 0 or written["shapes"] > 0 else (OVERWRITTEN,)
        for name in _names(self.capacity, *holds):
            own[name] = written[name]
        self._become(other, is_running=False)

    def become(self, other: RawRecord) -> None:
        """Become as `other`, a record of the same capacity."""
        if self.data.nbytes < SPARSE_BYTES:
            self.data[:] = other.data
        else:
            self._become(other, is_running=True)

    def _become(self, other: RawRecord, is_running: bool) -> None:
        extent = _both(self.extent, other.extent)
        for part, their in zip(self._parts_of(extent, is_running), other._parts_of(extent, is_running), strict=True):
            part[...] = their

    def running_parts(self, extent: Extent) -> list[np.ndarray]:
        """Views of the bytes in use of a record that runs."""
        return self._parts_of(extent, is_running=True)

    def _parts_of(self, extent: Extent, is_running: bool) -> list[np.ndarray]:
        if (extent, is_running) != self._known:
            self._known = extent, is_running
            self._parts = used_parts(self.data, _blocks(self.capacity, is_running), extent.used)
        return self._parts


def _both(one: Extent, other: Extent) -> Extent:
    return Extent(*map(max, one, other))
