"""Features of the present, written by one kernel: what `Delay-v0` shows to an agent.

GPUs are counted in units of 64, cut at 1, whatever the size of the cluster, so that what an agent has learned on one
size means the same on another: 32 free GPUs are as much room on 1,024 GPUs as on 64. Numbers of jobs n read
n' / (n' + 32), with n' = 64 n / GPUs of the cluster. Times and services t (seconds, GPU-seconds) are log1p(t) /
log1p(horizon), cut at 1; a slowdown f is log(f) / log(1000), cut at 1; a slack t, which may be below 0, is 1/2 + or -
half of what |t| would be. Run times are what is known of them (`estimates`): 0, with a flag, where nothing is.
Everything lies in [0, 1]; rows without a job, and candidates that are not legal, are zero. Nothing says how many jobs
are still to come.
"""

import math

from ...simulator.base.codes import TIMES_HIDDEN
from ...simulator.base.tiers import MACHINE, NETWORK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.numerics.fast_log import log_from_one
from ..window import (
    LOG_WORST,
    NO_JOB,
    running_candidate,
    scaled_count,
    scaled_slack,
    scaled_slowdown,
    scaled_time,
    waiting_candidate,
)
from .delay_window import HOLD_KIND, HOLD_TIERS, KNOWN, OUTLOOKS, PER_RUNNING, PER_WAITING, ROOM_KIND, TARGETS

CLUSTER = (
    "time since the first arrival",
    "free GPUs",
    "GPUs on failed machines",
    "free GPUs on partly used machines",
    "most free GPUs in one machine, of the largest machine",
    "most free GPUs in one rack",
    "waiting jobs",
    "held jobs",
    "running jobs",
    "GPUs d asked in the window: d / (d + 64)",
    "1: run times are known, or estimated",
)
QUEUE = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(65)",
    "time since it arrived or lost its GPUs",
    "time since it arrived",
    "isolated run time left",
    "isolated GPU-seconds left",
    "GPU-seconds attained",
    "slowdown inside a machine",
    "slowdown inside a rack",
    "slowdown across racks",
    "1: it has run before",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
    "time until a machine has room, if running jobs end as expected; 1: never",
    "time until a rack has room",
    "delay timer of its size for a machine (0: it is not tuned)",
    "delay timer of its size for a rack",
)
RUNNING = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(65)",
    "time on these GPUs",
    "time since it arrived",
    "time to its end at this placement",
    "slowdown now",
    "tier now / 3",
    "tier that it could move to now / 3",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
    "free GPUs of its machine, of the largest machine",
    "free GPUs of its rack, of the largest rack",
)
CANDIDATES = (
    "1: legal",
    "1: advance",
    "1: start",
    "1: hold",
    "1: preempt",
    "1: migrate",
    "tier of the gang / 3 (make room: of the place; defragment: now)",
    "slowdown of the gang (make room: of the best gang at that tier; defragment: now)",
    "run time left: on these GPUs (start), isolated (hold), until its end (running)",
    "GPUs",
    "GPUs that would be free afterwards",
    "GPUs left free on the gang's machine, of the largest machine; 0 beyond one machine",
    "1: make room, and start there",
    "1: defragment",
    "jobs n stopped to make room: n / (n + 4)",
    "jobs n moved to make room: n / (n + 4)",
    "isolated run time left of these",
    "seconds that making room costs",
)
QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
HOLD_COLUMN = CANDIDATES.index("1: hold")
MIGRATE_COLUMN, ROOM_COLUMN, DEFRAGMENT_COLUMN, STOPPED_COLUMN = 5, 12, 13, 14
KNOWN_COLUMNS = 13  # of a waiting job's row that `_known` remembers, as far as they do not change
UNIT_GPUS = 64.0  # of the cluster of which shares are, whatever the cluster at hand
FEW = 4.0  # so many jobs that make way read 1/2


@kernel
def _share(gpus):
    return min(1.0, gpus / UNIT_GPUS)


@kernel
def _size(gpus):
    return min(1.0, math.log2(1.0 + gpus) / math.log2(1.0 + UNIT_GPUS))


@kernel
def _jobs(s, count):
    return scaled_count(count * UNIT_GPUS / s.n_gpus)


@kernel
def _slowdown(s, job, tier):
    return scaled_slowdown(s.tier_factor[s.profile[job], tier] * s.compute_iteration_s[job] / s.base_iteration_s[job])


@kernel
def _time_left(w, isolated, slowdown):
    # Converted first: plain Python would add these numbers of four bytes as such.
    return min(1.0, float(isolated) + float(slowdown) * LOG_WORST / w.log_horizon)


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
        known[0] = 1.0
        known[1] = _share(gpus)
        known[2] = _size(gpus)
        known[5] = scaled_time(w, left_s)
        known[6] = scaled_time(w, left_s * gpus)
        known[7] = scaled_time(w, s.attained_s[job] * gpus)
        for target in range(TARGETS):
            known[8 + target] = _slowdown(s, job, MACHINE + target)
    return row


@kernel
def _ran(s, w, job):
    """Modify window `w`: row of `w.ran` with the constant features of a running job."""
    row = job & (KNOWN - 1)
    ran = w.ran[row]
    if ran[0] != job or ran[1] != s.started_s[job] or ran[2] != s.planned_finish_s[job]:
        ran[0] = job
        ran[1] = s.started_s[job]
        ran[2] = s.planned_finish_s[job]
        gpus = s.gpus[job]
        ran[3] = _share(gpus)
        ran[4] = _size(gpus)
        ran[5] = scaled_slowdown(s.iteration_s[job] / s.base_iteration_s[job])
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
def forget(w):
    """Modify `w`: the next observation goes into other arrays."""
    for slot in range(w.slots):
        w.written_job[slot] = NO_JOB
    for slot in range(w.running_slots):
        w.written_runner[slot] = NO_JOB


@kernel
def observe(s, w, features, mask):
    """Write all features, float32: cluster, queue, running and candidates, row by row.

    Only changes are written. `features` and `mask` must hold what this and `write_mask` wrote last, or, after `forget`,
    what any such call wrote, or zeros.
    """
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    candidates = running + w.running_slots * RUNNING_COLUMNS
    features[candidates] = w.legal[0]
    features[candidates + 1] = w.legal[0]
    _scale_times(s, w)
    asked = _observe_queue(s, w, features, mask, queue, candidates)
    _observe_running(s, w, features, mask, running, candidates)
    _observe_cluster(s, w, features, asked)


@kernel
def _observe_cluster(s, w, features, asked):
    features[0] = scaled_time(w, s.now_s - s.start_s)
    features[1] = _share(s.free_gpus)
    features[2] = _share(s.down_gpus)
    features[3] = _share(s.fragmented_gpus)
    features[4] = w.most_machine / s.largest_machine
    features[5] = _share(w.most_rack)
    features[6] = _jobs(s, s.waiting)
    features[7] = _jobs(s, s.held)
    features[8] = _jobs(s, s.running)
    features[9] = asked / (asked + UNIT_GPUS)
    features[10] = s.known_times != TIMES_HIDDEN


@kernel
def _observe_queue(s, w, features, mask, row, candidate):
    """Write the waiting jobs from `row` on, and their candidates; returns the GPUs that they ask."""
    asked = 0
    width = PER_WAITING * CANDIDATE_COLUMNS
    candidate += CANDIDATE_COLUMNS
    free = _share(s.free_gpus)
    since_arrival = w.waiting_shown + 3 * w.running_shown
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        asked += s.gpus[job]
        shown = features[row : row + QUEUE_COLUMNS]  # constant indices in a short slice need no test of their sign
        since_s = s.waiting_since_s[job]
        is_new = w.written_job[slot] != job or w.written_since_s[slot] != since_s
        if is_new:
            w.written_job[slot] = job
            w.written_since_s[slot] = since_s
            known = w.known[_known(s, w, job)]
            for column in range(KNOWN_COLUMNS):
                shown[column] = known[column]
        shown[3] = shown[4] = w.times[slot]
        if since_s != s.arrival_s[job]:
            shown[4] = w.times[since_arrival]
            since_arrival += 1
        shown[11] = s.starts[job] > 0
        shown[12] = scaled_slack(s, w, job)
        outlook = w.outlook[s.demand[job]]
        for place in range(OUTLOOKS):
            shown[KNOWN_COLUMNS + place] = outlook[place]
        offered = features[candidate : candidate + width]
        first = waiting_candidate(w, slot, 0)
        legal = w.legal[first : first + PER_WAITING]
        before = mask[first : first + PER_WAITING]
        if legal[0] | legal[1] | legal[2] | before[0] | before[1] | before[2]:
            _observe_starts(s, w, shown, offered, before, slot, is_new)
        if legal[ROOM_KIND]:
            _observe_room(s, w, shown, offered, slot)
        elif before[ROOM_KIND]:
            _clear_candidate(offered, ROOM_KIND * CANDIDATE_COLUMNS)
        at = HOLD_KIND * CANDIDATE_COLUMNS
        if legal[HOLD_KIND]:
            if is_new or not before[HOLD_KIND]:
                _observe_candidate(offered, at, HOLD_COLUMN, 0.0, shown[5], shown[1])
            offered[at + 10] = free
        elif before[HOLD_KIND]:
            _clear_candidate(offered, at)
        row += QUEUE_COLUMNS
        candidate += width
    for slot in range(w.waiting_shown, w.slots):
        if features[row] == 0.0:
            break
        w.written_job[slot] = NO_JOB
        features[row : row + QUEUE_COLUMNS] = 0.0
        features[candidate : candidate + width] = 0.0
        row += QUEUE_COLUMNS
        candidate += width
    return asked


@kernel
def _observe_starts(s, w, shown, offered, before, slot, is_new):
    """Write the start candidates of a waiting job; `before`: earlier legality, of this job unless `is_new`."""
    first = waiting_candidate(w, slot, 0)
    legal = w.legal[first : first + PER_WAITING]
    free_after = _share(s.free_gpus - s.gpus[w.waiting_job[slot]])
    for target in range(TARGETS):
        at = target * CANDIDATE_COLUMNS
        if legal[target]:
            if is_new or not before[target] or s.net_models > 0:
                slowdown = w.slot_slowdown[slot, target] if s.net_models > 0 else shown[8 + target]
                _observe_candidate(offered, at, 2, slowdown, _time_left(w, shown[5], slowdown), shown[1])
            offered[at + 6] = w.slot_tier[slot, target] / NETWORK
            offered[at + 10] = free_after
            offered[at + 11] = w.slot_left[slot, target] / s.largest_machine
        elif before[target]:
            _clear_candidate(offered, at)


@kernel
def _observe_room(s, w, shown, offered, slot):
    at = ROOM_KIND * CANDIDATE_COLUMNS
    slowdown = shown[8 + w.room_tier[slot] - MACHINE]
    _observe_candidate(offered, at, ROOM_COLUMN, slowdown, _time_left(w, shown[5], slowdown), shown[1])
    offered[at + 6] = w.room_tier[slot] / NETWORK
    offered[at + 10] = _share(s.free_gpus)  # stopped jobs may start elsewhere
    offered[at + STOPPED_COLUMN] = w.room_stopped[slot] / (w.room_stopped[slot] + FEW)
    offered[at + STOPPED_COLUMN + 1] = w.room_moved[slot] / (w.room_moved[slot] + FEW)
    offered[at + STOPPED_COLUMN + 2] = scaled_time(w, w.room_left_s[slot])
    offered[at + STOPPED_COLUMN + 3] = scaled_time(w, w.room_lost_s[slot])


@kernel
def _clear_candidate(offered, at):
    for column in range(CANDIDATE_COLUMNS):
        offered[at + column] = 0.0


@kernel
def _observe_candidate(offered, at, kind, slowdown, left, share):
    """Write the features that do not depend on free GPUs; a candidate's kind never changes, so nothing is cleared."""
    offered[at] = 1.0
    offered[at + kind] = 1.0
    offered[at + 7] = slowdown
    offered[at + 8] = left
    offered[at + 9] = share


@kernel
def _observe_running(s, w, features, mask, row, candidates):
    width = PER_RUNNING * CANDIDATE_COLUMNS
    first = running_candidate(w, 0, 0)
    candidate = candidates + first * CANDIDATE_COLUMNS
    at = w.waiting_shown
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        shown = features[row : row + RUNNING_COLUMNS]
        start_s = s.started_s[job]
        end_s = s.planned_finish_s[job]
        if w.written_runner[slot] != job or w.written_start_s[slot] != start_s or w.written_end_s[slot] != end_s:
            w.written_runner[slot] = job
            w.written_start_s[slot] = start_s
            w.written_end_s[slot] = end_s
            ran = w.ran[_ran(s, w, job)]
            shown[0] = 1.0
            shown[1] = ran[3]
            shown[2] = ran[4]
            shown[6] = ran[5]
        shown[3] = w.times[at]
        shown[4] = w.times[at + 1]
        shown[5] = w.times[at + 2]
        shown[7] = shown[8] = s.tier[job] / NETWORK
        shown[9] = scaled_slack(s, w, job)
        machine = s.gpu_machine[s.first_gpu[job]]
        rack = s.machine_rack[machine]
        shown[10] = s.machine_free[machine] / s.largest_machine
        shown[11] = s.rack_free[rack] / s.largest_rack
        if w.preemption:
            offered = features[candidate : candidate + width]
            _observe_moves(s, w, shown, offered, mask[first : first + PER_RUNNING], slot)
        row += RUNNING_COLUMNS
        candidate += width
        first += PER_RUNNING
        at += 3
    for slot in range(w.running_shown, w.running_slots):
        if features[row] == 0.0:
            break
        w.written_runner[slot] = NO_JOB
        features[row : row + RUNNING_COLUMNS] = 0.0
        features[candidate : candidate + width] = 0.0
        row += RUNNING_COLUMNS
        candidate += width


@kernel
def _observe_moves(s, w, shown, offered, before, slot):
    """Write the candidates of a running job, and their columns in its row; `before`: earlier legality."""
    first = running_candidate(w, slot, 0)
    if w.legal[first]:
        _observe_candidate(offered, 0, 4, shown[6], shown[5], shown[1])
        offered[6] = shown[7]
        offered[10] = _share(s.free_gpus + s.gpus[w.running_job[slot]])
    elif before[0]:
        _clear_candidate(offered, 0)
    if w.legal[first + 1]:
        better = w.move_tier[slot]
        slowdown = w.move_slowdown[slot] if s.net_models > 0 else _slowdown(s, w.running_job[slot], better)
        _observe_move(s, offered, CANDIDATE_COLUMNS, MIGRATE_COLUMN, better / NETWORK, slowdown, shown)
        shown[8] = better / NETWORK
    elif before[1]:
        _clear_candidate(offered, CANDIDATE_COLUMNS)
    if w.legal[first + 2]:
        _observe_move(s, offered, 2 * CANDIDATE_COLUMNS, DEFRAGMENT_COLUMN, shown[7], shown[6], shown)
    elif before[2]:
        _clear_candidate(offered, 2 * CANDIDATE_COLUMNS)


@kernel
def _observe_move(s, offered, at, kind, tier, slowdown, shown):
    _observe_candidate(offered, at, kind, slowdown, shown[5], shown[1])
    offered[at + 6] = tier
    offered[at + 10] = _share(s.free_gpus)


@kernel
def write_mask(w, mask):
    """Write the flat mask, int8 (candidates + delays + tiers,): the unions over legal candidates for the last two."""
    count = mask.size - w.n_delays - HOLD_TIERS
    holdable = False
    for i in range(count):
        mask[i] = w.legal[i]
    for slot in range(w.waiting_shown):
        holdable |= w.legal[waiting_candidate(w, slot, HOLD_KIND)] != 0
    for i in range(count, mask.size):
        mask[i] = holdable
    mask[count] = 1
    mask[count + w.n_delays] = 1
