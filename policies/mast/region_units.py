"""The units of each workload in the clusters of regions: the state of the regional schedulers of paper mast (Sec. 4.3).

A unit is a GPU or a CPU machine. Units are numbered machine by machine, machines by rack, racks by cluster. A workload
holds units in at most four clusters of one region; slot 4 x workload + k is for the k-th. Importance is 6 for priority
level 0, the highest, down to 0. All arrays are a function of the held units and their times: orders are total, ties go
by slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...simulator.base.codes import DOWN, FREE, RUNNING
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle.fault_groups import more_outages

NONE = -1
PARTS = 4  # of a workload at most
IMPORTANCES = 7
CHOICES, FIRST_CHOICE = 4, 5  # of a row of `RegionUnits.kind`, after the types: number of choices, row of the first
NEVER = 2**62  # more units than any request
# Places in `RegionUnits.count`; FOLLOWS: 1: the arrays are of this run, so only changes are written.
TAKEN, LEAVES, LOGGED, LOGGED_UNITS, ASKED, SPARED, CHOSEN, FOLLOWS = 0, 1, 2, 3, 4, 5, 6, 7


class RegionUnits(NamedTuple):
    """Arrays, int64 unless said otherwise; R regions, T types, C clusters, K racks, M machines, U units, J workloads.

    A group is region x T + type. The first part is fixed, the second is the units held, the third a plan.
    """

    shape: Any  # (2,): R, T
    first_cluster: Any  # (R x T + 1,), places in `clusters`
    clusters: Any  # (C,), by group, in each ascending
    cluster_group: Any  # (C,)
    cluster_rack: Any  # (C + 1,)
    rack_machine: Any  # (K + 1,)
    rack_cluster: Any  # (K,)
    machine_unit: Any  # (M + 1,)
    machine_rack: Any  # (M,)
    unit_machine: Any  # (U,)

    owner: Any  # (U,), slot, FREE or DOWN
    next_unit: Any  # (U,), of the same slot, -1 after the last
    free: Any  # (M,)
    room: Any  # (K,), free units
    spare: Any  # (C,), free units
    held: Any  # (C, 7), units by importance
    running: Any  # (C,), slots
    by_size: Any  # (U,), slots of a cluster from its first unit on, most units first
    by_start: Any  # (U,), the same slots, longest running first
    cluster: Any  # (4 x J,), -1: the slot is empty
    units: Any  # (4 x J,)
    head: Any  # (4 x J,), its first unit
    tail: Any  # (4 x J,), its last
    importance: Any  # (J,)
    start_s: Any  # float64 (J,)
    written_s: Any  # float64 (J,), when its units were last taken from the record
    refused: Any  # (R x T + C, 7), negative cache: least units that fail, by group and level, or by cluster and level

    kind: Any  # (J + V, 6), `TypeChoices.rows`: types of the parts, by the last choice
    part_cluster: Any  # (J, 4), clusters of placed parts
    taken: Any  # (U,), units of the plan, part by part
    leaving: Any  # (U,), workloads that leave
    log_job: Any  # (U,), units before they left, a line for each cluster: workload,
    log_cluster: Any  # (U,), cluster,
    log_end: Any  # (U,), end in
    log_unit: Any  # (U,), the units
    tried: Any  # (C,), scratch
    spot: Any  # (4,), scratch: possible places of parts in `clusters`
    window: Any  # (2,), scratch: racks from and to
    count: Any  # (8,)
    score: Any  # float64 (3,): of the last part, of the plan, of a joint one


@kernel
def first_unit(r, cluster):
    """The first unit of a cluster."""
    return r.machine_unit[r.rack_machine[r.cluster_rack[cluster]]]


@kernel
def unit_count(r, cluster):
    """Number of units of a cluster."""
    return r.machine_unit[r.rack_machine[r.cluster_rack[cluster + 1]]] - first_unit(r, cluster)


@kernel
def _rise_by_size(r, base, place):
    """Modify a cluster's order by size in place: move the slot at `place` before all smaller ones."""
    slot = r.by_size[base + place]
    while place > 0:
        before = r.by_size[base + place - 1]
        if r.units[before] > r.units[slot] or (r.units[before] == r.units[slot] and before < slot):
            break
        r.by_size[base + place] = before
        place -= 1
    r.by_size[base + place] = slot


@kernel
def _rise_by_start(r, base, place):
    """Modify a cluster's order by start in place: move the slot at `place` before all that started later."""
    slot = r.by_start[base + place]
    start_s = r.start_s[slot // PARTS]
    while place > 0:
        before = r.by_start[base + place - 1]
        other_s = r.start_s[before // PARTS]
        if other_s < start_s or (other_s == start_s and before < slot):
            break
        r.by_start[base + place] = before
        place -= 1
    r.by_start[base + place] = slot


@kernel
def _slot_in(r, job, cluster):
    slot = PARTS * job
    while r.cluster[slot] != NONE and r.cluster[slot] != cluster:
        slot += 1
    return slot


@kernel
def _place_of(order, base, slot):
    place = 0
    while order[base + place] != slot:
        place += 1
    return place


@kernel
def hold(r, job, cluster, unit, begin, end):
    """Modify the regions in place: a workload takes the free units unit[begin:end] of one cluster."""
    slot, base = _slot_in(r, job, cluster), first_unit(r, cluster)
    if r.cluster[slot] == NONE:
        r.cluster[slot] = cluster
        r.units[slot] = 0
        r.head[slot] = NONE
        r.by_size[base + r.running[cluster]] = slot
        r.by_start[base + r.running[cluster]] = slot
        r.running[cluster] += 1
        _rise_by_start(r, base, r.running[cluster] - 1)
    place = _place_of(r.by_size, base, slot)
    r.units[slot] += end - begin
    _rise_by_size(r, base, place)
    r.spare[cluster] -= end - begin
    r.held[cluster, r.importance[job]] += end - begin
    for at in range(begin, end):
        one = unit[at]
        r.owner[one] = slot
        r.next_unit[one] = NONE
        if r.head[slot] == NONE:
            r.head[slot] = one
        else:
            r.next_unit[r.tail[slot]] = one
        r.tail[slot] = one
        machine = r.unit_machine[one]
        r.free[machine] -= 1
        r.room[r.machine_rack[machine]] -= 1


@kernel
def _drop(order, base, count, slot):
    """Modify an order in place: remove one slot."""
    for place in range(base + _place_of(order, base, slot), base + count - 1):
        order[place] = order[place + 1]


@kernel
def release(r, job):
    """Modify the regions in place: a workload gives all its units back."""
    for slot in range(PARTS * job, PARTS * job + PARTS):
        cluster = r.cluster[slot]
        if cluster == NONE:
            break
        base = first_unit(r, cluster)
        _drop(r.by_size, base, r.running[cluster], slot)
        _drop(r.by_start, base, r.running[cluster], slot)
        r.running[cluster] -= 1
        r.spare[cluster] += r.units[slot]
        r.held[cluster, r.importance[job]] -= r.units[slot]
        unit = r.head[slot]
        while unit != NONE:
            r.owner[unit] = FREE
            machine = r.unit_machine[unit]
            r.free[machine] += 1
            r.room[r.machine_rack[machine]] += 1
            unit = r.next_unit[unit]
        r.cluster[slot] = NONE


@entry
def end(r, job):
    """Modify the regions in place: a workload ends, and the negative cache is emptied."""
    release(r, job)
    forget_all(r)


@kernel
def empty(r):
    """Modify the regions in place: all units are free, all machines up."""
    for cluster in range(r.running.shape[0]):
        base = first_unit(r, cluster)
        for place in range(base, base + r.running[cluster]):
            r.cluster[r.by_size[place]] = NONE
    for unit in range(r.owner.shape[0]):
        r.owner[unit] = FREE
    for cluster in range(r.spare.shape[0]):
        r.spare[cluster] = unit_count(r, cluster)
        r.running[cluster] = 0
        for importance in range(IMPORTANCES):
            r.held[cluster, importance] = 0
    for rack in range(r.room.shape[0]):
        r.room[rack] = r.machine_unit[r.rack_machine[rack + 1]] - r.machine_unit[r.rack_machine[rack]]
    for machine in range(r.free.shape[0]):
        r.free[machine] = r.machine_unit[machine + 1] - r.machine_unit[machine]


@kernel
def _fail(r, machine):
    """Modify the regions in place: a machine without jobs fails."""
    rack = r.machine_rack[machine]
    r.spare[r.rack_cluster[rack]] -= r.free[machine]
    r.room[rack] -= r.free[machine]
    r.free[machine] = 0
    for unit in range(r.machine_unit[machine], r.machine_unit[machine + 1]):
        r.owner[unit] = DOWN


@kernel
def write_units(s, r, level):
    """Modify the regions in place: copy the record `s`; `level`, (J,), is the present priority.

    Where they FOLLOW the run, only changes are written. For another run, or an earlier time of this one, the caller
    sets `count[FOLLOWS] = 0`.
    """
    if r.count[FOLLOWS]:
        _release_changed(s, r)
    else:
        empty(r)
        for machine in range(r.free.shape[0]):
            if s.machine_down[machine]:
                _fail(r, machine)
    may_fail = s.down_gpus > 0 or s.mtbf_s > 0.0 or s.region_mtbf_s > 0.0 or more_outages(s) or s.closing_machines > 0
    r.count[FOLLOWS] = 0 if may_fail else 1
    for place in range(s.running):
        job = s.runner[place]
        importance = IMPORTANCES - 1 - level[job]
        if r.cluster[PARTS * job] == NONE:
            r.importance[job] = importance
            r.start_s[job] = s.started_s[job]
            r.written_s[job] = s.now_s
            _hold_as_recorded(s, r, job)
        else:
            value(r, job, importance)


@kernel
def _release_changed(s, r):
    """Modify the regions in place: release all workloads but those that run as written.

    Units of a workload started at the instant of the last writing may have changed since.
    """
    for cluster in range(r.running.shape[0]):
        base, place = first_unit(r, cluster), 0
        while place < r.running[cluster]:
            job = r.by_size[base + place] // PARTS
            if s.status[job] == RUNNING and r.start_s[job] == s.started_s[job] and r.written_s[job] > s.started_s[job]:
                place += 1
            else:
                release(r, job)


@kernel
def _hold_as_recorded(s, r, job):
    """Modify the regions in place: a running workload takes its units of the record."""
    room = s.gpu_slot.shape[0]
    berth, held, cluster = s.first_gpu[job], 0, NONE
    while berth != NONE:
        unit = berth % room
        berth = s.gpu_next[berth]
        if s.machine_down[r.unit_machine[unit]]:  # about to go down; its jobs make no room
            continue
        where = r.rack_cluster[r.machine_rack[r.unit_machine[unit]]]
        if where != cluster and held > 0:
            hold(r, job, cluster, r.taken, 0, held)
            held = 0
        cluster = where
        r.taken[held] = unit
        held += 1
    if held > 0:
        hold(r, job, cluster, r.taken, 0, held)


@kernel
def value(r, job, importance):
    """Modify the regions in place: change the importance of a running workload."""
    before = r.importance[job]
    if before == importance:
        return
    r.importance[job] = importance
    for slot in range(PARTS * job, PARTS * job + PARTS):
        cluster = r.cluster[slot]
        if cluster == NONE:
            break
        r.held[cluster, before] -= r.units[slot]
        r.held[cluster, importance] += r.units[slot]


@entry
def follow(states, row, r, level):
    """`write_units` of any run, for Python."""
    r.count[FOLLOWS] = 0
    write_units(states[row], r, level)
    r.count[FOLLOWS] = 0


@kernel
def is_refused(r, row, units, level):
    """Whether so many units are refused by the negative cache."""
    return units >= r.refused[row, level]


@kernel
def forget(r, region, level):
    """Modify the negative cache in place: forget refusals in a region for priorities lower than `level`."""
    types = r.shape[1]
    for group in range(region * types, (region + 1) * types):
        for lower in range(level + 1, IMPORTANCES):
            r.refused[group, lower] = NEVER
        for place in range(r.first_cluster[group], r.first_cluster[group + 1]):
            for lower in range(level + 1, IMPORTANCES):
                r.refused[r.shape[0] * types + r.clusters[place], lower] = NEVER


@kernel
def forget_all(r):
    """Modify the negative cache in place: empty it."""
    for row in range(r.refused.shape[0]):
        for level in range(IMPORTANCES):
            r.refused[row, level] = NEVER


@entry
def begin_scan(r):
    """Modify in place: empty the negative cache and its counts."""
    forget_all(r)
    r.count[ASKED] = 0
    r.count[SPARED] = 0


@entry
def vacate(r):
    """Modify in place: free all units, and empty the negative cache."""
    empty(r)
    forget_all(r)
