"""One auction: free GPUs are offered to every waiting job in turn, and each takes or refuses them.

Where `passes.py` may look at one job of a demand class for all, here every job decides for itself: one has waited for
longer than its like (delay timers), or GPUs are offered to running jobs too, so that they move (Gandiva). A pass costs
the number of jobs that could be served with the GPUs there are.
"""

from ..kernels.codes import RUNNING
from ..kernels.jit import kernel
from ..kernels.jobs import migrate, start
from ..tiers import RACK
from .delays import find_offer
from .eviction import evict_for, pick_evictable
from .orders import is_leased, running_key
from .placers import find_better


@kernel
def make_offers(s):
    """Modify `s`: offer what is free, and what leases that have ended may free, in the order of the rule.

    Returns the number of jobs started.
    """
    started = 0
    count = _gather(s, s.free_gpus)
    if s.lease_s > 0.0 and s.auctions == 0 and s.waiting > 0:
        count = _gather(s, s.n_gpus)
        pick_evictable(s, s.bid[0])
    while count > 0 and (s.free_gpus > 0 or s.n_picked > 0):
        job = s.bid[0]
        count = _remove_first(s, count)
        if s.status[job] == RUNNING:
            if find_better(s, job, s.placer):
                migrate(s, job)
        elif find_offer(s, job) or (s.n_picked > 0 and evict_for(s, job)):
            start(s, job)
            started += 1
        elif s.strict:
            break
    return started


@kernel
def _gather(s, room):
    """Modify `s.bid`: a heap of the waiting jobs that ask at most `room` GPUs, and of those that may move."""
    count = 0
    for demand in range(s.n_classes):
        if s.class_gpus[demand] > room and s.strict == 0:
            break
        base = s.class_base[demand]
        for i in range(base, base + s.class_count[demand]):
            s.bid[count] = s.queue_item[i]
            count += 1
    if s.migrates and s.spread > 0:
        for i in range(s.running):
            job = s.runner[i]
            if s.tier[job] >= RACK and s.begun_s[job] < s.now_s and not is_leased(s, job):
                s.bid[count] = job
                count += 1
    for i in range(count // 2 - 1, -1, -1):
        _sink(s, i, count)
    return count


@kernel
def _remove_first(s, count):
    """Modify `s.bid`: a heap without its first job; returns the new length."""
    s.bid[0] = s.bid[count - 1]
    _sink(s, 0, count - 1)
    return count - 1


@kernel
def _sink(s, hole, count):
    job = s.bid[hole]
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and _comes_before(s, s.bid[child + 1], s.bid[child]):
            child += 1
        if not _comes_before(s, s.bid[child], job):
            break
        s.bid[hole] = s.bid[child]
        hole = child
    s.bid[hole] = job


@kernel
def _comes_before(s, a, b):
    """Whether job `a` is offered GPUs before `b`: by key; at auctions, ties go to who got or lost GPUs longer ago."""
    key_a = _key(s, a)
    key_b = _key(s, b)
    if key_a != key_b:
        return key_a < key_b
    if s.auctions:
        since_a = _last_assignment_s(s, a)
        since_b = _last_assignment_s(s, b)
        if since_a != since_b:
            return since_a < since_b
    return a < b


@kernel
def _key(s, job):
    return running_key(s, job) if s.status[job] == RUNNING else s.order_key[job]


@kernel
def _last_assignment_s(s, job):
    return s.begun_s[job] if s.status[job] == RUNNING else s.waiting_since_s[job]
