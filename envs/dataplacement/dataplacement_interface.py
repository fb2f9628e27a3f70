"""The window of DataPlacement-v0 on any simulator of regions.

When tables are due (`ClusterView.tables_due`) they are offered one by one, by bytes read. A scheduler places workloads
at every instant, after the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...policies.mast.copies_on_demand import write_sizes
from ...policies.mast.mast import WorkloadPassPolicy
from ...simulator.base.arguments import check_range, number
from ...simulator.base.decisions import TABLE_DECISIONS, Advance, Decision, Drop, Move, Replicate
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import called
from ...simulator.checks.table_decisions import check_table
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.record.solver_records import SolverRecord
from ...simulator.rules.rule import Rule
from ..agent_interface import AgentInterface
from ..observation_layout import Table
from . import review
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .dataplacement_transition import KERNELS, KNOWN_JOBS, NO_INSTANT, window_dtype
from .review import DONE, FIRST_REGION, LEAVE, NO_TABLE
from .review_record import KINDS, REVIEW, History

MOST_REGIONS = 64
SCHEDULER = "mast"
QUOTA = 0.25  # of the bytes of all tables, as the policies
OF_KIND = (Move, Replicate, Drop)  # as KIND_CODES of review.py

TableDecision = Move | Replicate | Drop


class DataPlacementInterface(AgentInterface):
    """The window of DataPlacement-v0; the arguments are those of `DataPlacementEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "regions": REGIONS, "candidates": CANDIDATES}
    )
    kernels = KERNELS

    def __init__(
        self, *, scheduler: str | Decider = SCHEDULER, region_slots: int = 8, quota: float = QUOTA, **window: Any
    ) -> None:
        check_range("region_slots", region_slots, 1, MOST_REGIONS)
        self.quota = number("quota", quota)
        if not self.quota >= 0.0:
            raise InputError(f"quota = {quota!r}; expected a share of all bytes, 0 or more")
        more = {"regions": Table(region_slots, len(REGIONS), KINDS)}
        super().__init__(kinds=(0, 0), others=(), plans=LEAVE, more=more, **window)
        self.region_slots = region_slots
        self.scheduler = scheduler_of(scheduler)
        self.asked = (self.scheduler,)
        self.clock = getattr(self.scheduler, "clock", None) or Rule("fifo")
        self._place: Callable[[], np.recarray] | None = None
        self._seen: tuple[Any, np.void] | None = None
        self._forget_expert()

    def _forget_expert(self) -> None:
        self._expert: Decider | None = None
        self._expert_at: tuple[int, ...] = ()
        self._expert_decisions: list[TableDecision] = []

    def share(self, solvers: Callable[[], np.recarray]) -> None:
        """Remember from now on where a kernel does: in the array of one record that `solvers` gives."""
        self._place = solvers

    @property
    def solvers(self) -> np.recarray:
        """What is remembered of the run and of a review: an array of one record."""
        return self._own if self._place is None else self._place()

    @property
    def solver(self) -> np.void:
        """The same by item."""
        solvers = self.solvers
        if self._seen is None or self._seen[0] is not solvers:
            self._seen = solvers, SolverRecord(REVIEW, solvers, self.simulator.capacity).record
        return self._seen[1]

    @property
    def offered(self) -> int | None:
        """The table to decide about; None: there is nothing to decide."""
        table = int(self.raw["offered"])
        return None if table == NO_TABLE else table

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state."""
        geo = simulator.workload.geo
        if geo is None or not len(geo.tables):
            name = simulator.workload.name
            raise InputError(f"workload {name!r} reads no tables: DataPlacement-v0 needs one as mast-like")
        if len(geo.regions) > self.region_slots:
            raise InputError(f"region_slots = {self.region_slots}: expected {len(geo.regions)} or more, one a region")
        super().attach(simulator)
        self._forget_expert()
        self._begin_at(simulator)
        w, m, scheduler = self.raw, self.solver, self.scheduler
        w["offered"] = w["chosen"] = NO_TABLE
        w["asks"], w["seen_instant"] = 0, NO_INSTANT
        w["is_compiled"] = isinstance(scheduler, WorkloadPassPolicy) and scheduler.is_compiled
        if isinstance(scheduler, WorkloadPassPolicy) and scheduler.is_compiled:
            scheduler.write(simulator.view, self.solvers, m)
            write_sizes(m, geo.tables.size_bytes)
            w["round_s"] = scheduler.clock.round
        self._history.tell(m, 0.0)
        simulator.raw.call(review.price_homes, self.windows, self.solvers)

    def _begin_at(self, simulator: Simulator) -> None:
        geo = simulator.workload.geo
        assert geo is not None
        if self._place is None:
            self._own = REVIEW.empty(simulator.capacity)
        self._history = History(geo, simulator.topology, self.quota)
        self._history.write(self.solver)

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced."""
        super().resume(simulator)
        self._forget_expert()
        self._begin_at(simulator)
        self.solver["known_until_s"] = -np.inf
        if self.offered is not None:
            self._tell_known()
            simulator.raw.call(review.go_on, self.solvers)
            self.raw["is_weighed"] = 0

    def _tell_known(self) -> None:
        self._history.tell(self.solver, float(self.simulator.raw.record["now_s"]))

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Show the present of the run, and write what an agent sees."""
        if self.simulator.view.tables_due:
            self._tell_known()
        super().look_into(features, mask)

    def answer(self) -> None:
        """What the kernel that plays the run has stopped for."""
        if self.raw["asks"] == KNOWN_JOBS:
            self._tell_known()
            return
        for decision in self.leaving():
            self.simulator.apply(decision)

    def leaving(self) -> Iterator[Decision]:
        """The scheduler's decisions about workloads, each drawn after the last was carried out."""
        yield from self.simulator.asked(self.scheduler)

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of an action, which are to be carried out next; empty: none, and the same instant is shown."""
        if action[0] <= DONE or not self.raw["legal"][action[0]]:
            self.raw["offered"] = NO_TABLE
            return []
        return super().decisions(action)

    def action(self, decision: Any) -> np.ndarray:
        """The action, int64 (1,), of a decision about the offered table; InvalidDecision: there is none."""
        if isinstance(decision, Advance):
            return np.array([DONE], np.int64)
        check_table(self.simulator, decision)
        if not self._allows(decision):
            raise InvalidDecision(f"{decision!r}: made already, or beyond the environment's quota = {self.quota:g}")
        return np.array([_candidate_of(decision)], np.int64)

    def _allows(self, decision: TableDecision) -> bool:
        """Whether a decision can be carried out now, within the quota, and is new at this instant."""
        table, region, kind, whole = _terms(decision)
        s = self.simulator.raw.record
        if not (0 <= table < s["n_tables"] and 0 <= region < s["n_regions"]):
            return False
        called_with = self.windows, self.solvers, table, region, kind, whole
        return bool(self.simulator.raw.call(review.allows, *called_with))

    def next_decision(self, policy: Decider) -> Decision:
        """The next decision about a table of `policy`, or of its slow half; the window turns to it."""
        due = self._decisions_of(policy)
        while due and self._is_made(due[0]):
            del due[0]
        if not due:
            return Advance()
        self.raw["offered"] = due[0].table
        return due[0]

    def _is_made(self, decision: TableDecision) -> bool:
        """Whether it has been made at this instant."""
        table, region, kind, whole = _terms(decision)
        decided = self.solver["decided"]
        is_there = table < len(decided) and region < decided.shape[1]
        return is_there and bool(decided[table, region, review.WHOLE if whole else kind])

    def decision_about_offered(self, policy: Decider) -> Decision | None:
        """The decision of `policy` about the offered table, even out of its own order; None: it leaves it."""
        for decision in self._decisions_of(policy):
            if decision.table == self.offered and self._allows(decision):
                return decision
        return None if self.offered is not None else Advance()

    def _decisions_of(self, policy: Decider) -> list[TableDecision]:
        """All at this instant, found when the policy is first asked, or has not been asked before the last step."""
        slow, w, s = getattr(policy, "slow", policy), self.raw, self.simulator.raw.record
        at, steps = (self.simulator.runs, int(s["instants"])), int(w["decisions"])
        is_followed = self._expert is slow and self._expert_at[:2] == at and steps - self._expert_at[2] <= 1
        self._expert, self._expert_at = slow, (*at, steps)
        if not is_followed:
            self._expert_decisions = []
            found = self.simulator.foresee(slow) if slow is not None and self.offered is not None else []
            for decision in found:
                if not isinstance(decision, TABLE_DECISIONS):
                    break
                self._expert_decisions.append(decision)
        return self._expert_decisions

    def python_state(self) -> dict[str, Any]:
        """The decisions of a policy that is played, for `take_python_state`."""
        return {"expert": self._expert, "at": self._expert_at, "decisions": list(self._expert_decisions)}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue with what `python_state` returned, in a run whose record was just replaced."""
        self._expert, at = python_state["expert"], python_state["at"]
        self._expert_at = (self.simulator.runs, *at[1:])
        self._expert_decisions = list(python_state["decisions"])


def _terms(decision: TableDecision) -> tuple[int, int, int, int]:
    """Table, region, kind, and whether it completes a copy."""
    whole = isinstance(decision, Replicate) and decision.whole
    return int(decision.table), int(decision.region), OF_KIND.index(type(decision)), int(whole)


def _candidate_of(decision: TableDecision) -> int:
    _, region, kind, _ = _terms(decision)
    return FIRST_REGION + KINDS * region + kind


def scheduler_of(scheduler: str | Decider) -> Decider:
    """The fast half of a policy, which places workloads, by name or as given; InputError if it cannot."""
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    found = getattr(found, "fast", found)
    if not callable(getattr(found, "decide", None)) or getattr(found, "rule", None) is not None:
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that places workloads, as 'mast'")
    return found
