"""The rotations with the best compatibility score: exact for a few jobs, coordinate descent with restarts beyond.

Both look for the rotations with the least total excess over the overlay's links; with one link that is Eq. 2 of paper
cassini. Only relative rotations matter (turning all circles together changes nothing), so the first job stays at 0.
Ties go to the smallest rotations, first job first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.compatibility.score import Overlay, SharedLink, excess, link_scores

EXACT_JOBS = 3
RESTARTS = 16
PAIRED = 3  # ends of the descent that are looked at pair by pair
MOST_SWEEPS = 50
ROWS = 128  # rotations of the other jobs that are looked at together: bounds the memory
DIGITS = 11  # excess as a fraction of the capacity; what differs less is a tie, whatever the order of the sums
TIE = 1e-10  # and nothing moves for less: rounding alone would let two jobs swap for ever


@dataclass(frozen=True)
class Solution:
    """Rotations of an overlay.

    Attributes:
        rotation: steps of each job, of its own grid.
        shifts_s: seconds by which that delays each job, in [0, its period).
        scores: of each link, at most 1.
    """

    rotation: tuple[int, ...]
    shifts_s: tuple[float, ...]
    scores: tuple[float, ...]

    @classmethod
    def of(cls, overlay: Overlay, rotation: Sequence[int]) -> Solution:
        """The solution that these rotations are."""
        steps = tuple(int(step) for step in rotation)
        return cls(steps, overlay.shifts_s(steps), tuple(link_scores(overlay, steps).tolist()))


def solve(overlay: Overlay, exact_jobs: int = EXACT_JOBS, restarts: int = RESTARTS, seed: int = 0) -> Solution:
    """The best rotations: all of them tried for at most `exact_jobs` jobs, descent otherwise."""
    if overlay.num_jobs <= exact_jobs:
        return exact(overlay)
    return descent(overlay, restarts, seed)


def exact(overlay: Overlay) -> Solution:
    """The best rotations. All of the last job's at once for each choice of the others: steps^(n - 1) in all."""
    last = overlay.num_jobs - 1
    if last < 1:
        return Solution.of(overlay, [0] * overlay.num_jobs)
    turns = _Turns.of(overlay, last)
    best, chosen = np.inf, [0] * overlay.num_jobs
    for rows in _chunks(itertools.product(*(range(len(shifts)) for shifts in overlay.shifts[1:last]))):
        rotation = np.zeros((len(rows), overlay.num_jobs), np.int64)
        rotation[:, 1:last] = np.array(rows, np.int64).reshape(len(rows), last - 1)
        others = _totals(overlay, rotation, without=last)
        cost = turns.costs(others) + _settled(overlay, others, last)[:, None]
        rounded = np.round(cost, DIGITS)
        place = int(np.argmin(rounded))
        if rounded.flat[place] < best:
            row, step = divmod(place, rounded.shape[1])
            best, chosen = float(rounded.flat[place]), [*rotation[row, :last].tolist(), step]
    return Solution.of(overlay, chosen)


def descent(overlay: Overlay, restarts: int = RESTARTS, seed: int = 0) -> Solution:
    """Turn one job after the other to its best rotation until nothing helps, from several beginnings.

    The first beginning is no rotation at all, so the result is never worse than that; the others are random (`seed`).
    The best few ends then turn two jobs at once, until no pair helps either. With equal periods that is nearly always
    the optimum; with unequal ones the scores of many rotations differ by less than 0.001, and so far it may miss.
    """
    random = np.random.default_rng(seed)
    rotation = np.stack([random.integers(0, len(shifts), restarts + 1) for shifts in overlay.shifts], axis=1)
    rotation[0] = 0
    rotation[:, 0] = 0
    turns = [_Turns.of(overlay, job) for job in range(overlay.num_jobs)]
    _turn_each(overlay, turns, rotation)
    ends = _ranked(overlay, np.unique(rotation, axis=0))[:PAIRED]
    for end in ends:
        for _ in range(MOST_SWEEPS):
            if not _turn_pairs(overlay, turns, end):
                break
    return Solution.of(overlay, _ranked(overlay, ends)[0].tolist())


def _ranked(overlay: Overlay, rotation: np.ndarray) -> np.ndarray:
    """The rows, the one with the least excess first; the smaller rotations first on a tie."""
    totals = _totals(overlay, rotation)
    cost = sum(excess(rows, link.capacity) for rows, link in zip(totals, overlay.links, strict=True))
    return rotation[np.lexsort([*rotation.T[::-1], np.round(cost, DIGITS)])]


def _turn_each(overlay: Overlay, turns: Sequence[_Turns], rotation: np.ndarray) -> None:
    """Sweep over the jobs, each to its best rotation, in all rows at once and in place, until no row gets better."""
    totals = _totals(overlay, rotation)
    rows = np.arange(len(rotation))
    for _ in range(MOST_SWEEPS):
        moved = False
        for job in range(1, overlay.num_jobs):
            turns[job].add(totals, rotation[:, job], -1.0)
            cost = np.round(turns[job].costs(totals), DIGITS)
            better = cost.min(axis=1) < cost[rows, rotation[:, job]] - TIE
            rotation[:, job] = np.where(better, cost.argmin(axis=1), rotation[:, job])
            turns[job].add(totals, rotation[:, job], 1.0)
            moved |= bool(better.any())
        if not moved:
            return


def _turn_pairs(overlay: Overlay, turns: Sequence[_Turns], rotation: np.ndarray) -> bool:
    """Turn each pair of jobs to their best two rotations, in place; whether that helped."""
    helped = False
    for first, second in itertools.combinations(range(1, overlay.num_jobs), 2):
        rows = np.repeat(rotation[None, :], len(overlay.shifts[first]), axis=0)
        rows[:, first] = np.arange(len(rows))
        others = _totals(overlay, rows, without=second)
        cost = np.round(turns[second].costs(others) + _settled(overlay, others, second)[:, None], DIGITS)
        if cost.min() < cost[rotation[first], rotation[second]] - TIE:
            rotation[first], rotation[second] = divmod(int(cost.argmin()), cost.shape[1])
            helped = True
    return helped


@dataclass(frozen=True)
class _Level:
    """Where a job has one of its rates: runs of angles from `start` to before `end`, at each of its rotations.

    Attributes:
        rate: bytes per second, > 0.
        start, end: int64 (rotations, runs), modulo |A|.
        wraps: float64 (rotations,), how many of the runs go through angle 0.
    """

    rate: float
    start: np.ndarray
    end: np.ndarray
    wraps: np.ndarray


@dataclass(frozen=True, eq=False)
class _Turns:
    """What a job costs at each of its rotations, all at once; `links` are (position in the overlay, flows)."""

    overlay: Overlay
    job: int
    links: tuple[tuple[int, int], ...]
    levels: tuple[_Level, ...]

    @classmethod
    def of(cls, overlay: Overlay, job: int) -> _Turns:
        row, shifts = overlay.demand[job], overlay.shifts[job][:, None]
        angles = len(row)
        levels = []
        for rate in np.unique(row[row > 0]).tolist():
            edges = np.diff(np.concatenate([[0], (row == rate).astype(np.int8), [0]]))
            start, end = np.flatnonzero(edges == 1) + shifts, np.flatnonzero(edges == -1) + shifts
            wraps = (end // angles - start // angles).sum(axis=1).astype(np.float64)
            levels.append(_Level(rate, start % angles, end % angles, wraps))
        links = tuple(
            (position, link.flows[link.jobs.index(job)])
            for position, link in enumerate(overlay.links)
            if job in link.jobs
        )
        return cls(overlay, job, links, tuple(levels))

    def costs(self, others: Sequence[np.ndarray]) -> np.ndarray:
        """Excess on the job's links as fractions, summed: (rows, rotations), from (rows, |A|) of the others per link.

        What a rate adds to the excess at every angle, summed over the runs of angles that have it: differences of
        running sums, so a rotation costs two look-ups per run.
        """
        cost = np.zeros((len(others[0]), len(self.overlay.shifts[self.job])))
        for position, flows in self.links:
            link, rest = self.overlay.links[position], others[position] - self.overlay.links[position].capacity
            scale = 1.0 / (rest.shape[1] * link.capacity)
            before = np.maximum(rest, 0.0)
            cost += before.sum(axis=1, keepdims=True) * scale
            for level in self.levels:
                more = np.maximum(rest + flows * level.rate, 0.0) - before
                sums = np.cumsum(more, axis=1)
                whole = sums[:, -1:].copy()
                sums -= more  # up to before each angle
                within = sums[:, level.end].sum(axis=2) - sums[:, level.start].sum(axis=2)
                cost += (within + whole * level.wraps) * scale
        return cost

    def add(self, totals: Sequence[np.ndarray], rotation: np.ndarray, sign: float) -> None:
        """Add (or take away) the job at `rotation`, (rows,), to the totals of its links, in place."""
        for position, flows in self.links:
            totals[position][:] += sign * flows * self.overlay.turned[self.job][rotation]


def _totals(overlay: Overlay, rotation: np.ndarray, without: int = -1) -> list[np.ndarray]:
    """Demand on each link at each row of rotations, (rows, |A|) per link; one job may be left out."""

    def total(link: SharedLink) -> np.ndarray:
        rows = np.zeros((len(rotation), overlay.demand.shape[1]))
        for job, flows in zip(link.jobs, link.flows, strict=True):
            if job != without:
                rows += flows * overlay.turned[job][rotation[:, job]]
        return rows

    return [total(link) for link in overlay.links]


def _settled(overlay: Overlay, totals: Sequence[np.ndarray], job: int) -> np.ndarray:
    """Excess on the links that `job` does not use, (rows,)."""
    cost = np.zeros(len(totals[0]))
    for rows, link in zip(totals, overlay.links, strict=True):
        if job not in link.jobs:
            cost += excess(rows, link.capacity)
    return cost


def _chunks(rows: Iterator[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    while chunk := list(itertools.islice(rows, ROWS)):
        yield chunk
