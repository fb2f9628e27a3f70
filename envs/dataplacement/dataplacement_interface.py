"""The window of DataPlacement-v0 on any simulator of regions.

When tables are due (`ClusterView.tables_due`) they are offered one by one, by bytes read. A scheduler places workloads
at every instant, after the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from .look_arrays import DONE, FIRST_REGION, LEAVE, weigh_tables
from .observation import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING, lay_still, observe, observe_nothing
from .review import KINDS, PlacementReview, TableDecision, candidate_of

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

    columns = (CLUSTER, QUEUE, RUNNING, CANDIDATES)
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
        self.day: PlacementReview | None = None
        self.expert: Decider | None = None
        self.is_expert_only = False
        self.expert_decisions: list[TableDecision] = []
        self._asked = False
        self._forget()
        self._first_cost: float | None = None
        self._cost: float | None = None

    def lay(self, simulator: Simulator) -> None:
        """Show a run, whatever its state."""
        geo = simulator.workload.geo
        if geo is None or not len(geo.tables):
            name = simulator.workload.name
            raise InputError(f"workload {name!r} reads no tables: DataPlacement-v0 needs one as mast-like")
        if len(geo.regions) > self.region_slots:
            raise InputError(f"region_slots = {self.region_slots}: expected {len(geo.regions)} or more, one a region")
        super().lay(simulator)
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
        elif self.day is not None:
            self.day.carried_out()
        self._show()

    def finish(self) -> None:
        """Show an episode that has ended, with nothing to decide."""
        self.day = None
        self._show()

    def _open(self) -> None:
        self.day, self.expert_decisions, self._asked, self.is_expert_only = None, [], False, False
        if self.simulator.view.tables_due:
            self.day = self._review()

    def _review(self) -> PlacementReview:
        s = self.simulator
        day = PlacementReview(s, self.quota, self.first_cost, int(self.plain["running_slots"]))
        s.plain.call(lay_still, day.look, day.known, day.placement.ledger)
        return day

    def _show(self) -> None:
        if self.day is not None:
            self._cost = self.day.placement.cost
            if self.day.offered < 0:
                self.day = None
        self.plain["can_act"] = self.day is not None

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        return self.day is not None

    def legal(self) -> np.ndarray:
        """Legal candidates, bool (candidates,)."""
        found = np.zeros(self.candidates, np.bool_)
        found[DONE] = True
        if self.day is not None:
            found[LEAVE] = True
            allowed = self.day.legal().ravel()
            found[FIRST_REGION : FIRST_REGION + len(allowed)] = allowed
        return found

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Play a legal candidate; its decisions are to be carried out before the next `refresh`."""
        day = self.day
        if candidate == DONE or day is None:
            self.day = None
            return ActionOutcome(())
        if candidate == LEAVE:
            day.leave()
            return ActionOutcome(())
        decision = day.choose(candidate)
        if decision in self.expert_decisions:
            self.expert_decisions.remove(decision)
        return ActionOutcome((decision,))

    def leaving(self) -> Iterator[Decision]:
        """The scheduler's decisions about workloads, each drawn after the last was carried out."""
        yield from self.simulator.asked(self.scheduler)

    def follow(self, policy: Decider) -> None:
        """Turn the window to the table of the next decision of `policy`, or of its slow half."""
        self._ask(policy)
        day = self.day
        due = self.expert_decisions
        self.is_expert_only = day is not None and bool(due) and due[0].table != day.offered
        if day is not None and self.is_expert_only:
            day.offer(due[0].table)

    def _ask(self, policy: Decider) -> None:
        slow = getattr(policy, "slow", policy)
        if slow is self.expert and self._asked:
            return
        self.expert, self._asked, self.expert_decisions = slow, True, []
        if self.day is None or slow is None:
            return
        for decision in self._of_expert.decisions(self.simulator, slow):
            if not isinstance(decision, TABLE_DECISIONS):
                break
            self.expert_decisions.append(decision)

    def expert_action(self) -> np.ndarray:
        """The action, int64 (1,), for the expert's next decision; InvalidDecision: beyond the quota, or repeated."""
        day = self.day
        if day is None or not self.expert_decisions:
            return np.array([DONE], np.int64)
        decision = self.expert_decisions[0]
        check_table(self.simulator, decision)
        if not day.allows(decision):
            raise InvalidDecision(f"{decision!r}: made already, or beyond the environment's quota = {self.quota:g}")
        return np.array([candidate_of(decision)], np.int64)

    def demonstration(self, policy: Decider) -> np.ndarray:
        """The action, int64 (1,), that plays the decision of `policy` about the offered table."""
        self._ask(policy)
        day = self.day
        if day is None:
            return np.array([DONE], np.int64)
        for decision in self.expert_decisions:
            if decision.table == day.offered and day.allows(decision):
                return np.array([candidate_of(decision)], np.int64)
        return np.array([LEAVE], np.int64)

    def write(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Write features, float32 (F,), and the mask, int8 (M,), as last looked at."""
        day, call = self.day, self.simulator.plain.call
        if day is None:
            call(observe_nothing, self.windows, features, mask)
            return
        arrays = day.look, day.known, day.waiting, day.placement.ledger
        if not day.is_weighed:
            weigh_tables(*arrays)
            day.is_weighed = True
        scalars = day.offered, day.place, day.spent_bytes, day.placement.cost
        call(observe, self.windows, *arrays, *scalars, features, mask)

    def state_dict(self) -> dict[str, Any]:
        """The stage in the present instant, as JSON data."""
        return {"day": None if self.day is None else self.day.state_dict()}

    def aside(self) -> dict[str, Any]:
        """The stage in the present instant, for `take_aside`."""
        return {**super().aside(), "day": self.day and self.day.copy()}

    def take_aside(self, aside: Mapping[str, Any]) -> None:
        """Continue at the stage that `aside` returned, in a run whose record was just replaced."""
        super().take_aside(aside)
        day = self.day = aside["day"] and aside["day"].copy()
        if day is not None:
            day.simulator = self.simulator

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Continue at the stage `played`, in a run whose record was just replaced."""
        self._clear()
        self._is_new_instant()
        if played["day"] is not None:
            self.day = self._review()
            self.day.load_state_dict(played["day"])
        self._show()


def scheduler_of(scheduler: str | Decider) -> Decider:
    """The fast half of a policy, which places workloads, by name or as given; InputError if it cannot."""
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    found = getattr(found, "fast", found)
    if not callable(getattr(found, "decide", None)) or getattr(found, "rule", None) is not None:
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that places workloads, as 'mast'")
    return found
