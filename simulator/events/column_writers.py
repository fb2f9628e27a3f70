"""Writing GPUs and jobs into a cleared record in kernels: environments are reset often."""

from __future__ import annotations

import math

from ..base.codes import FREE
from ..base.tiers import UNPLACED
from ..compiler.jit import entry, kernel
from ..numerics.bisection import lower_place
from ..record.feature_groups import has_berths


@entry
def write_gpus(cluster, arrays, berths, empty):
    """Modify `cluster` and `berths`, int64 (arrays, [layers,] room): the GPUs to racks of a free cluster.

    `arrays`, `empty`: int64 (arrays, GPUs), (arrays,), their values; of berths `empty` everywhere.
    """
    for i in range(arrays.shape[0]):
        for gpu in range(arrays.shape[1]):
            cluster[i, gpu] = arrays[i, gpu]
    for i in range(empty.size):
        for layer in range(berths.shape[1]):
            for gpu in range(arrays.shape[1]):
                berths[i, layer, gpu] = empty[i]


@entry
def write_columns(states, row, arrival_s, deadline_s, gpus, iterations, profile, compute_s, base_s):
    """Modify the record in `row`, cleared first: its jobs, in order of arrival; returns how many have a deadline.

    `arrival_s` to `iterations`: columns (jobs,). `profile`: int64 (jobs,), rows of the slowdowns. `compute_s`,
    `base_s`: seconds per iteration, float64 (jobs,), of `isolated.iteration_times_s`.
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
    for event in range(s.event_position.size):
        s.event_position[event] = -1
    s.n_jobs = jobs
    s.last_end_s = -1.0
    s.now_s = s.start_s = arrival_s[0]
    return due


@entry
def write_demands(gpus, skewed, kind, kinds, demand, class_gpus, class_skewed, class_base):
    """Modify the last four: demand classes of jobs, by GPUs, skew and kind; returns how many; -1: no room.

    Args:
        gpus: int64 (jobs,). skewed: bool (jobs,), jobs that ask for consolidation; (0,): none.
        kind: int64 (jobs,), 0 to kinds - 1, other differences for a rule; (0,): none.
        demand: int64 (jobs,), the class of each.
        class_gpus, class_skewed, class_base: int64 (room,), GPUs, skew, and the number of jobs in earlier classes.
    """
    classes = 0
    for job in range(gpus.size):
        asked = _demand(gpus, skewed, kind, kinds, job)
        place = lower_place(class_gpus, classes, asked)
        if place == classes or class_gpus[place] != asked:
            if classes == class_gpus.size:
                return -1
            for other in range(classes, place, -1):
                class_gpus[other] = class_gpus[other - 1]
            class_gpus[place] = asked
            classes += 1
    for place in range(classes):
        class_base[place] = 0
    for job in range(gpus.size):
        demand[job] = lower_place(class_gpus, classes, _demand(gpus, skewed, kind, kinds, job))
        class_base[demand[job]] += 1
    base = 0
    for place in range(classes):
        count = class_base[place]
        class_base[place] = base
        base += count
        asked = class_gpus[place] // kinds
        class_gpus[place] = asked // 2
        class_skewed[place] = asked % 2
    return classes


@kernel
def _demand(gpus, skewed, kind, kinds, job):
    asked = 2 * gpus[job]
    if skewed.size > 0:
        asked += skewed[job]
    if kind.size > 0:
        asked = asked * kinds + kind[job]
    return asked
