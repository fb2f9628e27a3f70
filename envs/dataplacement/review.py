"""A review of the tables: the offered table, the decisions made, and the legal ones."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from ...simulator.base.decisions import Drop, Move, Replicate
from ...simulator.checks.table_decisions import copied_bytes
from ...simulator.engine.simulator import Simulator
from ...simulator.engine.view import ClusterView
from ...simulator.table_placement.placement import Objective, Placement
from . import review_arrays as kernels
from .review_arrays import FIRST_REGION, STILL_COLUMNS, Readers, ReviewArrays

KINDS = (Move, Replicate, Drop)  # as KIND_CODES of review_arrays.py
TableDecision = Move | Replicate | Drop


def candidate_at(region: int, kind: int) -> int:
    """The candidate of a region of that kind, an index of KINDS."""
    return FIRST_REGION + len(KINDS) * region + kind


def candidate_of(decision: TableDecision) -> int:
    """The candidate of a decision about the offered table."""
    return candidate_at(int(decision.region), KINDS.index(type(decision)))


def is_whole(decision: TableDecision) -> bool:
    """Whether it completes a copy."""
    return isinstance(decision, Replicate) and decision.whole


class PlacementReview:
    """A review: a share `quota` of all bytes may be copied, `rows` copies are shown; `first_cost` as of the window.

    Attributes:
        placement: the tables at their future homes, and the cost.
        look: the other arrays; its `order`: tables by bytes read by recurring training and analytics jobs.
        known, waiting: readers: the training jobs that the slow path knows, and the queue.
        place: number of tables behind.
        offered: the table to decide about, perhaps out of turn; -1: none is left.
        spent_bytes: copied by the decisions made.
    """

    def __init__(self, simulator: Simulator, quota: float, first_cost: float, rows: int) -> None:
        self.simulator = simulator
        warehouse = simulator.view.projected_warehouse()
        self.placement = Placement(warehouse, Objective())
        copies, ledger = warehouse.tables.copies, self.placement.ledger
        self.known, self.waiting = _known(self.placement), _waiting(simulator.view, len(copies))
        for readers in (self.known, self.waiting):
            kernels.write_lacks(readers, copies)
        read = (np.diff(ledger.first_user) * warehouse.tables.size_bytes).astype(np.float64)
        gpus = warehouse.world.gpus.sum(axis=1)
        high_hours = max(float(self.known.hours.sum()), 1e-9)
        quota_bytes = quota * float(warehouse.tables.size_bytes.sum())
        most = max(1, int(ledger.total.sum())), max(1, int(ledger.met_by.sum()))
        tables, regions = copies.shape
        self.look = ReviewArrays(
            order=np.argsort(-read, kind="stable"),
            still=np.zeros((tables, STILL_COLUMNS)),
            gpu_share=gpus / max(1, int(gpus.sum())),
            amount=np.array([quota_bytes, first_cost, high_hours, *most]),
            copies=copies.copy(),
            decided=np.zeros((tables, regions, kernels.NOTES), np.bool_),
            gains=np.zeros(tables),
            load=np.zeros((2, regions)),
            legal=np.zeros((regions, len(KINDS)), np.bool_),
            size=np.zeros((regions, len(KINDS)), np.int64),
            left=np.zeros(rows),
            transfer=np.zeros(rows, np.int64),
        )
        self.place, self.spent_bytes = 0, 0
        self.offered = int(self.look.order[0])
        self.is_weighed = False  # whether the look has the effects of decisions carried out
        self._chosen = -1  # the table of the last noted decision, until it is carried out

    @property
    def copies(self) -> np.ndarray:
        """Future places of the tables, bool (tables, regions)."""
        found: np.ndarray = self.look.copies
        return found

    def decision(self, candidate: int) -> TableDecision:
        """The decision of a candidate from the third on."""
        region, kind = divmod(candidate - FIRST_REGION, len(KINDS))
        if KINDS[kind] is Replicate:
            wanted = int(self.simulator.raw.record["table_wanted"][self.offered])
            return Replicate(self.offered, region, whole=bool(wanted >> region & 1))
        return KINDS[kind](self.offered, region)

    def legal(self) -> np.ndarray:
        """Legal decisions about the offered table, bool (regions, kinds)."""
        self.simulator.raw.call(kernels.write_legal, self.look, self.offered, self.spent_bytes)
        found: np.ndarray = self.look.legal
        return found

    def allows(self, decision: TableDecision) -> bool:
        """Whether a decision can be carried out now, within the quota, and is new at this instant."""
        table, region, kind = int(decision.table), int(decision.region), KINDS.index(type(decision))
        if not (0 <= table < len(self.copies) and 0 <= region < len(self.look.legal)):
            return False
        terms = table, region, kind, int(is_whole(decision)), self.spent_bytes
        return bool(self.simulator.raw.call(kernels.allows, self.look, *terms))

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
        return int(self.look.order[self.place]) if self.place < len(self.look.order) else -1

    def choose(self, candidate: int) -> TableDecision:
        """Note a decision that is about to be carried out, and return it."""
        decision = self.decision(candidate)
        kind = kernels.WHOLE if is_whole(decision) else KINDS.index(type(decision))
        self.look.decided[self.offered, decision.region, kind] = True
        self._chosen = self.offered
        self.spent_bytes += copied_bytes(self.simulator, decision)
        return decision

    def carried_out(self) -> None:
        """Update homes and places after the last noted decision."""
        if self._chosen >= 0:
            arrays = self.look, self.known, self.waiting, self.placement.ledger
            self.simulator.raw.call(kernels.follow_decision, *arrays, self._chosen)
            self._chosen, self.is_weighed = -1, False

    def copy(self) -> PlacementReview:
        """An independent copy, without a simulator."""
        found = copy(self)
        found.placement = self.placement.copy()
        found.look = ReviewArrays(*(array.copy() for array in self.look))
        found.known = Readers(*(array.copy() for array in self.known))
        found.waiting = Readers(*(array.copy() for array in self.waiting))
        found.simulator = None  # type: ignore[assignment]
        return found

    def state_dict(self) -> dict[str, Any]:
        """The state that the record does not hold, as JSON data."""
        decided: dict[str, list[int]] = {}
        for table, region, kind in np.argwhere(self.look.decided).tolist():
            whole = kind == kernels.WHOLE
            candidate = candidate_at(region, KINDS.index(Replicate) if whole else kind)
            decided.setdefault(str(table), []).append(-candidate if whole else candidate)
        place = {"place": self.place, "offered": self.offered, "spent": self.spent_bytes}
        return {**place, "decided": {table: sorted(noted) for table, noted in decided.items()}}

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.place, self.offered, self.spent_bytes = played["place"], played["offered"], played["spent"]
        for table, noted in played["decided"].items():
            for candidate in noted:
                region, kind = divmod(abs(candidate) - FIRST_REGION, len(KINDS))
                self.look.decided[int(table), region, kernels.WHOLE if candidate < 0 else kind] = True


def _known(placement: Placement) -> Readers:
    jobs = placement.jobs.only(placement.jobs.training)
    fits = (placement.warehouse.offered(jobs.type_sets) != 0)[jobs.type_sets.row]
    return _readers(jobs.owner, jobs.table, len(placement.warehouse.tables), fits, jobs.gpu_hours * jobs.high)


def _waiting(view: ClusterView, tables: int) -> Readers:
    queue = view.queue
    reads = [view.tables_of(job) for job in queue.tolist()]
    owner = np.repeat(np.arange(len(queue)), [len(each) for each in reads])
    table = np.concatenate([np.zeros(0, np.int64), *reads]).astype(np.int64)
    fits = (view.record["job_hosts"][queue][:, None] >> np.arange(int(view.record["n_regions"])) & 1).astype(bool)
    return _readers(owner, table, tables, fits, np.zeros(len(queue)))


def _readers(owner: np.ndarray, table: np.ndarray, tables: int, fits: np.ndarray, hours: np.ndarray) -> Readers:
    """Jobs of which each of `owner` reads the table beside it."""
    order = np.argsort(table, kind="stable")
    first = np.zeros(tables + 1, np.int64)
    np.cumsum(np.bincount(table, minlength=tables), out=first[1:])
    lacks, able = np.zeros(fits.shape, np.int64), np.zeros(len(fits), np.bool_)
    return Readers(first, owner[order], np.ascontiguousarray(fits), np.asarray(hours, np.float64), lacks, able)
