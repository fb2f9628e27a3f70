"""Dally: delay scheduling over the tiers of the network, self-tuning timers, network-sensitive preemption.

Source: paper dally, Sec. IV-B: priority Nw_sens (simulator/rules/orders.py), Algorithm 1 (placement on an offer; offers
are made in loop/offer_pass.py), Algorithm 2 (timers), variants of Sec. V-C. Parameters: docs/policies/dally.md.

Choices where the paper is silent:
* Leases: 3,600 s from the start. At an offer round with a waiting job, a running job whose lease has ended bids too:
  its GPUs count as free, its starvation is 0. Order: Nw_sens in millionths; ties: fewer GPUs, earlier last assignment
  (lease ended: now), lower index. With the same GPUs it begins a new lease; with others it pays `preemption_cost`; with
  none it waits, and its starvation starts now. It accepts by Algorithm 1; a move records no wait. `lease=0`: no job is
  stopped, and jobs move to a better tier with room.
* Offers come at every event and when a job's own timer runs out; `round` makes them periodic.
* T_starvation counts from the arrival or the last loss of the GPUs.
* Of several machines or racks with room, the one with fewest free GPUs (`placer=tier`), or the first (`first`), as in
  the authors' simulator.

Timers: each GPU demand and tier (machine, rack) has a list of waits: the starvation of each job that accepted the tier,
with the time of acceptance. Entries older than the history are forgotten. The timer is the mean plus two deviations; of
one entry the entry, of none `initial`. A gang larger than a machine has no machine timer; one larger than a rack has
neither. `s.timing` with `s.delays` 0: timers are kept but delay no job.

`s.tuner_whole` is the tuner of the authors' simulator. It records only waits of a lease or more. Timers are whole
leases between a floor and a cap. A rack timer below the machine timer opens the network before the rack. Old entries
are forgotten only when their list grows, and each dropped entry spares the next one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from ..simulator.base.codes import FIXED, HELD, NO_DELAYS, TUNED, WAITING
from ..simulator.base.tiers import MACHINE, NETWORK, RACK
from ..simulator.compiler.jit import kernel
from ..simulator.numerics.heap import schedule_event
from ..simulator.numerics.instructions import ceil, next_above
from ..simulator.rules.rule import Rule, Tuner
from ..simulator.rules.semantics import LEASE_S
from ..simulator.running.gpu_allocation import is_spread, lift, lower
from ..simulator.running.placers import find_at
from .base import RulePolicy

Placer = Literal["tier", "first"]
MANUAL_S = (12 * 3600.0, 24 * 3600.0)
FOR_EVER_S = (math.inf, math.inf)
NONE = -1  # no entry of a list of waits


def dally(
    history: float = 24.0,
    initial: tuple[float, ...] = (1.0,),
    deviation: Literal["sample", "population"] = "sample",
    floors: tuple[float, ...] | None = None,
    lease: float = LEASE_S,
    placer: Placer = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
) -> RulePolicy:
    """Dally with its auto-tuner; `history`, `initial` and `floors` are leases, see `rules.rule.Tuner`.

    The paper prints no history limit; 24 leases are a day, the authors' own setting. Paper: dally, Sec. IV-B3.
    """
    return _dally("dally", placer, lease, preemption_cost, round, tuner=Tuner(history, initial, deviation, floors))


def dally_manual(
    timers: tuple[float, ...] = MANUAL_S,
    lease: float = LEASE_S,
    placer: Placer = "tier",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
) -> RulePolicy:
    """Dally with fixed timers of machine and rack, seconds from one instant. Paper: dally, Sec. IV-B2; Sec. V-C."""
    return _dally("dally-manual", placer, lease, preemption_cost, round, timers=timers)


def dally_nowait(
    lease: float = LEASE_S, placer: Placer = "tier", preemption_cost: tuple[float, ...] = (0.0,), round: float = 0.0
) -> RulePolicy:
    """Dally that never waits: both timers are 0. Paper: dally, Sec. V-C."""
    return _dally("dally-nowait", placer, lease, preemption_cost, round, timers=(0.0, 0.0))


def dally_consolidated(
    lease: float = LEASE_S, placer: Placer = "tier", preemption_cost: tuple[float, ...] = (0.0,), round: float = 0.0
) -> RulePolicy:
    """Dally that waits for ever: a gang takes the best tier that its size admits."""
    return _dally("dally-consolidated", placer, lease, preemption_cost, round, timers=FOR_EVER_S)


def _dally(name: str, placer: str, lease: float, cost: tuple[float, ...], round: float, **timing: Any) -> RulePolicy:
    migrates = lease == 0.0
    rule = Rule("nw-sens", placer=placer, preemption_cost=cost, round=round, lease=lease, migrates=migrates, **timing)
    return RulePolicy(name, rule, replace(rule, placer="first", migrates=False))


@kernel
def find_accepted(s, job):
    """Modify `s.gang` and the lists of waits. False if the job accepts no GPUs now. Paper: dally, Algorithm 1."""
    need = s.gpus[job]
    if find_at(s, need, MACHINE, s.placer):  # line 5
        return True
    if need > s.free_gpus:
        return False
    starved_s = starvation_s(s, job)
    machine_s = timer_s(s, job, MACHINE)  # line 4; both lists are updated, whichever timer decides
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
    """Modify `s.gang`: GPUs at a better tier that the running job would accept with starvation 0; its own are free."""
    if not is_spread(s, job):
        return False
    need = s.gpus[job]
    if not s.auctions:  # with auctions the job keeps its GPUs for a while
        lift(s, job)
    found = find_at(s, need, MACHINE, s.placer)
    if not found and s.tier[job] == NETWORK and timer_s(s, job, MACHINE) <= 0.0:
        found = find_at(s, need, RACK, s.placer)
    if not s.auctions:
        lower(s, job)
    return found


@kernel
def timer_s(s, job, tier):
    """Modify the lists of `s`: seconds of a job's timer. Paper: dally, Algorithm 1, line 4; Sec. IV-B2."""
    gpus = s.gpus[job]
    if gpus > s.largest_rack or (tier == MACHINE and gpus > s.largest_machine):
        return 0.0
    if s.timing == FIXED:
        return s.timer_s[tier - MACHINE]
    return _tuned_s(s, s.demand[job], tier - MACHINE)


@kernel
def starvation_s(s, job):
    """Seconds since a waiting job arrived or lost its GPUs. Paper: dally, Algorithm 1, line 2."""
    return s.now_s - s.waiting_since_s[job]


@kernel
def patience(s, job):
    """Modify the lists of `s`: tiers that a waiting job takes now: 1 a machine, 2 also a rack, 3 any."""
    if s.delays == 0:
        return 3
    starved_s = starvation_s(s, job)
    if starved_s >= timer_s(s, job, RACK) and (s.tuner_whole or starved_s >= timer_s(s, job, MACHINE)):
        return 3
    return 2 if starved_s >= timer_s(s, job, MACHINE) else 1


@kernel
def next_ring_s(s, job):
    """Modify the lists of `s`: the next end of a waiting job's timers; infinity: none, or one GPU."""
    next_s = math.inf
    if s.gpus[job] == 1:
        return next_s
    for tier in (MACHINE, RACK):
        next_s = min(next_s, _ring_s(s, job, tier))
    return next_s


@kernel
def note_accepted(s, job):
    """Modify `s`: record the wait of a job that has started, and schedule the timers of jobs with its demand."""
    if record_wait(s, job, s.tier[job]) and s.delays and s.auctions == 0:
        base = s.class_base[s.demand[job]]
        for i in range(base, base + s.class_count[s.demand[job]]):
            schedule_event(s, s.queue_item[i], next_ring_s(s, s.queue_item[i]))


@kernel
def set_rings(s):
    """Modify `s`: schedule the next timer of each waiting job that is new or whose timer has just run out."""
    for i in range(s.n_untimed):
        job = s.untimed[i]
        s.is_untimed[job] = 0
        if s.delays and s.status[job] == WAITING:
            schedule_event(s, job, next_ring_s(s, job))
    s.n_untimed = 0


@kernel
def _ring_s(s, job, tier):
    """Modify the lists of `s`: the instant at which a timer of a waiting job runs out; infinity if it has."""
    wait_s = timer_s(s, job, tier)
    ring_s = s.waiting_since_s[job] + wait_s
    while ring_s - s.waiting_since_s[job] < wait_s:  # rounding must not end it early
        ring_s = next_above(ring_s)
    return ring_s if ring_s > s.now_s else math.inf


@kernel
def _is_timed(s, job):
    return s.timing != NO_DELAYS and (s.status[job] == WAITING or s.status[job] == HELD)


@kernel
def timer_end_s(s, job, tier):
    """Modify the lists of `s`: the instant at which a job's timer of `tier` runs out; infinity: none, or past."""
    return _ring_s(s, job, tier) if _is_timed(s, job) else math.inf


@kernel
def timer_left_s(s, job, tier):
    """Modify the lists of `s`: seconds until the timer runs out; 0 if it has, and for a job without a timer."""
    return max(0.0, timer_s(s, job, tier) - starvation_s(s, job)) if _is_timed(s, job) else 0.0


@kernel
def record_wait(s, job, tier):
    """Modify `s`: the job accepts GPUs of `tier`. True if its wait is recorded.

    Not recorded: the network, a rack that the job got as part of the network, a rack chosen before its timer ran out.
    Paper: dally, Algorithm 1, lines 7 and 15.
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
    if s.wait_list[entry] != 0:  # the memory is full: the oldest entry, the first of its list, goes
        _drop(s, int(s.wait_list[entry]) - 1, NONE, entry)
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
    """Modify `s`: take `entry` off its list; `before` precedes it there, or NONE."""
    after = int(s.wait_after[entry])
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
    """Modify `s`: drop old entries of a list, oldest first. Paper: dally, Algorithm 2, lines 2 to 6 and 8 to 12."""
    before = NONE
    entry = int(s.waits_first[waits]) if s.waits_count[waits] > 0 else NONE
    while entry != NONE and s.wait_time_s[entry] < s.now_s - s.history_s:
        after = int(s.wait_after[entry])
        _drop(s, waits, before, entry)
        if s.tuner_whole and after != NONE:  # spare the next one
            before = after
            after = int(s.wait_after[after])
        entry = after


@kernel
def _tuned_s(s, demand, which):
    """Modify the lists of `s`: seconds of a tuned timer; `which`: 0 machine, 1 rack. Paper: dally, Algorithm 2."""
    waits = 2 * demand + which
    if s.tuner_whole == 0:
        _forget(s, waits)
    if s.waits_known[waits] == 0:
        s.waits_known[waits] = 1
        s.waits_timer[waits] = _timer_of(s, waits, which)
    return s.waits_timer[waits] * s.tuner_unit_s


@kernel
def _sum(s, waits):
    """Modify `s`: sum the waits of a list, oldest first."""
    s.waits_summed[waits] = 1
    s.waits_total[waits] = 0.0
    entry = int(s.waits_first[waits])
    while entry != NONE:
        s.waits_total[waits] += s.wait_value[entry]
        entry = int(s.wait_after[entry])


@kernel
def _timer_of(s, waits, which):
    """Modify a sum of `s`: mean plus two deviations, in leases. Paper: dally, Algorithm 2, lines 13 and 14."""
    count = int(s.waits_count[waits])
    timer = s.tuner_initial[which]
    if count > 0:
        if s.waits_summed[waits] == 0:
            _sum(s, waits)
        mean = s.waits_total[waits] / count
        squares = 0.0
        entry = int(s.waits_first[waits])
        while entry != NONE:
            squares += (s.wait_value[entry] - mean) * (s.wait_value[entry] - mean)
            entry = int(s.wait_after[entry])
        degrees = count if s.tuner_population else count - 1
        timer = mean + 2.0 * math.sqrt(squares / degrees) if degrees > 0 else mean
    if s.tuner_whole:
        timer = min(s.tuner_cap[which], max(s.tuner_floor[which], ceil(timer)))
    return timer
