"""Start a waiting job at a tier of the network: inside a machine, inside a rack, or across racks.

The placer chooses the GPUs. A target counts only if its gang has exactly that tier. All jobs of a class (a number of
GPUs) have the same gangs, so they are found once a look, unless the placer draws them.
"""

from __future__ import annotations

from typing import Any

from ...policies.passes.starts import start
from ...simulator.base.codes import AFFINITY, FIRST, SCATTER
from ...simulator.base.codes import TIER as TIER_PLACER
from ...simulator.base.decisions import Start
from ...simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from ...simulator.compiler.jit import entry, kernel
from ...simulator.record.state import CLASSES, PROFILES
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.iteration_time import gang_iteration_s
from ...simulator.running.placers import find_at, find_gang, tightest
from ..window import (
    MAX_SLOTS,
    is_forced,
    scaled_gpus,
    scaled_slowdown,
    slower_left,
    waiting_candidate,
    write_forced,
)
from .family import Family

TARGETS = 3  # machine, rack, network


@entry
def target_of(tier):
    """Index of a tier among the targets machine, rack, network."""
    return max(tier, MACHINE) - MACHINE


@kernel
def mark(s, w, m, first):
    """Modify `w`: where the jobs in waiting slots can start, and of what tier their gangs are there."""
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        here = waiting_candidate(w, slot, first)
        demand = s.demand[job]
        if s.gpus[job] > s.free_gpus:
            continue
        if w.class_look[demand] != w.shows or w.placer == SCATTER or w.placer == AFFINITY:  # these draw for each job
            w.class_look[demand] = w.shows
            _probe(s, w, job, demand)
        for target in range(TARGETS):
            if w.class_tier[demand, target] >= 0:
                w.legal[here + target] = 1
                w.slot_tier[slot, target] = w.class_tier[demand, target]
                w.slot_left[slot, target] = w.class_left[demand, target]
                if s.net_models > 0:
                    w.slot_slowdown[slot, target] = _slowdown_at(s, w, job, target)
                w.can_act = 1
        if job == w.forced_job:
            _mark_forced(s, w, job, slot, here)


@kernel
def _mark_forced(s, w, job, slot, here):
    target = w.forced_kind
    write_forced(s, w)
    w.legal[here + target] = 1
    w.slot_tier[slot, target] = tier_of_gang(s)
    w.slot_left[slot, target] = _left_on_machine(s, w.slot_tier[slot, target])
    if s.net_models > 0:
        w.slot_slowdown[slot, target] = slowdown_of_gang(s, job)
    w.can_act = 1


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
    if w.profile_look[profile, target] != w.shows or w.placer == SCATTER or w.placer == AFFINITY:
        w.profile_look[profile, target] = w.shows
        find_target(s, w, job, target)
        w.profile_slowdown[profile, target] = slowdown_of_gang(s, job)
    return w.profile_slowdown[profile, target]


@kernel
def slowdown_of_gang(s, job):
    """Slowdown, as a feature, of a job on `s.gang`."""
    return scaled_slowdown(gang_iteration_s(s, job, tier_of_gang(s)) / s.base_iteration_s[job])


@kernel
def _left_on_machine(s, tier):
    """GPUs that `s.gang`, of that tier, leaves free on its machine; 0 beyond one machine."""
    return s.machine_free[s.gpu_machine[s.gang[0]]] - s.gang_size if tier <= MACHINE else 0


@kernel
def _probe_targets(s, w, need, demand):
    """Modify window `w`: the gangs at the targets machine, rack, network, as in `find_within`, without their GPUs.

    Where the tightest rack has a machine with room, a gang "inside a rack" would lie inside a machine.
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
def find_target(s, w, job, target):
    """Modify `s.gang`: the GPUs of a legal start candidate."""
    if is_forced(w, job, target):
        write_forced(s, w)
        return True
    if w.placer == TIER_PLACER or w.placer == FIRST:
        return find_at(s, s.gpus[job], MACHINE + target, w.placer)
    return find_gang(s, job, w.placer)


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write a start; what does not depend on free GPUs only if `is_new`."""
    if is_new or s.net_models > 0:
        slowdown = w.slot_slowdown[slot, kind] if s.net_models > 0 else shown[of.slowdown_machine + kind]
        offer[to.start] = 1.0
        offer[to.slowdown] = slowdown
        offer[to.time_left] = slower_left(w, shown[of.time_left], slowdown)
        offer[to.gpus] = shown[of.gpus]
    offer[to.tier] = w.slot_tier[slot, kind] / NETWORK
    offer[to.free_after] = scaled_gpus(w, s.free_gpus - s.gpus[job])
    offer[to.machine_left] = w.slot_left[slot, kind] / s.largest_machine


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: start a waiting job there."""
    find_target(s, w, job, kind)
    start(s, job)
    return False


@kernel
def may_act(s, w):
    """True if the GPUs of a waiting job are free."""
    fits = False
    for demand in range(s.n_classes):
        fits |= s.class_count[demand] > 0 and s.class_gpus[demand] <= s.free_gpus
    return fits


@kernel
def acts_beyond(s, w):
    """True if a job that waits outside the window could start: holding others brings it in."""
    if s.waiting > w.slots and s.free_gpus > 0:
        for demand in range(s.n_classes):
            if s.class_count[demand] == 0 or s.class_gpus[demand] > s.free_gpus:
                continue
            if find_gang(s, s.queue_item[s.class_base[demand]], w.placer):
                return True
    return False


class TierStart(Family):
    """Start inside a machine, inside a rack, or across racks."""

    name, table, stands_for = "start", "queue", (Start,)
    kinds = ("start", "start", "start")
    fields = (
        ("class_look", "i8", (CLASSES,)),  # the look of the next two
        ("class_tier", "i8", (CLASSES, TARGETS)),  # tier of the gang at a target, -1 = none
        ("class_left", "i8", (CLASSES, TARGETS)),  # GPUs left free on its machine, if it lies in one
        ("slot_tier", "i8", (MAX_SLOTS, TARGETS)),  # the same for the job in a waiting slot, where legal
        ("slot_left", "i8", (MAX_SLOTS, TARGETS)),
        ("slot_slowdown", "f8", (MAX_SLOTS, TARGETS)),  # of these gangs, on networks with shapes
        ("profile_look", "i8", (PROFILES, TARGETS)),  # the look of the next
        ("profile_slowdown", "f8", (PROFILES, TARGETS)),
    )
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act, acts_beyond = staticmethod(may_act), staticmethod(acts_beyond)

    def hint(self, window: Any, decision: Any, likely: list[Any] | None) -> str:
        """What to do where no start plays `decision`."""
        return "; give it the policy's placer" if likely and likely[0].gpus != decision.gpus else ""
