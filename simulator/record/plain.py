"""A state record as those want it who lay it often: cleared and copied only as far as it is in use."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from .contention_fields import USES_PER_LINK
from .extents import WHOLE, Block, blocks_of, used_parts
from .state import CLUSTER_ARRAYS, PER_BERTH, Capacity, log_entries, state_dtype
from .zeroed import SPARSE_BYTES

# Arrays that mean nothing beyond a count, a flag or a list that is cleared, or between two calls.
LOG = ("log_kind", "log_job", "log_first", "log_size", "log_value", "log_gpu", "log_seconds", "log_time_s")
SCRATCH = (
    "layer_order",
    "layer_done_ns",
    "layer_waiting",
    "bid",
    "soon_machine",
    "soon_rack",
    "soon_whole",
    "soon_s",
    "end_key",
    "end_job",
    "end_place",
    "step_s",
    "step_free",
)
ROOM = (
    "victim",
    "victim_moves",
    "victim_claim",
    "victim_inside",
    "victim_cost_s",
    "item_of",
    "survey_free",
    "survey_head",
    "survey_gpus",
    "survey_gain",
    "survey_job",
    "survey_inside",
    "survey_weighed",
    "survey_next",
)
WAITED = ("wait_time_s", "wait_value", "wait_after")
LAID = ("tier_factor", "profile_model", "layer_bytes", "layer_ready_ns", "layer_update_ns")  # for as many as there are
PHASES = ("phase_down_s", "phase_bytes", "phase_rate", "fill_job", "fill_rate", "leaver")
TABLE = (
    "seat_job",
    "seat_rate",
    "column_link",
    "column_users",
    "column_capacity",
    "column_sending",
    "column_offered",
    "column_joined",
    "column_room",
    "column_flows",
    "table_flows",
)
UNCLEARED = {*LOG, *SCRATCH, *ROOM, *WAITED, *LAID, *PHASES, *TABLE}
MEMO = ("shape_first", "shape_second", "shape_fraction")
STEP = 1024  # in which some are counted, so that what is in use is rarely looked up anew


class Extent(NamedTuple):
    """How much of a record is in use: of arrays with an entry for each of them, the first so many."""

    jobs: int
    gpus: int
    links: int = 0
    uses: int = 0
    entries: int = 0  # of the log

    def lengths(self, capacity: Capacity) -> dict[int, int]:
        """Entries in use by the length of an array; the most where different things have as much room."""
        pairs = (
            (capacity.jobs, self.jobs),
            (capacity.gpus, self.gpus),
            (capacity.seats, self.jobs),  # lists of running jobs; what lies in berths has an entry a GPU
            (capacity.links, self.links),
            (capacity.links * USES_PER_LINK, self.uses),
            (capacity.uses, self.uses),
            (log_entries(capacity.seats), self.entries),
        )
        used: dict[int, int] = {}
        for length, count in pairs:
            used[length] = min(length, max(count, used.get(length, 0)))
        return used


@cache
def _blocks(capacity: Capacity, is_running: bool) -> list[Block]:
    """Of a record that runs; else of one that has been laid."""
    dtype, lengths = state_dtype(capacity), Extent(0, 0).lengths(capacity).keys() - {0}
    without = {"bid", "auction_s"} if is_running else {*UNCLEARED, *MEMO, "auction_s"}
    blocks = blocks_of(dtype, lengths, without, dict.fromkeys(PER_BERTH, capacity.berths))
    auctions = dtype.fields["auction_s"]  # type: ignore[index]  # there may be more than GPUs
    return [*blocks, Block(auctions[1], 1, auctions[0].itemsize, WHOLE)]


class Plain:
    """The only record of an array by item, `record["gpus"]`: np.record looks every field up in Python.

    Attributes:
        records: the array.
        record: its fields.
        data: its bytes.
        cluster: int64 (arrays of CLUSTER_ARRAYS, GPUs), which follow each other.
        berths: int64 (arrays of PER_BERTH, layers, GPUs).
    """

    def __init__(self, records: np.recarray, capacity: Capacity) -> None:
        array = records.view(np.ndarray)
        self.records, self.capacity, self.data = records, capacity, array.view(np.uint8)
        dtype = state_dtype(capacity)
        self.record: np.void = array.view(dtype)[0]
        first = dtype.fields[CLUSTER_ARRAYS[0]][1]  # type: ignore[index]
        size = 8 * len(CLUSTER_ARRAYS) * capacity.gpus
        self.cluster = self.data[first : first + size].view(np.int64).reshape(-1, capacity.gpus)
        first = dtype.fields[PER_BERTH[0]][1]  # type: ignore[index]
        size = 8 * len(PER_BERTH) * capacity.seats
        self.berths = self.data[first : first + size].view(np.int64).reshape(-1, capacity.berths, capacity.gpus)
        self._known: tuple[Extent, bool] | None = None
        self._parts: list[np.ndarray] = []

    @property
    def extent(self) -> Extent:
        """How much is in use."""
        s, capacity = self.record, self.capacity
        jobs, uses = int(s["n_jobs"]), 0
        if capacity.links:
            uses = int(s["n_uses"])
        elif capacity.uses and jobs:
            uses = int(s["first_read"][jobs - 1] + s["n_reads"][jobs - 1])
        entries = max(int(s["log_count"]), int(s["log_gpus"]))
        return Extent(jobs, int(s["n_gpus"]), int(s["n_links"]), -(-uses // STEP) * STEP, -(-entries // STEP) * STEP)

    def clear(self, jobs: int, gpus: int) -> None:
        """As good as new for `jobs` jobs on `gpus` GPUs."""
        if self.record["shapes"] > 0:
            for name in MEMO:
                self.record[name][:] = 0
        for part in self._parts_of(_both(self.extent, Extent(jobs, gpus)), is_running=False):
            part.fill(0)

    def take_over(self, other: Plain) -> None:
        """Become as `other`, a record of the same capacity that has been laid and has not run yet."""
        own, laid = self.record, other.record
        for name in (*LAID, *MEMO) if own["shapes"] > 0 or laid["shapes"] > 0 else LAID:
            own[name] = laid[name]
        self._become(other, is_running=False)

    def become(self, other: Plain) -> None:
        """Become as `other`, a record of the same capacity."""
        if self.data.nbytes < SPARSE_BYTES:
            self.data[:] = other.data
        else:
            self._become(other, is_running=True)

    def _become(self, other: Plain, is_running: bool) -> None:
        extent = _both(self.extent, other.extent)
        for part, their in zip(self._parts_of(extent, is_running), other._parts_of(extent, is_running), strict=True):
            part[...] = their

    def running_parts(self, extent: Extent) -> list[np.ndarray]:
        """Views of the bytes in use of a record that runs."""
        return self._parts_of(extent, is_running=True)

    def _parts_of(self, extent: Extent, is_running: bool) -> list[np.ndarray]:
        """Views of the bytes in use; of a record that has only been laid, without those that nobody will look at."""
        if (extent, is_running) != self._known:
            used = extent.lengths(self.capacity)
            self._known = extent, is_running
            self._parts = used_parts(self.data, _blocks(self.capacity, is_running), used)
        return self._parts


def _both(one: Extent, other: Extent) -> Extent:
    return Extent(*map(max, one, other))
