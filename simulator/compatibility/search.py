"""Rotations with the least excess: all of them tried, or descent from several beginnings. Compiled; see overlap.py.

The first job stays where it is. Equal costs go to the smallest rotations, first job first.
"""

from ..kernels.jit import entry, kernel
from ..kernels.random import random_word
from .overlap import best_step, clear, excess, lay_costs, least_excess, least_with, put, settled, turn

MOST_SWEEPS = 50
BEGINNINGS = 29  # stream of the random numbers


@entry
def search_all(laid, rotation, best):
    """Modify `best`, int64 (n,): the best of all rotations; `rotation`, int64 (n,), is scratch. Returns its cost.

    All of the last job's at once for each choice of the others.
    """
    last = rotation.shape[0] - 1
    clear(laid)
    for job in range(last + 1):
        rotation[job] = 0
        best[job] = 0
        if job < last:
            put(laid, job, 0, 1)
    if last == 0:
        put(laid, 0, 0, 1)
        return excess(laid)
    enough = least_excess(laid)
    least = -1
    while True:
        if least < 0 or least_with(laid, last) < least:
            lay_costs(laid, last)
            step = best_step(laid, last)
            cost = laid.cost[step] + settled(laid, last)
            if least < 0 or cost < least:
                least = cost
                _copy(best, rotation)
                best[last] = step
        if least == enough or not _next(laid, rotation, last):
            return least


@kernel
def _next(laid, rotation, last):
    """Turn the jobs between the first and the last to the next choice of rotations; whether there was one."""
    job = last - 1
    while job > 0:
        if rotation[job] + 1 < laid.turns[job]:
            turn(laid, job, rotation[job], rotation[job] + 1)
            rotation[job] += 1
            return True
        put(laid, job, rotation[job], -1)
        put(laid, job, 0, 1)
        rotation[job] = 0
        job -= 1
    return False


@entry
def search_by_descent(laid, restarts, seed, work, ends, costs, rotation):
    """Modify `ends`, int64 (E, n), `costs`, int64 (E,): the best different ends of the descents, the best one first.

    The first beginning is no rotation at all, the others are random. The ends, best first, then turn two jobs at once,
    until no pair helps either. Either half ends when it has spent `work` / 2. `rotation`, int64 (n,), is
    scratch.
    """
    jobs = rotation.shape[0]
    enough = least_excess(laid)
    kept = 0
    laid.spent[0] = 0
    for beginning in range(restarts + 1):
        for job in range(jobs):
            word = random_word(seed, BEGINNINGS, beginning * jobs + job)
            rotation[job] = word % laid.turns[job] if beginning > 0 and job > 0 else 0
        _lay(laid, rotation)
        _turn_each(laid, rotation)
        kept = _keep(ends, costs, kept, rotation, excess(laid))
        if costs[0] == enough:
            return
        if laid.spent[0] > work // 2:
            break
    for end in range(kept):
        if end > 0 and laid.spent[0] > work:
            return
        _copy(rotation, ends[end])
        _lay(laid, rotation)
        _turn_pairs(laid, rotation, enough)
        cost = excess(laid)
        if _before(cost, rotation, costs[0], ends[0]):
            costs[0] = cost
            _copy(ends[0], rotation)
        if costs[0] == enough:
            return


@kernel
def _copy(to, rotation):
    for job in range(rotation.shape[0]):
        to[job] = rotation[job]


@kernel
def _lay(laid, rotation):
    clear(laid)
    for job in range(rotation.shape[0]):
        put(laid, job, rotation[job], 1)


@kernel
def _before(cost, rotation, other_cost, other):
    if cost != other_cost:
        return cost < other_cost
    for job in range(rotation.shape[0]):
        if rotation[job] != other[job]:
            return rotation[job] < other[job]
    return False


@kernel
def _keep(ends, costs, kept, rotation, cost):
    """Insert an end in its place, if it is new and among the best; how many there are now."""
    place = kept
    for end in range(kept):
        if not _before(costs[end], ends[end], cost, rotation):
            place = end
            break
    if place == ends.shape[0]:
        return kept
    if place < kept and not _before(cost, rotation, costs[place], ends[place]):
        return kept  # the same
    last = min(kept, ends.shape[0] - 1)
    for end in range(last, place, -1):
        _copy(ends[end], ends[end - 1])
        costs[end] = costs[end - 1]
    _copy(ends[place], rotation)
    costs[place] = cost
    return last + 1


@kernel
def _turn_each(laid, rotation):
    """Sweep over the jobs, each to its best rotation, until a whole sweep moves none."""
    jobs = rotation.shape[0]
    still = 0
    job = 1
    for _ in range(MOST_SWEEPS * jobs):
        if still >= jobs - 1:
            return
        put(laid, job, rotation[job], -1)
        lay_costs(laid, job)
        best = best_step(laid, job)
        still += 1
        if laid.cost[best] < laid.cost[rotation[job]]:
            rotation[job] = best
            still = 1
        put(laid, job, rotation[job], 1)
        job = job + 1 if job + 1 < jobs else 1


@kernel
def _turn_pairs(laid, rotation, enough):
    """Turn pairs of jobs to their best two rotations until none helps."""
    jobs = rotation.shape[0]
    pairs = (jobs - 1) * (jobs - 2) // 2
    still = 0
    first = 1
    second = 2
    least = excess(laid)
    for _ in range(MOST_SWEEPS * pairs):
        if still == pairs or least == enough:
            return
        cost = _turn_pair(laid, rotation, first, second, least)
        still = still + 1 if cost == least else 1
        least = cost
        second += 1
        if second == jobs:
            first += 1
            second = first + 1
        if second == jobs:
            first = 1
            second = 2


@kernel
def _turn_pair(laid, rotation, first, second, least):
    """Turn two jobs to their best two rotations, if these cost less than `least`; what it costs now."""
    if laid.folds[second] == 1:  # the one whose rotations are looked at together had better be the one that is cheap
        first, second = second, first
    put(laid, first, rotation[first], -1)
    put(laid, second, rotation[second], -1)
    put(laid, first, 0, 1)
    for step in range(laid.turns[first]):
        if step > 0:
            turn(laid, first, step - 1, step)
        if least_with(laid, second) < least:
            lay_costs(laid, second)
            best = best_step(laid, second)
            cost = laid.cost[best] + settled(laid, second)
            if cost < least:
                least = cost
                rotation[first] = step
                rotation[second] = best
    put(laid, first, laid.turns[first] - 1, -1)
    put(laid, first, rotation[first], 1)
    put(laid, second, rotation[second], 1)
    return least
