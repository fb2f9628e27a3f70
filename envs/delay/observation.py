"""Features of the present, written by one kernel: the columns of columns.py."""

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
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .delay_window import (
    HOLD_KIND,
    HOLD_TIERS,
    KNOWN,
    OUTLOOKS,
    PER_RUNNING,
    PER_WAITING,
    RAN_END,
    RAN_GPUS,
    RAN_JOB,
    RAN_SIZE,
    RAN_SLOWDOWN,
    RAN_START,
    ROOM_KIND,
    TARGETS,
)

QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
KNOWN_COLUMNS = QUEUE.machine_wait  # those before it are remembered of a waiting job, as far as they do not change
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
        known[QUEUE.present] = 1.0
        known[QUEUE.gpus] = _share(gpus)
        known[QUEUE.size] = _size(gpus)
        known[QUEUE.time_left] = scaled_time(w, left_s)
        known[QUEUE.service_left] = scaled_time(w, left_s * gpus)
        known[QUEUE.attained] = scaled_time(w, s.attained_s[job] * gpus)
        for target in range(TARGETS):
            known[QUEUE.slowdown_machine + target] = _slowdown(s, job, MACHINE + target)
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
        ran[RAN_GPUS] = _share(gpus)
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
    features[candidates + CANDIDATES.legal] = w.legal[0]
    features[candidates + CANDIDATES.advance] = w.legal[0]
    _scale_times(s, w)
    asked = _observe_queue(s, w, features, mask, queue, candidates)
    _observe_running(s, w, features, mask, running, candidates)
    _observe_cluster(s, w, features, asked)


@kernel
def _observe_cluster(s, w, features, asked):
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)
    features[CLUSTER.free] = _share(s.free_gpus)
    features[CLUSTER.down] = _share(s.down_gpus)
    features[CLUSTER.fragmented] = _share(s.fragmented_gpus)
    features[CLUSTER.machine_room] = w.most_machine / s.largest_machine
    features[CLUSTER.rack_room] = _share(w.most_rack)
    features[CLUSTER.waiting] = _jobs(s, s.waiting)
    features[CLUSTER.held] = _jobs(s, s.held)
    features[CLUSTER.running] = _jobs(s, s.running)
    features[CLUSTER.asked] = asked / (asked + UNIT_GPUS)
    features[CLUSTER.times_known] = s.known_times != TIMES_HIDDEN


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
        shown[QUEUE.waited] = shown[QUEUE.age] = w.times[slot]
        if since_s != s.arrival_s[job]:
            shown[QUEUE.age] = w.times[since_arrival]
            since_arrival += 1
        shown[QUEUE.has_run] = s.starts[job] > 0
        shown[QUEUE.slack] = scaled_slack(s, w, job)
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
                _observe_candidate(offered, at, CANDIDATES.hold, 0.0, shown[QUEUE.time_left], shown[QUEUE.gpus])
            offered[at + CANDIDATES.free_after] = free
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
                slowdown = w.slot_slowdown[slot, target] if s.net_models > 0 else shown[QUEUE.slowdown_machine + target]
                _observe_candidate(
                    offered,
                    at,
                    CANDIDATES.start,
                    slowdown,
                    _time_left(w, shown[QUEUE.time_left], slowdown),
                    shown[QUEUE.gpus],
                )
            offered[at + CANDIDATES.tier] = w.slot_tier[slot, target] / NETWORK
            offered[at + CANDIDATES.free_after] = free_after
            offered[at + CANDIDATES.machine_left] = w.slot_left[slot, target] / s.largest_machine
        elif before[target]:
            _clear_candidate(offered, at)


@kernel
def _observe_room(s, w, shown, offered, slot):
    at = ROOM_KIND * CANDIDATE_COLUMNS
    slowdown = shown[QUEUE.slowdown_machine + w.room_tier[slot] - MACHINE]
    _observe_candidate(
        offered, at, CANDIDATES.make_room, slowdown, _time_left(w, shown[QUEUE.time_left], slowdown), shown[QUEUE.gpus]
    )
    offered[at + CANDIDATES.tier] = w.room_tier[slot] / NETWORK
    offered[at + CANDIDATES.free_after] = _share(s.free_gpus)  # stopped jobs may start elsewhere
    offered[at + CANDIDATES.stopped] = w.room_stopped[slot] / (w.room_stopped[slot] + FEW)
    offered[at + CANDIDATES.moved] = w.room_moved[slot] / (w.room_moved[slot] + FEW)
    offered[at + CANDIDATES.victims_left] = scaled_time(w, w.room_left_s[slot])
    offered[at + CANDIDATES.room_cost] = scaled_time(w, w.room_lost_s[slot])


@kernel
def _clear_candidate(offered, at):
    for column in range(CANDIDATE_COLUMNS):
        offered[at + column] = 0.0


@kernel
def _observe_candidate(offered, at, kind, slowdown, left, share):
    """Write the features that do not depend on free GPUs; a candidate's kind never changes, so nothing is cleared."""
    offered[at + CANDIDATES.legal] = 1.0
    offered[at + kind] = 1.0
    offered[at + CANDIDATES.slowdown] = slowdown
    offered[at + CANDIDATES.time_left] = left
    offered[at + CANDIDATES.gpus] = share


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
            shown[RUNNING.present] = 1.0
            shown[RUNNING.gpus] = ran[RAN_GPUS]
            shown[RUNNING.size] = ran[RAN_SIZE]
            shown[RUNNING.slowdown] = ran[RAN_SLOWDOWN]
        shown[RUNNING.ran] = w.times[at]
        shown[RUNNING.age] = w.times[at + 1]
        shown[RUNNING.time_left] = w.times[at + 2]
        shown[RUNNING.tier] = shown[RUNNING.better_tier] = s.tier[job] / NETWORK
        shown[RUNNING.slack] = scaled_slack(s, w, job)
        machine = s.gpu_machine[s.first_gpu[job]]
        rack = s.machine_rack[machine]
        shown[RUNNING.machine_free] = s.machine_free[machine] / s.largest_machine
        shown[RUNNING.rack_free] = s.rack_free[rack] / s.largest_rack
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
        _observe_candidate(
            offered, 0, CANDIDATES.preempt, shown[RUNNING.slowdown], shown[RUNNING.time_left], shown[RUNNING.gpus]
        )
        offered[CANDIDATES.tier] = shown[RUNNING.tier]
        offered[CANDIDATES.free_after] = _share(s.free_gpus + s.gpus[w.running_job[slot]])
    elif before[0]:
        _clear_candidate(offered, 0)
    if w.legal[first + 1]:
        better = w.move_tier[slot]
        slowdown = w.move_slowdown[slot] if s.net_models > 0 else _slowdown(s, w.running_job[slot], better)
        _observe_move(s, offered, CANDIDATE_COLUMNS, CANDIDATES.migrate, better / NETWORK, slowdown, shown)
        shown[RUNNING.better_tier] = better / NETWORK
    elif before[1]:
        _clear_candidate(offered, CANDIDATE_COLUMNS)
    if w.legal[first + 2]:
        _observe_move(
            s,
            offered,
            2 * CANDIDATE_COLUMNS,
            CANDIDATES.defragment,
            shown[RUNNING.tier],
            shown[RUNNING.slowdown],
            shown,
        )
    elif before[2]:
        _clear_candidate(offered, 2 * CANDIDATE_COLUMNS)


@kernel
def _observe_move(s, offered, at, kind, tier, slowdown, shown):
    _observe_candidate(offered, at, kind, slowdown, shown[RUNNING.time_left], shown[RUNNING.gpus])
    offered[at + CANDIDATES.tier] = tier
    offered[at + CANDIDATES.free_after] = _share(s.free_gpus)


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
