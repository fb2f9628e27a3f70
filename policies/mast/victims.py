"""Whom a workload may stop where run times decide (`preempts=any`; ordering.py).

RMS (place_search.py) tells workloads apart by importance: who is less important than the newcomer may leave, and of
those the least important go first. So before a newcomer is served, everybody who runs gets an importance that says what
they are to it: who has more than `theta` times its time left x GPUs may leave, the more the sooner, in classes by
powers of two. Within priorities anybody of a lower one may, before those, and nobody of a higher one. Who started at
this very instant stays, so nobody is stopped for somebody who comes after it in a pass.
"""

from __future__ import annotations

from ...simulator.compiler.jit import kernel
from .region_units import IMPORTANCES, PARTS, first_unit

STOPS, WITHIN = 5, 6  # of a queue's `option`: who may be stopped, a place in ordering.PREEMPTS; priorities count
NOBODY, ANYBODY = 0, 2
TOP = IMPORTANCES - 1  # of the newcomer, and of who stays
LOWER_PRIORITIES = 4  # classes for them


@kernel
def _class(r, q, job, other, now_s):
    """What somebody who runs is to a newcomer: TOP stays, and of the others the lowest leave first."""
    if r.start_s[other] == now_s:
        return TOP
    least = 0
    if q.option[WITHIN]:
        if q.base[other] < q.base[job]:
            return min(q.base[other], LOWER_PRIORITIES - 1)
        if q.base[other] > q.base[job]:
            return TOP
        least = LOWER_PRIORITIES
    bound = q.limit[0] * q.weight[job]
    found = TOP
    while found > least and q.weight[other] > bound:
        bound *= 2.0
        found -= 1
    return found


@kernel
def weigh_up(r, q, job, now_s):
    """Modify the regions in place: importances become what everybody who runs is to a newcomer."""
    r.importance[job] = TOP
    for cluster in range(r.running.shape[0]):
        base = first_unit(r, cluster)
        for importance in range(IMPORTANCES):
            r.held[cluster, importance] = 0
        for place in range(base, base + r.running[cluster]):
            slot = r.by_size[place]
            other = slot // PARTS
            r.importance[other] = _class(r, q, job, other, now_s)
            r.held[cluster, r.importance[other]] += r.units[slot]
