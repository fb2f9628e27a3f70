"""Paper cassini: jobs on one link, played: two VGG19 (Figure 2), and what shifts gain over a simultaneous start."""

from __future__ import annotations

import math

import numpy as np

from ....simulator.contention.circle import Circle
from ....simulator.contention.phase_run import Contender, PhaseRun
from ....simulator.profiles.cassini_models import cassini_models, phases_of
from ....simulator.profiles.phases import in_order
from ...comparing.intervals import estimate
from ..findings import Findings, Options
from ..rows import Row, printed, ratio, table
from . import cassini_published as published
from .cassini_one_link import ACROSS, LINK, MEASURED, RATE, from_random_offsets, rotated, shifted, steady

ITERATION_S = 0.3  # of the drawn jobs; gains depend on no length
GAINS = {2: 1.39, 3: 1.56, 4: 1.64}  # jobs -> gain at a duty sum of 1, from a throw-away model of ours
GAIN_TOLERANCE = 0.02
LIGHT, HEAVY = (0.6, 0.9), (1.1, 1.5, 2.0)  # duty sums below and above 1
OFFSETS, QUICK_OFFSETS = 50, 5
PAIR_BATCH = 1400  # of VGG19 in Table 2
PAIR_WORKERS = 2
TAIL = 0.9


def gains(options: Options) -> Findings:
    """Equal jobs on one link: mean iteration time at a simultaneous start, over that with time-shifts."""
    seeds = options.seeds(QUICK_OFFSETS if options.quick else OFFSETS)
    rows: list[Row] = []
    for jobs, expected in GAINS.items():
        gain, _ = _gain(jobs, 1.0, ())
        rows.append(table(f"{jobs} jobs, duty sum 1: gain", expected, gain, "x", GAIN_TOLERANCE))
    for jobs in GAINS:
        for duty in (*LIGHT, 1.0, *HEAVY):
            gain, against_random = _gain(jobs, duty, seeds)
            what = f"{jobs} jobs, duty sum {duty:g}: gain"
            if duty > 1.0:
                rows.append(Row(what, "none", gain, (-math.inf, 1.0 + GAIN_TOLERANCE), unit="x"))
            elif duty < 1.0:
                rows.append(printed(what, gain, "x"))
            rows.append(printed(f"{what} over random start offsets", estimate(against_random), "x"))
    notes = [
        "duty sum: what all jobs are Up alone, over the period; one Up phase at 45 of the link's 50 Gbps. A "
        "simultaneous start is the worst there is for equal jobs, and they never leave it: gain 2 - 1 / k, less what "
        "sharing carries more than one job alone",
        "what is compared with is not the paper's but that of a throw-away model of ours, which found nothing to gain "
        "above a duty sum of 1. Here there is: jobs that collide in part of their Up phases still do so less than jobs "
        "in lockstep. Against random start offsets little is left, and where all rotations have the same excess (three "
        "jobs, 1.5) the smallest ones, which are taken, can be worse than chance",
    ]
    return Findings(rows, notes)


def _gain(jobs: int, duty: float, seeds: tuple[int, ...]) -> tuple[float, list[float]]:
    """Over a simultaneous start, and over random start offsets, one a seed."""
    up_s = duty * ITERATION_S / jobs
    phases = [in_order([(ITERATION_S - up_s, 0.0), (up_s, RATE)])] * jobs
    circle = Circle(ITERATION_S, (1,) * jobs)
    with_s = float(steady(shifted(phases, rotated(phases, circle), circle)).iteration_s.mean())
    at_once_s = float(steady([Contender(one, ACROSS) for one in phases]).iteration_s.mean())
    return at_once_s / with_s, [float(one.iteration_s.mean()) / with_s for one in from_random_offsets(phases, seeds)]


def figure2(options: Options) -> Findings:
    """Two VGG19 on one link, 1,000 iterations: started at once, and the second 120 ms later."""
    rows = [
        ratio(
            f"90th percentile iteration time, at once over shifted by 120 ms, {PAIR_WORKERS} workers each",
            100.0 * (published.PAIR_GAIN - 1.0),
            100.0 * (pair_gain(PAIR_WORKERS, PAIR_BATCH) - 1.0),
        )
    ]
    smallest, largest = cassini_models()[published.PAIR_MODEL].batch
    measured = 100.0 * (pair_gain(PAIR_WORKERS, PAIR_BATCH, capacity=MEASURED) - 1.0)
    rows.append(printed("the same on a link of 45 Gbps", measured, "%"))
    for workers in (2, 3, 4, 6, 8):
        for batch in (smallest, PAIR_BATCH, largest):
            what = f"{workers} workers each, batch {batch}"
            rows.append(printed(what, 100.0 * (pair_gain(workers, batch) - 1.0), "%"))
    exact = [
        batch for batch in range(smallest, largest + 1, 8) if pair_gain(PAIR_WORKERS, batch) >= published.PAIR_GAIN
    ]
    rows.append(printed("largest batch with 1.26 x or more, 2 workers each", float(max(exact, default=math.nan))))
    notes = [
        f"batch {PAIR_BATCH} as in Table 2 and two workers a job, assumed: the picture has no text; computing by the "
        "rule of all snapshots, 45 of 50 Gbps a job; no jitter, so all iterations of a run are alike",
        "with more workers the Up phase is longer than the 120 ms of the shift, and the two still collide",
    ]
    return Findings(rows, notes)


def pair_gain(workers: int, batch: int, carried: float = 1.0, capacity: float = LINK) -> float:
    """Figure 2: 90th percentile of the iteration times of two VGG19 at a simultaneous start over that with the shift.

    Args:
        workers, batch: of each job. carried: the part of the link that arrives when they meet, in (0, 1].
        capacity: of the link, bytes per second.
    """
    phases = phases_of(published.PAIR_MODEL, workers, batch)
    tails = []
    for begin_s in (0.0, published.PAIR_SHIFT_S):
        jobs = [Contender(phases, ACROSS, begin_s=start, rounds=published.PAIR_ITERATIONS) for start in (0.0, begin_s)]
        run = PhaseRun([capacity], jobs, carried=carried, log=True)
        run.play(math.inf)
        tails.append(float(np.quantile(np.concatenate(run.durations), TAIL)))
    return tails[0] / tails[1]
