"""Backfilling: a job behind one that does not fit may start, if that one starts no later for it, as expected.

Sources: Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995 (EASY); Mu'alem and Feitelson, "Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6),
2001 (EASY and conservative).

`head=reserve` (EASY): jobs start in order. The first that finds no gang is promised the earliest instant at which
enough GPUs will be free if running jobs end as expected. A job behind it starts if it finds a gang now, and is expected
to be gone by then or takes only GPUs that are to spare then.

`head=conservative`: every job in order is promised the earliest instant from which on enough GPUs will be free for as
long as it is expected to run, beside all promises before it. Those whose instant is now start.

What the papers leave open:

* Ends are as expected (remaining_time.py): of a running job at its present speed; of a job that could start now on the
  gang that it would get; of one that is promised GPUs as if it had the best gang. A job that starts anew restores.
* The order of promises is made anew, as that of the rule, at each end of a job (with rounds: at the first from then
  on). Until the next end it stands, and newcomers and jobs that lose their GPUs to a failure stand behind all others,
  first come first served: else, under `sjf`, short newcomers would put off a promised job.
* The instants follow from that order and from the running jobs, and are worked out at each pass.
* Promises count GPUs; a start needs a gang of the placer as well. Where `consolidated` (and `skew`, for skewed models)
  finds none although GPUs enough are free, the promise is for the next expected end of a running job, or as soon after
  it as there are enough; none are to spare then, so behind such a job only those start that are expected to be gone by
  its instant.
* A job that asks more GPUs than are up, or finds no gang although nothing runs, is promised none while machines are
  down; those behind it are treated as if it were not there.
* Of running jobs that share a GPU nobody says when it will be free.
* A pass is a function of the state: asked anew in the middle of an instant it goes on the same way.
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
    """Modify `s`: one pass; returns the number of jobs started. The order was made anew last at `made_s`."""
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
    """Modify the ends in `s`: the instant at which a job without a gang is promised GPUs, and how many to spare.

    The instant is infinity if there will never be enough.
    """
    _lay_ends(s)
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
    """Modify `s`: start jobs behind `first` that are gone by `until_s` or ask at most what is to spare; how many.

    After each all are asked again, for who was refused because of a slow gang may find a fast one now.
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
    """Modify `s`: conservative backfilling.

    If a job was refused because of a slow gang, all are asked again after the next start: it may find a fast one then.
    """
    started = 0
    again = True
    while again:
        more, again = _promise_in_order(s, made_s)
        started += more
    return started


@kernel
def _promise_in_order(s, made_s):
    """Modify `s`: promise GPUs to one job after the other, and start those who get them now, until nobody else could.

    Returns:
        The number of jobs started, and True if it stopped at a start for all to be asked again.
    """
    _lay_steps(s)
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
    """True if there may be room now for a job after `last`, beside all that has been promised so far."""
    least = _least_demand(s)
    if s.free_gpus < least:
        return False
    lack = _first_lack(s, 0, math.inf, least)
    until_s = math.inf if lack < 0 else s.step_s[lack] * LATER
    return _next_in_line(s, last, made_s, s.free_gpus, until_s, 0) >= 0


@kernel
def _starts_beside(s, job, until_s):
    """Modify `s.gang`: True if a job finds a gang and will be gone by `until_s` and before others are promised it."""
    if s.step_free[0] < s.gpus[job] or not find_gang(s, job, s.placer):
        return False
    end_s = s.now_s + _run_here_s(s, job)
    return end_s <= until_s * LATER and _first_lack(s, 0, end_s, s.gpus[job]) < 0


@kernel
def _first_room(s, job, made_s, run_s):
    """The first step from the next end on at which a job that does not start now has room; `n_steps` if none has."""
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
    """The first step from `step` on, before `end_s`, with fewer than `gpus` free; -1 if there is none."""
    while step < s.n_steps and s.step_s[step] * LATER < end_s:
        if s.step_free[step] < gpus:
            return step
        step += 1
    return -1


@kernel
def _take(s, step, end_s, gpus):
    """Modify the steps of `s`: `gpus` are not free from `step` on until `end_s`."""
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
def _lay_steps(s):
    """Modify the steps of `s`: how many GPUs are free from when on, if nobody starts."""
    _lay_ends(s)
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
def _lay_ends(s):
    """Modify the ends in `s`: a heap of the running jobs by their expected ends, but for those who end never."""
    s.foresees = 0  # its heap is used
    s.n_ends = 0
    for i in range(s.running):
        job = s.runner[i]
        end_s = expected_end_s(s, job)
        if end_s < math.inf:
            heap.push(s.end_key, s.end_job, s.end_place, 0, s.n_ends, end_s, job)
            s.n_ends += 1


@kernel
def _next_to_end(s):
    """Modify the ends in `s`: take out and return the first."""
    job = s.end_job[0]
    heap.remove(s.end_key, s.end_job, s.end_place, 0, s.n_ends, job)
    s.n_ends -= 1
    return job


@kernel
def _frees(s, job):
    """GPUs that will be free when a running job ends: those that it has to itself."""
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
    """The next expected end of a running job that was not let past `job` just now."""
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
    """True if the placer finds a gang for a job wherever there are free GPUs enough."""
    return s.placer != CONSOLIDATED and (s.placer != SKEW or s.class_skewed[s.demand[job]] == 0)


@kernel
def _run_best_s(s, job):
    """Seconds for which a waiting job is expected to hold the best gang."""
    return _restore_s(s, job) + isolated_left_s(s, job) * _on_slices(s)


@kernel
def _run_here_s(s, job):
    """Modify scratch space of `s`: seconds for which a waiting job is expected to hold `s.gang`."""
    slowdown = gang_iteration_s(s, job, tier_of_gang(s)) / s.base_iteration_s[job]
    return _restore_s(s, job) + isolated_left_s(s, job) * slowdown * _on_slices(s)


@kernel
def _on_slices(s):
    """Times that an iteration takes longer where GPUs are cut in slices."""
    return s.slice_slowdown if has_berths(s) else 1.0


@kernel
def _restore_s(s, job):
    """Seconds that a waiting job will restore for when it starts."""
    if s.starts[job] > 0 or (has_berths(s) and s.restores_first):
        return restore_cost_s(s, job)
    return 0.0


@kernel
def _least_demand(s):
    """The fewest GPUs that a waiting job asks; more than there are if none waits."""
    for c in range(s.n_classes):
        if s.class_count[c] > 0:
            return s.class_gpus[c]
    return ANY_SIZE


@kernel
def _next_in_line(s, last, made_s, room, until_s, spare):
    """The next waiting job after `last` (-1: the first) among those that could start in `room` GPUs; or -1.

    Only those that ask at most `spare` GPUs, or on the best gang would be gone by `until_s`, of classes not blocked.
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
    """When a job came to stand in the line as it was made at `made_s`; before all time if it is in it by its key."""
    return s.waiting_since_s[job] if s.waiting_since_s[job] > made_s else -math.inf


@kernel
def _precedes(line_s, key, job, other_line_s, other_key, other):
    """True if the first of two jobs comes first in the line."""
    if line_s != other_line_s:
        return line_s < other_line_s
    return key < other_key or (key == other_key and job < other)
