"""Features of the present, written by one kernel: what `Delay-v0` shows to an agent.

Counts are shares of the cluster; times and services t (seconds, GPU-seconds) are log1p(t) / log1p(horizon), cut at 1; a
slowdown f is 1 - 1/f. Everything lies in [0, 1]; rows without a job, and candidates that are not legal, are zero.
"""

from __future__ import annotations

import math

from ...simulator.kernels.jit import kernel
from ...simulator.rules.orders import attained_now_s, left_now
from ...simulator.tiers import MACHINE, NETWORK, RACK
from .window import HOLD_KIND, KNOWN, NO_JOB, PER_RUNNING, PER_WAITING, TARGETS

CLUSTER = (
    "time since the first arrival",
    "free GPUs",
    "GPUs on failed machines",
    "free GPUs on partly used machines",
    "most free GPUs in one machine, of the largest machine",
    "most free GPUs in one rack",
    "waiting jobs w: w / (w + 32)",
    "held jobs",
    "running jobs",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "GPUs d asked in the window: d / (d + GPUs)",
)
QUEUE = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time since it arrived or lost its GPUs",
    "time since it arrived",
    "isolated run time left",
    "isolated GPU-seconds left",
    "GPU-seconds attained",
    "slowdown inside a machine",
    "slowdown inside a rack",
    "slowdown across racks",
    "1: it has run before",
)
RUNNING = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time on these GPUs",
    "time since it arrived",
    "isolated run time left",
    "time to its end at this placement",
    "GPU-seconds attained",
    "slowdown now",
    "tier now / 3",
    "tier that it could move to now / 3",
)
CANDIDATES = (
    "1: legal",
    "1: advance",
    "1: start",
    "1: hold",
    "1: preempt",
    "1: migrate",
    "tier of the gang / 3",
    "slowdown of the gang",
    "run time left at that tier",
    "GPUs",
    "GPUs that would be free afterwards",
    "GPUs left free on the gang's machine, of the largest machine; 0 beyond one machine",
)
QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
STARTS = 1 << 32  # more than any number of starts
CROWD = 32.0  # a queue of so many jobs reads 0.5


@kernel
def _scaled(w, value):
    return min(1.0, math.log1p(max(0.0, value)) / w.log_horizon)


@kernel
def _crowd(count):
    return count / (count + CROWD)


@kernel
def _slowdown(s, job, tier):
    return 1.0 - 1.0 / s.tier_factor[s.profile[job], tier]


@kernel
def observe(s, w, cluster, queue, running, candidates):
    """Write all features; float32 arrays of 12, slots x 12, running slots x 11 and candidates x 12 numbers, row by row."""
    queue[:] = 0.0
    running[:] = 0.0
    candidates[:] = 0.0
    candidates[0] = w.legal[0]
    candidates[1] = w.legal[0]
    candidate_rows = candidates.reshape((candidates.size // CANDIDATE_COLUMNS, CANDIDATE_COLUMNS))
    asked = _observe_queue(s, w, queue.reshape((w.slots, QUEUE_COLUMNS)), candidate_rows)
    _observe_running(s, w, running.reshape((w.running_slots, RUNNING_COLUMNS)), candidate_rows)
    most_machine = 0
    for machine in range(s.n_machines):
        most_machine = max(most_machine, s.machine_free[machine])
    most_rack = 0
    for rack in range(s.n_racks):
        most_rack = max(most_rack, s.rack_free[rack])
    gpus = s.n_gpus
    cluster[0] = _scaled(w, s.now_s - s.start_s)
    cluster[1] = s.free_gpus / gpus
    cluster[2] = s.down_gpus / gpus
    cluster[3] = s.fragmented_gpus / gpus
    cluster[4] = most_machine / s.largest_machine
    cluster[5] = most_rack / gpus
    cluster[6] = _crowd(s.waiting)
    cluster[7] = _crowd(s.held)
    cluster[8] = _crowd(s.running)
    cluster[9] = s.next_arrival / s.n_jobs
    cluster[10] = s.done / s.n_jobs
    cluster[11] = asked / (asked + gpus)


@kernel
def _observe_queue(s, w, queue, candidates):
    log_gpus = math.log2(1.0 + s.n_gpus)
    asked = 0
    for slot in range(w.slots):
        job = w.waiting_job[slot]
        if job == NO_JOB:
            break
        gpus = s.gpus[job]
        asked += gpus
        left_s = s.iterations_left[job] * s.base_iteration_s[job]
        row = queue[slot]
        known = job % KNOWN
        if w.known_job[known] != job * STARTS + s.starts[job]:
            w.known_job[known] = job * STARTS + s.starts[job]
            left_s = s.iterations_left[job] * s.base_iteration_s[job]
            w.known[known, 0] = math.log2(1.0 + gpus) / log_gpus
            w.known[known, 1] = _scaled(w, left_s)
            w.known[known, 2] = _scaled(w, left_s * gpus)
            w.known[known, 3] = _scaled(w, s.attained_s[job] * gpus)
        row[0] = 1.0
        row[1] = gpus / s.n_gpus
        row[2] = w.known[known, 0]
        row[3] = _scaled(w, s.now_s - s.waiting_since_s[job])
        row[4] = row[3]
        if s.waiting_since_s[job] != s.arrival_s[job]:
            row[4] = _scaled(w, s.now_s - s.arrival_s[job])
        row[5] = w.known[known, 1]
        row[6] = w.known[known, 2]
        row[7] = w.known[known, 3]
        row[8] = _slowdown(s, job, MACHINE)
        row[9] = _slowdown(s, job, RACK)
        row[10] = _slowdown(s, job, NETWORK)
        row[11] = s.starts[job] > 0
        first = 1 + PER_WAITING * slot
        for target in range(TARGETS):
            if w.legal[first + target]:
                tier = w.class_tier[s.demand[job], target]
                left = w.class_left[s.demand[job], target]
                _observe_gang(s, w, candidates[first + target], job, 2, tier, s.free_gpus - gpus)
                candidates[first + target, 11] = left / s.largest_machine
        if w.legal[first + HOLD_KIND]:
            hold = candidates[first + HOLD_KIND]
            hold[0] = 1.0
            hold[3] = 1.0
            hold[9] = row[1]
            hold[10] = s.free_gpus / s.n_gpus
    return asked


@kernel
def _observe_gang(s, w, row, job, kind, tier, free_after):
    row[0] = 1.0
    row[kind] = 1.0
    row[6] = tier / NETWORK
    row[7] = _slowdown(s, job, tier)
    factor = s.tier_factor[s.profile[job], tier]
    row[8] = _scaled(w, left_now(s, job) * s.base_iteration_s[job] * factor)
    row[9] = s.gpus[job] / s.n_gpus
    row[10] = free_after / s.n_gpus


@kernel
def _observe_running(s, w, running, candidates):
    log_gpus = math.log2(1.0 + s.n_gpus)
    for slot in range(w.running_slots):
        job = w.running_job[slot]
        if job == NO_JOB:
            break
        gpus = s.gpus[job]
        left = left_now(s, job)
        row = running[slot]
        row[0] = 1.0
        row[1] = gpus / s.n_gpus
        row[2] = math.log2(1.0 + gpus) / log_gpus
        row[3] = _scaled(w, s.now_s - s.started_s[job])
        row[4] = _scaled(w, s.now_s - s.arrival_s[job])
        row[5] = _scaled(w, left * s.base_iteration_s[job])
        row[6] = _scaled(w, s.planned_finish_s[job] - s.now_s)
        row[7] = _scaled(w, attained_now_s(s, job) * gpus)
        row[8] = _slowdown(s, job, s.tier[job])
        row[9] = s.tier[job] / NETWORK
        first = 1 + PER_WAITING * w.slots + PER_RUNNING * slot
        row[10] = row[9]
        if w.legal[first]:
            _observe_gang(s, w, candidates[first], job, 4, s.tier[job], s.free_gpus + gpus)
        if w.legal[first + 1]:
            row[10] = w.move_tier[slot] / NETWORK
            _observe_gang(s, w, candidates[first + 1], job, 5, w.move_tier[slot], s.free_gpus)


@kernel
def write_mask(w, mask):
    """Write the flat mask, uint8 (candidates + delays,): the union over legal candidates for the second part."""
    count = mask.size - w.n_delays
    holdable = False
    for i in range(count):
        mask[i] = w.legal[i]
    for slot in range(w.slots):
        holdable |= w.legal[1 + PER_WAITING * slot + HOLD_KIND] != 0
    mask[count] = 1
    for delay in range(1, w.n_delays):
        mask[count + delay] = holdable


