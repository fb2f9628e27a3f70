"""The clock of job groups: an instant is closed, time goes on to the next one at which a decision is due."""

import math

from ...kernels.agenda import schedule_event
from ...kernels.codes import DECIDE, DOWN, FINISHED, HORIZON, STALLED, WAITING
from ...kernels.jit import kernel
from ...kernels.random import exponential
from ..codes import CPU_QUEUE, LOADING, NET_QUEUE, NONE
from .life import (
    bring_to,
    change_place,
    dissolve,
    end_load,
    enter,
    machine_fails,
    mark,
    plan,
    rescale,
    run_group,
    set_status,
    settle,
)
from .passing import pass_time


@kernel
def next_event_s(s):
    """Time of the next event; infinity if none is left to come."""
    time_s = s.event_key[0] if s.event_count > 0 else math.inf
    if s.next_arrival < s.n_jobs:
        time_s = min(time_s, s.arrival_s[s.next_arrival])
    return time_s


@kernel
def something_comes(s):
    """True if an event is still to come but machines' that fail or are repaired, or one of these that may help."""
    if s.next_arrival < s.n_jobs or s.n_executed > 0 or s.n_loading > 0 or s.n_moved > 0 or s.n_touched > 0:
        return True
    return s.down_machines > 0


@kernel
def commit(s):
    """Modify `s`: the decisions of an instant are all made: jobs change places, groups have other machines."""
    for place in range(s.n_touched):
        group = s.touched[place]
        if s.is_group[group] and s.n_goal[group] == 0:
            dissolve(s, group)
    for i in range(s.n_moved):
        job = s.moved[i]
        s.is_moved[job] = 0
        _move(s, job)
        s.goal_before[job] = s.goal[job]
    s.n_moved = 0
    place = 0
    while place < s.n_touched:  # to settle one may touch others
        group = s.touched[place]
        s.is_touched[group] = 0
        if s.is_group[group]:
            _settle_decided(s, group)
        place += 1
    s.n_touched = 0


@kernel
def _move(s, job):
    """Modify `s`: a job whose goal was changed goes there, if no iteration of its keeps it."""
    group = s.at[job]
    if s.goal[job] == group:
        return
    if group == NONE:
        enter(s, job, s.goal[job])
        return
    bring_to(s, group, s.now_s)
    if s.at[job] != group:  # its iteration was over at this very instant
        return
    is_queued = s.place[job] == CPU_QUEUE or s.place[job] == NET_QUEUE
    if s.place[job] == LOADING or (is_queued and s.part[job] == 0):
        change_place(s, group, job)
    mark(s, group)


@kernel
def _settle_decided(s, group):
    """Modify `s`: at the end of an instant: a group that nobody is to be in goes, others take over what was decided."""
    if s.n_goal[group] == 0:
        dissolve(s, group)
        return
    bring_to(s, group, s.now_s)
    before, machines = s.machines_before[group], s.group_machines[group]
    s.machines_before[group] = machines
    if s.n_members[group] == 0:
        plan(s, group)
        return
    if before != machines and before > 0:
        rescale(s, group, 1.0, before)
        job = s.first_member[group]
        while job != NONE:
            s.owed_s[job] += s.move_s * abs(machines - before) / max(machines, before)
            job = s.next_member[job]
    settle(s, group)


@kernel
def advance(s):
    """Modify `s`: close this instant and run to the next decision point; returns why it stopped (codes.DECIDE, ...)."""
    s.log_count = 0
    s.log_gpus = 0
    commit(s)
    s.happened = 0
    while s.done < s.n_jobs:
        time_s = next_event_s(s)
        if s.happened and time_s > s.now_s and s.waiting + s.running > 0:
            s.instants += 1
            return DECIDE
        if time_s > s.horizon_s:
            _reach_horizon(s)
            return HORIZON
        if time_s == math.inf or not something_comes(s):
            return STALLED
        if s.next_arrival < s.n_jobs and s.arrival_s[s.next_arrival] <= time_s:
            pass_time(s, s.arrival_s[s.next_arrival])
            _arrive(s, s.next_arrival)
            s.next_arrival += 1
        else:
            _event(s, s.event_item[0], time_s)
        s.events += 1
    return FINISHED


@kernel
def _event(s, item, time_s):
    """Modify `s`: the next event of the heap."""
    if item < s.first_group_event:
        pass_time(s, time_s)
        end_load(s, item)
    elif item < s.first_machine_event:
        schedule_event(s, item, math.inf)
        run_group(s, item - s.first_group_event, min(next_event_s(s), s.horizon_s))
    else:
        pass_time(s, time_s)
        _machine_event(s, item - s.first_machine_event)


@kernel
def _arrive(s, job):
    """Modify `s`: the job enters the system."""
    s.waiting_since_s[job] = s.now_s
    s.active_at_arrival[job] = s.active_integral
    s.slowdown_rate += 1.0 / (s.iterations[job] * s.base_iteration_s[job])
    set_status(s, job, WAITING)
    s.happened = 1


@kernel
def _reach_horizon(s):
    """Modify `s`: the run is cut off at its horizon."""
    for group in range(s.is_group.size):
        if s.is_group[group]:
            bring_to(s, group, s.horizon_s)
    pass_time(s, s.horizon_s)


@kernel
def _machine_event(s, machine):
    """Modify `s`: the machine fails or is up again."""
    count = s.machine_failures[machine]
    item = s.first_machine_event + machine
    s.happened = 1
    if s.machine_group[machine] == DOWN:
        s.machine_group[machine] = NONE
        s.down_machines -= 1
        s.free_machines += 1
        schedule_event(s, item, s.now_s + exponential(s.seed, -1 - machine, 2 * count, s.mtbf_s))
        return
    s.machine_failures[machine] = count + 1
    s.failures += 1
    schedule_event(s, item, s.now_s + exponential(s.seed, -1 - machine, 2 * count + 1, s.mttr_s))
    machine_fails(s, machine)


@kernel
def lay_failures(s):
    """Modify `s`: the first failure of every machine, if machines fail."""
    if s.mtbf_s > 0.0:
        for machine in range(s.n_machines):
            first_s = s.start_s + exponential(s.seed, -1 - machine, 0, s.mtbf_s)
            schedule_event(s, s.first_machine_event + machine, first_s)
