"""The window of DataPlacement-v0 on any simulator of regions.

When tables are due (`ClusterView.tables_due`) they are offered one by one, by bytes read. A scheduler places workloads
at every instant, after the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range, number
from ...simulator.base.decisions import TABLE_DECISIONS, Decision
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import called
from ...simulator.checks.table_decisions import check_table
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.rules.rule import Rule
from ...simulator.table_placement.placement import Objective, Placement
from ..observation_layout import Table
from ..python_step import ActionOutcome, PythonStepInterface
from ..shadow import ShadowSimulator
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .observation import observe, observe_nothing, write_still
from .review import KINDS, PlacementReview, TableDecision, candidate_of
from .review_arrays import DONE, FIRST_REGION, LEAVE, weigh_tables

MOST_REGIONS = 64
SCHEDULER = "mast"
QUOTA = 0.25  # of the bytes of all tables, as the policies


class DataPlacementInterface(PythonStepInterface):
    """The window of DataPlacement-v0; the arguments are those of `DataPlacementEnv`.

    Attributes:
        day: the review, while tables are offered; None: there is nothing to decide.
        expert: the slow half of the policy that is played, if one is.
        expert_decisions: its decisions at this instant that are still to be carried out.
    """

    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "regions": REGIONS, "candidates": CANDIDATES}
    )
    of_instant = ("expert", "is_expert_only", "expert_decisions", "_asked", "_first_cost", "_cost")

    def __init__(
        self, *, scheduler: str | Decider = SCHEDULER, region_slots: int = 8, quota: float = QUOTA, **window: Any
    ) -> None:
        check_range("region_slots", region_slots, 1, MOST_REGIONS)
        self.quota = number("quota", quota)
        if not self.quota >= 0.0:
            raise InputError(f"quota = {quota!r}; expected a share of all bytes, 0 or more")
        more = {"regions": Table(region_slots, len(REGIONS), len(KINDS))}
        super().__init__(kinds=(0, 0), others=(), plans=LEAVE, more=more, **window)
        self.region_slots = region_slots
        self.scheduler = scheduler_of(scheduler)
        self.asked = (self.scheduler,)
        self.clock = getattr(self.scheduler, "clock", None) or Rule("fifo")
        self._of_expert = ShadowSimulator()
        self._clear()

    def _clear(self) -> None:
        self.placement_review: PlacementReview | None = None
        self.expert: Decider | None = None
        self.is_expert_only = False
        self.expert_decisions: list[TableDecision] = []
        self._asked = False
        self._forget()
        self._first_cost: float | None = None
        self._cost: float | None = None

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state."""
        geo = simulator.workload.geo
        if geo is None or not len(geo.tables):
            name = simulator.workload.name
            raise InputError(f"workload {name!r} reads no tables: DataPlacement-v0 needs one as mast-like")
        if len(geo.regions) > self.region_slots:
            raise InputError(f"region_slots = {self.region_slots}: expected {len(geo.regions)} or more, one a region")
        super().attach(simulator)
        self._clear()

    @property
    def first_cost(self) -> float:
        """Cost of Figure 4 at the beginning; not below a millionth."""
        if self._first_cost is None:
            geo = self.simulator.workload.geo
            assert geo is not None
            self._first_cost = max(1e-6, Placement(geo.warehouse(self.simulator.topology), Objective()).cost)
        return self._first_cost

    @property
    def cost(self) -> float:
        """Cost of Figure 4 at the last look."""
        return self.first_cost if self._cost is None else self._cost

    def refresh(self) -> None:
        """Show the present of the run."""
        if self._is_new_instant():
            self._open()
        elif self.placement_review is not None:
            self.placement_review.carried_out()
        self._show()

    def finish(self) -> None:
        """Show an episode that has ended, with nothing to decide."""
        self.placement_review = None
        self._show()

    def _open(self) -> None:
        self.placement_review, self.expert_decisions, self._asked, self.is_expert_only = None, [], False, False
        if self.simulator.view.tables_due:
            self.placement_review = self._review()

    def _review(self) -> PlacementReview:
        s = self.simulator
        placement_review = PlacementReview(s, self.quota, self.first_cost, int(self.raw["running_slots"]))
        s.raw.call(write_still, placement_review.look, placement_review.known, placement_review.placement.ledger)
        return placement_review

    def _show(self) -> None:
        if self.placement_review is not None:
            self._cost = self.placement_review.placement.cost
            if self.placement_review.offered < 0:
                self.placement_review = None
        self.raw["can_act"] = self.placement_review is not None

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        return self.placement_review is not None

    def legal(self) -> np.ndarray:
        """Legal candidates, bool (candidates,)."""
        found = np.zeros(self.candidates, np.bool_)
        found[DONE] = True
        if self.placement_review is not None:
            found[LEAVE] = True
            allowed = self.placement_review.legal().ravel()
            found[FIRST_REGION : FIRST_REGION + len(allowed)] = allowed
        return found

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Play a legal candidate; its decisions are to be carried out before the next `refresh`."""
        placement_review = self.placement_review
        if candidate == DONE or placement_review is None:
            self.placement_review = None
            return ActionOutcome(())
        if candidate == LEAVE:
            placement_review.leave()
            return ActionOutcome(())
        decision = placement_review.choose(candidate)
        if decision in self.expert_decisions:
            self.expert_decisions.remove(decision)
        return ActionOutcome((decision,))

    def leaving(self) -> Iterator[Decision]:
        """The scheduler's decisions about workloads, each drawn after the last was carried out."""
        yield from self.simulator.asked(self.scheduler)

    def follow(self, policy: Decider) -> None:
        """Turn the window to the table of the next decision of `policy`, or of its slow half."""
        self._ask(policy)
        placement_review = self.placement_review
        due = self.expert_decisions
        self.is_expert_only = placement_review is not None and bool(due) and due[0].table != placement_review.offered
        if placement_review is not None and self.is_expert_only:
            placement_review.offer(due[0].table)

    def _ask(self, policy: Decider) -> None:
        slow = getattr(policy, "slow", policy)
        if slow is self.expert and self._asked:
            return
        self.expert, self._asked, self.expert_decisions = slow, True, []
        if self.placement_review is None or slow is None:
            return
        for decision in self._of_expert.decisions(self.simulator, slow):
            if not isinstance(decision, TABLE_DECISIONS):
                break
            self.expert_decisions.append(decision)

    def expert_action(self) -> np.ndarray:
        """The action, int64 (1,), for the expert's next decision; InvalidDecision: beyond the quota, or repeated."""
        placement_review = self.placement_review
        if placement_review is None or not self.expert_decisions:
            return np.array([DONE], np.int64)
        decision = self.expert_decisions[0]
        check_table(self.simulator, decision)
        if not placement_review.allows(decision):
            raise InvalidDecision(f"{decision!r}: made already, or beyond the environment's quota = {self.quota:g}")
        return np.array([candidate_of(decision)], np.int64)

    def demonstration(self, policy: Decider) -> np.ndarray:
        """The action, int64 (1,), that plays the decision of `policy` about the offered table."""
        self._ask(policy)
        placement_review = self.placement_review
        if placement_review is None:
            return np.array([DONE], np.int64)
        for decision in self.expert_decisions:
            if decision.table == placement_review.offered and placement_review.allows(decision):
                return np.array([candidate_of(decision)], np.int64)
        return np.array([LEAVE], np.int64)

    def write(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Write features, float32 (F,), and the mask, int8 (M,), as last looked at."""
        placement_review, call = self.placement_review, self.simulator.raw.call
        if placement_review is None:
            call(observe_nothing, self.windows, features, mask)
            return
        arrays = (
            placement_review.look,
            placement_review.known,
            placement_review.waiting,
            placement_review.placement.ledger,
        )
        if not placement_review.is_weighed:
            weigh_tables(*arrays)
            placement_review.is_weighed = True
        scalars = (
            placement_review.offered,
            placement_review.place,
            placement_review.spent_bytes,
            placement_review.placement.cost,
        )
        call(observe, self.windows, *arrays, *scalars, features, mask)

    def state_dict(self) -> dict[str, Any]:
        """The stage in the present instant, as JSON data."""
        return {"day": None if self.placement_review is None else self.placement_review.state_dict()}

    def python_state(self) -> dict[str, Any]:
        """The stage in the present instant, for `take_python_state`."""
        return {**super().python_state(), "day": self.placement_review and self.placement_review.copy()}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue at the stage that `python_state` returned, in a run whose record was just replaced."""
        super().take_python_state(python_state)
        placement_review = self.placement_review = python_state["day"] and python_state["day"].copy()
        if placement_review is not None:
            placement_review.simulator = self.simulator

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Continue at the stage `played`, in a run whose record was just replaced."""
        self._clear()
        self._is_new_instant()
        if played["day"] is not None:
            self.placement_review = self._review()
            self.placement_review.load_state_dict(played["day"])
        self._show()


def scheduler_of(scheduler: str | Decider) -> Decider:
    """The fast half of a policy, which places workloads, by name or as given; InputError if it cannot."""
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    found = getattr(found, "fast", found)
    if not callable(getattr(found, "decide", None)) or getattr(found, "rule", None) is not None:
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that places workloads, as 'mast'")
    return found
