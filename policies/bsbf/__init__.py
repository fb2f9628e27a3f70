"""SJF-BSBF and SJF-FFS: shortest job first, where jobs may share GPUs.

Source: Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing" (paper
sjf-bsbf), Algorithms 1 and 2, Theorem 1. Parameters: `free=last` (shared GPUs first, free ones complete the gang),
`first` or `never`; `head=skip`, as Algorithm 1, or `strict`; `restore=on`, ours (restore.py). Where GPUs hold one job
only, both are shortest job first.
"""

from __future__ import annotations

from typing import Literal

from ...simulator.rules.rule import Rule
from ..base import RulePolicy

Head = Literal["strict", "skip"]
Placer = Literal["count", "tier", "first", "random"]
Free = Literal["last", "first", "never"]
Restore = Literal["on", "off"]


def shared(
    name: str,
    sharing: Literal["first-fit", "best-benefit"],
    head: Head = "skip",
    placer: Placer = "tier",
    free: Free = "last",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    restore: Restore = "off",
) -> RulePolicy:
    """Shortest job first, sharing first-fit or best benefit. Paper: sjf-bsbf, Algorithm 1."""
    rule = Rule("srtf", head, placer, preemption_cost, round=round, sharing=sharing, free=free, restore=restore == "on")
    return RulePolicy(name, rule)
