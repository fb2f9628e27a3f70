"""Backfilling: a job behind one that does not fit may start, if that one is expected to start no later for it.

Sources: Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995 (EASY); Mu'alem and Feitelson, "Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001
(EASY and conservative).

`head=reserve` (EASY): jobs start in order. The first job without a gang gets a reservation at the earliest instant at
which enough GPUs will be free if running jobs end as expected. A later job starts if it finds a gang now, and is
expected to end by then or takes only GPUs that are to spare then.

`head=conservative`: every job in order gets a reservation at the earliest instant from which on enough GPUs will be
free for its expected run, beside all earlier reservations. Those whose instant is now start.

Choices where the papers are silent:

* Ends are as expected (remaining_time.py): of a running job at its present speed; of a job that could start now on its
  gang; of a reservation on the best gang. A job that starts again restores.
* The order of reservations is made anew, as that of the rule, at each end of a job (with rounds: at the next one).
  Until the next end it stands; new jobs and jobs that lose their GPUs to a failure come last, first come first served:
  else, under `sjf`, short new jobs would put off a reservation.
* The instants follow from that order and from the running jobs, at each pass.
* Reservations count GPUs; a start needs a gang of the placer as well. Where `consolidated` (and `skew`, for skewed
  models) finds none among enough free GPUs, the reservation is for the next expected end of a running job, or as soon
  after it as there are enough; none are to spare then, so only jobs expected to end by its instant start behind it.
* A job that requests more GPUs than are up, or finds no gang although no job runs, has no reservation while machines
  are down; later jobs ignore it.
* The time at which a shared GPU will be free is unknown.
* A pass is a function of the state: in the middle of an instant it continues the same way.
"""

import math

from ...simulator.base.codes import CONSERVATIVE, CONSOLIDATED, SKEW
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from ...simulator.lifecycle.lifecycle import began_now
from ...simulator.numerics import heap
from ...simulator.numerics.rounding import SAME_INSTANT
from ...simulator.record.feature_groups import gpu_of, has_berths
from ...simulator.rules.orders import plain_key, restore_cost_s
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.iteration_time import gang_iteration_s
from ...simulator.running.placers import find_gang
from .starts import start

ANY_SIZE = 1 << 40
LATER = 1.0 + SAME_INSTANT  # instants within this factor are one


@kernel
def backfill(s, made_s):
    """Modify `s`: one pass. Returns the number of jobs started. The order was last made at `made_s`."""
    made_s *= LATER
    return _promise_all(s, made_s) if s.backfills == CONSERVATIVE else _promise_first(s, made_s)


@kernel
def _promise_first(s, made_s):
    """Modify `s`: EASY."""
    started = 0
    last = -1
    while s.free_gpus >= _least_demand(s):
        job = _next_in_line(s, last, made_s, ANY_SIZE, 0.0, ANY_SIZE)
        if job < 0:
            break
        last = job
        if find_gang(s, job, s.placer):
            start(s, job)
            started += 1
            continue
        until_s, spare = _promise(s, job, made_s)
        if until_s < math.inf:
            return started + _start_behind(s, job, made_s, until_s, spare if _needs_numbers_only(s, job) else 0)
    return started


@kernel
def _promise(s, job, made_s):
    """Modify the ends in `s`: the instant of a job's reservation, infinity: never, and the GPUs to spare then."""
    _write_ends(s)
    room = s.free_gpus
    until_s, waited_for_s = math.inf, -math.inf
    while s.n_ends > 0 and s.end_key[0] <= until_s * LATER:
        end_s = s.end_key[0]
        ending = _next_to_end(s)
        room += _frees(s, ending)
        if not _was_just_let_past(s, ending, job, made_s):
            waited_for_s = end_s
        if until_s == math.inf and room >= s.gpus[job] and end_s <= waited_for_s * LATER:
            until_s = end_s
    return until_s, room - s.gpus[job]


@kernel
def _start_behind(s, first, made_s, until_s, spare):
    """Modify `s`: start jobs behind `first` that end by `until_s` or fit into `spare`. Returns the number started.

    After each all are asked again, as a job refused because of a slow gang may now find a fast one.
    """
    started = 0
    last = first
    until_s *= LATER
    while True:
        job = _next_in_line(s, last, made_s, s.free_gpus, until_s, spare)
        if job < 0:
            return started
        last = job
        if not find_gang(s, job, s.placer):
            s.class_blocked[s.demand[job]] = s.pass_number
            continue
        if s.now_s + _run_here_s(s, job) > until_s:
            if s.gpus[job] > spare:
                continue
            spare -= s.gpus[job]
        start(s, job)
        started += 1
        last = first


@kernel
def _promise_all(s, made_s):
    """Modify `s`: conservative backfilling, repeated after a start if a job was refused, perhaps for a slow gang."""
    started = 0
    again = True
    while again:
        more, again = _promise_in_order(s, made_s)
        started += more
    return started


@kernel
def _promise_in_order(s, made_s):
    """Modify `s`: reserve GPUs job by job, and start those due now. Returns (starts, True to ask all again)."""
    _write_steps(s)
    started = 0
    last = -1
    promised = False
    refused = False
    until_s = math.inf
    while _could_start(s, last, made_s):
        job = _next_in_line(s, last, made_s, ANY_SIZE, 0.0, ANY_SIZE)
        last = job
        if _starts_beside(s, job, until_s):
            start(s, job)
            started += 1
            if refused:
                return started, True
            _take(s, 0, expected_end_s(s, job), s.gpus[job])
            continue
        run_s = _run_best_s(s, job)
        refused = refused or _first_lack(s, 0, s.now_s + run_s, s.gpus[job]) < 0
        step = _first_room(s, job, made_s, run_s)
        if step == s.n_steps:
            continue
        if not promised and not _needs_numbers_only(s, job):
            until_s = s.step_s[step]
        promised = True
        _take(s, step, s.step_s[step] + run_s, s.gpus[job])
    return started, False


@kernel
def _could_start(s, last, made_s):
    """True if there may be room now for a job after `last`, beside all reservations so far."""
    least = _least_demand(s)
    if s.free_gpus < least:
        return False
    lack = _first_lack(s, 0, math.inf, least)
    until_s = math.inf if lack < 0 else s.step_s[lack] * LATER
    return _next_in_line(s, last, made_s, s.free_gpus, until_s, 0) >= 0


@kernel
def _starts_beside(s, job, until_s):
    """Modify `s.gang`: True if a job finds a gang, and ends by `until_s` and before its reservation by others."""
    if s.step_free[0] < s.gpus[job] or not find_gang(s, job, s.placer):
        return False
    end_s = s.now_s + _run_here_s(s, job)
    return end_s <= until_s * LATER and _first_lack(s, 0, end_s, s.gpus[job]) < 0


@kernel
def _first_room(s, job, made_s, run_s):
    """The first step from the next end on with room for a job that does not start now; `n_steps` if none has."""
    from_s = _next_end_s(s, job, made_s)
    step = 1
    while step < s.n_steps and s.step_s[step] * LATER < from_s:
        step += 1
    while step < s.n_steps:
        lack = _first_lack(s, step, s.step_s[step] + run_s, s.gpus[job])
        if lack < 0:
            break
        step = lack + 1
    return step


@kernel
def _first_lack(s, step, end_s, gpus):
    """The first step from `step` on, before `end_s`, with fewer than `gpus` free; -1: none."""
    while step < s.n_steps and s.step_s[step] * LATER < end_s:
        if s.step_free[step] < gpus:
            return step
        step += 1
    return -1


@kernel
def _take(s, step, end_s, gpus):
    """Modify the steps of `s`: `gpus` are taken from `step` on until `end_s`."""
    while step < s.n_steps and s.step_s[step] * LATER < end_s:
        s.step_free[step] -= gpus
        step += 1
    if step < s.n_steps and s.step_s[step] <= end_s * LATER:
        return
    for later in range(s.n_steps, step, -1):
        s.step_s[later] = s.step_s[later - 1]
        s.step_free[later] = s.step_free[later - 1]
    s.step_s[step] = end_s
    s.step_free[step] = s.step_free[step - 1] + gpus
    s.n_steps += 1


@kernel
def _write_steps(s):
    """Modify the steps of `s`: the number of free GPUs over time, if no job starts."""
    _write_ends(s)
    s.step_s[0] = s.now_s
    s.step_free[0] = s.free_gpus
    s.n_steps = 1
    while s.n_ends > 0:
        end_s = s.end_key[0]
        freed = _frees(s, _next_to_end(s))
        last = s.n_steps - 1
        if end_s > s.step_s[last] * LATER:
            s.step_s[last + 1] = end_s
            s.step_free[last + 1] = s.step_free[last]
            s.n_steps += 1
        s.step_free[s.n_steps - 1] += freed


@kernel
def _write_ends(s):
    """Modify the ends in `s`: a heap of the running jobs by their finite expected ends."""
    s.foresees = 0  # its heap is reused
    s.n_ends = 0
    for i in range(s.running):
        job = s.runner[i]
        end_s = expected_end_s(s, job)
        if end_s < math.inf:
            heap.push(s.end_key, s.end_job, s.end_position, 0, s.n_ends, end_s, job)
            s.n_ends += 1


@kernel
def _next_to_end(s):
    job = s.end_job[0]
    heap.remove(s.end_key, s.end_job, s.end_position, 0, s.n_ends, job)
    s.n_ends -= 1
    return job


@kernel
def _frees(s, job):
    """GPUs that a running job holds alone, free at its end."""
    if not has_berths(s):
        return s.gpus[job]
    alone = 0
    berth = s.first_gpu[job]
    while berth >= 0:
        alone += s.gpu_load[gpu_of(s, berth)] == 1
        berth = s.gpu_next[berth]
    return alone


@kernel
def _next_end_s(s, job, made_s):
    """The next expected end of a running job that was not just let past `job`."""
    next_s = math.inf
    for i in range(s.running):
        ending = s.runner[i]
        end_s = expected_end_s(s, ending)
        if end_s < next_s and not _was_just_let_past(s, ending, job, made_s):
            next_s = end_s
    return next_s


@kernel
def _was_just_let_past(s, ending, job, made_s):
    """True if a running job started at this instant and stands behind the waiting `job` in the line."""
    if not began_now(s, ending):
        return False
    own_line_s, line_s = _line_s(s, ending, made_s), _line_s(s, job, made_s)
    return _precedes(line_s, s.order_key[job], job, own_line_s, plain_key(s, ending), ending)


@kernel
def _needs_numbers_only(s, job):
    """True if the placer finds a gang for a job wherever enough GPUs are free."""
    return s.placer != CONSOLIDATED and (s.placer != SKEW or s.class_skewed[s.demand[job]] == 0)


@kernel
def _run_best_s(s, job):
    return _restore_s(s, job) + isolated_left_s(s, job) * _on_slices(s)


@kernel
def _run_here_s(s, job):
    """Modify scratch space of `s`: expected seconds of a waiting job on `s.gang`."""
    slowdown = gang_iteration_s(s, job, tier_of_gang(s)) / s.base_iteration_s[job]
    return _restore_s(s, job) + isolated_left_s(s, job) * slowdown * _on_slices(s)


@kernel
def _on_slices(s):
    return s.slice_slowdown if has_berths(s) else 1.0


@kernel
def _restore_s(s, job):
    if s.starts[job] > 0 or (has_berths(s) and s.restores_first):
        return restore_cost_s(s, job)
    return 0.0


@kernel
def _least_demand(s):
    """The fewest GPUs of a waiting job; more than there are if none waits."""
    for c in range(s.n_classes):
        if s.class_count[c] > 0:
            return s.class_gpus[c]
    return ANY_SIZE


@kernel
def _next_in_line(s, last, made_s, room, until_s, spare):
    """The next waiting job after `last` (-1: the first) that could start in `room` GPUs; or -1.

    Only jobs of at most `spare` GPUs, or that would end by `until_s` on the best gang, of classes not blocked.
    """
    best = -1
    best_line_s, best_key, last_line_s, last_key = 0.0, 0.0, 0.0, 0.0
    if last >= 0:
        last_line_s, last_key = _line_s(s, last, made_s), s.order_key[last]
    for c in range(s.n_classes):
        if s.class_gpus[c] > room:
            break
        if s.class_blocked[c] == s.pass_number:
            continue
        base = s.class_base[c]
        for i in range(base, base + s.class_count[c]):
            job, key = s.queue_item[i], s.queue_key[i]
            line_s = _line_s(s, job, made_s)
            if last >= 0 and not _precedes(last_line_s, last_key, last, line_s, key, job):
                continue
            if best >= 0 and not _precedes(line_s, key, job, best_line_s, best_key, best):
                continue
            if s.class_gpus[c] <= spare or s.now_s + _run_best_s(s, job) <= until_s:
                best, best_line_s, best_key = job, line_s, key
    return best


@kernel
def _line_s(s, job, made_s):
    """When a job joined the line made at `made_s`; -infinity if it stands in it by its key."""
    return s.waiting_since_s[job] if s.waiting_since_s[job] > made_s else -math.inf


@kernel
def _precedes(line_s, key, job, other_line_s, other_key, other):
    if line_s != other_line_s:
        return line_s < other_line_s
    return key < other_key or (key == other_key and job < other)
