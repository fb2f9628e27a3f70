"""The order of running jobs in the window, and their moves.

A job has two moves: to a better tier, and to the fullest place with room at its own tier (a machine; a rack, for a gang
that no machine holds), if that leaves a machine wholly free or gives a waiting gang its first place.
"""

import math

from ...simulator.base.codes import AFFINITY, RUNNING
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.rules.orders import is_leased
from ...simulator.running.gpu_allocation import is_spread, lift, lower, tier_of_gang
from ...simulator.running.placers import find_better, find_gang, take_in_machine, take_in_rack
from ..window import NO_JOB, can_stop, fill_running

ARRIVAL, MOVABLE, WORST, PRIORITY = 0, 1, 2, 3
RUNNING_ORDERS = {"arrival": ARRIVAL, "movable": MOVABLE, "worst": WORST, "priority": PRIORITY}


@kernel
def show_running(s, w):
    """Modify `w`: show running jobs in the order of the environment; the pinned one before all others."""
    if w.running_order == ARRIVAL or s.running <= w.running_slots:
        fill_running(s, w)
        return
    shown = 0
    if w.pinned_job >= 0 and s.status[w.pinned_job] == RUNNING and w.running_slots > 0:
        w.running_job[0] = w.pinned_job
        shown = 1
    first = shown
    for i in range(s.running):
        job = s.runner[i]
        if job == w.pinned_job:
            continue
        key = _sort_key(s, w, job)
        hole = shown
        while hole > first and _stands_before(s, key, job, w.running_key[hole - 1], w.running_job[hole - 1]):
            if hole < w.running_slots:
                w.running_key[hole] = w.running_key[hole - 1]
                w.running_job[hole] = w.running_job[hole - 1]
            hole -= 1
        if hole < w.running_slots:
            w.running_key[hole] = key
            w.running_job[hole] = job
            shown = min(shown + 1, w.running_slots)
    w.running_shown = shown
    for slot in range(shown, w.running_slots):
        w.running_job[slot] = NO_JOB


@kernel
def _stands_before(s, key, job, other_key, other):
    return key > other_key or (key == other_key and s.rank[job] < s.rank[other])


@kernel
def _sort_key(s, w, job):
    """Sort key of a running job in the window, largest first.

    MOVABLE: jobs that could move to a better tier now, then those that can be stopped. WORST: the slowdown now.
    PRIORITY: isolated run time left x sqrt(GPUs), as in a rule that may stop others (policies/greedy/greedy.py).
    """
    if w.running_order == WORST:
        return s.iteration_s[job] / s.base_iteration_s[job]
    if w.running_order == PRIORITY:
        return isolated_left_s(s, job) * math.sqrt(s.gpus[job])
    if is_spread(s, job) and can_move(s, job) and find_move(s, w, job):
        return 2.0
    return 1.0 if can_stop(s, job) else 0.0


@kernel
def can_move(s, job):
    """True if a running job can be moved: as `can_stop`, but where leases end in auctions a grant moves as a whole."""
    return not is_leased(s, job) and s.started_s[job] < s.now_s and s.stopped_s[job] < s.now_s


@entry
def find_move(s, w, job):
    """Modify `s.gang`: GPUs at a better tier than the running job has, by the placer; False if there are none."""
    if s.tier[job] < RACK or s.free_gpus == 0:
        return False
    if w.placer == AFFINITY:
        return find_better(s, job, AFFINITY)
    if not s.auctions:  # there it keeps its GPUs for a while
        lift(s, job)
    found = find_gang(s, job, w.placer) and max(tier_of_gang(s), MACHINE) < s.tier[job]
    if not s.auctions:
        lower(s, job)
    return found


@entry
def find_defragment(s, job):
    """Modify `s.gang`: GPUs of the fullest other machine, or rack, at a running job's tier; False: none, or no gain."""
    return find_fuller(s, job, most_of(s.machine_free, s.n_machines), most_of(s.rack_free, s.n_racks))


@kernel
def most_of(free, count):
    """The most free GPUs among the first `count` machines, or racks."""
    most = 0
    for i in range(count):
        most = max(most, free[i])
    return most


@kernel
def find_fuller(s, job, most_machine, most_rack):
    """Modify `s.gang`: as `find_defragment`, given the most free GPUs of a machine, and of a rack."""
    if s.auctions:
        return False
    if s.tier[job] <= MACHINE:
        return s.gpus[job] <= most_machine and _find_machine(s, job, most_machine)
    if s.tier[job] == RACK and s.gpus[job] > s.largest_machine:
        return s.gpus[job] <= most_rack and _find_rack(s, job, most_rack)
    return False


@kernel
def _find_machine(s, job, most):
    own = s.gpu_machine[s.first_gpu[job]]
    need = s.gpus[job]
    then_free = s.machine_free[own] + need
    serves = _serves(s, most, then_free)
    if not serves and then_free < s.machine_gpus[own]:
        return False
    best = -1
    for machine in range(s.n_machines):
        free = s.machine_free[machine]
        if machine != own and free >= need and (best < 0 or free < s.machine_free[best]):
            best = machine
    if best < 0 or not (serves or s.machine_free[best] < s.machine_gpus[best]):
        return False
    s.gang_size = 0
    take_in_machine(s, best, need)
    return True


@kernel
def _find_rack(s, job, most):
    own = s.machine_rack[s.gpu_machine[s.first_gpu[job]]]
    need = s.gpus[job]
    best = -1
    for rack in range(s.n_racks):
        free = s.rack_free[rack]
        if rack != own and free >= need and (best < 0 or free < s.rack_free[best]):
            best = rack
    if best < 0:
        return False
    before = _whole_machines(s, own) + _whole_machines(s, best)
    lift(s, job)
    after = _whole_machines(s, own)
    lower(s, job)
    s.gang_size = 0
    take_in_rack(s, best, need)
    after += _whole_machines(s, best) - _whole_in_gang(s)
    return after > before or _serves(s, most, s.rack_free[own] + need)


@kernel
def _serves(s, most, then):
    """True if a waiting gang finds no room among `most` free GPUs, but does among `then`."""
    if then <= most:
        return False
    serves = False
    for demand in range(s.n_classes):
        serves |= s.class_count[demand] > 0 and most < s.class_gpus[demand] <= then
    return serves


@kernel
def _whole_machines(s, rack):
    whole = 0
    first = s.rack_first_machine[rack]
    for machine in range(first, first + s.rack_machines[rack]):
        whole += s.machine_free[machine] == s.machine_gpus[machine]
    return whole


@kernel
def _whole_in_gang(s):
    """Wholly free machines of which `s.gang` takes GPUs; those of one machine follow each other."""
    whole = 0
    last = -1
    for i in range(s.gang_size):
        machine = s.gpu_machine[s.gang[i]]
        if machine != last:
            last = machine
            whole += s.machine_free[machine] == s.machine_gpus[machine]
    return whole
