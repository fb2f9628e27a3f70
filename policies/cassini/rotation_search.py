"""Rotations with the least excess: all of them tried, or descent from several beginnings. Compiled; see overlap.py.

The first job stays where it is. Equal costs go to the smallest rotations, first job first.
"""

from ...simulator.compiler.jit import entry, kernel
from ...simulator.numerics.random import random_word
from .overlap import best_step, clear, excess, lay_costs, least_excess, least_with, put, settled, turn
from .rotation_costs import begin_lines, total_excess, turn_each

MOST_SWEEPS = 50
NEAR = 2  # angles of a link's capacity: what rounding to the grid may well cost
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
def search_by_descent(laid, lines, restarts, seed, work, ends, costs, scratch):
    """Modify `ends`, int64 (E, n), `costs`, int64 (E,): the best different ends of the descents, the best one first.

    The first beginning is no rotation at all, the others are random; the last is the one with which `work` is spent.
    A good end is looked at all around the circle, see `_turn_all`. Descents are in coarse units (rotation_costs.py), so
    the ends that may be the best in fine ones are compared in these. `scratch` is int64 (2, n).
    """
    rotation = scratch[0]
    enough = least_excess(laid)
    rounded = 3 * lines.total.size * rotation.shape[0]  # coarse units that two costs may differ by, from rounding
    near = NEAR * lines.total.shape[0] * (laid.room[0] >> lines.coarse[0])
    laid.spent[0] = 0
    _copy_random(laid, rotation, seed, 0)
    begin_lines(laid, lines, rotation)
    kept = _keep(ends, costs, 0, rotation, total_excess(lines))
    for beginning in range(restarts + 1):
        least = costs[0] + int(beginning == 0)  # the least may be the first
        laid.spent[0] += 100
        _copy_random(laid, rotation, seed, beginning)
        cost = _descend(laid, lines, rotation)
        if 0 <= cost <= least + near:
            kept = _keep(ends, costs, kept, rotation, cost)
            kept = _turn_all(laid, lines, scratch, ends, costs, kept, work)
        if costs[0] <= (enough >> lines.coarse[0]) + rounded and costs[0] < least and _exact(laid, ends[0]) == enough:
            return
        if laid.spent[0] > work:
            break
    _compare(laid, ends, costs, kept, rounded)


@kernel
def _descend(laid, lines, rotation):
    """Modify `rotation`: turn each job to its best until none helps; returns the cost, in coarse units.

    -1: an earlier descent went the same way.
    """
    begin_lines(laid, lines, rotation)
    if not turn_each(laid, lines, rotation, MOST_SWEEPS * rotation.shape[0]):
        return -1
    return total_excess(lines)


@kernel
def _turn_all(laid, lines, scratch, ends, costs, kept, work):
    """Modify `ends`: descents from where all jobs but the first are turned by its iterations; how many are kept now.

    That would be the same again if no rotation had to be rounded to the grid.
    """
    rotation, origin = scratch[0], scratch[1]
    _copy(origin, rotation)
    lap = 1
    while lap < lines.iterations[0] and laid.spent[0] <= work:
        for job in range(1, rotation.shape[0]):
            rotation[job] = _turned(laid, lines, job, origin[job], lap)
        least = costs[0]
        cost = _descend(laid, lines, rotation)
        if cost >= 0:
            kept = _keep(ends, costs, kept, rotation, cost)
        if 0 <= cost < least:
            _copy(origin, rotation)
            lap = 0
        lap += 1
    return kept


@kernel
def _turned(laid, lines, job, step, laps):
    """The rotation of a job nearest to `step` and so many iterations of the first job more."""
    angles = laid.rest.shape[1] * lines.iterations[0]
    angle = laid.shift[job, step] * lines.iterations[0] + laps * laid.rest.shape[1]
    part = angle * lines.iterations[job] % angles  # of `angles`, once around the job's own circle
    return (2 * part * laid.turns[job] + angles) // (2 * angles) % laid.turns[job]


@kernel
def _copy_random(laid, rotation, seed, beginning):
    """Modify `rotation`: where a descent begins."""
    jobs = rotation.shape[0]
    for job in range(jobs):
        word = random_word(seed, BEGINNINGS, beginning * jobs + job)
        rotation[job] = word % laid.turns[job] if beginning > 0 and job > 0 else 0


@kernel
def _exact(laid, rotation):
    """The excess at these rotations, in fine units."""
    clear(laid)
    for job in range(rotation.shape[0]):
        put(laid, job, rotation[job], 1)
    return excess(laid)


@kernel
def _compare(laid, ends, costs, kept, rounded):
    """Modify `ends`: of those with a coarse cost so near the least the one with the least cost is the first."""
    near = costs[0] + rounded
    best, least = 0, _exact(laid, ends[0])
    for end in range(1, kept):
        if costs[end] <= near:
            cost = _exact(laid, ends[end])
            if _before(cost, ends[end], least, ends[best]):
                best, least = end, cost
    if best > 0:
        _copy(ends[0], ends[best])


@kernel
def _copy(to, rotation):
    for job in range(rotation.shape[0]):
        to[job] = rotation[job]


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
