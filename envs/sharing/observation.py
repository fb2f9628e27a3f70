"""Features of the present, written by one kernel: the columns of columns.py."""

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
    scale_times,
    scaled_count,
    scaled_slack,
    scaled_slowdown,
    scaled_time,
    waiting_candidate,
)
from .columns import CANDIDATES, CLUSTER, OFFER, QUEUE, RUNNING
from .gangs import PARTNER_KIND
from .sharing_offers import describe_wider, scaled_interference, scaled_passes
from .sharing_window import PER_RUNNING, PREEMPT_KIND, RESIZE_KIND, TIMES_RUNNING, TIMES_WAITING, starts_of

QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
OFFER_COLUMNS = len(OFFER)
FIRST_OFFER = CANDIDATES.tier  # the columns of OFFER begin there


@kernel
def observe(s, w, features):
    """Write all features, float32: cluster, queue, running and candidates, row by row."""
    features[:] = 0.0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    candidates = running + w.running_slots * RUNNING_COLUMNS
    features[candidates + CANDIDATES.legal] = w.legal[0]
    features[candidates + CANDIDATES.advance] = w.legal[0]
    _scale_times(s, w)
    asked = _observe_queue(s, w, features, queue, candidates + CANDIDATE_COLUMNS)
    candidates += running_candidate(w, 0, 0) * CANDIDATE_COLUMNS
    _observe_running(s, w, features, running, candidates)
    _observe_cluster(s, w, features, asked)


@kernel
def _scale_times(s, w):
    """Modify `w.times`: what rows show of times, waiting jobs before running ones, in the order of their columns."""
    times = w.times
    at = 0
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        left_s = isolated_left_s(s, job)
        times[at] = s.now_s - s.waiting_since_s[job]
        times[at + 1] = s.now_s - s.arrival_s[job]
        times[at + 2] = left_s
        times[at + 3] = left_s * s.gpus[job]
        times[at + 4] = s.attained_s[job] * s.gpus[job]
        at += TIMES_WAITING
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        left_s = max(0.0, expected_end_s(s, job) - s.now_s)
        times[at] = s.now_s - s.started_s[job]
        times[at + 1] = s.now_s - s.arrival_s[job]
        times[at + 2] = left_s
        times[at + 3] = left_s / s.iteration_s[job] * s.solo_s[job]
        at += TIMES_RUNNING
    scale_times(w, at)


@kernel
def _observe_cluster(s, w, features, asked):
    most_free = 0
    for machine in range(s.n_machines):
        most_free = max(most_free, s.machine_free[machine])
    gpus = s.n_gpus
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)
    features[CLUSTER.free] = s.free_gpus / gpus
    features[CLUSTER.single] = single_gpus(s) / gpus
    features[CLUSTER.shared] = s.shared_gpus / gpus
    features[CLUSTER.down] = s.down_gpus / gpus
    features[CLUSTER.fragmented] = s.fragmented_gpus / gpus
    features[CLUSTER.machine_room] = most_free / s.largest_machine
    features[CLUSTER.waiting] = scaled_count(s.waiting)
    features[CLUSTER.held] = scaled_count(s.held)
    features[CLUSTER.running] = scaled_count(s.running)
    features[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    features[CLUSTER.finished] = s.done / s.n_jobs
    features[CLUSTER.asked] = asked / (asked + gpus)
    features[CLUSTER.times_unknown] = ignorance(s)


@kernel
def _observe_queue(s, w, features, row, candidate):
    """Write the waiting jobs from `row` on, and their candidates; returns the GPUs that they ask."""
    asked = 0
    width = w.per_waiting * CANDIDATE_COLUMNS
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        asked += s.gpus[job]
        shown = features[row : row + QUEUE_COLUMNS]
        _observe_waiting(s, w, shown, slot, job)
        _observe_starts(s, w, shown, features[candidate : candidate + width], slot, job)
        row += QUEUE_COLUMNS
        candidate += width
    return asked


@kernel
def _observe_waiting(s, w, shown, slot, job):
    observe_size(s, shown, job)
    sub_batch = max(1, s.sub_batch[job])
    for i in range(TIMES_WAITING):
        shown[QUEUE.waited + i] = w.times[slot * TIMES_WAITING + i]
    shown[QUEUE.has_run] = s.starts[job] > 0
    shown[QUEUE.samples] = scaled_passes(s.batch[job])
    shown[QUEUE.passes] = scaled_passes(-(-s.batch[job] // sub_batch))
    shown[QUEUE.memory] = min(1.0, memory_of(s, job, sub_batch) / s.gpu_memory)
    suffered = caused = 0.0
    for i in range(s.running):
        suffered += excess(s, job, s.runner[i])
        caused += excess(s, s.runner[i], job)
    running = max(1, s.running)
    shown[QUEUE.suffered] = scaled_interference(1.0 + suffered / running)
    shown[QUEUE.caused] = scaled_interference(1.0 + caused / running)
    shown[QUEUE.slack] = scaled_slack(s, w, job)


@kernel
def _observe_starts(s, w, shown, offered, slot, job):
    starts = starts_of(w)
    first = waiting_candidate(w, slot, 0)
    share = s.gpus[job] / s.n_gpus
    at = 0
    for kind in range(starts):
        if w.legal[first + kind]:
            offer = w.offer[slot, kind]
            offered[at + CANDIDATES.legal] = offered[at + CANDIDATES.start] = 1.0
            offered[at + CANDIDATES.on_free + min(kind, PARTNER_KIND)] = offered[at + CANDIDATES.takes_second] = 1.0
            for column in range(OFFER_COLUMNS):
                offered[at + FIRST_OFFER + column] = offer[column]
            offered[at + CANDIDATES.gpus] = share
        at += CANDIDATE_COLUMNS
    if w.legal[first + starts]:
        offered[at + CANDIDATES.legal] = offered[at + CANDIDATES.hold] = 1.0
        offered[at + CANDIDATES.time_left] = shown[QUEUE.time_left]
        offered[at + CANDIDATES.gpus] = share
        offered[at + CANDIDATES.free_after] = s.free_gpus / s.n_gpus


@kernel
def _observe_running(s, w, features, row, candidate):
    width = PER_RUNNING * CANDIDATE_COLUMNS
    first = running_candidate(w, 0, 0)
    for slot in range(w.running_shown):
        shown = features[row : row + RUNNING_COLUMNS]
        _observe_runner(s, w, shown, slot, w.running_job[slot])
        for kind in range(PER_RUNNING):
            if w.legal[first + kind]:
                at = candidate + kind * CANDIDATE_COLUMNS
                _observe_change(s, w, shown, features[at : at + CANDIDATE_COLUMNS], w.running_job[slot], kind)
        row += RUNNING_COLUMNS
        candidate += width
        first += PER_RUNNING


@kernel
def _observe_runner(s, w, shown, slot, job):
    observe_size(s, shown, job)
    first = w.waiting_shown * TIMES_WAITING + slot * TIMES_RUNNING
    for i in range(TIMES_RUNNING):
        shown[RUNNING.ran + i] = w.times[first + i]
    shown[RUNNING.slowdown] = scaled_slowdown(s.iteration_s[job] / s.base_iteration_s[job])
    shown[RUNNING.suffered] = scaled_interference(s.iteration_s[job] / s.solo_s[job])
    shown[RUNNING.tier] = s.tier[job] / NETWORK
    shown[RUNNING.held_alone] = _held_alone(s, job) / s.gpus[job]
    shown[RUNNING.passes] = scaled_passes(-(-s.batch[job] // s.sub_batch[job]))
    used = s.gpu_memory_used[s.first_gpu[job] % s.gpu_slot.size]
    shown[RUNNING.memory_left] = max(0.0, 1.0 - used / s.gpu_memory)
    shown[RUNNING.slack] = scaled_slack(s, w, job)


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
    offered[CANDIDATES.legal] = 1.0
    offered[CANDIDATES.preempt if kind == PREEMPT_KIND else CANDIDATES.resize] = 1.0
    offered[CANDIDATES.tier] = shown[RUNNING.tier]
    offered[CANDIDATES.slowdown] = shown[RUNNING.slowdown]
    offered[CANDIDATES.suffered] = shown[RUNNING.suffered]
    offered[CANDIDATES.time_left] = shown[RUNNING.time_left]
    offered[CANDIDATES.gpus] = shown[RUNNING.gpus]
    freed = _held_alone(s, job) if kind == PREEMPT_KIND else 0
    offered[CANDIDATES.free_after] = (s.free_gpus + freed) / s.n_gpus
    if kind == RESIZE_KIND:
        offered[CANDIDATES.takes_second] = 1.0
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
