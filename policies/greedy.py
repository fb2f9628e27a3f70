"""Greedy: shortest job first, and every job weighs taking what is free now against waiting for a better tier.

It is the heuristic that agents have to beat: the best of many that were tuned on Delay-v0. Waiting jobs are asked in
the order of their isolated run time left, shortest first. A job starts at the best tier that has room now, if its
predicted end is at most `margin` of the one after waiting for a better tier; else it waits, and the next one is asked.

Choices:
* Ends are counted from now: the time waited so far is the same either way.
* Now: isolated run time left x slowdown of the tier that has room. Waiting: until the earliest instant at which one
  machine (or one rack) has enough free GPUs, then the same at that tier. Running jobs are taken to end as planned;
  nobody else, waiting or still to come, is taken to want these GPUs. simulator/rules/foresight.py has the formula.
* Slowdowns are those of the network's best gang at a tier. A tier is better only if the job runs faster there.
* Of two better tiers, the job waits if either is worth it.
* Which of several machines or racks: the one with fewest free GPUs that suffice (`placer=tier`), or the first.
* Nobody is stopped or moved; a job that fails (machine failures) waits in the place that the rest of its work gives it.
* It looks again at every event (or every `round`): between events a job that waits has no reason to change its mind.
* Under `semantics=artist-sim` a running job is taken to hold its GPUs until its grant ends.

`margin=inf` never waits (shortest first at the best tier that has room); `margin=0` consolidates or waits, as long as
running jobs will make room.
"""

from __future__ import annotations

from typing import Literal

from ..simulator.rules.rule import Rule
from .base import RulePolicy

MARGIN = 0.9


def greedy(
    margin: float = MARGIN,
    placer: Literal["tier", "first"] = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
) -> RulePolicy:
    """Shortest first, waiting where it pays; `preemption_cost` is what a job pays that lost its GPUs to a failure."""
    rule = Rule("srtf", placer=placer, preemption_cost=preemption_cost, round=round, margin=margin)
    return RulePolicy("greedy", rule)
