"""Orders of the queue: a job's key, smaller first, ties by job index (arrival, then place in the trace).

Keys of waiting jobs never change while they wait. Keys of running jobs (preemptive orders, leases) are asked for when
needed. Attained-service queues (2D-LAS, of Tiresias, NSDI'19) pack a level and a place inside it into one key:
within a level all running jobs stand before all waiting ones, a job enters its level at the end, and a job that loses
its GPUs stands before those that waited already.
"""

import math

from ..kernels.codes import LAS, LATEST, LEVEL_SPAN, NW_SENS, RANDOM, RUNNING, RUNNING_BAND, SJF, SRSF, SRTF
from ..kernels.jit import kernel
from ..kernels.random import uniform


@kernel
def left_now(s, job):
    """Iterations left of a job now, running or not."""
    left = s.iterations_left[job]
    if s.status[job] == RUNNING:
        left -= max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
    return left


@kernel
def attained_now_s(s, job):
    """Seconds that a job has held its GPUs, until now."""
    attained = s.attained_s[job]
    if s.status[job] == RUNNING:
        attained += s.now_s - s.started_s[job]
    return attained


@kernel
def plain_key(s, job):
    """Key of a job in the orders without levels."""
    order = s.order
    if order == SJF:
        return s.iterations[job] * s.base_iteration_s[job]
    if order == SRTF:
        return left_now(s, job) * s.base_iteration_s[job]
    if order == SRSF:
        return left_now(s, job) * s.base_iteration_s[job] * s.gpus[job]
    if order == RANDOM:
        return uniform(s.seed, job, 0)
    if order == LAS:  # without thresholds: the attained GPU-seconds themselves
        return s.service_gpu_s[job] if s.auctions else attained_now_s(s, job) * s.gpus[job]
    if order == NW_SENS:
        return nw_sens(s, job)
    if order == LATEST:  # who first started last; who never started (-1) comes last
        return -s.first_start_s[job]
    return s.arrival_s[job]


@kernel
def nw_sens(s, job):
    """Nw_sens of paper dally, Sec. IV-B1: W_compl / (T_run / T_total-ideal-run); 0 for a job that never ran.

    T_run is the time on GPUs. 1: no communication and no other loss so far; lower: slowed down more, so served sooner.
    """
    ran_s = s.ran_s[job] if s.auctions else attained_now_s(s, job)
    if ran_s <= 0.0:
        return 0.0
    completed = 1.0 - left_now(s, job) / s.iterations[job]
    ideal_s = s.compute_iteration_s[job] * s.iterations[job]
    return completed / (ran_s / ideal_s)


@kernel
def has_levels(s):
    """True under discretised attained service."""
    return s.order == LAS and s.n_thresholds > 0


@kernel
def arrival_key(s, job):
    """Modify `s`: key of a job that enters the queue for the first time, or for a reason outside the rule."""
    if not has_levels(s):
        return plain_key(s, job)
    s.last_place += 1
    return s.level[job] * LEVEL_SPAN + s.last_place


@kernel
def is_running_place(s, job, key):
    """True if `key` is a place among the running of the job's level, not among those that wait there."""
    return key < s.level[job] * LEVEL_SPAN + RUNNING_BAND / 2


@kernel
def stopped_key(s, job):
    """Modify `s`: key before all that wait in the level, for a job that lost its GPUs at the instant that ends."""
    s.first_place -= 1
    return s.level[job] * LEVEL_SPAN + s.first_place


@kernel
def running_key(s, job):
    """Key of a running job, comparable with those of waiting jobs.

    Until the instant ends it is also the key of a job that just lost its GPUs: the order is fixed during a pass.
    """
    if has_levels(s):
        return s.run_key[job]
    return plain_key(s, job)


@kernel
def key_now(s, job):
    """Key of a waiting or a running job."""
    return running_key(s, job) if s.status[job] == RUNNING else s.order_key[job]


@kernel
def demoted_key(s, job):
    """Modify `s`: the job belongs to the next level from now on; key of the place at its end."""
    s.level[job] += 1
    s.last_place += 1
    return s.level[job] * LEVEL_SPAN + s.last_place


@kernel
def settle_place(s, job):
    """Modify `s`: a running job takes the last place among the running of its level."""
    s.running_place += 1
    s.run_key[job] = s.level[job] * LEVEL_SPAN + RUNNING_BAND + s.running_place


@kernel
def next_check_s(s, job):
    """Instant of the next demotion of a running job: when GPUs x service reaches the threshold of its level.

    Rounded up to a multiple of `quantum_s`, the resolution at which a scheduler looks (Tiresias' own: 1 s).
    """
    if not has_levels(s) or s.level[job] >= s.n_thresholds:
        return math.inf
    exact = s.started_s[job] + (s.thresholds[s.level[job]] / s.gpus[job] - s.attained_s[job])
    if s.quantum_s > 0.0:
        exact = max(exact, math.ceil(exact / s.quantum_s) * s.quantum_s)
    return max(exact, s.now_s)


@kernel
def demotion_is_due(s, job):
    """True if a job has reached its level's threshold by its last stop, and `check_s` says when it will be noticed."""
    if not has_levels(s) or s.level[job] >= s.n_thresholds:
        return False
    return s.attained_s[job] >= s.thresholds[s.level[job]] / s.gpus[job]


@kernel
def is_leased(s, job):
    """True if a running job may not be stopped or moved: its lease runs; at auctions: it is about to move."""
    if s.auctions:
        return s.next_first_gpu[job] >= 0
    return s.lease_s > 0.0 and s.lease_end_s[job] > s.now_s


@kernel
def restore_cost_s(s, job):
    """Seconds without progress when a job that lost its GPUs, or moves, starts anew."""
    return s.cost_small_s if s.gpus[job] <= s.cost_split else s.cost_large_s
