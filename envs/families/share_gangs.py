"""The GPUs of a start candidate, and the sub-batches with which the job can run there.

The placer chooses free GPUs. Shared GPUs hold one job: those that SJF-BSBF and SJF-FFS choose (sjf_bsbf_partners.py and
sjf_bsbf_pass.py in policies/bsbf), or those of one partner alone: the k-th by the pair's JCT if both run together from
now on (Theorem 1 of paper sjf-bsbf, even where it advises against sharing), ties by job, among those with enough GPUs
and memory. A partner with more GPUs than the job needs gives the first ones of its gang. Free GPUs fill the rest, if
the rule allows it (`free=last`).

If a policy that decides in Python names GPUs, as Pollux does, "free" stands for them (envs/window.py). A resized
elastic job keeps the first of its GPUs, or takes the lowest free ones beside its own. Another job keeps its place, and
takes larger passes.
"""

from ...policies.bsbf.sjf_bsbf_partners import (
    find_partners,
    halvings_beside,
    mixes,
    new_work_s,
    shared_wanted,
    together_s,
)
from ...policies.bsbf.sjf_bsbf_pass import complete_gang, take_singles
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.resizing import wider_passes
from ...simulator.running.gpu_allocation import recall_gang
from ...simulator.running.placers import find_gang, take_lowest
from ...simulator.sharing.berths import kind_of, largest_sub_batch
from ...simulator.sharing.exclusive_gpus import append_alone, work_left_s
from ..window import write_forced

FREE_KIND, BEST_KIND, FIRST_FIT_KIND, PARTNER_KIND = 0, 1, 2, 3  # partner k: PARTNER_KIND + k - 1


@kernel
def find_start(s, w, job, kind):
    """Modify `s.gang`: the GPUs of a start candidate of a waiting job; False if there are none."""
    need = s.gpus[job]
    if kind == FREE_KIND and job == w.forced_job:
        write_forced(s, w)
        return largest_sub_batch(s, job) > 0
    if kind == FREE_KIND:
        return need <= s.free_gpus and find_gang(s, job, w.placer)
    s.gang_size = 0
    if s.lists == 0 or shared_wanted(s, job) <= 0:
        return False
    if kind == BEST_KIND:
        find_partners(s, s.demand[job], job)
    elif kind == FIRST_FIT_KIND:
        take_singles(s, job)
    else:
        _take_partner(s, w, job, kind - PARTNER_KIND)
    return s.gang_size > 0 and complete_gang(s, need)


@kernel
def can_resize(s, job):
    """True if a running elastic job can have another number of GPUs; at most once an instant."""
    return s.left_s[job] != s.now_s and (s.gpus[job] > 1 or s.free_gpus > 0)


@kernel
def find_resized(s, w, job, exponent):
    """Modify `s.gang`: 2^exponent GPUs for a running elastic job; False: the nearest other number it can have."""
    if job == w.forced_job:
        write_forced(s, w)
        return True
    most = s.gpus[job] + s.free_gpus
    asked = 1 << min(max(exponent, 0), 30)
    size = min(asked, most)
    if size == s.gpus[job]:
        size += 1 if size < most else -1
    recall_gang(s, job)
    if size <= s.gang_size:
        s.gang_size = size
    else:
        take_lowest(s, 0, s.n_gpus, size - s.gang_size)
    return size == asked


@kernel
def most_size_exponent(s, job):
    """The largest e for which a running job could have 2^e GPUs."""
    exponent = 0
    while 1 << (exponent + 1) <= s.gpus[job] + s.free_gpus:
        exponent += 1
    return exponent


@kernel
def _take_partner(s, w, job, number):
    """Modify `s.gang`: the GPUs that one partner holds alone, as many as the job needs; `number` counts from 0."""
    if _rank_partners(s, w, job, number + 1) <= number:
        return
    append_alone(s, s.alone_job[w.ranked_place[number]])
    s.gang_size = min(s.gang_size, s.gpus[job])


@kernel
def _rank_partners(s, w, job, most):
    """Modify `w.ranked_*`: the first partners by the JCT of the pair, at most `most`; returns their number."""
    need = s.gpus[job]
    spare = s.free_gpus if mixes(s) else 0
    count = 0
    for place in range(s.n_alone):
        if s.alone_gpus[place] + spare < need:
            continue
        halvings = halvings_beside(s, job, place)
        if halvings < 0:
            continue
        new_s = new_work_s(s, s.demand[job], job, halvings)
        kind, other = kind_of(s, job, s.sub_batch[job] >> halvings), s.alone_kind[place]
        pair_s = together_s(new_s, s.xi[kind, other], work_left_s(s, place), s.xi[other, kind])
        if count < most or _comes_before(s, w, pair_s, place, count - 1):
            count = min(count, most - 1)
            _insert(s, w, pair_s, place, count)
            count += 1
    return count


@kernel
def _comes_before(s, w, pair_s, place, i):
    other_s = w.ranked_s[i]
    return pair_s < other_s or (pair_s == other_s and s.alone_job[place] < s.alone_job[w.ranked_place[i]])


@kernel
def _insert(s, w, pair_s, place, i):
    while i > 0 and _comes_before(s, w, pair_s, place, i - 1):
        w.ranked_s[i] = w.ranked_s[i - 1]
        w.ranked_place[i] = w.ranked_place[i - 1]
        i -= 1
    w.ranked_s[i] = pair_s
    w.ranked_place[i] = place


@kernel
def exponents_of(s, job):
    """The least and the most e for which the job fits `s.gang` in passes of batch >> e samples, at least one."""
    return _exponents_within(s, job, largest_sub_batch(s, job), 1)


@kernel
def wider_exponents_of(s, job):
    """The least and the most e for which a running job gets larger passes of batch >> e samples."""
    return _exponents_within(s, job, wider_passes(s, job), s.sub_batch[job] + 1)


@kernel
def exponent_taken(s, job, exponent):
    """The exponent with which a job starts on `s.gang`: the possible one nearest to `exponent`."""
    least, most = exponents_of(s, job)
    return min(max(exponent, least), most)


@kernel
def wider_exponent_taken(s, job, exponent):
    """The exponent with which a running job continues: the possible one nearest to `exponent`."""
    least, most = wider_exponents_of(s, job)
    return min(max(exponent, least), most)


@kernel
def _exponents_within(s, job, largest, smallest):
    """The least e with batch >> e at most `largest`, and the most with it at least `smallest`."""
    batch = s.batch[job]
    least = 0
    while batch >> least > largest:
        least += 1
    most = least
    while batch >> (most + 1) >= smallest:
        most += 1
    return least, most
