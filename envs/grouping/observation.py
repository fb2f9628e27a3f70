"""What Grouping-v0 shows of the present: the cluster, and the rows of jobs and of groups (columns.py)."""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import LOADING as IS_LOADING
from ...simulator.groups.group_codes import OUT
from ...simulator.jobs.remaining_time import isolated_left_s
from ..families.group_numbers import room_of
from ..families.group_offers import FEW, consider, share_of, short_time, speed_now
from ..families.group_sums import MAX_GROUPS, alone_of, balance_of, balanced, is_measured, knows
from ..families.group_table import group_rows
from ..families.job_rows import running_rows, waiting_rows
from ..window import MAX_SLOTS, ignorance, scale_times, scaled_count, scaled_slack, scaled_time
from .columns import CLUSTER, GROUP, JOB, QUEUE, RUNNING

CROWD = 8.0  # groups, or speeds, that read 0.5
TIMES = 4  # features of a job that are times
FIELDS = (("times", "f8", (2 * TIMES * MAX_SLOTS,)),)  # scratch


@kernel
def _scale_times(s, w):
    """Modify `w.times`: of each job shown, first of waiting ones: age, isolated time left and done, wait."""
    times = w.times
    at = 0
    for slot in range(w.waiting_shown + w.running_shown):
        job = w.waiting_job[slot] if slot < w.waiting_shown else w.running_job[slot - w.waiting_shown]
        times[at] = s.now_s - s.arrival_s[job]
        times[at + 1] = isolated_left_s(s, job)
        times[at + 2] = (s.iterations[job] - s.iterations_left[job]) * s.base_iteration_s[job]
        times[at + 3] = s.now_s - s.waiting_since_s[job]
        at += TIMES
    scale_times(w, at)


@kernel
def observe_cluster(s, w, m, features):
    """Write the cluster, and prepare the times of the rows; the rest becomes 0, to be written anew."""
    features[:] = 0.0
    _scale_times(s, w)
    wanted = 0
    for slot in range(w.waiting_shown):
        wanted += balance_of(s, w.waiting_job[slot], 0)
    for slot in range(w.running_shown):
        wanted += balance_of(s, w.running_job[slot], 0)
    here = max(1, s.waiting + s.running)
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)
    features[CLUSTER.available] = w.available / s.n_machines
    features[CLUSTER.down] = s.down_machines / s.n_machines
    features[CLUSTER.waiting] = scaled_count(s.waiting)
    features[CLUSTER.running] = scaled_count(s.running)
    features[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    features[CLUSTER.finished] = s.done / s.n_jobs
    features[CLUSTER.loading] = min(1.0, s.n_loading / max(1, s.running))
    features[CLUSTER.changed] = min(1.0, s.n_dirty_jobs / here)
    groups = 0
    cpu = net = speeds = 0.0
    for group in range(min(s.group_end, MAX_GROUPS)):
        if s.is_group[group] and s.n_goal[group] > 0:
            groups += 1
            if knows(w, group):
                cpu += w.comp_sum[group] / w.round_s[group]
                net += w.comm_sum[group] * s.group_machines[group] / w.round_s[group]
                speeds += w.speed_gain[group]
    features[CLUSTER.groups] = groups / (groups + CROWD)
    features[CLUSTER.cpu] = min(1.0, cpu / s.n_machines)
    features[CLUSTER.net] = min(1.0, net / s.n_machines)
    features[CLUSTER.speeds] = speeds / (speeds + CROWD)
    features[CLUSTER.balanced] = wanted / (wanted + s.n_machines)
    features[CLUSTER.times_unknown] = ignorance(s)


@kernel
def _observe_job(s, w, shown, job, row):
    """Write the common columns of the job in a row, waiting ones counted first; consider it for its candidates."""
    times = w.times[TIMES * row : TIMES * (row + 1)]
    memory = s.n_machines * s.ram_bytes / s.expansion
    shown[JOB.present] = 1.0
    if is_measured(s, job):
        alone_s = alone_of(s, job)
        wanted = balanced(s.seen_comp[job], s.seen_comm[job])
        shown[JOB.iteration] = short_time(alone_s)
        shown[JOB.comm] = short_time(s.seen_comm[job])
        shown[JOB.comp_share] = 1.0 - s.seen_comm[job] / alone_s
        shown[JOB.balanced] = wanted / (wanted + s.n_machines)
    shown[JOB.age] = times[0]
    shown[JOB.time_left] = times[1]
    shown[JOB.time_done] = times[2]
    shown[JOB.input] = share_of(s.input_bytes[job] / memory)
    shown[JOB.model] = share_of(s.model_bytes[job] / memory)
    shown[JOB.measured] = is_measured(s, job)
    shown[JOB.changed] = s.is_dirty_job[job] > 0
    shown[JOB.slack] = scaled_slack(s, w, job)
    shown[JOB.waited] = times[3]
    consider(s, w, job)


@kernel
def _write_waiting(s, w, m, slot, job, shown):
    shown[QUEUE.has_run] = s.starts[job] > 0
    _observe_job(s, w, shown, job, slot)
    return True


@kernel
def _write_running(s, w, m, slot, job, shown):
    group = s.goal[job]
    is_there = s.at[job] == group
    shown[RUNNING.speed] = share_of(speed_now(s, w, job))
    shown[RUNNING.loads] = s.place[job] == IS_LOADING
    shown[RUNNING.executed] = is_there and s.place[job] != IS_LOADING and s.place[job] != OUT
    shown[RUNNING.input_spilled] = s.alpha[job]
    shown[RUNNING.spill_asked] = s.alpha_asked[job] >= 0.0
    shown[RUNNING.model_spilled] = s.model_spill[job]
    shown[RUNNING.members] = s.n_goal[group] / (s.n_goal[group] + FEW)
    shown[RUNNING.machines] = s.group_machines[group] / s.n_machines
    if knows(w, group) and w.round_s[group] > 0.0:
        round_s = w.round_s[group]
        shown[RUNNING.round] = short_time(round_s)
        shown[RUNNING.cpu] = min(1.0, w.comp_sum[group] / s.group_machines[group] / round_s)
        shown[RUNNING.net] = min(1.0, w.comm_sum[group] / round_s)
    for k in range(w.groups_shown):
        if w.shown_group[k] == group:
            shown[RUNNING.group] = (k + 1) / w.group_slots
    _observe_job(s, w, shown, job, w.waiting_shown + slot)
    return True


@kernel
def _write_group(s, w, m, slot, group, shown):
    machines = s.group_machines[group]
    members = s.n_goal[group]
    shown[GROUP.present] = 1.0
    shown[GROUP.machines] = machines / s.n_machines
    shown[GROUP.room] = room_of(s, w, group) / s.n_machines
    shown[GROUP.members] = members / (members + FEW)
    shown[GROUP.executed] = min(1.0, s.n_members[group] / max(1, members))
    shown[GROUP.memory] = min(1.0, s.group_occupancy[group])
    shown[GROUP.garbage] = 1.0 - 1.0 / s.group_gc[group]
    shown[GROUP.sized] = s.sized_at[group] == s.instants
    if group < MAX_GROUPS:
        memory = machines * s.ram_bytes / s.expansion
        shown[GROUP.memory_needed] = share_of((w.input_sum[group] + w.model_sum[group]) / memory)
        shown[GROUP.memory_spilled] = min(1.0, w.model_sum[group] / memory)
    if members > 0 and knows(w, group):
        round_s = w.round_s[group]
        wanted = balanced(w.comp_sum[group], w.comm_sum[group])
        shown[GROUP.round] = short_time(round_s)
        shown[GROUP.cpu] = min(1.0, w.comp_sum[group] / machines / round_s)
        shown[GROUP.net] = min(1.0, w.comm_sum[group] / round_s)
        shown[GROUP.longest] = w.longest_s[group] / round_s
        shown[GROUP.speeds] = share_of(w.speed_gain[group])
        shown[GROUP.balanced] = wanted / (wanted + s.n_machines)
        shown[GROUP.measured] = 1.0
    return True


TABLES = (
    waiting_rows(QUEUE, _write_waiting),
    running_rows(RUNNING, _write_running),
    group_rows(GROUP, _write_group),
)
