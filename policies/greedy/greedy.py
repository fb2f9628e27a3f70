"""Greedy: shortest job first, and every job weighs taking what is free now against waiting for a better tier.

Waiting jobs are asked in the order of their isolated run time left, shortest first. A job starts at the best tier that
has room now, if its predicted end is at most `margin` of the one after waiting for a better tier; else it waits, and
the next one is asked. It is the best of many that were tuned on Delay-v0 and stop nobody.

Choices:
* Ends are counted from now: the time waited so far is the same either way.
* Now: isolated run time left x slowdown of the tier that has room. Waiting: until the earliest instant at which one
  machine (or one rack) has enough free GPUs, then the same at that tier. Running jobs are taken to end as planned;
  nobody else, waiting or still to come, is taken to want these GPUs. greedy_wait.py has the formula.
* Slowdowns are those of the network's best gang at a tier. A tier is better only if the job runs faster there.
* Of two better tiers, the job waits if either is worth it.
* Which of several machines or racks: the one with fewest free GPUs that suffice (`placer=tier`), or the first.
* Nobody is stopped or moved; a job that fails (machine failures) waits in the place that the rest of its work gives it.
* It looks again at every event (or every `round`): between events a job that waits has no reason to change its mind.
* Under `semantics=artist-sim` a running job is taken to hold its GPUs until its grant ends.

`margin=inf` never waits (shortest first at the best tier that has room); `margin=0` consolidates or waits, as long as
running jobs will make room.

`preempt=on`: a job that finds no GPUs, or would rather wait, may stop and move running jobs so that it can start. It is
a rule of our own, of an independent review of this project, in whose words: "a job that finds no room, or would rather
wait, looks for victims in each machine (each rack, if it needs more than a machine)"; who fits another machine's free
GPUs is moved, else stopped if its time left x GPUs^a is more than theta times that of the job plus the cost of a
restart; "cheapest per GPU first until j fits, then prune those not needed; take the machine with the least sum".

Choices where the words leave some, room.py has them in full:
* The order is isolated run time left x GPUs^`exponent`, and the same weights say who may be stopped.
* Costs are seconds: a new start of the victim (`preemption_cost`), and for a stop also the time of the job at the tier
  of the area, with its own new start if it ran before. Per GPU: of those that the victim holds in the area.
* Costs are those of the present: as movers claim room, what is left to others may be a stop, but the order stays.
* GPUs that a victim frees outside the area count for nobody in the search. A gang larger than any rack looks in the
  whole cluster, where nobody can be moved.
* First all stops, then all moves, then the job starts in that tier; then the pass begins anew, as GPUs may be left.
* At one instant nobody who started, moved or stopped is a victim, and who lost its GPUs takes nobody's; it may start.
* It goes with nothing that makes speeds depend on others: no auctions, GPU sharing, regions, or links.

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
from ..shortest import in_regions
from ..two_paths import SCAN_S, SLOW
from ..twofold import Twofold

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
