"""Scheduling passes of the compiled rules at one instant, from an order, a head rule and a placer.

A pass walks the order. Without preemption it holds only waiting jobs; with preemption, or ended leases, also running
ones, which keep their GPUs unless an earlier waiting job needs them. `head` decides at the first waiting job that does
not fit: `strict` ends the pass, `skip` goes on with the next, `reserve` and `conservative` too if no earlier job starts
later for it (backfill.py).

All waiting jobs of one demand class (same GPUs, same skew) fit or fail together, so a pass looks only at the heads of
the classes; a failed one is blocked for the rest of the pass, since room only shrinks. Rules under which every job
decides for itself are in `offer_pass.py`, rules that share GPUs in `bsbf/`; `decision_loop.py` selects the pass.
"""

from ...simulator.base.codes import COUNT, LOGGED, RUNNING, WAITING
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import enter_queue, grant_lease, leave_queue, plan, preempt
from ...simulator.record.feature_groups import has_berths
from ...simulator.rules.orders import (
    has_levels,
    is_running_place,
    lease_is_over,
    running_key,
    stopped_key,
    take_last_place,
)
from ...simulator.running.placers import find_gang
from .eviction import evict_for, give_up, gpus_behind, pick_evictable
from .starts import start

ANY_SIZE = 1 << 40


@kernel
def order_pass(s):
    """Modify `s`: one pass in the order of the rule. Returns the number of jobs started."""
    started = 0
    if s.preemptive or s.lease_s > 0.0:
        started = _fill_in_order(s)
        if s.waiting == 0:
            return started
        head = s.queue_item[s.class_base[best_class(s, ANY_SIZE)]]
        evictable_gpus = pick_evictable(s, head)
        if evictable_gpus > 0 and s.placer == COUNT and (not has_berths(s) or s.shared_gpus == 0):
            return started + _schedule_counted(s, evictable_gpus)
    while s.free_gpus > 0 or s.n_picked > 0:
        c = best_class(s, ANY_SIZE if s.strict or s.n_picked > 0 else s.free_gpus)
        if c < 0:
            break
        job = s.queue_item[s.class_base[c]]
        if s.order == LOGGED and s.order_key[job] > s.now_s:
            break
        if find_gang(s, job, s.placer) or (s.n_picked > 0 and evict_for(s, job)):
            start(s, job)
            started += 1
        elif s.strict:
            break
        else:
            s.class_blocked[c] = s.pass_number
    return started


@kernel
def _fill_in_order(s):
    """Modify `s`: start waiting jobs up to the first that does not fit; only then do running jobs matter."""
    started = 0
    while s.waiting > 0:
        job = s.queue_item[s.class_base[best_class(s, ANY_SIZE)]]
        if not find_gang(s, job, s.placer):
            break
        start(s, job)
        started += 1
    return started


@kernel
def commit(s, offered):
    """Modify `s`: the instant is over. Jobs that started, stopped or were demoted take their places in the order.

    A job that keeps its GPUs after its lease begins another: at once, or, under delay timers, after an offer
    (`offered`).
    """
    _sort_joined(s)
    for i in range(s.n_joined):
        job = s.joined[i]
        s.is_joined[job] = 0
        if s.status[job] == RUNNING:
            if has_levels(s) and not is_running_place(s, job, s.run_key[job]):
                take_last_place(s, job)
            if s.delays == 0 and lease_is_over(s, job):
                grant_lease(s, job)
                plan(s, job)
    for i in range(s.n_joined - 1, -1, -1):
        job = s.joined[i]
        if s.status[job] == WAITING and has_levels(s) and is_running_place(s, job, s.order_key[job]):
            leave_queue(s, job)
            enter_queue(s, job, stopped_key(s, job))
    s.n_joined = 0
    s.demoted_now = 0
    if s.delays and offered and s.leases_over:
        s.leases_over = 0
        for i in range(s.running):
            if lease_is_over(s, s.runner[i]):
                grant_lease(s, s.runner[i])
                plan(s, s.runner[i])


@kernel
def bring_back(s, n_taken_out):
    """Modify `s`: return the jobs taken out in a pass, in `bid`, to the queue. Returns 0, the number left."""
    for i in range(n_taken_out):
        enter_queue(s, s.bid[i], s.order_key[s.bid[i]])
    return 0


@kernel
def _sort_joined(s):
    """Modify `s.joined`: insertion sort into the order of the last pass."""
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
    """Class whose first waiting job is next, among classes not blocked that need at most `room`; or -1."""
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
def _schedule_counted(s, evictable_gpus):
    """Modify `s`: a pass with preemption where only numbers of GPUs matter.

    It decides on numbers first: a job that is given up for one and then fits beside another keeps its GPUs, as in a
    greedy walk over the whole cluster.
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
            if room + gpus_behind(s, job) < need:
                if s.strict:
                    break
                s.class_blocked[c] = s.pass_number
                continue
            kept = out
            out = give_up(s, out, need - room)
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
    """Modify `s`: after a strict pass ended early, jobs given up that fit beside the chosen ones go on, best first.

    Without this a job that blocks the head would stop others that it cannot replace.
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
