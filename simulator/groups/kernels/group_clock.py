"""The clock of job groups: an instant is closed, time goes on to the next one at which a decision is due."""

import math

from ...base.codes import DECIDE, DOWN, ENDLESS, FINISHED, HORIZON, STALLED, WAITING
from ...compiler.jit import kernel
from ...events.clock import next_event_s
from ...numerics.heap import schedule_event
from ...numerics.random import exponential, seed_of
from ...running.endless_runs import is_endless, renew
from ..group_codes import CPU_QUEUE, LOADING, NAIVE, NET_QUEUE, NONE
from .group_life import (
    PUT_OUT,
    bring_to,
    catch_up,
    change_place,
    count_leaving,
    dissolve,
    end_load,
    enter,
    machine_fails,
    mark,
    plan,
    refresh_group,
    rescale,
    resize_comm,
    run_group,
    set_status,
)
from .passing import pass_time


@kernel
def something_comes(s):
    """True if an event is still to come but machines' that fail or are repaired, or one of these that may help."""
    if s.next_arrival < s.n_jobs or s.n_executed > 0 or s.n_loading > 0 or s.n_dirty_jobs > 0 or s.n_dirty_groups > 0:
        return True
    return s.down_machines > 0


@kernel
def commit(s):
    """Modify `s`: the decisions of an instant are all made: jobs change places, groups have other machines."""
    for place in range(s.n_dirty_groups):
        group = s.dirty_groups[place]
        if s.is_group[group] and s.n_goal[group] == 0:
            dissolve(s, group)
    while s.n_dirty_jobs > 0 or s.n_dirty_groups > 0:  # to update one may touch others
        if s.n_dirty_jobs > 0:
            s.n_dirty_jobs -= 1
            _move(s, s.dirty_jobs[s.n_dirty_jobs])
        else:
            s.n_dirty_groups -= 1
            group = s.dirty_groups[s.n_dirty_groups]
            s.is_dirty_group[group] = 0
            if s.is_group[group]:
                _apply_decided(s, group)


@kernel
def _move(s, job):
    """Modify `s`: a job whose goal was changed goes there, if no iteration of its keeps it."""
    if s.is_dirty_job[job] == PUT_OUT:
        count_leaving(s, job)
    s.is_dirty_job[job] = 0
    group = s.at[job]
    if s.goal[job] == group:
        return
    if group == NONE:
        enter(s, job, s.goal[job])
        return
    bring_to(s, group, s.now_s)
    if s.at[job] != group:  # its iteration was over at this very instant
        return
    if s.place[job] == LOADING or _has_begun_nothing(s, job):
        change_place(s, group, job)
    mark(s, group)


@kernel
def _has_begun_nothing(s, job):
    """True if a member's iteration is still to begin: it queues for it, or begins it at this very instant."""
    queues = s.execution != NAIVE and (s.place[job] == CPU_QUEUE or s.place[job] == NET_QUEUE)
    return s.part[job] == 0 and (queues or s.part_begin_s[job] >= s.now_s)


@kernel
def _apply_decided(s, group):
    """Modify `s`: at the end of an instant: a group that no job is to be in goes, others take over what was decided."""
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
        resize_comm(s, group, before)
        job = s.first_member[group]
        while job != NONE:
            s.owed_s[job] += s.move_s * abs(machines - before) / max(machines, before)
            job = s.next_member[job]
    refresh_group(s, group)


@kernel
def advance(s):
    """Modify `s`: close this instant and run to the next decision point; returns why it stopped (codes.DECIDE, ...)."""
    s.log_count = 0
    s.log_gpus = 0
    s.happened = 0
    commit(s)
    while s.done < s.n_jobs:
        if s.events >= s.endless_check_at and is_endless(s):
            return ENDLESS
        time_s = next_event_s(s)
        if s.happened and time_s > s.now_s:
            bring_all(s)
            if s.waiting + s.running > 0:
                s.instants += 1
                return DECIDE
            s.happened = 0
            commit(s)  # no decider is there; machines of groups without jobs are free
            continue
        if time_s > s.horizon_s:
            _reach_horizon(s)
            return HORIZON
        if time_s == math.inf or not something_comes(s):
            return STALLED
        if s.next_arrival < s.n_jobs and s.arrival_s[s.next_arrival] <= time_s:
            pass_time(s, s.arrival_s[s.next_arrival])
            _arrive(s, s.next_arrival)
            s.next_arrival += 1
            renew(s)
        else:
            _event(s, s.event_item[0], time_s)
        s.events += 1
    return FINISHED


@kernel
def _event(s, item, time_s):
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
    s.waiting_since_s[job] = s.now_s
    s.slowdown_rate += 1.0 / (s.iterations[job] * s.base_iteration_s[job])
    set_status(s, job, WAITING)
    s.happened = 1


@kernel
def _reach_horizon(s):
    pass_time(s, s.horizon_s)
    bring_all(s)


@kernel
def bring_all(s):
    """Modify `s`: execute all groups until now: readers see what is left of each job."""
    left = s.n_groups
    group = 0
    while left > 0:
        if s.is_group[group]:
            catch_up(s, group, s.now_s)
            left -= 1
        group += 1


@kernel
def _machine_event(s, machine):
    count = s.machine_failures[machine]
    item = s.first_machine_event + machine
    s.happened = 1
    if s.machine_group[machine] == DOWN:
        s.machine_group[machine] = NONE
        s.down_machines -= 1
        s.free_machines += 1
        schedule_event(s, item, s.now_s + exponential(seed_of(s), -1 - machine, 2 * count, s.mtbf_s))
        return
    s.machine_failures[machine] = count + 1
    s.failures += 1
    schedule_event(s, item, s.now_s + exponential(seed_of(s), -1 - machine, 2 * count + 1, s.mttr_s))
    machine_fails(s, machine)


@kernel
def draw_failures(s):
    """Modify `s`: the first failure of every machine, if machines fail."""
    if s.mtbf_s > 0.0:
        for machine in range(s.n_machines):
            first_s = s.start_s + exponential(seed_of(s), -1 - machine, 0, s.mtbf_s)
            schedule_event(s, s.first_machine_event + machine, first_s)


@kernel
def look_ahead(s, group, until_s):
    """Modify `s`, a copy: execute the group until then and remember its subtasks. Loading jobs join, others do not."""
    commit(s)
    if not s.is_group[group]:
        return
    bring_to(s, group, s.now_s)
    s.period_s[group] = 0.0
    s.trace_on, s.trace_count = 1, 0
    joins_s = _loaded_next_s(s, group, until_s)
    while joins_s <= until_s:
        pass_time(s, joins_s)
        for job in range(s.n_jobs):
            if s.at[job] == group and s.place[job] == LOADING and s.event_key[s.event_position[job]] <= joins_s:
                end_load(s, job)
        joins_s = _loaded_next_s(s, group, until_s)
    bring_to(s, group, until_s)


@kernel
def _loaded_next_s(s, group, until_s):
    found_s = math.inf
    for job in range(s.n_jobs):
        if s.at[job] == group and s.place[job] == LOADING and s.event_position[job] >= 0:
            found_s = min(found_s, s.event_key[s.event_position[job]])
    return found_s if found_s <= until_s else math.inf
