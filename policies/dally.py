"""Dally: delay scheduling over the tiers of the network, timers that tune themselves, network-sensitive preemption.

Source: paper dally, Sec. IV-B: priority Nw_sens (IV-B1; simulator/rules/orders.py), placement by Algorithm 1 and timers
by Algorithm 2 (IV-B2, -B3; simulator/rules/dally_timers.py), variants of Sec. V-C.
* `dally`: timers tuned from the waits of other jobs.
* `dally-manual`: 12 hours for a machine, then 24 hours in all for a rack (Sec. IV-B2).
* `dally-nowait`: both timers 0: the best tier that has room now.
* `dally-consolidated`: waits as long as needed for the most consolidated placement that its size admits.

Choices where the paper is silent:
* Leases. The paper names no lease and no moment of preemption. Ours: a lease is 3,600 s from the start. At every offer
  round (an arrival, an end, the end of a lease, a timer) while a job waits, one that refused by its timers included,
  every running job whose lease has ended joins the bids, its GPUs counted as free and its starvation 0, in the order of
  Nw_sens in millionths; ties: fewer GPUs, earlier last assignment (for those whose lease has ended: now), lower index.
  Who gets the same GPUs back has not stopped and begins a new lease; who gets others pays `preemption_cost`; who gets
  none waits, its starvation counted from now. While nobody waits, a lease that has ended changes nothing.
  What is accepted at the end of a lease is a placement by Algorithm 1, so a gang that lies across machines although one
  could hold it starves for a machine anew; who only moves has not waited, and is not recorded. `lease=0`: nobody is
  stopped, and whoever can move to a better tier does. In the authors' simulator (`semantics=artist-sim`) every lease
  ends in the loss of the GPUs, whoever waits, and only waiting jobs bid, at auctions.
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
from ..simulator.rules.semantics import LEASE_S
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
        migrates=lease == 0.0,
    )
    return RulePolicy(name, rule, replace(rule, placer="first", migrates=False))
