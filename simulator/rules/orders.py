"""Orders of the queue: a job's key, smaller first, ties by job index (arrival, then place in the trace).

Keys of waiting jobs never change while they wait; run times count as far as they are known (remaining_time.py).
Attained-service queues (2D-LAS, of Tiresias, NSDI'19) pack a level and a place inside it into one key: within a level
running jobs come before waiting ones, a job enters its level at the end, and a job that loses its GPUs comes before
those that waited already.

Nw_sens (paper dally) is compared in millionths, against rounding noise. Ties go to the job that asks fewer GPUs, then
to the one that got or lost GPUs longer ago (offer_pass.py). A key packs both. Under auctions the ratio itself counts,
as in the authors' simulator.
"""

import math

from ..base.codes import (
    EDF,
    LAS,
    LATEST,
    LEVEL_SPAN,
    LOGGED,
    MILLIONTHS,
    NW_SENS,
    PLACE_SPAN,
    RANDOM,
    RUNNING,
    RUNNING_BAND,
    SJF,
    SRSF,
    SRTF,
    TURNS,
    WEIGHTED,
)
from ..compiler.jit import kernel
from ..jobs.remaining_time import isolated_left_s, isolated_whole_s, left_now
from ..numerics.random import seed_of, uniform
from ..numerics.rounding import NEAR, rounded


@kernel
def attained_now_s(s, job):
    """Seconds that a job has held its GPUs, until now."""
    attained = s.attained_s[job]
    if s.status[job] == RUNNING:
        attained += s.now_s - s.started_s[job]
    return attained


@kernel
def plain_key(s, job):
    """Key of a job in the orders without levels: what is equal but for rounding is a tie. Paper: tiresias, 2D-LAS."""
    order = s.order
    if order == SJF:
        return rounded(isolated_whole_s(s, job))
    if order == SRTF:
        return rounded(isolated_left_s(s, job))
    if order == SRSF:
        return rounded(isolated_left_s(s, job) * s.gpus[job])
    if order == WEIGHTED:
        return rounded(isolated_left_s(s, job) * s.weight[job])
    if order == RANDOM:
        return uniform(seed_of(s), job, 0)
    if order == LAS:  # without thresholds: the attained GPU-seconds themselves
        return s.service_gpu_s[job] if s.auctions else rounded(attained_now_s(s, job) * s.gpus[job])
    if order == NW_SENS:
        return nw_sens(s, job) if s.auctions else math.floor(nw_sens(s, job) * MILLIONTHS + 0.5) * PLACE_SPAN
    if order == LATEST:  # latest first start first; never started (-1) comes last
        return -s.first_start_s[job]
    if order == EDF:  # no deadline (infinity) comes last, by arrival as all ties
        return s.deadline_s[job]
    if order == LOGGED:
        return s.logged_s[job]
    if order == TURNS:  # the longest wait first; a job stopped now comes last
        return s.now_s if s.status[job] == RUNNING else s.waiting_since_s[job]
    return s.arrival_s[job]


@kernel
def nw_sens(s, job):
    """Nw_sens of paper dally, Sec. IV-B1: W_compl / (T_run / T_total-ideal-run); 0 for a job that never ran.

    T_run is the time on GPUs. 1: no communication and no other loss so far; lower: slowed down more, so served sooner.
    Paper: dally, Sec. IV-B1.
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
def has_places(s):
    """True where the order packs the place among those that entered the queue into the keys of waiting jobs."""
    return s.order == NW_SENS and s.auctions == 0


@kernel
def without_place(key):
    """The millionths of Nw_sens in a key of that order."""
    return math.floor(key / PLACE_SPAN)


@kernel
def arrival_key(s, job):
    """Modify `s`: key of a job that enters the queue for the first time, or for a reason outside the rule."""
    if has_levels(s):
        s.last_place += 1
        return s.level[job] * LEVEL_SPAN + s.last_place
    if has_places(s):
        s.last_place += 1
        return plain_key(s, job) + s.last_place
    return plain_key(s, job)


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
    """Key of a running job, comparable with those of waiting jobs, also of one that lost its GPUs at this instant."""
    if has_levels(s):
        return s.run_key[job]
    if has_places(s):  # behind all that wait and were slowed down as much
        return plain_key(s, job) + (PLACE_SPAN - 1.0)
    return plain_key(s, job)


@kernel
def return_key(s, job):
    """Modify `s`: key of a job that has just lost its GPUs."""
    return arrival_key(s, job) if has_places(s) else running_key(s, job)


@kernel
def key_now(s, job):
    """Key of a waiting or a running job; with slices, running ones come last at a slice's end, else first (LATEST)."""
    if s.order == TURNS and s.status[job] == RUNNING:
        return s.now_s if s.turn_s <= s.now_s else -s.first_start_s[job]
    return running_key(s, job) if s.status[job] == RUNNING else s.order_key[job]


@kernel
def demoted_key(s, job):
    """Modify `s`: the job belongs to the next level from now on; key of the place at its end.

    Paper: tiresias, discretised queues.
    """
    s.level[job] += 1
    s.last_place += 1
    return s.level[job] * LEVEL_SPAN + s.last_place


@kernel
def take_last_place(s, job):
    """Modify `s`: a running job takes the last place among the running of its level."""
    s.running_place += 1
    s.run_key[job] = s.level[job] * LEVEL_SPAN + RUNNING_BAND + s.running_place


@kernel
def next_check_s(s, job):
    """Instant of a running job's next demotion: when GPUs x service reaches its level's threshold, in quanta.

    `quantum_s` is the resolution at which a scheduler looks (Tiresias' own: 1 s). Paper: tiresias, discretised queues.
    """
    if not has_levels(s) or s.level[job] >= s.n_thresholds:
        return math.inf
    exact = s.started_s[job] + (s.thresholds[s.level[job]] / s.gpus[job] - s.attained_s[job])
    if s.quantum_s > 0.0:
        exact = max(exact, math.ceil(exact / s.quantum_s - NEAR) * s.quantum_s)
    return max(exact, s.now_s)


@kernel
def demotion_is_due(s, job):
    """True if a job has reached its level's threshold by its last stop, and `check_s` says when it will be noticed."""
    if not has_levels(s) or s.level[job] >= s.n_thresholds:
        return False
    return s.attained_s[job] >= s.thresholds[s.level[job]] / s.gpus[job] * (1.0 - NEAR)


@kernel
def is_leased(s, job):
    """True if a running job may not be stopped or moved: its lease runs; at auctions: it is about to move."""
    if s.auctions:
        return s.next_first_gpu[job] >= 0
    return s.lease_s > 0.0 and s.lease_end_s[job] > s.now_s


@kernel
def lease_is_over(s, job):
    """True if the lease of a running job has ended, and no other has begun."""
    return s.lease_s > 0.0 and s.auctions == 0 and s.lease_end_s[job] <= s.now_s


@kernel
def restore_cost_s(s, job):
    """Seconds without progress when a job that lost its GPUs, or moves, starts anew."""
    return s.cost_small_s if s.gpus[job] <= s.cost_split else s.cost_large_s


@kernel
def comes_before(s, a, b):
    """Whether job `a` is offered GPUs before `b`: by key; at auctions, and for Nw_sens, ties go by the last change.

    In order of Nw_sens fewer GPUs come before that.
    """
    key_a = key_now(s, a)
    key_b = key_now(s, b)
    if has_places(s):
        key_a = without_place(key_a)
        key_b = without_place(key_b)
    if key_a != key_b:
        return key_a < key_b
    if has_places(s) and s.gpus[a] != s.gpus[b]:
        return s.gpus[a] < s.gpus[b]
    if s.auctions or has_places(s):
        since_a = _last_assignment_s(s, a)
        since_b = _last_assignment_s(s, b)
        if since_a != since_b:
            return since_a < since_b
    return a < b


@kernel
def _last_assignment_s(s, job):
    return s.begun_s[job] if s.status[job] == RUNNING else s.waiting_since_s[job]
