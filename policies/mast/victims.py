"""Preemption by run times (`preempts=any`; ordering.py).

RMS (place_search.py) lets workloads of less importance than the new one leave, the least important first. So before a
new workload is served, every running one gets an importance relative to it: with more than `theta` times its time left
x GPUs it may leave, the more the sooner, in classes by powers of two. Within priorities all of a lower one may leave,
before those, and none of a higher one. Workloads started at this instant stay, so none is stopped for a later one of
the same pass.
"""

from __future__ import annotations

from ...simulator.compiler.jit import kernel
from .region_units import IMPORTANCES, PARTS, first_unit

STOPS, WITHIN = 5, 6  # of a queue's `option`: allowed victims, a place in ordering.PREEMPTS; priorities count
NO_VICTIM, ANY_VICTIM = 0, 2
TOP = IMPORTANCES - 1  # of the new workload, and of those that stay
LOWER_PRIORITIES = 4  # classes for them


@kernel
def _class(m, job, other, now_s):
    """Importance of a running workload relative to a new one: TOP stays, the lowest leave first."""
    if m.start_s[other] == now_s:
        return TOP
    least = 0
    if m.option[WITHIN]:
        if m.base_importance[other] < m.base_importance[job]:
            return min(m.base_importance[other], LOWER_PRIORITIES - 1)
        if m.base_importance[other] > m.base_importance[job]:
            return TOP
        least = LOWER_PRIORITIES
    bound = m.least_ratio * m.weight[job]
    found = TOP
    while found > least and m.weight[other] > bound:
        bound *= 2.0
        found -= 1
    return found


@kernel
def weigh_up(m, job, now_s):
    """Modify the regions in place: set the importance of all running workloads relative to a new one."""
    m.importance[job] = TOP
    for cluster in range(m.n_clusters):
        base = first_unit(m, cluster)
        for importance in range(IMPORTANCES):
            m.held[cluster, importance] = 0
        for place in range(base, base + m.running[cluster]):
            slot = m.by_size[place]
            other = slot // PARTS
            m.importance[other] = _class(m, job, other, now_s)
            m.held[cluster, m.importance[other]] += m.units[slot]
