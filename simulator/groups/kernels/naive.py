"""Naive co-location (paper harmony, Sec. II-B, Figure 5a): the jobs of a group share each resource as they come.

k COMP subtasks at once each move at 1/k of the speed of one alone, less a loss by contention; so do COMM subtasks. Only
the loss of the whole is published (Sec. V-C); see group_config.py.
"""

import math

from ...compiler.jit import kernel
from ..group_codes import NONE, ON_CPU, ON_NET
from .subtasks import book_comm, book_comp, draw_comm, draw_comp, is_comp


@kernel
def begin_part(s, group, job, now_s):
    """Modify `s`: the present subtask of a job begins, beside whatever there is."""
    if is_comp(s, s.part[job]):
        s.place[job] = ON_CPU
        s.part_left[job] = draw_comp(s, group, job, now_s)
    else:
        s.place[job] = ON_NET
        draw_comm(s, group, job, now_s)
        s.work_end_s[job] = s.part_left[job]  # its whole length, to be booked


@kernel
def _rate(s, count):
    return 1.0 if count <= 1 else (1.0 - s.loss) / count


@kernel
def _rates(s, group):
    """How fast a subtask of the group goes on CPUs and on the network, of what one alone does there."""
    on_cpu, on_net = 0, 0
    job = s.first_member[group]
    while job != NONE:
        on_cpu += s.place[job] == ON_CPU
        on_net += s.place[job] == ON_NET
        job = s.next_member[job]
    return _rate(s, on_cpu), _rate(s, on_net)


@kernel
def naive_end_s(s, group):
    """When a subtask of the group ends next; infinity if none is executed."""
    cpu_rate, net_rate = _rates(s, group)
    end_s = math.inf
    job = s.first_member[group]
    while job != NONE:
        rate = cpu_rate if s.place[job] == ON_CPU else net_rate
        end_s = min(end_s, s.at_s[group] + s.part_left[job] / rate)
        job = s.next_member[job]
    return end_s


@kernel
def move_on(s, group, now_s):
    """Modify `s`: the subtasks of the group have gone on until `now_s`; those that end then have nothing left."""
    elapsed = now_s - s.at_s[group]
    cpu_rate, net_rate = _rates(s, group)
    job = s.first_member[group]
    while job != NONE:
        rate = cpu_rate if s.place[job] == ON_CPU else net_rate
        ends = s.at_s[group] + s.part_left[job] / rate <= now_s
        s.part_left[job] = 0.0 if ends else s.part_left[job] - elapsed * rate
        job = s.next_member[job]
    s.at_s[group] = now_s


@kernel
def take_done(s, group, now_s):
    """Modify `s`: the first member whose subtask has nothing left, booked; NONE if there is none."""
    job = s.first_member[group]
    while job != NONE and s.part_left[job] > 0.0:
        job = s.next_member[job]
    if job == NONE:
        return job
    if s.place[job] == ON_CPU:
        book_comp(s, group, job, now_s)
    else:
        s.part_left[job] = s.work_end_s[job]
        book_comm(s, job)
    return job
