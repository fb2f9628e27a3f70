"""Rotations with the least excess: all of them tried, or descent from several starts. Compiled; see overlap.py.

The first job is not rotated. Equal costs go to the smallest rotations, first job first.

The costs of all rotations of a job follow from changes between adjacent angles. `overlap.write_costs` gives exact
costs; here units are coarser, to fit into 32 bits, and costs are relative, as only the ends of a search need exact
ones.
"""

from typing import NamedTuple

import numpy as np

from ...simulator.compiler.jit import entry, kernel, search
from ...simulator.numerics.random import random_word
from .overlap import best_step, clear, excess, least_excess, least_with, put, turn, unused_links_excess, write_costs

PADDED = 32  # block of angles,
ABREAST = 2  # and of runs
SEEN = 4093  # size of the hash of visited rotations
PRIME = (1 << 50) - 27  # from nine jobs with 72 rotations each on, there are more combinations


class Lines(NamedTuple):
    """The arrays of `OverlayArrays` in coarser units, and scratch; n jobs, L links, A angles, K rotations."""

    coarse: np.ndarray  # int64 (1,), a unit is 2 ** coarse of those of `OverlayArrays`
    iterations: np.ndarray  # int64 (n,), of each job once around
    reach: np.ndarray  # int64 (n,), angles of a job's rotations, padded
    runs: np.ndarray  # int64 (n, R), number of runs of a level, all around
    start: np.ndarray  # int64 (n, R, M), of each run; 0 where there are none
    end: np.ndarray  # likewise
    amount: np.ndarray  # int32 (L, n, R), of a level on a link
    own: np.ndarray  # int32 (L, n, 2 A), of a job on a link at each angle, not rotated, twice around
    total: np.ndarray  # int32 (L, A), of all jobs at their rotations, minus the capacity
    more: np.ndarray  # int32 (2 A + PADDED,), excess that a level would add at each angle, twice around
    slope: np.ndarray  # int32 (A + PADDED,), its change from each angle of rotation to the next
    sums: np.ndarray  # int64 (A + PADDED,), sums of `slope`
    cost: np.ndarray  # int64 (K,), of each rotation of a job, less that of rotation 0
    seen: np.ndarray  # int64 (SEEN,), visited rotations, as a number


@entry
def write_amounts(flat, lines):
    """Modify `lines`: amounts and own demand."""
    coarse = lines.coarse[0]
    half = (1 << coarse) >> 1
    for link in range(flat.rest.shape[0]):
        for job in range(flat.n_rotations.shape[0]):
            for level in range(flat.levels[job]):
                lines.amount[link, job, level] = (flat.amount[link, job, level] + half) >> coarse
                for run in range(flat.first[job, level], flat.first[job, level + 1]):
                    _write_own(flat, lines, link, job, run, lines.amount[link, job, level])


@entry
def write_runs(flat, lines):
    """Modify `lines`: the runs of each level, all around the circle."""
    for job in range(flat.n_rotations.shape[0]):
        lines.reach[job] = flat.shift[job, flat.n_rotations[job] - 1] + 1
        lines.reach[job] += -lines.reach[job] % PADDED
        around = flat.rest.shape[1] // flat.folds[job]
        for level in range(flat.levels[job]):
            runs = 0
            for run in range(flat.first[job, level], flat.first[job, level + 1]):
                for fold in range(flat.folds[job]):
                    lines.start[job, level, runs] = flat.start[job, run] + fold * around
                    lines.end[job, level, runs] = flat.end[job, run] + fold * around
                    runs += 1
            lines.runs[job, level] = runs


@kernel
def _write_own(flat, lines, link, job, run, amount):
    around = flat.rest.shape[1] // flat.folds[job]
    for fold in range(2 * flat.folds[job]):
        for angle in range(flat.start[job, run], flat.end[job, run]):
            lines.own[link, job, fold * around + angle] = amount


@kernel
def begin_lines(flat, lines, rotation):
    """Modify `total`: all jobs are at these rotations. Demand that fits in units of `flat` fits after rounding."""
    angles = flat.rest.shape[1]
    empty = np.int32(-((flat.room[0] >> lines.coarse[0]) + flat.n_rotations.shape[0]))
    flat.spent[0] += flat.rest.shape[0] * rotation.shape[0] * (10 + angles // 24)
    for link in range(flat.rest.shape[0]):
        for angle in range(angles):
            lines.total[link, angle] = empty
        for job in range(rotation.shape[0]):
            own = lines.own[link, job, angles - flat.shift[job, rotation[job]] :]
            for angle in range(angles):
                lines.total[link, angle] = np.int32(lines.total[link, angle] + own[angle])


@kernel
def move(flat, lines, job, step, to):
    """Modify `total`: a job moves from one of its rotations to another."""
    angles = flat.rest.shape[1]
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] > 0:
            flat.spent[0] += 20 + angles // 20
            before = lines.own[link, job, angles - flat.shift[job, step] :]
            after = lines.own[link, job, angles - flat.shift[job, to] :]
            for angle in range(angles):
                change = np.int32(after[angle] - before[angle])
                lines.total[link, angle] = np.int32(lines.total[link, angle] + change)


@kernel
def write_line(flat, lines, job, step):
    """Modify `cost`: of each rotation of a job at `step`, less that of rotation 0."""
    n_rotations = flat.n_rotations[job]
    flat.spent[0] += 90
    for other in range(n_rotations):
        lines.cost[other] = 0
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] > 0:
            for level in range(flat.levels[job]):
                _write_more(flat, lines, link, job, level, flat.shift[job, step])
                _write_slope(flat, lines, job, level)
                for other in range(n_rotations):
                    lines.cost[other] += lines.sums[flat.shift[job, other]]


@kernel
def _write_more(flat, lines, link, job, level, shift):
    """Modify `more`: the excess that a level adds on a link at each angle, without the job itself."""
    angles = flat.rest.shape[1]
    amount, none = lines.amount[link, job, level], np.int32(0)
    own = lines.own[link, job, angles - shift :]
    for angle in range(angles):
        rest = np.int32(lines.total[link, angle] - own[angle])
        lines.more[angle] = np.int32(max(np.int32(rest + amount), none) - max(rest, none))
    again = lines.more[angles:]
    for angle in range(lines.reach[job]):
        again[angle] = lines.more[angle]


@kernel
def _write_slope(flat, lines, job, level):
    """Modify `sums`: per rotation each run of a level gains the angle at its end and loses the one at its start."""
    reach, runs = lines.reach[job], lines.runs[job, level]
    flat.spent[0] += 30 + flat.rest.shape[1] // 14 + runs * (5 + reach // 20) + reach // 2
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
    """The sum over links and angles of the demand above the capacity."""
    total = 0
    for link in range(lines.total.shape[0]):
        for angle in range(lines.total.shape[1]):
            total += max(lines.total[link, angle], np.int32(0))
    return total


@kernel
def turn_each(flat, lines, rotation, most):
    """Modify `rotation`: sweep over the jobs, each to its best, until a sweep moves none, or after `most` jobs.

    False, before the end, if an earlier descent had the same rotations.
    """
    jobs, size = rotation.shape[0], lines.cost.size
    still, job = 0, 1
    for _ in range(most):
        if still >= jobs - 1:
            break
        write_line(flat, lines, job, rotation[job])
        least = 0
        for step in range(flat.n_rotations[job]):
            least = min(least, lines.cost[step] * size + step)  # the first of the least costs
        best = least % size
        still += 1
        if lines.cost[best] < lines.cost[rotation[job]]:
            move(flat, lines, job, rotation[job], best)
            rotation[job] = best
            still = 1
            if _was_here(flat, lines, rotation, job):
                return False
        job = job + 1 if job + 1 < jobs else 1
    return True


@kernel
def _was_here(flat, lines, rotation, job):
    """Modify `seen`: True if an earlier descent had these rotations when it had just turned that job."""
    place = job
    for other in range(1, rotation.shape[0]):
        place = (place * flat.n_rotations[other] + rotation[other]) % PRIME
    slot = place % lines.seen.size
    if lines.seen[slot] == place:
        return True
    lines.seen[slot] = place
    return False


MOST_SWEEPS = 50
NEAR = 2  # angles of a link's capacity: a plausible cost of rounding to the grid
BEGINNINGS = 29  # stream of the random numbers


@search
def search_all(flat, rotation, best):
    """Modify `best`, int64 (n,): the best of all rotations; `rotation`, int64 (n,), is scratch. Returns its cost."""
    last = rotation.shape[0] - 1
    clear(flat)
    for job in range(last + 1):
        rotation[job] = 0
        best[job] = 0
        if job < last:
            put(flat, job, 0, 1)
    if last == 0:
        put(flat, 0, 0, 1)
        return excess(flat)
    enough = least_excess(flat)
    least = -1
    while True:
        if least < 0 or least_with(flat, last) < least:
            write_costs(flat, last)
            step = best_step(flat, last)
            cost = flat.cost[step] + unused_links_excess(flat, last)
            if least < 0 or cost < least:
                least = cost
                _copy(best, rotation)
                best[last] = step
        if least == enough or not _next(flat, rotation, last):
            return least


@kernel
def _next(flat, rotation, last):
    """Turn the jobs between the first and the last to the next combination; False after the last one."""
    job = last - 1
    while job > 0:
        if rotation[job] + 1 < flat.n_rotations[job]:
            turn(flat, job, rotation[job], rotation[job] + 1)
            rotation[job] += 1
            return True
        put(flat, job, rotation[job], -1)
        put(flat, job, 0, 1)
        rotation[job] = 0
        job -= 1
    return False


@search
def search_by_descent(flat, lines, restarts, seed, work, ends, costs, scratch):
    """Modify `ends`, int64 (E, n), `costs`, int64 (E,): the best different ends of the descents, the best first.

    The first start is no rotation, the others are random, until `work` is spent. A good end is continued all around the
    circle (`_turn_all`). Descents use coarse units (`Lines`); ends that may be the best are compared in fine ones.
    `scratch` is int64 (2, n).
    """
    rotation = scratch[0]
    enough = least_excess(flat)
    rounded = 3 * lines.total.size * rotation.shape[0]  # coarse units by which rounding may change a difference
    near = NEAR * lines.total.shape[0] * (flat.room[0] >> lines.coarse[0])
    flat.spent[0] = 0
    _copy_random(flat, rotation, seed, 0)
    begin_lines(flat, lines, rotation)
    kept = _keep(ends, costs, 0, rotation, total_excess(lines))
    for beginning in range(restarts + 1):
        least = costs[0] + int(beginning == 0)  # the first end may be the least
        flat.spent[0] += 100
        _copy_random(flat, rotation, seed, beginning)
        cost = _descend(flat, lines, rotation)
        if 0 <= cost <= least + near:
            kept = _keep(ends, costs, kept, rotation, cost)
            kept = _turn_all(flat, lines, scratch, ends, costs, kept, work)
        if costs[0] <= (enough >> lines.coarse[0]) + rounded and costs[0] < least and _exact(flat, ends[0]) == enough:
            return
        if flat.spent[0] > work:
            break
    _compare(flat, ends, costs, kept, rounded)


@kernel
def _descend(flat, lines, rotation):
    """Modify `rotation`: turn each job to its best until none helps. Returns the coarse cost; -1: a repeated path."""
    begin_lines(flat, lines, rotation)
    if not turn_each(flat, lines, rotation, MOST_SWEEPS * rotation.shape[0]):
        return -1
    return total_excess(lines)


@kernel
def _turn_all(flat, lines, scratch, ends, costs, kept, work):
    """Modify `ends`: descents from all jobs but the first turned by its iterations. Returns the number kept.

    Without rounding to the grid that would be the same rotation.
    """
    rotation, origin = scratch[0], scratch[1]
    _copy(origin, rotation)
    lap = 1
    while lap < lines.iterations[0] and flat.spent[0] <= work:
        for job in range(1, rotation.shape[0]):
            rotation[job] = _turned(flat, lines, job, origin[job], lap)
        least = costs[0]
        cost = _descend(flat, lines, rotation)
        if cost >= 0:
            kept = _keep(ends, costs, kept, rotation, cost)
        if 0 <= cost < least:
            _copy(origin, rotation)
            lap = 0
        lap += 1
    return kept


@kernel
def _turned(flat, lines, job, step, laps):
    """The rotation of a job nearest to `step` plus so many iterations of the first job."""
    angles = flat.rest.shape[1] * lines.iterations[0]
    angle = flat.shift[job, step] * lines.iterations[0] + laps * flat.rest.shape[1]
    part = angle * lines.iterations[job] % angles  # of `angles`, once around the job's own circle
    return (2 * part * flat.n_rotations[job] + angles) // (2 * angles) % flat.n_rotations[job]


@kernel
def _copy_random(flat, rotation, seed, beginning):
    """Modify `rotation`: the start of a descent."""
    jobs = rotation.shape[0]
    for job in range(jobs):
        word = random_word(seed, BEGINNINGS, beginning * jobs + job)
        rotation[job] = word % flat.n_rotations[job] if beginning > 0 and job > 0 else 0


@kernel
def _exact(flat, rotation):
    """The excess at these rotations, in fine units."""
    clear(flat)
    for job in range(rotation.shape[0]):
        put(flat, job, rotation[job], 1)
    return excess(flat)


@kernel
def _compare(flat, ends, costs, kept, rounded):
    """Modify `ends`: of ends with nearly the least coarse cost, the one with the least exact cost becomes the first."""
    near = costs[0] + rounded
    best, least = 0, _exact(flat, ends[0])
    for end in range(1, kept):
        if costs[end] <= near:
            cost = _exact(flat, ends[end])
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
    """Insert an end in order, if it is new and among the best. Returns the number kept."""
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
