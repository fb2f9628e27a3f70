"""The second and third part of an action about groups: a number of machines, and the spill ratio of a job.

The second: 0: those on which COMP takes as long as COMM, or as near as can be. The third: 0: found by climbing, v:
(v - 1) / 10.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import CLIMBS, NONE
from ...simulator.groups.kernels.decide import set_spill
from ...simulator.numerics.bitset import next_member
from .group_sums import balanced, knows

MOST_MACHINES = 256  # that can be asked for
SPILLS = 12  # values of the third part, at most: climbing, then 0, .1, ..., 1
TENTHS = 10.0


@kernel
def room_of(s, w, group):
    """Machines that a group could have: its own and free ones."""
    return w.available + (s.group_machines[group] if s.n_goal[group] > 0 else 0)


@kernel
def wanted_by_group(s, w, group):
    """Machines of a group without a number in the action: its balanced number, or its present one."""
    if s.n_goal[group] > 0 and knows(w, group):
        return balanced(w.comp_sum[group], w.comm_sum[group])
    return s.group_machines[group]


@kernel
def machines_taken(w, asked, wanted, most):
    """Machines of a group, 1 to `most`: by the second part of an action; 0 or less: `wanted`."""
    asked = min(asked, w.machine_choices)
    return max(1, min(asked if asked > 0 else wanted, most))


@kernel
def ratio_asked(value):
    """The spill ratio of a value of the third part."""
    return CLIMBS if value <= 0 else (min(value, SPILLS - 1) - 1) / TENTHS


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
def are_other(taken, asked):
    """Whether another number of machines was taken than asked for."""
    return asked < 0 or (asked > 0 and taken != asked)


@kernel
def is_other(ratio, asked):
    """Whether another spill ratio was taken than asked for."""
    return asked < 0 or asked >= SPILLS or ratio != ratio_asked(asked)


@kernel
def spill(s, job, ratio, asked):
    """Modify `s`: set a job's spill ratio, if there are any; True if it is not the one asked for."""
    if not s.spills:
        return False
    if s.alpha_asked[job] != ratio:
        set_spill(s, job, ratio)
    return is_other(ratio, asked)


@kernel
def write_parts(w, mask, at):
    """Write the mask of both parts from `at` on: the union over legal candidates."""
    most = min(w.most_machines, w.machine_choices)
    for machines in range(w.machine_choices + 1):
        mask[at + machines] = machines <= most
    at += w.machine_choices + 1
    for value in range(w.spill_choices):
        mask[at + value] = value == 0 or w.may_spill > 0


def value_of(ratio: float | None) -> int:
    """The value of the third part that is nearest to a spill ratio; None, or less than 0: climbing."""
    return 0 if ratio is None or ratio < 0.0 else 1 + round(ratio * TENTHS)
