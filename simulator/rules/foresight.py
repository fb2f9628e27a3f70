"""Waiting for a better tier: whether a job would end sooner if it waited than if it took the GPUs that are free now.

A job takes a gang, found now at some tier, if its predicted end is at most `margin` of the one after waiting for any
better tier (both counted from now):

    left x slowdown(tier now)  <=  margin x (wait + left x slowdown(better tier))

`left` is the isolated run time left. A tier is better if it is narrower and the job runs faster there; the tiers are a
machine, a rack, the network, and a gang that fits none of a kind does not wait for it. `wait` ends at the earliest
instant at which one machine, or one rack, has enough free GPUs, if every running job ends as planned (under auctions:
is granted its GPUs no longer than planned) and nobody else takes these GPUs. A wait that no running job will end, as
where machines have failed, is no choice.

As time goes on and nothing happens, `wait` gets shorter and the left side stays, so who refuses goes on to refuse:
looking again at events is enough.
"""

import math

from ..kernels import heap
from ..kernels.jit import kernel
from ..kernels.placement import tier_of_gang
from ..tiers import MACHINE


@kernel
def takes_now(s, job):
    """Modify the foresight of `s`: True if a waiting job takes `s.gang`, which is free, rather than waits."""
    tier = tier_of_gang(s)
    if tier <= MACHINE:
        return True
    need = s.gpus[job]
    left_s = s.iterations_left[job] * s.base_iteration_s[job]
    slowdown = s.tier_factor[s.profile[job]]
    now_s = left_s * slowdown[tier]
    for better in range(MACHINE, tier):
        if slowdown[better] < slowdown[tier] and need <= (s.largest_machine if better == MACHINE else s.largest_rack):
            wait_s = soonest_s(s, better, need) - s.now_s
            if wait_s < math.inf and now_s > s.margin * (wait_s + left_s * slowdown[better]):
                return False
    return True


@kernel
def soonest_s(s, tier, need):
    """Modify the foresight of `s`: the instant at which some machine (or rack) will have `need` GPUs free; or infinity.

    The ends of running jobs are gone through in order, only as far as they were ever asked for since `forget`.
    """
    if s.foresees == 0:
        _lay_ends(s)
    which = tier - MACHINE
    while s.soon_free[which] < need and s.n_ends > 0:
        _end_next(s)
    return s.soon_s[which, need] if s.soon_free[which] >= need else math.inf


@kernel
def forget(s):
    """Modify `s`: what was foreseen holds no more, since the clock has gone on or a job has started."""
    s.foresees = 0


@kernel
def _lay_ends(s):
    """Modify the foresight of `s`: the present, and a heap of the running jobs by their planned ends."""
    s.foresees = 1
    s.soon_free[:] = 0
    for machine in range(s.n_machines):
        _see_free(s, 0, s.machine_free[machine], s.now_s)
        s.soon_machine[machine] = s.machine_free[machine]
    for rack in range(s.n_racks):
        _see_free(s, 1, s.rack_free[rack], s.now_s)
        s.soon_rack[rack] = s.rack_free[rack]
    s.n_ends = s.running
    for i in range(s.running):
        job = s.runner[i]
        end_s = s.lease_end_s[job] if s.auctions else s.planned_finish_s[job]
        heap.push(s.end_key, s.end_job, s.end_place, 0, i, end_s, job)


@kernel
def _see_free(s, which, free, time_s):
    """Modify the foresight of `s`: at `time_s` some machine (`which` = 0) or rack (1) has `free` GPUs."""
    while s.soon_free[which] < free:
        s.soon_free[which] += 1
        s.soon_s[which, s.soon_free[which]] = time_s


@kernel
def _end_next(s):
    """Modify the foresight of `s`: the next of the running jobs ends."""
    job = s.end_job[0]
    end_s = s.end_key[0]
    heap.remove(s.end_key, s.end_job, s.end_place, 0, s.n_ends, job)
    s.n_ends -= 1
    gpu = s.first_gpu[job]
    while gpu >= 0:
        machine = s.gpu_machine[gpu]
        rack = s.machine_rack[machine]
        s.soon_machine[machine] += 1
        s.soon_rack[rack] += 1
        _see_free(s, 0, s.soon_machine[machine], end_s)
        _see_free(s, 1, s.soon_rack[rack], end_s)
        gpu = s.gpu_next[gpu]
