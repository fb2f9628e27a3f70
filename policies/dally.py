"""Dally: delay scheduling over the tiers of the network, timers that tune themselves, network-sensitive preemption.

Source: paper dally, Sec. IV-B: priority Nw_sens (IV-B1; simulator/rules/orders.py), placement by Algorithm 1 and timers
by Algorithm 2 (IV-B2, -B3; simulator/rules/delays.py), variants of Sec. V-C.
* `dally`: timers tuned from the waits of other jobs.
* `dally-manual`: 12 hours for a machine, then 24 hours in all for a rack (Sec. IV-B2).
* `dally-nowait`: both timers 0: the best tier that has room now.
* `dally-consolidated`: waits as long as needed for the most consolidated placement that its size admits.

Choices where the paper is silent:
* Preemption. The paper gives the priority but not the moment; its simulator stops every job after a lease of an hour.
  Here a job whose lease has ended makes way for one that has been slowed down more, or moves to a better tier in its
  own turn, which is a preemption after which it takes an offer at once; otherwise it goes on. So a job is stopped only
  where that changes something. Under `semantics=artist-sim` every lease ends as it does there.
* Offers. A job is offered GPUs whenever something happens in the cluster and when one of its own timers runs out,
  which is the limit of "periodically generates resource offers"; `round` makes them periodic. (A timer that shrinks
  because a wait is forgotten is noticed at the next offer.)
* T_starvation counts from the arrival or the last loss of the GPUs.
* Which of several machines or racks with room: the one with fewest free GPUs that suffice (`placer=tier`), or the first
  (`first`), which is what `semantics=artist-sim` takes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from ..simulator.rules.rule import Rule, Tuner
from ..simulator.semantics import LEASE_S
from .base import RulePolicy

Placer = Literal["tier", "first"]
MANUAL_S = (12 * 3600.0, 24 * 3600.0)
FOR_EVER_S = (math.inf, math.inf)


def dally(
    history: float = 24.0,
    initial: tuple[float, ...] = (1.0,),
    deviation: Literal["sample", "population"] = "sample",
    floors: tuple[float, ...] | None = None,
    lease: float = LEASE_S,
    placer: Placer = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
) -> RulePolicy:
    """Dally with its auto-tuner; `history`, `initial` and `floors` are leases, see `rules.rule.Tuner`.

    The paper prints no history limit; 24 leases are a day, the authors' own setting.
    """
    return _dally("dally", placer, lease, preemption_cost, round, tuner=Tuner(history, initial, deviation, floors))


def dally_manual(
    timers: tuple[float, ...] = MANUAL_S,
    lease: float = LEASE_S,
    placer: Placer = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
) -> RulePolicy:
    """Dally with fixed timers, seconds, of machine and rack, both counted from the same instant."""
    return _dally("dally-manual", placer, lease, preemption_cost, round, timers=timers)


def dally_nowait(
    lease: float = LEASE_S, placer: Placer = "tier", preemption_cost: tuple[float, ...] = (0.0,), round: float = 0.0
) -> RulePolicy:
    """Dally that never waits: both timers are 0."""
    return _dally("dally-nowait", placer, lease, preemption_cost, round, timers=(0.0, 0.0))


def dally_consolidated(
    lease: float = LEASE_S, placer: Placer = "tier", preemption_cost: tuple[float, ...] = (0.0,), round: float = 0.0
) -> RulePolicy:
    """Dally that waits for ever: a gang takes the best tier that its size admits, or nothing."""
    return _dally("dally-consolidated", placer, lease, preemption_cost, round, timers=FOR_EVER_S)


def _dally(
    name: str,
    placer: str,
    lease: float,
    preemption_cost: tuple[float, ...],
    round: float,
    timers: tuple[float, ...] | None = None,
    tuner: Tuner | None = None,
) -> RulePolicy:
    rule = Rule(
        "nw-sens",
        placer=placer,
        preemption_cost=preemption_cost,
        round=round,
        lease=lease,
        timers=timers,
        tuner=tuner,
        migrates=True,
    )
    return RulePolicy(name, rule, replace(rule, placer="first", migrates=False))
