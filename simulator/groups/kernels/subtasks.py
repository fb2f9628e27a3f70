"""Subtasks of the jobs of a group, one after another on each resource (paper harmony, Sec. IV-A).

A COMP subtask has the CPUs of all machines of the group to itself. A COMM subtask has their network; where it keeps the
links busy for only a share of its time (`busy` < 1), a secondary one moves in the gaps, and becomes primary when that
ends. Each resource takes them first in, first out; at one instant the CPU's end comes first, then the primary's, then
the secondary's. An iteration is COMP and one COMM (`comm=merged`, Eq. 1), or PULL, COMP, PUSH (`split`).
"""

import math

from ...compiler.jit import kernel
from ...numerics.random import seed_of, uniform
from ..group_codes import COMM, COMP, CPU_QUEUE, MERGED, NET_QUEUE, NONE, ON_CPU, ON_NET, PULL, PUSH
from .linked_lists import append, take_first

NOISE = 1 << 20  # streams of random numbers of jobs' subtasks
DRAWS = 6  # random numbers of an iteration


@kernel
def last_part(s):
    """The last subtask of an iteration."""
    return 1 + s.comm


@kernel
def is_comp(s, part):
    """True if a subtask is COMP; else it is COMM."""
    return part == s.comm


@kernel
def noise(s, job):
    """How many times longer than on average the present subtask takes: lognormal of mean 1, with cv `jitter`."""
    if s.jitter == 0.0:
        return 1.0
    variance = math.log(1.0 + s.jitter * s.jitter)
    counter = DRAWS * int(s.iterations[job] - s.iterations_left[job]) + 2 * s.part[job]
    first, second = uniform(seed_of(s), NOISE + job, counter), uniform(seed_of(s), NOISE + job, counter + 1)
    normal = math.sqrt(-2.0 * math.log(first)) * math.cos(2.0 * math.pi * second)
    return math.exp(math.sqrt(variance) * normal - 0.5 * variance)


@kernel
def comm_part_s(s, job):
    """Seconds that the present subtask of a job, a COMM, takes on average, alone on the network."""
    if s.comm == MERGED:
        return s.comm_s[job]
    pull_s = s.pull_share * s.comm_s[job]
    return pull_s if s.part[job] == 0 else s.comm_s[job] - pull_s


@kernel
def enqueue(s, group, job):
    """Modify `s`: the present subtask of a job enters its queue."""
    if is_comp(s, s.part[job]):
        s.place[job] = CPU_QUEUE
        append(s.cpu_head, s.cpu_tail, s.queue_next, group, job)
    else:
        s.place[job] = NET_QUEUE
        append(s.net_head, s.net_tail, s.queue_next, group, job)


@kernel
def draw_comp(s, group, job, now_s):
    """Modify `s`: the machine-seconds of a COMP that begins; returns its seconds on the machines of the group."""
    s.part_begin_s[job] = now_s
    s.comp_cost[job] = s.comp_machine_s[job] * noise(s, job) * s.group_gc[group]
    return s.comp_cost[job] / s.group_machines[group]


@kernel
def draw_comm(s, group, job, now_s):
    """Modify `s`: the seconds of a COMM that begins, alone on the network; returns them."""
    s.part_begin_s[job] = now_s
    s.part_left[job] = comm_part_s(s, job) * noise(s, job)
    s.comm_cost[job] = s.part_left[job] * s.group_machines[group]
    return s.part_left[job]


@kernel
def second_rate(s):
    """How fast a secondary COMM moves beside a primary one."""
    return (1.0 - s.busy) / s.busy


@kernel
def dispatch(s, group, now_s):
    """Modify `s`: idle resources take from their queues."""
    if s.cpu_job[group] == NONE and s.cpu_head[group] != NONE:
        job = take_first(s.cpu_head, s.cpu_tail, s.queue_next, group)
        s.cpu_job[group] = job
        s.place[job] = ON_CPU
        s.work_end_s[job] = now_s + draw_comp(s, group, job, now_s)
        s.cpu_end_s[group] = max(s.work_end_s[job], s.loaded_s[job])
    if s.net_job[group] == NONE and s.second_job[group] != NONE:
        job = s.second_job[group]
        s.second_job[group] = NONE
        s.net_job[group] = job
        s.net_end_s[group] = now_s + (s.second_end_s[group] - now_s) * second_rate(s)
    if s.net_job[group] == NONE and s.net_head[group] != NONE:
        job = take_first(s.net_head, s.net_tail, s.queue_next, group)
        s.net_job[group] = job
        s.place[job] = ON_NET
        s.net_end_s[group] = now_s + draw_comm(s, group, job, now_s)
    if s.busy < 1.0 and s.second_job[group] == NONE and s.net_head[group] != NONE:
        job = take_first(s.net_head, s.net_tail, s.queue_next, group)
        s.second_job[group] = job
        s.place[job] = ON_NET
        s.second_end_s[group] = now_s + draw_comm(s, group, job, now_s) / second_rate(s)


@kernel
def next_end_s(s, group):
    """When a subtask of the group ends next; infinity if none is executed."""
    end_s = math.inf
    if s.cpu_job[group] != NONE:
        end_s = s.cpu_end_s[group]
    if s.net_job[group] != NONE:
        end_s = min(end_s, s.net_end_s[group])
    if s.second_job[group] != NONE:
        end_s = min(end_s, s.second_end_s[group])
    return end_s


@kernel
def take_ended(s, group, now_s):
    """Modify `s`: a subtask that ends now leaves its resource; returns its job, or NONE."""
    job = NONE
    if s.cpu_job[group] != NONE and s.cpu_end_s[group] <= now_s:
        job = s.cpu_job[group]
        s.cpu_job[group] = NONE
        book_comp(s, group, job, now_s)
    elif s.net_job[group] != NONE and s.net_end_s[group] <= now_s:
        job = s.net_job[group]
        s.net_job[group] = NONE
        book_comm(s, job)
    elif s.second_job[group] != NONE and s.second_end_s[group] <= now_s:
        job = s.second_job[group]
        s.second_job[group] = NONE
        book_comm(s, job)
    return job


@kernel
def book_comp(s, group, job, now_s):
    """Modify `s`: a COMP has ended: count it, measure it, and load what its next pass over the input needs."""
    cost = s.comp_cost[job]
    s.cpu_busy_s += cost
    if s.jitter > 0.0:
        measured = cost / s.group_gc[group] * s.comp_error[job]
        s.seen_comp[job] += weight(s, job) * (measured - s.seen_comp[job])
    if s.disk_s[job] > 0.0:
        s.disk_free_s[group] = max(now_s, s.disk_free_s[group]) + s.disk_s[job]
        s.loaded_s[job] = s.disk_free_s[group]
        s.disk_bytes += s.disk_s[job] * s.disk_bandwidth * s.group_machines[group]


@kernel
def weight(s, job):
    """Of the newest measurement in a moving average; the first one of a job that is being profiled is all there is."""
    is_first = s.profile_left[job] > 0 and s.iterations_left[job] == s.iterations[job] and s.part[job] <= 1
    return 1.0 if is_first else s.average_weight


@kernel
def book_comm(s, job):
    """Modify `s`: a COMM has ended: count it and measure it."""
    s.net_busy_s += s.comm_cost[job]
    if s.jitter > 0.0:
        measured = s.part_left[job] / comm_part_s(s, job) * s.comm_s[job] * s.comm_error[job]
        s.seen_comm[job] += weight(s, job) * (measured - s.seen_comm[job])


@kernel
def end_part(s, job, now_s):
    """Modify `s`: the present subtask of a job is over, the next one is its present one; True if its iteration is."""
    part = s.part[job]
    s.subtasks += 1
    if s.trace_on:
        _trace(s, job, now_s)
    s.part_step_s[job, part] = now_s - s.part_end_s[job, part]
    s.part_end_s[job, part] = now_s
    is_last = part == last_part(s)
    s.part[job] = 0 if is_last else part + 1
    return is_last


@kernel
def _trace(s, job, now_s):
    if s.trace_count == s.trace_kind.size:
        return
    part = s.part[job]
    kind = COMP
    if part != s.comm:
        kind = COMM if s.comm == MERGED else (PULL if part == 0 else PUSH)
    i = s.trace_count
    s.trace_kind[i], s.trace_job[i] = kind, job
    s.trace_begin_s[i], s.trace_end_s[i] = s.part_begin_s[job], now_s
    s.trace_count += 1
