"""Paper cassini: jobs on one link of 50 Gbps, of which a job alone takes 45: what they do with time-shifts and without.

Sec. 2.2 and 5.1. What two jobs offer together is more than the link has, so sharing carries 50 where one job alone
carries 45; on a link of `MEASURED`, the second reading, both carry 45. Drawn jobs, for what is said of the optimisation
in general: one Up phase of 15 to 60 % of the iteration, at 30 to 100 % of the link's capacity, at the end of the
iteration, which takes 300 ms (equal periods), 100, 200, 300 or 400 ms (harmonic ones), or 100 to 500 ms (free ones,
which have no small common multiple).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ....policies.cassini.compatibility import Overlay, SharedLink, Solution, solution
from ....simulator.cluster.routes import LinkUse
from ....simulator.contention.circle import Circle, Grid, unify
from ....simulator.contention.phase_run import Contender, PhaseRun, SteadyState, steady_state
from ....simulator.profiles.cassini_models import GBPS, cassini_models, phases_of
from ....simulator.profiles.phases import Phases, in_order
from ...comparing.intervals import estimate
from ..engine import Play
from ..rows import Row, printed, ratio, table

LINK = 50.0 * GBPS
MEASURED = 45.0 * GBPS
RATE = 45.0 * GBPS
ACROSS = LinkUse(np.array([0]), np.array([1]))
WARM_UP, AVERAGED = 200, 800  # iterations: the paper's jobs have 200 to 1,000
PERIODS = ("equal", "harmonic", "free")
ITERATION_S = 0.3  # of equal jobs; gains depend on no length
GAINS = {2: 1.39, 3: 1.56, 4: 1.64}  # jobs -> gain at a duty sum of 1, from a throw-away model of ours
GAIN_TOLERANCE = 0.02
LIGHT, HEAVY = (0.6, 0.9), (1.1, 1.5, 2.0)  # duty sums below and above 1
QUICK_OFFSETS = 5
# Figure 2: two VGG19 on one link, the second shifted: 90th percentile of the iteration time, without over with
PAIR_MODEL, PAIR_WORKERS, PAIR_BATCH = "VGG19", 2, 1400  # the batch of Table 2
PAIR_SHIFT_S, PAIR_GAIN, PAIR_ITERATIONS = 0.120, 1.26, 1000
TAIL = 0.9


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


def gains(play: Play) -> Iterator[Row]:
    """Equal jobs on one link: mean iteration time at a simultaneous start, over that with time-shifts."""
    seeds = play.options.seeds(QUICK_OFFSETS if play.options.quick else play.count)
    for jobs, expected in GAINS.items():
        yield table(f"{jobs} jobs, duty sum 1: gain", expected, _gain(jobs, 1.0, ())[0], "x", GAIN_TOLERANCE)
    for jobs in GAINS:
        for duty in (*LIGHT, 1.0, *HEAVY):
            gain, against_random = _gain(jobs, duty, seeds)
            what = f"{jobs} jobs, duty sum {duty:g}: gain"
            if duty > 1.0:
                yield Row(what, "none", gain, (-math.inf, 1.0 + GAIN_TOLERANCE), unit="x")
            elif duty < 1.0:
                yield printed(what, gain, "x")
            yield printed(f"{what} over random start offsets", estimate(against_random), "x")


def _gain(jobs: int, duty: float, seeds: tuple[int, ...]) -> tuple[float, list[float]]:
    """Over a simultaneous start, and over random start offsets, one a seed."""
    up_s = duty * ITERATION_S / jobs
    phases = [in_order([(ITERATION_S - up_s, 0.0), (up_s, RATE)])] * jobs
    circle = Circle(ITERATION_S, (1,) * jobs)
    with_s = float(steady(shifted(phases, rotated(phases, circle), circle)).iteration_s.mean())
    at_once_s = float(steady([Contender(one, ACROSS) for one in phases]).iteration_s.mean())
    return at_once_s / with_s, [float(one.iteration_s.mean()) / with_s for one in from_random_offsets(phases, seeds)]


def figure2(play: Play) -> Iterator[Row]:
    """Two VGG19 on one link, 1,000 iterations: started at once, and the second 120 ms later."""
    words = f"90th percentile iteration time, at once over shifted by 120 ms, {PAIR_WORKERS} workers each"
    yield ratio(words, 100.0 * (PAIR_GAIN - 1.0), _percent(PAIR_WORKERS, PAIR_BATCH))
    smallest, largest = cassini_models()[PAIR_MODEL].batch
    yield printed("the same on a link of 45 Gbps", _percent(PAIR_WORKERS, PAIR_BATCH, MEASURED), "%")
    for workers in (2, 3, 4, 6, 8):
        for batch in (smallest, PAIR_BATCH, largest):
            yield printed(f"{workers} workers each, batch {batch}", _percent(workers, batch), "%")
    exact = [batch for batch in range(smallest, largest + 1, 8) if pair_gain(PAIR_WORKERS, batch) >= PAIR_GAIN]
    yield printed("largest batch with 1.26 x or more, 2 workers each", float(max(exact, default=math.nan)))


def _percent(workers: int, batch: int, capacity: float = LINK) -> float:
    return 100.0 * (pair_gain(workers, batch, capacity=capacity) - 1.0)


def pair_gain(workers: int, batch: int, carried: float = 1.0, capacity: float = LINK) -> float:
    """Figure 2: 90th percentile of the iteration times of two VGG19 at a simultaneous start over that with the shift.

    Args:
        workers, batch: of each job. carried: the part of the link that arrives when they meet, in (0, 1].
        capacity: of the link, bytes per second.
    """
    phases = phases_of(PAIR_MODEL, workers, batch)
    tails = []
    for begin_s in (0.0, PAIR_SHIFT_S):
        jobs = [Contender(phases, ACROSS, begin_s=start, rounds=PAIR_ITERATIONS) for start in (0.0, begin_s)]
        run = PhaseRun([capacity], jobs, carried=carried, log=True)
        run.play(math.inf)
        tails.append(float(np.quantile(np.concatenate(run.durations), TAIL)))
    return tails[0] / tails[1]
