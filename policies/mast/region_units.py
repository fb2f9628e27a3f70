"""The units of each workload in the clusters of regions: the state of the regional schedulers of paper mast (Sec. 4.3).

A unit is a GPU or a CPU machine. Units are numbered machine by machine, machines by rack, racks by cluster. A workload
holds units in at most four clusters of one region; slot 4 x workload + k is for the k-th. Importance is 6 for priority
level 0, the highest, down to 0. All arrays are a function of the held units and their times: orders are total, ties go
by slot.
"""

from __future__ import annotations

from ...simulator.base.codes import DOWN, FREE, RUNNING
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle.fault_groups import more_outages
from ...simulator.record.field_axes import CALL, Axis, Field
from ...simulator.record.region_fields import MOST_TYPES, clusters_in

NONE = -1
PARTS = 4  # of a workload at most
IMPORTANCES = 7
CHOICES_PER_JOB = 16  # of types, on average, of the workloads that differ
SLOT = "slot"
NEVER = 2**62  # more units than any request
TAKEN, LEAVES, LOGGED, LOGGED_UNITS, ASKED, SPARED, CHOSEN = range(7)  # of `count`


def unit_fields(jobs: Axis, units: Axis, regions: int) -> list[Field]:
    """The units of each workload, and a plan of RMS; for so many regions.

    A group is region x types + type. The first part is fixed, the second is the units held, the third a plan.
    """
    groups, clusters, slots = regions * MOST_TYPES, clusters_in(regions), Axis(SLOT, PARTS * jobs.length)
    return [
        *[(name, "i8") for name in ("n_regions", "n_types", "n_clusters", "n_racks", "n_machines", "n_units")],
        ("first_cluster", "i8", (groups + 1,)),  # places in `clusters`
        ("clusters", "i8", (clusters,)),  # by group, in each ascending
        ("cluster_group", "i8", (clusters,)),
        ("cluster_rack", "i8", (clusters + 1,)),
        ("rack_machine", "i8", (units.and_more(1),)),
        ("rack_cluster", "i8", (units,)),
        ("machine_unit", "i8", (units.and_more(1),)),
        ("machine_rack", "i8", (units,)),
        ("unit_machine", "i8", (units,)),
        ("need", "i8", (jobs, PARTS)),  # units of the parts of a workload
        ("choices", "i8", (jobs,)),  # of types, 0: those in `kind` (type_choices.py); row of the first in
        ("first_choice", "i8", (jobs,)),
        ("choice_kind", "i1", (CHOICES_PER_JOB * jobs.length, PARTS)),
        ("owner", "i8", (units,)),  # slot, FREE or DOWN
        ("next_unit", "i8", (units,)),  # of the same slot, -1 after the last
        ("free", "i8", (units,)),  # by machine
        ("room", "i8", (units,)),  # free units by rack
        ("spare", "i8", (clusters,)),  # free units
        ("held", "i8", (clusters, IMPORTANCES)),  # units by importance
        ("running", "i8", (clusters,)),  # slots
        ("by_size", "i8", (units,)),  # slots of a cluster from its first unit on, most units first
        ("by_start", "i8", (units,)),  # the same slots, longest running first
        ("cluster", "i8", (slots,)),  # -1: the slot is empty
        ("units", "i8", (slots,)),
        ("head", "i8", (slots,)),  # its first unit
        ("tail", "i8", (slots,)),  # its last
        ("importance", "i8", (jobs,)),
        ("start_s", "f8", (jobs,)),
        ("written_s", "f8", (jobs,)),  # when its units were last taken from the record
        ("follows", "i8"),  # 1: the units are of this run, so only changes are written
        # negative cache: least units that fail, by group and level, then by cluster and level
        ("refused", "i8", (groups + clusters, IMPORTANCES), CALL),
        ("kind", "i8", (jobs, PARTS)),  # types of the parts, by the last choice; -1 after the last
        ("part_cluster", "i8", (jobs, PARTS), CALL),  # clusters of placed parts
        ("taken", "i8", (units,), CALL),  # units of the plan, part by part
        ("leaving", "i8", (units,), CALL),  # workloads that leave
        ("log_job", "i8", (units,), CALL),  # units before they left, a line for each cluster: workload,
        ("log_cluster", "i8", (units,), CALL),  # cluster,
        ("log_end", "i8", (units,), CALL),  # end in
        ("log_unit", "i8", (units,), CALL),  # the units
        ("tried", "i8", (clusters,), CALL),  # scratch
        ("spot", "i8", (PARTS,), CALL),  # scratch: possible places of parts in `clusters`
        ("window", "i8", (2,), CALL),  # scratch: racks from and to
        ("count", "i8", (7,), CALL),
        ("score", "f8", (3,), CALL),  # of the last part, of the plan, of a joint one
    ]


@kernel
def first_unit(m, cluster):
    """The first unit of a cluster."""
    return m.machine_unit[m.rack_machine[m.cluster_rack[cluster]]]


@kernel
def unit_count(m, cluster):
    """Number of units of a cluster."""
    return m.machine_unit[m.rack_machine[m.cluster_rack[cluster + 1]]] - first_unit(m, cluster)


@kernel
def _rise_by_size(m, base, place):
    """Modify a cluster's order by size in place: move the slot at `place` before all smaller ones."""
    slot = m.by_size[base + place]
    while place > 0:
        before = m.by_size[base + place - 1]
        if m.units[before] > m.units[slot] or (m.units[before] == m.units[slot] and before < slot):
            break
        m.by_size[base + place] = before
        place -= 1
    m.by_size[base + place] = slot


@kernel
def _rise_by_start(m, base, place):
    """Modify a cluster's order by start in place: move the slot at `place` before all that started later."""
    slot = m.by_start[base + place]
    start_s = m.start_s[slot // PARTS]
    while place > 0:
        before = m.by_start[base + place - 1]
        other_s = m.start_s[before // PARTS]
        if other_s < start_s or (other_s == start_s and before < slot):
            break
        m.by_start[base + place] = before
        place -= 1
    m.by_start[base + place] = slot


@kernel
def _slot_in(m, job, cluster):
    slot = PARTS * job
    while m.cluster[slot] != NONE and m.cluster[slot] != cluster:
        slot += 1
    return slot


@kernel
def _place_of(order, base, slot):
    place = 0
    while order[base + place] != slot:
        place += 1
    return place


@kernel
def hold(m, job, cluster, unit, begin, end):
    """Modify the regions in place: a workload takes the free units unit[begin:end] of one cluster."""
    slot, base = _slot_in(m, job, cluster), first_unit(m, cluster)
    if m.cluster[slot] == NONE:
        m.cluster[slot] = cluster
        m.units[slot] = 0
        m.head[slot] = NONE
        m.by_size[base + m.running[cluster]] = slot
        m.by_start[base + m.running[cluster]] = slot
        m.running[cluster] += 1
        _rise_by_start(m, base, m.running[cluster] - 1)
    place = _place_of(m.by_size, base, slot)
    m.units[slot] += end - begin
    _rise_by_size(m, base, place)
    m.spare[cluster] -= end - begin
    m.held[cluster, m.importance[job]] += end - begin
    for at in range(begin, end):
        one = unit[at]
        m.owner[one] = slot
        m.next_unit[one] = NONE
        if m.head[slot] == NONE:
            m.head[slot] = one
        else:
            m.next_unit[m.tail[slot]] = one
        m.tail[slot] = one
        machine = m.unit_machine[one]
        m.free[machine] -= 1
        m.room[m.machine_rack[machine]] -= 1


@kernel
def _drop(order, base, count, slot):
    """Modify an order in place: remove one slot."""
    for place in range(base + _place_of(order, base, slot), base + count - 1):
        order[place] = order[place + 1]


@kernel
def release(m, job):
    """Modify the regions in place: a workload gives all its units back."""
    for slot in range(PARTS * job, PARTS * job + PARTS):
        cluster = m.cluster[slot]
        if cluster == NONE:
            break
        base = first_unit(m, cluster)
        _drop(m.by_size, base, m.running[cluster], slot)
        _drop(m.by_start, base, m.running[cluster], slot)
        m.running[cluster] -= 1
        m.spare[cluster] += m.units[slot]
        m.held[cluster, m.importance[job]] -= m.units[slot]
        unit = m.head[slot]
        while unit != NONE:
            m.owner[unit] = FREE
            machine = m.unit_machine[unit]
            m.free[machine] += 1
            m.room[m.machine_rack[machine]] += 1
            unit = m.next_unit[unit]
        m.cluster[slot] = NONE


@entry
def end(solvers, job):
    """Modify the regions in place: a workload ends, and the negative cache is emptied."""
    m = solvers[0]
    release(m, job)
    forget_all(m)


@kernel
def empty(m):
    """Modify the regions in place: all units are free, all machines up."""
    for cluster in range(m.n_clusters):
        base = first_unit(m, cluster)
        for place in range(base, base + m.running[cluster]):
            m.cluster[m.by_size[place]] = NONE
    for unit in range(m.n_units):
        m.owner[unit] = FREE
    for cluster in range(m.n_clusters):
        m.spare[cluster] = unit_count(m, cluster)
        m.running[cluster] = 0
        for importance in range(IMPORTANCES):
            m.held[cluster, importance] = 0
    for rack in range(m.n_racks):
        m.room[rack] = m.machine_unit[m.rack_machine[rack + 1]] - m.machine_unit[m.rack_machine[rack]]
    for machine in range(m.n_machines):
        m.free[machine] = m.machine_unit[machine + 1] - m.machine_unit[machine]


@kernel
def _fail(m, machine):
    """Modify the regions in place: a machine without jobs fails."""
    rack = m.machine_rack[machine]
    m.spare[m.rack_cluster[rack]] -= m.free[machine]
    m.room[rack] -= m.free[machine]
    m.free[machine] = 0
    for unit in range(m.machine_unit[machine], m.machine_unit[machine + 1]):
        m.owner[unit] = DOWN


@kernel
def write_units(s, m):
    """Modify the regions in place: copy the record `s`; `level` is the present priority.

    Where they follow the run, only changes are written. For another run, or an earlier time of this one, the caller
    sets `follows = 0`.
    """
    if m.follows:
        _release_changed(s, m)
    else:
        empty(m)
        for machine in range(m.n_machines):
            if s.machine_down[machine]:
                _fail(m, machine)
    may_fail = s.down_gpus > 0 or s.mtbf_s > 0.0 or s.region_mtbf_s > 0.0 or more_outages(s) or s.closing_machines > 0
    m.follows = 0 if may_fail else 1
    for place in range(s.running):
        job = s.runner[place]
        importance = IMPORTANCES - 1 - m.level[job]
        if m.cluster[PARTS * job] == NONE:
            m.importance[job] = importance
            m.start_s[job] = s.started_s[job]
            m.written_s[job] = s.now_s
            _hold_as_recorded(s, m, job)
        else:
            value(m, job, importance)


@kernel
def _release_changed(s, m):
    """Modify the regions in place: release all workloads but those that run as written.

    Units of a workload started at the instant of the last writing may have changed since.
    """
    for cluster in range(m.n_clusters):
        base, place = first_unit(m, cluster), 0
        while place < m.running[cluster]:
            job = m.by_size[base + place] // PARTS
            if s.status[job] == RUNNING and m.start_s[job] == s.started_s[job] and m.written_s[job] > s.started_s[job]:
                place += 1
            else:
                release(m, job)


@kernel
def _hold_as_recorded(s, m, job):
    """Modify the regions in place: a running workload takes its units of the record."""
    room = s.gpu_slot.shape[0]
    berth, held, cluster = s.first_gpu[job], 0, NONE
    while berth != NONE:
        unit = berth % room
        berth = s.gpu_next[berth]
        if s.machine_down[m.unit_machine[unit]]:  # about to go down; its jobs make no room
            continue
        where = m.rack_cluster[m.machine_rack[m.unit_machine[unit]]]
        if where != cluster and held > 0:
            hold(m, job, cluster, m.taken, 0, held)
            held = 0
        cluster = where
        m.taken[held] = unit
        held += 1
    if held > 0:
        hold(m, job, cluster, m.taken, 0, held)


@kernel
def value(m, job, importance):
    """Modify the regions in place: change the importance of a running workload."""
    before = m.importance[job]
    if before == importance:
        return
    m.importance[job] = importance
    for slot in range(PARTS * job, PARTS * job + PARTS):
        cluster = m.cluster[slot]
        if cluster == NONE:
            break
        m.held[cluster, before] -= m.units[slot]
        m.held[cluster, importance] += m.units[slot]


@entry
def follow(states, row, solvers):
    """`write_units` of any run, for Python."""
    m = solvers[row]
    m.follows = 0
    write_units(states[row], m)
    m.follows = 0


@kernel
def is_refused(m, row, units, level):
    """Whether so many units are refused by the negative cache."""
    return units >= m.refused[row, level]


@kernel
def forget(m, region, level):
    """Modify the negative cache in place: forget refusals in a region for priorities lower than `level`."""
    types = m.n_types
    for group in range(region * types, (region + 1) * types):
        for lower in range(level + 1, IMPORTANCES):
            m.refused[group, lower] = NEVER
        for place in range(m.first_cluster[group], m.first_cluster[group + 1]):
            for lower in range(level + 1, IMPORTANCES):
                m.refused[m.n_regions * types + m.clusters[place], lower] = NEVER


@kernel
def forget_all(m):
    """Modify the negative cache in place: empty it."""
    for row in range(m.n_regions * m.n_types + m.n_clusters):
        for level in range(IMPORTANCES):
            m.refused[row, level] = NEVER


@kernel
def begin_scan(m):
    """Modify in place: empty the negative cache and its counts."""
    forget_all(m)
    m.count[ASKED] = 0
    m.count[SPARED] = 0


@entry
def clear_cache(solvers):
    """`begin_scan`, for Python."""
    begin_scan(solvers[0])


@entry
def vacate(solvers):
    """Modify in place: free all units, and empty the negative cache."""
    m = solvers[0]
    empty(m)
    forget_all(m)
