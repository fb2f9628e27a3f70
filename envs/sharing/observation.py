"""What Sharing-v0 shows of the present: the cluster, and the rows of waiting and of running jobs (columns.py)."""

from ...simulator.base.codes import FREE
from ...simulator.base.tiers import NETWORK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.sharing.berths import excess, memory_of
from ...simulator.sharing.exclusive_gpus import single_gpus
from ..families.job_rows import running_rows, waiting_rows
from ..families.preempt import Preemption, describe, stopping
from ..families.share_offers import scaled_interference, scaled_passes
from ..window import (
    MAX_SLOTS,
    fill_slots,
    ignorance,
    observe_size,
    scale_times,
    scaled_count,
    scaled_gpus,
    scaled_slack,
    scaled_slowdown,
    scaled_time,
)
from .columns import CLUSTER, QUEUE, RUNNING

TIMES_WAITING, TIMES_RUNNING = 5, 4  # features of a waiting and of a running job that are times
FIELDS = (("times", "f8", ((TIMES_WAITING + TIMES_RUNNING) * MAX_SLOTS,)),)  # scratch


@kernel
def look(s, w, m):
    """Modify window `w`: show the jobs of the present."""
    fill_slots(s, w)


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
def observe_cluster(s, w, m, features):
    """Write the cluster, and prepare the times of the rows."""
    _scale_times(s, w)
    asked = 0
    for slot in range(w.waiting_shown):
        asked += s.gpus[w.waiting_job[slot]]
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
def _write_waiting(s, w, m, slot, job, shown):
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
    return True


@kernel
def _write_running(s, w, m, slot, job, shown):
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
    return True


@kernel
def _held_alone(s, job):
    alone = 0
    berth = s.first_gpu[job]
    while berth != FREE:
        alone += s.gpu_load[berth % s.gpu_slot.size] == 1
        berth = s.gpu_next[berth]
    return alone


@kernel
def _describe_stop(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new)
    offer[to.suffered] = shown[of.suffered]
    offer[to.free_after] = scaled_gpus(w, s.free_gpus + _held_alone(s, job))


@kernel
def _may_stop(s, w):
    """True if jobs may be stopped: for others, or to be resized."""
    return w.preemption and (w.elastic or s.waiting > 0)


class SharedPreemption(Preemption):
    """Stop a running job, whose partners keep their GPUs."""

    mark, may_act, acts_beyond = map(staticmethod, stopping(_may_stop))
    describe = staticmethod(_describe_stop)


TABLES = waiting_rows(QUEUE, _write_waiting), running_rows(RUNNING, _write_running)
