"""A job leaves its group and waits: for nobody, or for a waiting job that takes its place."""

from __future__ import annotations

from ...simulator.base.decisions import Preempt
from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.decide import pause
from ...simulator.jobs.remaining_time import isolated_left_s
from ..window import MAX_SLOTS, running_candidate, scaled_time
from .group_enter import join_and_spill
from .group_offers import (
    OWN,
    describe_change,
    describe_gain,
    describe_group,
    describe_own,
    share_of,
)
from .group_sums import alone_of, is_measured, iteration_of, knows, longest_without, round_of, use_of, weight_of
from .group_table import GroupFamily, mark_going, may_move


@kernel
def mark(s, w, m, first):
    """Modify `w`: jobs can be paused, but not the last one when nothing is to come."""
    stays_on = s.running > 1 or s.next_arrival < s.n_jobs or s.down_machines > 0
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        if may_move(s, w, job):
            w.legal[running_candidate(w, slot, first)] = stays_on or job == w.pinned_job
            w.can_act = 1


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job, and its group without it."""
    offer[to.pause] = 1.0
    describe_own(w, offer, to)
    describe_gain(w, offer, to, 0.0, 0.0, 0.0)


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: the job is to wait."""
    pause(s, job)
    return False


class Pausing(GroupFamily):
    """Pause a job in a group."""

    name, table, kinds, stands_for = "pause", "running", ("pause",), (Preempt,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)


@kernel
def mark_swap(s, w, m, first):
    """Modify `w`: jobs in whose place a waiting one can go, and which."""
    for slot in range(w.waiting_shown):
        w.alone_s[slot] = alone_of(s, w.waiting_job[slot])
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        if may_move(s, w, job):
            w.partner[slot] = _find_partner(s, w, job)
            if w.partner[slot] != NONE:
                mark_going(s, w, running_candidate(w, slot, first))


@kernel
def _find_partner(s, w, job):
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
def describe_swap(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the other job in the place of this one, which waits. The time left is the other's."""
    other, group = w.partner[slot], s.goal[job]
    left = isolated_left_s(s, other)
    offer[to.swap] = 1.0
    offer[to.takes_third] = s.spills
    offer[to.loading] = w.own[OWN.loading]
    offer[to.time_left] = scaled_time(w, left)
    describe_change(offer, to, 0.0, 0.0, 0.0)
    machines = s.group_machines[group]
    comp = comm = round_s = inputs = models = 0.0
    if is_measured(s, other) and knows(w, group):
        comp = w.comp_sum[group] - s.seen_comp[job] + s.seen_comp[other]
        comm = w.comm_sum[group] - s.seen_comm[job] + s.seen_comm[other]
        longest_s = max(longest_without(w, group, job), iteration_of(s, other, machines))
        round_s = round_of(comp, comm, machines, longest_s)
        own_s, alone_s = w.own[OWN.alone], alone_of(s, other)
        offer[to.speed] = share_of(alone_s / round_s)
        speeds = (w.speed_sum[group] - own_s + alone_s) / round_s - w.speed_gain[group]
        use = use_of(s, comp, comm, machines, round_s) - w.use_gain[group]
        value = w.value_sum[group] - own_s * w.own[OWN.weight] + alone_s * weight_of(s, left)
        describe_change(offer, to, speeds, use, value / round_s - w.value_gain[group])
        inputs = w.input_sum[group] - s.input_bytes[job] + s.input_bytes[other]
        models = w.model_sum[group] - s.model_bytes[job] + s.model_bytes[other]
    describe_group(s, offer, to, comp, comm, machines, round_s, inputs, models, s.n_goal[group])


@kernel
def carry_out_swap(s, w, m, slot, job, kind, action):
    """Modify `s`: the other job is to be in the group of this one, which waits."""
    adjusted = join_and_spill(s, w, w.partner[slot], s.goal[job], action[2])
    pause(s, job)
    return adjusted


class Swapping(GroupFamily):
    """The shown waiting job that gains most takes the place of a job in a group; no single decision says so."""

    name, table, kinds, stands_for = "swap", "running", ("swap",), ()
    fields = (
        ("partner", "i8", (MAX_SLOTS,)),  # by running slot: the waiting job that would take its place
        ("alone_s", "f8", (MAX_SLOTS,)),  # by waiting slot: seconds of an iteration alone
    )
    mark, describe, carry_out = staticmethod(mark_swap), staticmethod(describe_swap), staticmethod(carry_out_swap)
