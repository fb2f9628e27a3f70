"""Gandiva: network-agnostic placement by affinity, and migration to a better tier when it has room.

Source: Gandiva (Xiao et al., OSDI'18) as the simulator of paper dally's authors has it (paper dally, Sec. V-C: "it
addresses this limitation by migrating jobs to more favorable GPU consolidation whenever resources become available");
its code is not public. simulator/rules/placers.py has the placement (`affinity`) and the moves (`find_better`).
* A gang that fits a machine goes to a machine dedicated to its size; a larger one takes random free GPUs at once.
* A running job that lies on several machines moves as soon as a machine (or, for a larger gang that crosses racks, a
  rack) has room beside it.
* GPUs are offered in decreasing order of the job's first start; who never started comes last, by arrival.
Under `semantics=artist-sim` a job that moves holds both gangs until its present chunk is done, as there; otherwise it
moves at once.
* `packing=on`, where GPUs may hold several jobs: jobs of one GPU that find none free are packed on GPUs that hold
  such jobs, or take turns there (simulator/rules/packing.py). Larger gangs never share ("limiting GPU sharing to
  single-GPU jobs", paper sjf-bsbf, Sec. I).
"""

from __future__ import annotations

from typing import Literal

from ..simulator.rules.rule import Rule
from .base import RulePolicy


def gandiva(
    fallback: Literal["most-free", "last"] = "most-free",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    packing: Literal["on", "off"] = "off",
) -> RulePolicy:
    """Gandiva; `fallback=last` is a defect of the authors' simulator that spreads gangs which a machine could hold."""
    rule = Rule(
        "latest",
        placer="affinity",
        preemption_cost=preemption_cost,
        round=round,
        lease=lease,
        migrates=True,
        fallback=fallback,
        packing=packing == "on",
    )
    return RulePolicy("gandiva", rule)
