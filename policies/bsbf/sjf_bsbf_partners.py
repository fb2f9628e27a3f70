"""Partners of a waiting job under SJF-BSBF: Theorem 1 for a pair, and the search for partners.

Source: paper sjf-bsbf, Sec. V-A, Eq. 16-25 and Theorem 1; Algorithm 2 and lines 10 to 17 of Algorithm 1.

**The pair.** A running job B has `running_s` of work left, a new job A brings `new_s`, both as seconds alone on these
GPUs. While both run each is xi times slower. If A starts after kappa, 0 <= kappa <= running_s, the sum of their
completion times rises with kappa while A would end before B, then changes at the rate 2 - 2 xi_B + xi_B / xi_A. So it
is least at kappa = 0 or kappa = running_s, and these two sums are compared:
* B ends first (Case 1): they share where xi_B (2 - 1 / xi_A) <= 2, whatever their lengths.
* A ends first (Case 2): they share where new_s (xi_A (2 - 1 / xi_B) - 1) <= running_s: a short job joins a long one.
The first implies the second, so a pair shares at any length, or if the running job is long enough (`least_ratio`).
Equal jobs break even at xi = 1.5; a tie shares. Departure: Eq. 25 as printed (2 xi_B + xi_A - 2 xi_A xi_B > 0) is our
rate with A and B exchanged, is of Case 2 only, and ignores lengths.

**The partners.** Only GPUs that a running job holds alone are offered. Our reading:
* Work is seconds alone, as far as known (remaining_time.py): of the new job at its best tier, of the running one on its
  GPUs with its sub-batch. Beside a partner the new job pays for its accumulation, which can make sharing a loss at any
  xi.
* Of the sub-batches B, B/2, ..., 1 that fit the memory, the one with the least JCT of the pair is kept, the larger on
  ties (Algorithm 2 prints `t` for `t_share`, `<=`, and a return in its loop). A smaller one never shortens an iteration
  (Eq. 7), so it is the largest that fits, unless interference depends on it (`kinds_by_pass`).
* Partners are taken in order of the JCT of the pair, ties by job, until they hold as many GPUs as the job wants.
* The job runs at the smallest sub-batch among its partners. Every pair is checked again at it; a partner that then
  refuses is left out, and the choice is made anew.
"""

from ...simulator.base.codes import BEST_BENEFIT
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import weighed_left
from ...simulator.network.step_time import best_nodes, stretch
from ...simulator.numerics.rounding import EQUAL, rounded
from ...simulator.sharing.berths import kind_of, memory_of
from ...simulator.sharing.exclusive_gpus import append_alone, work_left_s

SURELY = 1.0 + 1e-9


@entry
def side_by_side_s(new_s, xi_new, running_s, xi_running):
    """Seconds until one ends if both run, and seconds alone left to each. Paper: sjf-bsbf, Eq. 18, 19, 22 and 23."""
    slow_new = new_s * xi_new
    slow_running = running_s * xi_running
    if slow_new >= slow_running:  # Eq. 18, 19
        return slow_running, new_s - slow_running / xi_new, 0.0
    return slow_new, 0.0, running_s - slow_new / xi_running  # Eq. 22, 23 at kappa = 0


@kernel
def together_s(new_s, xi_new, running_s, xi_running):
    """Sum of the completion times, from now, if the new job starts now (Eq. 18 to 23)."""
    both_s, new_after_s, running_after_s = side_by_side_s(new_s, xi_new, running_s, xi_running)
    return 2.0 * both_s + (new_after_s + running_after_s)


@kernel
def apart_s(new_s, running_s):
    """The sum if the new job starts when the running one has ended."""
    return 2.0 * running_s + new_s


@kernel
def shares(together, apart):
    """True if starting now is no worse, by the two sums."""
    return together <= apart * EQUAL


@entry
def pair_jct(t_a, i_a, xi_a, t_b, i_b, xi_b):
    """The least sum of JCTs, seconds, of a new job A and a running job B; True if A starts now.

    `t`: seconds per iteration alone; `i`: iterations (left); `xi`: slowdown beside the other job, >= 1.
    Paper: sjf-bsbf, Theorem 1.
    """
    return least_jct(t_a * i_a, t_a * i_a, xi_a, t_b * i_b, xi_b)


@entry
def least_jct(new_s, accumulated_s, xi_new, running_s, xi_running):
    """`pair_jct` by work; beside a partner the new job has `accumulated_s`. Paper: sjf-bsbf, Theorem 1."""
    together = together_s(accumulated_s, xi_new, running_s, xi_running)
    apart = apart_s(new_s, running_s)
    if shares(together, apart):
        return together, True
    return apart, False


@entry
def least_ratio(xi_new, xi_running):
    """Least ratio of running and new work for sharing; 0: always. Paper: sjf-bsbf, Theorem 1; Eq. 25."""
    if xi_running * (2.0 - 1.0 / xi_new) <= 2.0 * EQUAL:
        return 0.0
    return max(0.0, xi_new * (2.0 - 1.0 / xi_running) - 1.0)


@kernel
def mixes(s):
    """True if a gang may have both free and shared GPUs."""
    return s.free_first != 0 or s.free_last != 0


@kernel
def shared_wanted(s, job):
    """Shared GPUs that a job takes if it finds them."""
    return s.gpus[job] - s.free_gpus if s.free_first else s.gpus[job]


@kernel
def accepts(s, c, job, partner):
    """Modify the memory of class `c`: True if a running job that holds GPUs alone accepts a waiting one beside it."""
    place = s.alone_place[partner] - 1
    if s.shares != BEST_BENEFIT:
        return s.alone_memory[place] + memory_of(s, job, 1) <= s.gpu_memory
    halvings = _best_halvings(s, c, job, place)
    return halvings >= 0 and _pair_s(s, c, job, new_work_s(s, c, job, 0), place, halvings) >= 0.0


@kernel
def find_partners(s, c, job):
    """Modify `s.gang`, `s.halvings`, `s.accepting` and the memory of class `c`: the best partners of a job.

    `s.gang` gets the GPUs that they hold alone, as many as the job wants; `s.halvings` the halvings of its sub-batch;
    `s.accepting` the GPUs of all jobs that would accept it. False if a partner was left out for a sub-batch that
    another one needs: jobs with more work may do better. Paper: sjf-bsbf, Algorithm 1, lines 10 to 17.
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
    """Modify `s.pair_*` and `s.accepting`. Returns the partners. Paper: sjf-bsbf, Algorithm 1, lines 10 to 16."""
    need = shared_wanted(s, job)
    count = 0
    found = 0  # their GPUs
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
    """Modify `s.gang`: GPUs that the first `count` partners hold alone, as many as the job needs."""
    s.gang_size = 0
    for i in range(count):
        append_alone(s, s.alone_job[s.pair_place[i]])
    s.gang_size = min(s.gang_size, shared_wanted(s, job))


@kernel
def halvings_beside(s, job, place):
    """Halvings of the waiting job's sub-batch, until it fits beside another job; -1: it never does."""
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
    """Modify the memory of class `c`: halvings of the sub-batch; -1: no room. Paper: sjf-bsbf, Algorithm 2."""
    least = halvings_beside(s, job, place)
    if s.kinds_by_pass and least >= 0:
        return _search_halvings(s, c, job, place, least)
    return least


@kernel
def _search_halvings(s, c, job, place, least):
    """Modify the memory of class `c`: as `_best_halvings`, from `least` on. Paper: sjf-bsbf, Algorithm 2."""
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
    """Modify the memory of class `c`: sum of the JCTs; negative: it waits. Paper: sjf-bsbf, Algorithm 2, line 6."""
    new_s = work_s if halvings == 0 else new_work_s(s, c, job, halvings)
    running_s = work_left_s(s, place)
    kind, other = kind_of(s, job, s.sub_batch[job] >> halvings), s.alone_kind[place]
    together = together_s(new_s, s.xi[kind, other], running_s, s.xi[other, kind])
    apart = apart_s(work_s, running_s)
    return rounded(together) if shares(together, apart) else -1.0


@kernel
def new_work_s(s, c, job, halvings):
    """Modify the memory of class `c`: seconds of work of a waiting job whose sub-batch is halved so often."""
    return weighed_left(s, job) * s.base_iteration_s[job] * _stretch(s, c, job, halvings)


@kernel
def _stretch(s, c, job, halvings):
    """Modify the memory of class `c`: the factor on iteration time of a sub-batch halved so often."""
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
