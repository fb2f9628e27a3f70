"""The window of Geo-v0 on any simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...policies.mast.copies_on_demand import on_demand, write_sizes
from ...policies.mast.global_scheduler import write_ranking
from ...policies.mast.hardware import Hardware
from ...policies.mast.mast_record import MAST
from ...policies.mast.regional_scheduler import write_regions
from ...policies.mast.type_choices import TypeChoices
from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Advance, Decision, Hold, Preempt, Replicate, Start
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.record.solver_records import SolverRecord
from ...simulator.rules.rule import Rule
from ..agent_interface import ORDERS, AgentInterface
from ..observation_layout import Table
from ..window import NO_JOB
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .geo_transition import KERNELS
from .geo_window import (
    AS_IT_IS,
    ASKS_ACTION,
    ASKS_PLAN,
    BRING,
    IN_PLACE_OF_OTHERS,
    LEAVE,
    MAX_CLUSTERS,
    NO_CLUSTER,
    NOTHING,
    PLAY,
    SHOW,
    candidate_of,
    kinds_of,
    start_of,
    window_dtype,
)
from .table_bringing import MAX_BRINGS

MOST_REGION_SLOTS = 64
TABLES = "tetris-v2"
PREEMPTS = ("lower", "any")
BRINGS = 2
ROUND_S = 34.0  # paper mast, Sec. 5.4: the mean time of a GMS-scan pass
FORGOTTEN = ("data_valid", "starts_valid")  # fields of the window, as in `forget_present`
NOBODY = {"asks": NOTHING, "has_policy": 0, "is_asked": 0, "has_rest": 0, "turn_job": NO_JOB, "is_said": 0}


class GeoInterface(AgentInterface):
    """The window of Geo-v0; the arguments are those of `GeoEnv`.

    A policy may be played. What it decides at an instant is found on a copy of the run. Its turn is what belongs to the
    next workload: preemptions for it, and decisions about tables before it, then a start or a hold; one action plays
    it, as the policy has decided it.

    Attributes:
        clock: the rule that holds for every policy: decision points come at the multiples of its round.
        policy: what is played; None: nothing.
        coming: its decisions at this instant that are still to be carried out.
        solvers_in: gives what MAST remembers of the run, an array of one record; None: the window has its own.
    """

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "regions": REGIONS, "candidates": CANDIDATES}
    )
    kernels = KERNELS
    orders = ("priority", *ORDERS)
    solvers_in: Callable[[], np.recarray] | None = None
    policy: Decider | None
    coming: list[Decision]

    def __init__(
        self,
        *,
        tables: str | Decider | None = TABLES,
        round: float = ROUND_S,
        clusters: int = 6,
        brings: int = BRINGS,
        region_slots: int = 8,
        slots: int = 16,
        order: str = "priority",
        preempts: str = "lower",
        **window: Any,
    ) -> None:
        choose(preempts, PREEMPTS, "preempts")
        check_range("clusters", clusters, 1, MAX_CLUSTERS)
        check_range("brings", brings, 0, MAX_BRINGS)
        check_range("region_slots", region_slots, 1, MOST_REGION_SLOTS)
        kinds, more = (kinds_of(clusters, brings), 0), {"regions": Table(region_slots, len(REGIONS), 0)}
        super().__init__(kinds=kinds, others=(), more=more, slots=slots, order=order, **window)
        self.window.clusters, self.window.brings, self.window.region_slots = clusters, brings, region_slots
        self.window.any_leaves = preempts == "any"
        self.clock = Rule("fifo", round=round)
        self.slow_half = slow_half_of(tables)
        self.window.looks = self.slow_half is not None
        self.asked = (self.slow_half,)
        self._left: tuple[int, int] | None = None  # run and instant at which an agent has done
        self.leave_policy()

    @property
    def solvers(self) -> np.recarray:
        """What MAST remembers of the run: an array of one record."""
        return self._own if self.solvers_in is None else self.solvers_in()

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        name, slots, needed = simulator.workload.name, self.window.region_slots, simulator.topology.num_regions
        if simulator.workload.geo is None:
            raise InputError(f"workload {name!r} asks nothing of regions; expected one that does, as mast-like")
        if needed > slots:
            raise InputError(f"region_slots = {slots}: expected {needed} or more, one a region")
        super().attach(simulator)
        if self.solvers_in is None:
            self._own = MAST.empty(simulator.capacity)
        s, m = simulator.raw.record, SolverRecord(MAST, self.solvers, simulator.capacity).record
        hardware, choices = Hardware.of(simulator.topology, simulator.workload.geo), TypeChoices.of(simulator.view)
        write_regions(self.solvers, m, hardware, len(simulator.workload), choices)
        write_ranking(m, simulator.workload.geo)
        write_sizes(m, s["table_size"][: s["n_tables"]])
        self.raw["n_unplaceable"] = self.raw["lacks"] = 0
        self._left = None
        self.leave_policy()
        self._forget()

    def _forget(self) -> None:
        m = SolverRecord(MAST, self.solvers, self.simulator.capacity).record
        m["follows"], m["valid"] = 0, 0
        for name in FORGOTTEN:
            self.raw[name] = 0

    def ordered(self, simulator: Simulator) -> np.ndarray:
        """The jobs of a run, int64 (jobs,), in the order of the window."""
        geo = simulator.workload.geo
        if self.order != "priority" or geo is None:
            return super().ordered(simulator)
        return np.argsort(geo.level, kind="stable")

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced; a policy that it played has gone."""
        super().resume(simulator)
        self.policy, self.coming = None, []

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """As `look`, into arrays that hold zeros or what was last written there."""
        self._forget()
        super().look_into(features, mask)

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        s, w = self.simulator.raw.record, self.raw
        if self._left == self._now():
            return False
        is_first = s["instants"] == 1 and s["decisions"] == 0
        return bool(is_first or (not w["skip_idle"] and s["waiting"] > 0) or w["can_act"])

    def _now(self) -> tuple[int, int]:
        return self.simulator.runs, int(self.simulator.raw.record["instants"])

    def choice(self, candidate: int) -> tuple[int, int, int] | None:
        """Workload, cluster and way of a candidate; None: it advances. With the way BRING, a region for the cluster."""
        return start_of(self.window, candidate) if candidate else None

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of an action now, in order; none of 0: the same instant is shown again, and `leaving` follows.

        They are those without a policy that is played.
        """
        w = self.raw
        before, w["has_policy"] = int(w["has_policy"]), 0
        found = super().decisions(action)
        w["has_policy"] = before
        if found != [Advance()]:
            return found
        self._left = self._now()
        return []

    def leaving(self) -> Iterator[Decision]:
        """Decisions about tables at the end of the present instant."""
        view = self.simulator.view
        if self.slow_half is not None and view.tables_due:
            yield from self.simulator.asked(self.slow_half)
        if self.raw["n_unplaceable"]:
            yield from on_demand(view)

    def actions_for(self, decision: Any) -> Iterator[tuple[int, ...]]:
        """The actions that may play `decision`, or several of one workload."""
        decisions = getattr(decision, "decisions", (decision,))
        choices: list[tuple[int, int, int]] = []
        if isinstance(decisions[-1], Start | Hold):
            choices = [self._turn_of(decisions)]
        elif isinstance(decisions[-1], Replicate):
            shown = self.window.waiting_job[: self.window.waiting_shown]
            choices = [(job, decisions[-1].region, BRING) for job in shown.tolist()]
        found = (candidate_of(self.window, *choice) for choice in choices)
        yield from ((candidate,) for candidate in found if candidate)

    def follow(self, policy: Decider, is_lesson: bool) -> None:
        """Play `policy` from now on; in a lesson also show instants where an agent is asked and it does nothing."""
        w = self.raw
        if self.policy is not policy or not w["is_asked"]:
            self._plan(policy)
        w["has_policy"], w["is_lesson"] = 1, is_lesson

    def said(self) -> int:
        """The candidate that plays the policy's turn, or one that copies tables next (in a lesson), or 0: the rest."""
        w = self.raw
        found, self._n_said = 0, len(self.coming)
        if w["turn_job"] != NO_JOB:
            self._n_said = self._turn_ends()
            found = int(candidate_of(self.window, *self._turn_of(self.coming[: self._n_said])))
        elif w["is_lesson"] and self.coming and isinstance(self.coming[0], Replicate):
            for (candidate,) in self.actions_for(self.coming[0]):
                brought = self.decisions((candidate,)) if w["legal"][candidate] else []
                if brought and brought == self.coming[: len(brought)]:
                    found, self._n_said = candidate, len(brought)
                    break
        w["said"], w["is_said"] = found, 1
        return found

    def answer(self) -> None:
        """Answer what the kernel of a step has stopped for; see geo_transition.py."""
        w, asks = self.raw, self.raw["asks"]
        if asks == ASKS_PLAN:
            assert self.policy is not None
            self._plan(self.policy)
            w["asks"] = SHOW
        elif asks == ASKS_ACTION and self.policy is not None and w["is_said"] and w["asked_for"] == w["said"]:
            self._carry_out(self._n_said)
            w["asks"], w["is_said"] = SHOW if w["said"] else LEAVE, 0
        elif asks == ASKS_ACTION:
            self.leave_policy()
            self.simulator.use(self.clock)
            w["asks"] = PLAY
        else:
            if w["has_policy"]:
                self._carry_out(len(self.coming))
            elif self.slow_half is not None:
                for decision in self.simulator.asked(self.slow_half):
                    self.simulator.apply(decision)
            w["asks"] = LEAVE

    def _plan(self, policy: Decider) -> None:
        self.policy, self.coming = policy, self.simulator.foresee(policy)
        self.raw["is_asked"] = 1
        self._tell()

    def _carry_out(self, count: int) -> None:
        for decision in self.coming[:count]:
            self.simulator.apply(decision)
        del self.coming[:count]
        self._tell()

    def _tell(self) -> None:
        """Modify the window: it says whose turn is next."""
        w, end = self.raw, self._turn_ends()
        w["turn_job"], w["has_rest"] = NO_JOB, end == 0 and bool(self.coming)
        if end:
            last = self.coming[end - 1]
            w["turn_job"], w["turn_cluster"], w["turn_way"] = self._turn_of(self.coming[:end])
            w["turn_ends"] = isinstance(last, Hold) and last.until_s is not None

    def _turn_ends(self) -> int:
        """The number of decisions of the next turn; 0: there is none."""
        return next((i + 1 for i, one in enumerate(self.coming) if isinstance(one, Start | Hold)), 0)

    def _turn_of(self, decisions: Any) -> tuple[int, int, int]:
        """Workload, cluster of its first part (NO_CLUSTER: it is held) and way of the decisions of a turn."""
        *before, last = decisions
        if isinstance(last, Hold):
            return last.job, NO_CLUSTER, AS_IT_IS
        way = IN_PLACE_OF_OTHERS if any(isinstance(one, Preempt) for one in before) else AS_IT_IS
        return last.job, int(self.simulator.topology.gpu_cluster[last.gpus[0]]), way

    def leave_policy(self) -> None:
        """Play no policy from now on."""
        self.policy, self.coming, self._n_said = None, [], 0
        for name, value in NOBODY.items():
            self.raw[name] = value

    def python_state(self) -> dict[str, Any]:
        """The policy that is played, and its decisions, for `take_python_state`."""
        return {"expert": self.policy, "coming": self.coming.copy(), "n_said": self._n_said}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue with what `python_state` returned, in a window whose bytes were just replaced."""
        self.policy, self.coming = python_state["expert"], python_state["coming"].copy()
        self._n_said = python_state["n_said"]


def slow_half_of(tables: str | Decider | None) -> Decider | None:
    """The policy for tables, by name or as given; None: none. InputError if it cannot decide about tables."""
    found = policy_of(tables) if isinstance(tables, str) else tables
    if found is None:
        return None
    slow = getattr(found, "slow", found)
    if slow is not None and not callable(getattr(slow, "decide", None)):
        raise InputError(f"tables = {tables!r}: expected a policy that places tables, such as 'tetris-v2', or None")
    return slow
