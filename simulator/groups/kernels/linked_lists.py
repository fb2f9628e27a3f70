"""Lists through the jobs of a record: members of a group, and queues of its resources, first in, first out."""

from ...compiler.jit import kernel
from ..group_codes import NONE


@kernel
def append(first, last, after, group, job):
    """Modify the list of `group`: a job comes last. Lists: `first`, `last` by group, `after` by job."""
    after[job] = NONE
    if first[group] == NONE:
        first[group] = job
    else:
        after[last[group]] = job
    last[group] = job


@kernel
def take_first(first, last, after, group):
    """Modify the list of `group`: its first job leaves; returns it, or NONE."""
    job = first[group]
    if job != NONE:
        first[group] = after[job]
        if first[group] == NONE:
            last[group] = NONE
    return job


@kernel
def take_out(first, last, after, group, job):
    """Modify the list of `group`: a job that is in it leaves it."""
    before = NONE
    here = first[group]
    while here != job:
        before = here
        here = after[here]
    if before == NONE:
        first[group] = after[job]
    else:
        after[before] = after[job]
    if last[group] == job:
        last[group] = before
