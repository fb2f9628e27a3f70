"""Features of the present, written by one kernel: the columns of columns.py."""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import LOADING as IS_LOADING
from ...simulator.groups.group_codes import OUT
from ...simulator.jobs.remaining_time import isolated_left_s
from ..window import (
    ignorance,
    running_candidate,
    scale_times,
    scaled_count,
    scaled_slack,
    scaled_time,
    waiting_candidate,
)
from .columns import CANDIDATES, CLUSTER, GROUP, JOB, OFFER, QUEUE, RUNNING
from .grouping_offers import (
    FEW,
    consider,
    describe_gain,
    describe_join,
    describe_open,
    describe_own,
    describe_present,
    describe_size,
    describe_swap,
    share_of,
    short_time,
    speed_now,
)
from .grouping_window import OPEN_KIND, PAUSE_KIND, TIMES, group_candidate, open_kind
from .sums import MAX_GROUPS, alone_of, balanced, is_measured, knows

QUEUE_COLUMNS, RUNNING_COLUMNS, GROUP_COLUMNS = len(QUEUE), len(RUNNING), len(GROUP)
CANDIDATE_COLUMNS = len(CANDIDATES)
FIRST_OFFER, OFFER_COLUMNS = CANDIDATES.speeds, len(OFFER)  # the columns of OFFER begin there
CROWD = 8.0  # groups, or speeds, that read 0.5


@kernel
def observe(s, w, features):
    """Write all features, float32: cluster, queue, running, groups and candidates, row by row."""
    features[:] = 0.0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    groups = running + w.running_slots * RUNNING_COLUMNS
    candidates = groups + w.group_slots * GROUP_COLUMNS
    features[candidates + CANDIDATES.legal] = features[candidates + CANDIDATES.advance] = w.legal[0]
    wanted = time = 0
    _scale_times(s, w)
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        wanted += _observe_waiting(s, w, features[queue : queue + QUEUE_COLUMNS], job, time)
        _offer_waiting(s, w, features[candidates:], slot, job)
        queue += QUEUE_COLUMNS
        time += TIMES
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        wanted += _observe_running(s, w, features[running : running + RUNNING_COLUMNS], job, time)
        _offer_running(s, w, features[candidates:], slot, job)
        running += RUNNING_COLUMNS
        time += TIMES
    for k in range(w.groups_shown):
        _observe_group(s, w, features[groups : groups + GROUP_COLUMNS], w.shown_group[k])
        candidate = group_candidate(w, k)
        if w.legal[candidate]:
            at = candidates + candidate * CANDIDATE_COLUMNS
            features[at + CANDIDATES.legal] = features[at + CANDIDATES.give] = features[
                at + CANDIDATES.takes_second
            ] = 1.0
            first = at + FIRST_OFFER
            describe_size(s, w, w.shown_group[k], features[first : first + OFFER_COLUMNS])
        groups += GROUP_COLUMNS
    _observe_cluster(s, w, features, wanted)


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
def _observe_cluster(s, w, features, wanted):
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
def _observe_job(s, w, shown, job, time):
    """Write the common columns of a job, with times from `w.times[time]` on; returns the machines that balance it."""
    memory = s.n_machines * s.ram_bytes / s.expansion
    wanted = 0
    shown[JOB.present] = 1.0
    if is_measured(s, job):
        alone_s = alone_of(s, job)
        wanted = balanced(s.seen_comp[job], s.seen_comm[job])
        shown[JOB.iteration] = short_time(alone_s)
        shown[JOB.comm] = short_time(s.seen_comm[job])
        shown[JOB.comp_share] = 1.0 - s.seen_comm[job] / alone_s
        shown[JOB.balanced] = wanted / (wanted + s.n_machines)
    shown[JOB.age] = w.times[time]
    shown[JOB.time_left] = w.times[time + 1]
    shown[JOB.time_done] = w.times[time + 2]
    shown[JOB.input] = share_of(s.input_bytes[job] / memory)
    shown[JOB.model] = share_of(s.model_bytes[job] / memory)
    shown[JOB.measured] = is_measured(s, job)
    shown[JOB.changed] = s.is_dirty_job[job] > 0
    shown[JOB.slack] = scaled_slack(s, w, job)
    shown[JOB.waited] = w.times[time + 3]
    return wanted


@kernel
def _observe_waiting(s, w, shown, job, time):
    shown[QUEUE.has_run] = s.starts[job] > 0
    return _observe_job(s, w, shown, job, time)


@kernel
def _observe_running(s, w, shown, job, time):
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
    return _observe_job(s, w, shown, job, time)


@kernel
def _observe_group(s, w, shown, group):
    machines = s.group_machines[group]
    members = s.n_goal[group]
    shown[GROUP.present] = 1.0
    shown[GROUP.machines] = machines / s.n_machines
    shown[GROUP.room] = (w.available + (machines if members > 0 else 0)) / s.n_machines
    shown[GROUP.members] = members / (members + FEW)
    shown[GROUP.executed] = min(1.0, s.n_members[group] / max(1, members))
    shown[GROUP.memory] = min(1.0, s.group_occupancy[group])
    shown[GROUP.garbage] = 1.0 - 1.0 / s.group_gc[group]
    shown[GROUP.sized] = s.sized_at[group] == s.instants
    if group >= MAX_GROUPS:
        return
    memory = machines * s.ram_bytes / s.expansion
    shown[GROUP.memory_needed] = share_of((w.input_sum[group] + w.model_sum[group]) / memory)
    shown[GROUP.memory_spilled] = min(1.0, w.model_sum[group] / memory)
    if w.unknown[group] > 0 or members == 0:
        return
    round_s = w.round_s[group]
    wanted = balanced(w.comp_sum[group], w.comm_sum[group])
    shown[GROUP.round] = short_time(round_s)
    shown[GROUP.cpu] = min(1.0, w.comp_sum[group] / machines / round_s)
    shown[GROUP.net] = min(1.0, w.comm_sum[group] / round_s)
    shown[GROUP.longest] = w.longest_s[group] / round_s
    shown[GROUP.speeds] = share_of(w.speed_gain[group])
    shown[GROUP.balanced] = wanted / (wanted + s.n_machines)
    shown[GROUP.measured] = 1.0


@kernel
def _begin_offer(offered, kind, second, third):
    offered[CANDIDATES.legal] = offered[kind] = 1.0
    offered[CANDIDATES.takes_second], offered[CANDIDATES.takes_third] = second, third


@kernel
def _offer_waiting(s, w, offered, slot, job):
    candidate = waiting_candidate(w, slot, 0)
    known = consider(s, w, job)
    if w.legal[candidate + OPEN_KIND]:
        _offer_open(s, w, offered, candidate + OPEN_KIND, job, known)
    for k in range(w.groups_shown):
        if w.legal[candidate + 1 + k]:
            _offer_join(s, w, offered, candidate + 1 + k, job, w.shown_group[k], known)


@kernel
def _offer_open(s, w, offered, candidate, job, known):
    at = candidate * CANDIDATE_COLUMNS
    first = at + FIRST_OFFER
    _begin_offer(offered[at : at + FIRST_OFFER], CANDIDATES.open, 1.0, s.spills)
    describe_open(s, w, job, known, offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_join(s, w, offered, candidate, job, group, known):
    at = candidate * CANDIDATE_COLUMNS
    first = at + FIRST_OFFER
    _begin_offer(offered[at : at + FIRST_OFFER], CANDIDATES.join, 0.0, s.spills)
    describe_join(s, w, job, group, known, offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_running(s, w, offered, slot, job):
    candidate = running_candidate(w, slot, 0)
    known = consider(s, w, job)
    if w.legal[candidate + PAUSE_KIND]:
        at = (candidate + PAUSE_KIND) * CANDIDATE_COLUMNS
        first = at + FIRST_OFFER
        _begin_offer(offered[at : at + FIRST_OFFER], CANDIDATES.pause, 0.0, 0.0)
        describe_own(w, offered[first : first + OFFER_COLUMNS])
        describe_gain(w, 0.0, 0.0, 0.0, offered[first : first + OFFER_COLUMNS])
    for k in range(w.groups_shown):
        here = candidate + 1 + k
        if w.legal[here]:
            if w.shown_group[k] == s.goal[job]:
                _offer_stay(s, w, offered, here, job)
            else:
                _offer_join(s, w, offered, here, job, w.shown_group[k], known)
    here = candidate + open_kind(w)
    if w.legal[here]:
        _offer_open(s, w, offered, here, job, known)
    if w.legal[here + 1]:
        at = (here + 1) * CANDIDATE_COLUMNS
        first = at + FIRST_OFFER
        _begin_offer(offered[at : at + FIRST_OFFER], CANDIDATES.swap, 0.0, s.spills)
        describe_swap(s, w, job, w.partner[slot], offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_stay(s, w, offered, candidate, job):
    at = candidate * CANDIDATE_COLUMNS
    first = at + FIRST_OFFER
    _begin_offer(offered[at : at + FIRST_OFFER], CANDIDATES.stay, 0.0, 1.0)
    describe_present(s, w, s.goal[job], offered[first : first + OFFER_COLUMNS])
    describe_own(w, offered[first : first + OFFER_COLUMNS])


@kernel
def write_mask(w, mask):
    """Write the flat mask, int8 (candidates + machines + spill,): for the other parts the union over candidates."""
    count = mask.size - w.machine_choices - 1 - w.spill_choices
    for i in range(count):
        mask[i] = w.legal[i]
    most = min(w.most_machines, w.machine_choices)
    for machines in range(w.machine_choices + 1):
        mask[count + machines] = machines <= most
    count += w.machine_choices + 1
    for value in range(w.spill_choices):
        mask[count + value] = value == 0 or w.may_spill > 0
