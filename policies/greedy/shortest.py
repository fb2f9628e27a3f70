"""`sjf`, `srtf` and `srsf`: compiled orders on GPUs (ordered.py); MAST's passes in regions (mast/ordering.py)."""

from __future__ import annotations

from functools import partial
from typing import Literal

from ..base import Policy
from ..ordered import BackfillingHead, Head, Placer, backfilled, ordered
from ..policy_by_view import PolicyByView
from ..two_paths import SCAN_S, SLOW

FOR_GPUS = ("head", "placer", "preemption_cost", "round", "lease")
FOR_REGIONS = ("levels", "preempts", "theta", "slow", "scan_s")
Levels = Literal["on", "off"]
Preempts = Literal["off", "lower", "any"]


def remaining(
    order: Literal["srtf", "srsf"],
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    levels: Levels = "off",
    preempts: Preempts = "any",
    theta: float = 1.0,
    slow: str = SLOW,
    scan_s: float = SCAN_S,
) -> PolicyByView:
    """The order of time or service left; `levels` and later parameters are for regions, those before for GPUs."""
    rule = ordered(order, head, placer, preemption_cost, round, lease)
    made = partial(in_regions, order, levels, preempts, theta, 1.0, slow, scan_s)
    return PolicyByView(rule, for_gpus=FOR_GPUS, regions=made, for_regions=FOR_REGIONS)


def shortest_job(
    head: BackfillingHead = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    levels: Levels = "off",
    preempts: Preempts = "off",
    theta: float = 1.0,
    slow: str = SLOW,
    scan_s: float = SCAN_S,
) -> PolicyByView:
    """The order of whole run times; it stops no job by default. Parameters as of `remaining`."""
    rule = backfilled("sjf", head, placer, preemption_cost, round, lease)
    made = partial(in_regions, "sjf", levels, preempts, theta, 1.0, slow, scan_s)
    return PolicyByView(rule, for_gpus=FOR_GPUS, regions=made, for_regions=FOR_REGIONS)


def in_regions(
    order: str, levels: Levels, preempts: Preempts, theta: float, exponent: float, slow: str, scan_s: float
) -> Policy:
    """An order by run times in regions; imports `mast` only where it is played. Raises InputError out of range."""
    from ..mast.mast import WorkloadPassPolicy, paths
    from ..mast.ordering import Ordering

    ordering = Ordering(order, levels == "on", preempts, exponent, theta)
    return paths(order, WorkloadPassPolicy(order, scan_s=scan_s, ordering=ordering), slow)
