"""Scheduling passes: what the compiled rules decide at one instant, from an order, a head rule and a placer.

A pass walks the order. Without preemption only waiting jobs are in it. With preemption (or where leases have ended)
running jobs stand in it too: they keep their GPUs unless a waiting job before them needs these. `head` says what
happens at the first waiting job that does not fit: with `strict` nobody behind it starts, `skip` goes on with the next.

All waiting jobs of one demand class (same GPUs, same skew) fit or fail together, so a pass looks only at the heads of
the classes; one that failed is blocked for the rest of the pass, since room only shrinks.
"""

import math

from ..kernels.codes import COUNT, RUNNING, WAITING
from ..kernels.jit import kernel
from ..kernels.jobs import enter_queue, leave_queue, plan, preempt, start
from ..kernels.placement import lift, lower
from .orders import has_levels, is_running_place, running_key, settle_place, stopped_key
from .placers import find_gang

ANY_SIZE = 1 << 40


@kernel
def schedule(s):
    """Modify `s`: one pass of the rule at this instant; returns the number of jobs started."""
    s.pass_number += 1
    s.n_picked = 0
    if s.waiting == 0 or next_round_s(s) > s.now_s:
        return 0
    started = 0
    if s.preemptive or s.lease_s > 0.0:
        started = _fill_in_order(s)
        if s.waiting == 0:
            return started
        evictable_gpus = _pick_evictable(s)
        if evictable_gpus > 0 and s.placer == COUNT:
            return started + _schedule_counted(s, evictable_gpus)
    while s.free_gpus > 0 or s.n_picked > 0:
        c = best_class(s, ANY_SIZE if s.strict or s.n_picked > 0 else s.free_gpus)
        if c < 0:
            break
        job = s.queue_item[s.class_base[c]]
        if find_gang(s, job, s.placer) or (s.n_picked > 0 and _evict_for(s, job)):
            start(s, job)
            started += 1
        elif s.strict:
            break
        else:
            s.class_blocked[c] = s.pass_number
    return started


@kernel
def _fill_in_order(s):
    """Modify `s`: start waiting jobs up to the first that does not fit; only then are running jobs looked at."""
    started = 0
    while s.waiting > 0:
        job = s.queue_item[s.class_base[best_class(s, ANY_SIZE)]]
        if not find_gang(s, job, s.placer):
            break
        start(s, job)
        started += 1
    return started


@kernel
def next_round_s(s):
    """The first instant from now on at which a pass may be made."""
    if s.round_s <= 0.0:
        return s.now_s
    tick_s = math.ceil(s.now_s / s.round_s) * s.round_s
    # A multiple of a fraction may come out a rounding error beyond the clock, which stands on that very multiple.
    return s.now_s if tick_s <= s.now_s + 1e-9 * s.round_s else tick_s


@kernel
def commit(s):
    """Modify `s`: the instant is over. Jobs that started, stopped or were demoted take their places in the order.

    Leases that have ended are renewed.
    """
    _sort_joined(s)
    for i in range(s.n_joined):
        job = s.joined[i]
        s.is_joined[job] = 0
        if s.status[job] == RUNNING:
            if has_levels(s) and not is_running_place(s, job, s.run_key[job]):
                settle_place(s, job)
            if s.lease_s > 0.0 and s.lease_end_s[job] <= s.now_s:
                s.lease_end_s[job] = s.now_s + s.lease_s
                plan(s, job)
    for i in range(s.n_joined - 1, -1, -1):
        job = s.joined[i]
        if s.status[job] == WAITING and has_levels(s) and is_running_place(s, job, s.order_key[job]):
            leave_queue(s, job)
            enter_queue(s, job, stopped_key(s, job))
    s.n_joined = 0
    s.demoted_now = 0


@kernel
def _sort_joined(s):
    """Modify `s.joined`: into the order of the pass that is over. They are few: insertion sort."""
    for i in range(1, s.n_joined):
        job = s.joined[i]
        key = _key_of(s, job)
        j = i - 1
        while j >= 0:
            other = s.joined[j]
            other_key = _key_of(s, other)
            if other_key < key or (other_key == key and other < job):
                break
            s.joined[j + 1] = other
            j -= 1
        s.joined[j + 1] = job


@kernel
def _key_of(s, job):
    return s.run_key[job] if s.status[job] == RUNNING else s.order_key[job]


@kernel
def best_class(s, room):
    """Class whose first waiting job is next in the order, among classes not blocked that ask at most `room`; or -1."""
    best = -1
    best_key = 0.0
    best_job = 0
    for c in range(s.n_classes):
        if s.class_gpus[c] > room:
            break
        if s.class_count[c] > 0 and s.class_blocked[c] != s.pass_number:
            key = s.queue_key[s.class_base[c]]
            if best < 0 or key <= best_key:
                job = s.queue_item[s.class_base[c]]
                if best < 0 or key < best_key or job < best_job:
                    best, best_key, best_job = c, key, job
    return best


@kernel
def _pick_evictable(s):
    """Modify `s.pick_*`: a heap, worst first, of the running jobs that may be stopped now; returns the GPUs they hold.

    These are the ones that stand after the first waiting job and have no lease that still runs.
    """
    first = best_class(s, ANY_SIZE)
    head_key = s.queue_key[s.class_base[first]]
    head_job = s.queue_item[s.class_base[first]]
    if has_levels(s) and s.demoted_now == 0 and not _runs_below(s, s.level[head_job]):
        return 0
    gpus = 0
    for i in range(s.running):
        job = s.runner[i]
        if s.lease_s > 0.0 and s.lease_end_s[job] > s.now_s:
            continue
        key = running_key(s, job)
        if key > head_key or (key == head_key and job > head_job):
            _push_pick(s, key, job)
            gpus += s.gpus[job]
    return gpus


@kernel
def _runs_below(s, level):
    """True if a running job is in a lower queue than `level`: within a level running jobs stand before waiting ones."""
    for lower_level in range(level + 1, s.n_thresholds + 1):
        if s.level_running[lower_level] > 0:
            return True
    return False


@kernel
def _gpus_behind(s, job):
    """GPUs of the running jobs that may be stopped and stand behind a waiting job."""
    key = s.order_key[job]
    gpus = 0
    for i in range(s.n_picked):
        if s.pick_key[i] > key or (s.pick_key[i] == key and s.pick_job[i] > job):
            gpus += s.gpus[s.pick_job[i]]
    return gpus


@kernel
def _schedule_counted(s, evictable_gpus):
    """Modify `s`: a pass with preemption where only numbers of GPUs matter.

    Decided on numbers first, carried out afterwards: so a job that is given up for one and then fits beside another
    keeps its GPUs, and the outcome is that of walking the order greedily over the whole cluster.
    """
    room = s.free_gpus
    started = 0
    out = 0
    while room + evictable_gpus > 0:
        c = best_class(s, ANY_SIZE if s.strict else room + evictable_gpus)
        if c < 0:
            break
        job = s.queue_item[s.class_base[c]]
        need = s.gpus[job]
        if room < need:
            if room + _gpus_behind(s, job) < need:
                if s.strict:
                    break
                s.class_blocked[c] = s.pass_number
                continue
            kept = out
            out = _give_up(s, out, need - room)
            for i in range(kept, out):
                room += s.gpus[s.out_job[i]]
                evictable_gpus -= s.gpus[s.out_job[i]]
                enter_queue(s, s.out_job[i], running_key(s, s.out_job[i]))
        leave_queue(s, job)
        room -= need
        if s.status[job] != RUNNING:
            s.chosen[started] = job
            started += 1
    _spare(s, out, room)
    for i in range(out):
        if s.queue_place[s.out_job[i]] >= 0:
            leave_queue(s, s.out_job[i])
            preempt(s, s.out_job[i])
    for i in range(started):
        find_gang(s, s.chosen[i], COUNT)
        start(s, s.chosen[i])
    return started


@kernel
def _spare(s, out, room):
    """Modify `s`: a strict pass ended early; of the jobs given up, those that fit beside the chosen ones go on.

    Without this a job that blocks the head would stop others that it cannot replace. Best first.
    """
    while True:
        best = -1
        for i in range(out):
            job = s.out_job[i]
            if s.queue_place[job] < 0 or s.gpus[job] > room:
                continue
            key = s.out_key[i]
            if best < 0 or key < s.out_key[best] or (key == s.out_key[best] and job < s.out_job[best]):
                best = i
        if best < 0:
            return
        leave_queue(s, s.out_job[best])
        room -= s.gpus[s.out_job[best]]


@kernel
def _give_up(s, out, need):
    """Modify `s.out_job[out:]`: running jobs that hold at least `need` GPUs together; returns the new length.

    Worst first until there are enough; then, best first, those that are not needed after all are spared.
    """
    first = out
    gpus = 0
    while gpus < need:
        s.out_key[out] = s.pick_key[0]
        s.out_job[out] = s.pick_job[0]
        gpus += s.gpus[s.pick_job[0]]
        out += 1
        _pop_pick(s)
    for i in range(out - 1, first - 1, -1):
        job = s.out_job[i]
        if gpus - s.gpus[job] >= need:
            gpus -= s.gpus[job]
            _push_pick(s, s.out_key[i], job)
            s.out_job[i] = -1
    length = first
    for i in range(first, out):
        if s.out_job[i] >= 0:
            s.out_job[length] = s.out_job[i]
            s.out_key[length] = s.out_key[i]
            length += 1
    return length


@kernel
def _evict_for(s, job):
    """Modify `s`: stop running jobs so that waiting `job` finds a gang, left in `s.gang`.

    False, and nothing changed, if not even all of those that stand behind it would do. They are given up worst first;
    then, best first, each one that is not needed after all keeps its GPUs.
    """
    if s.free_gpus + _gpus_behind(s, job) < s.gpus[job]:
        return False
    key = s.order_key[job]
    out = 0
    found = False
    while not found and s.n_picked > 0:
        worst_key = s.pick_key[0]
        worst = s.pick_job[0]
        if worst_key < key or (worst_key == key and worst < job):
            break
        _pop_pick(s)
        s.out_key[out] = worst_key
        s.out_job[out] = worst
        out += 1
        lift(s, worst)
        found = find_gang(s, job, s.placer)
    for i in range(out - 1, -1, -1):
        spared = not found
        if found and s.free_gpus - s.gpus[s.out_job[i]] >= s.gpus[job]:
            lower(s, s.out_job[i])
            spared = find_gang(s, job, s.placer)
            if not spared:
                lift(s, s.out_job[i])
        elif spared:
            lower(s, s.out_job[i])
        if spared:
            _push_pick(s, s.out_key[i], s.out_job[i])
            s.out_job[i] = -1
    for i in range(out):
        if s.out_job[i] >= 0:
            lower(s, s.out_job[i])
    for i in range(out):
        if s.out_job[i] >= 0:
            preempt(s, s.out_job[i])
    return found and find_gang(s, job, s.placer)


@kernel
def _push_pick(s, key, job):
    hole = s.n_picked
    s.n_picked += 1
    while hole > 0:
        parent = (hole - 1) // 2
        parent_key = s.pick_key[parent]
        parent_job = s.pick_job[parent]
        if parent_key > key or (parent_key == key and parent_job > job):
            break
        s.pick_key[hole] = parent_key
        s.pick_job[hole] = parent_job
        hole = parent
    s.pick_key[hole] = key
    s.pick_job[hole] = job


@kernel
def _pop_pick(s):
    count = s.n_picked - 1
    s.n_picked = count
    key = s.pick_key[count]
    job = s.pick_job[count]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (
            s.pick_key[right] > s.pick_key[child]
            or (s.pick_key[right] == s.pick_key[child] and s.pick_job[right] > s.pick_job[child])
        ):
            child = right
        if s.pick_key[child] < key or (s.pick_key[child] == key and s.pick_job[child] < job):
            break
        s.pick_key[hole] = s.pick_key[child]
        s.pick_job[hole] = s.pick_job[child]
        hole = child
    s.pick_key[hole] = key
    s.pick_job[hole] = job
