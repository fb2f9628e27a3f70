"""The pass over the queue: each pending workload in turn gets the best plan, or is passed (paper mast, Sec. 4.1-3).

Two kinds of allocation (Table 1): `EXHAUSTIVE`, over all clusters of all regions that the workload may go to, and
`FIRST_FIT`: clusters are asked one by one, the least loaded first, and the first with a plan has it.
"""

from __future__ import annotations

from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.record.field_axes import CALL, Axis, Field
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


def queue_fields(jobs: Axis) -> list[Field]:
    """The queue of a pass: pending workloads in order, where they may go, and where they are placed."""
    return [
        ("queued", "i8", (jobs,), CALL),  # workloads
        ("only", "i8", (jobs,), CALL),  # by workload: the one cluster for part 0, -1: any
        ("queue_region", "i8", (jobs,), CALL),  # by place in the queue: its region in this pass, -1
        ("movable", "i8", (jobs,), CALL),  # by place: whether it was placed without preemption
        ("option", "i8", (7,)),  # allocation, number placed jointly, use the cache, pending; moved, or -1; victims
        ("base_importance", "i8", (jobs,), CALL),  # by present priority, where run times decide stops
        ("size_weight", "f8", (jobs,)),  # GPUs in the weights
        ("weight", "f8", (jobs,), CALL),  # time left x GPUs, seconds
        ("least_ratio", "f8"),  # of a victim's weight
    ]


@kernel
def _load(m, cluster, importance):
    """Units of workloads of this importance or a higher one, over all of the cluster."""
    held = 0
    for other in range(importance, IMPORTANCES):
        held += m.held[cluster, other]
    return held / max(1, unit_count(m, cluster))


@kernel
def _least_loaded(m, job, bits, importance):
    """The least loaded untried cluster of these regions with a type for part 0, then the fastest; -1: none."""
    best, least, rank = NONE, 0.0, 0
    for cluster in range(m.n_clusters):
        group = m.cluster_group[cluster]
        choice = choice_in(m, job, group % m.n_types)
        if m.tried[cluster] or choice == NONE or not (bits >> (group // m.n_types)) & 1:
            continue
        load = _load(m, cluster, importance)
        if best == NONE or load < least or (load == least and choice < rank):
            best, least, rank = cluster, load, choice
    return best


@kernel
def first_fit(m, job, bits, remembers, now_s):
    """Modify the regions in place. Returns the region, or -1. Paper: mast, Table 1, allocation of a cluster."""
    for cluster in range(m.n_clusters):
        m.tried[cluster] = 0
    while True:
        cluster = _least_loaded(m, job, bits, m.importance[job])
        if cluster == NONE:
            return NONE
        m.tried[cluster] = 1
        region = m.cluster_group[cluster] // m.n_types
        if m.choices[job] == 0 and _says_yes(m, job, region, cluster, remembers, now_s):
            return region
        for choice in range(m.choices[job]):
            choose(m, job, choice)
            if agrees(m, job, cluster) and _says_yes(m, job, region, cluster, remembers, now_s):
                return region


@kernel
def _says_yes(m, job, region, cluster, remembers, now_s):
    """Modify the regions in place: carry out a cluster's plan for part 0, with preemptions. False without a plan."""
    m.count[ASKED] += 1
    if remembers and was_refused(m, job, region, cluster):
        m.count[SPARED] += 1
        return False
    if bid(m, job, region, cluster, True, now_s) > NO_PLAN:
        realise(m, job, region, cluster, now_s)
        return True
    refuse(m, job, region, cluster)
    return False


@kernel
def _serve(m, job, now_s):
    if m.option[ALLOCATION] == FIRST_FIT and m.only[job] == NONE:
        return first_fit(m, job, m.bits[job], m.option[REMEMBERS], now_s)
    preempts, remembers = m.option[STOPS] != NO_VICTIM, m.option[REMEMBERS]
    if m.option[STOPS] == ANY_VICTIM:
        weigh_up(m, job, now_s)
    region = award(m, job, m.bits[job], m.only[job], preempts, remembers, now_s)
    if region != NONE:
        release_cache(m, job, region)
    return region


@kernel
def _elsewhere(m, job, home, now_s):
    """The best region but `home` with a plan without preemption, -1: none. Nothing has changed."""
    best, score = NONE, NO_PLAN
    for region in range(m.n_regions):
        if region == home or not (m.bits[job] >> region) & 1:
            continue
        offered = bid_after(m, job, region, now_s)
        if offered > score:
            best, score = region, offered
    m.score[1] = score
    return best


@kernel
def bid_after(m, job, region, now_s):
    """The score of a plan without preemption, -inf: none. Nothing has changed, not even the log."""
    taken, leaves = m.count[TAKEN], m.count[LEAVES]
    score = NO_PLAN
    if place(m, job, region, NONE, False, now_s):
        score = m.score[1]
        release(m, job)
    m.count[TAKEN], m.count[LEAVES] = taken, leaves
    return score


@kernel
def _exchange(m, earlier, job, now_s):
    """The score of both, if the earlier one makes room and goes elsewhere; -inf: none. Nothing has changed."""
    other, region = m.queued[earlier], m.queue_region[earlier]
    begin_plan(m)
    log_and_release(m, other)
    score = NO_PLAN
    if place(m, job, region, NONE, True, now_s):
        score = m.score[1]
        score = score + m.score[1] if _elsewhere(m, other, region, now_s) != NONE else NO_PLAN
    undo(m, job)
    return score


@kernel
def _jointly(m, at, now_s):
    """Modify the regions in place: an earlier workload makes room, with its types. Returns its place, or -1."""
    job, best, score, chosen = m.queued[at], NONE, NO_PLAN, 0
    for choice in range(max(1, m.choices[job])):
        if m.choices[job] > 0:
            choose(m, job, choice)
        earlier = _to_make_room(m, at, now_s)
        if earlier != NONE and m.score[2] > score:
            best, score, chosen = earlier, m.score[2], choice
    if m.choices[job] > 0:
        choose(m, job, chosen)
    return best


@kernel
def _to_make_room(m, at, now_s):
    """The place in the queue of the workload that makes room best, -1; the score is left. Nothing has changed."""
    job, best, score = m.queued[at], NONE, NO_PLAN
    looked = 1
    for earlier in range(at - 1, -1, -1):
        if looked >= m.option[JOINT]:
            break
        if m.queue_region[earlier] == NONE or not m.movable[earlier]:
            continue
        looked += 1
        region = m.queue_region[earlier]
        if not (m.bits[job] >> region) & 1 or m.bits[m.queued[earlier]] == 1 << region:
            continue
        offered = _exchange(m, earlier, job, now_s)
        if offered > score:
            best, score = earlier, offered
    m.score[2] = score
    return best


@kernel
def _move(m, earlier, job, now_s):
    """Modify the regions in place: carry out the exchange. Returns the region of `job`."""
    other, region = m.queued[earlier], m.queue_region[earlier]
    release(m, other)
    begin_plan(m)
    place(m, job, region, NONE, True, now_s)
    leaves, taken = m.count[LEAVES], m.count[TAKEN]
    m.queue_region[earlier] = _elsewhere(m, other, region, now_s)
    place(m, other, m.queue_region[earlier], NONE, False, now_s)
    m.count[LEAVES], m.count[TAKEN] = leaves, taken
    m.option[MOVED] = other
    forget_all(m)
    return region


@kernel
def _weigh(s, m, job):
    m.base_importance[job] = IMPORTANCES - 1 - m.level[job]
    m.weight[job] = isolated_left_s(s, job) * m.size_weight[job]


@kernel
def write_queue(s, m, count):
    """Modify in place: queue the pending workloads as ranked, with their regions. Returns those without."""
    lacking = 0
    for at in range(count):
        job = m.order[at]
        m.queued[at] = job
        m.bits[job] = candidate_regions(s, job)
        m.only[job] = NONE
        m.importance[job] = IMPORTANCES - 1 - m.level[job]
        m.start_s[job] = s.now_s
        lacking += m.bits[job] == 0
        if m.option[STOPS] == ANY_VICTIM:
            _weigh(s, m, job)
    for place_ in range(s.running if m.option[STOPS] == ANY_VICTIM else 0):
        _weigh(s, m, s.runner[place_])
    m.option[LENGTH] = count
    return lacking


@entry
def open_queue(states, row, solvers, count):
    """`write_queue`, for Python."""
    return write_queue(states[row], solvers[row], count)


@kernel
def auction(m, begin, now_s):
    """Modify the regions in place: place the first pending workload, from a place in the queue on, that fits.

    Returns its place, or the length of the queue. `leaving` has the workloads that leave for it; `MOVED` is one that
    was placed earlier in this pass and now lies elsewhere, without a preemption of its own, or -1.
    Paper: mast, Sec. 4.1.
    """
    for at in range(begin, m.option[LENGTH]):
        job = m.queued[at]
        m.queue_region[at] = NONE
        m.option[MOVED] = NONE
        if m.bits[job] == 0:
            continue
        region = _serve(m, job, now_s)
        if region == NONE and m.option[JOINT] > 1:
            earlier = _jointly(m, at, now_s)
            if earlier != NONE:
                region = _move(m, earlier, job, now_s)
        if region != NONE:
            m.queue_region[at] = region
            m.movable[at] = m.count[LEAVES] == 0
            return at
    return m.option[LENGTH]


@entry
def place_next(solvers, begin, now_s):
    """`auction`, for Python."""
    return auction(solvers[0], begin, now_s)


@kernel
def units_of(m, job):
    """Modify `taken` in place: the units of a placed workload, part by part. Returns their number."""
    count = 0
    for part in range(PARTS):
        cluster = m.part_cluster[job, part]
        if cluster == NONE:
            break
        before = 0
        for other in range(part):
            if m.part_cluster[job, other] == cluster:
                before += m.need[job, other]
        slot = PARTS * job
        while m.cluster[slot] != cluster:
            slot += 1
        unit = m.head[slot]
        for _ in range(before):
            unit = m.next_unit[unit]
        for _ in range(m.need[job, part]):
            m.taken[count] = unit
            unit = m.next_unit[unit]
            count += 1
    return count


@entry
def list_units(solvers, job):
    """`units_of`, for Python."""
    return units_of(solvers[0], job)
