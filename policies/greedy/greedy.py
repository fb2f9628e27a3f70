"""Greedy: shortest job first, and every job weighs taking what is free now against waiting for a better tier.

Waiting jobs are asked in the order of their isolated run time left, shortest first. A job starts at the best tier that
has room now, if its predicted end is at most `margin` of the one after waiting for a better tier (greedy_wait.py); else
it waits, and the next one is asked. A rule of our own, tuned on Delay-v0.

Choices:
* Running jobs are taken to end as planned; nobody else, waiting or to come, is taken to want these GPUs.
* Slowdowns are those of the network's best gang at a tier. A tier is better only if the job runs faster there; of two
  better tiers, the job waits if either is worth it.
* Of several machines or racks: that with fewest free GPUs that suffice (`placer=tier`), or the first.
* Nobody is stopped or moved; it looks again at every event (or every `round`).
* Under `semantics=artist-sim` a running job is taken to hold its GPUs until its grant ends.
`margin=inf` never waits; `margin=0` consolidates or waits, as long as running jobs will make room.

`preempt=on`: a job that finds no GPUs, or would rather wait, may stop and move running jobs so that it can start:
"looks for victims in each machine (each rack, if it needs more than a machine)"; a job that fits another machine's free
GPUs is moved, else stopped if its time left x GPUs^a is more than theta times that of the job plus the cost of a
restart; "cheapest per GPU first until j fits, then prune those not needed; take the machine with the least sum".
room.py has the choices in full, and:
* The order is isolated run time left x GPUs^`exponent`, and the same weights say who may be stopped.
* Costs are those of the present: as movers claim room, what is left to others may be a stop, but the order stays.
* GPUs that a victim frees outside the area count for nobody in the search. A gang larger than any rack looks in the
  whole cluster, where nobody can be moved.
* First all stops, then all moves, then the job starts in that tier; then the pass begins anew.
* At one instant a job that started, moved or stopped is no victim, and one that lost its GPUs takes nobody's.
* Not with auctions, GPU sharing, regions, or links: speeds would depend on others.

Where jobs run in groups on parameter servers it is another rule, harmony/oracle.py, with parameters of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from ...simulator.base.errors import InputError
from ...simulator.rules.rule import Rule
from ..base import RulePolicy
from ..harmony.local_search import STEPS
from ..harmony.oracle import HOLDS_S, Greedy
from ..two_paths import SCAN_S, SLOW
from ..twofold import Twofold
from .shortest import in_regions

MARGIN = 0.9
FOR_GROUPS = ("remaining", "power", "steps", "holds_s", "disk")
FOR_GPUS = ("margin", "placer", "preemption_cost", "round", "preempt", "theta", "exponent")
FOR_REGIONS = ("levels", "preempts", "slow", "scan_s")
THETA, EXPONENT = 1.2, 0.5  # with `preempt=on`, and in regions


def greedy(
    margin: float = MARGIN,
    placer: Literal["tier", "first"] = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    preempt: Literal["off", "on"] = "off",
    theta: float | None = None,
    exponent: float | None = None,
    remaining: Literal["hidden", "known"] = "hidden",
    power: float | None = None,
    steps: int = STEPS,
    holds_s: float = HOLDS_S,
    disk: Literal["counted", "ignored"] = "counted",
    levels: Literal["on", "off"] = "off",
    preempts: Literal["off", "lower", "any"] = "any",
    slow: str = SLOW,
    scan_s: float = SCAN_S,
) -> Twofold:
    """Shortest first, waiting where it pays; among groups on parameter servers the largest sum of rates.

    In regions least time left x GPUs^0.5 first; who has 1.2 times as much may be stopped (policies/mast/ordering.py).

    Args:
        margin: a job takes free GPUs if its predicted end is at most this share of the one after waiting; >= 0, or inf.
        placer: which of several machines or racks.
        preemption_cost: seconds that a job pays that lost its GPUs to a failure or another job, or that was moved.
        round: seconds between passes; 0: at every event.
        preempt: whether jobs may stop and move running ones.
        theta: who is stopped has so many times as long left, weighed, as who starts; >= 0, inf: nobody is stopped;
            with `preempt=on` only, where it is 1.2 by default.
        exponent: of the GPUs, in the weights; 0 to 8; with `preempt=on` only, where it is 0.5 by default.
        remaining, power, steps, holds_s, disk: among groups only, as of `harmony.searching.Greedy`.
        levels, preempts, slow, scan_s: in regions only.
    """
    groups = partial(Greedy, remaining, power, steps, holds_s, disk)
    if (power, steps, holds_s) != (None, STEPS, HOLDS_S):
        groups()  # a mistake in these is told now, whoever plays
    rule = _on_gpus(margin, placer, preemption_cost, round, preempt, theta, exponent)
    regions = partial(in_regions, "greedy", levels, preempts, THETA, EXPONENT, slow, scan_s)
    return Twofold(RulePolicy("greedy", rule), groups, FOR_GROUPS, FOR_GPUS, regions, FOR_REGIONS)


def _on_gpus(
    margin: float,
    placer: Literal["tier", "first"],
    preemption_cost: tuple[float, ...],
    round: float,
    preempt: Literal["off", "on"],
    theta: float | None,
    exponent: float | None,
) -> Rule:
    weighing: dict[str, Any] = {
        name: value for name, value in (("theta", theta), ("exponent", exponent)) if value is not None
    }
    if preempt == "off":
        if weighing:
            raise InputError(f"policy greedy: {next(iter(weighing))} weighs jobs with preempt=on; give that too")
        return Rule("srtf", placer=placer, preemption_cost=preemption_cost, round=round, margin=margin)
    return Rule(
        "weighted",
        placer=placer,
        preemption_cost=preemption_cost,
        round=round,
        margin=margin,
        preempt=True,
        **weighing,
    )
