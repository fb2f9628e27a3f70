"""Greedy: shortest job first, and every job weighs taking free GPUs now against waiting for a better tier.

Waiting jobs are asked in the order of their isolated run time left, shortest first. A job starts at the best tier with
room, if its predicted end is at most `margin` of the one after waiting for a better tier (greedy_wait.py); else it
waits, and the next one is asked. A rule of our own, tuned on Delay-v0.

Choices:
* Running jobs are assumed to end as planned, and no other job to want these GPUs.
* Slowdowns are those of the network's best gang at a tier. A tier is better only if the job runs faster there; of two
  better tiers, the job waits if either is worth it.
* Of several machines or racks, the one with fewest free GPUs that suffice (`placer=tier`), or the first.
* No job is stopped or moved; every event (or `round`) has a pass.
* Under `semantics=artist-sim` a running job is assumed to hold its GPUs until its grant ends.
`margin=inf` never waits; `margin=0` consolidates or waits, as long as running jobs will make room.

`preempt=on`: a job that finds no GPUs, or would wait, may stop and move running jobs so that it can start (room.py).
* The order is isolated run time left x GPUs^`exponent`; the same weights decide stops.
* Costs are those of the present: as movers claim room, a later one may have to stop, but the order stays.
* GPUs that a victim frees outside the area do not count. In the whole cluster no job can be moved.
* All stops come first, then all moves, then the job starts in that tier; then the pass begins anew.
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
from ..policy_by_view import PolicyByView
from ..two_paths import SCAN_S, SLOW
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
) -> PolicyByView:
    """Shortest first, waiting where it pays; among groups on parameter servers the largest sum of rates.

    In regions the order is time left x GPUs^0.5; a job with 1.2 times as much may be stopped
    (policies/mast/ordering.py).

    Args:
        margin: a job takes free GPUs if its predicted end is at most this share of the one after waiting; >= 0, or inf.
        placer: chooses among machines or racks.
        preemption_cost: seconds that a job pays after a failure, a preemption or a move.
        round: seconds between passes; 0: at every event.
        preempt: whether jobs may stop and move running ones.
        theta: ratio of weighed times left of a stopped and a starting job, at least; >= 0; inf: no stops; 1.2 by
            default; with `preempt=on` only.
        exponent: of the GPUs, in the weights; 0 to 8; 0.5 by default; with `preempt=on` only.
        remaining, power, steps, holds_s, disk: among groups only, as of `harmony.oracle.Greedy`.

        levels, preempts, slow, scan_s: in regions only.
    """
    groups = partial(Greedy, remaining, power, steps, holds_s, disk)
    if (power, steps, holds_s) != (None, STEPS, HOLDS_S):
        groups()  # raises for a wrong value wherever it plays
    rule = _on_gpus(margin, placer, preemption_cost, round, preempt, theta, exponent)
    regions = partial(in_regions, "greedy", levels, preempts, THETA, EXPONENT, slow, scan_s)
    return PolicyByView(RulePolicy("greedy", rule), groups, FOR_GROUPS, FOR_GPUS, regions, FOR_REGIONS)


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
        "weighted", placer=placer, preemption_cost=preemption_cost, round=round, margin=margin, preempt=True, **weighing
    )
