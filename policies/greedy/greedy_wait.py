"""Waiting for a better place: whether a job would end sooner if it waited than on the free GPUs of now.

    left x slowdown(gang)  <=  margin x (wait + left x slowdown(better tier))

`left` is the isolated run time left, as far as known (remaining_time.py), slowdown(gang) that of these GPUs,
slowdown(tier) that of the best gang at a tier. Better tiers are one machine and one rack, if the job runs faster there.
`wait` ends when some machine, or rack, first has enough free GPUs, if every running job ends as expected (under
auctions: when its grant ends) and no other job takes them. Where the shape of a gang matters (network allreduce), a
rack has room only if enough machines are wholly free.

A job does not wait if no running job would end the wait. Between events `wait` gets shorter and the left side stays, so
a look at every event suffices.
"""

import math

from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, known_left
from ...simulator.numerics import heap
from ...simulator.record.feature_groups import gpu_of, has_berths
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.iteration_time import gang_iteration_s

IN_MACHINE, IN_RACK, WHOLE = 0, 1, 2  # GPUs of one machine, GPUs of one rack, wholly free machines of one rack
LESS = 1.0 - 1e-9  # tolerance of a better slowdown


@kernel
def takes_now(s, job):
    """Modify the foresight of `s`: True if a waiting job takes the free `s.gang` rather than waits."""
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
    """Modify the foresight of `s`: the instant at which a gang of `need` GPUs finds room at `tier`; or infinity."""
    if tier == MACHINE:
        return soonest_s(s, IN_MACHINE, need)
    if s.net_models > 0:
        return soonest_s(s, WHOLE, -(-need // s.largest_machine))
    return soonest_s(s, IN_RACK, need)


@kernel
def soonest_s(s, room, need):
    """Modify the foresight of `s`, no more than needed: the first instant with `need` of a room in one; or infinity."""
    if s.foresees == 0:
        _write_ends(s)
    if need >= s.soon_s.shape[1]:
        return math.inf
    while s.soon_free[room] < need and s.n_ends > 0:
        _end_next(s)
    return s.soon_s[room, need] if s.soon_free[room] >= need else math.inf


@kernel
def forget(s):
    """Modify `s`: the foresight is void, since the clock has gone on or a job has started."""
    s.foresees = 0


@kernel
def _write_ends(s):
    """Modify the foresight of `s`: the present state, and a heap of the running jobs by their planned ends."""
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
        heap.push(s.end_key, s.end_job, s.end_position, 0, i, end_s, job)


@kernel
def _end_next(s):
    """Modify the foresight of `s`: the next running job ends."""
    job = s.end_job[0]
    end_s = s.end_key[0]
    heap.remove(s.end_key, s.end_job, s.end_position, 0, s.n_ends, job)
    s.n_ends -= 1
    berth = s.first_gpu[job]
    machine = s.gpu_machine[gpu_of(s, berth)]
    freed = 0
    while berth >= 0:  # GPUs of one machine are adjacent, and processed at once
        gpu = gpu_of(s, berth)
        if s.gpu_machine[gpu] != machine:
            _see_free(s, machine, freed, end_s)
            machine = s.gpu_machine[gpu]
            freed = 0
        freed += not has_berths(s) or s.gpu_load[gpu] == 1  # other jobs hold a shared GPU until an unknown time
        berth = s.gpu_next[berth]
    _see_free(s, machine, freed, end_s)


@kernel
def _see_free(s, machine, more, time_s):
    """Modify the foresight of `s`: a machine has `more` free GPUs from `time_s` on."""
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
