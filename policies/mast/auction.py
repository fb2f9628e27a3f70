"""The pass over the queue: each pending workload in turn gets the best plan, or is passed (paper mast, Sec. 4.1-3).

Two kinds of allocation (Table 1): `EXHAUSTIVE`, over all clusters of all regions that the workload may go to, and
`FIRST_FIT`: clusters are asked one by one, the least loaded first, and the first with a plan has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.regions.region_starts import candidate_regions
from .place_search import (
    NO_PLAN,
    agrees,
    award,
    begin_plan,
    bid,
    choice_in,
    choose,
    log_and_release,
    place,
    realise,
    refuse,
    release_cache,
    undo,
    was_refused,
)
from .region_units import (
    ASKED,
    CHOICES,
    IMPORTANCES,
    LEAVES,
    NONE,
    PARTS,
    SPARED,
    TAKEN,
    forget_all,
    release,
    unit_count,
)
from .victims import ANY_VICTIM, NO_VICTIM, STOPS, weigh_up

EXHAUSTIVE, FIRST_FIT = 0, 1
ALLOCATION, JOINT, REMEMBERS, LENGTH, MOVED = 0, 1, 2, 3, 4  # of `option`


class Queue(NamedTuple):
    """Arrays, int64; J workloads, the first of `job` pending, in order."""

    job: Any  # (J,)
    kind: Any  # (J, 4), by workload: types of its parts, -1 after the last; `kind` of the regions
    need: Any  # (J, 4), units of its parts
    bits: Any  # (J,), by workload: regions that it may go to
    only: Any  # (J,), by workload: the one cluster for part 0, -1: any
    region: Any  # (J,), by place in the queue: its region in this pass, -1
    movable: Any  # (J,), by place: whether it was placed without preemption
    option: Any  # (7,): allocation, number placed jointly, use the negative cache, pending; moved, or -1; victims
    base: Any  # (J,), by workload: importance by its present priority, where run times decide stops
    size: Any  # float64 (J,), GPUs in the weights
    weight: Any  # float64 (J,), time left x GPUs, seconds
    limit: Any  # float64 (1,): least ratio of a victim's weight


@kernel
def _load(r, cluster, importance):
    """Units of workloads of this importance or a higher one, over all of the cluster."""
    held = 0
    for other in range(importance, IMPORTANCES):
        held += r.held[cluster, other]
    return held / max(1, unit_count(r, cluster))


@kernel
def _least_loaded(r, job, bits, importance):
    """The least loaded untried cluster of these regions with a type for part 0, then the fastest; -1: none."""
    best, least, rank = NONE, 0.0, 0
    for cluster in range(r.spare.shape[0]):
        group = r.cluster_group[cluster]
        choice = choice_in(r, job, group % r.shape[1])
        if r.tried[cluster] or choice == NONE or not (bits >> (group // r.shape[1])) & 1:
            continue
        load = _load(r, cluster, importance)
        if best == NONE or load < least or (load == least and choice < rank):
            best, least, rank = cluster, load, choice
    return best


@kernel
def first_fit(r, job, kind, need, bits, remembers, now_s):
    """Modify the regions in place. Returns the region, or -1. Paper: mast, Table 1, allocation of a cluster."""
    for cluster in range(r.spare.shape[0]):
        r.tried[cluster] = 0
    while True:
        cluster = _least_loaded(r, job, bits, r.importance[job])
        if cluster == NONE:
            return NONE
        r.tried[cluster] = 1
        region = r.cluster_group[cluster] // r.shape[1]
        if r.kind[job, CHOICES] == 0 and _says_yes(r, job, kind, need, region, cluster, remembers, now_s):
            return region
        for choice in range(r.kind[job, CHOICES]):
            choose(r, job, choice)
            if agrees(r, job, cluster) and _says_yes(r, job, kind, need, region, cluster, remembers, now_s):
                return region


@kernel
def _says_yes(r, job, kind, need, region, cluster, remembers, now_s):
    """Modify the regions in place: carry out a cluster's plan for part 0, with preemptions. False without a plan."""
    r.count[ASKED] += 1
    if remembers and was_refused(r, job, kind, need, region, cluster):
        r.count[SPARED] += 1
        return False
    if bid(r, job, kind, need, region, cluster, True, now_s) > NO_PLAN:
        realise(r, job, kind, need, region, cluster, now_s)
        return True
    refuse(r, job, kind, need, region, cluster)
    return False


@kernel
def _serve(r, q, job, now_s):
    if q.option[ALLOCATION] == FIRST_FIT and q.only[job] == NONE:
        return first_fit(r, job, q.kind, q.need, q.bits[job], q.option[REMEMBERS], now_s)
    preempts, remembers = q.option[STOPS] != NO_VICTIM, q.option[REMEMBERS]
    if q.option[STOPS] == ANY_VICTIM:
        weigh_up(r, q, job, now_s)
    region = award(r, job, q.kind, q.need, q.bits[job], q.only[job], preempts, remembers, now_s)
    if region != NONE:
        release_cache(r, job, region)
    return region


@kernel
def _elsewhere(r, q, job, home, now_s):
    """The best region but `home` with a plan without preemption, -1: none. Nothing has changed."""
    best, score = NONE, NO_PLAN
    for region in range(r.shape[0]):
        if region == home or not (q.bits[job] >> region) & 1:
            continue
        offered = bid_after(r, job, q.kind, q.need, region, now_s)
        if offered > score:
            best, score = region, offered
    r.score[1] = score
    return best


@kernel
def bid_after(r, job, kind, need, region, now_s):
    """The score of a plan without preemption, -inf: none. Nothing has changed, not even the log."""
    taken, leaves = r.count[TAKEN], r.count[LEAVES]
    score = NO_PLAN
    if place(r, job, kind, need, region, NONE, False, now_s):
        score = r.score[1]
        release(r, job)
    r.count[TAKEN], r.count[LEAVES] = taken, leaves
    return score


@kernel
def _exchange(r, q, earlier, job, now_s):
    """The score of both, if the earlier one makes room and goes elsewhere; -inf: none. Nothing has changed."""
    other, region = q.job[earlier], q.region[earlier]
    begin_plan(r)
    log_and_release(r, other)
    score = NO_PLAN
    if place(r, job, q.kind, q.need, region, NONE, True, now_s):
        score = r.score[1]
        score = score + r.score[1] if _elsewhere(r, q, other, region, now_s) != NONE else NO_PLAN
    undo(r, job)
    return score


@kernel
def _jointly(r, q, at, now_s):
    """Modify the regions in place: an earlier workload makes room, with its types. Returns its place, or -1."""
    job, best, score, chosen = q.job[at], NONE, NO_PLAN, 0
    for choice in range(max(1, r.kind[job, CHOICES])):
        if r.kind[job, CHOICES] > 0:
            choose(r, job, choice)
        earlier = _to_make_room(r, q, at, now_s)
        if earlier != NONE and r.score[2] > score:
            best, score, chosen = earlier, r.score[2], choice
    if r.kind[job, CHOICES] > 0:
        choose(r, job, chosen)
    return best


@kernel
def _to_make_room(r, q, at, now_s):
    """The place in the queue of the workload that makes room best, -1; the score is left. Nothing has changed."""
    job, best, score = q.job[at], NONE, NO_PLAN
    looked = 1
    for earlier in range(at - 1, -1, -1):
        if looked >= q.option[JOINT]:
            break
        if q.region[earlier] == NONE or not q.movable[earlier]:
            continue
        looked += 1
        if not (q.bits[job] >> q.region[earlier]) & 1 or q.bits[q.job[earlier]] == 1 << q.region[earlier]:
            continue
        offered = _exchange(r, q, earlier, job, now_s)
        if offered > score:
            best, score = earlier, offered
    r.score[2] = score
    return best


@kernel
def _move(r, q, earlier, job, now_s):
    """Modify the regions in place: carry out the exchange. Returns the region of `job`."""
    other, region = q.job[earlier], q.region[earlier]
    release(r, other)
    begin_plan(r)
    place(r, job, q.kind, q.need, region, NONE, True, now_s)
    leaves, taken = r.count[LEAVES], r.count[TAKEN]
    q.region[earlier] = _elsewhere(r, q, other, region, now_s)
    place(r, other, q.kind, q.need, q.region[earlier], NONE, False, now_s)
    r.count[LEAVES], r.count[TAKEN] = leaves, taken
    q.option[MOVED] = other
    forget_all(r)
    return region


@kernel
def _weigh(s, g, q, job):
    q.base[job] = IMPORTANCES - 1 - g.level[job]
    q.weight[job] = isolated_left_s(s, job) * q.size[job]


@kernel
def write_queue(s, r, g, q, count):
    """Modify in place: queue the pending workloads of a ranking `g`, with their regions. Returns those without."""
    lacking = 0
    for at in range(count):
        job = g.order[at]
        q.job[at] = job
        q.bits[job] = candidate_regions(s, job)
        q.only[job] = NONE
        r.importance[job] = IMPORTANCES - 1 - g.level[job]
        r.start_s[job] = s.now_s
        lacking += q.bits[job] == 0
        if q.option[STOPS] == ANY_VICTIM:
            _weigh(s, g, q, job)
    for place_ in range(s.running if q.option[STOPS] == ANY_VICTIM else 0):
        _weigh(s, g, q, s.runner[place_])
    q.option[LENGTH] = count
    return lacking


@entry
def open_queue(states, row, r, g, q, count):
    """`write_queue`, for Python."""
    return write_queue(states[row], r, g, q, count)


@entry
def auction(r, q, begin, now_s):
    """Modify the regions in place: place the first pending workload, from a place in the queue on, that fits.

    Returns its place, or the length of the queue. `leaving` has the workloads that leave for it; `MOVED` is one that
    was placed earlier in this pass and now lies elsewhere, without a preemption of its own, or -1.
    Paper: mast, Sec. 4.1.
    """
    for at in range(begin, q.option[LENGTH]):
        job = q.job[at]
        q.region[at] = NONE
        q.option[MOVED] = NONE
        if q.bits[job] == 0:
            continue
        region = _serve(r, q, job, now_s)
        if region == NONE and q.option[JOINT] > 1:
            earlier = _jointly(r, q, at, now_s)
            if earlier != NONE:
                region = _move(r, q, earlier, job, now_s)
        if region != NONE:
            q.region[at] = region
            q.movable[at] = r.count[LEAVES] == 0
            return at
    return q.option[LENGTH]


@entry
def units_of(r, job, need):
    """Modify `taken` in place: the units of a placed workload, part by part. Returns their number."""
    count = 0
    for part in range(PARTS):
        cluster = r.part_cluster[job, part]
        if cluster == NONE:
            break
        before = 0
        for other in range(part):
            if r.part_cluster[job, other] == cluster:
                before += need[job, other]
        slot = PARTS * job
        while r.cluster[slot] != cluster:
            slot += 1
        unit = r.head[slot]
        for _ in range(before):
            unit = r.next_unit[unit]
        for _ in range(need[job, part]):
            r.taken[count] = unit
            unit = r.next_unit[unit]
            count += 1
    return count
