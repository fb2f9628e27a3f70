"""`bring`: a scheduler of regions; tables are copied for waiting workloads to regions with free units.

After a pass of the scheduler every waiting workload, in order of arrival, looks for a region that is up, with free
units for its parts that no earlier one was promised, and with storage for its missing tables. Of several it takes the
one where copies would arrive soonest, one table after the other over idle links, then the lowest number. A workload
whose missing tables are all on the way somewhere, or that needs fresh data, gets no copies. Copies stay until the slow
path drops them, or they make room on demand.

A baseline of our own: paper mast copies on demand where no region has the tables, never for want of units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import Advance, Decision, Replicate
from ...simulator.engine.view import ClusterView
from ..base import Policy
from ..planning import PlanningPolicy, is_round
from ..two_paths import SCAN_S, SLOW, TwoPathPolicy, fast_half
from .mast import paths


class _Copies(PlanningPolicy):
    """The copies of an instant; `round`: seconds between passes, 0: at every event."""

    def __init__(self, round: float) -> None:
        super().__init__("bring")
        self.round = round

    def is_due(self, view: ClusterView) -> bool:
        """Whether this is an instant of a pass."""
        return self.round == 0.0 or is_round(view.now_s, self.round)

    def plan(self, view: ClusterView) -> list[Decision]:
        """Copies, workload by workload."""
        if not self.is_due(view):
            return []
        self._room = view.storage_bytes - view.stored_bytes
        self._coming = {(table, target) for table, _, target, _ in view.transfers}
        self._left = []
        free, found = view.free_by_cluster.copy(), list[Decision]()
        waiting = [job for job in sorted(view.queue.tolist()) if not view.needs_home(job)]
        for job in [job for job in waiting if not self._expects(view, job, free)]:
            if not self._expects(view, job, free):  # no copies for an earlier one serve it
                found += self._brought(view, job, free)
        return found

    def _expects(self, view: ClusterView, job: int, free: np.ndarray) -> bool:
        """Modify `free`: promise units where all missing tables are on the way; False: nowhere."""
        expects = False
        for region in self._regions(view, job):
            lacking = self._lacking(view, job, region)
            if lacking and all((table, region) in self._coming for table in lacking):
                expects = True
                if take_free(view, free, view.parts(job), region):
                    break
        return expects

    def _brought(self, view: ClusterView, job: int, free: np.ndarray) -> list[Replicate]:
        """Modify `free` and the room: promise units. Returns the copies that this needs."""
        up, offers = set(view.up_regions), []
        for region in self._regions(view, job):
            away = [table for table in self._lacking(view, job, region) if (table, region) not in self._coming]
            if not away or not all(set(view.copies(table)) & up for table in away):
                continue
            size = sum(int(view.record["replica_size"][table]) for table in away if region not in view.copies(table))
            if size <= self._room[region]:
                offers.append((self._seconds(view, away, region), region, size, away))
        for _, region, size, away in sorted(offers, key=lambda offer: offer[:2]):
            if take_free(view, free, view.parts(job), region):
                self._room[region] -= size
                self._coming |= {(table, region) for table in away}
                return [Replicate(table, region) for table in away]
        return []

    @staticmethod
    def _regions(view: ClusterView, job: int) -> list[int]:
        return sorted(set(view.up_regions) & set(view.hosts_of(job)))

    @staticmethod
    def _lacking(view: ClusterView, job: int, region: int) -> list[int]:
        """Tables of a workload without a permanent copy in a region."""
        tables = view.tables_of(job).tolist()
        return [table for table in tables if region not in view.copies(table) or region in view.doomed(table)]

    @staticmethod
    def _seconds(view: ClusterView, tables: list[int], region: int) -> float:
        """Seconds of copying, one after the other over idle links."""
        rate, size, up = view.record["wan_rate"], view.record["replica_size"], set(view.up_regions)
        fastest = [max(rate[source, region] for source in set(view.copies(table)) & up) for table in tables]
        return float(sum(size[table] / speed for table, speed in zip(tables, fastest, strict=True)))


class Bringing(Policy):
    """The fast path of `bring`: that of a scheduler, then copies."""

    def __init__(self, fast: Policy) -> None:
        self.name, self.clock, self.knows_run_times = "bring", fast.clock, fast.knows_run_times
        self.fast = fast
        self._copies = _Copies(getattr(fast.clock, "round", SCAN_S))
        self._brings: Any = None  # the instant of the copies

    def decide(self, view: ClusterView) -> Decision:
        """The scheduler's decisions, then copies."""
        instant = view.run, view.instant
        if self._brings != instant:
            decision = self.fast.decide(view)
            if not isinstance(decision, Advance):
                return decision
            self._brings = instant
        return self._copies.decide(view)

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The scheduler's reason, or free units."""
        if isinstance(decision, Replicate) and self._brings == (view.run, view.instant):
            return "a waiting workload finds free units there, and not its tables"
        return self.fast.why(view, decision)

    def memory(self, simulator: Any) -> Any:
        """The scheduler's memory of the present run."""
        return self.fast.memory(simulator) if hasattr(self.fast, "memory") else None

    def recall(self, simulator: Any, memory: Any) -> None:
        """Continue a run from `memory` of it."""
        self._brings = None
        self._copies.forget_plan()
        if hasattr(self.fast, "recall"):
            self.fast.recall(simulator, memory)


def take_free(view: ClusterView, free: np.ndarray, parts: list[tuple[str, int]], region: int) -> bool:
    """Modify `free`, int64 (clusters,): parts take the first clusters of a region with room; False: not all fit.

    `parts`: type, or types `A100|H100`, and units of each.
    """
    topology, left = view.topology, free.copy()
    here = np.flatnonzero(np.asarray(topology.cluster_region) == region).tolist()
    for words, units in sorted(parts, key=lambda part: -part[1]):
        kinds = words.split("|")
        found = [one for one in here if topology.cluster_gpu_type[one] in kinds and left[one] >= units]
        if not found:
            return False
        left[found[0]] -= units
    free[:] = left
    return True


def bringing(scheduler: str = "greedy", slow: str = SLOW) -> TwoPathPolicy:
    """The policy `bring`: `scheduler` places workloads, `slow` (or `none`) tables."""
    return paths("bring", Bringing(fast_half("bring", scheduler)), slow)
