"""Laying GPUs and jobs into a cleared record in kernels: environments are reset often."""

from __future__ import annotations

import math

from ..base.codes import FREE
from ..base.tiers import UNPLACED
from ..compiler.jit import entry, kernel
from ..numerics.bisection import lower_place
from ..record.feature_groups import has_berths, has_regions


@entry
def lay_gpus(states, row, cluster, arrays, berths, empty, low, mid, top):
    """Modify the record in `row`: the GPUs, slots, machines and racks of a cluster where all is free.

    Args:
        states: records (n,).
        row: which.
        cluster, berths: int64 (arrays, room), (arrays, layers, room): `Plain.cluster` and `Plain.berths` of the same.
        arrays, empty: int64 (arrays, GPUs), (arrays,): what they become; of berths all the same.
        low, mid, top: int64, the set of all GPUs (bitset.py).
    """
    s = states[row]
    for i in range(arrays.shape[0]):
        for gpu in range(arrays.shape[1]):
            cluster[i, gpu] = arrays[i, gpu]
    for i in range(empty.size):
        for layer in range(berths.shape[1]):
            for gpu in range(arrays.shape[1]):
                berths[i, layer, gpu] = empty[i]
    for i in range(low.size):
        s.free_low[i] = low[i]
    for i in range(mid.size):
        s.free_mid[i] = mid[i]
    for i in range(top.size):
        s.free_top[i] = top[i]


@entry
def lay_columns(states, row, arrival_s, deadline_s, gpus, iterations, profile, compute_s, base_s):
    """Modify the record in `row`: its jobs, of whom nobody has seen one yet, in a window in order of arrival.

    Args:
        states: records (n,); that in `row` is cleared.
        row: which.
        arrival_s, deadline_s, gpus, iterations: columns of the workload, (jobs,) each.
        profile: int64 (jobs,), rows of the slowdowns.
        compute_s, base_s: seconds per iteration, float64 (jobs,), as `isolated.iteration_times_s` has them.

    Returns:
        How many have a deadline.
    """
    s = states[row]
    jobs = arrival_s.size
    due = 0
    for job in range(jobs):
        s.arrival_s[job] = arrival_s[job]
        s.deadline_s[job] = deadline_s[job]
        due += deadline_s[job] < math.inf
        s.gpus[job] = gpus[job]
        s.iterations[job] = iterations[job]
        s.iterations_left[job] = iterations[job]
        s.profile[job] = profile[job]
        s.compute_iteration_s[job] = compute_s[job]
        s.base_iteration_s[job] = base_s[job]
        if has_berths(s):
            s.own_gpus[job] = gpus[job]
    for job in range(jobs):
        s.first_start_s[job] = -1.0
        s.finish_s[job] = -1.0
        s.stopped_s[job] = -1.0
        s.left_s[job] = -1.0
        s.begun_s[job] = -1.0
        s.check_s[job] = math.inf
        s.lease_end_s[job] = math.inf
        s.planned_finish_s[job] = math.inf
        s.queue_place[job] = -1
        s.first_gpu[job] = FREE
        s.tier[job] = UNPLACED
        s.rank[job] = job
        s.job_at_rank[job] = job
    for job in range(min(jobs, s.next_first_gpu.size)):
        s.next_first_gpu[job] = FREE
    for event in range(s.event_of.size):
        s.event_of[event] = -1
    s.n_jobs = jobs
    s.last_end_s = -1.0
    s.now_s = s.start_s = arrival_s[0]
    return due


@entry
def lay_demands(states, row, skewed, kind, kinds):
    """Modify the record in `row`: the demand classes of its jobs, by GPUs, then whether skewed, then kind.

    Compiled rules, which ask by demand, place nothing in regions: there all jobs are one class.

    Args:
        states: records (n,); jobs are laid in that in `row`.
        row: which.
        skewed: bool (jobs,), who asks for consolidation; (0,): nobody.
        kind: int64 (jobs,), from 0 to kinds - 1, what a rule tells apart beside their GPUs; (0,): nothing.
        kinds: how many.

    Returns:
        How many classes there are; -1: more than there is room for.
    """
    s = states[row]
    classes = 0
    for job in range(s.n_jobs):
        demand = _demand(s, job, skewed, kind, kinds)
        place = lower_place(s.class_gpus, classes, demand)
        if place == classes or s.class_gpus[place] != demand:
            if classes == s.class_gpus.size:
                return -1
            for other in range(classes, place, -1):
                s.class_gpus[other] = s.class_gpus[other - 1]
            s.class_gpus[place] = demand
            classes += 1
    for place in range(classes):
        s.class_base[place] = 0
    for job in range(s.n_jobs):
        place = lower_place(s.class_gpus, classes, _demand(s, job, skewed, kind, kinds))
        s.demand[job] = place
        s.class_base[place] += 1
    base = 0
    for place in range(classes):
        count = s.class_base[place]
        s.class_base[place] = base
        base += count
        demand = s.class_gpus[place] // kinds
        s.class_gpus[place] = demand // 2
        s.class_skewed[place] = demand % 2
    s.n_classes = classes
    return classes


@kernel
def _demand(s, job, skewed, kind, kinds):
    """A number that jobs of one class share, ascending with their GPUs."""
    if has_regions(s):
        return 0
    demand = 2 * (s.own_gpus[job] if has_berths(s) else s.gpus[job])
    if skewed.size > 0:
        demand += skewed[job]
    if kind.size > 0:
        demand = demand * kinds + kind[job]
    return demand
