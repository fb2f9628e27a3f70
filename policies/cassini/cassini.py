"""CASSINI: it picks among the placements of a scheduler, and shifts jobs that share links: paper cassini, Sec. 4.2.

At every instant: the scheduler's candidates, up to 10; the best by Algorithm 2 (`best_candidate`); the decisions that
lead there; then a time-shift for every job that shares a link, in whole 72nds of its period (`compatibility.bucket_s`).
Hyper-parameters and the number of workers stay the scheduler's. Shifts are computed at every instant, and decided where
they or the period have changed.

A candidate whose affinity graph has a loop is discarded. If all have one, none is, and the shifts of a component with a
loop are searched together, which the paper leaves open. Periods are rounded per component, not per link, as Theorem 1
needs.

Jobs that keep a shift wait out the padding of their period, and "respecting the time-shift is only required for
compatible jobs" (Sec. 5.7). So a component's jobs are shifted if

    sum over jobs of the excess saved on the link that gains most  >=  sum over jobs of period / iteration - 1

Excess is a fraction of the link's capacity, as in Eq. 2, so of time too. Without shifts it is the expectation over
independent, equally likely offsets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ...simulator.base.decisions import Decision, Shift
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import TOLERANCE, Grid, unify
from ...simulator.engine.plans import Plan, plan_now
from ...simulator.engine.protocols import CandidateSource
from ...simulator.engine.view import ClusterView
from ...simulator.numerics.float_sums import sum_in_order
from ...simulator.profiles.phases import Phases
from ...simulator.rules.rule import Rule
from ..gang_links import alone, network_of
from ..planning import PlacementPolicy
from ..reasons.mid_instant import MidInstant
from .compatibility import (
    EXACT_JOBS,
    Job,
    SharedLink,
    affinity_graph,
    bucket_s,
    has_loop,
    nearest_bucket,
    solution,
    time_shifts,
)

if TYPE_CHECKING:
    import networkx

ROUNDING = 1e-9  # of equal sums


@functools.lru_cache(maxsize=4096)
def free_score(phases: tuple[Phases, ...], flows: tuple[float, ...], capacity: float) -> float:
    """Expected score of a link, bytes per second, of jobs with `flows` across it at uniform, independent offsets."""
    chance = {0.0: 1.0}
    for one, count in zip(phases, flows, strict=True):
        idle = max(0.0, 1.0 - one.up_s / one.iteration_s)
        parts = [(0.0, idle)]
        parts += [
            (count * rate, seconds / one.iteration_s) for rate, seconds in zip(one.rate, one.duration_s, strict=True)
        ]
        after: dict[float, float] = {}
        for total, before in chance.items():
            for more, part in parts:
                after[total + more] = after.get(total + more, 0.0) + before * part
        chance = after
    return 1.0 - sum_in_order(part * max(0.0, total - capacity) for total, part in chance.items()) / capacity


def is_worth(
    jobs_on: Sequence[Sequence[Hashable]],
    free: Sequence[float],
    shifted: Sequence[float],
    iteration_s: Mapping[Hashable, float],
    period_s: Mapping[Hashable, float],
) -> bool:
    """Whether a component's jobs gain by shifts: jobs and scores (free, shifted) of its links, seconds of its jobs."""
    saved = dict.fromkeys(iteration_s, 0.0)
    for jobs, without, score in zip(jobs_on, free, shifted, strict=True):
        for job in jobs:
            saved[job] = max(saved[job], score - without)
    cost = sum_in_order(period_s[job] / seconds - 1.0 for job, seconds in iteration_s.items())
    return sum_in_order(saved.values()) >= cost - ROUNDING


def mean_score(found: Interleaving) -> float:
    """The mean score of shared links, 1 without any; one bad link hardly counts. Paper: cassini, Algorithm 2."""
    return sum_in_order(found.scores.values()) / len(found.scores) if found.scores else 1.0


def worst_links(found: Interleaving) -> float:
    """Minus the sum over jobs of 1 - score on the worst of their links, at most 0."""
    worst: dict[Hashable, float] = {}
    for link, jobs in found.jobs_on.items():
        for job in jobs:
            worst[job] = max(worst.get(job, 0.0), 1.0 - found.scores[link])
    return -sum_in_order(worst.values())


RANKINGS: dict[str, Callable[[Interleaving], float]] = {"mean": mean_score, "worst": worst_links}


@dataclass(frozen=True)
class Candidate:
    """A placement of all jobs: links of each, and phases alone there; both in the same order."""

    uses: Mapping[Job, LinkUse]
    phases: Mapping[Job, Phases]


@dataclass(frozen=True)
class Interleaving:
    """The shifts and scores of a candidate."""

    shifts_s: Mapping[Job, float]  # delay of the next iteration of shifted jobs, in [0, its period)
    periods_s: Mapping[Job, float]  # of shifted jobs, padding included
    scores: Mapping[int, float]  # of every shared link, at these shifts; links of one vertex have its score
    jobs_on: Mapping[int, tuple[Job, ...]]  # of every shared link
    loop: bool  # whether the affinity graph has one


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
        candidate: the placement.
        capacity: bytes per second of every link, (L,).
        grid: the angles; None: 5 degrees of each job's own circle.
        exact_jobs: up to so many jobs on a link every rotation is tried.
        tolerance: excess of a job's period over its iteration before a larger circle is taken.
        if_worth: leave out shifts that cost more than they save (`is_worth`).

    Paper: cassini, Sec. 4.2.
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
    """Shifts, periods and link scores of one connected component."""
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
    flows = tuple(graph.edges[("job", job), vertex]["flows"] for job in jobs)
    return free_score(tuple(candidate.phases[job] for job in jobs), flows, graph.nodes[vertex]["capacity"])


def _shared(graph: networkx.Graph, vertex: tuple[str, int], jobs: Sequence[Job]) -> SharedLink:
    here = [position for position, job in enumerate(jobs) if ("job", job) in graph[vertex]]
    flows = tuple(graph.edges[("job", jobs[position]), vertex]["flows"] for position in here)
    return SharedLink(tuple(here), flows, graph.nodes[vertex]["capacity"])


@dataclass(frozen=True)
class Choice:
    """The best candidate: its index, its interleaving, the value of every candidate (None: discarded)."""

    index: int
    interleaving: Interleaving
    values: tuple[float | None, ...]


def best_candidate(
    candidates: Sequence[Candidate], capacity: np.ndarray, ranking: str = "mean", **options: Any
) -> Choice:
    """The candidate of the highest value, the first on a tie. Raises InputError without candidates or such a ranking.

    `ranking` is a key of `RANKINGS`, `options` are those of `interleave`. Paper: cassini, Algorithm 2.
    """
    if not candidates:
        raise InputError("candidates: none given, expected at least one")
    value: Callable[[Interleaving], float] = RANKINGS[choose(ranking, RANKINGS, "ranking")]
    made = [interleave(candidate, capacity, **options) for candidate in candidates]
    keep_loops = all(one.loop for one in made)
    values = tuple(value(one) if keep_loops or not one.loop else None for one in made)
    index = max((i for i, worth in enumerate(values) if worth is not None), key=lambda i: values[i] or 0.0)
    return Choice(index, made[index], values)


Shifts = Literal["worth", "always"]
CANDIDATES = 10  # Sec. 5.1: "up to 10 placement candidates"
DEGREES = 5.0  # Sec. 5.1


class Cassini(PlacementPolicy):
    """A scheduler augmented by CASSINI. Raises InputError for a parameter out of range. Paper: cassini, Sec. 4.2.

    Args:
        name: in tables and logs.
        source: gives the candidates.
        clock: the rule of the source: its preemption cost, rounds and leases hold.
        candidates: how many are compared, >= 1.
        ranking: the value of a candidate: mean (the paper's) or worst; see `RANKINGS`.
        degrees: steps of the rotations that are tried, a divisor of 360.
        shifts: `worth`: where they save more than the padding of periods costs; `always`: for all jobs on shared links.
    """

    def __init__(
        self,
        name: str,
        source: CandidateSource,
        clock: Rule,
        candidates: int = CANDIDATES,
        ranking: str = "mean",
        degrees: float = DEGREES,
        shifts: Shifts = "worth",
    ) -> None:
        super().__init__(name, clock)
        if candidates < 1:
            raise InputError(f"policy {name}: candidates = {candidates}: expected a whole number of at least 1")
        self.source = source
        self.knows_run_times = getattr(source, "knows_run_times", False)
        self.tunes_workers = getattr(source, "tunes_workers", False)
        self.most = int(candidates)
        self.ranking = choose(ranking, RANKINGS, f"ranking of policy {name}")
        self.grid = Grid(degrees)
        self.if_worth = choose(shifts, get_args(Shifts), f"shifts of policy {name}") == "worth"
        self._chosen: Choice | None = None
        self._found: Interleaving | None = None

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """The candidates of the scheduler."""
        return self.source.candidates(view, n)

    def choose(self, view: ClusterView) -> Plan:
        """The best of the scheduler's candidates."""
        plans = self.candidates(view, self.most)
        self._chosen = None
        if len(plans) == 1:
            return plans[0]
        placements = [_candidate(alone(view, plan)) for plan in plans]
        self._chosen = best = self.best_of(placements, view.link_capacity, network_of(view).padding)
        return plans[best.index]

    def best_of(self, candidates: Sequence[Candidate], capacity: np.ndarray, padding: float) -> Choice:
        """The best placement; `padding` of periods is the network's."""
        options = {"grid": self.grid, "tolerance": padding, "if_worth": self.if_worth}
        return best_candidate(candidates, capacity, self.ranking, **options)

    def interleaved(self, candidate: Candidate, capacity: np.ndarray, padding: float) -> Interleaving:
        """The shifts and scores of a placement."""
        return interleave(candidate, capacity, self.grid, tolerance=padding, if_worth=self.if_worth)

    def finish(self, view: ClusterView) -> list[Decision]:
        """Changed shifts of the jobs at their present places, jobs ascending."""
        own = alone(view, plan_now(view))
        self._found = found = self.interleaved(_candidate(own), view.link_capacity, network_of(view).padding)
        meeting = {job for jobs in found.jobs_on.values() for job in jobs}
        decisions: list[Decision] = []
        for job in [job for job, (_, use) in own.items() if len(use.links)]:
            period_s, present_s, paced_s = view.period_s(job), view.shift_s(job), view.shift_period_s(job)
            if job in found.shifts_s and period_s is not None:
                seconds = bucket_s(nearest_bucket(found.shifts_s[job], period_s), period_s)
                if (seconds, period_s) != (present_s, paced_s):
                    decisions.append(Shift(job, seconds))
            elif present_s is not None and (job in meeting or paced_s != period_s):
                decisions.append(Shift(job, None))
        return decisions

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The scheduler's reason, and the candidate; of a shift the jobs that share links."""
        if isinstance(decision, Shift):
            return self._why_shift(view, decision)
        reasons = [self.source.why(view, decision)] if hasattr(self.source, "why") else []
        if self._chosen is not None:
            value, all_values = self._chosen.values[self._chosen.index], self._chosen.values
            kept = sum(one is not None for one in all_values)
            worth = "" if value is None else f", worth {value:.3g}, the most of {kept}"
            reasons.append(f"candidate {self._chosen.index + 1} of {len(all_values)}{worth}")
        return "; ".join(text for text in reasons if text)

    def _why_shift(self, view: ClusterView, shift: Shift) -> str:
        assert self._found is not None, "shifts follow from what was found"
        links = [link for link, jobs in self._found.jobs_on.items() if shift.job in jobs]
        there = {job for link in links for job in self._found.jobs_on[link] if isinstance(job, int)}
        mates = sorted(there - {shift.job})
        if not mates:
            return "meets no job on its links any more"
        where = f"shares {'a link' if len(links) == 1 else f'{len(links)} links'} with {MidInstant(view).names(mates)}"
        if shift.seconds is None:
            return f"{where}: a shift costs more than it saves"
        return f"{where}: compatibility {min(self._found.scores[link] for link in links):.3g} with the shifts"


def _candidate(own: Mapping[int, tuple[Phases, LinkUse]]) -> Candidate:
    return Candidate({job: use for job, (_, use) in own.items()}, {job: phases for job, (phases, _) in own.items()})
