"""The window of DataPlacement-v0 on any simulator of regions: what an agent would see and may do there now.

At an instant at which tables may be looked at (`ClusterView.tables_due`) the tables are offered one by one, those of
which most bytes are read first. Workloads are placed by a scheduler, at every instant, after the tables.
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
        day: the instant, while tables are offered; None: there is nothing to decide.
        scheduler: who places workloads.
        expert: the slow half of the policy that is played, if one is.
        expert_decisions: what it still decides at this instant.
        first_cost: of Figure 4, where the tables were at the beginning.
    """

    columns = (CLUSTER, QUEUE, RUNNING, CANDIDATES)
    of_instant = ("expert", "is_expert_only", "expert_decisions", "_asked", "_first_cost", "_cost")

    def __init__(
        self,
        *,
        scheduler: str | Decider = SCHEDULER,
        region_slots: int = 8,
        quota: float = QUOTA,
        **window: Any,
    ) -> None:
        check_range("region_slots", region_slots, 1, MOST_REGIONS)
        self.quota = number("quota", quota)
        if not self.quota >= 0.0:
            raise InputError(f"quota = {quota!r}; expected a share of all bytes, 0 or more")
        super().__init__(
            kinds=(0, 0),
            others=(),
            plans=LEAVE,
            more={"regions": Table(region_slots, len(REGIONS), len(KINDS))},
            **window,
        )
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
        """Start looking at a run, whatever its state."""
        geo = simulator.workload.geo
        if geo is None:
            raise InputError(
                f"workload {simulator.workload.name!r} reads no tables: DataPlacement-v0 needs one as mast-like"
            )
        if len(geo.regions) > self.region_slots:
            raise InputError(f"region_slots = {self.region_slots}: expected {len(geo.regions)} or more, one a region")
        super().lay(simulator)
        self._clear()

    @property
    def first_cost(self) -> float:
        """Of Figure 4, where the tables were at the beginning; not below a millionth."""
        if self._first_cost is None:
            geo = self.simulator.workload.geo
            assert geo is not None
            self._first_cost = max(1e-6, Placement(geo.warehouse(self.simulator.topology), Objective()).cost)
        return self._first_cost

    @property
    def cost(self) -> float:
        """Of Figure 4, as was last looked."""
        return self.first_cost if self._cost is None else self._cost

    # What there is to decide.

    def refresh(self) -> None:
        """Look at the run as it is now."""
        if self._is_new_instant():
            self._open()
        elif self.day is not None:
            self.day.carried_out()
        self._show()

    def finish(self) -> None:
        """The episode has ended: there is nothing more to decide."""
        self.day = None
        self._show()

    def _open(self) -> None:
        self.day, self.expert_decisions, self._asked, self.is_expert_only = None, [], False, False
        if self.simulator.view.tables_due:
            self.day = self._review()

    def _review(self) -> PlacementReview:
        """The look that is opened at this instant."""
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
        """False where the environment would pass over the present as it was last looked at: there is nothing to do."""
        return self.day is not None

    # Actions.

    def legal(self) -> np.ndarray:
        """Which candidates are legal, bool (candidates,)."""
        found = np.zeros(self.candidates, np.bool_)
        found[DONE] = True
        if self.day is not None:
            found[LEAVE] = True
            allowed = self.day.legal().ravel()
            found[FIRST_REGION : FIRST_REGION + len(allowed)] = allowed
        return found

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Go on by a legal candidate; what it decides is to be carried out before the next `refresh`."""
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
        """What the scheduler decides about workloads, one after the other, each asked for when the last is done."""
        yield from self.simulator.asked(self.scheduler)

    # Policies that are played.

    def follow(self, policy: Decider) -> None:
        """From now on `policy`, or its slow half, is asked what it decides; the window turns to the table of that."""
        self._ask(policy)
        day = self.day
        self.is_expert_only = (
            day is not None and bool(self.expert_decisions) and self.expert_decisions[0].table != day.offered
        )
        if day is not None and self.is_expert_only:
            day.offer(self.expert_decisions[0].table)

    def _ask(self, policy: Decider) -> None:
        """Find out what the expert decides at this instant, once."""
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
        """The action, int64 (1,), that plays what the expert does next.

        Raises:
            InvalidDecision: it is beyond the quota, or was made at this instant already.
        """
        day = self.day
        if day is None or not self.expert_decisions:
            return np.array([DONE], np.int64)
        decision = self.expert_decisions[0]
        check_table(self.simulator, decision)
        if not day.allows(decision):
            raise InvalidDecision(f"{decision!r}: made already, or beyond the environment's quota = {self.quota:g}")
        return np.array([candidate_of(decision)], np.int64)

    def demonstration(self, policy: Decider) -> np.ndarray:
        """The action, int64 (1,), that does about the offered table what `policy` would do at its own time."""
        self._ask(policy)
        day = self.day
        if day is None:
            return np.array([DONE], np.int64)
        for decision in self.expert_decisions:
            if decision.table == day.offered and day.allows(decision):
                return np.array([candidate_of(decision)], np.int64)
        return np.array([LEAVE], np.int64)

    # The present as arrays, and going on in another process.

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
        """The place in the present instant; JSON can hold it."""
        return {"day": None if self.day is None else self.day.state_dict()}

    def aside(self) -> dict[str, Any]:
        """The place in the present instant, for `take_aside`."""
        return {**super().aside(), "day": self.day and self.day.copy()}

    def take_aside(self, aside: Mapping[str, Any]) -> None:
        """Go on at the place that `aside` said, in a run that has just been written over."""
        super().take_aside(aside)
        day = self.day = aside["day"] and aside["day"].copy()
        if day is not None:
            day.simulator = self.simulator

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Go on at the place that `played` says, in a run that has just been written over."""
        self._clear()
        self._is_new_instant()
        if played["day"] is not None:
            self.day = self._review()
            self.day.load_state_dict(played["day"])
        self._show()


def scheduler_of(scheduler: str | Decider) -> Decider:
    """Who places workloads: the fast half of a policy, by name or as it is.

    Raises:
        InputError: it decides nothing by itself about workloads in regions.
    """
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    found = getattr(found, "fast", found)
    if not callable(getattr(found, "decide", None)) or getattr(found, "rule", None) is not None:
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that places workloads, as 'mast'")
    return found
