"""The observation and the actions of an agent, in any simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from ..simulator.base.arguments import check_flag, check_range, seconds
from ..simulator.base.codes import DECIDE
from ..simulator.base.decisions import Advance, Decision
from ..simulator.base.errors import InputError, InvalidDecision
from ..simulator.base.names import choose
from ..simulator.engine.base_simulator import Decider
from ..simulator.engine.simulator import Simulator
from ..simulator.events.initialise import write_window_order
from ..simulator.jobs.estimates import known_whole_s
from ..simulator.rules.rule import PLACERS, Rule
from .observation_layout import Part, Table, Tables, places_of
from .step import Kernels
from .window import KINDS, MAX_SLOTS, no_solvers

ORDERS = ("arrival", "shortest", "smallest", "classes")
NO_SOLVERS = no_solvers()
TIME_SCALE_S = 30 * 86400.0  # what times are scaled by where there is no horizon


class AgentInterface:
    """A short window of waiting and running jobs, its observation, and the decisions that its actions stand for.

    A subclass defines rows and actions; it passes on `slots` and the arguments after it.

    Args:
        kinds: candidates of a waiting and of a running slot.
        others: the parts of the action after the candidate.
        plans: candidates that belong to no slot.
        more: further tables of the observation, by name; no candidate belongs to them.
        slots, running_slots, order, placer, preemption, skip_idle, horizon_s: of the environment.

    Attributes:
        sizes: number of features of each part of the observation, in order; places: where each is.
        tables: layout of the flat observation.
        candidates: length of the first part of the action space; `parts`: of all parts.
        simulator: the run that it shows, after `attach`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    dtype: ClassVar[Callable[[], np.dtype]]
    columns: ClassVar[Mapping[str, Any]]  # of each part of the observation, in their order; see columns.py
    kernels: ClassVar[Kernels]  # see step.py
    orders: ClassVar[Sequence[str]] = ORDERS
    asked: Sequence[Any] = ()  # its own policies, which decide beside the agent
    values: ClassVar[str] = ""  # name of the features of the second part's values, if any

    def __init__(
        self,
        *,
        kinds: tuple[int, int],
        others: tuple[Part, ...],
        plans: int = 0,
        more: Mapping[str, Table] = MappingProxyType({}),
        slots: int = 32,
        running_slots: int = 16,
        order: str = "arrival",
        placer: str = "tier",
        preemption: bool = True,
        skip_idle: bool = True,
        horizon_s: float | None = None,
    ) -> None:
        self.order = choose(order, self.orders, "value of order")
        self.placer = choose(placer, PLACERS, "value of placer")
        check_range("slots", slots, 1, MAX_SLOTS)
        check_range("running_slots", running_slots, 0, MAX_SLOTS)
        check_flag("preemption", preemption)
        check_flag("skip_idle", skip_idle)
        self._keep(np.zeros(1, type(self).dtype()))
        w = self.window
        w.slots, w.running_slots, w.preemption, w.skip_idle = slots, running_slots, preemption, skip_idle
        w.level_weight[:] = 1.0
        given_s = seconds("horizon_s", horizon_s)
        w.log_horizon = math.log1p(TIME_SCALE_S if given_s == math.inf else given_s)
        columns = {name: len(own) for name, own in self.columns.items()}
        cluster, candidates = columns["cluster"], columns["candidates"]
        waiting_table = Table(slots, columns["queue"], kinds[0])
        running_table = Table(running_slots, columns["running"], kinds[1])
        holds = getattr(self.columns["candidates"], "hold", None)
        self.tables = Tables(cluster, (waiting_table, running_table, *more.values()), candidates, others, plans, holds)
        self.candidates = self.tables.candidates
        w.candidates, (w.per_waiting, w.per_running) = self.candidates, kinds
        self.parts = (self.candidates, *(part.size for part in others))
        self.sizes = {"cluster": cluster}
        tables = {"queue": waiting_table, "running": running_table, **more}
        self.sizes |= {name: table.rows * table.columns for name, table in tables.items()}
        value_columns = sum(part.size * part.features for part in others)
        if value_columns:
            self.sizes[self.values] = value_columns
        self.sizes["candidates"] = self.candidates * candidates
        self.places = places_of(self.sizes)
        self.simulator: Simulator

    def _keep(self, windows: np.ndarray) -> None:
        self.windows = windows.view(np.recarray)
        self.window = self.windows[0]
        raw = self.windows.view(np.ndarray).view(type(self).dtype())
        self.raw: np.void = raw[0]  # the same, by item: fast
        self.data: np.ndarray = raw.view(np.uint8)  # and its bytes

    def move_to(self, windows: np.ndarray) -> None:
        """Move the window into another array of length 1."""
        windows[:] = self.windows
        self._keep(windows)

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        self.simulator = simulator
        write_window_order(simulator.raw.record, self.ordered(simulator))
        w = self.raw
        w["placer"], w["pinned_job"], w["code"] = PLACERS[self.placer], -1, DECIDE
        w["n_kinds"] = 0
        if self.order == "classes":
            count = np.bincount(_kinds(simulator.workload.gpus), minlength=1)
            w["n_kinds"] = len(count)
            w["kind_rank"][: len(count) + 1] = [0, *np.cumsum(count)]

    def ordered(self, simulator: Simulator) -> np.ndarray:
        """The jobs of a run, int64 (jobs,), in the order of the window; for `classes` kind by kind (window.py)."""
        workload = simulator.workload
        if self.order == "arrival":
            return _first_numbers(len(workload))
        if self.order == "smallest":
            return np.argsort(workload.gpus, kind="stable")
        s = simulator.raw.record
        jobs = np.arange(len(workload))
        if self.order == "classes":  # by arrival, where nothing is known of run times
            length = jobs if simulator.estimates.hides else known_whole_s(s, jobs)
            return np.lexsort((length, _kinds(workload.gpus)))
        if simulator.estimates.hides:
            others = " or ".join(order for order in self.orders if order != self.order)
            raise InputError(f"order = 'shortest' needs run times, which estimates=none hides; expected {others}")
        return np.argsort(known_whole_s(s, jobs), kind="stable")

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced."""
        self.simulator = simulator

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: candidates stand for what a policy that is no rule decides; None: no more."""

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Rule:
        """The rule that holds for every policy in an environment with these keyword arguments; others are ignored."""
        cost = env_kwargs.get("preemption_cost", 0.0)
        cost = tuple(cost) if isinstance(cost, list) else cost
        placer, migrates = env_kwargs.get("placer", "tier"), bool(env_kwargs.get("migration", False))
        round_s = env_kwargs.get("round", 0.0)
        return Rule("fifo", placer=placer, preemption_cost=cost, round=round_s, migrates=migrates)

    def composed(self, policy: Decider, decision: Decision) -> Any:
        """The action's meaning when it begins with the `decision` of a policy: mostly that decision alone."""
        return decision

    def leaving(self) -> Iterable[Decision]:
        """Decisions at the end of the instant, for any policy; each is carried out before the next is drawn."""
        return ()

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """The present: features, float32 (F,), and the mask of all action parts, int8 (M,)."""
        features = np.zeros(sum(self.sizes.values()), np.float32)
        mask = np.zeros(sum(self.parts), np.int8)
        self.look_into(features, mask)
        return features, mask

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """As `look`, into arrays that hold zeros or what was last written there."""
        self.kernels.turn(self.simulator.records, self.windows, self.solvers, 0, features, mask)

    @property
    def solvers(self) -> np.recarray:
        """What the solvers of the run remember, one record."""
        return NO_SOLVERS

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        w = self.window
        return bool(w.can_act) or (not w.skip_idle and self.simulator.state.waiting > 0)

    def action(self, decision: Any) -> np.ndarray:
        """The action, int64 (parts,), that plays `decision` in the present window: its `decisions` are that one.

        `decision` may be several, see `composed`. InvalidDecision: there is no such action.
        """
        if isinstance(decision, Advance):
            return np.zeros(len(self.parts), np.int64)
        wanted = getattr(decision, "decisions", (decision,))
        likely: list[Any] | None = None
        why = ": no candidate of this environment stands for it"
        for action in self.actions_for(decision):
            if not self.raw["legal"][action[0]]:
                why = why if likely else " is not among the legal candidates of this environment now"
                continue
            found = self.decisions(action)
            if len(found) == len(wanted) and all(map(_is_met, wanted, found)):
                return np.array(action, np.int64)
            if likely is None:
                likely, why = found, f": what the environment does here is {', '.join(map(repr, found))}"
        raise InvalidDecision(f"{decision!r}{why}{self.hint(decision, likely)}")

    def actions_for(self, decision: Any) -> Iterator[tuple[int, ...]]:
        """The actions that may play `decision`, the likeliest first; few, since each legal one is rehearsed.

        InvalidDecision: the window does not show its job.
        """
        raise TypeError(f"{type(self).__name__} does not say which actions may play a decision: define actions_for")

    def hint(self, decision: Any, likely: list[Any] | None) -> str:
        """The end of the message that no action plays `decision`: what to do; `likely`: what one does instead."""
        return ""

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of an action now, in order; empty: none, and the same instant is shown again.

        They are those of a rehearsal; that of 0, or of an illegal candidate, is `Advance`.
        """
        if not 0 < action[0] < self.candidates or not self.raw["legal"][action[0]]:
            return [Advance()]
        return self.simulator.rehearse(self.kernels.rehearsed, self.windows, self.solvers, np.array(action, np.int64))

    def is_plain(self, action: np.ndarray) -> bool:
        """Whether the candidate of an action, int64 (parts,), suffices: the other parts act as 0."""
        raw = np.zeros_like(action)
        raw[0] = action[0]
        return np.array_equal(action, raw) or self.decisions(action) == self.decisions(raw)


@lru_cache(maxsize=16)
def _first_numbers(count: int) -> np.ndarray:
    numbers = np.arange(count, dtype=np.int64)
    numbers.setflags(write=False)
    return numbers


def _kinds(gpus: np.ndarray) -> np.ndarray:
    """Kinds of gangs in the order `classes`, int64: 0 for one GPU, then up to 2, 4, 8, ..."""
    return np.minimum(np.ceil(np.log2(gpus)).astype(np.int64), KINDS - 1)


def _is_met(wanted: Decision, found: Decision) -> bool:
    """Whether a decision is the wanted one; batches that this leaves to the simulator may be any."""
    return type(found) is type(wanted) and all(
        getattr(found, name) == value
        for name, value in vars(wanted).items()
        if value is not None or name not in ("batch", "sub_batch")
    )


def slot_of(shown: np.ndarray, decision: Any) -> int:
    """The slot that shows the job of a decision; InvalidDecision if none does."""
    slots = np.flatnonzero(shown == decision.job)
    if len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show job {decision.job}; give it more slots")
    return int(slots[0])
