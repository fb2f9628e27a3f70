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
    CHOICES,
    CHOSEN,
    FIRST_CHOICE,
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
def _racks_needed(r, cluster, units):
    """The fewest neighbouring racks that suffice, 0: none do. Modify `window` in place: these racks, from and to."""
    fewest, low, held = 0, r.cluster_rack[cluster], 0
    for high in range(r.cluster_rack[cluster], r.cluster_rack[cluster + 1]):
        held += r.room[high]
        while low < high and held - r.room[low] >= units:
            held -= r.room[low]
            low += 1
        if held >= units and (fewest == 0 or high - low + 1 < fewest):
            fewest = high - low + 1
            r.window[0] = low
            r.window[1] = high + 1
            if fewest == 1:
                break
    return fewest


@kernel
def _pack(r, units):
    """Modify `taken` in place: free units of the window, machines with most of them first."""
    low, high = r.rack_machine[r.window[0]], r.rack_machine[r.window[1]]
    most = 0
    for machine in range(low, high):
        most = max(most, r.free[machine])
    for free in range(most, 0, -1):
        for machine in range(low, high):
            if r.free[machine] != free:
                continue
            for unit in range(r.machine_unit[machine], r.machine_unit[machine + 1]):
                if units > 0 and r.owner[unit] == FREE:
                    r.taken[r.count[TAKEN]] = unit
                    r.count[TAKEN] += 1
                    units -= 1
            if units == 0:
                return


@kernel
def _least_importance(r, cluster, units, importance):
    """The least importance up to which workloads must leave, below the new one's; -1: that is not enough."""
    found = r.spare[cluster]
    for other in range(importance):
        found += r.held[cluster, other]
        if found >= units:
            return other
    return NONE


@kernel
def _obtainable(r, cluster, importance):
    units = r.spare[cluster]
    for other in range(importance):
        units += r.held[cluster, other]
    return units


@kernel
def is_possible(r, group, only, units, importance):
    """Whether a cluster of the group, or `only` that one, could make room for so many units."""
    for place in range(r.first_cluster[group], r.first_cluster[group + 1]):
        cluster = r.clusters[place]
        if (only == NONE or cluster == only) and _obtainable(r, cluster, importance) >= units:
            return True
    return False


@kernel
def _after(kind, job, part):
    """The next part of the same type; PARTS: none."""
    for other in range(part + 1, PARTS):
        if kind[job, other] == kind[job, part]:
            return other
    return PARTS


@kernel
def _before(kind, job, part):
    """The part of the same type before one that is not the first."""
    other = part - 1
    while kind[job, other] != kind[job, part]:
        other -= 1
    return other


@kernel
def _fits_beside(r, job, kind, need, first, part, importance):
    """Whether a part has room at its spot, with those of its type from `first` on at their spots."""
    units = need[job, part]
    for other in range(first, part):
        if kind[job, other] == kind[job, part] and r.spot[other] == r.spot[part]:
            units += need[job, other]
    return _obtainable(r, r.clusters[r.spot[part]], importance) >= units


@kernel
def _leaves_room(r, job, kind, need, part, place, importance):
    """Whether all later parts of its type have room if a part lies in clusters[place]; tries all ways."""
    at = _after(kind, job, part)
    if at == PARTS:
        return True
    group = r.cluster_group[r.clusters[place]]
    begin, end = r.first_cluster[group], r.first_cluster[group + 1]
    r.spot[part], r.spot[at] = place, begin - 1
    while at > part:
        r.spot[at] += 1
        if r.spot[at] == end:
            at = _before(kind, job, at)
        elif _fits_beside(r, job, kind, need, part, at, importance):
            at = _after(kind, job, at)
            if at == PARTS:
                return True
            r.spot[at] = begin - 1
    return False


@kernel
def _has_spot(r, job, kind, need, part, group, only, importance):
    """Whether a part has room in a cluster of the group, or in `only` that one, and later ones of its type too."""
    for place in range(r.first_cluster[group], r.first_cluster[group + 1]):
        cluster = r.clusters[place]
        if (only != NONE and cluster != only) or _obtainable(r, cluster, importance) < need[job, part]:
            continue
        if _leaves_room(r, job, kind, need, part, place, importance):
            return True
    return False


@kernel
def has_room(r, job, kind, need, region, only, importance):
    """Whether a region has room for all parts, if workloads below an importance leave; `only`: see `place`."""
    for part in range(PARTS - 1, -1, -1):  # from the last, which fails soonest
        if kind[job, part] < 0:
            continue
        group, wanted = region * r.shape[1] + kind[job, part], only if part == 0 else NONE
        if not _has_spot(r, job, kind, need, part, group, wanted, importance):
            return False
    return True


@kernel
def _number(r, cluster, missing, importance, before_s):
    """The fewest workloads of at most this importance, started by then, that hold the missing units; -1: none do."""
    number, base = 0, first_unit(r, cluster)
    for place in range(base, base + r.running[cluster]):
        slot = r.by_size[place]
        job = slot // PARTS
        if r.importance[job] <= importance and r.start_s[job] <= before_s:
            missing -= r.units[slot]
            number += 1
            if missing <= 0:
                return number
    return NONE


@kernel
def _latest_start(r, cluster, missing, importance, number):
    """The earliest possible start of the youngest workload that leaves, if `number` leave; by bisection."""
    base = first_unit(r, cluster)
    low, high = 0, r.running[cluster] - 1
    while low < high:
        middle = (low + high) // 2
        need = _number(r, cluster, missing, importance, r.start_s[r.by_start[base + middle] // PARTS])
        if need != NONE and need <= number:
            high = middle
        else:
            low = middle + 1
    return r.start_s[r.by_start[base + low] // PARTS]


@kernel
def preempting_score(importance, number, age_s):
    """Score with preemption: by importance, then number, then run of the youngest. Paper: mast, Sec. 4.3."""
    young = 1.0 / (1.0 + max(age_s, 0.0) / HOUR)
    return -(BY_IMPORTANCE * (1.0 + importance) + BY_NUMBER * min(number, MOST_NUMBER) + young)


@kernel
def _look_without(r, job, kind, need, part, group, only, importance):
    """Modify the chosen cluster and the score in place: where the fewest neighbouring racks suffice, as it is."""
    units, fewest = need[job, part], 0
    for place in range(r.first_cluster[group], r.first_cluster[group + 1]):
        cluster = r.clusters[place]
        if r.spare[cluster] < units or (only != NONE and cluster != only):
            continue
        if not _leaves_room(r, job, kind, need, part, place, importance):
            continue
        racks = _racks_needed(r, cluster, units)
        if fewest == 0 or racks < fewest:
            fewest = racks
            r.count[CHOSEN] = cluster
            r.score[0] = -BY_RACK * racks
            if fewest == 1:
                break


@kernel
def _look_with(r, job, kind, need, part, group, only, importance, now_s):
    """Modify the chosen cluster, the score and `leaving` in place: where the least has to be preempted."""
    units, limit, latest_s = need[job, part], NONE, 0.0
    for place in range(r.first_cluster[group], r.first_cluster[group + 1]):
        cluster = r.clusters[place]
        if only != NONE and cluster != only:
            continue
        least = _least_importance(r, cluster, units, importance)
        if least == NONE or (limit != NONE and least > limit):
            continue
        if not _leaves_room(r, job, kind, need, part, place, importance):
            continue
        missing = units - r.spare[cluster]
        number = _number(r, cluster, missing, least, math.inf)
        start_s = _latest_start(r, cluster, missing, least, number)
        score = preempting_score(least, number, now_s - start_s)
        if r.count[CHOSEN] == NONE or score > r.score[0]:
            r.count[CHOSEN] = cluster
            r.score[0] = score
            limit, latest_s = least, start_s
    if r.count[CHOSEN] != NONE:
        _choose_leavers(r, r.count[CHOSEN], units, limit, latest_s)


@kernel
def _choose_leavers(r, cluster, units, limit, latest_s):
    """Modify `leaving` in place: the largest workloads of at most that importance that started by then."""
    missing, base = units - r.spare[cluster], first_unit(r, cluster)
    for place in range(base, base + r.running[cluster]):
        slot = r.by_size[place]
        job = slot // PARTS
        if missing > 0 and r.importance[job] <= limit and r.start_s[job] <= latest_s:
            r.leaving[r.count[LEAVES]] = job
            r.count[LEAVES] += 1
            missing -= r.units[slot]


@kernel
def find_part(r, job, kind, need, part, region, only, preempts, now_s):
    """Modify the chosen cluster, score and `leaving` in place. Returns the cluster, or -1. Paper: mast, Sec. 4.3."""
    group, wanted = region * r.shape[1] + kind[job, part], only if part == 0 else NONE
    importance = r.importance[job] if preempts else 0
    r.count[CHOSEN] = NONE
    _look_without(r, job, kind, need, part, group, wanted, importance)
    if r.count[CHOSEN] == NONE and preempts:
        _look_with(r, job, kind, need, part, group, wanted, importance, now_s)
    return r.count[CHOSEN]


@kernel
def _log(r, job):
    """Modify the log in place: add the units of a workload."""
    for slot in range(PARTS * job, PARTS * job + PARTS):
        if r.cluster[slot] == NONE:
            break
        unit = r.head[slot]
        while unit != NONE:
            r.log_unit[r.count[LOGGED_UNITS]] = unit
            r.count[LOGGED_UNITS] += 1
            unit = r.next_unit[unit]
        line = r.count[LOGGED]
        r.log_job[line] = job
        r.log_cluster[line] = r.cluster[slot]
        r.log_end[line] = r.count[LOGGED_UNITS]
        r.count[LOGGED] += 1


@kernel
def log_and_release(r, job):
    """Modify the regions and the log in place: a workload leaves; `undo` brings it back."""
    _log(r, job)
    release(r, job)


@kernel
def begin_plan(r):
    """Modify in place: empty plan and log."""
    r.count[TAKEN] = 0
    r.count[LEAVES] = 0
    r.count[LOGGED] = 0
    r.count[LOGGED_UNITS] = 0


@kernel
def undo(r, job):
    """Modify the regions in place: a workload gives its units back, and all in the log get back their units."""
    release(r, job)
    begin = 0
    for line in range(r.count[LOGGED]):
        hold(r, r.log_job[line], r.log_cluster[line], r.log_unit, begin, r.log_end[line])
        begin = r.log_end[line]
    begin_plan(r)


@kernel
def place(r, job, kind, need, region, only, preempts, now_s):
    """Modify the regions in place: a workload gets the best plan of a region. Returns 1; 0: no plan, no change.

    `kind`, `need`: (J, 4), types and units of the parts, -1 after the last; `only`: the cluster of part 0, -1: any;
    `preempts`: others may leave. Plan and log remain, the log after its earlier content.
    """
    if not has_room(r, job, kind, need, region, only, r.importance[job] if preempts else 0):
        return 0
    total = 0.0
    for part in range(PARTS):
        r.part_cluster[job, part] = NONE
    for part in range(PARTS):
        if kind[job, part] < 0:
            break
        before = r.count[LEAVES]
        cluster = find_part(r, job, kind, need, part, region, only, preempts, now_s)
        total += r.score[0]
        for leaver in range(before, r.count[LEAVES]):
            log_and_release(r, r.leaving[leaver])
        begin = r.count[TAKEN]
        _racks_needed(r, cluster, need[job, part])
        _pack(r, need[job, part])
        hold(r, job, cluster, r.taken, begin, r.count[TAKEN])
        r.part_cluster[job, part] = cluster
    r.score[1] = total
    return 1


@entry
def put_back(r, job):
    """`undo`, for Python."""
    undo(r, job)


@kernel
def bid(r, job, kind, need, region, only, preempts, now_s):
    """The score of a region's best plan for a workload, -inf: none. Nothing has changed. Paper: mast, Sec. 4.3."""
    if kind[job, 1] < 0:
        r.count[LEAVES] = 0
        found = find_part(r, job, kind, need, 0, region, only, preempts, now_s)
        r.count[LEAVES] = 0
        return r.score[0] if found != NONE else NO_PLAN
    begin_plan(r)
    if not place(r, job, kind, need, region, only, preempts, now_s):
        return NO_PLAN
    score = r.score[1]
    undo(r, job)
    return score


@kernel
def was_refused(r, job, kind, need, region, only):
    """Whether the negative cache excludes a region, or its cluster `only`. Paper: mast, Sec. 4.3.1."""
    level = IMPORTANCES - 1 - r.importance[job]
    for part in range(PARTS):
        if kind[job, part] < 0:
            break
        if part == 0 and only != NONE and is_refused(r, r.shape[0] * r.shape[1] + only, need[job, 0], level):
            return True
        if is_refused(r, region * r.shape[1] + kind[job, part], need[job, part], level):
            return True
    return False


@kernel
def refuse(r, job, kind, need, region, only):
    """Modify the negative cache in place: a region had no plan for a workload.

    It keeps parts that no cluster could make room for alone. So many units of the type, or more, then fail for the same
    priority and lower ones, until `forget`.
    """
    importance = r.importance[job]
    for part in range(PARTS):
        if kind[job, part] < 0:
            break
        group, wanted = region * r.shape[1] + kind[job, part], only if part == 0 else NONE
        if not is_possible(r, group, wanted, need[job, part], importance):
            row = group if wanted == NONE else r.shape[0] * r.shape[1] + wanted
            for level in range(IMPORTANCES - 1 - importance, IMPORTANCES):
                r.refused[row, level] = min(r.refused[row, level], need[job, part])


@kernel
def load_of(r, region, kind):
    """Units of a type that are not free in a region, over all."""
    group, units, free = region * r.shape[1] + kind, 0, 0
    for at in range(r.first_cluster[group], r.first_cluster[group + 1]):
        units += unit_count(r, r.clusters[at])
        free += r.spare[r.clusters[at]]
    return (units - free) / max(1, units)


@kernel
def choose(r, job, choice):
    """Modify `kind` in place: a workload's parts get the types of one of its choices."""
    for part in range(PARTS):
        r.kind[job, part] = r.kind[r.kind[job, FIRST_CHOICE] + choice, part]


@kernel
def agrees(r, job, cluster):
    """Whether a workload's first part has the type of a cluster; -1: any cluster."""
    return cluster == NONE or r.cluster_group[cluster] % r.shape[1] == r.kind[job, 0]


@kernel
def choice_in(r, job, kind):
    """A workload's first choice with a type for its first part, 0 also without choices; -1: none."""
    if r.kind[job, CHOICES] == 0:
        return 0 if r.kind[job, 0] == kind else NONE
    for choice in range(r.kind[job, CHOICES]):
        if r.kind[r.kind[job, FIRST_CHOICE] + choice, 0] == kind:
            return choice
    return NONE


@kernel
def place_in(r, job, kind, need, region, cluster, preempts, now_s):
    """`place` with the first part in a cluster, by the first choice of types with a plan."""
    if r.kind[job, CHOICES] == 0:
        return place(r, job, kind, need, region, cluster, preempts, now_s)
    for choice in range(r.kind[job, CHOICES]):
        choose(r, job, choice)
        if agrees(r, job, cluster) and place(r, job, kind, need, region, cluster, preempts, now_s):
            return 1
    return 0


@kernel
def bid_in(r, job, kind, need, region, cluster, now_s):
    """`bid` with preemption, the first part in a cluster, -1: any: the best of all choices of types."""
    if r.kind[job, CHOICES] == 0:
        return bid(r, job, kind, need, region, cluster, True, now_s)
    score = NO_PLAN
    for choice in range(r.kind[job, CHOICES]):
        choose(r, job, choice)
        if agrees(r, job, cluster):
            score = max(score, bid(r, job, kind, need, region, cluster, True, now_s))
    return score


@kernel
def award(r, job, kind, need, bits, only, preempts, remembers, now_s):
    """`award_types` for the winning choice of types (type_choices.py)."""
    if r.kind[job, CHOICES] == 0:
        return award_types(r, job, kind, need, bits, only, preempts, remembers, now_s)
    for choice in range(r.kind[job, CHOICES]):
        choose(r, job, choice)
        if agrees(r, job, only):
            region = award_types(r, job, kind, need, bits, only, False, remembers, now_s)
            if region != NONE:
                return region
    best, score = NONE, NO_PLAN
    for choice in range(r.kind[job, CHOICES] if preempts else 0):
        choose(r, job, choice)
        if agrees(r, job, only) and award_types(r, job, kind, need, bits, only, True, remembers, now_s) != NONE:
            if r.score[1] > score:
                best, score = choice, r.score[1]
            undo(r, job)
    if best == NONE:
        return NONE
    choose(r, job, best)
    return award_types(r, job, kind, need, bits, only, True, remembers, now_s)


@kernel
def award_types(r, job, kind, need, bits, only, preempts, remembers, now_s):
    """Modify the regions in place: a workload gets the best plan of all regions in `bits`. Returns the region, or -1.

    `only`: the cluster of part 0, -1: any; `preempts`: others may leave; `remembers`: use the negative cache. Equal
    scores go to the region where the type of part 0 is least loaded, then the lowest number (the paper is silent).
    Plan, score and log remain; `undo` takes it back. Paper: mast, Sec. 4.3.
    """
    best, score = NONE, NO_PLAN
    single = kind[job, 1] < 0
    for region in range(r.shape[0]):
        if not (bits >> region) & 1:
            continue
        r.count[ASKED] += 1
        if remembers and was_refused(r, job, kind, need, region, only):
            r.count[SPARED] += 1
            continue
        may = preempts and not (single and score > -BY_NUMBER)  # not after a plan without preemption
        offered = bid(r, job, kind, need, region, only, may, now_s)
        if offered == NO_PLAN and may:
            refuse(r, job, kind, need, region, only)
        elif offered > score:
            best, score = region, offered
        elif offered == score and best != NONE and load_of(r, region, kind[job, 0]) < load_of(r, best, kind[job, 0]):
            best = region
    begin_plan(r)
    if best != NONE:
        place(r, job, kind, need, best, only, preempts, now_s)
    return best


@kernel
def realise(r, job, kind, need, region, only, now_s):
    """Modify the regions in place: a workload gets the plan of a region, which exists; others may leave."""
    begin_plan(r)
    place(r, job, kind, need, region, only, True, now_s)
    release_cache(r, job, region)


@kernel
def release_cache(r, job, region):
    """Modify the negative cache in place: units left over by preempted workloads are free for lower priorities."""
    if r.count[LEAVES] > 0:
        forget(r, region, IMPORTANCES - 1 - r.importance[job])


@entry
def best(r, job, kind, need, bits, only, preempts, remembers, now_s):
    """`award`, for Python."""
    return award(r, job, kind, need, bits, only, preempts, remembers, now_s)


@entry
def forgive(r, region, level):
    """`forget`, for Python."""
    forget(r, region, level)
