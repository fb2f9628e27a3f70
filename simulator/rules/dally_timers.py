"""Delay scheduling: which offers a job takes, and the timers, fixed or tuned, for which it refuses worse tiers.

Source: paper dally, Algorithm 1 (on resource offer), Algorithm 2 (get tuned timers), Sec. IV-B2 and -B3. One list of
waits per GPU demand and tier (machine, rack): the starvation of every job that accepted that tier, with the time of
its acceptance. Entries older than the history are forgotten, and the timer is their mean plus two deviations. A gang
that does not fit a machine has no machine timer, one that does not fit a rack has neither.

Where the paper is silent: one entry gives itself (it has no deviation), an empty list gives `initial`.

Timers may be there to look at only (`s.timing`, while `s.delays` is 0): waits are recorded all the same, but nobody
refuses by them, and nothing happens when they run out.

`s.tuner_whole` is the tuner of the authors' simulator: only waits of a lease or more are recorded; timers are whole
leases between a floor and a cap; a rack timer that is shorter than the machine timer opens the network before the rack;
and old entries are forgotten only when another is added to their list, every one that is dropped sparing the one after
it, because the list shrinks while it is walked.
"""

import math

import numpy as np

from ..base.codes import FIXED, HELD, NO_DELAYS, TUNED, WAITING
from ..base.tiers import MACHINE, NETWORK, RACK
from ..compiler.jit import kernel
from ..running.gpu_allocation import is_spread, lift, lower
from ..running.placers import find_at, find_gang
from .greedy_wait import takes_now

NONE = -1


@kernel
def find_offer(s, job):
    """Modify `s.gang` (and the lists): GPUs that the waiting job accepts now, by Algorithm 1; False if there are none.

    Without delay timers, whatever the placer gives, if waiting for better would not be worth it.
    """
    if s.delays == 0:
        return find_gang(s, job, s.placer) and (s.waits == 0 or takes_now(s, job))
    need = s.gpus[job]
    if find_at(s, need, MACHINE, s.placer):  # line 5
        return True
    if need > s.free_gpus:
        return False
    starved_s = starvation_s(s, job)
    machine_s = timer_s(s, job, MACHINE)  # line 4; both lists are looked at, whichever timer decides
    rack_s = timer_s(s, job, RACK)
    if starved_s < machine_s and s.tuner_whole == 0:  # line 10
        return False
    if starved_s >= machine_s and find_at(s, need, RACK, s.placer):  # line 13
        return True
    if starved_s < rack_s:  # line 18
        return False
    return find_at(s, need, NETWORK, s.placer)  # line 21


@kernel
def find_upgrade(s, job):
    """Modify `s.gang`: GPUs at a better tier that the running job would accept, had it just been preempted.

    Its own GPUs count as free. Starvation is 0 then, so a rack will do only where there is no machine timer.
    """
    if not is_spread(s, job):
        return False
    need = s.gpus[job]
    if not s.auctions:  # there it keeps its GPUs for a while
        lift(s, job)
    found = find_at(s, need, MACHINE, s.placer)
    if not found and s.tier[job] == NETWORK and timer_s(s, job, MACHINE) <= 0.0:
        found = find_at(s, need, RACK, s.placer)
    if not s.auctions:
        lower(s, job)
    return found


@kernel
def timer_s(s, job, tier):
    """Modify the lists of `s`: seconds that a job waits for `tier` (MACHINE, RACK) before it takes a worse one."""
    gpus = s.gpus[job]
    if gpus > s.largest_rack or (tier == MACHINE and gpus > s.largest_machine):
        return 0.0
    if s.timing == FIXED:
        return s.timer_s[tier - MACHINE]
    return _tuned_s(s, s.demand[job], tier - MACHINE)


@kernel
def starvation_s(s, job):
    """Seconds since a waiting job arrived or lost its GPUs: T_starvation of Algorithm 1."""
    return s.now_s - s.waiting_since_s[job]


@kernel
def patience(s, job):
    """Modify the lists of `s`: what a waiting job takes now: 1 a machine, 2 a rack too, 3 anything."""
    if s.delays == 0:
        return 3
    starved_s = starvation_s(s, job)
    if starved_s >= timer_s(s, job, RACK) and (s.tuner_whole or starved_s >= timer_s(s, job, MACHINE)):
        return 3
    return 2 if starved_s >= timer_s(s, job, MACHINE) else 1


@kernel
def next_ring_s(s, job):
    """Modify the lists of `s`: the next instant at which a timer of a waiting job runs out; infinity if none will.

    A job of one GPU never refuses, so its timers do not matter.
    """
    next_s = math.inf
    if s.gpus[job] == 1:
        return next_s
    for tier in (MACHINE, RACK):
        next_s = min(next_s, _ring_s(s, job, tier))
    return next_s


@kernel
def _ring_s(s, job, tier):
    """Modify the lists of `s`: the instant at which a timer of a waiting job runs out; infinity if it has."""
    wait_s = timer_s(s, job, tier)
    ring_s = s.waiting_since_s[job] + wait_s
    while ring_s - s.waiting_since_s[job] < wait_s:  # rounding must not make it ring before it has run out
        ring_s = np.nextafter(ring_s, math.inf)
    return ring_s if ring_s > s.now_s else math.inf


@kernel
def _is_timed(s, job):
    """True if a job waits, or is held, and has timers, if only to look at."""
    return s.timing != NO_DELAYS and (s.status[job] == WAITING or s.status[job] == HELD)


@kernel
def timer_end_s(s, job, tier):
    """Modify the lists of `s`: the instant at which a job's timer of `tier` (MACHINE, RACK) runs out, as of now.

    Infinity where there are no timers, if it has run out already, and for a job that does not wait.
    """
    return _ring_s(s, job, tier) if _is_timed(s, job) else math.inf


@kernel
def timer_left_s(s, job, tier):
    """Modify the lists of `s`: seconds until `timer_end_s`; 0 where that is infinity but for a timer that is."""
    return max(0.0, timer_s(s, job, tier) - starvation_s(s, job)) if _is_timed(s, job) else 0.0


@kernel
def present_timer_s(s, job):
    """Modify the lists of `s`: the instant until which the waiting job refuses the tiers that it refuses now.

    Infinity where there are no timers, and for a job that takes anything.
    """
    return next_ring_s(s, job) if s.timing != NO_DELAYS else math.inf


@kernel
def record_wait(s, job, tier):
    """Modify `s`: the job accepts GPUs of that tier: update_demand_delay of Algorithm 1. True if it is recorded.

    The network is not recorded, nor is a rack that a job was given as a part of it. Where timers bind nobody, a job
    may have chosen a rack before its timer has run out.
    """
    if s.timing != TUNED or tier > RACK:
        return False
    if tier == RACK and (s.delays or s.tuner_whole) and starvation_s(s, job) < timer_s(s, job, MACHINE):
        return False
    wait = starvation_s(s, job) / s.tuner_unit_s
    if s.tuner_whole and wait < 1.0:
        return False
    entry = s.next_wait
    s.next_wait = (entry + 1) % s.wait_time_s.size
    if s.wait_list[entry] != 0:  # the memory is full: the oldest entry of all, the first of its list, goes
        _drop(s, s.wait_list[entry] - 1, NONE, entry)
    waits = 2 * s.demand[job] + max(tier, MACHINE) - MACHINE
    s.wait_time_s[entry] = s.now_s
    s.wait_value[entry] = wait
    s.wait_list[entry] = waits + 1
    s.wait_after[entry] = NONE
    if s.waits_count[waits] == 0:
        s.waits_total[waits] = 0.0
        s.waits_summed[waits] = 1
        s.waits_first[waits] = entry
    else:
        s.wait_after[s.waits_last[waits]] = entry
    s.waits_last[waits] = entry
    s.waits_count[waits] += 1
    s.waits_total[waits] += wait
    s.waits_known[waits] = 0
    if s.tuner_whole:
        _forget(s, waits)
    return True


@kernel
def _drop(s, waits, before, entry):
    """Modify `s`: take `entry` off its list; `before` stands before it there, or NONE."""
    after = s.wait_after[entry]
    if before == NONE:
        s.waits_first[waits] = after
    else:
        s.wait_after[before] = after
    if after == NONE:
        s.waits_last[waits] = before
    s.wait_list[entry] = 0
    s.waits_count[waits] -= 1
    s.waits_summed[waits] = 0
    s.waits_known[waits] = 0


@kernel
def _forget(s, waits):
    """Modify `s`: drop the entries of a list that are older than the history. They stand in order of time."""
    before = NONE
    entry = s.waits_first[waits] if s.waits_count[waits] > 0 else NONE
    while entry != NONE and s.wait_time_s[entry] < s.now_s - s.history_s:
        after = s.wait_after[entry]
        _drop(s, waits, before, entry)
        if s.tuner_whole and after != NONE:  # spared
            before = after
            after = s.wait_after[after]
        entry = after


@kernel
def _tuned_s(s, demand, which):
    waits = 2 * demand + which
    if s.tuner_whole == 0:
        _forget(s, waits)
    if s.waits_known[waits] == 0:
        s.waits_known[waits] = 1
        s.waits_timer[waits] = _timer_of(s, waits, which)
    return s.waits_timer[waits] * s.tuner_unit_s


@kernel
def _sum(s, waits):
    """Modify `s`: sum up the waits of a list, oldest first, as if none had ever been before them."""
    s.waits_summed[waits] = 1
    s.waits_total[waits] = 0.0
    entry = s.waits_first[waits]
    while entry != NONE:
        s.waits_total[waits] += s.wait_value[entry]
        entry = s.wait_after[entry]


@kernel
def _timer_of(s, waits, which):
    """Modify the sum of a list of `s`; the list's mean plus two deviations, in leases."""
    count = s.waits_count[waits]
    timer = s.tuner_initial[which]
    if count > 0:
        if s.waits_summed[waits] == 0:
            _sum(s, waits)
        mean = s.waits_total[waits] / count
        squares = 0.0
        entry = s.waits_first[waits]
        while entry != NONE:
            squares += (s.wait_value[entry] - mean) * (s.wait_value[entry] - mean)
            entry = s.wait_after[entry]
        degrees = count if s.tuner_population else count - 1
        timer = mean + 2.0 * math.sqrt(squares / degrees) if degrees > 0 else mean
    if s.tuner_whole:
        timer = min(s.tuner_cap[which], max(s.tuner_floor[which], np.ceil(timer)))
    return timer
