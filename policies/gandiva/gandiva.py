"""Gandiva as the authors of paper dally read it: placement by affinity, and migration to a better tier with room.

Source: Gandiva (Xiao et al., OSDI'18) as in the simulator of paper dally's authors (paper dally, Sec. V-C: "it
addresses this limitation by migrating jobs to more favorable GPU consolidation whenever resources become available");
simulator/running/placers.py has the placement (`affinity`) and the moves (`find_better`).
* A gang that fits a machine goes to a machine dedicated to its size; a larger one takes random free GPUs at once.
* A running job on several machines moves as soon as a machine (or, for a larger gang that crosses racks, a rack) has
  room; under `semantics=artist-sim` at the end of its present chunk.
* GPUs are offered in decreasing order of the job's first start; jobs that never started come last, by arrival.
* `slicing=SECONDS`: time slicing, which that reading leaves out (time_slicing.py).
* `packing=on`, where GPUs may hold several jobs: `pack`. As paper sjf-bsbf describes it (Sec. I, II: time-slicing and
  packing, "limiting GPU sharing to single-GPU jobs"); the rest is our choice:
  - A waiting job of one GPU that finds none free shares one that holds only such jobs and has memory for it without
    accumulation: the GPU with the greatest gain in the sum of 1 / slowdown, lowest index on ties. Jobs come in the
    order of the rule.
  - Two jobs that get more done together than one alone run side by side; others take turns, each at half its speed
    (`sharing.berths.excess`).
  - While no job waits and a GPU is free, the most slowed down sharing job moves there, lowest index on ties; a move
    costs a restore.
"""

from __future__ import annotations

from typing import Literal

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import leave_queue, migrate
from ...simulator.numerics.bitset import next_member
from ...simulator.rules.orders import is_leased
from ...simulator.rules.rule import Rule
from ...simulator.running.placers import find_gang
from ...simulator.sharing.berths import alone_sub_batch, excess, excess_on, fits
from ..base import RulePolicy
from ..passes.order_pass import bring_back
from ..passes.starts import start

NONE = -1


def gandiva(
    fallback: Literal["most-free", "last"] = "most-free",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
    packing: Literal["on", "off"] = "off",
    slicing: float = 0.0,
) -> RulePolicy:
    """Gandiva; `fallback=last` is a defect of the authors' simulator that spreads gangs which a machine could hold.

    `slicing`: seconds of a time slice; 0: running jobs are not stopped.
    Paper: gandiva, migration, as in paper dally, Sec. V-C.
    """
    rule = Rule(
        "turns" if slicing else "latest",
        placer="affinity",
        preemption_cost=preemption_cost,
        round=round,
        lease=lease,
        migrates=True,
        fallback=fallback,
        packing=packing == "on",
        slicing=slicing,
    )
    policy = RulePolicy("gandiva", rule)
    policy.acts_in = {"packing": ("share",)}
    return policy


@kernel
def pack(s):
    """Modify `s`. Returns the number of starts. Paper: gandiva, packing, as in paper sjf-bsbf, Sec. I and II."""
    started = 0
    n_taken_out = 0
    while s.free_gpus == 0:
        c = _first_single(s)
        if c == NONE:
            break
        job = s.queue_item[s.class_base[c]]
        gpu = _best_host(s, job)
        if gpu == NONE:  # another job may need less memory
            leave_queue(s, job)
            s.bid[n_taken_out] = job
            n_taken_out += 1
            continue
        s.gang[0] = gpu
        s.gang_size = 1
        s.sub_batch[job] = alone_sub_batch(s, job)
        start(s, job)
        started += 1
    bring_back(s, n_taken_out)
    return started


@kernel
def _first_single(s):
    best = NONE
    for c in range(s.n_classes):
        if s.class_gpus[c] > 1:
            break
        if s.class_count[c] > 0 and (best == NONE or _comes_before(s, c, best)):
            best = c
    return best


@kernel
def _comes_before(s, c, other):
    place, other_place = s.class_base[c], s.class_base[other]
    key, other_key = s.queue_key[place], s.queue_key[other_place]
    return key < other_key or (key == other_key and s.queue_item[place] < s.queue_item[other_place])


@kernel
def _best_host(s, job):
    best = NONE
    best_gain = 0.0
    sub_batch = alone_sub_batch(s, job)
    gpu = next_member(s.open_low, s.open_mid, s.open_top, 0)
    while gpu >= 0:
        if _holds_singles(s, gpu) and fits(s, job, sub_batch, gpu):
            gain = _gain(s, job, gpu)
            if best == NONE or gain > best_gain:
                best, best_gain = gpu, gain
        gpu = next_member(s.open_low, s.open_mid, s.open_top, gpu + 1)
    return best


@kernel
def _holds_singles(s, gpu):
    for layer in range(s.jobs_per_gpu):
        other = s.gpu_job[layer * s.gpu_slot.size + gpu]
        if other >= 0 and s.gpus[other] > 1:
            return False
    return True


@kernel
def _gain(s, job, gpu):
    """Gain of a GPU from another job on it, in jobs alone."""
    gain = 1.0 / (1.0 + excess_on(s, job, gpu))
    for layer in range(s.jobs_per_gpu):
        other = s.gpu_job[layer * s.gpu_slot.size + gpu]
        if other >= 0:
            before = 1.0 + excess_on(s, other, gpu)
            gain += 1.0 / (before + excess(s, other, job)) - 1.0 / before
    return gain


@kernel
def unpack(s):
    """Modify `s`: while no job waits and a GPU is free, the most slowed down sharing job moves there."""
    while s.waiting == 0 and s.free_gpus > 0 and s.shared_gpus > 0:
        worst = NONE
        worst_slowdown = 1.0
        for i in range(s.running):
            job = s.runner[i]
            if s.gpus[job] == 1 and not is_leased(s, job):
                slowdown = 1.0 + excess_on(s, job, s.first_gpu[job] % s.gpu_slot.size)
                if slowdown > worst_slowdown or (slowdown == worst_slowdown and worst != NONE and job < worst):
                    worst, worst_slowdown = job, slowdown
        if worst == NONE or not find_gang(s, worst, s.placer):
            return
        migrate(s, worst)
