"""Decisions about groups, as the record takes them; the caller has checked that they can be carried out."""

from ...base.codes import ASSIGN, MACHINES, PREEMPT, SPILL
from ...compiler.jit import kernel
from ..group_codes import NONE
from .group_life import bring_to, give_machines, mark, open_group, reclaim, set_goal
from .group_log import note


@kernel
def available_machines(s):
    """Machines that are free, or in groups that no job is to be in."""
    found = s.free_machines
    for group in range(s.group_end):
        if s.is_group[group] and s.n_goal[group] == 0:
            found += s.group_machines[group]
    return found


@kernel
def join(s, job, group):
    """Modify `s`: a job is to be in a group that there is."""
    set_goal(s, job, group)
    s.decisions += 1
    note(s, ASSIGN, job, group, 0, 0.0)


@kernel
def open_for(s, job, machines):
    """Modify `s`: a job is to be in a new group of so many machines; returns the group."""
    reclaim(s, s.n_machines if s.n_groups == s.is_group.size else machines, NONE)
    group = open_group(s, machines)
    set_goal(s, job, group)
    s.decisions += 1
    note(s, ASSIGN, job, group, machines, 0.0)
    return group


@kernel
def pause(s, job):
    """Modify `s`: a job is to wait, once its iteration is over."""
    s.decisions += 1
    note(s, PREEMPT, job, s.goal[job], 0, 0.0)
    set_goal(s, job, NONE)


@kernel
def set_machines(s, group, machines):
    """Modify `s`: a group has so many machines from now on."""
    bring_to(s, group, s.now_s)
    missing = machines - s.group_machines[group]
    mark(s, group)
    reclaim(s, missing, group)
    give_machines(s, group, machines)
    s.decisions += 1
    s.sized_at[group] = s.instants
    note(s, MACHINES, NONE, group, machines, 0.0)


@kernel
def set_spill(s, job, ratio):
    """Modify `s`: a job keeps this share of its input on disk; negative: it finds it by climbing."""
    s.alpha_asked[job] = ratio
    s.spilt_at[job] = s.instants
    if s.goal[job] != NONE:
        mark(s, s.goal[job])
    s.decisions += 1
    note(s, SPILL, job, s.goal[job], 0, ratio)
