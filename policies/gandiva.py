"""Gandiva as the authors of paper dally read it: placement by affinity, and migration to a better tier with room.

Source: Gandiva (Xiao et al., OSDI'18) as the simulator of paper dally's authors has it (paper dally, Sec. V-C: "it
addresses this limitation by migrating jobs to more favorable GPU consolidation whenever resources become available");
its code is not public. This reading has no time slicing, which is the core of Gandiva itself: a job that starts keeps
running, and who waits waits. `slicing` adds it. simulator/running/placers.py has the placement (`affinity`) and the
moves (`find_better`).
* A gang that fits a machine goes to a machine dedicated to its size; a larger one takes random free GPUs at once.
* A running job that lies on several machines moves as soon as a machine (or, for a larger gang that crosses racks, a
  rack) has room beside it.
* GPUs are offered in decreasing order of the job's first start; who never started comes last, by arrival.
Under `semantics=artist-sim` a job that moves holds both gangs until its present chunk is done, as there; otherwise it
moves at once.
* `slicing=SECONDS` (Gandiva: "GPU time-slicing", paper sjf-bsbf, Sec. I; suspend and resume, in rounds of about a
  minute): while jobs wait, running jobs make way for them in turns at the end of each slice, round robin over the
  whole cluster (simulator/passes/time_slicing.py); who is stopped pays `preemption_cost` when it starts again. GPUs are
  offered to who has waited longest then. Gandiva itself slices machine by machine; that slices end together in the
  whole cluster, so that large gangs find room, is our choice.
* `packing=on`, where GPUs may hold several jobs: jobs of one GPU that find none free are packed on GPUs that hold
  such jobs, or take turns there (simulator/passes/gandiva_packing.py). Larger gangs never share ("limiting GPU sharing
  to single-GPU jobs", paper sjf-bsbf, Sec. I).
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
    slicing: float = 0.0,
) -> RulePolicy:
    """Gandiva; `fallback=last` is a defect of the authors' simulator that spreads gangs which a machine could hold.

    `slicing`: seconds of a time slice; 0: a job that runs is never stopped.
    """
    rule = Rule(
        "turns" if slicing else "latest",
        placer="affinity",
        preemption_cost=preemption_cost,
        round=round,
        lease=lease,
        migrates=True,
        fallback=fallback,
        packing=packing == "on",
        slicing=slicing,
    )
    return RulePolicy("gandiva", rule)
