"""Periodic groups: once all subtasks have ended a period after the time before, they always will.

Subtasks that take turns are a max-plus linear system: their ends follow from their last ends alone, and after some
rounds repeat exactly. From then on a group leaps over whole periods, to the next event. Only rounding changes.
"""

import math

from ...compiler.jit import kernel
from ..group_codes import NONE, SUBTASKS
from .subtasks import last_part

SAME = 1e-9  # of a period
ROUNDS = 3  # since the group last changed: two whole periods


@kernel
def note_period_end(s, group, job):
    """Modify `s`: a job's iteration has ended: if it is the first member's, look whether everything recurs."""
    if job != s.first_member[group] or s.period_s[group] > 0.0 or s.jitter > 0.0 or s.execution != SUBTASKS:
        return
    if s.trace_on:
        return
    last = last_part(s)
    period_s = s.part_step_s[job, last]
    disk_step_s = s.disk_free_s[group] - s.disk_before_s[group]
    s.disk_before_s[group] = s.disk_free_s[group]
    loads = False
    member = job
    while member != NONE:
        if s.rounds[member] < ROUNDS or s.goal[member] != group or s.owed_s[member] > 0.0:
            return
        loads |= s.disk_s[member] > 0.0
        for part in range(last + 1):
            if abs(s.part_step_s[member, part] - period_s) > SAME * period_s:
                return
            if s.part_end_s[member, part] < s.part_end_s[job, last] - period_s * (1.0 + SAME):
                return
        member = s.next_member[member]
    if loads and abs(disk_step_s - period_s) > SAME * period_s:
        return
    s.period_s[group] = period_s


@kernel
def visible_s(s, group):
    """When something else happens in a steady group: a job ends, or its metrics are known."""
    last = last_part(s)
    found_s = math.inf
    job = s.first_member[group]
    while job != NONE:
        count = s.iterations_left[job]
        if 0 < s.profile_left[job] < count:
            count = float(s.profile_left[job])
        found_s = min(found_s, s.part_end_s[job, last] + count * s.period_s[group])
        job = s.next_member[job]
    return found_s


@kernel
def leap(s, group, until_s):
    """Modify `s`: a steady group goes on by whole periods, not past `until_s` and not past what `visible_s` says."""
    period_s = s.period_s[group]
    count = math.floor((until_s - s.at_s[group]) / period_s)
    members = 0
    job = s.first_member[group]
    while job != NONE:
        count = min(count, s.iterations_left[job] - 1.0)
        if s.profile_left[job] > 0:
            count = min(count, float(s.profile_left[job] - 1))
        members += 1
        job = s.next_member[job]
    if count < 1.0:
        return
    shift_s = count * period_s
    parts = last_part(s) + 1
    job = s.first_member[group]
    while job != NONE:
        _repeat(s, group, job, count, shift_s, parts)
        job = s.next_member[job]
    s.at_s[group] += shift_s
    s.cpu_end_s[group] += shift_s
    s.net_end_s[group] += shift_s
    s.second_end_s[group] += shift_s
    s.disk_free_s[group] += shift_s
    s.disk_before_s[group] += shift_s
    s.subtasks += int(count) * members * parts
    s.leapt += int(count) * members * parts


@kernel
def _repeat(s, group, job, count, shift_s, parts):
    machines = s.group_machines[group]
    work = s.comp_machine_s[job]
    for part in range(parts):
        s.part_end_s[job, part] += shift_s
    s.part_begin_s[job] += shift_s
    s.loaded_s[job] += shift_s
    s.work_end_s[job] += shift_s
    s.iterations_left[job] -= count
    if s.profile_left[job] > 0:
        s.profile_left[job] -= int(count)
    s.cpu_busy_s += count * work * s.group_gc[group]
    s.comp_done_s += count * work
    s.net_busy_s += count * s.comm_s[job] * machines
    s.disk_bytes += count * s.disk_s[job] * s.disk_bandwidth * machines
    s.exposed_s[job] += shift_s - count * work / machines
