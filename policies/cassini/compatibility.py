"""Shared links of jobs, and the compatibility of the jobs on them: paper cassini, Sec. 3 and 4.1.

The affinity graph (Sec. 4.1) gives one time-shift for each job. Vertices are ("job", j) and ("link", l); edges have
`flows` and, once rotations are found, `shift_s` (t_j^l, Eq. 5). Links that carry the same jobs are one vertex, the one
with the largest sum of peak demands over capacity, lowest number on a tie: else a ring over two racks is a loop.

The compatibility score (Table 1, Eq. 1 to 3) is of an `Overlay`: the unified circles of jobs on their shared links; one
link in the paper's formulation, several for a whole component. Rotations with the least total excess are found exactly
for a few jobs, else by coordinate descent with restarts (rotation_search.py). The first job stays at 0; ties go to the
smallest rotations, first job first.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import MOST_ITERATIONS, Circle, Grid, demand
from ...simulator.numerics.float_sums import sum_in_order
from ...simulator.profiles.phases import Phases
from .overlap import OverlayArrays, write_levels
from .rotation_search import ABREAST, PADDED, SEEN, Lines, search_all, search_by_descent, write_amounts, write_runs

if TYPE_CHECKING:
    import networkx

Job = Hashable


@dataclass(frozen=True)
class SharedLinkGroup:
    """Links that the same jobs share, as one."""

    link: int  # the most loaded one
    members: tuple[int, ...]  # all of them, ascending
    flows: Mapping[Job, float]  # of each job across `link`, jobs in the given order


def meetings(uses: Mapping[Job, LinkUse], peak: Mapping[Job, float], capacity: np.ndarray) -> list[SharedLinkGroup]:
    """Shared links, those with the same jobs as one, in the order of their lowest link. Paper: cassini, Sec. 4.1.

    `peak`: the most bytes per second that a flow of a job sends; `capacity`: bytes per second of every link, (L,).
    """
    flows_on: dict[int, dict[Job, float]] = {}
    for job, use in uses.items():
        for link, flows in zip(use.links.tolist(), use.flows.tolist(), strict=True):
            flows_on.setdefault(link, {})[job] = flows
    alike: dict[frozenset[Job], list[int]] = {}
    for link in sorted(flows_on):
        if len(flows_on[link]) > 1:
            alike.setdefault(frozenset(flows_on[link]), []).append(link)

    def load(link: int) -> float:
        return sum_in_order(flows * peak[job] for job, flows in flows_on[link].items()) / float(capacity[link])

    chosen = ((max(members, key=load), members) for members in alike.values())  # the first of the most loaded
    return [SharedLinkGroup(link, tuple(members), flows_on[link]) for link, members in chosen]


def components(met: Sequence[SharedLinkGroup]) -> list[list[SharedLinkGroup]]:
    """Groups of shared links that jobs join, in the order of the first of each."""
    found: list[list[SharedLinkGroup]] = []
    left = list(met)
    while left:
        joined, jobs = [left[0]], set(left.pop(0).flows)
        while more := [one for one in left if not jobs.isdisjoint(one.flows)]:
            joined += more
            jobs.update(*(one.flows for one in more))
            left = [one for one in left if one not in more]
        found.append(sorted(joined, key=met.index))
    return found


def affinity_graph(uses: Mapping[Job, LinkUse], phases: Mapping[Job, Phases], capacity: np.ndarray) -> networkx.Graph:
    """The affinity graph of a placement: jobs that share a link, and these links.

    `capacity`: bytes per second of every link, (L,). Link vertices have `members`, ascending, and `capacity`.
    Paper: cassini, Sec. 4.1.
    """
    import networkx

    graph: networkx.Graph = networkx.Graph()
    for met in meetings(uses, {job: one.peak for job, one in phases.items()}, capacity):
        vertex = ("link", met.link)
        graph.add_node(vertex, members=met.members, capacity=float(capacity[met.link]))
        for job, flows in met.flows.items():
            graph.add_edge(("job", job), vertex, flows=flows)
    return graph


def has_loop(graph: networkx.Graph) -> bool:
    """Whether any component has a loop, which the theorem excludes. Paper: cassini, Theorem 1."""
    import networkx

    return graph.number_of_edges() > graph.number_of_nodes() - networkx.number_connected_components(graph)


def time_shifts(graph: networkx.Graph, period_s: Mapping[Job, float]) -> dict[Job, float]:
    """Algorithm 1: one time-shift for every job from its shifts on each link, seconds in [0, its period).

    In every component the first job of `period_s` has shift 0 (the paper takes a random one). Correct without loops
    (Theorem 1): on every link jobs keep their relative shifts, up to whole iterations, which change no overlap. Eq. 6
    holds to the letter before `% iter_time` in line 23. Paper: cassini, Algorithm 1; Eq. 5 and 6; Theorem 1.
    """
    shifts: dict[Job, float] = {}
    for first in period_s:
        if first in shifts or ("job", first) not in graph:
            continue
        shifts[first] = 0.0
        waiting = deque([first])
        while waiting:
            job = waiting.popleft()
            for link in graph[("job", job)]:
                own = graph.edges[("job", job), link]["shift_s"]
                for _, other in graph[link]:
                    if other not in shifts:
                        waiting.append(other)
                        there = graph.edges[link, ("job", other)]["shift_s"]
                        shifts[other] = (shifts[job] - own + there) % period_s[other]
    return shifts


@dataclass(frozen=True)
class SharedLink:
    """A link and the jobs on it."""

    jobs: tuple[int, ...]  # positions in the overlay
    flows: tuple[float, ...]  # streams of each job across the link (simulator/cluster/routes.py: LinkUse)
    capacity: float  # bytes per second, C


@dataclass(frozen=True, eq=False)
class Overlay:
    """Jobs on one unified circle. Paper: cassini, Sec. 3."""

    circle: Circle
    grid: Grid
    demand: np.ndarray  # float64 (n, |A|), bytes per second of each job at each angle, not rotated, per flow
    links: tuple[SharedLink, ...]

    @classmethod
    def of(cls, phases: Sequence[Phases], circle: Circle, links: Sequence[SharedLink], grid: Grid) -> Overlay:
        """The jobs' phases on the circle."""
        rows = [demand(one, circle, job, grid) for job, one in enumerate(phases)]
        return cls(circle, grid, np.array(rows), tuple(links))

    @property
    def num_jobs(self) -> int:
        """Jobs, n."""
        return len(self.demand)

    @cached_property
    def shifts(self) -> tuple[np.ndarray, ...]:
        """Rotations of each job in angles, int64 (rotations,)."""
        return tuple(self.grid.shifts(self.circle, job) for job in range(self.num_jobs))

    def turned(self, job: int, step: int) -> np.ndarray:
        """A job's demand at a rotation, float64 (|A|,): bw_circle(alpha - Delta). Paper: cassini, Eq. 3."""
        return np.roll(self.demand[job], int(self.shifts[job][step]))

    def shifts_s(self, rotation: Sequence[int]) -> tuple[float, ...]:
        """Time-shift of each job at these rotations, seconds, in [0, its period). Paper: cassini, Eq. 5."""
        angle_s = self.circle.perimeter_s / self.demand.shape[1]
        return tuple(float(shift[step]) * angle_s for shift, step in zip(self.shifts, rotation, strict=True))


def excess(total: np.ndarray, capacity: float) -> np.ndarray:
    """Average excess demand over the last axis, as a fraction of the capacity. Paper: cassini, Eq. 1."""
    return np.maximum(total - capacity, 0.0).mean(axis=-1) / capacity


def link_scores(overlay: Overlay, rotation: Sequence[int]) -> np.ndarray:
    """Compatibility score of each link, float64 (links,), at most 1. Paper: cassini, Eq. 2; Eq. 3."""

    def score(link: SharedLink) -> float:
        total = np.zeros(overlay.demand.shape[1])
        for job, flows in zip(link.jobs, link.flows, strict=True):
            total += flows * overlay.turned(job, rotation[job])
        return 1.0 - float(excess(total, link.capacity))

    return np.array([score(link) for link in overlay.links])


BUCKETS = 72  # 5 degrees of the job's own circle


def bucket_s(bucket: int, period_s: float) -> float:
    """The time-shift of a bucket, 0 to 71: seconds in [0, period)."""
    return bucket * period_s / BUCKETS


def nearest_bucket(seconds: float, period_s: float) -> int:
    """The bucket whose time-shift is nearest to `seconds`, on the circle."""
    return round(seconds / period_s * BUCKETS) % BUCKETS


EXACT_JOBS = 3
RESTARTS = 1000
WORK = 1_100_000  # budget of one descent, about nanoseconds
ENDS = 32  # descents that are kept; among equal rounded costs the exact cost decides
REMEMBERED = 65_536


@dataclass(frozen=True)
class Solution:
    """Rotations of an overlay."""

    rotation: tuple[int, ...]  # steps of each job on its own grid
    shifts_s: tuple[float, ...]  # delay of each job, in [0, its period)
    scores: tuple[float, ...]  # of each link, at most 1

    @classmethod
    def of(cls, overlay: Overlay, rotation: Sequence[int]) -> Solution:
        """The solution of these rotations."""
        steps = tuple(int(step) for step in rotation)
        return cls(steps, overlay.shifts_s(steps), tuple(link_scores(overlay, steps).tolist()))


@functools.lru_cache(maxsize=REMEMBERED)
def solution(
    phases: tuple[Phases, ...], circle: Circle, links: tuple[SharedLink, ...], grid: Grid, exact_jobs: int = EXACT_JOBS
) -> Solution:
    """The best rotations of jobs with these phases, cached; `SharedLink.jobs` are positions in `phases`."""
    return solve(Overlay.of(phases, circle, links, grid), exact_jobs)


def solve(overlay: Overlay, exact_jobs: int = EXACT_JOBS, restarts: int = RESTARTS, seed: int = 0) -> Solution:
    """The best rotations: exact for at most `exact_jobs` jobs, else by descent. Paper: cassini, Table 1."""
    if overlay.num_jobs <= exact_jobs:
        return exact(overlay)
    return descent(overlay, restarts, seed)


def exact(overlay: Overlay) -> Solution:
    """The best of all steps^(n - 1) rotations. Paper: cassini, Table 1."""
    best = np.zeros(overlay.num_jobs, np.int64)
    search_all(overlay_arrays(overlay), np.zeros_like(best), best)
    return Solution.of(overlay, best.tolist())


def descent(overlay: Overlay, restarts: int = RESTARTS, seed: int = 0, work: int = WORK) -> Solution:
    """Turn one job after the other to its best rotation until nothing helps, from at most `restarts` + 1 starts.

    The first start is no rotation, so the result is never worse; the others are random (`seed`). From a good end,
    descents also start where all jobs but the first are turned by one of its iterations, if that changes little. `work`
    is the budget, about nanoseconds; a descent that has begun is finished.
    """
    ends = np.zeros((ENDS, overlay.num_jobs), np.int64)
    scratch = np.zeros((2, overlay.num_jobs), np.int64)
    flat = overlay_arrays(overlay)
    search_by_descent(flat, write_lines(overlay, flat), restarts, seed, work, ends, np.zeros(ENDS, np.int64), scratch)
    return Solution.of(overlay, ends[0].tolist())


MOST_BITS = 40  # of a link's capacity in units: a unit is 1e-12 of it
LINE_BITS = 30  # of numbers in `Lines`, at the ends of the runs of a job
SUM_BITS = 60  # of the largest sum of units


def overlay_arrays(overlay: Overlay) -> OverlayArrays:
    """The overlay in arrays, before any placement. Demands are rounded to 1e-12 of a capacity, or a little more."""
    jobs, angles = overlay.demand.shape
    n_rotations = np.array([len(shifts) for shifts in overlay.shifts], np.int64)
    shift = np.zeros((jobs, int(n_rotations.max())), np.int64)
    for job, shifts in enumerate(overlay.shifts):
        shift[job, : len(shifts)] = shifts
    flows = np.zeros((len(overlay.links), jobs), np.float64)
    for position, link in enumerate(overlay.links):
        flows[position, list(link.jobs)] = link.flows
    capacity = np.array([link.capacity for link in overlay.links], np.float64)
    runs = 1 + int(np.count_nonzero(np.diff(overlay.demand, axis=1), axis=1).max())
    shapes = {
        "folds": (jobs,),
        "levels": (jobs,),
        "first": (jobs, runs + 1),
        "start": (jobs, runs),
        "end": (jobs, runs),
        "amount": (len(flows), jobs, runs),
        "whole": (len(flows), jobs),
        "spent": (1,),
        "rest": (len(flows), angles),
        "sums": (2 * angles + 1,),
        "cost": (shift.shape[1],),
    }
    wanted = float((flows @ overlay.demand.max(axis=1) / capacity).sum())
    bits = SUM_BITS - math.ceil(math.log2((wanted + len(flows) + 1) * angles))
    room = np.array([1 << min(MOST_BITS, bits)], np.int64)
    zeros = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
    flat = OverlayArrays(shift=shift, n_rotations=n_rotations, flows=flows, room=room, **zeros)
    write_levels(flat, overlay.demand, capacity, np.array(overlay.circle.iterations, np.int64))
    return flat


def write_lines(overlay: Overlay, flat: OverlayArrays) -> Lines:
    """The further arrays of a descent."""
    links, jobs, _ = flat.amount.shape
    angles = flat.rest.shape[1]
    most = max(int(flat.amount.max(initial=0)) * MOST_ITERATIONS, int(flat.amount.max(axis=2).sum(axis=1).max()))
    coarse = max(0, most.bit_length() - LINE_BITS)
    levels, runs = int(flat.levels.max()), int((flat.folds * flat.first.max(axis=1)).max())
    runs += -runs % ABREAST
    whole = {
        "reach": (jobs,),
        "runs": (jobs, levels),
        "start": (jobs, levels, runs),
        "end": (jobs, levels, runs),
        "sums": (angles + PADDED,),
        "cost": (flat.shift.shape[1],),
        "seen": (SEEN,),
    }
    short = {
        "amount": (links, jobs, levels),
        "own": (links, jobs, 2 * angles),
        "total": (links, angles),
        "more": (2 * angles + PADDED,),
        "slope": (angles + PADDED,),
    }
    lines = Lines(
        coarse=np.array([coarse], np.int64),
        iterations=np.array(overlay.circle.iterations, np.int64),
        **{name: np.zeros(size, np.int64) for name, size in whole.items()},
        **{name: np.zeros(size, np.int32) for name, size in short.items()},
    )
    write_runs(flat, lines)
    write_amounts(flat, lines)
    return lines
