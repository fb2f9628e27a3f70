"""A job goes to a group, from the queue or from another group: to a new one that it opens, or to one of the window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ...simulator.base.decisions import AssignGroup, SetSpill
from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.decide import join, open_for, set_spill
from ..window import running_candidate, waiting_candidate
from .group_numbers import are_other, is_other, machines_taken, ratio_taken, spill, value_of
from .group_offers import (
    OWN,
    describe_change,
    describe_gain,
    describe_group,
    describe_own,
    share_of,
)
from .group_sums import balance_of, is_measured, iteration_of, knows, round_of, use_of
from .group_table import GroupFamily, group_slot, machines_of, mark_going, may_move, may_pass


@kernel
def mark_opening(s, w, m, first):
    """Modify `w`: waiting jobs that can open a group; where time cannot pass, all of them."""
    passes = may_pass(s)
    for slot in range(w.waiting_shown):
        if w.available > 0 and (not passes or may_move(s, w, w.waiting_job[slot])):
            _mark_new(s, w, waiting_candidate(w, slot, first))


@kernel
def mark_moves_out(s, w, m, first):
    """Modify `w`: jobs that can leave a group with others in it for one of their own."""
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        is_one_of_many = s.n_goal[s.goal[job]] > 1 or job == w.pinned_job
        if w.available > 0 and is_one_of_many and may_move(s, w, job):
            _mark_new(s, w, running_candidate(w, slot, first))


@kernel
def _mark_new(s, w, candidate):
    mark_going(s, w, candidate)
    w.most_machines = max(w.most_machines, w.available)


@kernel
def describe_open(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job in a group of its own, of the balanced number of machines, or of that of its own run time."""
    machines = machines_taken(w, 0, balance_of(s, job, s.gpus[job]), w.available)
    offer[to.open] = offer[to.takes_second] = 1.0
    offer[to.takes_third] = s.spills
    offer[to.loading] = w.own[OWN.loading]
    describe_own(w, offer, to)
    describe_change(offer, to, 0.0, 0.0, 0.0)
    comp, comm, round_s = s.seen_comp[job], s.seen_comm[job], 0.0
    if w.own[OWN.is_known] > 0.0 and is_measured(s, job):
        round_s = comp / machines + comm
        speed = w.own[OWN.alone] / round_s
        offer[to.speed] = share_of(speed)
        describe_gain(w, offer, to, speed, use_of(s, comp, comm, machines, round_s), speed * w.own[OWN.weight])
    describe_group(s, offer, to, comp, comm, machines, round_s, s.input_bytes[job], s.model_bytes[job], 1)


@kernel
def carry_out_open(s, w, m, slot, job, kind, action):
    """Modify `s`: open a group for the job; True if with other numbers than asked for."""
    machines, value = action[1], action[2]
    taken = machines_taken(w, machines, balance_of(s, job, s.gpus[job]), w.available)
    ratio = ratio_taken(s, w, job, NONE, taken, value)
    open_for(s, job, taken)
    return spill(s, job, ratio, value) or are_other(taken, machines)


class Opening(GroupFamily):
    """A waiting job opens a group."""

    name, table, kinds, stands_for = "open", "queue", ("open",), (AssignGroup,)
    mark, describe, carry_out = staticmethod(mark_opening), staticmethod(describe_open), staticmethod(carry_out_open)

    def actions_for(self, window: Any, decision: AssignGroup) -> Iterator[tuple[int, ...]]:
        """With its machines, and the job's spill ratio."""
        if decision.group is None:
            yield 0, machines_of(window, decision), value_of(window.simulator.state.alpha_asked[decision.job])


class MovingOut(Opening):
    """A job leaves its group and opens another."""

    name, table = "move out", "running"
    mark = staticmethod(mark_moves_out)


@kernel
def mark_joins(s, w, m, first):
    """Modify `w`: waiting jobs can join any group."""
    for slot in range(w.waiting_shown):
        if may_move(s, w, w.waiting_job[slot]):
            for kind in range(w.groups_shown):
                mark_going(s, w, waiting_candidate(w, slot, first + kind))


@kernel
def mark_moves(s, w, m, first):
    """Modify `w`: jobs in groups can move to any other, and get another spill ratio in their own."""
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        moves = may_move(s, w, job)
        spills = s.spills and (s.spilt_at[job] != s.instants or job == w.pinned_job)
        for kind in range(w.groups_shown):
            if spills if w.shown_group[kind] == s.goal[job] else moves:
                mark_going(s, w, running_candidate(w, slot, first + kind))


@kernel
def describe_join(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job in another group."""
    group = w.shown_group[kind]
    offer[to.join] = 1.0
    offer[to.takes_third] = s.spills
    offer[to.loading] = w.own[OWN.loading]
    describe_own(w, offer, to)
    describe_change(offer, to, 0.0, 0.0, 0.0)
    machines, inputs, models = s.group_machines[group], s.input_bytes[job], s.model_bytes[job]
    comp = comm = round_s = 0.0
    if knows(w, group):
        inputs += w.input_sum[group]
        models += w.model_sum[group]
        if w.own[OWN.is_known] > 0.0 and is_measured(s, job):
            comp, comm = w.comp_sum[group] + s.seen_comp[job], w.comm_sum[group] + s.seen_comm[job]
            round_s = round_of(comp, comm, machines, max(w.longest_s[group], iteration_of(s, job, machines)))
            alone_s, each = w.own[OWN.alone], 1.0 / round_s
            offer[to.speed] = alone_s / (alone_s + round_s)
            speeds = (w.speed_sum[group] + alone_s) * each - w.speed_gain[group]
            use = use_of(s, comp, comm, machines, round_s) - w.use_gain[group]
            value = (w.value_sum[group] + alone_s * w.own[OWN.weight]) * each - w.value_gain[group]
            describe_gain(w, offer, to, speeds, use, value)
    describe_group(s, offer, to, comp, comm, machines, round_s, inputs, models, s.n_goal[group] + 1)


@kernel
def describe_move(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job in another group, or its own as it is."""
    group = w.shown_group[kind]
    if group != s.goal[job]:
        describe_join(s, w, m, slot, job, kind, shown, of, offer, to, is_new)
        return
    offer[to.stay] = offer[to.takes_third] = 1.0
    describe_own(w, offer, to)
    describe_change(offer, to, 0.0, 0.0, 0.0)
    if knows(w, group):
        comp, comm, round_s = w.comp_sum[group], w.comm_sum[group], w.round_s[group]
        inputs, models = w.input_sum[group], w.model_sum[group]
        describe_group(s, offer, to, comp, comm, s.group_machines[group], round_s, inputs, models, s.n_goal[group])


@kernel
def carry_out_join(s, w, m, slot, job, kind, action):
    """Modify `s`: the job is to be in the group, or spills anew; True if with another ratio than asked for."""
    group = w.shown_group[kind]
    if group != s.goal[job]:
        return join_and_spill(s, w, job, group, action[2])
    ratio = ratio_taken(s, w, job, group, s.group_machines[group], action[2])
    set_spill(s, job, ratio)
    return is_other(ratio, action[2])


@kernel
def join_and_spill(s, w, job, group, value):
    """Modify `s`: the job is to be in another group; `value`: the third part of the action."""
    ratio = ratio_taken(s, w, job, group, s.group_machines[group], value)
    join(s, job, group)
    return spill(s, job, ratio, value)


class Joining(GroupFamily):
    """A waiting job joins one of the groups in `group_slots`, a candidate each."""

    name, table, is_counted = "join", "queue", True
    kinds: ClassVar[tuple[str, ...]] = ("join",)
    stands_for: ClassVar[tuple[type, ...]] = (AssignGroup,)
    mark, describe, carry_out = staticmethod(mark_joins), staticmethod(describe_join), staticmethod(carry_out_join)

    def __init__(self, group_slots: int) -> None:
        self.group_slots = group_slots

    def count(self) -> int:
        """A candidate for each group slot."""
        return self.group_slots

    def actions_for(self, window: Any, decision: Any) -> Iterator[tuple[int, ...]]:
        """The slot of its group, with the job's spill ratio."""
        if decision.group is not None:
            ratio = window.simulator.state.alpha_asked[decision.job]
            yield group_slot(window, decision, decision.group), 0, value_of(ratio)


class Moving(Joining):
    """A job moves to another group, or stays in its own with another spill ratio."""

    name, table, kinds, stands_for = "change group", "running", ("join", "stay"), (AssignGroup, SetSpill)
    mark, describe = staticmethod(mark_moves), staticmethod(describe_move)

    def actions_for(self, window: Any, decision: AssignGroup | SetSpill) -> Iterator[tuple[int, ...]]:
        """The slot of its group."""
        if isinstance(decision, AssignGroup):
            yield from super().actions_for(window, decision)
        else:
            group = int(window.simulator.state.goal[decision.job])
            yield group_slot(window, decision, group), 0, value_of(decision.ratio)
