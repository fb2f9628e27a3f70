"""The window of Delay-v0 on any simulator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np

from ...policies.loop import loop_calls
from ...simulator.base.arguments import numbers
from ...simulator.base.decisions import (
    GROUP_DECISIONS,
    TABLE_DECISIONS,
    Advance,
    Decision,
    Hold,
    Migrate,
    Preempt,
    Resize,
    Shift,
    Start,
)
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import choose
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.simulator import Simulator
from ...simulator.rules.rule import Rule
from ...simulator.running.gpu_allocation import tier_of_gang
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part
from ..window import NO_JOB, choice_of, force_gpus, running_candidate, unforce_gpus, waiting_candidate
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .delay_transition import turn
from .delay_window import (
    DEFRAGMENT_KIND,
    HOLD_KIND,
    HOLD_TIERS,
    KNOWN,
    MAX_DELAYS,
    MIGRATE_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    RAN_JOB,
    ROOM_KIND,
    UNTIL_OFFER,
    UNTIL_TIMER,
    find_moved,
    find_target,
    hold_of,
    target_of,
    window_dtype,
)
from .moves import RUNNING_ORDERS
from .terms import terms

DELAYS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)
PARTS = 3  # candidate, delay bucket, tier of the hold


@dataclass(frozen=True)
class MakeRoom:
    """All decisions of one instant by which a policy stops or moves jobs, and starts `job` last."""

    job: int
    decisions: tuple[Decision, ...]


class DelayInterface(AgentInterface):
    """The window of Delay-v0; the arguments are those of `DelayEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    turn = staticmethod(turn)

    def __init__(self, *, delays: tuple[float, ...] = DELAYS_S, running_order: str = "priority", **window: Any) -> None:
        choose(running_order, RUNNING_ORDERS, "value of running_order")
        delays = numbers("delays", delays)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        buckets = UNTIL_TIMER + 1 + len(delays)
        others = Part(buckets, CANDIDATES.hold), Part(HOLD_TIERS, CANDIDATES.hold)
        super().__init__(kinds=(PER_WAITING, PER_RUNNING), others=others, **window)
        self.window.running_order = RUNNING_ORDERS[running_order]
        self.window.n_delays = buckets
        self.window.delay_s[:buckets] = (math.inf, math.inf, *delays)
        self._jobs_shown = KNOWN

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        super().attach(simulator)
        w, jobs = self.raw, len(simulator.workload)
        unforce_gpus(w)
        w["known_job"] = w["written_job"] = w["written_runner"] = NO_JOB
        w["ran"][: max(self._jobs_shown, jobs), RAN_JOB] = (
            NO_JOB  # no more than are in use: each is a line of the cache
        )
        self._jobs_shown = jobs

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced."""
        super().resume(simulator)
        self._jobs_shown = KNOWN

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: a start's or move's candidate stands for a policy's GPUs; InvalidDecision: illegal."""
        unforce_gpus(self.raw)
        if isinstance(decision, Start | Migrate):
            check_gang(self.simulator, decision)
            force_gpus(self.raw, decision.job, kind_of(self.simulator, decision), decision.gpus)

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Rule:
        """The rule that holds for every policy in an environment with these keyword arguments; see `terms.terms`."""
        return terms(**{key: value for key, value in env_kwargs.items() if key in signature(terms).parameters})

    def composed(self, policy: Decider, decision: Decision) -> Decision | MakeRoom:
        """`decision`, or all that follows from it if its policy makes room for a job."""
        following = getattr(policy, "following", None)
        if following is None or not isinstance(decision, Preempt | Migrate):
            return decision
        rest = following(self.simulator.view)
        return MakeRoom(rest[-1].job, (decision, *rest)) if rest else decision

    def action(self, decision: Decision | MakeRoom) -> np.ndarray:
        """The action (candidate, delay bucket, hold tier), int64 (3,), that plays `decision` in the present window.

        InvalidDecision: the job is not shown, or the environment's placer gives other GPUs than the decision names.
        """
        simulator, window = self.simulator, self.window
        if isinstance(decision, Advance):
            return np.zeros(PARTS, np.int64)
        if isinstance(decision, Resize):
            raise InvalidDecision(f"{decision!r}: jobs have one size in this environment")
        if isinstance(decision, Shift) or getattr(decision, "time_shift", None) is not None:
            raise InvalidDecision(f"{decision!r}: nothing in this environment stands for a time-shift")
        if isinstance(decision, TABLE_DECISIONS + GROUP_DECISIONS):
            noun = "tables" if isinstance(decision, TABLE_DECISIONS) else "groups of jobs"
            raise InvalidDecision(f"{decision!r}: there are no {noun} in this environment")
        bucket, tier = UNTIL_OFFER, 0
        if isinstance(decision, Start | Hold | MakeRoom):
            slot, kind = slot_of(window.waiting_job, decision), ROOM_KIND
            if isinstance(decision, Start):
                kind = kind_of(simulator, decision)
            elif isinstance(decision, Hold):
                kind = HOLD_KIND
                bucket, tier = _hold_parts(simulator, window, decision)
            candidate = waiting_candidate(window, slot, kind)
        else:
            slot = slot_of(window.running_job, decision)
            kind = PREEMPT_KIND if isinstance(decision, Preempt) else kind_of(simulator, decision)
            candidate = running_candidate(window, slot, kind)
        if not window.legal[candidate]:
            hint = _hint(simulator, window, decision)
            raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now{hint}")
        if isinstance(decision, Start | Migrate):
            _expect_same_gpus(simulator, window, decision)
        if isinstance(decision, MakeRoom):
            found: Sequence[Decision] = simulator.rehearse(loop_calls.make_room, decision.job)
            if tuple(found) != decision.decisions:
                raise InvalidDecision(f"{decision!r}: the environment makes room in another way: {list(found)}")
        return np.array([candidate, bucket, tier], np.int64)

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of `action` (candidate, delay bucket, hold tier); numbers out of range become the nearest."""
        simulator, window = self.simulator, self.window
        candidate, delay, tier = (int(part) for part in action)
        s = simulator.state
        if not 0 < candidate < window.candidates or not window.legal[candidate]:
            return [Advance()]
        is_waiting, _, job, kind = choice_of(window, candidate)
        if not is_waiting:
            if kind == PREEMPT_KIND:
                return [Preempt(job)]
            find_moved(s, window, job, kind)
            return [Migrate(job, s.gang[: s.gang_size].tolist())]
        if kind == HOLD_KIND:
            until_s, worst = hold_of(s, window, job, delay, tier)
            return [Hold(job) if until_s == math.inf else Hold(job, until_s, worst)]
        if kind == ROOM_KIND:
            return list(simulator.rehearse(loop_calls.make_room, job))
        find_target(s, window, job, kind)
        return [Start(job, s.gang[: s.gang_size].tolist())]


def _tier(simulator: Simulator, gpus: tuple[int, ...]) -> int:
    s = simulator.state
    s.gang[: len(gpus)] = gpus
    s.gang_size = len(gpus)
    return int(tier_of_gang(s))


def kind_of(simulator: Simulator, decision: Start | Migrate) -> int:
    """The candidate of a decision among those of its job's slot, by the tier of its GPUs."""
    target = target_of(_tier(simulator, decision.gpus))
    if isinstance(decision, Start):
        return int(target)
    return MIGRATE_KIND if target < target_of(int(simulator.state.tier[decision.job])) else DEFRAGMENT_KIND


def _hint(simulator: Simulator, window: np.record, decision: Decision | MakeRoom) -> str:
    if isinstance(decision, Preempt | Migrate | MakeRoom) and not window.preemption:
        return "; give the environment preemption=True"
    if isinstance(decision, Migrate) and not simulator.state.migrates and not simulator.state.waiting:
        return "; give the environment migration=True, or move jobs only while others wait"
    if isinstance(decision, Preempt) and not simulator.state.waiting:
        return "; stop jobs only while others wait"
    if isinstance(decision, Preempt | Migrate):
        return "; leave jobs alone that have started, or lost their GPUs, at this instant, or whose lease runs"
    return ""


def _hold_parts(simulator: Simulator, window: np.record, decision: Hold) -> tuple[int, int]:
    if decision.until_s is None and decision.tier is None:
        return UNTIL_OFFER, 0
    if decision.until_s is None or decision.tier not in (MACHINE, RACK):
        tiers = f"the tier {MACHINE} (machine) or {RACK} (rack)"
        rule = f"a hold until the next offer has no tier, and any other starts by itself at {tiers}"
        raise InvalidDecision(f"{decision!r}: in this environment {rule}")
    if decision.until_s == hold_of(simulator.state, window, decision.job, UNTIL_TIMER, decision.tier - MACHINE)[0]:
        return UNTIL_TIMER, decision.tier - MACHINE
    wanted = decision.until_s - float(simulator.state.now_s)
    delays = window.delay_s[: window.n_delays]
    near = [i for i, delay in enumerate(delays) if math.isclose(delay, wanted, rel_tol=1e-9)]
    if not near:
        known = ", ".join(f"{delay:g}" for delay in delays[UNTIL_TIMER + 1 :])
        given = f"give it delays=(..., {wanted:g}), not only {known}"
        raise InvalidDecision(f"{decision!r}: {wanted:g} s is none of this environment's delays; {given}")
    return near[0], decision.tier - MACHINE


def _expect_same_gpus(simulator: Simulator, window: np.record, decision: Start | Migrate) -> None:
    s = simulator.state
    if isinstance(decision, Start):
        find_target(s, window, decision.job, kind_of(simulator, decision))
    else:
        find_moved(s, window, decision.job, kind_of(simulator, decision))
    found = tuple(s.gang[: s.gang_size].tolist())
    if found != decision.gpus:
        given = f"the environment's placer gives GPUs {list(found)}"
        raise InvalidDecision(f"{decision!r}: {given}; give the environment the policy's placer")
