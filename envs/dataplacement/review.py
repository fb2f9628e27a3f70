"""An instant at which tables may be looked at: which one is offered, what is decided already, what is still allowed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...simulator.base.decisions import Drop, Move, Replicate
from ...simulator.checks.table_decisions import TableState, copied_bytes, is_idle, refusal
from ...simulator.cluster.region_hardware import NO_GPU, World
from ...simulator.engine.simulator import Simulator
from ...simulator.engine.view import ClusterView
from ...simulator.table_placement.placement import Objective, Placement
from ...simulator.warehouse.warehouse import Jobs

DONE, LEAVE, FIRST_REGION = 0, 1, 2  # candidates; from the third on three a region, in the order of KINDS
KINDS = (Move, Replicate, Drop)
TABLE_COLUMNS = 12  # of a table's row in the observation
TableDecision = Move | Replicate | Drop


def candidate_at(region: int, kind: int) -> int:
    """The candidate of a region that is of that kind, a place in KINDS."""
    return FIRST_REGION + len(KINDS) * region + kind


def candidate_of(decision: TableDecision) -> int:
    """The candidate that stands for a decision about the table that is offered."""
    return candidate_at(int(decision.region), KINDS.index(type(decision)))


def noted_as(decision: TableDecision) -> int:
    """The number by which a decision is remembered: its candidate; below 0 where it completes a copy."""
    candidate = candidate_of(decision)
    return -candidate if isinstance(decision, Replicate) and decision.whole else candidate


@dataclass(frozen=True)
class TableUsers:
    """Who reads tables, and where they could run: jobs, one row each.

    Attributes:
        first: int64 (readers + 1,); table: int64 (uses,): row j reads `table[first[j] : first[j + 1]]`.
        fits: bool (readers, regions), where the hardware is that it needs.
        hours: float64 (readers,), GPU-hours that count as high priority.
    """

    first: np.ndarray
    table: np.ndarray
    fits: np.ndarray
    hours: np.ndarray

    @classmethod
    def known(cls, jobs: Jobs, world: World) -> TableUsers:
        """The training jobs that the slow path knows."""
        jobs = jobs.only(jobs.training)
        fits = np.where(jobs.gpu_type[:, None] == NO_GPU, True, world.gpus.T[jobs.gpu_type] > 0)
        return cls(jobs.first, jobs.table, fits, jobs.gpu_hours * jobs.high)

    @classmethod
    def waiting(cls, view: ClusterView) -> TableUsers:
        """The workloads in the queue."""
        queue, regions = view.queue, int(view.record["n_regions"])
        reads = [view.tables_of(job) for job in queue.tolist()]
        first = np.concatenate([[0], np.cumsum([len(tables) for tables in reads])]).astype(np.int64)
        hosts = view.record["job_hosts"][queue]
        fits = (hosts[:, None] >> np.arange(regions) & 1).astype(bool)
        table = np.concatenate([np.zeros(0, np.int64), *reads]).astype(np.int64)
        return cls(first, table, fits, np.zeros(len(queue)))

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def owner(self) -> np.ndarray:
        """The reader of each use, int64 (uses,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def _by_table(self) -> tuple[np.ndarray, np.ndarray]:
        """The readers of all tables one after the other, int64 (uses,), and where the readers of each begin."""
        order = np.argsort(self.table, kind="stable")
        last = int(self.table.max(initial=-1))
        return self.owner[order], np.searchsorted(self.table[order], np.arange(last + 2))

    def of(self, table: int) -> np.ndarray:
        """The readers of a table, int64 (n,)."""
        readers, first = self._by_table
        return readers[first[table] : first[table + 1]] if table + 1 < len(first) else readers[:0]

    def count(self, tables: int, among: np.ndarray | None = None) -> np.ndarray:
        """How many read each of so many tables, of all or of those `among`, bool (readers,): int64 (tables,)."""
        uses = self.table if among is None else self.table[among[self.owner]]
        return np.bincount(uses, minlength=tables)

    def missing(self, copies: np.ndarray) -> np.ndarray:
        """How many tables of each are not in each region, int64 (readers, regions)."""
        sums = np.zeros((len(self.table) + 1, copies.shape[1]), np.int64)
        np.cumsum(~copies[self.table], axis=0, out=sums[1:])
        found: np.ndarray = sums[self.first[1:]] - sums[self.first[:-1]]
        return found


class PlacementReview:
    """One such instant.

    Args:
        simulator: at the instant.
        quota: share of the bytes of all tables that may be copied.

    Attributes:
        placement: the tables at the homes that they will have, and what that costs.
        copies: bool (tables, regions), where they will lie.
        known, waiting: who reads them; lacks: int64 (readers, regions) of both, tables that each has not there.
        order: the tables, int64, those of which most bytes are read, by training and analytics jobs that recur, first;
            place: how many of them are behind.
        offered: the table to decide about, which may be another than that of `order`; -1: none is left.
        spent_bytes: copied by what is decided so far; quota_bytes: that may be.
    """

    def __init__(self, simulator: Simulator, quota: float) -> None:
        self.simulator = simulator
        warehouse = simulator.view.projected_warehouse()
        self.placement = Placement(warehouse, Objective())
        self.copies = warehouse.tables.copies.copy()
        self.known = TableUsers.known(self.placement.jobs, warehouse.world)
        self.waiting = TableUsers.waiting(simulator.view)
        uses = np.diff(self.placement.ledger.first_user)
        self.read_bytes = (uses * warehouse.tables.size_bytes).astype(np.float64)
        self.order = np.argsort(-self.read_bytes, kind="stable")
        self.place = 0
        self.offered = int(self.order[0])
        self.spent_bytes, self.quota_bytes = 0, quota * float(warehouse.tables.size_bytes.sum())
        self._chosen = -1  # the table of the decision that was noted last, until it is carried out
        self.decided: dict[int, set[int]] = {}  # by table: candidates that were chosen
        self.lacks = self.known.missing(self.copies), self.waiting.missing(self.copies)
        self.rows = np.zeros((len(self.order), TABLE_COLUMNS))  # what features say of tables that no decision changes
        self._legal: tuple[int, int, np.ndarray, np.ndarray] | None = None

    @cached_property
    def high_hours(self) -> float:
        """GPU-hours of high-priority readers of all tables, > 0."""
        return max(float(self.known.hours.sum()), 1e-9)

    @cached_property
    def readers(self) -> np.ndarray:
        """How many of the known read each table, int64 (tables,)."""
        return self.known.count(len(self.order))

    @cached_property
    def waiting_readers(self) -> np.ndarray:
        """How many of those who wait read each table, int64 (tables,)."""
        return self.waiting.count(len(self.order))

    def decision(self, candidate: int) -> TableDecision:
        """What a candidate from the third on stands for."""
        wanted = int(self.simulator.plain.record["table_wanted"][self.offered])
        return self._decision(*divmod(candidate - FIRST_REGION, len(KINDS)), wanted)

    def _decision(self, region: int, kind: int, wanted: int) -> TableDecision:
        if KINDS[kind] is Replicate:
            return Replicate(self.offered, region, whole=bool(wanted >> region & 1))
        return KINDS[kind](self.offered, region)

    def legal(self) -> np.ndarray:
        """Which decisions about the offered table are allowed, bool (regions, kinds)."""
        return self._looked_over()[0]

    @property
    def sizes(self) -> np.ndarray:
        """Bytes that those which are allowed would copy, int64 (regions, kinds)."""
        return self._looked_over()[1]

    def _looked_over(self) -> tuple[np.ndarray, np.ndarray]:
        """What is allowed about the offered table, and the bytes that it would copy; 0 where it is not allowed."""
        key = self.offered, int(self.simulator.plain.record["decisions"])
        if self._legal is None or self._legal[:2] != key:
            state = TableState.of(self.simulator, self.offered)
            found = np.zeros((len(state.room), len(KINDS)), np.bool_)
            sizes = np.zeros(found.shape, np.int64)
            for region in range(len(found)):
                for kind in range(len(KINDS)):
                    decision = self._decision(region, kind, state.wanted)
                    if self._allows(state, decision):
                        found[region, kind] = True
                        sizes[region, kind] = copied_bytes(state, decision)
            self._legal = *key, found, sizes
        return self._legal[2:]

    def allows(self, decision: TableDecision) -> bool:
        """Whether a decision can be carried out now, within the quota, and was not made at this instant already."""
        return self._allows(TableState.of(self.simulator, decision.table), decision)

    def _allows(self, state: TableState, decision: TableDecision) -> bool:
        if noted_as(decision) in self.decided.get(decision.table, ()) or refusal(state, decision):
            return False
        if is_idle(self.simulator.view, decision):
            return False
        return self.spent_bytes + copied_bytes(state, decision) <= self.quota_bytes

    def offer(self, table: int) -> None:
        """Turn to a table out of turn."""
        self.offered = table

    def leave(self) -> None:
        """Turn to the next table; one that was offered out of turn keeps its place in the order."""
        if self.offered == self.turn:
            self.place += 1
        self.offered = self.turn

    @property
    def turn(self) -> int:
        """The table whose turn it is; -1: none."""
        return int(self.order[self.place]) if self.place < len(self.order) else -1

    def choose(self, candidate: int) -> TableDecision:
        """Note a decision that is about to be carried out, and return it."""
        decision = self.decision(candidate)
        self.decided.setdefault(self.offered, set()).add(noted_as(decision))
        self._chosen = self.offered
        self.spent_bytes += copied_bytes(TableState.of(self.simulator, self.offered), decision)
        return decision

    def carried_out(self) -> None:
        """Take over what the decision that was noted last has changed: where its table will have its home, and lie."""
        if self._chosen < 0:
            return
        table, self._chosen = self._chosen, -1
        (home,), (copies,) = self.simulator.view.projected(table, 1)
        for users, lacks in zip((self.known, self.waiting), self.lacks, strict=True):
            np.add.at(lacks, users.of(table), self.copies[table].astype(np.int64) - copies)
        self.copies[table] = copies
        if home != self.placement.ledger.home[table]:
            self.placement.move(table, int(home))

    def copy(self) -> PlacementReview:
        """The same place of it, which goes on by itself; it has no simulator yet."""
        found = copy(self)
        found.placement, found.copies = self.placement.copy(), self.copies.copy()
        found.lacks = self.lacks[0].copy(), self.lacks[1].copy()
        found.simulator = None  # type: ignore[assignment]
        found.decided = {table: set(candidates) for table, candidates in self.decided.items()}
        return found

    def state_dict(self) -> dict[str, Any]:
        """What the record does not say; JSON can hold it."""
        decided = {str(table): sorted(candidates) for table, candidates in self.decided.items()}
        return {"place": self.place, "offered": self.offered, "spent": self.spent_bytes, "decided": decided}

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Take over what `played` said."""
        self.place, self.offered, self.spent_bytes = played["place"], played["offered"], played["spent"]
        self.decided = {int(table): set(candidates) for table, candidates in played["decided"].items()}
