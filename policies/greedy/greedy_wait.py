"""Waiting for a better place: whether a job would end sooner if it waited than if it took the GPUs that are free now.

    left x slowdown(gang)  <=  margin x (wait + left x slowdown(better tier))

`left` is the isolated run time left, as far as it is known (remaining_time.py), slowdown(gang) that of these very GPUs,
slowdown(tier) that of the best gang at a tier. The tiers to wait for are one machine and one rack, if the job would run
faster there. `wait` ends at the earliest instant at which some machine, or rack, has enough free GPUs, if every running
job ends as expected (under auctions: loses its GPUs when its grant ends) and nobody else takes them. Where the shape of
a gang matters (network allreduce), a rack has room only if enough machines are wholly free.

A wait that no running job will end is no choice. While nothing happens `wait` gets shorter and the left side stays, so
looking again at events is enough.
"""

import math

from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, known_left
from ...simulator.numerics import heap
from ...simulator.record.feature_groups import gpu_of, has_berths
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.iteration_time import gang_iteration_s

IN_MACHINE, IN_RACK, WHOLE = 0, 1, 2  # rooms: GPUs of one machine, GPUs of one rack, wholly free machines of one rack
LESS = 1.0 - 1e-9  # a slowdown that is equal but for rounding is not better


@kernel
def takes_now(s, job):
    """Modify the foresight of `s`: True if a waiting job takes `s.gang`, which is free, rather than waits."""
    tier = tier_of_gang(s)
    if tier <= MACHINE or s.running == 0:
        return True
    left = known_left(s, job)
    now_s = left * gang_iteration_s(s, job, tier)
    for better in range(MACHINE, min(tier, RACK) + 1):
        then_s = left * s.compute_iteration_s[job] * s.tier_factor[s.profile[job], better]
        if then_s < now_s * LESS:
            wait_s = room_s(s, s.gpus[job], better) - s.now_s
            if wait_s < math.inf and now_s > s.margin * (wait_s + then_s):
                return False
    return True


@kernel
def room_s(s, need, tier):
    """Modify the foresight of `s`: the instant at which a gang of `need` GPUs will find room at `tier`; or infinity."""
    if tier == MACHINE:
        return soonest_s(s, IN_MACHINE, need)
    if s.net_models > 0:
        return soonest_s(s, WHOLE, -(-need // s.largest_machine))
    return soonest_s(s, IN_RACK, need)


@kernel
def soonest_s(s, room, need):
    """Modify the foresight of `s`: the first instant with `need` of a room (`IN_MACHINE`, ...) in one; or infinity.

    The ends of running jobs are gone through in order, only as far as they were ever asked for since `forget`.
    """
    if s.foresees == 0:
        _lay_ends(s)
    if need >= s.soon_s.shape[1]:
        return math.inf
    while s.soon_free[room] < need and s.n_ends > 0:
        _end_next(s)
    return s.soon_s[room, need] if s.soon_free[room] >= need else math.inf


@kernel
def forget(s):
    """Modify `s`: what was foreseen holds no more, since the clock has gone on or a job has started."""
    s.foresees = 0


@kernel
def _lay_ends(s):
    """Modify the foresight of `s`: the present, and a heap of the running jobs by their planned ends."""
    s.foresees = 1
    s.soon_free[:] = 0
    s.soon_whole[: s.n_racks] = 0
    s.soon_rack[: s.n_racks] = 0
    s.soon_machine[: s.n_machines] = 0
    for machine in range(s.n_machines):
        _see_free(s, machine, s.machine_free[machine], s.now_s)
    s.n_ends = s.running
    for i in range(s.running):
        job = s.runner[i]
        end_s = s.lease_end_s[job] if s.auctions else expected_end_s(s, job)
        heap.push(s.end_key, s.end_job, s.end_place, 0, i, end_s, job)


@kernel
def _end_next(s):
    """Modify the foresight of `s`: the next of the running jobs ends."""
    job = s.end_job[0]
    end_s = s.end_key[0]
    heap.remove(s.end_key, s.end_job, s.end_place, 0, s.n_ends, job)
    s.n_ends -= 1
    berth = s.first_gpu[job]
    machine = s.gpu_machine[gpu_of(s, berth)]
    freed = 0
    while berth >= 0:  # GPUs of one machine follow each other: they are seen at once
        gpu = gpu_of(s, berth)
        if s.gpu_machine[gpu] != machine:
            _see_free(s, machine, freed, end_s)
            machine = s.gpu_machine[gpu]
            freed = 0
        freed += not has_berths(s) or s.gpu_load[gpu] == 1  # else others hold it too, and nobody says until when
        berth = s.gpu_next[berth]
    _see_free(s, machine, freed, end_s)


@kernel
def _see_free(s, machine, more, time_s):
    """Modify the foresight of `s`: from `time_s` on a machine has `more` free GPUs."""
    rack = s.machine_rack[machine]
    s.soon_machine[machine] += more
    s.soon_rack[rack] += more
    if s.soon_machine[machine] == s.machine_gpus[machine]:
        s.soon_whole[rack] += 1
        _see_room(s, WHOLE, s.soon_whole[rack], time_s)
    _see_room(s, IN_MACHINE, s.soon_machine[machine], time_s)
    _see_room(s, IN_RACK, s.soon_rack[rack], time_s)


@kernel
def _see_room(s, room, free, time_s):
    """Modify the foresight of `s`: at `time_s` there are `free` of a room in one machine or rack."""
    while s.soon_free[room] < free:
        s.soon_free[room] += 1
        s.soon_s[room, s.soon_free[room]] = time_s
