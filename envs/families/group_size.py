"""A group gets a number of machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...simulator.base.decisions import SetMachines
from ...simulator.compiler.jit import kernel
from ...simulator.groups.kernels.decide import set_machines
from ..window import running_candidate, scaled_time
from .group_numbers import are_other, machines_taken, room_of, wanted_by_group
from .group_offers import describe_change, describe_group
from .group_sums import knows, longest_on, round_of, use_of
from .group_table import GroupFamily, group_slot, machines_of


@kernel
def mark(s, w, m, first):
    """Modify `w`: groups that can have more than one machine, once an instant."""
    here = running_candidate(w, w.running_slots, first)
    for slot in range(w.groups_shown):
        group = w.shown_group[slot]
        room = room_of(s, w, group)
        if group == w.pinned_group or (room > 1 and s.sized_at[group] != s.instants):
            w.legal[here + slot] = 1
            w.most_machines = max(w.most_machines, room)
            w.can_act = 1


@kernel
def describe(s, w, m, slot, group, kind, shown, of, offer, to, is_new):
    """Write the group on its balanced number of machines, or the nearest possible one."""
    machines = machines_taken(w, 0, wanted_by_group(s, w, group), room_of(s, w, group))
    present = s.group_machines[group]
    moved = abs(machines - present) / max(machines, present)
    offer[to.give] = offer[to.takes_second] = 1.0
    offer[to.loading] = scaled_time(w, s.move_s * moved * s.n_goal[group])
    describe_change(offer, to, 0.0, 0.0, 0.0)
    if not knows(w, group):
        return
    comp, comm = w.comp_sum[group], w.comm_sum[group]
    round_s = 0.0
    if w.round_s[group] > 0.0:
        round_s = round_of(comp, comm, machines, longest_on(s, group, machines))
        speeds = w.speed_sum[group] / round_s - w.speed_gain[group]
        use = use_of(s, comp, comm, machines, round_s) - w.use_gain[group]
        describe_change(offer, to, speeds, use, w.value_sum[group] / round_s - w.value_gain[group])
    inputs, models = w.input_sum[group], w.model_sum[group]
    describe_group(s, offer, to, comp, comm, machines, round_s, inputs, models, s.n_goal[group])


@kernel
def carry_out(s, w, m, slot, group, kind, action):
    """Modify `s`: the group has so many machines; True if others than asked for."""
    taken = machines_taken(w, action[1], wanted_by_group(s, w, group), room_of(s, w, group))
    set_machines(s, group, taken)
    return are_other(taken, action[1])


class Sizing(GroupFamily):
    """Give a group in the window machines; its candidates follow those of the running slots."""

    name, table, kinds, stands_for = "size", "groups", ("give",), (SetMachines,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)

    def slot(self, window: Any, decision: SetMachines) -> int:
        """That of its group."""
        return group_slot(window, decision, decision.group)

    def actions_for(self, window: Any, decision: SetMachines) -> Iterator[tuple[int, ...]]:
        """The only one."""
        yield 0, machines_of(window, decision)
