"""Sharing passes of SJF-FFS and SJF-BSBF: a waiting job takes free GPUs, or GPUs that hold one job.

Source: paper sjf-bsbf, Algorithms 1 and 2; sjf_bsbf_partners.py finds the partners of a job. A pass walks the waiting
jobs by their remaining isolated run time L_k, shortest first. A job takes free GPUs if there are enough. Else
`first-fit` takes GPUs that hold one job in index order, at the largest sub-batch that fits beside all of them;
`best-benefit` takes those of the partners with the least JCT of the pair. The lowest free GPUs complete the gang
(`free=last`), or the job takes all free ones and fewer shared ones (`free=first`, as in a co-author's public code), or
it waits (`free=never`; a job started on free GPUs may be the partner that an earlier one lacked, so the walk begins
anew). A GPU that holds two jobs is not offered, however many it may hold.

Speed: a refused job stays refused until something is gained. Of a class (gang, model and batch) only the first job is
asked. After a refusal the class remembers the GPUs of its partners, and only later gains are looked at (`_may_start`):
GPUs that a running job now holds alone, in the ring `gain_job`. Nothing is remembered where run times are estimates or
interference depends on the sub-batch: partners may accept more later.
"""

from ...simulator.base.codes import BEST_BENEFIT, TIMES_EXACT
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import leave_queue
from ...simulator.numerics.bitset import next_member
from ...simulator.running.placers import find_gang, take_lowest
from ...simulator.sharing.berths import fits, largest_sub_batch
from ...simulator.sharing.exclusive_gpus import single_gpus
from ..passes.order_pass import bring_back
from ..passes.starts import start
from .sjf_bsbf_partners import accepts, find_partners, mixes, shared_wanted

REFUSED, STARTS, UNLUCKY = 0, 1, 2


@kernel
def share_pass(s):
    """Modify `s`: one pass. Returns the number of jobs started. Paper: sjf-bsbf, Algorithm 1, lines 1 and 2."""
    started = 0
    n_taken_out = 0
    while True:
        c = _next_class(s)
        if c < 0:
            break
        job = s.queue_item[s.class_base[c]]
        outcome = _ask(s, c, job)
        if outcome == STARTS:
            start(s, job)
            started += 1
            if not mixes(s):  # a new partner for earlier jobs: from the first job again
                n_taken_out = bring_back(s, n_taken_out)
                s.pass_number += 1
        elif s.strict:
            break
        elif outcome == REFUSED:
            s.class_blocked[c] = s.pass_number
        else:  # other jobs of its class may do better
            leave_queue(s, job)
            s.bid[n_taken_out] = job
            n_taken_out += 1
    bring_back(s, n_taken_out)
    return started


@kernel
def _next_class(s):
    """Modify `s`: the class whose first job is next among those that may start; -1: none. Blocks classes that cannot.

    With a strict head no class is blocked.
    """
    best = -1
    best_key = 0.0
    best_job = 0
    for c in range(s.n_classes):
        if s.class_count[c] == 0 or s.class_blocked[c] == s.pass_number:
            continue
        place = s.class_base[c]
        key = s.queue_key[place]
        job = s.queue_item[place]
        if best >= 0 and (key > best_key or (key == best_key and job > best_job)):
            continue
        if s.strict == 0 and not _may_start(s, c, job, key):
            s.class_blocked[c] = s.pass_number
            continue
        best, best_key, best_job = c, key, job
    return best


@kernel
def _may_start(s, c, job, key):
    """Modify the memory of class `c`: False if its first job cannot start, by earlier refusals."""
    need = s.class_gpus[c]
    if need <= s.free_gpus:
        return True
    if mixes(s):
        need -= s.free_gpus
    if need > single_gpus(s):
        return False
    if s.shares == BEST_BENEFIT and (s.known_times != TIMES_EXACT or s.kinds_by_pass):
        return True
    if s.lists == 0 or key < s.class_key[c] or s.gains - s.class_gains[c] > s.gain_job.size:
        return True
    supply = s.class_supply[c]
    if supply + (s.gained_gpus - s.class_gained[c]) < need:
        return False
    for i in range(s.class_gains[c], s.gains):
        if supply >= need:
            return True
        entry = i % s.gain_job.size
        partner = s.gain_job[entry]
        gpus = min(s.gain_gpus[entry], s.alone[partner])
        if gpus > 0 and accepts(s, c, job, partner):
            supply += gpus
    if supply >= need:
        return True
    _remember(s, c, key, supply)
    return False


@kernel
def _remember(s, c, key, supply):
    """Modify the memory of class `c`: from `key` on, no job of it has partners for more than `supply` GPUs."""
    s.class_key[c] = key
    s.class_supply[c] = supply
    s.class_gains[c] = s.gains
    s.class_gained[c] = s.gained_gpus
    s.gains_read = s.gains


@kernel
def _ask(s, c, job):
    """Modify `s.gang`, the sub-batch and the memory of class `c`. Paper: sjf-bsbf, Algorithm 1, lines 6 to 17."""
    need = s.gpus[job]
    if need <= s.free_gpus and find_gang(s, job, s.placer):
        return STARTS
    s.gang_size = 0
    if s.shares == BEST_BENEFIT:
        agreed = find_partners(s, c, job)
        shared = s.gang_size
        starts = complete_gang(s, need)
        _remember(s, c, s.order_key[job], s.accepting - shared if starts else s.accepting)
        if starts:
            s.sub_batch[job] >>= s.halvings
            return STARTS
        return REFUSED if agreed else UNLUCKY
    take_singles(s, job)
    found = s.gang_size
    if not complete_gang(s, need):
        _remember(s, c, s.order_key[job], found)
        return REFUSED
    s.sub_batch[job] = largest_sub_batch(s, job)
    return STARTS


@kernel
def take_singles(s, job):
    """Modify `s.gang`: GPUs that hold one job and have room, in index order, up to the number that the job wants."""
    gpu = -1
    wanted = shared_wanted(s, job)
    while s.gang_size < wanted:
        gpu = next_member(s.open_low, s.open_mid, s.open_top, gpu + 1)
        if gpu < 0:
            return
        if s.gpu_load[gpu] == 1 and (s.lists == 0 or fits(s, job, 1, gpu)):
            s.gang[s.gang_size] = gpu
            s.gang_size += 1


@kernel
def complete_gang(s, need):
    """Modify `s.gang`: free GPUs fill it, if they may and suffice. Paper: sjf-bsbf, Algorithm 1, lines 15 to 17."""
    short = need - s.gang_size
    if short == 0:
        return True
    return mixes(s) and short <= s.free_gpus and take_lowest(s, 0, s.n_gpus, short)
