"""The partners of a waiting job under SJF-BSBF: which running jobs share their GPUs with it, at which sub-batch.

Source: paper sjf-bsbf, Algorithm 2 and lines 10 to 17 of Algorithm 1. Only GPUs that a running job holds alone are
offered. Our reading:
* Work is counted as seconds alone, as far as it is known (remaining_time.py): of the new job at its best tier, since
  its GPUs are not known yet; of the running one what is left, on its GPUs with its sub-batch. Beside the running job
  the new one pays for the accumulation that its sub-batch costs; if it waits for that job's end it does not need any,
  and runs as it would on an empty GPU. So accumulation can turn sharing into a loss at any xi.
* Algorithm 2 tries b = B, B/2, ..., 1, leaves out what does not fit the memory beside the running job, and keeps the b
  with the least JCT of the pair. (As printed it stores `t` where `t_share` is meant, returns inside its loop, and never
  tries 1.) A smaller b never makes an iteration shorter (Eq. 7), so that is the largest b that fits; on ties the larger
  one is kept, where the printed `<=` would keep the smaller. Only where a smaller b also changes the
  interference (`kinds_by_pass`) are all of them looked at.
* Partners are taken in order of the JCT of the pair, ties by job, until they hold as many GPUs as the job wants.
* The job runs at the smallest b among its partners. Every pair is checked again at it; who refuses then is left out,
  and the choice is made anew.
"""

from ..base.codes import BEST_BENEFIT
from ..base.tiers import MACHINE, RACK
from ..compiler.jit import kernel
from ..jobs.remaining_time import weighed_left
from ..network.step_time import best_nodes, stretch
from ..numerics.rounding import rounded
from ..sharing.berths import kind_of, memory_of
from ..sharing.exclusive_gpus import append_alone, work_left_s
from .sjf_bsbf_pairs import apart_s, shares, together_s

SURELY = 1.0 + 1e-9


@kernel
def mixes(s):
    """True if a gang may have free GPUs and shared ones."""
    return s.free_first != 0 or s.free_last != 0


@kernel
def shared_wanted(s, job):
    """How many shared GPUs a job takes if it finds them."""
    return s.gpus[job] - s.free_gpus if s.free_first else s.gpus[job]


@kernel
def accepts(s, c, job, partner):
    """Modify the memory of class `c`: True if a running job that holds GPUs alone takes a waiting one beside it."""
    place = s.alone_place[partner] - 1
    if s.shares != BEST_BENEFIT:
        return s.alone_memory[place] + memory_of(s, job, 1) <= s.gpu_memory
    halvings = _best_halvings(s, c, job, place)
    return halvings >= 0 and _pair_s(s, c, job, new_work_s(s, c, job, 0), place, halvings) >= 0.0


@kernel
def find_partners(s, c, job):
    """Modify `s.gang`, `s.halvings`, `s.accepting` and the memory of class `c`: the best partners of a job.

    `s.gang` gets what they hold alone, as far as the job wants it, `s.halvings` how often its sub-batch is halved then,
    and `s.accepting` the GPUs of all that would have it.
    False if somebody was left out for a sub-batch that another partner needs: jobs with more to do may fare better.
    """
    s.pair_pass += 1
    agreed = True
    work_s = new_work_s(s, c, job, 0)
    while True:
        accepting = s.accepting
        count = _gather(s, c, job, work_s)
        if not agreed:
            s.accepting = accepting
        halvings = 0
        for i in range(count):
            halvings = max(halvings, s.pair_halvings[i])
        refused = 0
        for i in range(count):
            place = s.pair_place[i]
            if s.pair_halvings[i] < halvings and _pair_s(s, c, job, work_s, place, halvings) < 0.0:
                s.pair_refused[place] = s.pair_pass
                refused += 1
        if refused == 0:
            s.halvings = halvings
            _take(s, job, count)
            return agreed
        agreed = False


@kernel
def _gather(s, c, job, work_s):
    """Modify `s.pair_*` and `s.accepting`: partners by the JCT of the pair, as many as have the GPUs for the job.

    Returns how many.
    """
    need = shared_wanted(s, job)
    count = 0
    found = 0  # GPUs of those
    accepting = 0
    row = s.model[job]
    for place in range(s.n_alone):
        running_s = work_left_s(s, place)
        if running_s * SURELY < s.pair_ratio[row, s.alone_kind[place]] * work_s:
            continue
        if s.pair_refused[place] == s.pair_pass:
            continue
        halvings = _best_halvings(s, c, job, place)
        if halvings < 0:
            continue
        pair_s = _pair_s(s, c, job, work_s, place, halvings)
        if pair_s < 0.0:
            continue
        gpus = s.alone_gpus[place]
        accepting += gpus
        if found >= need and not _before(s, pair_s, place, count - 1):
            continue
        _insert(s, count, pair_s, place, halvings)
        count += 1
        found += gpus
        while found - s.alone_gpus[s.pair_place[count - 1]] >= need:
            count -= 1
            found -= s.alone_gpus[s.pair_place[count]]
    s.accepting = accepting
    return count


@kernel
def _before(s, pair_s, place, i):
    """True if a pair comes before the one at `i`."""
    other_s = s.pair_s[i]
    return pair_s < other_s or (pair_s == other_s and s.alone_job[place] < s.alone_job[s.pair_place[i]])


@kernel
def _insert(s, count, pair_s, place, halvings):
    i = count
    while i > 0 and _before(s, pair_s, place, i - 1):
        s.pair_s[i] = s.pair_s[i - 1]
        s.pair_place[i] = s.pair_place[i - 1]
        s.pair_halvings[i] = s.pair_halvings[i - 1]
        i -= 1
    s.pair_s[i] = pair_s
    s.pair_place[i] = place
    s.pair_halvings[i] = halvings


@kernel
def _take(s, job, count):
    """Modify `s.gang`: what the first `count` partners hold alone, as far as the job needs it."""
    s.gang_size = 0
    for i in range(count):
        append_alone(s, s.alone_job[s.pair_place[i]])
    s.gang_size = min(s.gang_size, shared_wanted(s, job))


@kernel
def halvings_beside(s, job, place):
    """How often the sub-batch that the waiting job would take alone must be halved to fit beside another; -1: never."""
    sub_batch = s.sub_batch[job]
    halvings = 0
    while s.alone_memory[place] + memory_of(s, job, sub_batch) > s.gpu_memory:
        sub_batch >>= 1
        if sub_batch == 0:
            return -1
        halvings += 1
    return halvings


@kernel
def _best_halvings(s, c, job, place):
    """Modify the memory of class `c`: how often the sub-batch is best halved beside another job; -1: no room."""
    least = halvings_beside(s, job, place)
    if s.kinds_by_pass and least >= 0:
        return _search_halvings(s, c, job, place, least)
    return least


@kernel
def _search_halvings(s, c, job, place, least):
    """Modify the memory of class `c`: from `least` on, how often the sub-batch is best halved beside another job."""
    other = s.alone_kind[place]
    running_s = work_left_s(s, place)
    best, best_s = least, 0.0
    for halvings in range(least, s.kind.shape[1]):
        if s.sub_batch[job] >> halvings == 0:
            break
        kind = kind_of(s, job, s.sub_batch[job] >> halvings)
        new_s = new_work_s(s, c, job, halvings)
        sum_s = rounded(together_s(new_s, s.xi[kind, other], running_s, s.xi[other, kind]))
        if halvings == least or sum_s < best_s:
            best, best_s = halvings, sum_s
    return best


@kernel
def _pair_s(s, c, job, work_s, place, halvings):
    """Modify the memory of class `c`: sum of the JCTs of a pair that starts now; negative if it had better not.

    `work_s` is what the new job brings at its whole batch.
    """
    new_s = work_s if halvings == 0 else new_work_s(s, c, job, halvings)
    running_s = work_left_s(s, place)
    kind, other = kind_of(s, job, s.sub_batch[job] >> halvings), s.alone_kind[place]
    together = together_s(new_s, s.xi[kind, other], running_s, s.xi[other, kind])
    apart = apart_s(work_s, running_s)
    return rounded(together) if shares(together, apart) else -1.0


@kernel
def new_work_s(s, c, job, halvings):
    """Modify the memory of class `c`: seconds of work that a waiting job brings, its sub-batch halved so often."""
    return weighed_left(s, job) * s.base_iteration_s[job] * _stretch(s, c, job, halvings)


@kernel
def _stretch(s, c, job, halvings):
    """Modify the memory of class `c`: times that an iteration takes longer with a sub-batch halved so often."""
    if halvings >= s.class_stretch.shape[1]:
        return _best_stretch(s, job, halvings)
    if s.class_stretch[c, halvings] == 0.0:
        s.class_stretch[c, halvings] = _best_stretch(s, job, halvings)
    return s.class_stretch[c, halvings]


@kernel
def _best_stretch(s, job, halvings):
    sub_batch = s.sub_batch[job] >> halvings
    spread = s.net_steps and best_nodes(s, job, s.batch[job], sub_batch) > 1
    return stretch(s, job, RACK if spread else MACHINE, sub_batch)
