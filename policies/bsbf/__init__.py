"""SJF-BSBF and SJF-FFS: shortest job first, where jobs may share GPUs.

Source: Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing" (paper
sjf-bsbf), Algorithms 1 and 2, Theorem 1: sjf_bsbf_pass.py, and sjf_bsbf_partners.py with our readings of the paper.
Parameters: `free=last` (shared GPUs first, free ones complete the gang), `first` or `never`; `head=skip`, as Algorithm
1, or `strict`; `restore=on`, ours (restore.py). Where GPUs may hold one job only, both are shortest job first.
"""

from __future__ import annotations

from typing import Literal

from ...simulator.rules.rule import Rule
from ..base import RulePolicy

Head = Literal["strict", "skip"]
Placer = Literal["count", "tier", "first", "random"]
Free = Literal["last", "first", "never"]
Restore = Literal["on", "off"]


def sjf_ffs(
    head: Head = "skip",
    placer: Placer = "tier",
    free: Free = "last",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    restore: Restore = "off",
) -> RulePolicy:
    """Shortest job first, first-fit sharing; `preemption_cost` is what a job pays that lost its GPUs to a failure."""
    return _shared("sjf-ffs", "first-fit", head, placer, free, preemption_cost, round, restore)


def sjf_bsbf(
    head: Head = "skip",
    placer: Placer = "tier",
    free: Free = "last",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    restore: Restore = "off",
) -> RulePolicy:
    """Shortest job first, best sharing benefit first.

    Paper: sjf-bsbf, Algorithm 1.
    """
    return _shared("sjf-bsbf", "best-benefit", head, placer, free, preemption_cost, round, restore)


def _shared(
    name: str,
    sharing: str,
    head: str,
    placer: str,
    free: str,
    preemption_cost: tuple[float, ...],
    round: float,
    restore: str,
) -> RulePolicy:
    rule = Rule("srtf", head, placer, preemption_cost, round=round, sharing=sharing, free=free, restore=restore == "on")
    return RulePolicy(name, rule)
