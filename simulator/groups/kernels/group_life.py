"""Jobs and groups: entering, leaving, ending, opening, dissolving, getting machines.

A job has a present group (`at`) and a future one (`goal`). Decisions set goals; where they differ, the job leaves when
its iteration is over (paper harmony, Sec. IV-B4), loads, and enters. So decisions at one instant are one transaction.
"""

import math

from ...base.codes import DONE, DOWN, JOINED, LEFT, RUNNING, SIZED, WAITING
from ...compiler.jit import kernel
from ...numerics.bitset import exclude, include
from ...numerics.heap import schedule_event
from ...running.endless_runs import renew
from ..group_codes import CPU_QUEUE, LOADING, NAIVE, NET_QUEUE, NONE, ON_NET, OUT
from .group_log import note
from .linked_lists import append, take_out
from .memory_kernels import balance_memory
from .naive import begin_part, move_on, naive_end_s, take_done
from .passing import pass_time
from .steady import leap, note_period_end, visible_s
from .subtasks import dispatch, end_part, enqueue, last_part, next_end_s, second_rate, take_ended

SAFE = 1.0 - 1e-9  # of a bound that rounding must not pass
# Why a job is in `dirty_jobs`: its goal was changed, or its group is no more while it is to be elsewhere.
MOVED, PUT_OUT = 1, 2


@kernel
def set_status(s, job, status):
    """Modify `s`: a job waits, is to be in a group, or has ended; counts and windows follow."""
    rank = s.rank[job]
    if s.status[job] == WAITING:
        s.waiting -= 1
        exclude(s.window_low, s.window_mid, s.window_top, rank)
    elif s.status[job] == RUNNING:
        s.running -= 1
        exclude(s.running_low, s.running_mid, s.running_top, rank)
    s.status[job] = status
    if status == WAITING:
        s.waiting += 1
        include(s.window_low, s.window_mid, s.window_top, rank)
    elif status == RUNNING:
        s.running += 1
        include(s.running_low, s.running_mid, s.running_top, rank)


@kernel
def set_goal(s, job, group):
    """Modify `s`: a job is to be in a group, or to wait (NONE)."""
    if s.goal[job] == group:
        return
    mark_job_dirty(s, job, MOVED)
    if s.goal[job] != NONE:
        s.n_goal[s.goal[job]] -= 1
        mark(s, s.goal[job])
    s.goal[job] = group
    if group != NONE:
        s.n_goal[group] += 1
        mark(s, group)
    set_status(s, job, WAITING if group == NONE else RUNNING)


@kernel
def mark_job_dirty(s, job, how):
    """Modify `s`: the job is looked at when the instant ends: it is MOVED, or even PUT_OUT of its group already."""
    if s.is_dirty_job[job] == 0:
        s.dirty_jobs[s.n_dirty_jobs] = job
        s.n_dirty_jobs += 1
    s.is_dirty_job[job] = max(s.is_dirty_job[job], how)


@kernel
def mark(s, group):
    """Modify `s`: the group is looked at when the instant ends."""
    if s.is_dirty_group[group] == 0:
        s.is_dirty_group[group] = 1
        s.dirty_groups[s.n_dirty_groups] = group
        s.n_dirty_groups += 1


@kernel
def group_item(s, group):
    """The id of a group in the heap of events."""
    return s.first_group_event + group


@kernel
def open_group(s, machines):
    """Modify `s`: a group without jobs, on so many free machines; returns it, the first that there is not."""
    group = 0
    while s.is_group[group]:
        group += 1
    s.is_group[group] = 1
    s.n_groups += 1
    s.group_end = max(s.group_end, group + 1)
    s.group_machines[group] = 0
    s.machines_before[group] = 0
    s.sized_at[group] = 0
    s.n_at[group] = s.n_goal[group] = s.n_members[group] = 0
    s.first_member[group] = s.last_member[group] = NONE
    s.cpu_job[group] = s.net_job[group] = s.second_job[group] = NONE
    s.cpu_head[group] = s.cpu_tail[group] = s.net_head[group] = s.net_tail[group] = NONE
    s.at_s[group] = s.now_s
    s.period_s[group] = 0.0
    s.disk_free_s[group] = s.disk_before_s[group] = 0.0
    s.group_gc[group] = 1.0
    s.group_occupancy[group] = 0.0
    give_machines(s, group, machines)
    mark(s, group)
    return group


@kernel
def give_machines(s, group, machines):
    """Modify `s`: the group has so many machines from now on: the first free ones are added, its last ones go."""
    missing = machines - s.group_machines[group]
    s.group_machines[group] = machines
    s.free_machines -= missing
    note(s, SIZED, NONE, group, machines, 0.0)
    machine = 0
    while missing > 0:
        if s.machine_group[machine] == NONE:
            s.machine_group[machine] = group
            missing -= 1
        machine += 1
    machine = s.n_machines - 1
    while missing < 0:
        if s.machine_group[machine] == group:
            s.machine_group[machine] = NONE
            missing += 1
        machine -= 1


@kernel
def dissolve(s, group):
    """Modify `s`: there is no such group any more; a job still in it leaves at once, in mid-iteration if need be."""
    bring_to(s, group, s.now_s)
    for job in range(s.n_jobs if s.n_at[group] > 0 else 0):
        if s.at[job] == group:
            put_out(s, job)
    give_machines(s, group, 0)
    s.is_group[group] = 0
    s.n_groups -= 1
    schedule_event(s, group_item(s, group), math.inf)


@kernel
def reclaim(s, machines, spared):
    """Modify `s`: groups that no job is to be in, but for one, go until so many machines are free, if that can be."""
    for group in range(s.group_end):
        if s.free_machines >= machines:
            return
        if s.is_group[group] and s.n_goal[group] == 0 and group != spared:
            dissolve(s, group)


@kernel
def enter(s, job, group):
    """Modify `s`: a job that is in no group begins to load in this one."""
    s.at[job] = group
    s.n_at[group] += 1
    s.queued_s[job] += s.now_s - s.waiting_since_s[job]
    if s.starts[job] == 0:
        s.first_start_s[job] = s.now_s
    s.starts[job] += 1
    s.moves += 1
    load(s, job, s.move_s)


@kernel
def load(s, job, seconds):
    """Modify `s`: a job loads its input and its model; then it is executed."""
    s.place[job] = LOADING
    s.n_loading += 1
    s.restore_s[job] += seconds
    s.owed_s[job] = 0.0
    schedule_event(s, job, s.now_s + seconds)


@kernel
def end_load(s, job):
    """Modify `s`: a job has loaded: its first subtask enters its queue. It may be too much for the memory."""
    group = s.at[job]
    if s.goal[job] != group:
        change_place(s, group, job)
        return
    bring_to(s, group, s.now_s)
    s.n_loading -= 1
    schedule_event(s, job, math.inf)
    append(s.first_member, s.last_member, s.next_member, group, job)
    s.n_members[group] += 1
    s.n_executed += 1
    note(s, JOINED, job, group, 0, 0.0)
    s.part[job] = 0
    s.loaded_s[job] = s.now_s
    for part in range(last_part(s) + 1):
        s.part_end_s[job, part] = s.now_s
    begin(s, group, job, s.now_s)
    refresh_group(s, group)


@kernel
def begin(s, group, job, now_s):
    """Modify `s`: the present subtask of a member begins, or queues."""
    if s.execution == NAIVE:
        begin_part(s, group, job, now_s)
    else:
        enqueue(s, group, job)


@kernel
def quit_execution(s, job):
    """Modify `s`: a job that loads or is executed does so no more; what it had begun of an iteration is lost."""
    group = s.at[job]
    if s.place[job] == LOADING:
        s.n_loading -= 1
        left_s = s.event_key[s.event_position[job]] - s.now_s if s.event_position[job] >= 0 else 0.0
        s.restore_s[job] -= left_s
        schedule_event(s, job, math.inf)
    elif s.place[job] != OUT:
        take_out(s.first_member, s.last_member, s.next_member, group, job)
        s.n_members[group] -= 1
        s.n_executed -= 1
        note(s, LEFT, job, group, 0, 0.0)
        if s.execution != NAIVE:
            _leave_resource(s, group, job)
    s.place[job] = OUT
    s.part[job] = 0


@kernel
def _leave_resource(s, group, job):
    if s.place[job] == CPU_QUEUE:
        take_out(s.cpu_head, s.cpu_tail, s.queue_next, group, job)
    elif s.place[job] == NET_QUEUE:
        take_out(s.net_head, s.net_tail, s.queue_next, group, job)
    elif s.cpu_job[group] == job:
        s.cpu_job[group] = NONE
    elif s.net_job[group] == job:
        s.net_job[group] = NONE
    elif s.second_job[group] == job:
        s.second_job[group] = NONE


@kernel
def go_out(s, job):
    """Modify `s`: a job leaves the group that it is in, at this instant."""
    group = s.at[job]
    quit_execution(s, job)
    s.at[job] = NONE
    s.n_at[group] -= 1
    s.waiting_since_s[job] = s.now_s
    s.saved_left[job] = s.iterations_left[job]


@kernel
def put_out(s, job):
    """Modify `s`: a job leaves its group, which goes or fails; where else it is to be it enters as the instant ends."""
    go_out(s, job)
    mark_job_dirty(s, job, PUT_OUT)


@kernel
def count_leaving(s, job):
    """Modify `s`: a job has left a group because a decision says so."""
    if s.goal[job] == NONE:
        s.preempted[job] += 1
        s.preemptions += 1
    else:
        s.migrated[job] += 1
        s.migrations += 1


@kernel
def undo_to_checkpoint(s, job):
    """Modify `s`: what a job has done since its last checkpoint is lost: one at each epoch, one whenever it stopped."""
    done = s.iterations[job] - s.iterations_left[job]
    epochs = done // s.epoch_iterations[job] * s.epoch_iterations[job]
    saved = min(s.iterations[job] - epochs, s.saved_left[job])
    lost = (saved - s.iterations_left[job]) * s.comp_machine_s[job]
    s.comp_done_s -= lost
    s.comp_lost_s += lost
    s.iterations_left[job] = saved
    s.saved_left[job] = saved


@kernel
def end_job(s, job):
    """Modify `s`: a job has done all its iterations."""
    goal = s.goal[job]
    if goal != NONE:
        s.n_goal[goal] -= 1
        s.goal[job] = NONE
        mark(s, goal)
    set_status(s, job, DONE)
    go_out(s, job)
    s.finish_s[job] = s.now_s
    s.slowdown_rate -= 1.0 / (s.iterations[job] * s.base_iteration_s[job])
    s.done += 1
    renew(s)


@kernel
def fail_group(s, group):
    """Modify `s`: the group has run out of memory (Sec. II-B, Figure 4): its jobs wait again, from checkpoints."""
    s.out_of_memory += 1
    s.happened = 1
    if s.n_crowds + s.n_at[group] > s.crowd.size:
        s.n_crowds = 0  # whole ones are remembered, or none
    for job in range(s.n_jobs):
        if s.at[job] == group:
            s.crowd[s.n_crowds] = s.out_of_memory
            s.crowd_job[s.n_crowds] = job
            s.n_crowds += 1
            undo_to_checkpoint(s, job)
            _lose_group(s, group, job)


@kernel
def refresh_group(s, group):
    """Modify `s`: memory and running COMP after a change of members, machines or speeds; it may lack memory."""
    gc_before = s.group_gc[group]
    if balance_memory(s, group):
        fail_group(s, group)
        plan(s, group)
        return
    s.period_s[group] = 0.0
    job = s.first_member[group]
    while job != NONE:
        s.rounds[job] = 0
        job = s.next_member[job]
    rescale(s, group, s.group_gc[group] / gc_before, s.group_machines[group])
    if s.execution != NAIVE:
        dispatch(s, group, s.now_s)
    plan(s, group)


@kernel
def rescale(s, group, slower, machines_before):
    """Modify `s`: COMP in progress has `slower` times the work left, on the machines that the group has now."""
    stretch = slower * machines_before / s.group_machines[group]
    if stretch == 1.0:
        return
    job = s.first_member[group]
    while job != NONE:
        if s.execution == NAIVE:
            if s.part[job] == s.comm:
                s.comp_cost[job] += s.part_left[job] * machines_before * (slower - 1.0)
                s.part_left[job] *= stretch
        elif s.cpu_job[group] == job:
            left_s = max(0.0, s.work_end_s[job] - s.now_s)
            s.comp_cost[job] += left_s * machines_before * (slower - 1.0)
            s.work_end_s[job] = s.now_s + left_s * stretch
            s.cpu_end_s[group] = max(s.work_end_s[job], s.loaded_s[job])
        job = s.next_member[job]


@kernel
def resize_comm(s, group, machines_before):
    """Modify `s`: COMM in progress takes as long as before, and what is left of it is on the machines there are now."""
    more = s.group_machines[group] - machines_before
    job = s.first_member[group]
    while job != NONE:
        if s.place[job] == ON_NET:
            left_s = s.part_left[job]  # naive
            if s.net_job[group] == job:
                left_s = s.net_end_s[group] - s.now_s
            elif s.second_job[group] == job:
                left_s = (s.second_end_s[group] - s.now_s) * second_rate(s)
            s.comm_cost[job] += max(0.0, left_s) * more
        job = s.next_member[job]


@kernel
def plan(s, group):
    """Modify `s`: set the next event of a group: the end of a subtask, or what comes after many periods."""
    if s.n_members[group] == 0:
        time_s = math.inf
    elif s.period_s[group] > 0.0:
        time_s = max(visible_s(s, group), next_end_s(s, group))
    else:
        time_s = coming_s(s, group)
    if s.n_members[group] > 0 and s.period_s[group] <= 0.0 and s.jitter == 0.0:
        time_s = max(time_s, _quiet_until_s(s, group))
    schedule_event(s, group_item(s, group), time_s)


@kernel
def coming_s(s, group):
    """When the next subtask of a group ends; infinity if none is executed."""
    return naive_end_s(s, group) if s.execution == NAIVE else next_end_s(s, group)


@kernel
def _quiet_until_s(s, group):
    """Before then nothing happens in a group that others must know of: no job is faster than alone."""
    until_s = math.inf
    machines = s.group_machines[group]
    job = s.first_member[group]
    while job != NONE:
        if s.goal[job] != group or s.owed_s[job] > 0.0:
            return 0.0
        count = s.iterations_left[job]
        if 0 < s.profile_left[job] < count:
            count = float(s.profile_left[job])
        alone_s = s.comp_machine_s[job] / machines + s.comm_s[job]
        until_s = min(until_s, s.at_s[group] + (count - 1.0) * alone_s * SAFE)
        job = s.next_member[job]
    return until_s


@kernel
def bring_to(s, group, now_s):
    """Modify `s`: execute the group until now, when it may change. Nothing that others must know of happens before."""
    catch_up(s, group, now_s)
    if s.at_s[group] < now_s:
        if s.execution == NAIVE:
            move_on(s, group, now_s)
        s.at_s[group] = now_s


@kernel
def catch_up(s, group, now_s):
    """Modify `s`: execute the group's subtasks that have ended by now; others stay, so looking rounds no time."""
    if s.at_s[group] >= now_s or s.n_members[group] == 0:
        return
    if s.period_s[group] > 0.0:
        leap(s, group, now_s)
    end_s = coming_s(s, group)
    while end_s <= now_s:
        end_now(s, group, end_s)
        end_s = coming_s(s, group)


@kernel
def run_group(s, group, bound_s):
    """Modify `s`: execute the group until something happens in it that others must know of, or until `bound_s`."""
    while s.is_group[group] and s.n_members[group] > 0:
        if s.period_s[group] > 0.0:
            if visible_s(s, group) > bound_s:
                break
            leap(s, group, visible_s(s, group))
        end_s = coming_s(s, group)
        if end_s > bound_s or end_now(s, group, end_s):
            break
    plan(s, group)


@kernel
def end_now(s, group, now_s):
    """Modify `s`: all subtasks of a group that end at an instant; True if something else happened too."""
    happened = False
    if s.execution == NAIVE:
        move_on(s, group, now_s)
        job = take_done(s, group, now_s)
        while job != NONE:
            happened |= _go_on(s, group, job, now_s)
            job = take_done(s, group, now_s)
    else:
        s.at_s[group] = now_s
        job = take_ended(s, group, now_s)
        while job != NONE:
            happened |= _go_on(s, group, job, now_s)
            job = take_ended(s, group, now_s)
    if happened and s.n_members[group] > 0:
        refresh_group(s, group)
    elif s.execution != NAIVE:
        dispatch(s, group, now_s)
    return happened


@kernel
def _go_on(s, group, job, now_s):
    """Modify `s`: after a job's subtask its next one begins, or it leaves; True if others must know."""
    if not end_part(s, job, now_s):
        begin(s, group, job, now_s)
        return False
    work = s.comp_machine_s[job]
    s.iterations_left[job] -= 1.0
    s.rounds[job] += 1
    s.comp_done_s += work
    s.exposed_s[job] += s.part_step_s[job, last_part(s)] - work / s.group_machines[group]
    is_known = s.profile_left[job] == 1
    if s.profile_left[job] > 0:
        s.profile_left[job] -= 1
    if s.iterations_left[job] <= 0.0:
        pass_time(s, now_s)
        end_job(s, job)
        s.happened = 1
        return True
    if s.goal[job] != group or s.owed_s[job] > 0.0:
        pass_time(s, now_s)
        change_place(s, group, job)
        s.happened |= is_known
        return True
    begin(s, group, job, now_s)
    note_period_end(s, group, job)
    if is_known:
        pass_time(s, now_s)
        s.happened = 1
    return is_known


@kernel
def change_place(s, group, job):
    """Modify `s`: between two iterations a job goes where it is to be, or loads what its group's machines lack."""
    if s.goal[job] == group:
        seconds = s.owed_s[job]
        quit_execution(s, job)
        load(s, job, seconds)
        return
    go_out(s, job)
    count_leaving(s, job)
    if s.goal[job] != NONE:
        enter(s, job, s.goal[job])


@kernel
def machine_fails(s, machine):
    """Modify `s`: a machine is down: its group has one less, and all its jobs begin again from checkpoints."""
    group = s.machine_group[machine]
    s.machine_group[machine] = DOWN
    s.down_machines += 1
    if group == NONE:
        s.free_machines -= 1
        return
    bring_to(s, group, s.now_s)
    s.group_machines[group] -= 1
    s.machines_before[group] -= 1
    note(s, SIZED, NONE, group, s.group_machines[group], 0.0)
    goes_on = s.group_machines[group] > 0
    for job in range(s.n_jobs):
        if s.at[job] == group:
            undo_to_checkpoint(s, job)
            if goes_on and s.goal[job] == group:
                quit_execution(s, job)
                load(s, job, s.move_s)
            else:
                _lose_group(s, group, job)
        elif s.goal[job] == group and not goes_on:
            _drop_goal(s, job)
    if goes_on:
        s.period_s[group] = 0.0
        plan(s, group)
    else:
        dissolve(s, group)


@kernel
def _lose_group(s, group, job):
    if s.goal[job] == group:
        _drop_goal(s, job)
        go_out(s, job)
    else:
        put_out(s, job)


@kernel
def _drop_goal(s, job):
    mark(s, s.goal[job])
    s.n_goal[s.goal[job]] -= 1
    s.goal[job] = NONE
    set_status(s, job, WAITING)
