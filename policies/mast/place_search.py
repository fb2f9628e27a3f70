"""The best place for one more workload in a region, and in any region (paper mast, Sec. 4.3).

A part is tried in every cluster of its type; without preemption first, else with as little as possible; with several
accepted types one after the other (type_choices.py). The parts of a workload come in turn, each on the state that
earlier ones left, and only where later ones of its type still have room. It does not depend on what leaves: a workload
can have the free units of a cluster and those of less important workloads. So it has a plan wherever its parts can be
packed.
"""

from __future__ import annotations

import math

from ...simulator.base.codes import FREE
from ...simulator.compiler.jit import entry, kernel
from .region_units import (
    ASKED,
    CHOSEN,
    IMPORTANCES,
    LEAVES,
    LOGGED,
    LOGGED_UNITS,
    NONE,
    PARTS,
    SPARED,
    TAKEN,
    first_unit,
    forget,
    hold,
    is_refused,
    release,
    unit_count,
)

MOST_NUMBER = 900  # cap of the number of workloads that leave, in the score of a part
BY_RACK = 1e-3  # for each rack, without preemption
BY_IMPORTANCE, BY_NUMBER = 1e6, 1e3
HOUR = 3600.0
NO_PLAN = -math.inf


@kernel
def _racks_needed(m, cluster, units):
    """The fewest neighbouring racks that suffice, 0: none do. Modify `window` in place: these racks, from and to."""
    fewest, low, held = 0, m.cluster_rack[cluster], 0
    for high in range(m.cluster_rack[cluster], m.cluster_rack[cluster + 1]):
        held += m.room[high]
        while low < high and held - m.room[low] >= units:
            held -= m.room[low]
            low += 1
        if held >= units and (fewest == 0 or high - low + 1 < fewest):
            fewest = high - low + 1
            m.window[0] = low
            m.window[1] = high + 1
            if fewest == 1:
                break
    return fewest


@kernel
def _pack(m, units):
    """Modify `taken` in place: free units of the window, machines with most of them first."""
    low, high = m.rack_machine[m.window[0]], m.rack_machine[m.window[1]]
    most = 0
    for machine in range(low, high):
        most = max(most, m.free[machine])
    for free in range(most, 0, -1):
        for machine in range(low, high):
            if m.free[machine] != free:
                continue
            for unit in range(m.machine_unit[machine], m.machine_unit[machine + 1]):
                if units > 0 and m.owner[unit] == FREE:
                    m.taken[m.count[TAKEN]] = unit
                    m.count[TAKEN] += 1
                    units -= 1
            if units == 0:
                return


@kernel
def _least_importance(m, cluster, units, importance):
    """The least importance up to which workloads must leave, below the new one's; -1: that is not enough."""
    found = m.spare[cluster]
    for other in range(importance):
        found += m.held[cluster, other]
        if found >= units:
            return other
    return NONE


@kernel
def _obtainable(m, cluster, importance):
    units = m.spare[cluster]
    for other in range(importance):
        units += m.held[cluster, other]
    return units


@kernel
def is_possible(m, group, only, units, importance):
    """Whether a cluster of the group, or `only` that one, could make room for so many units."""
    for place in range(m.first_cluster[group], m.first_cluster[group + 1]):
        cluster = m.clusters[place]
        if (only == NONE or cluster == only) and _obtainable(m, cluster, importance) >= units:
            return True
    return False


@kernel
def _after(m, job, part):
    """The next part of the same type; PARTS: none."""
    for other in range(part + 1, PARTS):
        if m.kind[job, other] == m.kind[job, part]:
            return other
    return PARTS


@kernel
def _before(m, job, part):
    """The part of the same type before one that is not the first."""
    other = part - 1
    while m.kind[job, other] != m.kind[job, part]:
        other -= 1
    return other


@kernel
def _fits_beside(m, job, first, part, importance):
    """Whether a part has room at its spot, with those of its type from `first` on at their spots."""
    units = m.need[job, part]
    for other in range(first, part):
        if m.kind[job, other] == m.kind[job, part] and m.spot[other] == m.spot[part]:
            units += m.need[job, other]
    return _obtainable(m, m.clusters[m.spot[part]], importance) >= units


@kernel
def _leaves_room(m, job, part, place, importance):
    """Whether all later parts of its type have room if a part lies in clusters[place]; tries all ways."""
    at = _after(m, job, part)
    if at == PARTS:
        return True
    group = m.cluster_group[m.clusters[place]]
    begin, end = m.first_cluster[group], m.first_cluster[group + 1]
    m.spot[part], m.spot[at] = place, begin - 1
    while at > part:
        m.spot[at] += 1
        if m.spot[at] == end:
            at = _before(m, job, at)
        elif _fits_beside(m, job, part, at, importance):
            at = _after(m, job, at)
            if at == PARTS:
                return True
            m.spot[at] = begin - 1
    return False


@kernel
def _has_spot(m, job, part, group, only, importance):
    """Whether a part has room in a cluster of the group, or in `only` that one, and later ones of its type too."""
    for place in range(m.first_cluster[group], m.first_cluster[group + 1]):
        cluster = m.clusters[place]
        if (only != NONE and cluster != only) or _obtainable(m, cluster, importance) < m.need[job, part]:
            continue
        if _leaves_room(m, job, part, place, importance):
            return True
    return False


@kernel
def has_room(m, job, region, only, importance):
    """Whether a region has room for all parts, if workloads below an importance leave; `only`: see `place`."""
    for part in range(PARTS - 1, -1, -1):  # from the last, which fails soonest
        if m.kind[job, part] < 0:
            continue
        group, wanted = region * m.n_types + m.kind[job, part], only if part == 0 else NONE
        if not _has_spot(m, job, part, group, wanted, importance):
            return False
    return True


@kernel
def _number(m, cluster, missing, importance, before_s):
    """The fewest workloads of at most this importance, started by then, that hold the missing units; -1: none do."""
    number, base = 0, first_unit(m, cluster)
    for place in range(base, base + m.running[cluster]):
        slot = m.by_size[place]
        job = slot // PARTS
        if m.importance[job] <= importance and m.start_s[job] <= before_s:
            missing -= m.units[slot]
            number += 1
            if missing <= 0:
                return number
    return NONE


@kernel
def _latest_start(m, cluster, missing, importance, number):
    """The earliest possible start of the youngest workload that leaves, if `number` leave; by bisection."""
    base = first_unit(m, cluster)
    low, high = 0, m.running[cluster] - 1
    while low < high:
        middle = (low + high) // 2
        need = _number(m, cluster, missing, importance, m.start_s[m.by_start[base + middle] // PARTS])
        if need != NONE and need <= number:
            high = middle
        else:
            low = middle + 1
    return m.start_s[m.by_start[base + low] // PARTS]


@kernel
def preempting_score(importance, number, age_s):
    """Score with preemption: by importance, then number, then run of the youngest. Paper: mast, Sec. 4.3."""
    young = 1.0 / (1.0 + max(age_s, 0.0) / HOUR)
    return -(BY_IMPORTANCE * (1.0 + importance) + BY_NUMBER * min(number, MOST_NUMBER) + young)


@kernel
def _look_without(m, job, part, group, only, importance):
    """Modify the chosen cluster and the score in place: where the fewest neighbouring racks suffice, as it is."""
    units, fewest = m.need[job, part], 0
    for place in range(m.first_cluster[group], m.first_cluster[group + 1]):
        cluster = m.clusters[place]
        if m.spare[cluster] < units or (only != NONE and cluster != only):
            continue
        if not _leaves_room(m, job, part, place, importance):
            continue
        racks = _racks_needed(m, cluster, units)
        if fewest == 0 or racks < fewest:
            fewest = racks
            m.count[CHOSEN] = cluster
            m.score[0] = -BY_RACK * racks
            if fewest == 1:
                break


@kernel
def _look_with(m, job, part, group, only, importance, now_s):
    """Modify the chosen cluster, the score and `leaving` in place: where the least has to be preempted."""
    units, limit, latest_s = m.need[job, part], NONE, 0.0
    for place in range(m.first_cluster[group], m.first_cluster[group + 1]):
        cluster = m.clusters[place]
        if only != NONE and cluster != only:
            continue
        least = _least_importance(m, cluster, units, importance)
        if least == NONE or (limit != NONE and least > limit):
            continue
        if not _leaves_room(m, job, part, place, importance):
            continue
        missing = units - m.spare[cluster]
        number = _number(m, cluster, missing, least, math.inf)
        start_s = _latest_start(m, cluster, missing, least, number)
        score = preempting_score(least, number, now_s - start_s)
        if m.count[CHOSEN] == NONE or score > m.score[0]:
            m.count[CHOSEN] = cluster
            m.score[0] = score
            limit, latest_s = least, start_s
    if m.count[CHOSEN] != NONE:
        _choose_leavers(m, m.count[CHOSEN], units, limit, latest_s)


@kernel
def _choose_leavers(m, cluster, units, limit, latest_s):
    """Modify `leaving` in place: the largest workloads of at most that importance that started by then."""
    missing, base = units - m.spare[cluster], first_unit(m, cluster)
    for place in range(base, base + m.running[cluster]):
        slot = m.by_size[place]
        job = slot // PARTS
        if missing > 0 and m.importance[job] <= limit and m.start_s[job] <= latest_s:
            m.leaving[m.count[LEAVES]] = job
            m.count[LEAVES] += 1
            missing -= m.units[slot]


@kernel
def find_part(m, job, part, region, only, preempts, now_s):
    """Modify the chosen cluster, score and `leaving` in place. Returns the cluster, or -1. Paper: mast, Sec. 4.3."""
    group, wanted = region * m.n_types + m.kind[job, part], only if part == 0 else NONE
    importance = m.importance[job] if preempts else 0
    m.count[CHOSEN] = NONE
    _look_without(m, job, part, group, wanted, importance)
    if m.count[CHOSEN] == NONE and preempts:
        _look_with(m, job, part, group, wanted, importance, now_s)
    return m.count[CHOSEN]


@kernel
def _log(m, job):
    """Modify the log in place: add the units of a workload."""
    for slot in range(PARTS * job, PARTS * job + PARTS):
        if m.cluster[slot] == NONE:
            break
        unit = m.head[slot]
        while unit != NONE:
            m.log_unit[m.count[LOGGED_UNITS]] = unit
            m.count[LOGGED_UNITS] += 1
            unit = m.next_unit[unit]
        line = m.count[LOGGED]
        m.log_job[line] = job
        m.log_cluster[line] = m.cluster[slot]
        m.log_end[line] = m.count[LOGGED_UNITS]
        m.count[LOGGED] += 1


@kernel
def log_and_release(m, job):
    """Modify the regions and the log in place: a workload leaves; `undo` brings it back."""
    _log(m, job)
    release(m, job)


@kernel
def begin_plan(m):
    """Modify in place: empty plan and log."""
    m.count[TAKEN] = 0
    m.count[LEAVES] = 0
    m.count[LOGGED] = 0
    m.count[LOGGED_UNITS] = 0


@kernel
def undo(m, job):
    """Modify the regions in place: a workload gives its units back, and all in the log get back their units."""
    release(m, job)
    begin = 0
    for line in range(m.count[LOGGED]):
        hold(m, m.log_job[line], m.log_cluster[line], m.log_unit, begin, m.log_end[line])
        begin = m.log_end[line]
    begin_plan(m)


@kernel
def place(m, job, region, only, preempts, now_s):
    """Modify the regions in place: a workload gets the best plan of a region. Returns 1; 0: no plan, no change.

    `kind`, `need`: (J, 4), types and units of the parts, -1 after the last; `only`: the cluster of part 0, -1: any;
    `preempts`: others may leave. Plan and log remain, the log after its earlier content.
    """
    if not has_room(m, job, region, only, m.importance[job] if preempts else 0):
        return 0
    total = 0.0
    for part in range(PARTS):
        m.part_cluster[job, part] = NONE
    for part in range(PARTS):
        if m.kind[job, part] < 0:
            break
        before = m.count[LEAVES]
        cluster = find_part(m, job, part, region, only, preempts, now_s)
        total += m.score[0]
        for leaver in range(before, m.count[LEAVES]):
            log_and_release(m, m.leaving[leaver])
        begin = m.count[TAKEN]
        _racks_needed(m, cluster, m.need[job, part])
        _pack(m, m.need[job, part])
        hold(m, job, cluster, m.taken, begin, m.count[TAKEN])
        m.part_cluster[job, part] = cluster
    m.score[1] = total
    return 1


@entry
def put_back(solvers, job):
    """`undo`, for Python."""
    undo(solvers[0], job)


@kernel
def bid(m, job, region, only, preempts, now_s):
    """The score of a region's best plan for a workload, -inf: none. Nothing has changed. Paper: mast, Sec. 4.3."""
    if m.kind[job, 1] < 0:
        m.count[LEAVES] = 0
        found = find_part(m, job, 0, region, only, preempts, now_s)
        m.count[LEAVES] = 0
        return m.score[0] if found != NONE else NO_PLAN
    begin_plan(m)
    if not place(m, job, region, only, preempts, now_s):
        return NO_PLAN
    score = m.score[1]
    undo(m, job)
    return score


@kernel
def was_refused(m, job, region, only):
    """Whether the negative cache excludes a region, or its cluster `only`. Paper: mast, Sec. 4.3.1."""
    level = IMPORTANCES - 1 - m.importance[job]
    for part in range(PARTS):
        if m.kind[job, part] < 0:
            break
        if part == 0 and only != NONE and is_refused(m, m.n_regions * m.n_types + only, m.need[job, 0], level):
            return True
        if is_refused(m, region * m.n_types + m.kind[job, part], m.need[job, part], level):
            return True
    return False


@kernel
def refuse(m, job, region, only):
    """Modify the negative cache in place: a region had no plan for a workload.

    It keeps parts that no cluster could make room for alone. So many units of the type, or more, then fail for the same
    priority and lower ones, until `forget`.
    """
    importance = m.importance[job]
    for part in range(PARTS):
        if m.kind[job, part] < 0:
            break
        group, wanted = region * m.n_types + m.kind[job, part], only if part == 0 else NONE
        if not is_possible(m, group, wanted, m.need[job, part], importance):
            row = group if wanted == NONE else m.n_regions * m.n_types + wanted
            for level in range(IMPORTANCES - 1 - importance, IMPORTANCES):
                m.refused[row, level] = min(m.refused[row, level], m.need[job, part])


@kernel
def load_of(m, region, kind):
    """Units of a type that are not free in a region, over all."""
    group, units, free = region * m.n_types + kind, 0, 0
    for at in range(m.first_cluster[group], m.first_cluster[group + 1]):
        units += unit_count(m, m.clusters[at])
        free += m.spare[m.clusters[at]]
    return (units - free) / max(1, units)


@kernel
def choose(m, job, choice):
    """Modify `kind` in place: a workload's parts get the types of one of its choices."""
    for part in range(PARTS):
        m.kind[job, part] = m.choice_kind[m.first_choice[job] + choice, part]


@kernel
def agrees(m, job, cluster):
    """Whether a workload's first part has the type of a cluster; -1: any cluster."""
    return cluster == NONE or m.cluster_group[cluster] % m.n_types == m.kind[job, 0]


@kernel
def choice_in(m, job, kind):
    """A workload's first choice with a type for its first part, 0 also without choices; -1: none."""
    if m.choices[job] == 0:
        return 0 if m.kind[job, 0] == kind else NONE
    for choice in range(m.choices[job]):
        if m.choice_kind[m.first_choice[job] + choice, 0] == kind:
            return choice
    return NONE


@kernel
def place_in(m, job, region, cluster, preempts, now_s):
    """`place` with the first part in a cluster, by the first choice of types with a plan."""
    if m.choices[job] == 0:
        return place(m, job, region, cluster, preempts, now_s)
    for choice in range(m.choices[job]):
        choose(m, job, choice)
        if agrees(m, job, cluster) and place(m, job, region, cluster, preempts, now_s):
            return 1
    return 0


@kernel
def bid_in(m, job, region, cluster, now_s):
    """`bid` with preemption, the first part in a cluster, -1: any: the best of all choices of types."""
    if m.choices[job] == 0:
        return bid(m, job, region, cluster, True, now_s)
    score = NO_PLAN
    for choice in range(m.choices[job]):
        choose(m, job, choice)
        if agrees(m, job, cluster):
            score = max(score, bid(m, job, region, cluster, True, now_s))
    return score


@kernel
def award(m, job, bits, only, preempts, remembers, now_s):
    """`award_types` for the winning choice of types (type_choices.py)."""
    if m.choices[job] == 0:
        return award_types(m, job, bits, only, preempts, remembers, now_s)
    for choice in range(m.choices[job]):
        choose(m, job, choice)
        if agrees(m, job, only):
            region = award_types(m, job, bits, only, False, remembers, now_s)
            if region != NONE:
                return region
    best, score = NONE, NO_PLAN
    for choice in range(m.choices[job] if preempts else 0):
        choose(m, job, choice)
        if agrees(m, job, only) and award_types(m, job, bits, only, True, remembers, now_s) != NONE:
            if m.score[1] > score:
                best, score = choice, m.score[1]
            undo(m, job)
    if best == NONE:
        return NONE
    choose(m, job, best)
    return award_types(m, job, bits, only, True, remembers, now_s)


@kernel
def award_types(m, job, bits, only, preempts, remembers, now_s):
    """Modify the regions in place: a workload gets the best plan of all regions in `bits`. Returns the region, or -1.

    `only`: the cluster of part 0, -1: any; `preempts`: others may leave; `remembers`: use the negative cache. Equal
    scores go to the region where the type of part 0 is least loaded, then the lowest number (the paper is silent).
    Plan, score and log remain; `undo` takes it back. Paper: mast, Sec. 4.3.
    """
    best, score = NONE, NO_PLAN
    single = m.kind[job, 1] < 0
    for region in range(m.n_regions):
        if not (bits >> region) & 1:
            continue
        m.count[ASKED] += 1
        if remembers and was_refused(m, job, region, only):
            m.count[SPARED] += 1
            continue
        may = preempts and not (single and score > -BY_NUMBER)  # not after a plan without preemption
        offered = bid(m, job, region, only, may, now_s)
        if offered == NO_PLAN and may:
            refuse(m, job, region, only)
        elif offered > score:
            best, score = region, offered
        elif (
            offered == score and best != NONE and load_of(m, region, m.kind[job, 0]) < load_of(m, best, m.kind[job, 0])
        ):
            best = region
    begin_plan(m)
    if best != NONE:
        place(m, job, best, only, preempts, now_s)
    return best


@kernel
def realise(m, job, region, only, now_s):
    """Modify the regions in place: a workload gets the plan of a region, which exists; others may leave."""
    begin_plan(m)
    place(m, job, region, only, True, now_s)
    release_cache(m, job, region)


@kernel
def release_cache(m, job, region):
    """Modify the negative cache in place: units left over by preempted workloads are free for lower priorities."""
    if m.count[LEAVES] > 0:
        forget(m, region, IMPORTANCES - 1 - m.importance[job])


@entry
def best(solvers, job, bits, only, preempts, remembers, now_s):
    """`award`, for Python."""
    return award(solvers[0], job, bits, only, preempts, remembers, now_s)


@entry
def forgive(solvers, region, level):
    """`forget`, for Python."""
    forget(solvers[0], region, level)
