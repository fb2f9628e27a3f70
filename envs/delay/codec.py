"""Actions and decisions, one to the other, for Delay-v0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...policies.loop import loop_calls
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
from ...simulator.base.errors import InvalidDecision
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.engine.simulator import Decider, Simulator
from ...simulator.running.gpu_allocation import tier_of_gang
from ..slots import slot_of
from .delay_window import (
    DEFRAGMENT_KIND,
    HOLD_KIND,
    HOLD_TIERS,
    MIGRATE_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    ROOM_KIND,
    UNTIL_OFFER,
    UNTIL_TIMER,
    find_moved,
    find_target,
    target_of,
)

DELAYS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)


PARTS = 3  # candidate, delay bucket, tier of the hold


@dataclass(frozen=True)
class MakeRoom:
    """What a policy that may stop others decides at once: who makes way for a job, and its start.

    Attributes:
        job: which starts.
        decisions: all of it, in order.
    """

    job: int
    decisions: tuple[Decision, ...]


def composed(simulator: Simulator, policy: Decider, decision: Decision) -> Decision | MakeRoom:
    """`decision`, or what begins with it, if the policy that gave it makes room for a job that starts then."""
    following = getattr(policy, "following", None)
    if following is None or not isinstance(decision, Preempt | Migrate):
        return decision
    rest = following(simulator.view)
    return MakeRoom(rest[-1].job, (decision, *rest)) if rest else decision


def encode(simulator: Simulator, window: np.record, decision: Decision | MakeRoom) -> np.ndarray:
    """The action (candidate, delay bucket, tier of the hold), int64 (3,), that plays `decision` in the window now.

    Raises:
        InvalidDecision: the window offers no such action: the job is not shown, or the environment's placer gives other
            GPUs than the decision asks for.
    """
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
        first = 1 + PER_WAITING * slot_of(window.waiting_job, decision)
        if isinstance(decision, Start):
            candidate = first + kind_of(simulator, decision)
        elif isinstance(decision, MakeRoom):
            candidate = first + ROOM_KIND
        else:
            candidate = first + HOLD_KIND
            bucket, tier = _hold_parts(simulator, window, decision)
    else:
        first = 1 + PER_WAITING * int(window.slots) + PER_RUNNING * slot_of(window.running_job, decision)
        candidate = first + (PREEMPT_KIND if isinstance(decision, Preempt) else kind_of(simulator, decision))
    if not window.legal[candidate]:
        hint = _hint(simulator, window, decision)
        raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now{hint}")
    if isinstance(decision, Start | Migrate):
        _expect_same_gpus(simulator, window, decision)
    if isinstance(decision, MakeRoom):
        _expect_same_way(simulator, decision)
    return np.array([candidate, bucket, tier], np.int64)


def decode(simulator: Simulator, window: np.record, action: Any) -> tuple[Decision, ...]:
    """What `action` (candidate, delay bucket, tier of the hold) stands for in the window as it was last filled.

    Advance for the candidate 0 and for one that is not legal; a delay or tier out of range is the nearest one.
    """
    candidate, delay, tier = (int(part) for part in action)
    s = simulator.state
    last_waiting = PER_WAITING * int(window.slots)
    count = 1 + last_waiting + PER_RUNNING * int(window.running_slots)
    if not 0 < candidate < count or not window.legal[candidate]:
        return (Advance(),)
    if candidate <= last_waiting:
        slot, kind = divmod(candidate - 1, PER_WAITING)
        job = int(window.waiting_job[slot])
        if kind == HOLD_KIND:
            delay = min(max(delay, 0), int(window.n_delays) - 1)
            return (_hold(simulator, window, job, delay, MACHINE + min(max(tier, 0), HOLD_TIERS - 1)),)
        if kind == ROOM_KIND:
            return tuple(simulator.rehearse(loop_calls.make_room, job))
        find_target(s, window, job, kind)
        return (Start(job, s.gang[: s.gang_size].tolist()),)
    slot, kind = divmod(candidate - 1 - last_waiting, PER_RUNNING)
    job = int(window.running_job[slot])
    if kind == PREEMPT_KIND:
        return (Preempt(job),)
    find_moved(s, window, job, kind)
    return (Migrate(job, s.gang[: s.gang_size].tolist()),)


def _hold(simulator: Simulator, window: np.record, job: int, delay: int, tier: int) -> Hold:
    """The hold of a delay bucket: until the next offer it asks for no tier."""
    if delay == UNTIL_TIMER:
        until_s = loop_calls.timer_end_s(simulator.records, 0, job, tier)
    else:
        until_s = float(simulator.state.now_s + window.delay_s[delay])
    return Hold(job) if until_s == math.inf else Hold(job, until_s, tier)


def _tier(simulator: Simulator, gpus: tuple[int, ...]) -> int:
    s = simulator.state
    s.gang[: len(gpus)] = gpus
    s.gang_size = len(gpus)
    return int(tier_of_gang(s))


def kind_of(simulator: Simulator, decision: Start | Migrate) -> int:
    """Which candidate of its job's slot stands for a decision, by the tier of its GPUs."""
    target = target_of(_tier(simulator, decision.gpus))
    if isinstance(decision, Start):
        return int(target)
    return MIGRATE_KIND if target < target_of(int(simulator.state.tier[decision.job])) else DEFRAGMENT_KIND


def _hint(simulator: Simulator, window: np.record, decision: Decision | MakeRoom) -> str:
    """What can be done so that a decision is among the legal candidates."""
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
    """Delay bucket and tier of a hold."""
    if decision.until_s is None and decision.tier is None:
        return UNTIL_OFFER, 0
    if decision.until_s is None or decision.tier not in (MACHINE, RACK):
        raise InvalidDecision(
            f"{decision!r}: in this environment a hold until the next offer has no tier, and any other starts by "
            f"itself at the tier {MACHINE} (machine) or {RACK} (rack)"
        )
    if decision.until_s == loop_calls.timer_end_s(simulator.records, 0, decision.job, decision.tier):
        return UNTIL_TIMER, decision.tier - MACHINE
    wanted = decision.until_s - float(simulator.state.now_s)
    delays = window.delay_s[: window.n_delays]
    near = [i for i, delay in enumerate(delays) if math.isclose(delay, wanted, rel_tol=1e-9)]
    if not near:
        known = ", ".join(f"{delay:g}" for delay in delays[UNTIL_TIMER + 1 :])
        raise InvalidDecision(
            f"{decision!r}: {wanted:g} s is none of this environment's delays; give it delays=(..., {wanted:g}), not "
            f"only {known}"
        )
    return near[0], decision.tier - MACHINE


def _expect_same_gpus(simulator: Simulator, window: np.record, decision: Start | Migrate) -> None:
    s = simulator.state
    if isinstance(decision, Start):
        find_target(s, window, decision.job, kind_of(simulator, decision))
    else:
        find_moved(s, window, decision.job, kind_of(simulator, decision))
    found = tuple(s.gang[: s.gang_size].tolist())
    if found != decision.gpus:
        raise InvalidDecision(
            f"{decision!r}: the environment's placer gives GPUs {list(found)}; give the environment the policy's placer"
        )


def _expect_same_way(simulator: Simulator, asked: MakeRoom) -> None:
    found: Sequence[Decision] = simulator.rehearse(loop_calls.make_room, asked.job)
    if tuple(found) != asked.decisions:
        raise InvalidDecision(f"{asked!r}: the environment makes room in another way: {list(found)}")
