"""Jobs with different iteration times on one circle (paper cassini, Sec. 3), and the grid of angles on it.

The perimeter is the least common multiple of the iteration times. The paper does not say how it rounds measured times,
so `unify` looks for whole numbers of iterations r_j and a perimeter P with P / r_j >= T_j: a period is at most a little
longer than its iteration, and the job waits out the rest (its padding).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.errors import InputError
from ..profiles.phases import Phases

MOST_ITERATIONS = 24  # of a job once around: bounds the grid
TOLERANCE = 0.01  # padding that is as good as none
_SLACK = 1e-9  # 0.12 / 0.04 is 3.0000000000000004, 0.06 / 0.02 just below 3


@dataclass(frozen=True)
class Circle:
    """A unified circle: its perimeter P in seconds, and r_j, the iterations of each job once around, >= 1."""

    perimeter_s: float
    iterations: tuple[int, ...]

    @property
    def periods_s(self) -> tuple[float, ...]:
        """Seconds from one iteration of each job to the next, P / r_j."""
        return tuple(self.perimeter_s / count for count in self.iterations)

    def of(self, jobs: Sequence[int]) -> Circle:
        """The circle of some of the jobs, with the same periods: its perimeter is the multiple that these have."""
        counts = [self.iterations[job] for job in jobs]
        common = math.gcd(*counts)
        return Circle(self.perimeter_s / common, tuple(count // common for count in counts))


def unify(iteration_s: Sequence[float], tolerance: float = TOLERANCE, most: int = MOST_ITERATIONS) -> Circle:
    """The unified circle of jobs with these iteration times.

    It has the smallest perimeter at which every period is at most `tolerance` longer than its iteration; if there is
    none, the least padding of the most padded job. Equal times always have themselves.

    Args:
        iteration_s: seconds, > 0, one per job.
        tolerance: padding as a fraction of the iteration time, >= 0.
        most: iterations that a job may have once around, >= 1.

    Raises:
        InputError: no job, or an iteration time that is not a finite number above 0.

    Paper: cassini, Sec. 3; Eq. 4.
    """
    times = tuple(float(time) for time in iteration_s)
    if not times or not all(math.isfinite(time) and time > 0 for time in times):
        raise InputError(f"iteration times {list(times)}: expected at least one, each finite and more than 0 seconds")
    return _unify(times, float(tolerance), int(most))


def padding(circle: Circle, iteration_s: Sequence[float]) -> np.ndarray:
    """The error of the rounding: how much longer each job's period is than its iteration, a fraction >= 0, (n,)."""
    return np.maximum(np.array(circle.periods_s) / np.asarray(iteration_s, np.float64) - 1.0, 0.0)


@functools.lru_cache(maxsize=4096)
def _unify(times: tuple[float, ...], tolerance: float, most: int) -> Circle:
    time = np.array(times)
    perimeters = np.unique(np.multiply.outer(np.arange(1, most + 1), time))
    perimeters = perimeters[perimeters >= time.max()]
    counts = np.floor(perimeters[:, None] / time[None, :] * (1.0 + _SLACK)).astype(np.int64)
    counts = np.minimum(counts, most)
    worst = (perimeters[:, None] / (counts * time[None, :])).max(axis=1) - 1.0
    good = np.flatnonzero(worst <= tolerance + _SLACK)
    row = int(good[0]) if len(good) else int(np.argmin(np.round(worst, 12)))
    return Circle(float(perimeters[row]), tuple(counts[row].tolist()))


@dataclass(frozen=True)
class Grid:
    """The discrete angles A of Table 1.

    Attributes:
        degrees: one step, a divisor of 360; the paper's 5.
        of_circle: False: a step is in degrees of each job's own circle, mapped onto the unified circle, so the number
            of rotations does not depend on others. True: degrees of the unified circle, as in the paper; a job with r
            iterations on it then has only 1 / r of the rotations.
    """

    degrees: float = 5.0
    of_circle: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.degrees <= 360 or abs(360 / self.degrees - round(360 / self.degrees)) > _SLACK:
            raise InputError(f"grid: degrees = {self.degrees!r}, expected a divisor of 360")

    @property
    def steps(self) -> int:
        """Steps once around."""
        return round(360 / self.degrees)

    def angles(self, circle: Circle) -> int:
        """How many angles the unified circle has, |A|."""
        return self.steps if self.of_circle else self.steps * max(circle.iterations)

    def shifts(self, circle: Circle, job: int) -> np.ndarray:
        """Rotations of a job, whole angles of the circle below one iteration (Eq. 4): int64, ascending from 0."""
        count = circle.iterations[job]
        if self.of_circle:
            return np.arange(-(-self.steps // count), dtype=np.int64)
        return np.arange(self.steps, dtype=np.int64) * max(circle.iterations) // count


def demand(phases: Phases, circle: Circle, job: int, grid: Grid) -> np.ndarray:
    """bw_circle_j: bytes per second of a job at each angle of the unified circle, float64 (|A|,).

    Read at the middle of each arc, so an edge of a phase moves by at most half an arc. Padding is a final Down phase.
    """
    angles = grid.angles(circle)
    times = (np.arange(angles) + 0.5) * (circle.perimeter_s / angles)
    return phases.rate_at(np.mod(times, circle.perimeter_s / circle.iterations[job]))
