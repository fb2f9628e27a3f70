"""One region's machines and running jobs, and the best plan for another job in any of its clusters (paper mast, 4.3).

Machines are numbered cluster by cluster, in a cluster by rack. A job holds GPUs of one cluster on as many machines as
it takes. Importance is 6 for priority level 0, the highest, down to 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kernels.jit import entry, kernel

NONE = -1
MOST_NUMBER = 900  # of jobs that leave, in the score
NO_PREEMPTION = 1e-3  # for each rack
BY_IMPORTANCE, BY_NUMBER = 1e6, 1e3
HOUR = 3600.0


class Region(NamedTuple):
    """Arrays; C clusters, M machines, S slots for jobs, W machines a job at most, P jobs a cluster at most."""

    first: Any  # int64 (C + 1,), machines by cluster
    gpu_type: Any  # int64 (C,)
    rack: Any  # int64 (M,), ascending in a cluster
    free: Any  # int64 (M,), GPUs
    spare: Any  # int64 (C,), their sum by cluster
    cluster: Any  # int64 (S,), of a job, -1: an empty slot
    importance: Any  # int64 (S,)
    gpus: Any  # int64 (S,)
    start_s: Any  # float64 (S,)
    width: Any  # int64 (S,), machines that it holds
    machine: Any  # int64 (S, W)
    share: Any  # int64 (S, W), GPUs on each
    by_size: Any  # int64 (C, P), slots of a cluster's jobs, most GPUs first, the lower slot among equals
    by_start: Any  # int64 (C, P), the same jobs, longest running first
    running: Any  # int64 (C,), how many
    release: Any  # int64 (7,), scratch
    room: Any  # int64 (M,), scratch: free GPUs with those of the jobs that leave
    leaving: Any  # int64 (P,), plan: slots of the jobs that leave
    chosen: Any  # int64 (W,), plan: machines
    taken: Any  # int64 (W,), plan: GPUs on each
    plan: Any  # int64 (3,): cluster, number of jobs that leave, number of machines
    score: Any  # float64 (1,)


@kernel
def _racks_needed(r, cluster, room, gpus, window):
    """How many neighbouring racks suffice, fewest first; `window` gets the machines from and to. 0 where none do."""
    begin, end = r.first[cluster], r.first[cluster + 1]
    fewest = 0
    low, racks, held = begin, 0, 0
    for machine in range(begin, end):
        if machine == begin or r.rack[machine] != r.rack[machine - 1]:
            racks += 1
        held += room[machine]
        while True:  # drop the first rack while the others suffice
            high = low
            without = held
            while high <= machine and r.rack[high] == r.rack[low]:
                without -= room[high]
                high += 1
            if high > machine or without < gpus:
                break
            held, low, racks = without, high, racks - 1
        if held >= gpus and (fewest == 0 or racks < fewest):
            fewest = racks
            window[0] = low
            window[1] = machine + 1
    return fewest


@kernel
def _pack(r, gpus, begin, end):
    """Modify the plan in place: the machines of a window with most room first, until the GPUs are found."""
    last = end  # the whole last rack may serve
    while last < r.rack.shape[0] and r.rack[last] == r.rack[end - 1] and last < r.first[r.plan[0] + 1]:
        last += 1
    count = 0
    while gpus > 0:
        best = begin
        for machine in range(begin, last):
            if r.room[machine] > r.room[best]:
                best = machine
        take = min(gpus, r.room[best])
        r.chosen[count] = best
        r.taken[count] = take
        r.room[best] -= take
        gpus -= take
        count += 1
    r.plan[2] = count


@kernel
def _least_importance(r, cluster, gpus, importance):
    """The importance up to which jobs have to leave, all below the new one's; -1 where even that is not enough."""
    for other in range(importance):
        r.release[other] = 0
    for place in range(r.running[cluster]):
        job = r.by_size[cluster, place]
        if r.importance[job] < importance:
            r.release[r.importance[job]] += r.gpus[job]
    found = r.spare[cluster]
    for other in range(importance):
        found += r.release[other]
        if found >= gpus:
            return other
    return NONE


@kernel
def _number(r, cluster, missing, importance, before_s):
    """How few jobs of at most this importance, started by then, hold the missing GPUs: the largest; -1: too few do."""
    number = 0
    for place in range(r.running[cluster]):
        job = r.by_size[cluster, place]
        if r.importance[job] <= importance and r.start_s[job] <= before_s:
            missing -= r.gpus[job]
            number += 1
            if missing <= 0:
                return number
    return NONE


@kernel
def _latest_start(r, cluster, missing, importance, number):
    """The start of the youngest job that has to leave, if so many do: as early as can be, by bisection."""
    low, high = 0, r.running[cluster] - 1
    while low < high:
        middle = (low + high) // 2
        need = _number(r, cluster, missing, importance, r.start_s[r.by_start[cluster, middle]])
        if need != NONE and need <= number:
            high = middle
        else:
            low = middle + 1
    return r.start_s[r.by_start[cluster, low]]


@kernel
def preempting_score(importance, number, age_s):
    """Of a plan that preempts: the lower the importance, the fewer, the longer the youngest has run, the higher."""
    young = 1.0 / (1.0 + max(age_s, 0.0) / HOUR)
    return -(BY_IMPORTANCE * (1.0 + importance) + BY_NUMBER * min(number, MOST_NUMBER) + young)


@kernel
def _look_without(r, gpu_type, gpus, window):
    """Modify plan and score in place: the cluster where the fewest neighbouring racks suffice, as it is."""
    best = 0
    for cluster in range(r.gpu_type.shape[0]):
        if r.gpu_type[cluster] == gpu_type and r.spare[cluster] >= gpus:
            racks = _racks_needed(r, cluster, r.free, gpus, window)
            if best == 0 or racks < best:
                best = racks
                r.plan[0] = cluster
                r.score[0] = -NO_PREEMPTION * racks


@kernel
def _look_with(r, gpu_type, gpus, importance, now_s):
    """Modify plan and score in place: the cluster where the least has to be preempted, and the jobs that leave."""
    limit, latest_s = NONE, 0.0
    for cluster in range(r.gpu_type.shape[0]):
        if r.gpu_type[cluster] != gpu_type:
            continue
        least = _least_importance(r, cluster, gpus, importance)
        if least == NONE or (limit != NONE and least > limit):
            continue
        missing = gpus - r.spare[cluster]
        number = _number(r, cluster, missing, least, now_s)
        start_s = _latest_start(r, cluster, missing, least, number)
        score = preempting_score(least, number, now_s - start_s)
        if r.plan[0] == NONE or score > r.score[0]:
            r.plan[0] = cluster
            r.score[0] = score
            limit, latest_s = least, start_s
    if r.plan[0] == NONE:
        return
    cluster = r.plan[0]
    missing = gpus - r.spare[cluster]
    for place in range(r.running[cluster]):
        job = r.by_size[cluster, place]
        if missing > 0 and r.importance[job] <= limit and r.start_s[job] <= latest_s:
            r.leaving[r.plan[1]] = job
            r.plan[1] += 1
            missing -= r.gpus[job]


@entry
def find(r, gpu_type, gpus, importance, now_s, window):
    """Modify the plan in place: the best of all clusters for a job. Returns its cluster, -1: nothing is possible."""
    r.plan[0] = NONE
    r.plan[1] = 0
    r.plan[2] = 0
    _look_without(r, gpu_type, gpus, window)
    if r.plan[0] == NONE:
        _look_with(r, gpu_type, gpus, importance, now_s)
    cluster = r.plan[0]
    if cluster == NONE:
        return NONE
    for machine in range(r.first[cluster], r.first[cluster + 1]):
        r.room[machine] = r.free[machine]
    for place in range(r.plan[1]):
        job = r.leaving[place]
        for held in range(r.width[job]):
            r.room[r.machine[job, held]] += r.share[job, held]
    _racks_needed(r, cluster, r.room, gpus, window)
    _pack(r, gpus, window[0], window[1])
    return cluster


@kernel
def _drop(order, count, job):
    """Modify an order of `count` slots in place: take one out."""
    place = 0
    while order[place] != job:
        place += 1
    for later in range(place, count - 1):
        order[later] = order[later + 1]


@entry
def stop(r, job):
    """Modify the region in place: a job gives its GPUs back."""
    cluster = r.cluster[job]
    for held in range(r.width[job]):
        r.free[r.machine[job, held]] += r.share[job, held]
    r.spare[cluster] += r.gpus[job]
    _drop(r.by_size[cluster], r.running[cluster], job)
    _drop(r.by_start[cluster], r.running[cluster], job)
    r.running[cluster] -= 1
    r.cluster[job] = NONE


@entry
def carry_out(r, job, gpus, importance, now_s):
    """Modify the region in place: the plan that was found last; the jobs that leave stop, the new one has a slot."""
    for place in range(r.plan[1]):
        stop(r, r.leaving[place])
    cluster = r.plan[0]
    r.cluster[job] = cluster
    r.importance[job] = importance
    r.gpus[job] = gpus
    r.start_s[job] = now_s
    r.width[job] = r.plan[2]
    for held in range(r.plan[2]):
        r.machine[job, held] = r.chosen[held]
        r.share[job, held] = r.taken[held]
        r.free[r.chosen[held]] -= r.taken[held]
    r.spare[cluster] -= gpus
    place = r.running[cluster]
    while place > 0:
        before = r.by_size[cluster, place - 1]
        if r.gpus[before] > gpus or (r.gpus[before] == gpus and before < job):
            break
        r.by_size[cluster, place] = before
        place -= 1
    r.by_size[cluster, place] = job
    r.by_start[cluster, r.running[cluster]] = job
    r.running[cluster] += 1
