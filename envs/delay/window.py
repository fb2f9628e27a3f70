"""What the agent looks at: a short window of waiting and running jobs, and which decisions about them are possible now.

The window is a record beside the simulator's: integers and small arrays, filled by kernels. Candidate numbers are those
of the action space: 0 advances; then every waiting slot has machine, rack, network, hold; then every running slot has
preempt, migrate.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...simulator.kernels.codes import AFFINITY, FIRST, SCATTER
from ...simulator.kernels.codes import TIER as TIER_PLACER
from ...simulator.kernels.events import next_event_s
from ...simulator.kernels.jit import entry, kernel
from ...simulator.kernels.placement import lift, lower, tier_of_gang
from ...simulator.network.speed import gang_iteration_s
from ...simulator.rules.orders import is_leased
from ...simulator.rules.placers import find_at, find_better, find_gang, tightest
from ...simulator.state import CLASSES, PROFILES
from ...simulator.tiers import MACHINE, NETWORK, RACK, SLOT
from ..window import MAX_SLOTS, can_stop, common_fields, fill_slots, may_advance, scaled_slowdown

PER_WAITING = 4  # machine, rack, network, hold
PER_RUNNING = 2  # preempt, migrate
START_MACHINE, HOLD_KIND = 0, 3
PREEMPT_KIND, MIGRATE_KIND = 0, 1
MAX_DELAYS = 32
KNOWN = 1024
TARGETS = 3  # machine, rack, network
UNTIL_OFFER, UNTIL_TIMER = 0, 1  # the first delay buckets


@cache
def window_dtype() -> np.dtype:
    """One window; the arrays have room for the largest number of slots."""
    candidates = 1 + (PER_WAITING + PER_RUNNING) * MAX_SLOTS
    own = ("n_delays", "probe")
    return np.dtype(
        common_fields()
        + [(name, "i8") for name in own]
        + [
            ("delay_s", "f8", (MAX_DELAYS,)),
            ("move_tier", "i8", (MAX_SLOTS,)),  # tier that a running job could move to now
            ("legal", "i1", (candidates,)),
            # What observation.py remembers. Whose features stand in the slots of waiting jobs, waiting since when,
            ("written_job", "i8", (MAX_SLOTS,)),
            ("written_since_s", "f8", (MAX_SLOTS,)),
            ("written_runner", "i8", (MAX_SLOTS,)),  # and in those of running ones, from when to when;
            ("written_start_s", "f8", (MAX_SLOTS,)),
            ("written_end_s", "f8", (MAX_SLOTS,)),
            ("times", "f8", (5 * MAX_SLOTS,)),  # scratch;
            ("known_job", "i4", (KNOWN,)),  # by job modulo KNOWN: the job, or NO_JOB; of one that waits,
            ("known_since_s", "f8", (KNOWN,)),  # since when it waited then,
            ("known", "f4", (KNOWN, 16)),  # and its features; and while it runs, in one line of the cache,
            ("ran", "f8", (KNOWN, 8)),  # the job, from when to when it runs, and its features 1, 2 and 6; spare.
            ("class_probe", "i8", (CLASSES,)),  # number of the probe that the next two belong to
            ("class_tier", "i8", (CLASSES, TARGETS)),  # tier of the gang that a target would give, -1 = none
            ("class_left", "i8", (CLASSES, TARGETS)),  # GPUs left free on its machine, if it lies in one
            ("slot_tier", "i8", (MAX_SLOTS, TARGETS)),  # the same for the job in a waiting slot, where it is legal
            ("slot_left", "i8", (MAX_SLOTS, TARGETS)),
            ("slot_slowdown", "f8", (MAX_SLOTS, TARGETS)),  # of these very gangs, where the network looks at shapes
            ("move_slowdown", "f8", (MAX_SLOTS,)),
            ("profile_probe", "i8", (PROFILES, TARGETS)),  # number of the probe that the next belongs to
            ("profile_slowdown", "f8", (PROFILES, TARGETS)),
        ],
        align=True,
    )


@kernel
def candidate_count(w):
    """Length of the first part of the action space."""
    return 1 + PER_WAITING * w.slots + PER_RUNNING * w.running_slots


@entry
def target_of(tier):
    """Place of a tier among the targets machine, rack, network."""
    return max(tier, MACHINE) - MACHINE


@kernel
def refresh(s, w):
    """Modify `w`: show the jobs of the present and mark what can be decided about them."""
    fill_slots(s, w)
    w.probe += 1
    w.can_act = 0
    more = next_event_s(s) < math.inf
    w.legal[: candidate_count(w)] = 0
    w.legal[0] = may_advance(s, w)
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        first = 1 + PER_WAITING * slot
        w.legal[first + HOLD_KIND] = more
        if s.gpus[job] > s.free_gpus:
            continue
        demand = s.demand[job]
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
    if w.preemption and (s.waiting > 0 or s.migrates):
        _mark_running(s, w)
    if not w.can_act:
        w.can_act = _can_act_beyond(s, w)


@kernel
def may_act(s, w):
    """False if nothing can start, stop or move, as far as can be seen without a look at the jobs."""
    if w.preemption and (s.waiting > 0 or s.migrates):
        return True
    fits = False
    for demand in range(s.n_classes):
        fits |= s.class_count[demand] > 0 and s.class_gpus[demand] <= s.free_gpus
    return fits


@kernel
def _can_act_beyond(s, w):
    """True if a job that the window does not show could start or be stopped: holding the others brings it in."""
    if s.waiting > w.slots and s.free_gpus > 0:
        for demand in range(s.n_classes):
            if s.class_count[demand] == 0 or s.class_gpus[demand] > s.free_gpus:
                continue
            if find_gang(s, s.queue_item[s.class_base[demand]], w.placer):
                return True
    if w.preemption and (s.waiting > 0 or s.migrates) and s.running > w.running_slots > 0:
        for i in range(s.running):
            job = s.runner[i]
            if (s.waiting > 0 and can_stop(s, job)) or (_can_move(s, job) and find_move(s, w, job)):
                return True
    return False


@kernel
def _can_move(s, job):
    """True if a running job can be moved: as `can_stop`, but where leases end in auctions a grant moves as a whole."""
    return not is_leased(s, job) and s.started_s[job] < s.now_s and s.stopped_s[job] < s.now_s


@kernel
def _probe(s, w, job, demand):
    """Modify `w`: which targets the placer can serve for jobs like this one, and what their gangs look like."""
    for target in range(TARGETS):
        w.class_tier[demand, target] = -1
    if w.placer == TIER_PLACER:
        _probe_tiers(s, w, s.gpus[job], demand)
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
    """Modify `w` and `s.gang`: slowdown, as a feature, of the gang that a waiting job would get at a target."""
    profile = s.profile[job]
    if w.profile_probe[profile, target] != w.probe or w.placer == SCATTER or w.placer == AFFINITY:
        w.profile_probe[profile, target] = w.probe
        find_target(s, w, job, target)
        w.profile_slowdown[profile, target] = _slowdown_of_gang(s, job)
    return w.profile_slowdown[profile, target]


@kernel
def _slowdown_of_gang(s, job):
    """Slowdown of a job on `s.gang`, as a feature."""
    return scaled_slowdown(gang_iteration_s(s, job, tier_of_gang(s)) / s.base_iteration_s[job])


@kernel
def _left_on_machine(s, tier):
    """GPUs that `s.gang`, of that tier, would leave free on its machine; 0 beyond one machine."""
    return s.machine_free[s.gpu_machine[s.gang[0]]] - s.gang_size if tier <= MACHINE else 0


@kernel
def _probe_tiers(s, w, need, demand):
    """Modify `w`: what `find_within` would give, without asking for the GPUs.

    A target counts only if its gang has that very tier: where the tightest rack has a machine with room, a gang
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
    """Modify `w`: running jobs can be stopped while others wait, and moved to a better tier."""
    first = 1 + PER_WAITING * w.slots
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        w.move_tier[slot] = s.tier[job]
        if s.waiting > 0 and can_stop(s, job):
            w.legal[first + PER_RUNNING * slot + PREEMPT_KIND] = 1
            w.can_act = 1
        if _can_move(s, job) and find_move(s, w, job):
            w.legal[first + PER_RUNNING * slot + MIGRATE_KIND] = 1
            w.can_act = 1
            w.move_tier[slot] = tier_of_gang(s)
            w.move_slowdown[slot] = _slowdown_of_gang(s, job)


@entry
def find_move(s, w, job):
    """Modify `s.gang`: GPUs at a better tier than the running job has, by the placer; False if there are none."""
    if s.tier[job] < RACK or s.free_gpus == 0:
        return False
    if w.placer == AFFINITY:
        return find_better(s, job, AFFINITY)
    if not s.auctions:  # there it keeps its GPUs for a while
        lift(s, job)
    found = find_gang(s, job, w.placer) and target_of(tier_of_gang(s)) < target_of(s.tier[job])
    if not s.auctions:
        lower(s, job)
    return found


@entry
def find_target(s, w, job, target):
    """Modify `s.gang`: the GPUs that a legal start candidate stands for."""
    if w.placer == TIER_PLACER or w.placer == FIRST:
        return find_at(s, s.gpus[job], MACHINE + target, w.placer)
    return find_gang(s, job, w.placer)
