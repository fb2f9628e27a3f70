"""Candidate placements: their shifts and scores, and which one is best (paper cassini, Algorithm 2).

A candidate whose affinity graph has a loop is discarded; if all have one, none is, and the shifts of a component with
a loop are looked for together (`joint`: descent over all its links at once), which the paper leaves open. Periods are
rounded per component, not per link, so that a job has one period on all its links, which Theorem 1 needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import TOLERANCE, Grid, unify
from ...simulator.profiles.phases import Phases
from .affinity import Job, affinity_graph, has_loop, time_shifts
from .compatibility_score import SharedLink
from .optimise import EXACT_JOBS, solution
from .rank import RANKINGS
from .worth import free_score, is_worth

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Candidate:
    """A placement of all jobs: the links of each, and its phases alone there. Jobs in the same order in both."""

    uses: Mapping[Job, LinkUse]
    phases: Mapping[Job, Phases]


@dataclass(frozen=True)
class Interleaving:
    """What CASSINI makes of a candidate.

    Attributes:
        shifts_s: by how much each job that shares a link delays its next iteration, in [0, its period); a job that is
            not there runs as it likes.
        periods_s: seconds from one iteration to the next of each of these jobs, padding included.
        scores: of every shared link, at these shifts; links of one vertex have its score.
        jobs_on: the jobs of every shared link.
        loop: whether the affinity graph has a loop.
    """

    shifts_s: Mapping[Job, float]
    periods_s: Mapping[Job, float]
    scores: Mapping[int, float]
    jobs_on: Mapping[int, tuple[Job, ...]]
    loop: bool


def interleave(
    candidate: Candidate,
    capacity: np.ndarray,
    grid: Grid | None = None,
    exact_jobs: int = EXACT_JOBS,
    tolerance: float = TOLERANCE,
    if_worth: bool = False,
) -> Interleaving:
    """The time-shifts of a candidate's jobs and the scores of its shared links.

    Args:
        capacity: bytes per second of every link, (L,).
        grid: the angles; None: 5 degrees of each job's own circle.
        exact_jobs: up to how many jobs on a link every rotation is tried.
        tolerance: how much longer than its iteration a job's period may be before a larger circle is looked for.
            Small ones keep every job fast and give 8 : 7 where 1 : 1 would interleave at the cost of one job's wait.
        if_worth: leave out shifts that cost more than they save (worth.py); links then have the score that is expected
            without.
    """
    import networkx

    angles = Grid() if grid is None else grid
    graph = affinity_graph(candidate.uses, candidate.phases, capacity)
    shifts: dict[Job, float] = {}
    periods: dict[Job, float] = {}
    scores: dict[int, float] = {}
    jobs_on: dict[int, tuple[Job, ...]] = {}
    for vertices in networkx.connected_components(graph):
        jobs = [job for job in candidate.uses if ("job", job) in vertices]
        links = [vertex for vertex in graph if vertex in vertices and vertex[0] == "link"]
        found_shifts, found_periods, found_scores = _component(
            candidate, graph, jobs, links, angles, exact_jobs, tolerance
        )
        here = [tuple(job for job in jobs if ("job", job) in graph[vertex]) for vertex in links]
        if if_worth:
            free = [_free(candidate, graph, vertex, on) for vertex, on in zip(links, here, strict=True)]
            alone_s = {job: candidate.phases[job].iteration_s for job in jobs}
            if not is_worth(here, free, found_scores, alone_s, found_periods):
                found_shifts, found_periods, found_scores = {}, {}, free
        shifts |= found_shifts
        periods |= found_periods
        for vertex, score, on in zip(links, found_scores, here, strict=True):
            for member in graph.nodes[vertex]["members"]:
                scores[member] = score
                jobs_on[member] = on
    return Interleaving(shifts, periods, scores, jobs_on, bool(graph) and has_loop(graph))


def _component(
    candidate: Candidate,
    graph: networkx.Graph,
    jobs: list[Job],
    links: list[tuple[str, int]],
    grid: Grid,
    exact_jobs: int,
    tolerance: float,
) -> tuple[dict[Job, float], dict[Job, float], list[float]]:
    """Shifts, periods and scores of the links of one connected component."""
    circle = unify([candidate.phases[job].iteration_s for job in jobs], tolerance)
    periods = dict(zip(jobs, circle.periods_s, strict=True))
    if has_loop(graph.subgraph([*links, *(("job", job) for job in jobs)])):
        shared = tuple(_shared(graph, vertex, jobs) for vertex in links)
        whole = solution(tuple(candidate.phases[job] for job in jobs), circle, shared, grid, exact_jobs)
        return dict(zip(jobs, whole.shifts_s, strict=True)), periods, list(whole.scores)
    scores = []
    for vertex in links:
        here = [job for job in jobs if ("job", job) in graph[vertex]]
        own = circle.of([jobs.index(job) for job in here])
        phases = tuple(candidate.phases[job] for job in here)
        found = solution(phases, own, (_shared(graph, vertex, here),), grid, exact_jobs)
        scores.append(found.scores[0])
        for job, shift in zip(here, found.shifts_s, strict=True):
            graph.edges[("job", job), vertex]["shift_s"] = shift
    return time_shifts(graph, periods), periods, scores


def _free(candidate: Candidate, graph: networkx.Graph, vertex: tuple[str, int], jobs: Sequence[Job]) -> float:
    """The score of a link that is expected without shifts."""
    flows = tuple(graph.edges[("job", job), vertex]["flows"] for job in jobs)
    return free_score(tuple(candidate.phases[job] for job in jobs), flows, graph.nodes[vertex]["capacity"])


def _shared(graph: networkx.Graph, vertex: tuple[str, int], jobs: Sequence[Job]) -> SharedLink:
    here = [position for position, job in enumerate(jobs) if ("job", job) in graph[vertex]]
    flows = tuple(graph.edges[("job", jobs[position]), vertex]["flows"] for position in here)
    return SharedLink(tuple(here), flows, graph.nodes[vertex]["capacity"])


@dataclass(frozen=True)
class Choice:
    """The best candidate: its position, what it gives, and the value of every candidate (None: discarded)."""

    index: int
    interleaving: Interleaving
    values: tuple[float | None, ...]


def best_candidate(
    candidates: Sequence[Candidate],
    capacity: np.ndarray,
    ranking: str = "mean",
    grid: Grid | None = None,
    exact_jobs: int = EXACT_JOBS,
    tolerance: float = TOLERANCE,
    if_worth: bool = False,
) -> Choice:
    """Algorithm 2: the candidate of the highest value, the first of them on a tie.

    Args:
        ranking: what a candidate is worth: mean (the paper's) or worst; see rank.py. The rest as in `interleave`.

    Raises:
        InputError: no candidates, or no such ranking.
    """
    if not candidates:
        raise InputError("candidates: none given, expected at least one")
    value: Callable[[Interleaving], float] = RANKINGS[choose(ranking, RANKINGS, "ranking")]
    made = [interleave(candidate, capacity, grid, exact_jobs, tolerance, if_worth) for candidate in candidates]
    keep_loops = all(one.loop for one in made)
    values = tuple(value(one) if keep_loops or not one.loop else None for one in made)
    index = max(
        (index for index, worth in enumerate(values) if worth is not None),
        key=lambda index: values[index] or 0.0,
    )
    return Choice(index, made[index], values)
