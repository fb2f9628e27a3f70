"""GPUs that a policy names itself: for one step the candidate of its decision stands for these very GPUs.

A candidate leaves the choice of GPUs to the environment. A policy that decides in Python may name others; when it is
played, the window keeps them until something has been decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..simulator.compiler.jit import kernel
from .window import NO_JOB

MOST_DICTATED = 1024


def dictated_fields() -> list[tuple[Any, ...]]:
    """The fields of a window that the functions here read and write."""
    return [
        ("dictated_job", "i8"),  # the policy that is played names the GPUs of this job itself; -1 = of none,
        ("dictated_kind", "i8"),  # and this is the candidate, of those of the job's slot, that stands for them
        ("n_dictated", "i8"),
        ("dictated", "i8", (MOST_DICTATED,)),
    ]


def dictate(window: np.void, job: int, kind: int, gpus: Sequence[int]) -> None:
    """Modify the window: a candidate of a job stands for these GPUs, if they are not too many."""
    if len(gpus) > MOST_DICTATED:
        return
    window["dictated_job"], window["dictated_kind"], window["n_dictated"] = job, kind, len(gpus)
    window["dictated"][: len(gpus)] = gpus


def undictate(window: np.void) -> None:
    """Modify the window: candidates stand for what the environment chooses."""
    window["dictated_job"] = NO_JOB


@kernel
def is_dictated(w, job, kind):
    """True if this candidate of a job stands for the GPUs that a policy names."""
    return job == w.dictated_job and kind == w.dictated_kind


@kernel
def lay_dictated(s, w):
    """Modify `s.gang`: the GPUs that the policy names."""
    s.gang_size = w.n_dictated
    for i in range(w.n_dictated):
        s.gang[i] = w.dictated[i]
