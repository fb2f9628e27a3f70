"""Features of the present, written by one kernel: the columns of columns.py."""

import math

from ...policies.mast.global_scheduler import RUNNERS
from ...policies.mast.place_search import BY_RACK, undo
from ...policies.mast.region_units import IMPORTANCES, LEAVES, PARTS
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.regions.region_starts import speed_on
from ..window import NO_JOB, observe_size, scaled_count, scaled_time, waiting_candidate
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .demand import count_regions, demand_of, weigh_demand
from .geo_window import (
    IN_PLACE_OF_OTHERS,
    NO_CLUSTER,
    begin_window,
    bring_kind,
    end_window,
    find_plan,
    hold_kind,
    list_clusters,
    start_kind,
)
from .table_bringing import list_regions, seconds_to_bring

QUEUE_COLUMNS, RUNNING_COLUMNS, REGION_COLUMNS = len(QUEUE), len(RUNNING), len(REGIONS)
CANDIDATE_COLUMNS = len(CANDIDATES)
FEW = 4.0


@kernel
def write(s, w, m, features, mask):
    """Modify the window, features and mask: show the present, after `look_around`; starts that stand are kept."""
    begin_window(s, w, m)
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    regions = running + w.running_slots * RUNNING_COLUMNS
    candidates = regions + w.region_slots * REGION_COLUMNS
    features[: candidates + CANDIDATE_COLUMNS] = 0.0
    weigh_demand(s, w, m)
    asked = _observe_queue(s, w, m, features, mask, queue, candidates + CANDIDATE_COLUMNS)
    _observe_running(s, w, m.level, features, running)
    _observe_regions(s, w, m, features, regions)
    end_window(s, w)
    features[candidates + CANDIDATES.legal] = features[candidates + CANDIDATES.advance] = w.legal[0]
    _observe_cluster(s, w, features, asked)
    for candidate in range(w.candidates):
        mask[candidate] = w.legal[candidate]
    w.starts_valid = m.valid[RUNNERS]


@kernel
def importance_of(level):
    """A priority level as a feature."""
    return (IMPORTANCES - level) / IMPORTANCES


@kernel
def ratio(value, whole):
    """A demand over a supply, which may be 0, as a feature."""
    return value / (value + whole) if value > 0.0 else 0.0


@kernel
def weight_of(s, job):
    """The key by which `greedy` orders workloads: isolated run time left x the square root of the GPUs."""
    return isolated_left_s(s, job) * math.sqrt(max(1, s.gpu_units[job]))


@kernel
def _observe_queue(s, w, m, features, mask, row, candidate):
    """Write the waiting workloads from `row` on, and the candidates of all slots; returns the units asked.

    The starts of a workload stay as they were if no workload has started since, and no level has changed.
    """
    asked = 0
    width, starts = w.per_waiting * CANDIDATE_COLUMNS, hold_kind(w) * CANDIDATE_COLUMNS
    stands = w.starts_valid != 0 and w.starts_valid == m.valid[RUNNERS]
    for slot in range(w.waiting_shown):
        w.weight[slot] = weight_of(s, w.waiting_job[slot])
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        asked += s.gpus[job]
        _observe_waiting(s, w, m, features[row : row + QUEUE_COLUMNS], slot, job)
        offered = features[candidate : candidate + width]
        may_start = m.sort_spare[job] or job == w.pinned_job
        before = _slot_before(w, m, slot, job) if may_start and stands else -1
        if before >= 0:
            kept = candidate + (before - slot) * width
            _keep_starts(s, w, features[kept : kept + starts], mask, offered, before, slot)
            offered[starts:] = 0.0
        else:
            offered[:] = 0.0
            w.offered[slot, : w.clusters] = NO_CLUSTER
            if may_start:
                _observe_starts(s, w, m, offered, slot, job)
        w.start_job[slot] = job if may_start else NO_JOB
        w.start_importance[slot] = m.importance[job]
        _observe_hold(s, w, offered, slot, job)
        _observe_brings(s, w, m, offered, slot, job)
        row += QUEUE_COLUMNS
        candidate += width
    features[candidate:] = 0.0
    for slot in range(w.waiting_shown, w.slots):
        w.start_job[slot] = NO_JOB
    return asked


@kernel
def _slot_before(w, m, slot, job):
    """The slot, from this one on, where the starts of a workload were written, with its importance; -1: none."""
    for other in range(slot, w.slots):
        if w.start_job[other] == job and w.start_importance[other] == m.importance[job]:
            return other
    return -1


@kernel
def _keep_starts(s, w, kept, mask, offered, before, slot):
    """Modify window `w`, write the starts of a slot: those of slot `before`, but for demands."""
    for choice in range(w.clusters):
        cluster = w.offered[slot, choice] = w.offered[before, choice]
        for way in range(2):
            here = start_kind(choice, way)
            at = here * CANDIDATE_COLUMNS
            for column in range(at, at + CANDIDATE_COLUMNS):
                offered[column] = kept[column]
            if mask[waiting_candidate(w, before, here)]:
                w.legal[waiting_candidate(w, slot, here)] = w.can_act = 1
                asked, there = demand_of(s, w, s.cluster_region[cluster], 1 << s.cluster_type[cluster])
                offered[at + CANDIDATES.demand] = ratio(asked, there)


@kernel
def _observe_waiting(s, w, m, shown, slot, job):
    observe_size(s, shown, job)
    left_s = isolated_left_s(s, job)
    age_s = s.now_s - s.arrival_s[job]
    bits = m.bits[job]
    shown[QUEUE.waited] = scaled_time(w, s.now_s - s.waiting_since_s[job])
    shown[QUEUE.age] = scaled_time(w, age_s)
    shown[QUEUE.time_left] = scaled_time(w, left_s)
    shown[QUEUE.service_left] = scaled_time(w, left_s * s.gpus[job])
    shown[QUEUE.has_run] = s.starts[job] > 0
    shown[QUEUE.own_importance] = importance_of(s.job_level[job])
    shown[QUEUE.importance] = importance_of(m.level[job])
    slack_s = s.slo_s[s.job_level[job]] - age_s
    may_be_late = s.starts[job] == 0 and slack_s < math.inf
    shown[QUEUE.start_slack] = scaled_time(w, slack_s) if may_be_late else 1.0
    shown[QUEUE.late] = may_be_late and slack_s < 0.0
    shown[QUEUE.gpu_share] = s.gpu_units[job] / s.gpus[job]
    for part in range(s.part_type.shape[1]):
        shown[QUEUE.parts] += 0.25 * (s.part_units[job, part] > 0)
    shown[QUEUE.regions] = count_regions(bits) / s.n_regions
    shown[QUEUE.stranded] = bits == 0
    before = 0
    for other in range(w.waiting_shown):
        before += w.weight[other] < w.weight[slot]
    shown[QUEUE.rank] = before / (before + FEW)
    shown[QUEUE.regions_later] = count_regions(m.coming[job]) / s.n_regions


@kernel
def _observe_starts(s, w, m, offered, slot, job):
    first = waiting_candidate(w, slot, 0)
    bits = m.bits[job]
    count = list_clusters(s, w, m, job, slot, bits)
    for choice in range(count):
        cluster = w.offered[slot, choice]
        is_turn = w.is_turned and job == w.turn_job and cluster == w.turn_cluster
        for way in range(2):
            here = start_kind(choice, way)
            free = s.cluster_free[cluster]
            found = find_plan(s, m, job, cluster, way)
            if found or (is_turn and way == w.turn_way):
                w.legal[first + here] = 1
                w.can_act = 1
                at = here * CANDIDATE_COLUMNS
                _describe_start(s, w, m, offered[at : at + CANDIDATE_COLUMNS], job, cluster, free, bits)
            if found:
                if way == IN_PLACE_OF_OTHERS:
                    at = here * CANDIDATE_COLUMNS
                    _describe_leavers(s, w, m, m.level, offered[at : at + CANDIDATE_COLUMNS], job)
                undo(m, job)
                break


@kernel
def _observe_hold(s, w, offered, slot, job):
    hold = hold_kind(w)
    if w.legal[waiting_candidate(w, slot, hold)]:
        at = hold * CANDIDATE_COLUMNS
        offered[at + CANDIDATES.legal] = offered[at + CANDIDATES.hold] = 1.0
        offered[at + CANDIDATES.gpus] = s.gpus[job] / s.n_gpus
        offered[at + CANDIDATES.time_left] = scaled_time(w, isolated_left_s(s, job))


@kernel
def _observe_brings(s, w, m, offered, slot, job):
    count = list_regions(s, w, job, slot)
    for choice in range(count):
        region = w.bring_to[slot, choice]
        w.legal[waiting_candidate(w, slot, bring_kind(w, choice))] = 1
        w.can_act = 1
        at = bring_kind(w, choice) * CANDIDATE_COLUMNS
        offer = offered[at : at + CANDIDATE_COLUMNS]
        offer[CANDIDATES.legal] = offer[CANDIDATES.bring] = 1.0
        left_s = isolated_left_s(s, job)
        _describe_place(s, w, offer, job, region, m.bits[job], s.part_accepts[job, 0], left_s)
        room = s.storage_bytes[region] - s.stored_bytes[region]
        offer[CANDIDATES.copied] = w.bring_bytes[region] / max(1, room)
        offer[CANDIDATES.copy_time] = scaled_time(w, seconds_to_bring(s, job, region))


@kernel
def _describe_place(s, w, offer, job, region, bits, kinds, left_s):
    """Write the columns about a workload and its region.

    `bits`: regions that could run it; `kinds`: set of the types of its first part there; `left_s`: its run time left.
    """
    offer[CANDIDATES.gpus] = s.gpus[job] / s.n_gpus
    offer[CANDIDATES.time_left] = scaled_time(w, left_s)
    offer[CANDIDATES.region] = (region + 1) / s.n_regions
    asked, there = demand_of(s, w, region, kinds)
    offer[CANDIDATES.demand] = ratio(asked, there)
    offer[CANDIDATES.at_home] = _share_at_home(s, job, region)
    offer[CANDIDATES.regions] = count_regions(bits) / s.n_regions
    free = 0
    for cluster in range(s.n_clusters):
        if s.cluster_region[cluster] == region and (kinds >> s.cluster_type[cluster]) & 1:
            free += s.cluster_free[cluster]
    offer[CANDIDATES.types_free] = free / max(1.0, there)


@kernel
def _left_on_s(s, m, job):
    """Isolated run time left of a workload on the types of the last choice."""
    left_s = isolated_left_s(s, job)
    if s.type_speed[0, 0] == 0.0 or m.choices[job] == 0:
        return left_s
    for part in range(PARTS):
        m.spot[part] = m.choice_kind[m.first_choice[job], part]
    return left_s * (speed_on(s, job, m.spot) / speed_on(s, job, m.kind[job]))


@kernel
def _describe_start(s, w, m, offer, job, cluster, free, bits):
    offer[CANDIDATES.legal] = offer[CANDIDATES.start] = 1.0
    kinds = 1 << s.cluster_type[cluster]
    _describe_place(s, w, offer, job, s.cluster_region[cluster], bits, kinds, _left_on_s(s, m, job))
    offer[CANDIDATES.free] = free / s.cluster_gpus[cluster]
    offer[CANDIDATES.free_after] = m.spare[cluster] / s.cluster_gpus[cluster]
    if m.score[1] > -1.0:
        racks = -m.score[1] / BY_RACK
        offer[CANDIDATES.racks] = racks / (racks + FEW)


@kernel
def _describe_leavers(s, w, m, level, offer, newcomer):
    leavers, units, left = m.count[LEAVES], 0, 0.0
    most, youngest_s, least = 0, math.inf, math.inf
    for i in range(leavers):
        job = m.leaving[i]
        least = min(least, weight_of(s, job))
        units += s.gpus[job]
        most = max(most, IMPORTANCES - level[job])
        youngest_s = min(youngest_s, s.now_s - s.started_s[job])
        left += s.gpus[job] * max(0.0, expected_end_s(s, job) - s.now_s)
    offer[CANDIDATES.make_room] = 1.0
    offer[CANDIDATES.stopped] = leavers / (leavers + FEW)
    offer[CANDIDATES.stopped_gpus] = units / s.n_gpus
    offer[CANDIDATES.stopped_importance] = most / IMPORTANCES
    offer[CANDIDATES.stopped_ran] = scaled_time(w, youngest_s)
    offer[CANDIDATES.stopped_service] = scaled_time(w, left)
    offer[CANDIDATES.weight] = ratio(weight_of(s, newcomer), least)


@kernel
def _share_at_home(s, job, region):
    reads, at_home = s.n_reads[job], 0
    if reads == 0:
        return 1.0
    for use in range(s.first_read[job], s.first_read[job] + reads):
        at_home += s.table_home[s.read_table[use]] == region
    return at_home / reads


@kernel
def _observe_running(s, w, level, features, row):
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        shown = features[row : row + RUNNING_COLUMNS]
        observe_size(s, shown, job)
        shown[RUNNING.ran] = scaled_time(w, s.now_s - s.started_s[job])
        shown[RUNNING.age] = scaled_time(w, s.now_s - s.arrival_s[job])
        shown[RUNNING.time_left] = scaled_time(w, expected_end_s(s, job) - s.now_s)
        shown[RUNNING.own_importance] = importance_of(s.job_level[job])
        shown[RUNNING.importance] = importance_of(level[job])
        shown[RUNNING.gpu_share] = s.gpu_units[job] / s.gpus[job]
        shown[RUNNING.region] = (s.job_region[job] + 1) / s.n_regions
        row += RUNNING_COLUMNS


@kernel
def _observe_regions(s, w, m, features, row):
    all_cpus = s.type_gpus[s.cpu_type]
    all_gpus = s.n_gpus - all_cpus
    _add_bytes(s, w)
    for region in range(min(w.region_slots, s.n_regions)):
        shown = features[row : row + REGION_COLUMNS]
        row += REGION_COLUMNS
        gpus, free_gpus, cpus, free_cpus = 0, 0, 0, 0
        asked_gpus = 0.0
        for cluster in range(s.n_clusters):
            if s.cluster_region[cluster] != region:
                continue
            if s.cluster_type[cluster] == s.cpu_type:
                cpus += s.cluster_gpus[cluster]
                free_cpus += m.spare[cluster]
                continue
            gpus += s.cluster_gpus[cluster]
            free_gpus += m.spare[cluster]
        for kind in range(s.n_types):
            asked_gpus += w.demand[region, kind] if kind != s.cpu_type else 0.0
        shown[REGIONS.present] = 1.0
        shown[REGIONS.up] = (s.up_regions >> region) & 1
        shown[REGIONS.gpus] = gpus / max(1, all_gpus)
        shown[REGIONS.cpus] = cpus / max(1, all_cpus)
        shown[REGIONS.free] = free_gpus / max(1, gpus)
        shown[REGIONS.free_cpus] = free_cpus / max(1, cpus)
        shown[REGIONS.demand] = ratio(asked_gpus, gpus)
        shown[REGIONS.demand_cpus] = ratio(w.demand[region, s.cpu_type], cpus)
        shown[REGIONS.high] = w.high[region] / max(1, gpus)
        shown[REGIONS.low] = w.low[region] / max(1, gpus)
        shown[REGIONS.stored] = s.stored_bytes[region] / max(1, s.storage_bytes[region])
        shown[REGIONS.incoming] = min(1.0, w.bytes_to[region] / max(1, s.storage_bytes[region]))


@kernel
def _add_bytes(s, w):
    for region in range(s.n_regions):
        w.bytes_to[region] = 0
    for table in range(s.n_tables if s.n_transfers > 0 else 0):
        transfer = s.table_transfer[table]
        while transfer >= 0:
            w.bytes_to[s.transfer_to[transfer]] += s.transfer_room[transfer]
            transfer = s.transfer_after[transfer]


@kernel
def _observe_cluster(s, w, features, asked):
    cpus, held, down = s.type_gpus[s.cpu_type], s.type_held[s.cpu_type], s.type_down[s.cpu_type]
    gpus = s.n_gpus - cpus
    free_cpus = cpus - held - down
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)
    features[CLUSTER.free] = (s.free_gpus - free_cpus) / max(1, gpus)
    features[CLUSTER.free_cpus] = free_cpus / max(1, cpus)
    features[CLUSTER.down] = (s.down_gpus - down) / max(1, gpus)
    features[CLUSTER.waiting] = scaled_count(s.waiting)
    features[CLUSTER.held] = scaled_count(s.held)
    features[CLUSTER.running] = scaled_count(s.running)
    features[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    features[CLUSTER.finished] = s.done / s.n_jobs
    features[CLUSTER.asked] = asked / (asked + s.n_gpus)
    features[CLUSTER.up] = count_regions(s.up_regions) / s.n_regions
    features[CLUSTER.copies] = s.n_transfers / (s.n_transfers + 8.0)
    features[CLUSTER.unplaceable] = scaled_count(w.n_unplaceable)
    features[CLUSTER.late] = s.late_starts / max(1, s.next_arrival)
