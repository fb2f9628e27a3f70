"""Features of the present, written by one kernel: what `Sharing-v0` shows to an agent.

Counts are shares of the cluster; times and services t (seconds, GPU-seconds) are log1p(t) / log1p(horizon), slowdowns f
log(f) / log(1000), interference ratios xi log(xi) / log(10), all cut at 1; a slack t, which may be below 0, is 1/2 + or
- half of what |t| would be; memory is a share of a GPU's, and 1 is left where it has no limit. Everything lies in
[0, 1]; rows without a job, and candidates that are not legal, are zero.
"""

from ...simulator.base.codes import FREE
from ...simulator.base.tiers import NETWORK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.lifecycle.resizing import wider_passes
from ...simulator.sharing.berths import excess, memory_of
from ...simulator.sharing.exclusive_gpus import single_gpus
from ..window import (
    ignorance,
    observe_size,
    running_candidate,
    scaled_count,
    scaled_slack,
    scaled_slowdown,
    scaled_time,
    waiting_candidate,
)
from .gangs import PARTNER_KIND
from .sharing_offers import (
    FREE_AFTER,
    OFFER,
    OFFER_COLUMNS,
    TIME_LEFT,
    describe_wider,
    scaled_interference,
    scaled_passes,
)
from .sharing_window import PER_RUNNING, PREEMPT_KIND, RESIZE_KIND, starts_of

CLUSTER = (
    "time since the first arrival",
    "free GPUs",
    "GPUs that hold one job",
    "GPUs that hold several",
    "GPUs on failed machines",
    "free GPUs on partly used machines",
    "most free GPUs in one machine, of the largest machine",
    "waiting jobs w: w / (w + 32)",
    "held jobs",
    "running jobs",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "GPUs d asked in the window: d / (d + GPUs)",
    "run times: 0 known, 1/2 estimated, 1 not known: what counts them is 0",
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
    "1: it has run before",
    "log2(samples a GPU) / 16",
    "log2(passes of an iteration on an empty GPU) / 16",
    "memory that it takes of an empty GPU",
    "interference that it would suffer, the mean over running jobs",
    "interference that they would suffer, their mean",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
RUNNING = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time on these GPUs",
    "time since it arrived",
    "time to its end as it runs now",
    "work left, alone on its GPUs",
    "slowdown now",
    "interference now",
    "tier now / 3",
    "GPUs that it holds alone, of its own",
    "log2(passes of an iteration) / 16",
    "memory left on its first GPU",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
KINDS = (
    "1: legal",
    "1: advance",
    "1: start",
    "1: hold",
    "1: preempt",
    "1: resize",
    "1: on free GPUs",
    "1: beside the best partners",
    "1: beside those that fit first",
    "1: beside one partner",
    "1: the second part of the action means something",
)
CANDIDATES = (*KINDS, *OFFER, "GPUs")
QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
START_COLUMN, HOLD_COLUMN, PREEMPT_COLUMN, RESIZE_COLUMN, FREE_COLUMN, SECOND_COLUMN = 2, 3, 4, 5, 6, 10
FIRST_OFFER = len(KINDS)
GPUS_COLUMN, FREE_AFTER_COLUMN = CANDIDATE_COLUMNS - 1, FIRST_OFFER + FREE_AFTER


@kernel
def observe(s, w, features):
    """Write all features, float32: cluster, queue, running and candidates, row by row."""
    features[:] = 0.0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    candidates = running + w.running_slots * RUNNING_COLUMNS
    features[candidates] = w.legal[0]
    features[candidates + 1] = w.legal[0]
    asked = _observe_queue(s, w, features, queue, candidates + CANDIDATE_COLUMNS)
    candidates += running_candidate(w, 0, 0) * CANDIDATE_COLUMNS
    _observe_running(s, w, features, running, candidates)
    _observe_cluster(s, w, features, asked)


@kernel
def _observe_cluster(s, w, features, asked):
    most_free = 0
    for machine in range(s.n_machines):
        most_free = max(most_free, s.machine_free[machine])
    gpus = s.n_gpus
    features[0] = scaled_time(w, s.now_s - s.start_s)
    features[1] = s.free_gpus / gpus
    features[2] = single_gpus(s) / gpus
    features[3] = s.shared_gpus / gpus
    features[4] = s.down_gpus / gpus
    features[5] = s.fragmented_gpus / gpus
    features[6] = most_free / s.largest_machine
    features[7] = scaled_count(s.waiting)
    features[8] = scaled_count(s.held)
    features[9] = scaled_count(s.running)
    features[10] = s.next_arrival / s.n_jobs
    features[11] = s.done / s.n_jobs
    features[12] = asked / (asked + gpus)
    features[13] = ignorance(s)


@kernel
def _observe_queue(s, w, features, row, candidate):
    """Write the waiting jobs from `row` on, and their candidates; returns the GPUs that they ask."""
    asked = 0
    width = w.per_waiting * CANDIDATE_COLUMNS
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        asked += s.gpus[job]
        _observe_waiting(s, w, features[row : row + QUEUE_COLUMNS], job)
        _observe_starts(s, w, features[candidate : candidate + width], slot, job)
        row += QUEUE_COLUMNS
        candidate += width
    return asked


@kernel
def _observe_waiting(s, w, shown, job):
    observe_size(s, shown, job)
    left_s = isolated_left_s(s, job)
    sub_batch = max(1, s.sub_batch[job])
    shown[3] = scaled_time(w, s.now_s - s.waiting_since_s[job])
    shown[4] = scaled_time(w, s.now_s - s.arrival_s[job])
    shown[5] = scaled_time(w, left_s)
    shown[6] = scaled_time(w, left_s * s.gpus[job])
    shown[7] = scaled_time(w, s.attained_s[job] * s.gpus[job])
    shown[8] = s.starts[job] > 0
    shown[9] = scaled_passes(s.batch[job])
    shown[10] = scaled_passes(-(-s.batch[job] // sub_batch))
    shown[11] = min(1.0, memory_of(s, job, sub_batch) / s.gpu_memory)
    suffered = caused = 0.0
    for i in range(s.running):
        suffered += excess(s, job, s.runner[i])
        caused += excess(s, s.runner[i], job)
    running = max(1, s.running)
    shown[12] = scaled_interference(1.0 + suffered / running)
    shown[13] = scaled_interference(1.0 + caused / running)
    shown[14] = scaled_slack(s, w, job)


@kernel
def _observe_starts(s, w, offered, slot, job):
    starts = starts_of(w)
    first = waiting_candidate(w, slot, 0)
    share = s.gpus[job] / s.n_gpus
    at = 0
    for kind in range(starts):
        if w.legal[first + kind]:
            offer = w.offer[slot, kind]
            offered[at] = offered[at + START_COLUMN] = offered[at + SECOND_COLUMN] = 1.0
            offered[at + FREE_COLUMN + min(kind, PARTNER_KIND)] = 1.0
            for column in range(OFFER_COLUMNS):
                offered[at + FIRST_OFFER + column] = offer[column]
            offered[at + GPUS_COLUMN] = share
        at += CANDIDATE_COLUMNS
    if w.legal[first + starts]:
        offered[at] = offered[at + HOLD_COLUMN] = 1.0
        offered[at + FIRST_OFFER + TIME_LEFT] = scaled_time(w, isolated_left_s(s, job))
        offered[at + GPUS_COLUMN] = share
        offered[at + FREE_AFTER_COLUMN] = s.free_gpus / s.n_gpus


@kernel
def _observe_running(s, w, features, row, candidate):
    width = PER_RUNNING * CANDIDATE_COLUMNS
    first = running_candidate(w, 0, 0)
    for slot in range(w.running_shown):
        shown = features[row : row + RUNNING_COLUMNS]
        _observe_runner(s, w, shown, w.running_job[slot])
        for kind in range(PER_RUNNING):
            if w.legal[first + kind]:
                at = candidate + kind * CANDIDATE_COLUMNS
                _observe_change(s, w, shown, features[at : at + CANDIDATE_COLUMNS], w.running_job[slot], kind)
        row += RUNNING_COLUMNS
        candidate += width
        first += PER_RUNNING


@kernel
def _observe_runner(s, w, shown, job):
    observe_size(s, shown, job)
    left_s = max(0.0, expected_end_s(s, job) - s.now_s)
    shown[3] = scaled_time(w, s.now_s - s.started_s[job])
    shown[4] = scaled_time(w, s.now_s - s.arrival_s[job])
    shown[5] = scaled_time(w, left_s)
    shown[6] = scaled_time(w, left_s / s.iteration_s[job] * s.solo_s[job])
    shown[7] = scaled_slowdown(s.iteration_s[job] / s.base_iteration_s[job])
    shown[8] = scaled_interference(s.iteration_s[job] / s.solo_s[job])
    shown[9] = s.tier[job] / NETWORK
    shown[10] = _held_alone(s, job) / s.gpus[job]
    shown[11] = scaled_passes(-(-s.batch[job] // s.sub_batch[job]))
    used = s.gpu_memory_used[s.first_gpu[job] % s.gpu_slot.size]
    shown[12] = max(0.0, 1.0 - used / s.gpu_memory)
    shown[13] = scaled_slack(s, w, job)


@kernel
def _held_alone(s, job):
    alone = 0
    berth = s.first_gpu[job]
    while berth != FREE:
        alone += s.gpu_load[berth % s.gpu_slot.size] == 1
        berth = s.gpu_next[berth]
    return alone


@kernel
def _observe_change(s, w, shown, offered, job, kind):
    """Write a candidate of a running job, from its row; for a resize, with the largest passes that fit."""
    offered[0] = 1.0
    offered[PREEMPT_COLUMN if kind == PREEMPT_KIND else RESIZE_COLUMN] = 1.0
    offered[FIRST_OFFER] = shown[9]
    offered[FIRST_OFFER + 1] = shown[7]
    offered[FIRST_OFFER + 2] = shown[8]
    offered[FIRST_OFFER + TIME_LEFT] = shown[5]
    offered[GPUS_COLUMN] = shown[1]
    freed = _held_alone(s, job) if kind == PREEMPT_KIND else 0
    offered[FREE_AFTER_COLUMN] = (s.free_gpus + freed) / s.n_gpus
    if kind == RESIZE_KIND:
        offered[SECOND_COLUMN] = 1.0
        if not w.elastic:
            offer = offered[FIRST_OFFER : FIRST_OFFER + OFFER_COLUMNS]
            describe_wider(s, w, job, wider_passes(s, job), offer)


@kernel
def write_mask(w, mask):
    """Write the flat mask, int8 (candidates + exponents,): the union over legal candidates for the second part."""
    count = mask.size - w.n_exponents
    for i in range(count):
        mask[i] = w.legal[i]
    most = w.n_exponents - 1
    first = min(w.least_exponent, most)
    last = min(w.most_exponent, most)
    if w.least_exponent > w.most_exponent:  # nothing can start
        first = last = 0
    for exponent in range(w.n_exponents):
        mask[count + exponent] = first <= exponent <= last
