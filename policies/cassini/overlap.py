"""Excess demand on shared links, at every rotation of one job: `Overlay` in arrays, compiled.

Demands are whole numbers: fractions of a link's capacity times `Laid.room`, so sums are exact in any order. The
capacity is increased by one unit per job, so that demands that add up to it fit after rounding.
"""

from typing import NamedTuple

import numpy as np

from ...simulator.compiler.jit import entry, kernel
from ...simulator.numerics.instructions import nearest


class Laid(NamedTuple):
    """An overlay in arrays: n jobs with up to K rotations on L links and A angles, and the scratch of a search.

    A job whose demand repeats after a whole number of angles is stored once and counted `folds` times.
    """

    shift: np.ndarray  # int64 (n, K), rotations in angles, ascending, each less than A / folds
    turns: np.ndarray  # int64 (n,), number of rotations
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
def lay_levels(laid, demand, capacity, iterations):
    """Modify `laid`: folds, levels, runs and amounts of `demand`.

    demand: float64 (n, A), bytes per second; capacity: float64 (L,), bytes per second; iterations: int64 (n,), of each
    job once around.
    """
    for job in range(demand.shape[0]):
        laid.folds[job] = iterations[job] if _repeats(demand, job, iterations[job]) else 1
        around = demand.shape[1] // laid.folds[job]
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
            laid.first[job, levels] = runs
            runs = _lay_runs(laid, demand, job, around, rate, runs)
            _lay_amounts(laid, job, levels, rate, runs, capacity)
            reached = rate
            levels += 1
        laid.first[job, levels] = runs
        laid.levels[job] = levels


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
def _lay_runs(laid, demand, job, around, rate, runs):
    inside = False
    for angle in range(around):
        here = demand[job, angle] == rate
        if here and not inside:
            laid.start[job, runs] = angle
        if inside and not here:
            laid.end[job, runs] = angle
            runs += 1
        inside = here
    if inside:
        laid.end[job, runs] = around
        runs += 1
    return runs


@kernel
def _lay_amounts(laid, job, level, rate, runs, capacity):
    angles = 0
    for run in range(laid.first[job, level], runs):
        angles += laid.end[job, run] - laid.start[job, run]
    for link in range(laid.flows.shape[0]):
        share = laid.flows[link, job] * rate / capacity[link]
        laid.amount[link, job, level] = int(nearest(share * laid.room[0]))
        laid.whole[link, job] += laid.amount[link, job, level] * angles * laid.folds[job]


@kernel
def clear(laid):
    """Modify `rest`: no job is placed."""
    empty = -(laid.room[0] + laid.turns.shape[0])
    for link in range(laid.rest.shape[0]):
        for angle in range(laid.rest.shape[1]):
            laid.rest[link, angle] = empty


@kernel
def put(laid, job, step, sign):
    """Modify `rest`: add (sign 1) or remove (-1) a job at one of its rotations."""
    laid.spent[0] += 60 + laid.rest.size // 4
    shift = laid.shift[job, step]
    around = laid.rest.shape[1] // laid.folds[job]
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] > 0:
            for level in range(laid.levels[job]):
                more = sign * laid.amount[link, job, level]
                for run in range(laid.first[job, level], laid.first[job, level + 1]):
                    for fold in range(laid.folds[job]):
                        by = shift + fold * around
                        _add(laid, link, laid.start[job, run] + by, laid.end[job, run] + by, more)


@kernel
def turn(laid, job, step, to):
    """Modify `rest`: turn a job to a later rotation; only the ends of its runs move."""
    shift = laid.shift[job, step]
    by = laid.shift[job, to] - shift
    around = laid.rest.shape[1] // laid.folds[job]
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] > 0:
            for level in range(laid.levels[job]):
                more = laid.amount[link, job, level]
                for run in range(laid.first[job, level], laid.first[job, level + 1]):
                    for fold in range(laid.folds[job]):
                        start = laid.start[job, run] + shift + fold * around
                        end = laid.end[job, run] + shift + fold * around
                        _add(laid, link, start, start + by, -more)
                        _add(laid, link, end, end + by, more)


@kernel
def _add(laid, link, start, end, more):
    """Add `more` from angle `start`, in [0, 2 A), to before `end`, at most A later."""
    angles = laid.rest.shape[1]
    if start >= angles:
        start -= angles
        end -= angles
    for angle in range(start, min(end, angles)):
        laid.rest[link, angle] += more
    for angle in range(end - angles):
        laid.rest[link, angle] += more


@kernel
def excess_on(laid, link):
    """Sum over the angles of the demand above the capacity of a link."""
    total = 0
    for angle in range(laid.rest.shape[1]):
        total += max(laid.rest[link, angle], 0)
    return total


@kernel
def excess(laid):
    """The excess of all links."""
    total = 0
    for link in range(laid.rest.shape[0]):
        total += excess_on(laid, link)
    return total


@kernel
def least_excess(laid):
    """A lower bound on the excess: all demand less all capacity, link by link."""
    total = 0
    for link in range(laid.rest.shape[0]):
        wanted = 0
        for job in range(laid.turns.shape[0]):
            wanted += laid.whole[link, job]
        total += max(wanted - (laid.room[0] + laid.turns.shape[0]) * laid.rest.shape[1], 0)
    return total


@kernel
def least_with(laid, job):
    """A lower bound on the excess of all links when a job is added to `rest` at any rotation."""
    laid.spent[0] += 40 + laid.rest.size // 8
    total = 0
    for link in range(laid.rest.shape[0]):
        over = 0
        left = 0
        peak = laid.amount[link, job, laid.levels[job] - 1] if laid.flows[link, job] > 0 else 0
        for angle in range(laid.rest.shape[1]):
            rest = laid.rest[link, angle]
            over += max(rest, 0)
            left += min(max(-rest, 0), peak)
        total += over
        if laid.flows[link, job] > 0:
            total += max(laid.whole[link, job] - left, 0)
    return total


@kernel
def lay_costs(laid, job):
    """Modify `cost`: the excess of a job's links at each of its rotations; `rest` is without the job.

    It takes differences of running sums: two look-ups a run and rotation. The sums go around twice, so that no run is
    broken at angle 0.
    """
    turns = laid.turns[job]
    angles = laid.rest.shape[1]
    for step in range(turns):
        laid.cost[step] = 0
    before = 0
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] > 0:
            before += excess_on(laid, link)
            for level in range(laid.levels[job]):
                _lay_sums(laid, link, laid.folds[job], laid.amount[link, job, level])
                runs = laid.first[job, level + 1] - laid.first[job, level]
                laid.spent[0] += 200 + angles // 5 + angles // (2 * laid.folds[job]) + turns * runs
                for run in range(laid.first[job, level], laid.first[job, level + 1]):
                    start = laid.start[job, run]
                    end = laid.end[job, run]
                    for step in range(turns):
                        shift = laid.shift[job, step]
                        laid.cost[step] += laid.sums[end + shift] - laid.sums[start + shift]
    for step in range(turns):
        laid.cost[step] += before


@kernel
def _lay_sums(laid, link, folds, more):
    around = laid.rest.shape[1] // folds
    for angle in range(around):
        laid.sums[angle] = 0
    for fold in range(folds):
        for angle in range(around):
            rest = laid.rest[link, fold * around + angle]
            laid.sums[angle] += max(rest + more, 0) - max(rest, 0)
    total = 0
    for angle in range(around):
        here = laid.sums[angle]
        laid.sums[angle] = total
        total += here
    for angle in range(around):
        laid.sums[around + angle] = laid.sums[angle] + total
    laid.sums[2 * around] = 2 * total


@kernel
def best_step(laid, job):
    """The rotation of the least cost, the smallest on a tie."""
    best = 0
    for step in range(1, laid.turns[job]):
        if laid.cost[step] < laid.cost[best]:
            best = step
    return best


@kernel
def settled(laid, job):
    """The excess of the links that a job does not use."""
    total = 0
    for link in range(laid.rest.shape[0]):
        if laid.flows[link, job] == 0:
            total += excess_on(laid, link)
    return total
