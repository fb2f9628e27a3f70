"""Drawn jobs that share one link, for what is said of paper cassini's optimisation in general.

One Up phase of 15 to 60 % of the iteration, at 30 to 100 % of the link's capacity, at the end of the iteration. The
iteration takes 300 ms (equal periods), 100, 200, 300 or 400 ms (harmonic ones), or 100 to 500 ms (free ones, which have
no small common multiple).
"""

from __future__ import annotations

import numpy as np

from ....policies.cassini.compatibility import Overlay, SharedLink
from ....simulator.contention.circle import Grid, unify
from ....simulator.profiles.phases import Phases, in_order

PERIODS = ("equal", "harmonic", "free")


def drawn_jobs(random: np.random.Generator, jobs: int, periods: str) -> list[Phases]:
    """So many jobs, with `periods` of one kind; rates are fractions of a capacity of 1 byte per second."""
    times, parts, rates = random.uniform([[0.1], [0.15], [0.3]], [[0.5], [0.6], [1.0]], (3, jobs))
    if periods == "equal":
        times = np.full(jobs, 0.3)
    elif periods == "harmonic":
        times = 0.1 * random.integers(1, 5, jobs)
    rows = zip(times.tolist(), parts.tolist(), rates.tolist(), strict=True)
    return [in_order([((1.0 - part) * seconds, 0.0), (part * seconds, rate)]) for seconds, part, rate in rows]


def on_one_link(phases: list[Phases], grid: Grid) -> Overlay:
    """All of them on a link of 1 byte per second."""
    link = SharedLink(tuple(range(len(phases))), (1,) * len(phases), 1.0)
    return Overlay.of(phases, unify([one.iteration_s for one in phases]), [link], grid)
