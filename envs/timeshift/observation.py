"""Features of the present, written by one kernel: the columns of columns.py. Sums are rounded as numpy rounds them."""

import math

from ...policies.cassini.compatibility import BUCKETS
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import known_of
from ...simulator.numerics.float_sums import sum_as_numpy
from ..window import LOG_WORST, scaled_count
from .columns import CANDIDATES, CLUSTER, QUEUE, ROTATIONS, RUNNING
from .joined_jobs import place_of
from .timeshift_offers import describe_meetings
from .timeshift_record import SHIFTING
from .unified_circles import (
    flows_on,
    has_shift,
    most_iterations,
    shift_period_s,
    shift_s,
    turn_now,
    write_demand,
    write_excess,
    write_rotations,
)

MOST_LOG_LEFT = 24.0
QUEUE_COLUMNS, RUNNING_COLUMNS, CANDIDATE_COLUMNS = len(QUEUE), len(RUNNING), len(CANDIDATES)
KINDS = CANDIDATES.no_more, CANDIDATES.shift, CANDIDATES.leave, CANDIDATES.run_free  # of the second stage


@kernel
def observe(s, w, m, features, mask):
    """Write all features, float32: cluster, queue, running, rotations and candidates; and the mask, int8."""
    features[:] = 0.0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    rotations = running + w.running_slots * RUNNING_COLUMNS
    candidates = rotations + BUCKETS * len(ROTATIONS)
    _write_excess_now(s, m)
    asked = 0
    for slot in range(w.waiting_shown):
        first = queue + slot * QUEUE_COLUMNS
        asked += _observe_waiting(s, w, w.waiting_job[slot], features[first : first + QUEUE_COLUMNS])
    for slot in range(w.running_shown):
        first = running + slot * RUNNING_COLUMNS
        _observe_running(s, w, m, w.running_job[slot], features[first : first + RUNNING_COLUMNS])
    _observe_cluster(s, w, m, asked, features)
    if m.n_turning > 0:
        _observe_turns(s, w, m, features[rotations : rotations + BUCKETS], features[candidates:])
    else:
        _observe_offers(s, w, m, features[candidates:])
    for candidate in range(w.candidates):
        mask[candidate] = w.legal[candidate]
    mask[w.candidates :] = int(m.stage == SHIFTING)
    mask[w.candidates] = 1


@kernel
def _write_excess_now(s, m):
    """Modify `m`: the excess of every vertex, jobs being turned as they are."""
    for component in range(m.n_components):
        angles = write_demand(m, component, BUCKETS)
        turn_now(s, m, component, angles)
        write_excess(m, component, angles)


@kernel
def _mean_excess(m, i):
    """Of the links that a job shares, now."""
    found = 0
    for vertex in range(m.n_vertices):
        if flows_on(m, i, vertex) > 0.0:
            m.gathered[found] = m.vertex_excess[vertex]
            found += 1
    return sum_as_numpy(m.gathered[:found]) / found


@kernel
def _observe_cluster(s, w, m, asked, shown):
    running = max(1, m.n_placed)
    shown[CLUSTER.time] = _time(w, s.now_s - s.start_s)
    shown[CLUSTER.free] = s.free_gpus / s.n_gpus
    shown[CLUSTER.down] = s.down_gpus / s.n_gpus
    shown[CLUSTER.waiting] = scaled_count(s.waiting)
    shown[CLUSTER.held] = scaled_count(s.held)
    shown[CLUSTER.running] = scaled_count(s.running)
    shown[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    shown[CLUSTER.finished] = s.done / s.n_jobs
    shown[CLUSTER.asked] = asked / (asked + s.n_gpus)
    shown[CLUSTER.shared_links] = m.n_shared / max(1, s.n_links)
    contending = 0
    for i in range(m.n_placed):
        contending += int(m.component[i] >= 0)
    shown[CLUSTER.contending] = contending / running
    shown[CLUSTER.placing] = m.n_turning == 0
    shown[CLUSTER.shifts_left] = m.n_turning / running


@kernel
def _observe_waiting(s, w, job, shown):
    """Write the row of a waiting job, float32 (columns,); returns the GPUs that it asks."""
    left_s = known_of(s, job, s.iterations_left[job]) * s.base_iteration_s[job]
    _observe_size(s, shown, job)
    shown[QUEUE.waited] = _time(w, s.now_s - s.waiting_since_s[job])
    shown[QUEUE.age] = _time(w, s.now_s - s.arrival_s[job])
    shown[QUEUE.time_left] = _time(w, left_s)
    shown[QUEUE.service_left] = _time(w, left_s * s.gpus[job])
    shown[QUEUE.attained] = _time(w, s.attained_s[job] * s.gpus[job])
    shown[QUEUE.has_run] = s.starts[job] > 0
    shown[QUEUE.slack] = _slack(s, w, job, left_s)
    return s.gpus[job]


@kernel
def _observe_running(s, w, m, job, shown):
    """Write the row of a running job, float32 (columns,)."""
    _observe_size(s, shown, job)
    on_gpus_s = max(0.0, s.now_s - s.since_s[job])
    shown[RUNNING.ran] = _time(w, s.now_s - s.started_s[job])
    shown[RUNNING.age] = _time(w, s.now_s - s.arrival_s[job])
    left = max(0.0, s.iterations_left[job] - on_gpus_s / s.iteration_s[job])
    left_s = known_of(s, job, left) * s.base_iteration_s[job]
    shown[RUNNING.time_left] = _time(w, left_s)
    shown[RUNNING.slack] = _slack(s, w, job, left_s)
    iteration_s = s.iteration_s[job] * (s.gpus[job] / s.own_gpus[job])  # of the workers that it has
    slowdown = max(1.0, iteration_s / s.base_iteration_s[job])
    shown[RUNNING.slowdown] = min(1.0, math.log(slowdown) / LOG_WORST)
    shown[RUNNING.turns] = m.n_turning > 0 and m.turning[0] == job
    i = place_of(m, job)
    if i >= 0 and m.n_links[i] > 0:
        _observe_links(s, m, i, job, shown)


@kernel
def _observe_links(s, m, i, job, shown):
    rate = 0.0
    for link in range(s.n_links):
        if m.flows[i, link] > 0.0:
            rate = max(rate, m.flows[i, link] / m.capacity[link])
    shown[RUNNING.iteration] = m.iteration_s[i] / (1.0 + m.iteration_s[i])
    shown[RUNNING.communicates] = min(1.0, m.up_s[i] / m.iteration_s[i])
    shown[RUNNING.peak_rate] = min(1.0, m.peak[i] * rate)
    shown[RUNNING.links] = m.n_links[i] / s.n_links
    shown[RUNNING.shared_links] = m.shared_links[i] / m.n_links[i]
    if m.component[i] >= 0:
        joined = -1
        for other in range(m.n_placed):
            joined += int(m.component[other] == m.component[i])
        shown[RUNNING.joined_jobs] = joined / max(1, m.n_placed)
        shown[RUNNING.excess] = min(1.0, _mean_excess(m, i))
    if has_shift(s, job):
        shown[RUNNING.has_shift] = 1.0
        shown[RUNNING.shift] = shift_s(s, job) % shift_period_s(s, job) / shift_period_s(s, job)


@kernel
def _observe_offers(s, w, m, rows):
    for candidate in range(1 + m.n_offers):
        if not w.legal[candidate]:
            continue
        first = candidate * CANDIDATE_COLUMNS
        shown = rows[first : first + CANDIDATE_COLUMNS]
        if candidate > 0:
            for column in range(CANDIDATE_COLUMNS):
                shown[column] = m.offer_features[candidate - 1, column]
            shown[CANDIDATES.place] = 1.0
        else:
            _observe_present(s, m, shown)
        shown[CANDIDATES.legal] = 1.0


@kernel
def _observe_present(s, m, shown):
    """Write the row of the candidate that changes nothing."""
    shown[CANDIDATES.no_more] = 1.0
    shown[CANDIDATES.used_after] = m.n_used / s.n_gpus
    shown[CANDIDATES.waiting_after] = scaled_count(s.waiting)
    describe_meetings(s, m, shown)


@kernel
def _observe_turns(s, w, m, rotations, rows):
    job = m.turning[0]
    shown = rows[:CANDIDATE_COLUMNS]
    i = place_of(m, job)
    if i >= 0 and m.component[i] >= 0:
        shown[CANDIDATES.excess_now] = min(1.0, _mean_excess(m, i))
        write_rotations(m, i, m.n_placed, BUCKETS, BUCKETS * most_iterations(m, m.component[i]))
        least, most = m.excess[0], m.excess[0]
        for bucket in range(BUCKETS):
            rotations[bucket] = min(1.0, m.excess[bucket])
            least, most = min(least, m.excess[bucket]), max(most, m.excess[bucket])
        shown[CANDIDATES.excess_least] = min(1.0, least)
        shown[CANDIDATES.excess_mean] = min(1.0, sum_as_numpy(m.excess) / BUCKETS)
        shown[CANDIDATES.excess_most] = min(1.0, most)
    shown[CANDIDATES.chosen] = m.turned / (m.turned + m.n_turning)
    left = known_of(s, job, max(0.0, s.iterations_left[job]))
    shown[CANDIDATES.iterations_left] = min(1.0, math.log2(1.0 + left) / MOST_LOG_LEFT)
    for candidate in range(len(KINDS) - 1, -1, -1):  # the first one, from which others are copied, last
        first = candidate * CANDIDATE_COLUMNS
        row = rows[first : first + CANDIDATE_COLUMNS]
        if w.legal[candidate]:
            for column in range(CANDIDATE_COLUMNS):
                row[column] = shown[column]
            row[CANDIDATES.legal] = row[KINDS[candidate]] = 1.0
    if not w.legal[0]:
        shown[:] = 0.0


@kernel
def _observe_size(s, shown, job):
    shown[QUEUE.present] = 1.0
    shown[QUEUE.gpus] = s.gpus[job] / s.n_gpus
    shown[QUEUE.size] = math.log2(1.0 + s.gpus[job]) / math.log2(1.0 + s.n_gpus)


@kernel
def _time(w, value):
    return min(1.0, math.log1p(max(0.0, value)) / w.log_horizon)


@kernel
def _slack(s, w, job, left_s):
    deadline_s = s.deadline_s[job]
    if deadline_s == math.inf:
        return 1.0
    slack_s = deadline_s - s.now_s - left_s
    half = 0.5 * _time(w, abs(slack_s))
    return 0.5 + half if slack_s > 0.0 else 0.5 - half
