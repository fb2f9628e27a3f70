"""Excess demand on shared links, at every rotation of one job: `Overlay` in arrays, compiled.

Demands are whole numbers: fractions of a link's capacity times `OverlayArrays.room`, so sums are exact in any order.
The capacity is increased by one unit per job, so that demands that add up to it fit after rounding.
"""

from typing import NamedTuple

import numpy as np

from ...simulator.compiler.jit import entry, kernel
from ...simulator.numerics.instructions import nearest


class OverlayArrays(NamedTuple):
    """An overlay in arrays: n jobs with up to K rotations on L links and A angles, and the scratch of a search.

    A job whose demand repeats after a whole number of angles is stored once and counted `folds` times.
    """

    shift: np.ndarray  # int64 (n, K), rotations in angles, ascending, each less than A / folds
    n_rotations: np.ndarray  # int64 (n,), number of rotations
    folds: np.ndarray  # int64 (n,), how often the demand of a job repeats; divides A
    flows: np.ndarray  # float64 (L, n), 0 where a job does not use the link
    levels: np.ndarray  # int64 (n,), number of different rates above 0 of a job, in ascending order
    first: np.ndarray  # int64 (n, R + 1), the first run of each level; runs of a level are adjacent
    start: np.ndarray  # int64 (n, R), angles, not rotated: a run is from start to before end,
    end: np.ndarray  # in [0, A / folds]
    amount: np.ndarray  # int64 (L, n, R), units of a level on each link
    whole: np.ndarray  # int64 (L, n), units of a job summed over all angles
    room: np.ndarray  # int64 (1,), the capacity of every link in units
    spent: np.ndarray  # int64 (1,), cost of the search so far, about nanoseconds, counted to be reproducible
    rest: np.ndarray  # int64 (L, A), demand of the placed jobs minus the capacity
    sums: np.ndarray  # int64 (2 A + 1,), scratch
    cost: np.ndarray  # int64 (K,), of each rotation of a job: its excess over angles and links


@entry
def write_levels(flat, demand, capacity, iterations):
    """Modify `flat`: folds, levels, runs and amounts of `demand`.

    demand: float64 (n, A), bytes per second; capacity: float64 (L,), bytes per second; iterations: int64 (n,), of each
    job once around.
    """
    for job in range(demand.shape[0]):
        flat.folds[job] = iterations[job] if _repeats(demand, job, iterations[job]) else 1
        around = demand.shape[1] // flat.folds[job]
        levels = 0
        runs = 0
        reached = 0.0
        while True:
            rate = np.inf
            for angle in range(around):
                if reached < demand[job, angle] < rate:
                    rate = demand[job, angle]
            if rate == np.inf:
                break
            flat.first[job, levels] = runs
            runs = _write_runs(flat, demand, job, around, rate, runs)
            _write_amounts(flat, job, levels, rate, runs, capacity)
            reached = rate
            levels += 1
        flat.first[job, levels] = runs
        flat.levels[job] = levels


@kernel
def _repeats(demand, job, times):
    angles = demand.shape[1]
    if angles % times != 0:
        return False
    around = angles // times
    differ = 0
    for angle in range(angles - around):
        differ += int(demand[job, angle] != demand[job, angle + around])
    return differ == 0


@kernel
def _write_runs(flat, demand, job, around, rate, runs):
    inside = False
    for angle in range(around):
        here = demand[job, angle] == rate
        if here and not inside:
            flat.start[job, runs] = angle
        if inside and not here:
            flat.end[job, runs] = angle
            runs += 1
        inside = here
    if inside:
        flat.end[job, runs] = around
        runs += 1
    return runs


@kernel
def _write_amounts(flat, job, level, rate, runs, capacity):
    angles = 0
    for run in range(flat.first[job, level], runs):
        angles += flat.end[job, run] - flat.start[job, run]
    for link in range(flat.flows.shape[0]):
        share = flat.flows[link, job] * rate / capacity[link]
        flat.amount[link, job, level] = int(nearest(share * flat.room[0]))
        flat.whole[link, job] += flat.amount[link, job, level] * angles * flat.folds[job]


@kernel
def clear(flat):
    """Modify `rest`: no job is placed."""
    empty = -(flat.room[0] + flat.n_rotations.shape[0])
    for link in range(flat.rest.shape[0]):
        for angle in range(flat.rest.shape[1]):
            flat.rest[link, angle] = empty


@kernel
def put(flat, job, step, sign):
    """Modify `rest`: add (sign 1) or remove (-1) a job at one of its rotations."""
    flat.spent[0] += 60 + flat.rest.size // 4
    shift = flat.shift[job, step]
    around = flat.rest.shape[1] // flat.folds[job]
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] > 0:
            for level in range(flat.levels[job]):
                more = sign * flat.amount[link, job, level]
                for run in range(flat.first[job, level], flat.first[job, level + 1]):
                    for fold in range(flat.folds[job]):
                        by = shift + fold * around
                        _add(flat, link, flat.start[job, run] + by, flat.end[job, run] + by, more)


@kernel
def turn(flat, job, step, to):
    """Modify `rest`: turn a job to a later rotation; only the ends of its runs move."""
    shift = flat.shift[job, step]
    by = flat.shift[job, to] - shift
    around = flat.rest.shape[1] // flat.folds[job]
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] > 0:
            for level in range(flat.levels[job]):
                more = flat.amount[link, job, level]
                for run in range(flat.first[job, level], flat.first[job, level + 1]):
                    for fold in range(flat.folds[job]):
                        start = flat.start[job, run] + shift + fold * around
                        end = flat.end[job, run] + shift + fold * around
                        _add(flat, link, start, start + by, -more)
                        _add(flat, link, end, end + by, more)


@kernel
def _add(flat, link, start, end, more):
    """Add `more` from angle `start`, in [0, 2 A), to before `end`, at most A later."""
    angles = flat.rest.shape[1]
    if start >= angles:
        start -= angles
        end -= angles
    for angle in range(start, min(end, angles)):
        flat.rest[link, angle] += more
    for angle in range(end - angles):
        flat.rest[link, angle] += more


@kernel
def excess_on(flat, link):
    """Sum over the angles of the demand above the capacity of a link."""
    total = 0
    for angle in range(flat.rest.shape[1]):
        total += max(flat.rest[link, angle], 0)
    return total


@kernel
def excess(flat):
    """The excess of all links."""
    total = 0
    for link in range(flat.rest.shape[0]):
        total += excess_on(flat, link)
    return total


@kernel
def least_excess(flat):
    """A lower bound on the excess: all demand less all capacity, link by link."""
    total = 0
    for link in range(flat.rest.shape[0]):
        wanted = 0
        for job in range(flat.n_rotations.shape[0]):
            wanted += flat.whole[link, job]
        total += max(wanted - (flat.room[0] + flat.n_rotations.shape[0]) * flat.rest.shape[1], 0)
    return total


@kernel
def least_with(flat, job):
    """A lower bound on the excess of all links when a job is added to `rest` at any rotation."""
    flat.spent[0] += 40 + flat.rest.size // 8
    total = 0
    for link in range(flat.rest.shape[0]):
        over = 0
        left = 0
        peak = flat.amount[link, job, flat.levels[job] - 1] if flat.flows[link, job] > 0 else 0
        for angle in range(flat.rest.shape[1]):
            rest = flat.rest[link, angle]
            over += max(rest, 0)
            left += min(max(-rest, 0), peak)
        total += over
        if flat.flows[link, job] > 0:
            total += max(flat.whole[link, job] - left, 0)
    return total


@kernel
def write_costs(flat, job):
    """Modify `cost`: the excess of a job's links at each of its rotations; `rest` is without the job.

    It takes differences of running sums: two look-ups a run and rotation. The sums go around twice, so that no run is
    broken at angle 0.
    """
    n_rotations = flat.n_rotations[job]
    angles = flat.rest.shape[1]
    for step in range(n_rotations):
        flat.cost[step] = 0
    before = 0
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] > 0:
            before += excess_on(flat, link)
            for level in range(flat.levels[job]):
                _write_sums(flat, link, flat.folds[job], flat.amount[link, job, level])
                runs = flat.first[job, level + 1] - flat.first[job, level]
                flat.spent[0] += 200 + angles // 5 + angles // (2 * flat.folds[job]) + n_rotations * runs
                for run in range(flat.first[job, level], flat.first[job, level + 1]):
                    start = flat.start[job, run]
                    end = flat.end[job, run]
                    for step in range(n_rotations):
                        shift = flat.shift[job, step]
                        flat.cost[step] += flat.sums[end + shift] - flat.sums[start + shift]
    for step in range(n_rotations):
        flat.cost[step] += before


@kernel
def _write_sums(flat, link, folds, more):
    around = flat.rest.shape[1] // folds
    for angle in range(around):
        flat.sums[angle] = 0
    for fold in range(folds):
        for angle in range(around):
            rest = flat.rest[link, fold * around + angle]
            flat.sums[angle] += max(rest + more, 0) - max(rest, 0)
    total = 0
    for angle in range(around):
        here = flat.sums[angle]
        flat.sums[angle] = total
        total += here
    for angle in range(around):
        flat.sums[around + angle] = flat.sums[angle] + total
    flat.sums[2 * around] = 2 * total


@kernel
def best_step(flat, job):
    """The rotation of the least cost, the smallest on a tie."""
    best = 0
    for step in range(1, flat.n_rotations[job]):
        if flat.cost[step] < flat.cost[best]:
            best = step
    return best


@kernel
def unused_links_excess(flat, job):
    """The excess of the links that a job does not use."""
    total = 0
    for link in range(flat.rest.shape[0]):
        if flat.flows[link, job] == 0:
            total += excess_on(flat, link)
    return total
