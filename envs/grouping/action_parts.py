"""Execution of an action, and the numbers of its second and third part."""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import CLIMBS, NONE
from ...simulator.groups.kernels.decide import join, open_for, pause, set_machines, set_spill
from ...simulator.numerics.bitset import next_member
from .grouping_window import JOIN, OPEN, PAUSE, SIZE, SPILLS, SWAP, group_choice, room_of
from .sums import balanced, is_measured, knows


@kernel
def clipped(machines, most):
    """The nearest number from 1 to `most`."""
    return max(1, min(machines, most))


@kernel
def default_opened_machines(s, w, job):
    """Machines of a new group without a number in the action: the job's balanced number, or its own GPUs."""
    wanted = balanced(s.seen_comp[job], s.seen_comm[job]) if is_measured(s, job) else s.gpus[job]
    return clipped(wanted, w.available)


@kernel
def default_group_machines(s, w, group):
    """Machines of a group without a number in the action: its balanced number, or its present one."""
    wanted = s.group_machines[group]
    if s.n_goal[group] > 0 and knows(w, group):
        wanted = balanced(w.comp_sum[group], w.comm_sum[group])
    return clipped(wanted, room_of(s, w, group))


@kernel
def machines_opened(s, w, job, machines):
    """Machines of a new group, by the second part of an action; 0 or less: `default_opened_machines`."""
    asked = min(machines, w.machine_choices)
    return default_opened_machines(s, w, job) if asked <= 0 else clipped(asked, w.available)


@kernel
def machines_given(s, w, group, machines):
    """Machines of a group, by the second part of an action; 0 or less: `default_group_machines`."""
    asked = min(machines, w.machine_choices)
    return default_group_machines(s, w, group) if asked <= 0 else clipped(asked, room_of(s, w, group))


@kernel
def ratio_asked(value):
    """The spill ratio of a value of the third part."""
    return CLIMBS if value <= 0 else (min(value, SPILLS - 1) - 1) / 10.0


@kernel
def ratio_taken(s, w, job, group, machines, value):
    """The spill ratio of a job: the one asked for, or the next larger for which the group's memory suffices.

    Jobs with climbing ratios give way to it: they can spill input and then model.
    """
    value = min(value, w.spill_choices - 1)
    ratio = ratio_asked(value)
    if ratio < 0.0 or ratio >= 1.0 or job == w.expert_job:
        return ratio
    room = machines * s.ram_bytes / s.expansion
    rank = next_member(s.running_low, s.running_mid, s.running_top, 0) if group != NONE else -1
    while rank >= 0:
        other = s.job_at_rank[rank]
        if other != job and s.goal[other] == group and 0.0 <= s.alpha_asked[other] < 1.0:
            room -= (1.0 - s.alpha_asked[other]) * s.input_bytes[other] + s.model_bytes[other]
        rank = next_member(s.running_low, s.running_mid, s.running_top, rank + 1)
    while ratio < 1.0 and (1.0 - ratio) * s.input_bytes[job] + s.model_bytes[job] > room:
        value += 1
        ratio = ratio_asked(value)
    return ratio


@kernel
def carry_out(s, w, m, action):
    """Modify `s`: carry out a legal candidate but 0; True if other numbers were taken than asked for."""
    machines, spill = action[1], action[2]
    what, job, group, other = group_choice(s, w, action[0])
    if what == SIZE:
        taken = machines_given(s, w, group, machines)
        set_machines(s, group, taken)
        return machines < 0 or (machines > 0 and taken != machines)
    if what == OPEN:
        return _open(s, w, job, machines, spill)
    if what == JOIN:
        return _join(s, w, job, group, spill)
    if what == PAUSE:
        pause(s, job)
        return False
    if what == SWAP:
        adjusted = _join(s, w, other, group, spill)
        pause(s, job)
        return adjusted
    ratio = ratio_taken(s, w, job, group, s.group_machines[group], spill)
    set_spill(s, job, ratio)
    return _is_other(ratio, spill)


@kernel
def _open(s, w, job, machines, spill):
    taken = machines_opened(s, w, job, machines)
    ratio = ratio_taken(s, w, job, NONE, taken, spill)
    open_for(s, job, taken)
    is_adjusted = machines < 0 or (machines > 0 and taken != machines)
    return _spill(s, job, ratio, spill) or is_adjusted


@kernel
def _join(s, w, job, group, spill):
    ratio = ratio_taken(s, w, job, group, s.group_machines[group], spill)
    join(s, job, group)
    return _spill(s, job, ratio, spill)


@kernel
def _spill(s, job, ratio, asked):
    """Modify `s`: set a job's spill ratio, if there are any; True if it is not the one asked for."""
    if not s.spills:
        return False
    if s.alpha_asked[job] != ratio:
        set_spill(s, job, ratio)
    return _is_other(ratio, asked)


@kernel
def _is_other(ratio, asked):
    return asked < 0 or asked >= SPILLS or ratio != ratio_asked(asked)
