"""The window of Delay-v0: waiting and running jobs, and the legal decisions about them.

Candidate 0 advances; then every waiting slot has machine, rack, network, make room, hold; then every running slot has
preempt, migrate, defragment.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...policies.dally import timer_end_s, timer_s
from ...policies.greedy.greedy_wait import forget, room_s
from ...policies.greedy.room import find_room
from ...policies.loop.decision_loop import next_s
from ...simulator.base.codes import AFFINITY, FIRST, SCATTER, TIMES_EXACT, TIMES_HIDDEN
from ...simulator.base.codes import TIER as TIER_PLACER
from ...simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from ...simulator.compiler.jit import entry, kernel
from ...simulator.record.field_axes import dtype_of
from ...simulator.record.state import CLASSES, PROFILES
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.iteration_time import gang_iteration_s
from ...simulator.running.placers import find_at, find_gang, tightest
from ..window import (
    MAX_SLOTS,
    can_stop,
    common_fields,
    fill_waiting,
    forced_fields,
    is_forced,
    may_advance,
    running_candidate,
    scaled_slowdown,
    scaled_time,
    waiting_candidate,
    write_forced,
)
from .moves import can_move, find_defragment, find_fuller, find_move, most_of, show_running

PER_WAITING = 5  # machine, rack, network, make room, hold
PER_RUNNING = 3  # preempt, migrate, defragment
ROOM_KIND, HOLD_KIND = 3, 4
PREEMPT_KIND, MIGRATE_KIND, DEFRAGMENT_KIND = 0, 1, 2
MAX_DELAYS = 32
KNOWN = 1024
TARGETS = 3  # machine, rack, network
UNTIL_OFFER, UNTIL_TIMER = 0, 1  # the first delay buckets
HOLD_TIERS = 2  # the third part of the action: the worst tier at which a hold starts by itself, machine or rack
RAN_JOB, RAN_START, RAN_END, RAN_GPUS, RAN_SIZE, RAN_SLOWDOWN = range(6)  # of a running job: itself, times, features
OUTLOOKS = 4  # until a machine, until a rack has room; the timers of both


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    candidates = 1 + (PER_WAITING + PER_RUNNING) * MAX_SLOTS
    own = ("n_delays", "probe", "running_order", "most_machine", "most_rack")  # the most free GPUs in one now
    return dtype_of(
        common_fields()
        + [(name, "i8") for name in own]
        + [
            ("delay_s", "f8", (MAX_DELAYS,)),
            ("running_key", "f8", (MAX_SLOTS,)),  # by which the running jobs in the window are ordered
            ("move_tier", "i8", (MAX_SLOTS,)),  # tier that a running job could move to now
            ("legal", "i1", (candidates,)),
            *forced_fields(),
            # Memory of observation.py: the jobs whose features stand in waiting slots, and since when they wait;
            ("written_job", "i8", (MAX_SLOTS,)),
            ("written_since_s", "f8", (MAX_SLOTS,)),
            ("written_runner", "i8", (MAX_SLOTS,)),  # those in running slots, with start and end;
            ("written_start_s", "f8", (MAX_SLOTS,)),
            ("written_end_s", "f8", (MAX_SLOTS,)),
            ("times", "f8", (5 * MAX_SLOTS,)),  # scratch;
            ("known_job", "i4", (KNOWN,)),  # by job modulo KNOWN: the job, or NO_JOB; of a waiting one
            ("known_since_s", "f8", (KNOWN,)),  # since when it waits,
            ("known", "f4", (KNOWN, 16)),  # and its first features; of a running one, in one line of the cache,
            ("ran", "f8", (KNOWN, 8)),  # the numbers RAN_; spare
            ("class_probe", "i8", (CLASSES,)),  # number of the probe of the next two
            ("class_tier", "i8", (CLASSES, TARGETS)),  # tier of the gang at a target, -1 = none
            ("class_left", "i8", (CLASSES, TARGETS)),  # GPUs left free on its machine, if it lies in one
            ("slot_tier", "i8", (MAX_SLOTS, TARGETS)),  # the same for the job in a waiting slot, where legal
            ("slot_left", "i8", (MAX_SLOTS, TARGETS)),
            ("slot_slowdown", "f8", (MAX_SLOTS, TARGETS)),  # of these gangs, on networks with shapes
            ("move_slowdown", "f8", (MAX_SLOTS,)),
            ("room_tier", "i8", (MAX_SLOTS,)),  # of room made for the job in a waiting slot:
            ("room_stopped", "i8", (MAX_SLOTS,)),  # jobs,
            ("room_moved", "i8", (MAX_SLOTS,)),
            ("room_left_s", "f8", (MAX_SLOTS,)),  # their isolated run time left,
            ("room_lost_s", "f8", (MAX_SLOTS,)),  # their loss
            ("outlook", "f4", (CLASSES, OUTLOOKS)),  # features of a class: see `_look_out`
            ("outlook_s", "f8", (CLASSES, OUTLOOKS)),  # the same in seconds
            ("outlook_probe", "i8", (CLASSES,)),
            ("profile_probe", "i8", (PROFILES, TARGETS)),  # number of the probe of the next
            ("profile_slowdown", "f8", (PROFILES, TARGETS)),
        ]
    )


@kernel
def hold_of(s, w, job, delay, tier):
    """End of a hold, seconds, infinity: the next offer, and the worst tier of a start by itself; both are clipped."""
    delay = min(max(delay, 0), w.n_delays - 1)
    tier = MACHINE + min(max(tier, 0), HOLD_TIERS - 1)
    if delay == UNTIL_TIMER:
        return timer_end_s(s, job, tier), tier
    return s.now_s + w.delay_s[delay], tier


@entry
def target_of(tier):
    """Index of a tier among the targets machine, rack, network."""
    return max(tier, MACHINE) - MACHINE


@kernel
def refresh(s, w):
    """Modify window `w`: show the present jobs and mark their legal candidates."""
    if s.known_times != TIMES_EXACT:  # jobs that outlive an estimate have a growing expected end
        forget(s)
    fill_waiting(s, w)
    show_running(s, w)
    w.probe += 1
    w.can_act = 0
    w.most_machine = most_of(s.machine_free, s.n_machines)
    w.most_rack = most_of(s.rack_free, s.n_racks)
    more = next_s(s) < math.inf
    w.legal[: w.candidates] = 0
    w.legal[0] = may_advance(s, w)
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        first = waiting_candidate(w, slot, 0)
        demand = s.demand[job]
        w.legal[first + HOLD_KIND] = more
        if w.outlook_probe[demand] != w.probe:
            w.outlook_probe[demand] = w.probe
            _look_out(s, w, job, demand)
        if s.gpus[job] > s.free_gpus:
            continue
        if w.class_probe[demand] != w.probe or w.placer == SCATTER or w.placer == AFFINITY:  # these draw for each job
            w.class_probe[demand] = w.probe
            _probe(s, w, job, demand)
        for target in range(TARGETS):
            if w.class_tier[demand, target] >= 0:
                w.legal[first + target] = 1
                w.slot_tier[slot, target] = w.class_tier[demand, target]
                w.slot_left[slot, target] = w.class_left[demand, target]
                if s.net_models > 0:
                    w.slot_slowdown[slot, target] = _slowdown_at(s, w, job, target)
                w.can_act = 1
        if job == w.forced_job:
            _mark_forced(s, w, job, slot)
    if w.preemption and (s.waiting > 0 or s.migrates):
        if s.known_times != TIMES_HIDDEN and s.auctions == 0:
            _mark_room(s, w)
        _mark_running(s, w)
    if not w.can_act:
        w.can_act = _can_act_beyond(s, w)


@kernel
def _mark_forced(s, w, job, slot):
    target = w.forced_kind
    write_forced(s, w)
    w.legal[waiting_candidate(w, slot, target)] = 1
    w.slot_tier[slot, target] = tier_of_gang(s)
    w.slot_left[slot, target] = _left_on_machine(s, w.slot_tier[slot, target])
    if s.net_models > 0:
        w.slot_slowdown[slot, target] = _slowdown_of_gang(s, job)
    w.can_act = 1


@kernel
def _look_out(s, w, job, demand):
    """Modify `w`: features of a waiting job's class: times until machine and rack have room, its delay timers."""
    need = s.gpus[job]
    wait_s = 0.0 if need <= w.most_machine else room_s(s, need, MACHINE) - s.now_s
    _tell(w, demand, 0, wait_s)
    has_room = need <= w.most_rack and s.net_models == 0
    wait_s = 0.0 if has_room else room_s(s, need, RACK) - s.now_s
    _tell(w, demand, 1, wait_s)
    for place in range(2):
        _tell(w, demand, 2 + place, timer_s(s, job, MACHINE + place) if s.timing else 0.0)


@kernel
def _tell(w, demand, place, time_s):
    if w.outlook_s[demand, place] != time_s:
        w.outlook_s[demand, place] = time_s
        w.outlook[demand, place] = scaled_time(w, time_s) if time_s < math.inf else 1.0


@kernel
def _mark_room(s, w):
    """Modify `w`: mark waiting jobs for which room can be made, where the best tier of their size is not free."""
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        first = waiting_candidate(w, slot, 0)
        best = 0 if s.gpus[job] <= s.largest_machine else 1 if s.gpus[job] <= s.largest_rack else 2
        if w.legal[first + best] == 0 and find_room(s, job):
            w.legal[first + ROOM_KIND] = 1
            w.room_tier[slot] = s.room_tier
            w.room_stopped[slot] = s.victims_stopped
            w.room_moved[slot] = s.victims_moved
            w.room_left_s[slot] = s.victims_left_s
            w.room_lost_s[slot] = s.room_cost_s
            w.can_act = 1


@kernel
def may_act(s, w):
    """False if nothing can start, stop or move, from a test that does not look at single jobs."""
    if w.preemption and (s.waiting > 0 or s.migrates):
        return True
    fits = False
    for demand in range(s.n_classes):
        fits |= s.class_count[demand] > 0 and s.class_gpus[demand] <= s.free_gpus
    return fits


@kernel
def _can_act_beyond(s, w):
    """True if a job outside the window could start or be stopped: holding others brings it in."""
    if s.waiting > w.slots and s.free_gpus > 0:
        for demand in range(s.n_classes):
            if s.class_count[demand] == 0 or s.class_gpus[demand] > s.free_gpus:
                continue
            if find_gang(s, s.queue_item[s.class_base[demand]], w.placer):
                return True
    if w.preemption and (s.waiting > 0 or s.migrates) and s.running > w.running_slots > 0:
        for i in range(s.running):
            job = s.runner[i]
            if (s.waiting > 0 and can_stop(s, job)) or (can_move(s, job) and find_move(s, w, job)):
                return True
    return False


@kernel
def _probe(s, w, job, demand):
    """Modify window `w`: the targets that the placer can serve for such jobs, and their gangs."""
    for target in range(TARGETS):
        w.class_tier[demand, target] = -1
    if w.placer == TIER_PLACER:
        _probe_targets(s, w, s.gpus[job], demand)
    elif w.placer == FIRST:
        for target in range(TARGETS):
            if find_at(s, s.gpus[job], MACHINE + target, FIRST):
                tier = tier_of_gang(s)
                if target_of(tier) == target:
                    w.class_tier[demand, target] = tier
                    w.class_left[demand, target] = _left_on_machine(s, tier)
    elif find_gang(s, job, w.placer):
        tier = tier_of_gang(s)
        w.class_tier[demand, target_of(tier)] = tier
        w.class_left[demand] = _left_on_machine(s, tier)


@kernel
def _slowdown_at(s, w, job, target):
    """Modify window `w` and `s.gang`: slowdown, as a feature, of the gang of a waiting job at a target."""
    profile = s.profile[job]
    if w.profile_probe[profile, target] != w.probe or w.placer == SCATTER or w.placer == AFFINITY:
        w.profile_probe[profile, target] = w.probe
        find_target(s, w, job, target)
        w.profile_slowdown[profile, target] = _slowdown_of_gang(s, job)
    return w.profile_slowdown[profile, target]


@kernel
def _slowdown_of_gang(s, job):
    return scaled_slowdown(gang_iteration_s(s, job, tier_of_gang(s)) / s.base_iteration_s[job])


@kernel
def _left_on_machine(s, tier):
    """GPUs that `s.gang`, of that tier, leaves free on its machine; 0 beyond one machine."""
    return s.machine_free[s.gpu_machine[s.gang[0]]] - s.gang_size if tier <= MACHINE else 0


@kernel
def _probe_targets(s, w, need, demand):
    """Modify window `w`: the gangs at the targets machine, rack, network, as in `find_within`, without their GPUs.

    A target counts only if its gang has exactly that tier: where the tightest rack has a machine with room, a gang
    "inside a rack" would lie inside a machine.
    """
    machine = tightest(s.machine_free, 0, s.n_machines, need)
    if machine >= 0:
        first = s.machine_first_slot[machine]
        slot = tightest(s.slot_free, first, first + s.machine_slots[machine], need)
        w.class_tier[demand, 0] = SLOT if slot >= 0 else MACHINE
        w.class_left[demand, 0] = s.machine_free[machine] - need
    rack = tightest(s.rack_free, 0, s.n_racks, need)
    if rack < 0:
        w.class_tier[demand, 2] = NETWORK
        w.class_left[demand, 2] = 0
        return
    first = s.rack_first_machine[rack]
    if tightest(s.machine_free, first, first + s.rack_machines[rack], need) < 0:
        w.class_tier[demand, 1] = RACK
        w.class_left[demand, 1] = 0


@kernel
def _mark_running(s, w):
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        first = running_candidate(w, slot, 0)
        w.move_tier[slot] = s.tier[job]
        if s.waiting > 0 and can_stop(s, job):
            w.legal[first + PREEMPT_KIND] = 1
            w.can_act = 1
        movable = can_move(s, job)
        if movable and job == w.forced_job:
            w.legal[first + w.forced_kind] = 1
            w.can_act = 1
        if movable and find_moved(s, w, job, MIGRATE_KIND):
            w.legal[first + MIGRATE_KIND] = 1
            w.can_act = 1
            w.move_tier[slot] = tier_of_gang(s)
            w.move_slowdown[slot] = _slowdown_of_gang(s, job)
        if movable and find_fuller(s, job, w.most_machine, w.most_rack):
            w.legal[first + DEFRAGMENT_KIND] = 1
            w.can_act = 1


@kernel
def find_target(s, w, job, target):
    """Modify `s.gang`: the GPUs of a legal start candidate."""
    if is_forced(w, job, target):
        write_forced(s, w)
        return True
    if w.placer == TIER_PLACER or w.placer == FIRST:
        return find_at(s, s.gpus[job], MACHINE + target, w.placer)
    return find_gang(s, job, w.placer)


@kernel
def find_moved(s, w, job, kind):
    """Modify `s.gang`: the GPUs to which a running job would move; False if there are none."""
    if is_forced(w, job, kind):
        write_forced(s, w)
        return True
    return find_move(s, w, job) if kind == MIGRATE_KIND else find_defragment(s, job)
