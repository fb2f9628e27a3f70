"""The window of Geo-v0 on any simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...policies.mast.copies_on_demand import on_demand
from ...policies.mast.global_scheduler import write_ranking
from ...policies.mast.hardware import Hardware
from ...policies.mast.mast_record import MAST
from ...policies.mast.regional_scheduler import write_regions
from ...policies.mast.type_choices import TypeChoices
from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Decision, Hold, Preempt, Replicate, Start
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.compiler.jit import direct
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.record.solver_records import SolverRecord
from ...simulator.rules.rule import Rule
from ..agent_interface import ORDERS
from ..observation_layout import Table
from ..python_step import ActionOutcome, PythonStepInterface
from ..shadow import ShadowSimulator
from ..window import NO_JOB
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .geo_window import BRING, MAX_CLUSTERS, NO_CLUSTER, candidate_of, kinds_of, plan_now, start_of, window_dtype
from .observation import look
from .table_bringing import MAX_BRINGS
from .workload_decision import WorkloadDecision, workload_decisions_of

MOST_REGION_SLOTS = 64
TABLES = "tetris-v2"
PREEMPTS = ("lower", "any")
BRINGS = 2
ROUND_S = 34.0  # paper mast, Sec. 5.4: the mean time of a GMS-scan pass


class GeoInterface(PythonStepInterface):
    """The window of Geo-v0; the arguments are those of `GeoEnv`.

    Attributes:
        clock: the rule that holds for every policy: decision points come at the multiples of its round.
        turns: the expert's decisions at this instant that are still to be carried out.
        is_lesson: whether instants are shown where an agent is asked and the expert does nothing.
    """

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "regions": REGIONS, "candidates": CANDIDATES}
    )
    orders = ("priority", *ORDERS)
    of_instant = ("expert", "is_expert_only", "pending_decisions", "_rest", "_is_asked", "is_lesson")

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
        self._of_expert = ShadowSimulator()
        self._features = np.zeros(sum(self.sizes.values()), np.float32)
        self._mask = np.zeros(self.candidates, np.int8)
        self._codes: dict[Any, Callable[..., Any]] = {}
        self._place: Callable[[], np.recarray] | None = None
        self.is_lesson = False
        self._clear()

    def share(self, features: np.ndarray, mask: np.ndarray, solvers: Callable[[], np.recarray]) -> None:
        """Write from now on where a kernel does: float32 (F,), int8 (candidates,), and a record of MAST."""
        self._features, self._mask, self._place = features, mask, solvers

    @property
    def solvers(self) -> np.recarray:
        """What MAST remembers of the run: an array of one record."""
        return self._own if self._place is None else self._place()

    @property
    def _solver(self) -> np.void:
        """The same by item."""
        return SolverRecord(MAST, self.solvers, self.simulator.capacity).record

    def _clear(self) -> None:
        self.expert, self.is_expert_only = None, False
        self.pending_decisions: list[WorkloadDecision] = []
        self._rest: list[Decision] = []  # of the expert, after its turns
        self._forget()
        self._is_asked = False

    def _say(self, is_first: bool, agent_done: bool) -> None:
        self.raw["is_first"], self.raw["agent_done"] = is_first, agent_done

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        name, slots, needed = simulator.workload.name, self.window.region_slots, simulator.topology.num_regions
        if simulator.workload.geo is None:
            raise InputError(f"workload {name!r} asks nothing of regions; expected one that does, as mast-like")
        if needed > slots:
            raise InputError(f"region_slots = {slots}: expected {needed} or more, one a region")
        super().attach(simulator)
        self._clear()
        self._say(is_first=False, agent_done=False)
        if self._place is None:
            self._own = MAST.empty(simulator.capacity)
        hardware, choices = Hardware.of(simulator.topology, simulator.workload.geo), TypeChoices.of(simulator.view)
        write_regions(self.solvers, self._solver, hardware, len(simulator.workload), choices)
        write_ranking(self._solver, simulator.workload.geo)

    def ordered(self, simulator: Simulator) -> np.ndarray:
        """The jobs of a run, int64 (jobs,), in the order of the window."""
        geo = simulator.workload.geo
        if self.order != "priority" or geo is None:
            return super().ordered(simulator)
        return np.argsort(geo.level, kind="stable")

    def refresh(self) -> None:
        """Show the present of the run."""
        is_first = self._is_new_run()
        if self._is_new_instant():
            self._say(is_first=is_first, agent_done=False)
            self._is_asked = False
            if self.expert is not None:
                self._ask_expert()
        self._look()

    def finish(self) -> None:
        """Show an episode that has ended, with nothing to decide."""
        self.raw["agent_done"], self.pending_decisions, self._rest = 1, [], []
        self._look()

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        w = self.raw
        if w["agent_done"]:
            return False
        waits = not w["skip_idle"] and self.simulator.raw.record["waiting"] > 0
        acts = w["can_act"] and (self.expert is None or self.is_lesson)
        return bool(w["is_first"] or self.pending_decisions or waits or acts)

    def _look(self) -> None:
        """Look; turn the window to the expert's next decision only if no candidate stands for it."""
        w = self.raw
        w["pinned_job"], w["expert_job"], w["expert_cluster"] = NO_JOB, NO_JOB, NO_CLUSTER
        self._show()
        self._let_expert_hold()
        self.is_expert_only = bool(self.pending_decisions) and self._candidate(self.pending_decisions[0]) is None
        if self.is_expert_only:
            turn = self.pending_decisions[0]
            w["pinned_job"] = w["expert_job"] = turn.job
            w["expert_cluster"], w["expert_way"] = turn.cluster, turn.way
            self._show()
            self._let_expert_hold()

    def _let_expert_hold(self) -> None:
        if self.pending_decisions and self.pending_decisions[0].ends_by_itself:
            found = candidate_of(self.window, *self.pending_decisions[0].choice)
            if found:
                self._mask[found] = 1

    def _show(self) -> None:
        self._call(look, self.simulator.records, self.windows, self.solvers, 0, self._features, self._mask)

    def _call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """`kernel(*arguments)`, whose types differ only in the capacity of the records."""
        key = kernel, self.simulator.capacity
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = direct(kernel, *arguments)
        return code(*arguments)

    def leaving(self) -> Iterator[Decision]:
        """Decisions about tables at the end of the present instant, or the rest of the expert's."""
        if self.expert is not None:
            yield from self._rest
            return
        view = self.simulator.view
        if self.slow_half is not None and view.tables_due:
            yield from self.simulator.asked(self.slow_half)
        if self.raw["n_unplaceable"]:
            yield from on_demand(view)

    def choice(self, candidate: int) -> tuple[int, int, int] | None:
        """Workload, cluster and way of a candidate; None: it advances. With the way BRING, a region for the cluster."""
        return start_of(self.window, candidate) if candidate else None

    def _candidate(self, turn: WorkloadDecision) -> int | None:
        found = candidate_of(self.window, *turn.choice)
        return found if found and self._mask[found] else None

    def legal(self) -> np.ndarray:
        """Legal candidates, int8 (candidates,)."""
        return self._mask

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Play a legal candidate; its decisions are to be carried out before the next `refresh`."""
        self.raw["is_first"] = 0
        choice = self.choice(candidate)
        if (
            self.expert is not None
            and choice is not None
            and candidate == self._next_brought()
            and not self.pending_decisions
        ):
            brought = self._decided(*choice)
            del self._rest[: len(brought)]
            return ActionOutcome(tuple(brought))
        if self.expert is None or choice != (self.pending_decisions[0].choice if self.pending_decisions else None):
            self.drop_expert()
        if choice is None:
            self.raw["agent_done"] = 1
            return ActionOutcome(())
        if self.expert is not None:
            return ActionOutcome(self.pending_decisions.pop(0).decisions)
        return ActionOutcome(tuple(self._decided(*choice)))

    def _decided(self, job: int, cluster: int, way: int) -> list[Decision]:
        if way == BRING:
            return list(self._brought(job, cluster))
        if cluster == NO_CLUSTER:
            return [Hold(job)]
        leavers = self._call(plan_now, self.simulator.records, 0, self.solvers, job, cluster, way)
        assert leavers >= 0
        units = int(self.simulator.raw.record["gpus"][job])
        leaving = self._solver["leaving"][:leavers].tolist()
        return [*(Preempt(other) for other in leaving), Start(job, self._solver["taken"][:units].tolist())]

    def _brought(self, job: int, region: int) -> Iterator[Replicate]:
        view = self.simulator.view
        coming = {table for table, _, target, _ in view.transfers if target == region}
        for table in view.tables_of(job).tolist():
            stays = region in view.copies(table) and region not in view.doomed(table)
            if not stays and table not in coming:
                yield Replicate(table, region)

    def follow(self, policy: Decider) -> None:
        """Offer the choice of `policy` as a candidate from now on, also at instants that would be passed over."""
        if self.expert is policy and self._is_asked:
            return
        self._is_new_instant()  # kernels played the steps before
        self.expert = policy
        self._ask_expert()
        self._look()

    def _ask_expert(self) -> None:
        assert self.expert is not None
        view = self.simulator.view
        self.pending_decisions, self._rest = workload_decisions_of(
            view, self._of_expert.decisions(self.simulator, self.expert)
        )
        self._is_asked = True

    def drop_expert(self) -> None:
        """Play no expert from now on."""
        self.expert, self.pending_decisions, self._rest, self._is_asked = None, [], [], False

    def expert_action(self) -> np.ndarray:
        """The action, int64 (1,), that plays the expert's next decision; in a lesson also one that copies tables."""
        candidate = self._candidate(self.pending_decisions[0]) if self.pending_decisions else self._next_brought()
        assert candidate is not None
        return np.array([candidate], np.int64)

    def _next_brought(self) -> int:
        """In a lesson the candidate for the expert's next copies, after its turns; 0: none."""
        count = next((i for i, one in enumerate(self._rest) if not isinstance(one, Replicate)), len(self._rest))
        if count == 0 or not self.is_lesson:
            return 0
        for candidate in np.flatnonzero(self._mask)[1:].tolist():
            job, region, way = start_of(self.window, candidate)
            if way == BRING and region == self._rest[0].region:  # type: ignore[union-attr]
                brought = list(self._brought(job, region))
                if brought == self._rest[: len(brought)]:
                    return candidate
        return 0

    def write(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Write features, float32 (F,), and the mask, int8 (M,), as last looked at."""
        features[:] = self._features
        mask[:] = self._mask

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the window has the stage."""
        return {}

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Continue in a run whose record was just replaced (`resume`)."""
        self._clear()
        self._is_new_instant()
        self._look()


def slow_half_of(tables: str | Decider | None) -> Decider | None:
    """The policy for tables, by name or as given; None: none. InputError if it cannot decide about tables."""
    found = policy_of(tables) if isinstance(tables, str) else tables
    if found is None:
        return None
    slow = getattr(found, "slow", found)
    if slow is not None and not callable(getattr(slow, "decide", None)):
        raise InputError(f"tables = {tables!r}: expected a policy that places tables, such as 'tetris-v2', or None")
    return slow
