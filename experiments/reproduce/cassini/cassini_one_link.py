"""Jobs on one link of 50 Gbps, of which a job alone takes 45: their rotations, and what they do with and without them.

Paper cassini, Sec. 2.2 and 5.1. What two jobs offer together is more than the link has, so sharing carries 50 where one
job alone carries 45; on a link of `MEASURED`, the second reading (cassini_traces.py), both carry 45.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....policies.cassini.compatibility import SharedLink, Solution, solution
from ....simulator.cluster.routes import LinkUse
from ....simulator.contention.circle import Circle, Grid
from ....simulator.contention.phase_run import Contender, SteadyState, steady_state
from ....simulator.profiles.cassini_models import GBPS
from ....simulator.profiles.phases import Phases

LINK = 50.0 * GBPS
MEASURED = 45.0 * GBPS
RATE = 45.0 * GBPS
ACROSS = LinkUse(np.array([0]), np.array([1]))
WARM_UP, AVERAGED = 200, 800  # iterations: the paper's jobs have 200 to 1,000


def rotated(phases: Sequence[Phases], circle: Circle, capacity: float = LINK) -> Solution:
    """The best rotations of jobs on the link, of so many bytes per second."""
    link = SharedLink(tuple(range(len(phases))), (1,) * len(phases), capacity)
    return solution(tuple(phases), circle, (link,), Grid())


def shifted(phases: Sequence[Phases], found: Solution, circle: Circle) -> list[Contender]:
    """The jobs with these time-shifts, each paced at its period on the circle."""
    rows = zip(phases, found.shifts_s, circle.periods_s, strict=True)
    return [Contender(one, ACROSS, shift, period) for one, shift, period in rows]


def steady(jobs: Sequence[Contender], carried: float = 1.0) -> SteadyState:
    """Averages over 800 iterations, after 200; `carried`: the part of the link that arrives when jobs meet."""
    return steady_state([LINK], jobs, WARM_UP, AVERAGED, carried=carried)


def from_random_offsets(phases: Sequence[Phases], seeds: Sequence[int], carried: float = 1.0) -> list[SteadyState]:
    """The jobs without shifts, first iterations drawn evenly over the length of one: one steady state a seed."""
    found = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        starts = [float(random.uniform(0.0, one.iteration_s)) for one in phases]
        jobs = [Contender(one, ACROSS, begin_s=start) for one, start in zip(phases, starts, strict=True)]
        found.append(steady(jobs, carried))
    return found
