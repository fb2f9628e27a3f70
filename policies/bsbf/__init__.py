"""SJF-BSBF and SJF-FFS: shortest job first, where jobs may share GPUs.

Source: Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing" (paper
sjf-bsbf), Algorithms 1 and 2, Theorem 1. sjf_bsbf_pass.py has the pass, sjf_bsbf_partners.py the theorem and the search
for partners; each says how we read the paper where it is silent or misprinted:
* Priority is L_k, the isolated run time left at the best placement. Nobody is stopped or moved.
* Free GPUs if there are enough, as close together as they lie (`placer=tier`). Else shared ones first, and free GPUs
  complete the gang if shared ones do not suffice; with `free=first` the job takes all free ones, and shared ones
  complete the gang; with `free=never` it waits instead. Fewer in all: it waits.
* SJF-BSBF takes the partners with the least sum of completion times (Theorem 1), at the sub-batch that fits best;
  SJF-FFS the GPUs that hold one job in index order, at the largest sub-batch that fits, without asking who benefits.
* `head=skip` goes on with the next job when one waits, as Algorithm 1 does; `strict` does not.
* `restore=on` is ours, and no paper's: the paper never does it. A job that began in small passes beside a partner gets
  the largest sub-batch that fits as soon as a partner has left (restore.py).
Where GPUs may hold one job only, both are shortest job first.
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
