"""Rotations with the least excess: all of them tried, or descent from several beginnings. Compiled; see overlap.py.

The first job stays where it is. Equal costs go to the smallest rotations, first job first.

The costs of all rotations of a job, the others as they are, follow from what changes from one angle to the next.
`overlap.lay_costs` gives costs in units that are fine enough to compare any two. Here units are coarser, so that they
fit into 32 bits, and costs are relative: a search takes thousands of them, and only where it ends has to be exact.
"""

from typing import NamedTuple

import numpy as np

from ...simulator.compiler.jit import entry, kernel, search
from ...simulator.numerics.random import random_word
from .overlap import best_step, clear, excess, lay_costs, least_excess, least_with, put, settled, turn

PADDED = 32  # angles are worked on so many at once,
ABREAST = 2  # and runs
SEEN = 4093  # rotations that are remembered
PRIME = (1 << 50) - 27  # jobs with 72 rotations each have as many together from the ninth on


class Lines(NamedTuple):
    """The arrays of `Laid` in coarser units, and scratch; n jobs, L links, A angles, K rotations.

    Attributes:
        coarse: int64 (1,), a unit is 2 ** coarse of those of `Laid`.
        iterations: int64 (n,), of each job once around.
        reach: int64 (n,), angles of the rotations of a job and some.
        runs: int64 (n, R), how many runs a level of a job has, all around.
        start, end: int64 (n, R, M), of each of them; 0 both where there are none.
        amount: int32 (L, n, R), what a level of a job takes of a link.
        own: int32 (L, n, 2 A), what a job takes of a link at each angle, not rotated, twice around.
        total: int32 (L, A), what all jobs take at their rotations, minus the capacity.
        more: int32 (2 A + PADDED,), what a level would add to the excess at each angle, twice around.
        slope: int32 (A + PADDED,), how that changes from each angle of rotation to the next.
        sums: int64 (A + PADDED,), sums of it.
        cost: int64 (K,), of each rotation of a job, less that of rotation 0.
        seen: int64 (SEEN,), rotations that a descent had, as a number.
    """

    coarse: np.ndarray
    iterations: np.ndarray
    reach: np.ndarray
    runs: np.ndarray
    start: np.ndarray
    end: np.ndarray
    amount: np.ndarray
    own: np.ndarray
    total: np.ndarray
    more: np.ndarray
    slope: np.ndarray
    sums: np.ndarray
    cost: np.ndarray
    seen: np.ndarray


@entry
def lay_amounts(laid, lines):
    """Modify `lines`: amounts and own demand."""
    coarse = lines.coarse[0]
    half = (1 << coarse) >> 1
    for link in range(laid.rest.shape[0]):
        for job in range(laid.turns.shape[0]):
            for level in range(laid.levels[job]):
                lines.amount[link, job, level] = (laid.amount[link, job, level] + half) >> coarse
                for run in range(laid.first[job, level], laid.first[job, level + 1]):
                    _lay_own(laid, lines, link, job, run, lines.amount[link, job, level])


@entry
def lay_runs(laid, lines):
    """Modify `lines`: where the runs of each level are, all around the circle."""
    for job in range(laid.turns.shape[0]):
        lines.reach[job] = laid.shift[job, laid.turns[job] - 1] + 1
        lines.reach[job] += -lines.reach[job] % PADDED
        around = laid.rest.shape[1] // laid.folds[job]
        for level in range(laid.levels[job]):
            runs = 0
            for run in range(laid.first[job, level], laid.first[job, level + 1]):
                for fold in range(laid.folds[job]):
                    lines.start[job, level, runs] = laid.start[job, run] + fold * around
                    lines.end[job, level, runs] = laid.end[job, run] + fold * around
                    runs += 1
            lines.runs[job, level] = runs


@kernel
def _lay_own(laid, lines, link, job, run, amount):
    around = laid.rest.shape[1] // laid.folds[job]
    for fold in range(2 * laid.folds[job]):
        for angle in range(laid.start[job, run], laid.end[job, run]):
            lines.own[link, job, fold * around + angle] = amount


@kernel
def begin_lines(laid, lines, rotation):
    """Modify `total`: all jobs are at these rotations. What fits in the units of `laid` fits after rounding, too."""
    angles = laid.rest.shape[1]
    empty = np.int32(-((laid.room[0] >> lines.coarse[0]) + laid.turns.shape[0]))
    laid.spent[0] += laid.rest.shape[0] * rotation.shape[0] * (10 + angles // 24)
    for link in range(laid.rest.shape[0]):
        for angle in range(angles):
            lines.total[link, angle] = empty
        for job in range(rotation.shape[0]):
            own = lines.own[link, job, angles - laid.shift[job, rotation[job]] :]
            for angle in range(angles):
                lines.total[link, angle] = np.int32(lines.total[link, angle] + own[angle])


@kernel
def move(laid, lines, job, step, to):
    """Modify `total`: a job goes from one of its rotations to another."""
    angles = laid.rest.shape[1]
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] > 0:
            laid.spent[0] += 20 + angles // 20
            before = lines.own[link, job, angles - laid.shift[job, step] :]
            after = lines.own[link, job, angles - laid.shift[job, to] :]
            for angle in range(angles):
                change = np.int32(after[angle] - before[angle])
                lines.total[link, angle] = np.int32(lines.total[link, angle] + change)


@kernel
def lay_line(laid, lines, job, step):
    """Modify `cost`: of each rotation of a job that is at `step`, less that of rotation 0."""
    turns = laid.turns[job]
    laid.spent[0] += 90
    for other in range(turns):
        lines.cost[other] = 0
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] > 0:
            for level in range(laid.levels[job]):
                _lay_more(laid, lines, link, job, level, laid.shift[job, step])
                _lay_slope(laid, lines, job, level)
                for other in range(turns):
                    lines.cost[other] += lines.sums[laid.shift[job, other]]


@kernel
def _lay_more(laid, lines, link, job, level, shift):
    """Modify `more`: what a level of a job adds to the excess of a link at each angle, without the job itself there."""
    angles = laid.rest.shape[1]
    amount, none = lines.amount[link, job, level], np.int32(0)
    own = lines.own[link, job, angles - shift :]
    for angle in range(angles):
        rest = np.int32(lines.total[link, angle] - own[angle])
        lines.more[angle] = np.int32(max(np.int32(rest + amount), none) - max(rest, none))
    again = lines.more[angles:]
    for angle in range(lines.reach[job]):
        again[angle] = lines.more[angle]


@kernel
def _lay_slope(laid, lines, job, level):
    """Modify `sums`: the ends of a level's runs go over an angle each, one comes under them and one is left."""
    reach, runs = lines.reach[job], lines.runs[job, level]
    laid.spent[0] += 30 + laid.rest.shape[1] // 14 + runs * (5 + reach // 20) + reach // 2
    for angle in range(reach):
        lines.slope[angle] = 0
    for run in range(0, runs, ABREAST):
        left = lines.more[lines.start[job, level, run] :]
        come = lines.more[lines.end[job, level, run] :]
        left_2 = lines.more[lines.start[job, level, run + 1] :]
        come_2 = lines.more[lines.end[job, level, run + 1] :]
        for angle in range(reach):
            change = np.int32(come[angle] - left[angle]) + np.int32(come_2[angle] - left_2[angle])
            lines.slope[angle] = np.int32(lines.slope[angle] + change)
    cost = 0
    for angle in range(reach):
        lines.sums[angle] = cost
        cost += lines.slope[angle]


@kernel
def total_excess(lines):
    """The sum over links and angles of what is above the capacity."""
    total = 0
    for link in range(lines.total.shape[0]):
        for angle in range(lines.total.shape[1]):
            total += max(lines.total[link, angle], np.int32(0))
    return total


@kernel
def turn_each(laid, lines, rotation, most):
    """Modify `rotation`: sweep over the jobs, each to its best, until a sweep moves none, or `most` were looked at.

    False, and it has not got there, if an earlier descent went on from the same rotations.
    """
    jobs, size = rotation.shape[0], lines.cost.size
    still, job = 0, 1
    for _ in range(most):
        if still >= jobs - 1:
            break
        lay_line(laid, lines, job, rotation[job])
        least = 0
        for step in range(laid.turns[job]):
            least = min(least, lines.cost[step] * size + step)  # the first of the least costs
        best = least % size
        still += 1
        if lines.cost[best] < lines.cost[rotation[job]]:
            move(laid, lines, job, rotation[job], best)
            rotation[job] = best
            still = 1
            if _was_here(laid, lines, rotation, job):
                return False
        job = job + 1 if job + 1 < jobs else 1
    return True


@kernel
def _was_here(laid, lines, rotation, job):
    """Modify `seen`: whether an earlier descent had these rotations when it had just turned that job."""
    place = job
    for other in range(1, rotation.shape[0]):
        place = (place * laid.turns[other] + rotation[other]) % PRIME
    slot = place % lines.seen.size
    if lines.seen[slot] == place:
        return True
    lines.seen[slot] = place
    return False


MOST_SWEEPS = 50
NEAR = 2  # angles of a link's capacity: what rounding to the grid may well cost
BEGINNINGS = 29  # stream of the random numbers


@search
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


@search
def search_by_descent(laid, lines, restarts, seed, work, ends, costs, scratch):
    """Modify `ends`, int64 (E, n), `costs`, int64 (E,): the best different ends of the descents, the best one first.

    The first beginning is no rotation at all, the others are random; the last is the one with which `work` is spent.
    A good end is looked at all around the circle, see `_turn_all`. Descents are in coarse units (`Lines`), so
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
