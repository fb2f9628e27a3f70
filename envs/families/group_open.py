"""A job opens a group of its own, of a number of machines: one that waits, or one that leaves a group for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...simulator.base.decisions import AssignGroup
from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.decide import open_for
from ..window import running_candidate, waiting_candidate
from .group_numbers import are_other, default_opened_machines, machines_opened, ratio_taken, spill, value_of
from .group_offers import (
    OWN_ALONE,
    OWN_KNOWN,
    OWN_LOADING,
    OWN_WEIGHT,
    describe_gain,
    describe_group,
    describe_own,
    describe_unknown,
    share_of,
)
from .group_sums import is_measured, use_of
from .groups import GroupFamily, machines_of, mark_going, may_move, may_pass


@kernel
def mark(s, w, m, first):
    """Modify `w`: waiting jobs that can open a group; where time cannot pass, all of them."""
    passes = may_pass(s)
    for slot in range(w.waiting_shown):
        if w.available > 0 and (not passes or may_move(s, w, w.waiting_job[slot])):
            _mark_opening(s, w, waiting_candidate(w, slot, first))


@kernel
def mark_out(s, w, m, first):
    """Modify `w`: jobs that can leave a group with others in it for one of their own."""
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        is_one_of_many = s.n_goal[s.goal[job]] > 1 or job == w.pinned_job
        if w.available > 0 and is_one_of_many and may_move(s, w, job):
            _mark_opening(s, w, running_candidate(w, slot, first))


@kernel
def _mark_opening(s, w, candidate):
    mark_going(s, w, candidate)
    w.most_machines = max(w.most_machines, w.available)


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job in a group of its own, of the balanced number of machines."""
    machines = default_opened_machines(s, w, job)
    offer[to.open] = offer[to.takes_second] = 1.0
    offer[to.takes_third] = s.spills
    offer[to.loading] = w.own[OWN_LOADING]
    describe_own(w, offer, to)
    inputs, models = s.input_bytes[job], s.model_bytes[job]
    if not (w.own[OWN_KNOWN] > 0.0 and is_measured(s, job)):
        describe_unknown(s, offer, to, machines, inputs, models, 1)
        return
    comp, comm = s.seen_comp[job], s.seen_comm[job]
    round_s = comp / machines + comm
    speed = w.own[OWN_ALONE] / round_s
    offer[to.speed] = share_of(speed)
    describe_gain(w, offer, to, speed, use_of(s, comp, comm, machines, round_s), speed * w.own[OWN_WEIGHT])
    describe_group(s, offer, to, comp, comm, machines, round_s, inputs, models, 1)


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: open a group for the job; True if with other numbers than asked for."""
    machines, value = action[1], action[2]
    taken = machines_opened(s, w, job, machines)
    ratio = ratio_taken(s, w, job, NONE, taken, value)
    open_for(s, job, taken)
    return spill(s, job, ratio, value) or are_other(taken, machines)


class Opening(GroupFamily):
    """A waiting job opens a group."""

    name, table, kinds, stands_for = "open", "queue", ("open",), (AssignGroup,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)

    def actions_for(self, window: Any, decision: AssignGroup) -> Iterator[tuple[int, ...]]:
        """With its machines, and the job's spill ratio."""
        if decision.group is None:
            yield 0, machines_of(window, decision), value_of(window.simulator.state.alpha_asked[decision.job])


class MovingOut(Opening):
    """A job leaves its group and opens another."""

    name, table = "move out", "running"
    mark = staticmethod(mark_out)
