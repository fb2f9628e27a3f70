"""The window of Grouping-v0: waiting jobs, jobs in groups, and groups; and the legal decisions about them.

Candidate 0 advances; then every waiting slot opens a group or joins that of group slot 0 to G - 1; then every running
slot is paused, goes to that of group slot 0 to G - 1 (its own: it stays, and only its spill ratio is set), opens a
group, or is replaced by a waiting job; then every group slot gets machines.

At one instant a job changes its place at most once, as a group its machines and a job its spill ratio, so every instant
ends. A policy's next decision (`pinned_job`, `pinned_group`) is exempt.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...simulator.base.codes import FINISHED, HORIZON
from ...simulator.compiler.jit import entry, kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.decide import available_machines
from ..window import MAX_SLOTS, NO_JOB, choice_of, common_fields, fill_slots, running_candidate
from .sums import alone_of, is_measured, knows, longest_without, sum_fields, sum_groups

MAX_GROUP_SLOTS = 32
OPEN_KIND = 0  # of a waiting slot; the group slots follow
PAUSE_KIND = 0  # of a running slot; the group slots, OPEN and SWAP follow
MOST_MACHINES = 256  # that can be asked for
SIZE, PAUSE, OPEN, JOIN, SWAP, SPILL = range(6)  # what candidates stand for
SPILLS = 12  # values of the third part, at most: climbing, then 0, .1, ..., 1
TIMES = 4  # features of a job that are times


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    candidates = 1 + (1 + MAX_GROUP_SLOTS) * MAX_SLOTS + (3 + MAX_GROUP_SLOTS) * MAX_SLOTS + MAX_GROUP_SLOTS
    options = ("group_slots", "machine_choices", "spill_choices")
    present = ("pinned_group", "expert_job", "groups_shown", "available", "most_machines", "may_spill")
    return np.dtype(
        [
            *common_fields(),
            *[(name, "i8") for name in options + present],
            ("legal", "i1", (candidates,)),
            ("shown_group", "i8", (MAX_GROUP_SLOTS,)),
            ("partner", "i8", (MAX_SLOTS,)),  # by running slot: the waiting job that would take its place
            ("alone_s", "f8", (MAX_SLOTS,)),  # by waiting slot: seconds of an iteration alone
            ("own", "f8", (8,)),  # scratch of grouping_offers.py,
            ("times", "f8", (2 * TIMES * MAX_SLOTS,)),  # and of observation.py
            *sum_fields(),
        ],
        align=True,
    )


@entry
def group_candidate(w, slot):
    """The candidate of a group slot."""
    return running_candidate(w, w.running_slots, 0) + slot


@entry
def open_kind(w):
    """The candidate of a running slot that opens a group for its job; to swap follows."""
    return 1 + w.group_slots


@kernel
def group_choice(s, w, candidate):
    """Of a candidate but 0: one of SIZE, ..., the job, the group, and the job that replaces it (SWAP)."""
    if candidate >= group_candidate(w, 0):
        return SIZE, NO_JOB, w.shown_group[candidate - group_candidate(w, 0)], NO_JOB
    is_waiting, slot, job, kind = choice_of(w, candidate)
    if kind == (OPEN_KIND if is_waiting else open_kind(w)):
        return OPEN, job, NONE, NO_JOB
    if is_waiting:
        return JOIN, job, w.shown_group[kind - 1], NO_JOB
    if kind == PAUSE_KIND:
        return PAUSE, job, NONE, NO_JOB
    if kind == open_kind(w) + 1:
        return SWAP, job, s.goal[job], w.partner[slot]
    group = w.shown_group[kind - 1]
    return SPILL if group == s.goal[job] else JOIN, job, group, NO_JOB


@kernel
def may_pass(s):
    """True if time can pass: a job has a group, or a job or a machine is to come."""
    return s.running > 0 or s.next_arrival < s.n_jobs or s.down_machines > 0


@kernel
def refresh(s, w):
    """Modify window `w`: show the present and mark legal candidates."""
    fill_slots(s, w)
    w.expert_job = w.pinned_job  # the job of a policy's next decision
    sum_groups(s, w)
    fill_groups(s, w)
    w.available = available_machines(s)
    w.most_machines = w.may_spill = 0
    w.legal[: w.candidates] = 0
    passes = may_pass(s)
    w.legal[0] = passes or w.code == FINISHED or w.code == HORIZON
    acts = _mark_waiting(s, w, passes)
    acts |= _mark_running(s, w)
    acts |= _mark_groups(s, w)
    w.can_act = acts


@kernel
def fill_groups(s, w):
    """Modify `w`: show the groups that have jobs; the pinned one before all others, even without jobs."""
    slot = 0
    pinned_job = w.pinned_group
    if 0 <= pinned_job < s.is_group.size and s.is_group[pinned_job]:
        w.shown_group[0] = pinned_job
        slot = 1
    for group in range(s.group_end):
        if slot == w.group_slots:
            break
        if s.is_group[group] and s.n_goal[group] > 0 and group != pinned_job:
            w.shown_group[slot] = group
            slot += 1
    w.groups_shown = slot
    for empty in range(slot, w.group_slots):
        w.shown_group[empty] = NONE


@kernel
def room_of(s, w, group):
    """Machines that a group could have: its own and free ones."""
    return w.available + (s.group_machines[group] if s.n_goal[group] > 0 else 0)


@kernel
def may_move(s, w, job):
    """Whether a job may change its place: it has not at this instant."""
    return s.is_dirty_job[job] == 0 or job == w.pinned_job


@kernel
def _mark_waiting(s, w, passes):
    """Modify window `w`: waiting jobs open groups and join them; where time cannot pass every one may open one."""
    acts = False
    here = 1
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        w.alone_s[slot] = alone_of(s, job)
        moves = may_move(s, w, job)
        if w.available > 0 and (moves or not passes):
            w.legal[here + OPEN_KIND] = 1
            w.most_machines = max(w.most_machines, w.available)
            acts = True
        if moves:
            for k in range(w.groups_shown):
                w.legal[here + 1 + k] = 1
            acts |= w.groups_shown > 0
        here += w.per_waiting
    if acts and s.spills != 0:
        w.may_spill = 1
    return acts


@kernel
def _mark_running(s, w):
    """Modify window `w`: jobs in groups are paused, move, make room, or get another spill ratio."""
    here = running_candidate(w, 0, 0)
    acts = False
    stays_on = s.running > 1 or s.next_arrival < s.n_jobs or s.down_machines > 0
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        if may_move(s, w, job):
            _mark_moves(s, w, slot, here, stays_on)
            acts = True
        for k in range(w.groups_shown):
            if w.shown_group[k] == s.goal[job] and _may_spill(s, w, job):
                w.legal[here + 1 + k] = 1
                w.may_spill = 1
                acts = True
        here += w.per_running
    return acts


@kernel
def _may_spill(s, w, job):
    return s.spills and (s.spilt_at[job] != s.instants or job == w.pinned_job)


@kernel
def _mark_moves(s, w, slot, here, stays_on):
    job = w.running_job[slot]
    group = s.goal[job]
    is_focus = job == w.pinned_job
    w.legal[here + PAUSE_KIND] = stays_on or is_focus
    for k in range(w.groups_shown):
        if w.shown_group[k] != group:
            w.legal[here + 1 + k] = 1
            w.may_spill |= s.spills
    if w.available > 0 and (s.n_goal[group] > 1 or is_focus):
        w.legal[here + open_kind(w)] = 1
        w.most_machines = max(w.most_machines, w.available)
        w.may_spill |= s.spills
    w.partner[slot] = find_partner(s, w, job)
    if w.partner[slot] != NONE:
        w.legal[here + open_kind(w) + 1] = 1
        w.may_spill |= s.spills


@kernel
def find_partner(s, w, job):
    """The shown waiting job that gains most in a job's place, by the sum of speeds; NONE: no job may go there."""
    group = s.goal[job]
    known = knows(w, group) and is_measured(s, job)
    comp = comm = speeds_s = longest_s = 0.0
    if known:
        comp, comm = w.comp_sum[group] - s.seen_comp[job], w.comm_sum[group] - s.seen_comm[job]
        speeds_s, longest_s = w.speed_sum[group] - alone_of(s, job), longest_without(w, group, job)
    each = 1.0 / s.group_machines[group]
    found, found_s, round_s = NONE, 0.0, 1.0  # the largest sum of iterations alone over the round
    for slot in range(w.waiting_shown):
        other = w.waiting_job[slot]
        if s.is_dirty_job[other]:
            continue
        own_s = other_s = 0.0
        if known and is_measured(s, other):
            comp_s, comm_s = s.seen_comp[other] * each, s.seen_comm[other]
            own_s = speeds_s + w.alone_s[slot]
            other_s = max(comp * each + comp_s, comm + comm_s, longest_s, comp_s + comm_s)
        if found == NONE or own_s * round_s > found_s * other_s:
            found, found_s, round_s = other, own_s, other_s
    return found


@kernel
def _mark_groups(s, w):
    here = group_candidate(w, 0)
    acts = False
    for k in range(w.groups_shown):
        group = w.shown_group[k]
        room = room_of(s, w, group)
        if group == w.pinned_group or (room > 1 and s.sized_at[group] != s.instants):
            w.legal[here + k] = 1
            w.most_machines = max(w.most_machines, room)
            acts = True
    return acts
