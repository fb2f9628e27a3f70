"""Features of the present, written by one kernel: what `Grouping-v0` shows to an agent.

Machines are shares of the cluster's, memory too; times t of jobs are log1p(t) / log1p(horizon), seconds of subtasks and
rounds log1p(t) / log1p(3600), cut at 1; a slack t, which may be below 0, is 1/2 + or - half of what |t| would be. Times
of subtasks are those that are measured, 0 before. Everything lies in [0, 1]; rows in which nothing stands, and
candidates that are not legal, are zero.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import LOADING as IS_LOADING
from ...simulator.groups.group_codes import OUT
from ...simulator.jobs.remaining_time import isolated_left_s
from ..window import ignorance, running_candidate, scaled_count, scaled_slack, scaled_time, waiting_candidate
from .grouping_offers import (
    FEW,
    OFFER,
    OFFER_COLUMNS,
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
from .grouping_window import OPEN_KIND, PAUSE_KIND, group_candidate, open_kind
from .sums import MAX_GROUPS, alone_of, balanced, is_measured, knows

CLUSTER = (
    "time since the first arrival",
    "machines that can be had",
    "machines that have failed",
    "waiting jobs w: w / (w + 32)",
    "jobs in groups, the same",
    "groups g: g / (g + 8)",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "jobs that load, of those in groups",
    "jobs that have changed their place at this instant, of all here",
    "CPU use of all groups, as measured",
    "network use of all groups, as measured",
    "sum v of all speeds: v / (v + 8)",
    "machines d on which all jobs in the window balance: d / (d + machines)",
    "run times: 0 known, 1/2 estimated, 1 not known: what counts them is 0",
)
JOB = (
    "1: a job stands here",
    "seconds of an iteration alone",
    "seconds of COMM of an iteration",
    "COMP of an iteration alone, of all of it",
    "machines d on which COMP takes as long as COMM: d / (d + machines)",
    "time since it arrived",
    "isolated run time left; 0 where it is not known",
    "isolated run time of the iterations that it has done",
    "input x over the cluster's memory: x / (1 + x)",
    "model x over the cluster's memory: x / (1 + x)",
    "1: its times are measured",
    "1: it has changed its place at this instant",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
    "time since it arrived or left a group",
)
QUEUE = (*JOB, "1: it has run before")
RUNNING = (
    *JOB,
    "speed v, 1 is alone: v / (1 + v)",
    "1: it loads",
    "1: it is executed where it is to be",
    "share of its input on disk",
    "1: that share was asked for",
    "share of its model on disk",
    "jobs n of its group: n / (n + 4)",
    "machines of its group",
    "seconds of a round of its group",
    "CPU use of its group",
    "network use of its group",
    "group slot k of G that shows its group: (k + 1) / G; 0: none does",
)
GROUP = (
    "1: a group stands here",
    "machines",
    "machines that it could have",
    "jobs n: n / (n + 4)",
    "jobs that are executed, of these",
    "seconds of a round",
    "CPU use",
    "network use",
    "seconds of the longest iteration, over the round",
    "sum v of its jobs' speeds: v / (1 + v)",
    "machines d on which it balances: d / (d + machines)",
    "memory in use",
    "collecting garbage makes COMP x times longer: 1 - 1 / x",
    "memory x that it needs, of its own, if nothing is spilled: x / (1 + x)",
    "memory that it needs if all input is spilled",
    "1: it has got machines at this instant",
    "1: the times of all its jobs are measured",
)
KINDS = (
    "1: legal",
    "1: advance",
    "1: open a group",
    "1: join a group",
    "1: pause",
    "1: make room for a waiting job",
    "1: stay, with another spill ratio",
    "1: give machines",
    "1: the second part of the action means something",
    "1: the third part means something",
)
CANDIDATES = (*KINDS, *OFFER)
JOB_COLUMNS, QUEUE_COLUMNS, RUNNING_COLUMNS = len(JOB), len(QUEUE), len(RUNNING)
GROUP_COLUMNS, CANDIDATE_COLUMNS = len(GROUP), len(CANDIDATES)
OPENS, JOINS, PAUSES, SWAPS, STAYS, GIVES, SECOND_COLUMN, THIRD_COLUMN = range(2, 10)
FIRST_OFFER = len(KINDS)
CROWD = 8.0  # groups, or speeds, that read 0.5


@kernel
def observe(s, w, features):
    """Write all features, float32: cluster, queue, running, groups and candidates, row by row."""
    features[:] = 0.0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    groups = running + w.running_slots * RUNNING_COLUMNS
    candidates = groups + w.group_slots * GROUP_COLUMNS
    features[candidates] = features[candidates + 1] = w.legal[0]
    wanted = 0
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        wanted += _observe_waiting(s, w, features[queue : queue + QUEUE_COLUMNS], job)
        _offer_waiting(s, w, features[candidates:], slot, job)
        queue += QUEUE_COLUMNS
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        wanted += _observe_running(s, w, features[running : running + RUNNING_COLUMNS], job)
        _offer_running(s, w, features[candidates:], slot, job)
        running += RUNNING_COLUMNS
    for k in range(w.groups_shown):
        _observe_group(s, w, features[groups : groups + GROUP_COLUMNS], w.shown_group[k])
        candidate = group_candidate(w, k)
        if w.legal[candidate]:
            at = candidates + candidate * CANDIDATE_COLUMNS
            features[at] = features[at + GIVES] = features[at + SECOND_COLUMN] = 1.0
            first = at + FIRST_OFFER
            describe_size(s, w, w.shown_group[k], features[first : first + OFFER_COLUMNS])
        groups += GROUP_COLUMNS
    _observe_cluster(s, w, features, wanted)


@kernel
def _observe_cluster(s, w, features, wanted):
    here = max(1, s.waiting + s.running)
    features[0] = scaled_time(w, s.now_s - s.start_s)
    features[1] = w.available / s.n_machines
    features[2] = s.down_machines / s.n_machines
    features[3] = scaled_count(s.waiting)
    features[4] = scaled_count(s.running)
    features[6] = s.next_arrival / s.n_jobs
    features[7] = s.done / s.n_jobs
    features[8] = min(1.0, s.n_loading / max(1, s.running))
    features[9] = min(1.0, s.n_dirty_jobs / here)
    groups = 0
    cpu = net = speeds = 0.0
    for group in range(min(s.group_end, MAX_GROUPS)):
        if s.is_group[group] and s.n_goal[group] > 0:
            groups += 1
            if knows(w, group):
                cpu += w.comp_sum[group] / w.round_s[group]
                net += w.comm_sum[group] * s.group_machines[group] / w.round_s[group]
                speeds += w.speed_gain[group]
    features[5] = groups / (groups + CROWD)
    features[10] = min(1.0, cpu / s.n_machines)
    features[11] = min(1.0, net / s.n_machines)
    features[12] = speeds / (speeds + CROWD)
    features[13] = wanted / (wanted + s.n_machines)
    features[14] = ignorance(s)


@kernel
def _observe_job(s, w, shown, job):
    """Write the common columns of waiting jobs and those in groups; returns the machines that balance it."""
    memory = s.n_machines * s.ram_bytes / s.expansion
    wanted = 0
    shown[0] = 1.0
    if is_measured(s, job):
        alone_s = alone_of(s, job)
        wanted = balanced(s.seen_comp[job], s.seen_comm[job])
        shown[1] = short_time(alone_s)
        shown[2] = short_time(s.seen_comm[job])
        shown[3] = 1.0 - s.seen_comm[job] / alone_s
        shown[4] = wanted / (wanted + s.n_machines)
    shown[5] = scaled_time(w, s.now_s - s.arrival_s[job])
    shown[6] = scaled_time(w, isolated_left_s(s, job))
    shown[7] = scaled_time(w, (s.iterations[job] - s.iterations_left[job]) * s.base_iteration_s[job])
    shown[8] = share_of(s.input_bytes[job] / memory)
    shown[9] = share_of(s.model_bytes[job] / memory)
    shown[10] = is_measured(s, job)
    shown[11] = s.is_dirty_job[job] > 0
    shown[12] = scaled_slack(s, w, job)
    shown[13] = scaled_time(w, s.now_s - s.waiting_since_s[job])
    return wanted


@kernel
def _observe_waiting(s, w, shown, job):
    shown[JOB_COLUMNS] = s.starts[job] > 0
    return _observe_job(s, w, shown, job)


@kernel
def _observe_running(s, w, shown, job):
    group = s.goal[job]
    at = JOB_COLUMNS
    is_there = s.at[job] == group
    shown[at] = share_of(speed_now(s, w, job))
    shown[at + 1] = s.place[job] == IS_LOADING
    shown[at + 2] = is_there and s.place[job] != IS_LOADING and s.place[job] != OUT
    shown[at + 3] = s.alpha[job]
    shown[at + 4] = s.alpha_asked[job] >= 0.0
    shown[at + 5] = s.model_spill[job]
    shown[at + 6] = s.n_goal[group] / (s.n_goal[group] + FEW)
    shown[at + 7] = s.group_machines[group] / s.n_machines
    if knows(w, group) and w.round_s[group] > 0.0:
        round_s = w.round_s[group]
        shown[at + 8] = short_time(round_s)
        shown[at + 9] = min(1.0, w.comp_sum[group] / s.group_machines[group] / round_s)
        shown[at + 10] = min(1.0, w.comm_sum[group] / round_s)
    for k in range(w.groups_shown):
        if w.shown_group[k] == group:
            shown[at + 11] = (k + 1) / w.group_slots
    return _observe_job(s, w, shown, job)


@kernel
def _observe_group(s, w, shown, group):
    machines = s.group_machines[group]
    members = s.n_goal[group]
    shown[0] = 1.0
    shown[1] = machines / s.n_machines
    shown[2] = (w.available + (machines if members > 0 else 0)) / s.n_machines
    shown[3] = members / (members + FEW)
    shown[4] = min(1.0, s.n_members[group] / max(1, members))
    shown[11] = min(1.0, s.group_occupancy[group])
    shown[12] = 1.0 - 1.0 / s.group_gc[group]
    shown[15] = s.sized_at[group] == s.instants
    if group >= MAX_GROUPS:
        return
    memory = machines * s.ram_bytes / s.expansion
    shown[13] = share_of((w.input_sum[group] + w.model_sum[group]) / memory)
    shown[14] = min(1.0, w.model_sum[group] / memory)
    if w.unknown[group] > 0 or members == 0:
        return
    round_s = w.round_s[group]
    wanted = balanced(w.comp_sum[group], w.comm_sum[group])
    shown[5] = short_time(round_s)
    shown[6] = min(1.0, w.comp_sum[group] / machines / round_s)
    shown[7] = min(1.0, w.comm_sum[group] / round_s)
    shown[8] = w.longest_s[group] / round_s
    shown[9] = share_of(w.speed_gain[group])
    shown[10] = wanted / (wanted + s.n_machines)
    shown[16] = 1.0


@kernel
def _begin_offer(offered, kind, second, third):
    offered[0] = offered[kind] = 1.0
    offered[SECOND_COLUMN], offered[THIRD_COLUMN] = second, third


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
    _begin_offer(offered[at : at + FIRST_OFFER], OPENS, 1.0, s.spills)
    describe_open(s, w, job, known, offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_join(s, w, offered, candidate, job, group, known):
    at = candidate * CANDIDATE_COLUMNS
    first = at + FIRST_OFFER
    _begin_offer(offered[at : at + FIRST_OFFER], JOINS, 0.0, s.spills)
    describe_join(s, w, job, group, known, offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_running(s, w, offered, slot, job):
    candidate = running_candidate(w, slot, 0)
    known = consider(s, w, job)
    if w.legal[candidate + PAUSE_KIND]:
        at = (candidate + PAUSE_KIND) * CANDIDATE_COLUMNS
        first = at + FIRST_OFFER
        _begin_offer(offered[at : at + FIRST_OFFER], PAUSES, 0.0, 0.0)
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
        _begin_offer(offered[at : at + FIRST_OFFER], SWAPS, 0.0, s.spills)
        describe_swap(s, w, job, w.partner[slot], offered[first : first + OFFER_COLUMNS])


@kernel
def _offer_stay(s, w, offered, candidate, job):
    at = candidate * CANDIDATE_COLUMNS
    first = at + FIRST_OFFER
    _begin_offer(offered[at : at + FIRST_OFFER], STAYS, 0.0, 1.0)
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
