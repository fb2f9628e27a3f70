"""Grouping of jobs, compiled: Algorithm 1 of paper harmony, and the best groups of a few jobs.

Algorithm 1 takes one prefix of the jobs at a time: number of groups, members, machines. Group g's jobs are
`members[first[g] : first[g + 1]]`. `lean` is a job's COMP less its COMM, in seconds, where all groups have equal shares
of the machines; a group's imbalance is the sum of its jobs' leans.

The best grouping of a few jobs is dynamic programming over subsets and machines. Sets of jobs are bits of an integer.
`alone[s, m]` is the worth of the jobs s as one group on m machines, `best[s, m]` as any groups on at most m machines.
"""

import math

from ...simulator.compiler.jit import kernel, search
from ...simulator.numerics.heap import change, push

RUN = 12  # sorted by insertion, then merged


@kernel
def _insert(order, key, begin, end):
    for i in range(begin + 1, end):
        moved = order[i]
        hole = i
        while hole > begin and key[order[hole - 1]] < key[moved]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = moved


@kernel
def _merge(source, target, key, begin, middle, end):
    left = begin
    right = middle
    for i in range(begin, end):
        if right >= end or (left < middle and key[source[left]] >= key[source[right]]):
            target[i] = source[left]
            left += 1
        else:
            target[i] = source[right]
            right += 1


@kernel
def sort_falling(order, spare, key, n):
    """Modify `order` and `spare`, int64 (>= n,): `order` becomes 0 to n - 1 by falling key; stable."""
    for i in range(n):
        order[i] = i
    for begin in range(0, n, RUN):
        _insert(order, key, begin, min(begin + RUN, n))
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            _merge(order, spare, key, begin, min(begin + width, n), min(begin + 2 * width, n))
        for i in range(n):
            order[i] = spare[i]
        width *= 2


SLIGHT = 1e-12  # of the imbalance of two groups, and of the worth of a grouping; less is rounding
EVERY = 200  # up to so many jobs every prefix is tried
STEP = 20  # above, each prefix is longer than the last by 1 / 20

BY_JOB = 0  # line 6 as printed: COMP and COMM of each job
BY_GROUP = 1  # their sums


@kernel
def _job_imbalance(comp, comm, n, groups, machines):
    total = 0.0
    for job in range(n):
        total += abs(comp[job] * groups / machines - comm[job])
    return total


@kernel
def _groups_by_job(comp, comm, n, machines):
    """By bisection: the imbalance is convex in the number of groups. Paper: harmony, Algorithm 1, line 6."""
    low = 1
    high = min(n, machines)
    while low < high:
        middle = (low + high) // 2
        now = _job_imbalance(comp, comm, n, middle, machines)
        if _job_imbalance(comp, comm, n, middle + 1, machines) < now:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _groups_by_sum(comp, comm, n, machines):
    busy = 0.0
    sent = 0.0
    for job in range(n):
        busy += comp[job]
        sent += comm[job]
    return int(min(max(machines * sent / busy + 0.5, 1.0), float(min(n, machines))))


@kernel
def _take(left, before, lean, imbalance, window):
    """The list item before the one of the next `window` jobs that balances most."""
    best_before = before
    best = abs(imbalance + lean[left[before]])
    here = left[before]
    for _ in range(window - 1):
        after = left[here]
        if after < 0:
            break
        other = abs(imbalance + lean[after])
        if other < best:
            best = other
            best_before = here
        here = after
    return best_before


@kernel
def _fill(order, left, lean, n, groups, first, members, imbalance):
    """Modify `members`, `first`, `imbalance`; `left` lists jobs from n on. Paper: harmony, Algorithm 1, line 7."""
    last = n
    for i in range(n):
        left[last] = order[i]
        last = order[i]
    left[last] = -1
    at = 0
    for group in range(groups):
        size = n // groups + (1 if group < n % groups else 0)
        first[group] = at
        total = 0.0
        for place in range(size):
            before = n if place == 0 else _take(left, n, lean, total, size)
            job = left[before]
            left[before] = left[job]
            members[at] = job
            total += lean[job]
            at += 1
        imbalance[group] = total
    first[groups] = at


@kernel
def _sum_of(lean, members, begin, end):
    total = 0.0
    for i in range(begin, end):
        total += lean[members[i]]
    return total


@kernel
def _second(item, key, groups):
    """The second smallest of a heap, one of the four below the top."""
    best = 1
    for i in range(2, min(5, groups)):
        if key[i] < key[best] or (key[i] == key[best] and item[i] < item[best]):
            best = i
    return item[best]


@kernel
def _swap_best(lean, members, first, picked, partner, imbalance):
    """Modify `members` and `imbalance`: swap the two jobs that balance both groups most. False if none do."""
    one = imbalance[picked]
    other = imbalance[partner]
    present = abs(one) + abs(other)
    least = SLIGHT * present
    best = present
    from_a = -1
    from_b = -1
    for a in range(first[picked], first[picked + 1]):
        lean_a = lean[members[a]]
        for b in range(first[partner], first[partner + 1]):
            shift = lean_a - lean[members[b]]
            now = abs(one - shift) + abs(other + shift)
            if now < best - least:
                best = now
                from_a = a
                from_b = b
    if from_a < 0:
        return False
    members[from_a], members[from_b] = members[from_b], members[from_a]
    imbalance[picked] = _sum_of(lean, members, first[picked], first[picked + 1])
    imbalance[partner] = _sum_of(lean, members, first[partner], first[partner + 1])
    return True


@kernel
def _balance(lean, members, first, groups, imbalance, low_key, low_item, low_place, high_key, high_item, high_place):
    """Modify `members` and `imbalance` by swaps. Returns their number. Paper: harmony, Algorithm 1, line 7."""
    if groups < 2:
        return 0
    for group in range(groups):
        push(low_key, low_item, low_place, 0, group, imbalance[group], group)
        push(high_key, high_item, high_place, 0, group, -imbalance[group], group)
    swaps = 0
    while True:
        lowest = low_item[0]
        highest = high_item[0]
        size_low = abs(imbalance[lowest])
        size_high = abs(imbalance[highest])
        if size_low == size_high:
            picked = min(lowest, highest)
        else:
            picked = lowest if size_low > size_high else highest
        if imbalance[picked] > 0.0:
            partner = lowest if lowest != picked else _second(low_item, low_key, groups)
        else:
            partner = highest if highest != picked else _second(high_item, high_key, groups)
        if not _swap_best(lean, members, first, picked, partner, imbalance):
            return swaps
        swaps += 1
        for group in (picked, partner):
            change(low_key, low_item, low_place, 0, groups, group, imbalance[group])
            change(high_key, high_item, high_place, 0, groups, group, -imbalance[group])


@kernel
def _share_out(busy, sent, groups, machines, given, key, item, place):
    """Modify `given`: one machine each, then by (busy / machines) / sent. Paper: harmony, Algorithm 1, line 8."""
    left = machines - groups
    ratios = 0.0
    for group in range(groups):
        given[group] = 1
        ratios += busy[group] / sent[group]
    level = ratios / max(left, 1) * (1.0 + 1e-9)
    for group in range(groups):
        more = int(min(busy[group] / sent[group] / level, float(left)))
        while more > 0 and busy[group] / more / sent[group] <= level:
            more -= 1
        given[group] += more
        left -= more
        push(key, item, place, 0, group, -(busy[group] / given[group] / sent[group]), group)
    while left > 0:
        group = item[0]
        given[group] += 1
        left -= 1
        change(key, item, place, 0, groups, group, -(busy[group] / given[group] / sent[group]))


@kernel
def _score(comp, comm, model, members, first, groups, given, machines, beta, ram):
    """CPU use plus beta times network use; -1: models exceed memory. Paper: harmony, Eq. 3 and 4."""
    cpu = 0.0
    network = 0.0
    for group in range(groups):
        busy = 0.0
        sent = 0.0
        held = 0.0
        cycle = 0.0
        for i in range(first[group], first[group + 1]):
            job = members[i]
            busy += comp[job]
            sent += comm[job]
            held += model[job]
            cycle = max(cycle, comp[job] / given[group] + comm[job])
        if held > ram * given[group]:
            return -1.0
        cycle = max(cycle, busy / given[group], sent)
        cpu += busy / cycle
        network += given[group] * sent / cycle
    return (cpu + beta * network) / machines


@kernel
def _sums(comp, comm, members, first, groups, busy, sent):
    for group in range(groups):
        busy[group] = _sum_of(comp, members, first[group], first[group + 1])
        sent[group] = _sum_of(comm, members, first[group], first[group + 1])


@kernel
def _keep(members, first, groups, given, group_of, kept_machines):
    """Modify `group_of` and `kept_machines`: store the grouping. Returns the groups."""
    for job in range(group_of.size):
        group_of[job] = -1
    for group in range(groups):
        kept_machines[group] = given[group]
        for i in range(first[group], first[group + 1]):
            group_of[members[i]] = group
    return groups


@kernel
def _group_prefix(comp, comm, n, machines, balance, ints, floats):
    """Modify the scratch: group n jobs. Returns (groups, swaps). Paper: harmony, Algorithm 1, lines 6 to 9."""
    groups = _groups_by_job(comp, comm, n, machines) if balance == BY_JOB else _groups_by_sum(comp, comm, n, machines)
    order, spare, left, first, members, given = ints[0], ints[1], ints[2], ints[3], ints[4], ints[5]
    lean, length, imbalance, busy, sent = floats[0], floats[1], floats[2], floats[3], floats[4]
    for job in range(n):
        comp_s = comp[job] * groups / machines
        lean[job] = comp_s - comm[job]
        length[job] = comp_s + comm[job]
    sort_falling(order, spare, length, n)
    _fill(order, left, lean, n, groups, first, members, imbalance)
    swaps = _balance(
        lean, members, first, groups, imbalance, floats[5], ints[6], ints[7], floats[6], ints[8], ints[9]
    )  # fmt: skip
    _sums(comp, comm, members, first, groups, busy, sent)
    _share_out(busy, sent, groups, machines, given, floats[5], ints[6], ints[7])
    return groups, swaps


@search
def schedule(comp, comm, model, machines, beta, ram, printed, balance, ints, floats, group_of, kept_machines, counts):
    """Modify `group_of`, `kept_machines`, `counts` and the scratch. Returns the groups. Paper: harmony, Algorithm 1.

    Args:
        comp, comm, model: float64 (jobs,), machine-seconds, seconds, bytes in memory.
        machines, beta, ram: int, float, bytes of a machine.
        printed: the loop stops as printed; else every prefix is tried and the best kept.
        balance: BY_JOB or BY_GROUP.
        ints, floats: int64 (10, jobs + 1) and float64 (7, jobs + 1), scratch.
        group_of, kept_machines: int64 (jobs,), -1 = does not run.
        counts: int64 (2,), prefixes tried and swaps made.
    """
    jobs = comp.size
    best = 0.0
    kept = 0
    n = 1
    last = max(jobs - 1, 1) if printed else jobs
    for job in range(jobs):
        group_of[job] = -1
    while n <= min(last, jobs):
        groups, swaps = _group_prefix(comp, comm, n, machines, balance, ints, floats)
        counts[0] += 1
        counts[1] += swaps
        score = _score(comp, comm, model, ints[4], ints[3], groups, ints[5], machines, beta, ram)
        if score > best or (printed and score >= 0.0):
            kept = _keep(ints[4], ints[3], groups, ints[5], group_of, kept_machines)
        if printed and 0.0 <= score <= best:
            break
        best = max(best, score)
        n += 1 if printed or n < EVERY or n == last else min(n // STEP, last - n)
    return kept


@kernel
def _write_alone(comp, comm, model, gains, ram, alone):
    for jobs in range(1, alone.shape[0]):
        for machines in range(1, alone.shape[1]):
            busy = 0.0
            sent = 0.0
            held = 0.0
            longest = 0.0
            gain = 0.0
            for job in range(comp.size):
                if jobs >> job & 1:
                    comp_s = comp[job] / machines
                    busy += comp_s
                    sent += comm[job]
                    held += model[job]
                    longest = max(longest, comp_s + comm[job])
                    gain += gains[job, 0] + machines * gains[job, 1]
            fits = held <= ram * machines
            alone[jobs, machines] = gain / max(longest, busy, sent) if fits else -math.inf


@kernel
def _write_best(jobs, machines, everyone, alone, best, group, given):
    """Modify `best`, `group`, `given` of these jobs and machines: the first job leads a group, or is left out."""
    first = jobs & -jobs
    others = jobs ^ first
    value = -math.inf if everyone else best[others, machines]
    some = others
    while True:
        one = some | first
        for share in range(1, machines + 1):
            now = alone[one, share] + best[others ^ some, machines - share]
            if now > value + SLIGHT:
                value = now
                group[jobs, machines] = one
                given[jobs, machines] = share
        if some == 0:
            break
        some = (some - 1) & others
    best[jobs, machines] = value


@search
def group_exactly(comp, comm, model, gains, ram, everyone, alone, best, group, given):
    """Modify the tables, all (2**jobs, machines + 1): float64 `alone`, `best`; int64 `group`, `given`, zero before.

    `group` is the group of the first job in the best grouping, 0: it is left out; `given` its machines.
    """
    _write_alone(comp, comm, model, gains, ram, alone)
    for machines in range(best.shape[1]):
        best[0, machines] = 0.0
    for jobs in range(1, best.shape[0]):
        for machines in range(best.shape[1]):
            _write_best(jobs, machines, everyone, alone, best, group, given)
