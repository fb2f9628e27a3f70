"""Tiresias: discretised two-dimensional least attained service, and placement by the skew of the model.

Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19, Sec. 3.2.2 (Discretized
2D-LAS: a job of W GPUs that has run for t seconds has attained W x t; queues by thresholds; FIFO inside a queue) and
Sec. 3.3 (placement: a job whose largest tensor dominates its gradients is consolidated on as few machines as possible
and waits for them; others take whatever GPUs are free).
Departures: thresholds are fixed GPU-seconds (3250 and 7200, the published code's), not learnt; no promotion of starved
jobs (PROMOTE_KNOB is off in that code too); the skew above which a model is consolidated is not published as a number,
`simulator/profiles/skew.py` says what we take.
"""

from __future__ import annotations

from ..simulator.rules.rule import Rule
from .base import RulePolicy
from .ordered import Head, Placer


def tiresias(
    head: Head = "skip",
    placer: Placer = "skew",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    thresholds: tuple[float, ...] = (3250.0, 7200.0),
    quantum: float = 1.0,
) -> RulePolicy:
    """Tiresias (NSDI'19): discretised 2D-LAS; models with skewed tensors are consolidated, others are not."""
    rule = Rule("las", head, placer, preemption_cost, thresholds, quantum, round, lease)
    return RulePolicy("tiresias", rule)
