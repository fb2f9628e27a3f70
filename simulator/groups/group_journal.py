"""Reading the decision log of a record of job groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.codes import ASSIGN, MACHINES, PREEMPT, SPILL
from ..base.decisions import AssignGroup, Decision, Preempt, SetMachines, SetSpill

COLUMNS = ("log_kind", "log_job", "log_first", "log_seconds")


def logged(s: np.void) -> Iterator[tuple[tuple[int, ...], Decision]]:
    """Decisions of the present instant in order, with group and machines; needs `s.log_on`. Results are left out."""
    for kind, job, first, value in zip(*(s[name][: s["log_count"]].tolist() for name in COLUMNS), strict=True):
        group, machines = about = tuple(s["log_gpu"][first : first + 2].tolist())
        if kind == ASSIGN:
            yield about, AssignGroup(job, None, machines) if machines > 0 else AssignGroup(job, group)
        elif kind == PREEMPT:
            yield about, Preempt(job)
        elif kind == MACHINES:
            yield about, SetMachines(group, machines)
        elif kind == SPILL:
            yield about, SetSpill(job, value if value >= 0.0 else None)
