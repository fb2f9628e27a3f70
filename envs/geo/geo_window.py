"""The window of Geo-v0: waiting workloads, and the clusters where each could run now.

Workloads that could start now come first, in the window's order. Candidate 0 advances; then every waiting slot has, for
each offered cluster, a start without and one with preemption, then a hold, then copies of its tables to a region.
`offered` has the clusters: those of a type that its first part accepts, in regions that could run it, ascending; if
there are too many, those with the best placement scores. `bring_to` has the regions (table_bringing.py).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...policies.mast.copies_needed import needs_copies
from ...policies.mast.global_scheduler import AVERAGES, RUNNERS, set_levels
from ...policies.mast.place_search import begin_plan, bid_in, choose, has_room, place_in, refuse, undo, was_refused
from ...policies.mast.region_units import (
    IMPORTANCES,
    LEAVES,
    PARTS,
    first_unit,
    forget_all,
    value,
    write_units,
)
from ...simulator.base.codes import FINISHED, HELD, HORIZON, WORD
from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.lifecycle.fault_groups import more_outages
from ...simulator.numerics.bitset import next_member
from ...simulator.record.region_fields import MOST_REGIONS, MOST_TYPES
from ...simulator.regions.region_starts import candidate_regions
from ..window import MAX_SLOTS, NO_JOB, choice_of, common_fields, fill_slots, waiting_candidate
from .table_bringing import MAX_BRINGS

MAX_CLUSTERS = 16
NO_CLUSTER = -1
TOP = IMPORTANCES - 1  # of workloads that stay
AS_IT_IS, IN_PLACE_OF_OTHERS, BRING = 0, 1, 2  # ways; the last starts nothing

# What Python is asked: to carry out a candidate, for a policy's decisions at this instant, for those at its end.
NOTHING, ASKS_ACTION, ASKS_PLAN, ASKS_LEAVING = range(4)
# Its answers: show the present, play the candidate without a policy, leave the instant.
SHOW, PLAY, LEAVE = range(4, 7)


def kinds_of(clusters: int, brings: int) -> int:
    """Candidates of a waiting slot: two starts a cluster, to hold, and regions to which its tables may be copied."""
    return 2 * clusters + 1 + brings


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    candidates = 1 + kinds_of(MAX_CLUSTERS, MAX_BRINGS) * MAX_SLOTS
    own = [
        "clusters",
        "brings",
        "region_slots",
        "any_leaves",
        "looks",  # whether a policy decides about due tables
        "n_unplaceable",
    ]
    own += ["asks", "asked_for"]  # what Python is asked, and its answer; the candidate in question
    own += ["has_policy", "is_lesson"]  # a policy is played; also where it decides nothing and an agent would be asked
    own += ["is_asked", "has_rest"]  # it has decided about this instant; about tables, after its turns
    own += ["turn_job", "turn_cluster", "turn_way"]  # the workload that it decides about next, NO_JOB: none
    own += ["turn_ends", "is_turned"]  # that is a hold until a certain time; the window was turned to that workload
    own += ["said", "is_said"]  # the candidate that plays its turn, and whether the next step may
    own += ["pending", "lacks", "data_valid"]  # see `look_around`; data_valid: data have not moved since
    own += ["starts_valid"]  # `RUNNERS` of the ranking at the last writing of starts; 0: write them anew
    return np.dtype(
        [
            *common_fields(),
            *[(name, "i8") for name in own],
            ("offered", "i8", (MAX_SLOTS, MAX_CLUSTERS)),
            ("bring_to", "i8", (MAX_SLOTS, MAX_BRINGS)),
            ("bring_bytes", "i8", (MOST_REGIONS,)),  # scratch: of one workload, by region
            ("bring_count", "i8", (MOST_REGIONS,)),
            ("bytes_to", "i8", (MOST_REGIONS,)),  # scratch: on the way, by region
            ("score", "f8", (MAX_CLUSTERS,)),  # scratch: of those that are offered
            ("weight", "f8", (MAX_SLOTS,)),  # scratch: of the workloads shown
            ("start_job", "i8", (MAX_SLOTS,)),  # jobs whose starts were written last; NO_JOB: none
            ("start_importance", "i8", (MAX_SLOTS,)),
            ("demand", "f8", (MOST_REGIONS, MOST_TYPES)),  # scratch: units asked and there, by region and type
            ("supply", "f8", (MOST_REGIONS, MOST_TYPES)),
            ("high", "f8", (MOST_REGIONS,)),  # scratch: GPUs held by the highest priorities, and by the lowest
            ("low", "f8", (MOST_REGIONS,)),
            ("legal", "i1", (candidates,)),
        ],
        align=True,
    )


@kernel
def start_kind(choice, way):
    """The kind of a start in the cluster of a choice, in that way."""
    return 2 * choice + way


@kernel
def hold_kind(w):
    """The kind of a hold."""
    return start_kind(w.clusters, 0)


@kernel
def bring_kind(w, choice):
    """The kind of copies of tables to the region of a choice."""
    return hold_kind(w) + 1 + choice


@entry
def start_of(w, candidate):
    """Workload, cluster (NO_CLUSTER: it is held) and way of a candidate but 0; with BRING a region for the cluster."""
    _, slot, job, kind = choice_of(w, candidate)
    if kind > hold_kind(w):
        return job, w.bring_to[slot, kind - bring_kind(w, 0)], BRING
    if kind == hold_kind(w):
        return job, NO_CLUSTER, AS_IT_IS
    return job, w.offered[slot, kind // 2], kind % 2


@entry
def candidate_of(w, job, cluster, way):
    """The candidate of that choice, legal or not; 0: none."""
    for slot in range(w.waiting_shown):
        if w.waiting_job[slot] != job:
            continue
        if way == BRING:
            for choice in range(w.brings):
                if w.bring_to[slot, choice] == cluster:
                    return waiting_candidate(w, slot, bring_kind(w, choice))
            return 0
        if cluster == NO_CLUSTER:
            return waiting_candidate(w, slot, hold_kind(w))
        for choice in range(w.clusters):
            if w.offered[slot, choice] == cluster:
                return waiting_candidate(w, slot, start_kind(choice, way))
    return 0


@kernel
def begin_instant(w, m):
    """Modify both in place: forget the last instant."""
    w.data_valid = w.starts_valid = m.valid[AVERAGES] = m.valid[RUNNERS] = 0
    w.is_asked = w.has_rest = 0
    w.turn_job = NO_JOB


@kernel
def forget_present(w, m):
    """Modify both in place: forget all that was found in the record."""
    w.data_valid = w.starts_valid = m.valid[AVERAGES] = m.valid[RUNNERS] = m.follows = 0


@kernel
def _list_pending(s, w, m):
    """Modify `order` in place: the waiting workloads in the window's order, then the held ones, by number."""
    low, mid, top = s.window_low, s.window_mid, s.window_top
    count, at = 0, next_member(low, mid, top, 0)
    while at >= 0:
        m.order[count] = s.job_at_rank[at]
        count += 1
        at = next_member(low, mid, top, at + 1)
    if s.held > 0:
        for first in range(0, s.next_arrival, WORD):
            if s.ended[first // WORD] < WORD:
                for job in range(first, min(first + WORD, s.next_arrival)):
                    if s.status[job] == HELD:
                        m.order[count] = job
                        count += 1
    w.pending = count


@kernel
def _write_present(s, w, m):
    """Modify the regions and the ranking in place: as in the record; workloads that started at this instant stay."""
    set_levels(s, m)
    write_units(s, m)
    if w.any_leaves:
        _write_by_time_left(s, m)
    for i in range(s.running):
        job = s.runner[i]
        if s.started_s[job] == s.now_s:
            value(m, job, TOP)
    _list_pending(s, w, m)
    for i in range(s.waiting):
        job = m.order[i]
        m.importance[job] = TOP if w.any_leaves else TOP - m.level[job]
        m.start_s[job] = s.now_s


@kernel
def _write_by_time_left(s, m):
    """Modify the regions in place: any running workload may leave, those with most time left x GPUs first.

    Importances are classes by powers of two, from the longest down; one without GPUs counts as one with one.
    """
    longest = 0.0
    for i in range(s.running):
        longest = max(longest, _time_left(s, s.runner[i]))
    for i in range(s.running):
        job, bound, found = s.runner[i], 0.5 * longest, 0
        while found < TOP - 1 and _time_left(s, job) < bound:
            bound *= 0.5
            found += 1
        m.importance[job] = found
    for cluster in range(m.n_clusters):
        base = first_unit(m, cluster)
        for importance in range(IMPORTANCES):
            m.held[cluster, importance] = 0
        for place_ in range(base, base + m.running[cluster]):
            slot = m.by_size[place_]
            m.held[cluster, m.importance[slot // PARTS]] += m.units[slot]


@kernel
def _time_left(s, job):
    return isolated_left_s(s, job) * max(s.gpu_units[job], 1)


@kernel
def list_clusters(s, w, m, job, slot, bits):
    """Modify `offered` in place: the clusters, in these regions, that a slot is offered; returns their number."""
    offered, score = w.offered[slot], w.score
    kinds, count = s.part_accepts[job, 0], 0
    for cluster in range(s.n_clusters):
        if (kinds >> s.cluster_type[cluster]) & 1 == 0 or (bits >> s.cluster_region[cluster]) & 1 == 0:
            continue
        if count < w.clusters:
            offered[count] = cluster
            score[count] = 1.0  # unknown yet
            count += 1
        else:
            _replace_worst(s, w, m, job, slot, cluster)
    for place_ in range(count, w.clusters):
        offered[place_] = NO_CLUSTER
    if w.is_turned and job == w.turn_job and w.turn_cluster != NO_CLUSTER:
        count = _offer_turn(w, slot, count)
    return count


@kernel
def _replace_worst(s, w, m, job, slot, cluster):
    """Modify `offered` in place: a cluster replaces the one with the worst score, if its own is better."""
    clusters, score = w.offered[slot], w.score
    worst = 0
    for at in range(w.clusters):
        if score[at] > 0.0:
            score[at] = score_in(s, m, job, clusters[at])
        if score[at] <= score[worst]:
            worst = at
    own = score_in(s, m, job, cluster)
    if own > score[worst]:
        for at in range(worst, w.clusters - 1):
            clusters[at] = clusters[at + 1]
            score[at] = score[at + 1]
        clusters[w.clusters - 1] = cluster
        score[w.clusters - 1] = own


@kernel
def _offer_turn(w, slot, count):
    for at in range(count):
        if w.offered[slot, at] == w.turn_cluster:
            return count
    at = min(count, w.clusters - 1)
    w.offered[slot, at] = w.turn_cluster
    return at + 1


@kernel
def score_in(s, m, job, cluster):
    """The placement score of a workload whose first part lies in a cluster, with preemption if necessary."""
    return bid_in(m, job, s.cluster_region[cluster], cluster, s.now_s)


@kernel
def find_plan(s, m, job, cluster, way):
    """Modify the plan in place, and the regions as if carried out, until `undo`; False: there is none."""
    begin_plan(m)
    preempts = way == IN_PLACE_OF_OTHERS
    if not place_in(m, job, s.cluster_region[cluster], cluster, preempts, s.now_s):
        return False
    if preempts and m.count[LEAVES] == 0:
        undo(m, job)
        return False
    return True


@kernel
def can_start(s, m, job, bits):
    """Modify the negative cache in place: whether a waiting workload has a plan in any of these regions."""
    if m.choices[job] == 0:
        return _can_start(s, m, job, bits)
    for choice in range(m.choices[job]):
        choose(m, job, choice)
        if _can_start(s, m, job, bits):
            return True
    return False


@kernel
def _can_start(s, m, job, bits):
    for region in range(s.n_regions):
        if (bits >> region) & 1 == 0 or was_refused(m, job, region, NO_CLUSTER):
            continue
        if has_room(m, job, region, NO_CLUSTER, m.importance[job]):
            return True
        refuse(m, job, region, NO_CLUSTER)
    return False


@kernel
def look_around(s, w, m):
    """Modify `w`, the regions and the ranking in place: holders of units, and the regions for each pending job.

    `order` lists `pending` workloads, the waiting ones first. Returns whether copies of tables may have to be decided
    for those that no region can run.
    """
    _write_present(s, w, m)
    forget_all(m)
    if not w.data_valid:
        w.n_unplaceable = w.lacks = 0
        for i in range(w.pending):
            job = m.order[i]
            m.bits[job] = candidate_regions(s, job)
            if m.bits[job] == 0:
                w.n_unplaceable += 1
                w.lacks |= needs_copies(s, job)
    return w.lacks


@kernel
def is_startable(s, m):
    """Modify the negative cache in place: whether any waiting workload has a plan, after `look_around`."""
    at = 0
    while at < s.waiting and not can_start(s, m, m.order[at], m.bits[m.order[at]]):
        at += 1
    return at < s.waiting


@kernel
def _show_startable(s, w, m):
    """Modify `w` in place: waiting workloads that could start now come before the others, the pinned one first."""
    shown, pinned_job = 0, NO_JOB
    if w.pinned_job != NO_JOB and w.waiting_shown > 0 and w.waiting_job[0] == w.pinned_job:
        shown, pinned_job = 1, w.pinned_job
    for i in range(s.waiting):
        job = m.order[i]
        m.sort_spare[job] = 1 if job != pinned_job and shown < w.slots and can_start(s, m, job, m.bits[job]) else 0
        if m.sort_spare[job]:
            w.waiting_job[shown] = job
            shown += 1
    for i in range(s.waiting):
        job = m.order[i]
        if shown < w.slots and job != pinned_job and m.sort_spare[job] == 0:
            w.waiting_job[shown] = job
            shown += 1


@kernel
def something_comes(s):
    """Whether an event is to come that may change which jobs can start, not just a review of tables."""
    fails = s.mtbf_s > 0.0 or s.region_mtbf_s > 0.0 or more_outages(s)
    return s.running > 0 or s.next_arrival < s.n_jobs or s.n_transfers > 0 or fails


@kernel
def begin_window(s, w, m):
    """Modify `w` and `m` in place: the workloads shown, `sort_spare`: with a plan; only holds are legal."""
    fill_slots(s, w)
    _show_startable(s, w, m)
    w.can_act = 0
    w.legal[: w.candidates] = 0
    more = something_comes(s)
    for slot in range(w.waiting_shown):
        w.legal[waiting_candidate(w, slot, hold_kind(w))] = more


@kernel
def end_window(s, w):
    """Modify `w` in place: whether the clock can advance; it cannot while only hidden workloads could start."""
    over = w.code == FINISHED or w.code == HORIZON
    w.legal[0] = 1 if over or not w.can_act or something_comes(s) else 0


@kernel
def plan_start(s, m, job, cluster, way):
    """Modify `taken` and `leaving` in place: a waiting job's plan in a cluster; the number of leavers, -1: no plan."""
    if way == IN_PLACE_OF_OTHERS and find_plan(s, m, job, cluster, AS_IT_IS):
        undo(m, job)
        return -1
    if not find_plan(s, m, job, cluster, way):
        return -1
    leavers = m.count[LEAVES]
    undo(m, job)
    return leavers
