"""The rotations with the best compatibility score: exact for a few jobs, coordinate descent with restarts beyond.

Both look for the rotations with the least total excess over the overlay's links; with one link that is Eq. 2 of paper
cassini. Only relative rotations matter (turning all circles together changes nothing), so the first job stays at 0.
Ties go to the smallest rotations, first job first. The searches are compiled: policies/cassini/rotation_search.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.contention.circle import Circle, Grid
from ...simulator.profiles.phases import Phases
from .compatibility_score import Overlay, SharedLink, link_scores
from .overlay_arrays import lay, lay_lines
from .rotation_search import search_all, search_by_descent

EXACT_JOBS = 3
RESTARTS = 1000
WORK = 1_100_000  # of one descent: about nanoseconds, whatever the periods
ENDS = 32  # of the descents that are kept: of those whose rounded costs are as good the best is taken
REMEMBERED = 65_536


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


@functools.lru_cache(maxsize=REMEMBERED)
def solution(
    phases: tuple[Phases, ...], circle: Circle, links: tuple[SharedLink, ...], grid: Grid, exact_jobs: int = EXACT_JOBS
) -> Solution:
    """The best rotations of jobs with these phases, remembered: who the jobs are does not matter.

    Args:
        phases: of each job. circle: of all of them.
        links: where they meet; `SharedLink.jobs` are positions in `phases`.
    """
    return solve(Overlay.of(phases, circle, links, grid), exact_jobs)


def solve(overlay: Overlay, exact_jobs: int = EXACT_JOBS, restarts: int = RESTARTS, seed: int = 0) -> Solution:
    """The best rotations: all of them tried for at most `exact_jobs` jobs, descent otherwise."""
    if overlay.num_jobs <= exact_jobs:
        return exact(overlay)
    return descent(overlay, restarts, seed)


def exact(overlay: Overlay) -> Solution:
    """The best of all rotations: steps^(n - 1) in all."""
    best = np.zeros(overlay.num_jobs, np.int64)
    search_all(lay(overlay), np.zeros_like(best), best)
    return Solution.of(overlay, best.tolist())


def descent(overlay: Overlay, restarts: int = RESTARTS, seed: int = 0, work: int = WORK) -> Solution:
    """Turn one job after the other to its best rotation until nothing helps, from several beginnings.

    The first beginning is no rotation at all, so the result is never worse than that; the others are random (`seed`).
    Where turning all jobs but the first by an iteration of that one changes little, from a good end, descents begin
    there, too: on an endless grid it would change nothing. With five jobs and free periods that
    is the optimum in 94 of 100 cases, with equal or harmonic ones in nearly all.

    Args:
        restarts: random beginnings at most, >= 0.
        work: what may be spent, about nanoseconds; the descent that has begun is finished.
    """
    ends = np.zeros((ENDS, overlay.num_jobs), np.int64)
    scratch = np.zeros((2, overlay.num_jobs), np.int64)
    laid = lay(overlay)
    search_by_descent(laid, lay_lines(overlay, laid), restarts, seed, work, ends, np.zeros(ENDS, np.int64), scratch)
    return Solution.of(overlay, ends[0].tolist())
