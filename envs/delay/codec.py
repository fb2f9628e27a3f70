"""Actions and decisions, one to the other, for Delay-v0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...simulator import rows
from ...simulator.decisions import (
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
from ...simulator.engine import Simulator
from ...simulator.errors import InvalidDecision
from ...simulator.kernels.placement import tier_of_gang
from ..slots import slot_of
from .window import (
    HOLD_KIND,
    MIGRATE_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    UNTIL_OFFER,
    UNTIL_TIMER,
    find_move,
    find_target,
    target_of,
)

DELAYS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)


def encode(simulator: Simulator, window: np.record, decision: Decision) -> np.ndarray:
    """The action (candidate, delay bucket), int64 (2,), that plays `decision` in the window as it stands.

    Raises:
        InvalidDecision: the window offers no such action: the job is not shown, or the environment's placer gives other
            GPUs than the decision asks for.
    """
    if isinstance(decision, Advance):
        return np.zeros(2, np.int64)
    if isinstance(decision, Resize):
        raise InvalidDecision(f"{decision!r}: jobs have one size in this environment")
    if isinstance(decision, Shift) or getattr(decision, "time_shift", None) is not None:
        raise InvalidDecision(f"{decision!r}: nothing in this environment stands for a time-shift")
    if isinstance(decision, TABLE_DECISIONS):
        raise InvalidDecision(f"{decision!r}: there are no tables in this environment")
    bucket = UNTIL_OFFER
    if isinstance(decision, Start):
        tier = _tier(simulator, decision.gpus)
        candidate = 1 + PER_WAITING * slot_of(window.waiting_job, decision) + target_of(tier)
    elif isinstance(decision, Hold):
        candidate = 1 + PER_WAITING * slot_of(window.waiting_job, decision) + HOLD_KIND
        bucket = _bucket(simulator, window, decision)
    else:
        kind = PREEMPT_KIND if isinstance(decision, Preempt) else MIGRATE_KIND
        first = 1 + PER_WAITING * int(window.slots)
        candidate = first + PER_RUNNING * slot_of(window.running_job, decision) + kind
    if not window.legal[candidate]:
        raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now")
    if isinstance(decision, Start | Migrate):
        _expect_same_gpus(simulator, window, decision)
    return np.array([candidate, bucket], np.int64)


def decode(simulator: Simulator, window: np.record, action: Any) -> Decision:
    """The decision that `action` (candidate, delay bucket) stands for in the window as it was last filled.

    Advance for the candidate 0 and for one that is not legal; a delay out of range is the nearest one.
    """
    candidate, delay = int(action[0]), int(action[1])
    s = simulator.state
    last_waiting = PER_WAITING * int(window.slots)
    count = 1 + last_waiting + PER_RUNNING * int(window.running_slots)
    if not 0 < candidate < count or not window.legal[candidate]:
        return Advance()
    if candidate <= last_waiting:
        slot, kind = divmod(candidate - 1, PER_WAITING)
        job = int(window.waiting_job[slot])
        if kind == HOLD_KIND:
            return Hold(job, _until_s(simulator, window, job, min(max(delay, 0), int(window.n_delays) - 1)))
        find_target(s, window, job, kind)
        return Start(job, s.gang[: s.gang_size].tolist())
    slot, kind = divmod(candidate - 1 - last_waiting, PER_RUNNING)
    job = int(window.running_job[slot])
    if kind == PREEMPT_KIND:
        return Preempt(job)
    find_move(s, window, job)
    return Migrate(job, s.gang[: s.gang_size].tolist())


def _until_s(simulator: Simulator, window: np.record, job: int, delay: int) -> float | None:
    if delay == UNTIL_TIMER:
        until_s = rows.present_timer_s(simulator.records, 0, job)
    else:
        until_s = float(simulator.state.now_s + window.delay_s[delay])
    return None if until_s == math.inf else until_s


def _tier(simulator: Simulator, gpus: tuple[int, ...]) -> int:
    s = simulator.state
    s.gang[: len(gpus)] = gpus
    s.gang_size = len(gpus)
    return int(tier_of_gang(s))


def _bucket(simulator: Simulator, window: np.record, decision: Hold) -> int:
    if decision.until_s is None:
        return UNTIL_OFFER
    if decision.until_s == rows.present_timer_s(simulator.records, 0, decision.job):
        return UNTIL_TIMER
    wanted = decision.until_s - float(simulator.state.now_s)
    delays = window.delay_s[: window.n_delays]
    near = [i for i, delay in enumerate(delays) if math.isclose(delay, wanted, rel_tol=1e-9)]
    if not near:
        raise InvalidDecision(f"{decision!r}: {wanted:g} s is none of this environment's delays")
    return near[0]


def _expect_same_gpus(simulator: Simulator, window: np.record, decision: Start | Migrate) -> None:
    s = simulator.state
    if isinstance(decision, Start):
        find_target(s, window, decision.job, target_of(_tier(simulator, decision.gpus)))
    else:
        find_move(s, window, decision.job)
    found = tuple(s.gang[: s.gang_size].tolist())
    if found != decision.gpus:
        raise InvalidDecision(f"{decision!r}: the environment's placer gives GPUs {list(found)}; give it that placer")
