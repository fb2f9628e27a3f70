"""Iteration times of groups: sums over the jobs that are to be in each, and their changes.

All times are measured ones. A round of a group takes max(sum of COMP, sum of COMM, longest job) (paper harmony, Eq. 1);
its jobs do one iteration each in it. A job's speed is its iteration time alone, on the machines of its own run time,
over the round: 1 is as fast as alone. A group has three gains: the sum of its jobs' speeds, its share of the cluster's
CPU use plus half of that of its network use (the paper's score, Eq. 4), and the sum of speeds over the square roots of
the hours that the jobs have left, which shortens the mean JCT where run times are known.
"""

import math

from ...simulator.base.codes import TIMES_HIDDEN
from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.numerics.bitset import next_member

MAX_GROUPS = 256  # groups beyond these count as unknown
BETA = 0.5  # of network use, beside CPU use
LEAST_LEFT_S = 60.0  # a job with less left counts as one with a minute left


# Fields of a window, by group; all are sums but for the longest two iterations and the round.
TIMES = ("comp_sum", "comm_sum", "longest_s", "second_s")  # machine-seconds; seconds, here the longest two
SPEEDS = ("speed_sum", "value_sum")  # of seconds of iterations alone; of the same over the roots of hours left
BYTES = ("input_sum", "model_sum")
GAINS = ("round_s", "speed_gain", "use_gain", "value_gain")  # round_s = 0: unknown
INTEGERS = ("longest_job", "unknown")  # `unknown`: jobs whose times are not measured yet
SUMS = [(name, "f8", (MAX_GROUPS,)) for name in TIMES + SPEEDS + BYTES + GAINS]
SUMS += [(name, "i8", (MAX_GROUPS,)) for name in INTEGERS]


@kernel
def sum_groups(s, w):
    """Modify window `w`: the sums of all groups, with the decisions made."""
    groups = min(s.group_end, MAX_GROUPS)
    for group in range(groups):
        if s.is_group[group]:
            _begin(w, group)
    rank = next_member(s.running_low, s.running_mid, s.running_top, 0)
    while rank >= 0:
        job = s.job_at_rank[rank]
        if s.goal[job] < MAX_GROUPS:
            _add(s, w, s.goal[job], job)
        rank = next_member(s.running_low, s.running_mid, s.running_top, rank + 1)
    for group in range(groups):
        if s.is_group[group] and s.n_goal[group] > 0 and w.unknown[group] == 0:
            _close(s, w, group)


@kernel
def _begin(w, group):
    w.comp_sum[group] = w.comm_sum[group] = w.longest_s[group] = w.second_s[group] = 0.0
    w.speed_sum[group] = w.value_sum[group] = w.input_sum[group] = w.model_sum[group] = 0.0
    w.round_s[group] = w.speed_gain[group] = w.use_gain[group] = w.value_gain[group] = 0.0
    w.longest_job[group] = NONE
    w.unknown[group] = 0


@kernel
def _add(s, w, group, job):
    one_s = iteration_of(s, job, s.group_machines[group])
    if one_s > w.longest_s[group]:
        w.second_s[group] = w.longest_s[group]
        w.longest_s[group] = one_s
        w.longest_job[group] = job
    elif one_s > w.second_s[group]:
        w.second_s[group] = one_s
    alone_s = alone_of(s, job)
    w.comp_sum[group] += s.seen_comp[job]
    w.comm_sum[group] += s.seen_comm[job]
    w.speed_sum[group] += alone_s
    w.value_sum[group] += alone_s * weight_of(s, isolated_left_s(s, job))
    w.input_sum[group] += s.input_bytes[job]
    w.model_sum[group] += s.model_bytes[job]
    w.unknown[group] += int(s.profile_left[job] > 0)


@kernel
def _close(s, w, group):
    machines = s.group_machines[group]
    comp, comm = w.comp_sum[group], w.comm_sum[group]
    w.round_s[group] = round_of(comp, comm, machines, w.longest_s[group])
    w.speed_gain[group] = w.speed_sum[group] / w.round_s[group]
    w.use_gain[group] = use_of(s, comp, comm, machines, w.round_s[group])
    w.value_gain[group] = w.value_sum[group] / w.round_s[group]


@kernel
def is_measured(s, job):
    """Whether the times of a job's subtasks are known."""
    return s.profile_left[job] <= 0


@kernel
def knows(w, group):
    """Whether the round of a group is known, with or without another measured job."""
    return group < MAX_GROUPS and w.unknown[group] == 0


@kernel
def iteration_of(s, job, machines):
    """Seconds of an iteration of a job that is alone on so many machines."""
    return s.seen_comp[job] / machines + s.seen_comm[job]


@kernel
def alone_of(s, job):
    """The same on the machines of its own run time."""
    return iteration_of(s, job, s.gpus[job])


@kernel
def round_of(comp, comm, machines, longest_s):
    """Seconds of a round of a group with these sums."""
    return max(comp / machines, comm, longest_s)


@kernel
def use_of(s, comp, comm, machines, round_s):
    """A group's share of the cluster's CPU use, plus half of that of its network use."""
    return (comp + BETA * comm * machines) / (round_s * s.n_machines)


@kernel
def weight_of(s, left):
    """One over the root of the hours in `left`, seconds that a job has left alone; 0 where they are unknown."""
    if s.known_times == TIMES_HIDDEN:
        return 0.0
    return 60.0 / math.sqrt(max(LEAST_LEFT_S, left))


@kernel
def longest_without(w, group, job):
    """Seconds of the longest iteration of a group without one of its jobs."""
    return w.second_s[group] if w.longest_job[group] == job else w.longest_s[group]


@kernel
def longest_on(s, group, machines):
    """Seconds of the longest iteration of a group on so many machines."""
    longest_s = 0.0
    rank = next_member(s.running_low, s.running_mid, s.running_top, 0)
    while rank >= 0:
        job = s.job_at_rank[rank]
        if s.goal[job] == group:
            longest_s = max(longest_s, iteration_of(s, job, machines))
        rank = next_member(s.running_low, s.running_mid, s.running_top, rank + 1)
    return longest_s


@kernel
def balanced(comp, comm):
    """Machines on which COMP takes as long as COMM, a whole number; it may be 0, or more than there are."""
    return int(min(1e9, comp / comm + 0.5))


@kernel
def balance_of(s, job, otherwise):
    """The same for a job; `otherwise` as long as its times are not measured."""
    return balanced(s.seen_comp[job], s.seen_comm[job]) if is_measured(s, job) else otherwise
