"""Best rotations: CASSINI with the simulator in place of the score; shifts are tried by playing them.

Of the scheduler's placements, and of the rotations of a component's jobs, it takes those with the least slowdown (sum
of iteration / iteration alone) when their phases are played: a bound nearer than `ideal`. Up to three jobs: all
rotations by 15 degrees, then those 5 and 10 degrees beside the best. More jobs: one after the other, until nothing
helps, from the rotations of the best score. Jobs run free where that is less, over evenly spread offsets.

It is optimal up to the grid for up to three permanent jobs a link; it is no bound where jobs come and go. It assumes
pacing and no jitter.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import Circle, Grid, unify
from ...simulator.contention.phase_run import Contender, steady_state
from ...simulator.profiles.phases import Phases
from ..joined_parameters import takes
from ..themis import Auction, Themis
from .cassini import CANDIDATES, Candidate, Cassini, Choice, Interleaving
from .compatibility import BUCKETS, Job, Overlay, SharedLink, Solution, components, link_scores, meetings, solution

EXHAUSTIVE_JOBS = 3
COARSE = 3  # buckets of 5 degrees
WARM_UP, PLAYED = 3, 6  # iterations of the slowest job; paced jobs then repeat
FREE_PLAYED = 40  # iterations of jobs that run free
OFFSETS = (0.0, 0.618, 0.236, 0.854)  # multiples of the golden ratio, modulo 1
ROUNDING = 1e-9
REMEMBERED = 16_384


@dataclass(frozen=True)
class Best:
    """The best for jobs that are joined by links."""

    slowdown: float  # their sum of iteration / iteration alone
    found: Solution | None  # their rotations; None: they run free


@functools.lru_cache(maxsize=REMEMBERED)
def best_rotations(phases: tuple[Phases, ...], circle: Circle, links: tuple[SharedLink, ...]) -> Best:
    """The best of all rotations, cached; `SharedLink.jobs` are positions in `phases`."""
    overlay = Overlay.of(phases, circle, links, Grid())
    contenders = _Contenders(phases, circle, links)
    scored = solution(phases, circle, links, Grid()).rotation
    coarse = range(0, BUCKETS, COARSE)
    best = (contenders.shifted(overlay, scored), tuple(scored))
    if len(phases) <= EXHAUSTIVE_JOBS:
        tried = ((0, *turned) for turned in itertools.product(coarse, repeat=len(phases) - 1))
        best = min(best, *((contenders.shifted(overlay, one), one) for one in tried))
    else:
        best = _descent(contenders, overlay, best, coarse)
    best = _descent(contenders, overlay, best, (-2, -1, 1, 2), beside=True)
    free = contenders.free()
    if free < best[0] - ROUNDING:
        return Best(free, None)
    return Best(best[0], Solution.of(overlay, best[1]))


Turned = tuple[float, tuple[int, ...]]  # slowdown, rotations


def _descent(
    contenders: _Contenders, overlay: Overlay, best: Turned, steps: Sequence[int], beside: bool = False
) -> Turned:
    """Turn one job after the other, to `steps` or (`beside`) by them, until nothing helps."""
    before = None
    while before != best[0]:
        before = best[0]
        for job in range(1, len(best[1])):
            for step in steps:
                turned = list(best[1])
                turned[job] = (turned[job] + step) % BUCKETS if beside else step
                worth = contenders.shifted(overlay, tuple(turned))
                if worth < best[0] - ROUNDING:
                    best = worth, tuple(turned)
    return best


class _Contenders:
    """Jobs that are played with rotations."""

    def __init__(self, phases: tuple[Phases, ...], circle: Circle, links: tuple[SharedLink, ...]) -> None:
        self.phases, self.circle = phases, circle
        self.capacity = [link.capacity for link in links]
        self.alone_s = np.array([one.iteration_s for one in phases])
        crossed: list[list[tuple[int, float]]] = [[] for _ in phases]
        for number, link in enumerate(links):
            for job, flows in zip(link.jobs, link.flows, strict=True):
                crossed[job].append((number, flows))
        columns = [np.array(one, np.float64).T for one in crossed]
        self.uses = [LinkUse(number.astype(np.int64), flows) for number, flows in columns]

    def shifted(self, overlay: Overlay, rotation: Sequence[int]) -> float:
        """The sum of slowdowns with these rotations."""
        rows = zip(self.phases, self.uses, overlay.shifts_s(rotation), self.circle.periods_s, strict=True)
        return self._slowdown([Contender(*row) for row in rows], PLAYED)

    def free(self) -> float:
        """The sum of slowdowns without shifts, the mean over offsets."""
        found = []
        for offset in OFFSETS:
            begins = [(offset * job) % 1.0 * one.iteration_s for job, one in enumerate(self.phases)]
            rows = zip(self.phases, self.uses, begins, strict=True)
            found.append(self._slowdown([Contender(one, use, begin_s=at) for one, use, at in rows], FREE_PLAYED))
        return float(np.mean(found))

    def _slowdown(self, contenders: list[Contender], iterations: int) -> float:
        played = steady_state(self.capacity, contenders, WARM_UP, iterations)
        return float((played.iteration_s / self.alone_s).sum())


class BestRotations(Cassini):
    """Themis' placements, `candidates` >= 1 of them, with the rotations that are best when they are played."""

    @takes(Auction)
    def __init__(self, candidates: int = CANDIDATES, **auction: Any) -> None:
        source = Themis(**auction)
        super().__init__("best-rotations", source, source.clock, candidates)

    def best_of(self, candidates: Sequence[Candidate], capacity: np.ndarray, padding: float) -> Choice:
        """The placement with the least sum of slowdowns, the first on a tie."""
        made = [_played(candidate, capacity, padding) for candidate in candidates]
        index = min(range(len(made)), key=lambda place: (round(made[place][1], 9), place))
        return Choice(index, made[index][0], tuple(-slowdown for _, slowdown in made))

    def interleaved(self, candidate: Candidate, capacity: np.ndarray, padding: float) -> Interleaving:
        """The best rotations of a placement."""
        return _played(candidate, capacity, padding)[0]


def _played(candidate: Candidate, capacity: np.ndarray, padding: float) -> tuple[Interleaving, float]:
    """The best of a placement, and its sum of slowdowns - 1."""
    shifts: dict[Job, float] = {}
    periods: dict[Job, float] = {}
    scores: dict[int, float] = {}
    jobs_on: dict[int, tuple[Job, ...]] = {}
    lost = 0.0
    met = meetings(candidate.uses, {job: one.peak for job, one in candidate.phases.items()}, capacity)
    for joined in components(met):
        jobs = [job for job in candidate.uses if any(job in one.flows for one in joined)]
        phases = tuple(candidate.phases[job] for job in jobs)
        circle = unify([one.iteration_s for one in phases], padding)
        links = tuple(_shared(jobs, one.flows, float(capacity[one.link])) for one in joined)
        best = best_rotations(phases, circle, links)
        lost += best.slowdown - len(jobs)
        rotation = (0,) * len(jobs) if best.found is None else best.found.rotation
        if best.found is not None:
            shifts |= dict(zip(jobs, best.found.shifts_s, strict=True))
            periods |= dict(zip(jobs, circle.periods_s, strict=True))
        found = link_scores(Overlay.of(phases, circle, links, Grid()), rotation)
        for one, score in zip(joined, found.tolist(), strict=True):
            for member in one.members:
                scores[member], jobs_on[member] = score, tuple(one.flows)
    return Interleaving(shifts, periods, scores, jobs_on, False), lost


def _shared(jobs: Sequence[Job], flows: Mapping[Job, float], capacity: float) -> SharedLink:
    here = tuple(place for place, job in enumerate(jobs) if job in flows)
    return SharedLink(here, tuple(flows[jobs[place]] for place in here), capacity)
