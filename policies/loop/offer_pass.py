"""One auction: free GPUs are offered to every waiting job in turn, and each takes or refuses them.

`order_pass.py` asks one job of a demand class for all. Here every job decides for itself: it has waited longer than its
like (Dally's timers), has more work left (greedy: it may stop or move others), or runs and may move (Gandiva). Under
delay timers the jobs of a class take GPUs inside a machine alike, so its first job stands for it until that one
refuses; then only jobs that have waited longer are asked. GPUs that a move frees are offered in another pass.

Under delay timers a lease that has ended is over as soon as a job waits: its job gives its GPUs back and is offered
GPUs like waiting jobs, its starvation at 0. With the same GPUs it has not stopped: `commit` begins another lease.
"""

from ...simulator.base.codes import RUNNING, WAITING
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import migrate, preempt
from ...simulator.rules.orders import comes_before, is_leased
from ...simulator.running.gpu_allocation import is_spread
from ...simulator.running.placers import find_better, find_gang
from ..dally import find_accepted, find_upgrade, patience
from ..gandiva.time_slicing import may_stop, pick_turns_over, turn_is_over
from ..greedy.greedy_wait import forget, takes_now
from ..greedy.room import starts_for_room
from ..passes.eviction import evict_for, pick_evictable, pick_leases_over, pop_pick
from ..passes.starts import start


@kernel
def make_offers(s):
    """Modify `s`: offer GPUs, free or of ended leases, in order. Returns the starts. Paper: dally, Sec. IV-B."""
    started = 0
    s.moved = 0
    leases_end = s.waiting > 0 and s.lease_s > 0.0 and s.auctions == 0  # only waiting jobs end leases
    if leases_end and s.delays and s.leases_over:
        _end_leases(s)
    forget(s)
    count = _gather(s)
    if leases_end and s.delays == 0:
        pick_evictable(s, s.bid[0])
    elif s.waiting > 0 and turn_is_over(s):
        pick_turns_over(s)
    while count > 0 and (s.free_gpus > 0 or s.n_picked > 0 or s.preempts):
        job = s.bid[0]
        count = _remove_first(s, count)
        if s.status[job] == RUNNING:
            _move(s, job)
            continue
        demand = s.demand[job]
        takes = patience(s, job)
        if takes <= _refused(s, demand):
            continue
        stands_for_class = s.class_blocked[demand] != s.pass_number
        evicted = 0
        taken = find_offer(s, job)
        if not taken and s.n_picked > 0 and may_stop(s, job):
            evicted = evict_for(s, job)
            taken = evicted > 0
        if taken:
            start(s, job)
            forget(s)
            started += 1
            if stands_for_class and s.class_count[demand] > 0:
                count = _add(s, s.queue_item[s.class_base[demand]], count)
            count = _add_stopped(s, evicted, count)
        elif starts_for_room(s, job):
            started += 1
            s.moved = 1  # free GPUs are offered anew, first in order first
            break
        elif s.strict:
            break
        elif s.waits == 0:
            s.class_refused[demand] = 4 * s.pass_number + takes
            if stands_for_class:
                s.class_blocked[demand] = s.pass_number
                if s.gpus[job] <= s.free_gpus or s.n_picked > 0:
                    count = _add_class(s, demand, count)
    return started


@kernel
def find_offer(s, job):
    """Modify `s.gang` (and the lists of waits): GPUs that the waiting job accepts now; False if there are none."""
    if s.delays:
        return find_accepted(s, job)
    return find_gang(s, job, s.placer) and (s.waits == 0 or takes_now(s, job))


@kernel
def _end_leases(s):
    """Modify `s`: running jobs whose lease has ended lose their GPUs, lowest index first."""
    pick_leases_over(s)
    while s.n_picked > 0:
        job = s.pick_job[0]
        pop_pick(s)
        preempt(s, job)


@kernel
def _refused(s, demand):
    """The most tiers (`patience`) that a job of a class took which has refused in this pass; 0: none has."""
    refused = s.class_refused[demand]
    return refused % 4 if refused // 4 == s.pass_number else 0


@kernel
def _move(s, job):
    """Modify `s`: a running job moves if a better tier has room, beside its own GPUs or (Dally) in their place."""
    if s.started_s[job] == s.now_s:
        return
    if find_upgrade(s, job) if s.delays else find_better(s, job, s.placer):
        migrate(s, job)
        s.moved = 1


@kernel
def _add_stopped(s, stopped, count):
    """Modify `s.bid`: the jobs in `s.out_job`, just stopped, join the heap. Returns the new length."""
    for i in range(stopped):
        count = _add(s, s.out_job[i], count)
    return count


@kernel
def _gather(s):
    """Modify `s.bid`: a heap of the first jobs of all classes, and of the running jobs that may move.

    At auctions, where ties go by more than the order inside a class, and where jobs weigh waiting, so that one may take
    what its like refuses, it has every job that could be served.
    """
    count = 0
    for demand in range(s.n_classes):
        if s.class_count[demand] > 0 and s.auctions == 0 and s.waits == 0:
            count = _add(s, s.queue_item[s.class_base[demand]], count)
        elif (s.auctions or s.waits) and (s.class_gpus[demand] <= s.free_gpus or s.strict or s.preempts):
            s.class_blocked[demand] = s.pass_number
            count = _add_class(s, demand, count)
    if s.migrates and s.spread > 0:
        for i in range(s.running):
            job = s.runner[i]
            if is_spread(s, job) and s.begun_s[job] < s.now_s and not is_leased(s, job):
                count = _add(s, job, count)
    return count


@kernel
def _add_class(s, demand, count):
    """Modify `s.bid`: waiting jobs of a class that may accept join the heap. Returns the new length."""
    refused = _refused(s, demand)
    base = s.class_base[demand]
    for i in range(base, base + s.class_count[demand]):
        if refused == 0 or patience(s, s.queue_item[i]) > refused:
            count = _add(s, s.queue_item[i], count)
    return count


@kernel
def _add(s, job, count):
    """Modify `s.bid`: the job joins the heap, if it waits or runs. Returns the new length."""
    if s.status[job] != WAITING and s.status[job] != RUNNING:
        return count
    hole = count
    while hole > 0:
        parent = (hole - 1) // 2
        if not comes_before(s, job, s.bid[parent]):
            break
        s.bid[hole] = s.bid[parent]
        hole = parent
    s.bid[hole] = job
    return count + 1


@kernel
def _remove_first(s, count):
    """Modify `s.bid`: remove the first job of the heap. Returns the new length."""
    count -= 1
    job = s.bid[count]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and comes_before(s, s.bid[child + 1], s.bid[child]):
            child += 1
        if not comes_before(s, s.bid[child], job):
            break
        s.bid[hole] = s.bid[child]
        hole = child
    s.bid[hole] = job
    return count
