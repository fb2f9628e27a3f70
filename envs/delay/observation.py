"""Features of the present, written by one kernel: what `Delay-v0` shows to an agent.

Counts are shares of the cluster; times and services t (seconds, GPU-seconds) are log1p(t) / log1p(horizon), cut at 1; a
slowdown f is log(f) / log(1000), cut at 1. Everything lies in [0, 1]; rows without a job, and candidates that are not
legal, are zero.
"""

from __future__ import annotations

import math

from ...simulator.kernels.jit import kernel
from ...simulator.tiers import MACHINE, NETWORK, RACK
from .window import HOLD_KIND, KNOWN, LOG_WORST, NO_JOB, PER_RUNNING, PER_WAITING, TARGETS, scaled_slowdown

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
    "time to its end at this placement",
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
    "run time left: on these GPUs (start), isolated (hold), until its end (running)",
    "GPUs",
    "GPUs that would be free afterwards",
    "GPUs left free on the gang's machine, of the largest machine; 0 beyond one machine",
)
QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
HOLD_COLUMN = CANDIDATES.index("1: hold")
CROWD = 32.0  # a queue of so many jobs reads 0.5


@kernel
def _scaled(w, value):
    # Twice as fast as log1p, and the same in float32: what is below a nanosecond reads 0 either way.
    return min(1.0, math.log(1.0 + max(0.0, value)) / w.log_horizon)


@kernel
def _crowd(count):
    return count / (count + CROWD)


@kernel
def _slowdown(s, job, tier):
    return scaled_slowdown(s.tier_factor[s.profile[job], tier])


@kernel
def _known(s, w, job):
    """Modify `w`: row of `w.known` with the features of a waiting job that do not change while it waits.

    Logarithms are most of the cost of an observation, and a job stays in the window for many steps.
    """
    row = job % KNOWN
    if w.known_job[row] != job or w.known_since_s[row] != s.waiting_since_s[job]:
        w.known_job[row] = job
        w.known_since_s[row] = s.waiting_since_s[job]
        gpus = s.gpus[job]
        left_s = s.iterations_left[job] * s.base_iteration_s[job]
        known = w.known[row]
        known[0] = math.log2(1.0 + gpus) / math.log2(1.0 + s.n_gpus)
        known[1] = _scaled(w, left_s)
        known[2] = _scaled(w, left_s * gpus)
        known[3] = _scaled(w, s.attained_s[job] * gpus)
        known[4] = _slowdown(s, job, MACHINE)
        known[5] = _slowdown(s, job, RACK)
        known[6] = _slowdown(s, job, NETWORK)
        w.known_at_s[row] = -1.0
    if w.known_at_s[row] != s.now_s:
        w.known_at_s[row] = s.now_s
        ages = w.known_ages[row]
        ages[0] = ages[1] = _scaled(w, s.now_s - s.waiting_since_s[job])
        if s.waiting_since_s[job] != s.arrival_s[job]:
            ages[1] = _scaled(w, s.now_s - s.arrival_s[job])
    return row


@kernel
def _ran(s, w, job):
    """Modify `w`: row of `w.ran` with the logarithms of a running job."""
    row = job % KNOWN
    if (
        w.ran_at_s[row] != s.now_s
        or w.ran_job[row] != job
        or w.ran_since_s[row] != s.started_s[job]
        or w.ran_until_s[row] != s.planned_finish_s[job]
    ):
        w.ran_at_s[row] = s.now_s
        w.ran_job[row] = job
        w.ran_since_s[row] = s.started_s[job]
        w.ran_until_s[row] = s.planned_finish_s[job]
        ran = w.ran[row]
        ran[0] = math.log2(1.0 + s.gpus[job]) / math.log2(1.0 + s.n_gpus)
        ran[1] = ran[2] = _scaled(w, s.now_s - s.started_s[job])
        if s.started_s[job] != s.arrival_s[job]:
            ran[2] = _scaled(w, s.now_s - s.arrival_s[job])
        ran[3] = _scaled(w, s.planned_finish_s[job] - s.now_s)
        ran[4] = scaled_slowdown(s.iteration_s[job] / s.base_iteration_s[job])
    return row


@kernel
def observe(s, w, features):
    """Write all features, float32: cluster, queue, running and candidates, one after the other, row by row.

    `features` holds what the last call wrote there, or zeros; rows and candidates that were empty and are so still are
    not touched, which is most of the memory.
    """
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    candidates = running + w.running_slots * RUNNING_COLUMNS
    features[candidates] = w.legal[0]
    features[candidates + 1] = w.legal[0]
    asked = _observe_queue(s, w, features, queue, candidates)
    _observe_running(s, w, features, running, candidates)
    _observe_cluster(s, w, features, asked)


@kernel
def _observe_cluster(s, w, features, asked):
    most_machine = 0
    for machine in range(s.n_machines):
        most_machine = max(most_machine, s.machine_free[machine])
    most_rack = 0
    for rack in range(s.n_racks):
        most_rack = max(most_rack, s.rack_free[rack])
    gpus = s.n_gpus
    features[0] = _scaled(w, s.now_s - s.start_s)
    features[1] = s.free_gpus / gpus
    features[2] = s.down_gpus / gpus
    features[3] = s.fragmented_gpus / gpus
    features[4] = most_machine / s.largest_machine
    features[5] = most_rack / gpus
    features[6] = _crowd(s.waiting)
    features[7] = _crowd(s.held)
    features[8] = _crowd(s.running)
    features[9] = s.next_arrival / s.n_jobs
    features[10] = s.done / s.n_jobs
    features[11] = asked / (asked + gpus)


@kernel
def _observe_queue(s, w, features, row, candidates):
    """Write the rows of the waiting jobs from `row` on, and their candidates; returns the GPUs that they ask."""
    asked = 0
    candidate = candidates + CANDIDATE_COLUMNS
    for slot in range(w.slots):
        job = w.waiting_job[slot]
        if job == NO_JOB:
            if features[row] == 0.0:
                break
            _clear(features, row, QUEUE_COLUMNS)
            for _ in range(PER_WAITING):
                _clear_candidate(features, candidate)
                candidate += CANDIDATE_COLUMNS
            row += QUEUE_COLUMNS
            continue
        gpus = s.gpus[job]
        asked += gpus
        known = _known(s, w, job)
        features[row] = 1.0
        features[row + 1] = gpus / s.n_gpus
        features[row + 2] = w.known[known, 0]
        features[row + 3] = w.known_ages[known, 0]
        features[row + 4] = w.known_ages[known, 1]
        for column in range(6):
            features[row + 5 + column] = w.known[known, 1 + column]
        features[row + 11] = s.starts[job] > 0
        first = 1 + PER_WAITING * slot
        for target in range(TARGETS):
            if w.legal[first + target]:
                tier = w.slot_tier[slot, target]
                left = w.slot_left[slot, target]
                slowdown = w.slot_slowdown[slot, target] if s.net_models > 0 else w.known[known, 4 + target]
                _observe_candidate(s, features, candidate, 2, row, slowdown, s.free_gpus - gpus)
                features[candidate + 8] = min(1.0, features[row + 5] + slowdown * LOG_WORST / w.log_horizon)
                features[candidate + 6] = tier / NETWORK
                features[candidate + 11] = left / s.largest_machine
            else:
                _clear_candidate(features, candidate)
            candidate += CANDIDATE_COLUMNS
        if w.legal[first + HOLD_KIND]:
            _observe_candidate(s, features, candidate, HOLD_COLUMN, row, 0.0, s.free_gpus)
        else:
            _clear_candidate(features, candidate)
        candidate += CANDIDATE_COLUMNS
        row += QUEUE_COLUMNS
    return asked


@kernel
def _clear(features, first, count):
    for column in range(count):
        features[first + column] = 0.0


@kernel
def _clear_candidate(features, candidate):
    if features[candidate] != 0.0:
        _clear(features, candidate, CANDIDATE_COLUMNS)


@kernel
def _observe_candidate(s, features, candidate, kind, row, slowdown, free_after):
    """Write a candidate; the place says the kind, so no other kind's columns are to be cleared."""
    features[candidate] = 1.0
    features[candidate + kind] = 1.0
    features[candidate + 7] = slowdown
    features[candidate + 8] = features[row + 5]
    features[candidate + 9] = features[row + 1]
    features[candidate + 10] = free_after / s.n_gpus


@kernel
def _observe_running(s, w, features, row, candidates):
    first = 1 + PER_WAITING * w.slots
    for slot in range(w.running_slots):
        job = w.running_job[slot]
        candidate = candidates + first * CANDIDATE_COLUMNS
        if job == NO_JOB:
            if features[row] == 0.0:
                break
            _clear(features, row, RUNNING_COLUMNS)
            for i in range(PER_RUNNING):
                _clear_candidate(features, candidate + i * CANDIDATE_COLUMNS)
        else:
            _observe_runner(s, w, features, row, candidate, slot, job)
        first += PER_RUNNING
        row += RUNNING_COLUMNS


@kernel
def _observe_runner(s, w, features, row, candidate, slot, job):
    """Write the row of a running job, and its candidates from `candidate` on."""
    gpus = s.gpus[job]
    ran = _ran(s, w, job)
    slowdown = w.ran[ran, 4]
    tier = s.tier[job] / NETWORK
    features[row] = 1.0
    features[row + 1] = gpus / s.n_gpus
    for column in range(4):
        features[row + 2 + column] = w.ran[ran, column]
    features[row + 6] = slowdown
    features[row + 7] = tier
    features[row + 8] = tier
    first = 1 + PER_WAITING * w.slots + PER_RUNNING * slot
    if w.legal[first]:
        _observe_candidate(s, features, candidate, 4, row, slowdown, s.free_gpus + gpus)
        features[candidate + 6] = tier
    else:
        _clear_candidate(features, candidate)
    candidate += CANDIDATE_COLUMNS
    if w.legal[first + 1]:
        slowdown = w.move_slowdown[slot] if s.net_models > 0 else _slowdown(s, job, w.move_tier[slot])
        _observe_candidate(s, features, candidate, 5, row, slowdown, s.free_gpus)
        features[candidate + 6] = w.move_tier[slot] / NETWORK
        features[row + 8] = w.move_tier[slot] / NETWORK
    else:
        _clear_candidate(features, candidate)


@kernel
def write_mask(w, mask):
    """Write the flat mask, int8 (candidates + delays,): the union over legal candidates for the second part."""
    count = mask.size - w.n_delays
    holdable = False
    for i in range(count):
        mask[i] = w.legal[i]
    for slot in range(w.slots):
        holdable |= w.legal[1 + PER_WAITING * slot + HOLD_KIND] != 0
    mask[count] = 1
    for delay in range(1, w.n_delays):
        mask[count + delay] = holdable
