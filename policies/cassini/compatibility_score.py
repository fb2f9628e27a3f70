"""The compatibility score of jobs that share links: paper cassini, Table 1, Eq. 1 to 3.

An `Overlay` is the unified circles of some jobs laid over each other, and the links on which they meet: one link for
the paper's formulation, several where the shifts of a whole component are looked for at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...simulator.contention.circle import Circle, Grid, demand
from ...simulator.profiles.phases import Phases


@dataclass(frozen=True)
class SharedLink:
    """A link and the jobs on it.

    Attributes:
        jobs: positions in the overlay.
        flows: how often each job's collective crosses the link (`simulator/cluster/routes.py: LinkUse`).
        capacity: bytes per second, C.
    """

    jobs: tuple[int, ...]
    flows: tuple[int, ...]
    capacity: float


@dataclass(frozen=True, eq=False)
class Overlay:
    """Jobs on one unified circle.

    Attributes:
        circle, grid: the circle of these jobs and the angles on it.
        demand: float64 (n, |A|), bytes per second of each job at each angle, not rotated, per flow.
        links: where they meet.
    """

    circle: Circle
    grid: Grid
    demand: np.ndarray
    links: tuple[SharedLink, ...]

    @classmethod
    def of(cls, phases: Sequence[Phases], circle: Circle, links: Sequence[SharedLink], grid: Grid) -> Overlay:
        """Lay the jobs' phases on the circle."""
        rows = [demand(one, circle, job, grid) for job, one in enumerate(phases)]
        return cls(circle, grid, np.array(rows), tuple(links))

    @property
    def num_jobs(self) -> int:
        """Jobs, n."""
        return len(self.demand)

    @cached_property
    def shifts(self) -> tuple[np.ndarray, ...]:
        """Rotations of each job in angles, int64 (rotations,); "rotation k" of a job is the k-th of them."""
        return tuple(self.grid.shifts(self.circle, job) for job in range(self.num_jobs))

    def turned(self, job: int, step: int) -> np.ndarray:
        """A job's demand at one of its rotations: float64 (|A|,), bw_circle(alpha - Delta) of Eq. 3."""
        return np.roll(self.demand[job], int(self.shifts[job][step]))

    def shifts_s(self, rotation: Sequence[int]) -> tuple[float, ...]:
        """Time-shift of each job at these rotations (Eq. 5), seconds, in [0, its period)."""
        angle_s = self.circle.perimeter_s / self.demand.shape[1]
        return tuple(float(shift[step]) * angle_s for shift, step in zip(self.shifts, rotation, strict=True))


def excess(total: np.ndarray, capacity: float) -> np.ndarray:
    """Average excess demand over the last axis, as a fraction of the capacity (Eq. 1, averaged as in Eq. 2)."""
    return np.maximum(total - capacity, 0.0).mean(axis=-1) / capacity


def link_scores(overlay: Overlay, rotation: Sequence[int]) -> np.ndarray:
    """The compatibility score of each link at these rotations (Eq. 2), at most 1, float64 (links,).

    1: nobody ever wants more than there is. Negative where the excess is more than the capacity.
    """

    def score(link: SharedLink) -> float:
        total = np.zeros(overlay.demand.shape[1])
        for job, flows in zip(link.jobs, link.flows, strict=True):
            total += flows * overlay.turned(job, rotation[job])
        return 1.0 - float(excess(total, link.capacity))

    return np.array([score(link) for link in overlay.links])
