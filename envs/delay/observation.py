"""What Delay-v0 shows of the present: the cluster, and the rows of waiting and of running jobs (columns.py).

Only changes are written: a row's constant features are remembered of its job.
"""

import math

from ...policies.dally import timer_s
from ...policies.greedy.greedy_wait import forget, room_s
from ...simulator.base.codes import TIMES_EXACT, TIMES_HIDDEN
from ...simulator.base.tiers import MACHINE, NETWORK, RACK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.numerics.fast_log import log_from_one
from ...simulator.record.state import CLASSES
from ..families.job_rows import running_rows, waiting_rows
from ..families.move import tier_slowdown
from ..families.move_search import most_of, show_running
from ..families.start import TARGETS
from ..window import (
    MAX_SLOTS,
    NO_JOB,
    fill_waiting,
    scaled_count,
    scaled_gpus,
    scaled_slack,
    scaled_slowdown,
    scaled_time,
)
from .columns import CLUSTER, QUEUE, RUNNING

KNOWN = 1024
KNOWN_COLUMNS = QUEUE.machine_wait  # those before it are remembered of a waiting job, as far as they do not change
UNIT_GPUS = 64.0  # of the cluster of which shares are, whatever the cluster at hand
RAN_JOB, RAN_START, RAN_END, RAN_GPUS, RAN_SIZE, RAN_SLOWDOWN = range(6)  # of a running job: itself, times, features
OUTLOOKS = 4  # until a machine, until a rack has room; the timers of both
FIELDS = (
    ("running_order", "i8"),
    ("running_key", "f8", (MAX_SLOTS,)),  # by which the running jobs in the window are ordered
    ("asked", "i8"),  # GPUs that the waiting jobs in the window ask for
    ("most_machine", "i8"),  # the most free GPUs in one machine now
    ("most_rack", "i8"),
    ("written_job", "i8", (MAX_SLOTS,)),  # the jobs whose features stand in waiting slots, and since when they wait;
    ("written_since_s", "f8", (MAX_SLOTS,)),
    ("written_runner", "i8", (MAX_SLOTS,)),  # those in running slots, with start and end
    ("written_start_s", "f8", (MAX_SLOTS,)),
    ("written_end_s", "f8", (MAX_SLOTS,)),
    ("times", "f8", (5 * MAX_SLOTS,)),  # scratch: features that change with the clock,
    ("time_at", "i8"),  # and which is next
    ("known_job", "i4", (KNOWN,)),  # by job modulo KNOWN: the job, or NO_JOB; of a waiting one
    ("known_since_s", "f8", (KNOWN,)),  # since when it waits,
    ("known", "f4", (KNOWN, 16)),  # and its first features; of a running one, in one line of the cache,
    ("ran", "f8", (KNOWN, 8)),  # the numbers RAN_; spare
    ("outlook", "f4", (CLASSES, OUTLOOKS)),  # features of a class: see `_look_out`
    ("outlook_s", "f8", (CLASSES, OUTLOOKS)),  # the same in seconds
    ("outlook_look", "i8", (CLASSES,)),  # and the look that it is of
)


@kernel
def look(s, w, m):
    """Modify window `w`: show the jobs of the present, and how long each class of waiting ones waits for room."""
    if s.known_times != TIMES_EXACT:  # jobs that outlive an estimate have a growing expected end
        forget(s)
    fill_waiting(s, w)
    show_running(s, w)
    w.most_machine = most_of(s.machine_free, s.n_machines)
    w.most_rack = most_of(s.rack_free, s.n_racks)
    w.asked = 0
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        demand = s.demand[job]
        w.asked += s.gpus[job]
        if w.outlook_look[demand] != w.shows:
            w.outlook_look[demand] = w.shows
            _look_out(s, w, job, demand)


@kernel
def _look_out(s, w, job, demand):
    """Modify `w`: features of a waiting job's class: times until machine and rack have room, its delay timers."""
    need = s.gpus[job]
    wait_s = 0.0 if need <= w.most_machine else room_s(s, need, MACHINE) - s.now_s
    _tell(w, demand, 0, wait_s)
    has_room = need <= w.most_rack and s.net_models == 0
    wait_s = 0.0 if has_room else room_s(s, need, RACK) - s.now_s
    _tell(w, demand, 1, wait_s)
    for place in range(2):
        _tell(w, demand, 2 + place, timer_s(s, job, MACHINE + place) if s.timing else 0.0)


@kernel
def _tell(w, demand, place, time_s):
    if w.outlook_s[demand, place] != time_s:
        w.outlook_s[demand, place] = time_s
        w.outlook[demand, place] = scaled_time(w, time_s) if time_s < math.inf else 1.0


@kernel
def _size(gpus):
    return min(1.0, math.log2(1.0 + gpus) / math.log2(1.0 + UNIT_GPUS))


@kernel
def _jobs(s, count):
    return scaled_count(count * UNIT_GPUS / s.n_gpus)


@kernel
def _known(s, w, job):
    """Modify `w`: row of `w.known` with the constant features of a waiting job."""
    row = job & (KNOWN - 1)
    if w.known_job[row] != job or w.known_since_s[row] != s.waiting_since_s[job]:
        w.known_job[row] = job
        w.known_since_s[row] = s.waiting_since_s[job]
        known = w.known[row]
        gpus = s.gpus[job]
        left_s = isolated_left_s(s, job)
        known[QUEUE.present] = 1.0
        known[QUEUE.gpus] = scaled_gpus(w, gpus)
        known[QUEUE.size] = _size(gpus)
        known[QUEUE.time_left] = scaled_time(w, left_s)
        known[QUEUE.service_left] = scaled_time(w, left_s * gpus)
        known[QUEUE.attained] = scaled_time(w, s.attained_s[job] * gpus)
        for target in range(TARGETS):
            known[QUEUE.slowdown_machine + target] = tier_slowdown(s, job, MACHINE + target)
    return row


@kernel
def _ran(s, w, job):
    """Modify window `w`: row of `w.ran` with the constant features of a running job."""
    row = job & (KNOWN - 1)
    ran = w.ran[row]
    if ran[RAN_JOB] != job or ran[RAN_START] != s.started_s[job] or ran[RAN_END] != s.planned_finish_s[job]:
        ran[RAN_JOB] = job
        ran[RAN_START] = s.started_s[job]
        ran[RAN_END] = s.planned_finish_s[job]
        gpus = s.gpus[job]
        ran[RAN_GPUS] = scaled_gpus(w, gpus)
        ran[RAN_SIZE] = _size(gpus)
        ran[RAN_SLOWDOWN] = scaled_slowdown(s.iteration_s[job] / s.base_iteration_s[job])
    return row


@kernel
def _scale_times(s, w):
    """Modify `w.times`: all features that change with the clock, one after the other.

    For each waiting job its time of waiting; for each running one the times since start, since arrival and to its end;
    then for each waiting one that has run before the time since arrival.
    """
    times = w.times
    now_s = s.now_s
    for slot in range(w.waiting_shown):
        times[slot] = now_s - s.waiting_since_s[w.waiting_job[slot]]
    count = w.waiting_shown
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        times[count] = now_s - s.started_s[job]
        times[count + 1] = now_s - s.arrival_s[job]
        times[count + 2] = expected_end_s(s, job) - now_s
        count += 3
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        if s.waiting_since_s[job] != s.arrival_s[job]:
            times[count] = now_s - s.arrival_s[job]
            count += 1
    scale = 1.0 / w.log_horizon
    for i in range(count):
        times[i] = min(1.0, log_from_one(1.0 + max(0.0, times[i])) * scale)


@kernel
def forget_written(w):
    """Modify `w`: the next observation goes into other arrays."""
    for slot in range(w.slots):
        w.written_job[slot] = NO_JOB
    for slot in range(w.running_slots):
        w.written_runner[slot] = NO_JOB


@kernel
def observe_cluster(s, w, m, features):
    """Write the cluster, and prepare the times of the rows."""
    _scale_times(s, w)
    w.time_at = w.waiting_shown
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)
    features[CLUSTER.free] = w.free_share
    features[CLUSTER.down] = scaled_gpus(w, s.down_gpus)
    features[CLUSTER.fragmented] = scaled_gpus(w, s.fragmented_gpus)
    features[CLUSTER.machine_room] = w.most_machine / s.largest_machine
    features[CLUSTER.rack_room] = scaled_gpus(w, w.most_rack)
    features[CLUSTER.waiting] = _jobs(s, s.waiting)
    features[CLUSTER.held] = _jobs(s, s.held)
    features[CLUSTER.running] = _jobs(s, s.running)
    features[CLUSTER.asked] = w.asked / (w.asked + UNIT_GPUS)
    features[CLUSTER.times_known] = s.known_times != TIMES_HIDDEN


@kernel
def _write_waiting(s, w, m, slot, job, shown):
    since_s = s.waiting_since_s[job]
    is_new = w.written_job[slot] != job or w.written_since_s[slot] != since_s
    if is_new:
        w.written_job[slot] = job
        w.written_since_s[slot] = since_s
        known = w.known[_known(s, w, job)]
        for column in range(KNOWN_COLUMNS):
            shown[column] = known[column]
    shown[QUEUE.waited] = shown[QUEUE.age] = w.times[slot]
    if since_s != s.arrival_s[job]:
        shown[QUEUE.age] = w.times[w.time_at + 3 * w.running_shown]
        w.time_at += 1
    shown[QUEUE.has_run] = s.starts[job] > 0
    shown[QUEUE.slack] = scaled_slack(s, w, job)
    outlook = w.outlook[s.demand[job]]
    for place in range(OUTLOOKS):
        shown[KNOWN_COLUMNS + place] = outlook[place]
    return is_new


@kernel
def _write_running(s, w, m, slot, job, shown):
    start_s = s.started_s[job]
    end_s = s.planned_finish_s[job]
    if w.written_runner[slot] != job or w.written_start_s[slot] != start_s or w.written_end_s[slot] != end_s:
        w.written_runner[slot] = job
        w.written_start_s[slot] = start_s
        w.written_end_s[slot] = end_s
        ran = w.ran[_ran(s, w, job)]
        shown[RUNNING.present] = 1.0
        shown[RUNNING.gpus] = ran[RAN_GPUS]
        shown[RUNNING.size] = ran[RAN_SIZE]
        shown[RUNNING.slowdown] = ran[RAN_SLOWDOWN]
    at = w.waiting_shown + 3 * slot
    shown[RUNNING.ran] = w.times[at]
    shown[RUNNING.age] = w.times[at + 1]
    shown[RUNNING.time_left] = w.times[at + 2]
    shown[RUNNING.tier] = shown[RUNNING.better_tier] = s.tier[job] / NETWORK
    shown[RUNNING.slack] = scaled_slack(s, w, job)
    machine = s.gpu_machine[s.first_gpu[job]]
    rack = s.machine_rack[machine]
    shown[RUNNING.machine_free] = s.machine_free[machine] / s.largest_machine
    shown[RUNNING.rack_free] = s.rack_free[rack] / s.largest_rack
    return True


@kernel
def _leave_waiting(w, slot):
    w.written_job[slot] = NO_JOB


@kernel
def _leave_running(w, slot):
    w.written_runner[slot] = NO_JOB


TABLES = (
    waiting_rows(QUEUE, _write_waiting, _leave_waiting),
    running_rows(RUNNING, _write_running, _leave_running),
)
