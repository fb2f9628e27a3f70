"""Schedulers that are an order plus a placement: random, FIFO, SJF, EDF, SRTF, SRSF and least attained service.

Parameters: simulator/rules/rule.py. Defaults are those of the common counting simulators: GPUs are only counted, and
every job in order that fits starts. FIFO and SJF also backfill (policies/passes/backfill.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ..simulator.rules.rule import Rule
from .base import RulePolicy

Order = Literal["random", "edf", "srtf", "srsf"]
Backfilled = Literal["fifo", "sjf"]
Head = Literal["strict", "skip"]
BackfillingHead = Literal["strict", "skip", "reserve", "conservative"]
Placer = Literal["count", "consolidated", "tier", "skew", "random"]


def ordered(
    order: Order,
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """The policy of one order; only `srtf`, `srsf` and ended leases stop running jobs."""
    return RulePolicy(order, Rule(order, head, placer, preemption_cost, round=round, lease=lease))


def backfilled(
    order: Backfilled,
    head: BackfillingHead = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """As `ordered`, for the orders that can backfill; backfilling has no leases."""
    return RulePolicy(order, Rule(order, head, placer, preemption_cost, round=round, lease=lease))


def las(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    thresholds: tuple[float, ...] = (3250.0, 7200.0),
    quantum: float = 1.0,
    _name: str = "las",
) -> RulePolicy:
    """Two-dimensional least attained service: queues by GPUs x time held (of Tiresias, NSDI'19).

    `thresholds` are those of Tiresias' published code; without any, and under `semantics=artist-sim`, jobs are ordered
    by attained service itself.
    """
    rule = Rule("las", head, placer, preemption_cost, thresholds, quantum, round, lease)
    # That simulator has its own reading of consolidation.
    at_auctions = replace(rule, thresholds=(), placer="first-skew" if placer == "skew" else placer)
    return RulePolicy(_name, rule, at_auctions)
