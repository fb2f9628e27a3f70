"""Schedulers that are an order plus a placement: random, FIFO, SJF, SRTF, SRSF and least attained service.

One trace and the one word "FIFO" give mean JCTs that differ by a factor of two, so their semantics are parameters:
`head`, `placer`, `preemption_cost`, `round`, `lease`; simulator/rules/rule.py defines them. The defaults are those of
the common counting simulators: GPUs are only counted, and every job in order that fits starts.
"""

from __future__ import annotations

from typing import Literal

from ..simulator.rules.rule import Rule
from .base import RulePolicy

Head = Literal["strict", "skip"]
Placer = Literal["count", "consolidated", "tier", "skew", "random"]


def random(
    head: Head = "skip",
    placer: Placer = "random",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """A random order and random GPUs, drawn from the seed: the baseline that everything should beat."""
    return RulePolicy("random", Rule("random", head, placer, preemption_cost, round=round, lease=lease))


def fifo(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """First in, first out, by arrival."""
    return RulePolicy("fifo", Rule("fifo", head, placer, preemption_cost, round=round, lease=lease))


def sjf(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """Shortest job first, by isolated run time; running jobs are left alone."""
    return RulePolicy("sjf", Rule("sjf", head, placer, preemption_cost, round=round, lease=lease))


def srtf(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """Shortest remaining time first, preemptive: at each event the order is made anew and jobs that fit run."""
    return RulePolicy("srtf", Rule("srtf", head, placer, preemption_cost, round=round, lease=lease))


def srsf(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RulePolicy:
    """Shortest remaining service (GPUs x remaining time) first, preemptive (Tiresias, NSDI'19, Sec. 3.1)."""
    return RulePolicy("srsf", Rule("srsf", head, placer, preemption_cost, round=round, lease=lease))


def las(
    head: Head = "skip",
    placer: Placer = "count",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    thresholds: tuple[float, ...] = (3250.0, 7200.0),
    quantum: float = 1.0,
) -> RulePolicy:
    """Two-dimensional least attained service: queues by GPUs x time held (Tiresias, NSDI'19, Sec. 3.2.2).

    `thresholds` are those of Tiresias' published code; without any, jobs are ordered by attained service itself.
    """
    rule = Rule("las", head, placer, preemption_cost, thresholds, quantum, round, lease)
    return RulePolicy("las", rule)
