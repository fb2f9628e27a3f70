"""What time-shifts give on one link, by periods, load, pacing, drift and jitter: an experiment of ours.

The pages of paper cassini hold the jobs and their circles fixed; here one thing after the other is changed. Gain: mean
iteration time without shifts, from random start offsets, over that with shifts; 1 is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ....simulator.contention.circle import TOLERANCE, Circle, unify
from ....simulator.contention.phase_run import Contender, PhaseRun
from ....simulator.profiles.phases import Phases, in_order
from ...comparing.intervals import paired_ratio
from ..engine import Play
from ..rows import Row, printed
from .cassini_links import ACROSS, LINK, PERIODS, RATE, drawn_jobs, from_random_offsets, rotated, shifted, steady

DRAWS, QUICK_DRAWS = 100, 6
LOADS = {"at most 0.8": (0.0, 0.8), "0.8 to 1": (0.8, 1.0), "above 1": (1.0, math.inf)}
ITERATION_S, DUTY = 0.3, 0.9  # of the two equal jobs whose clocks drift apart, or jitter; duty sum
PADDINGS = (0.01, 0.03, 0.1, 0.2, 0.3)
MISMATCHES = (0.0, 0.001, 0.003, 0.01, 0.03)
SPANS = (200, 600, 2000)  # iterations
JITTERS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05)
HEADROOMS = (0.0, 0.02, 0.05)
TRIGGER = 0.05
QUICK_OFFSETS = 4


def interleaving(play: Play) -> Iterator[Row]:
    """Gains by periods and load, by mismatch and length of the run, by jitter and headroom."""
    options = play.options
    draws = QUICK_DRAWS if options.quick else DRAWS
    seeds = options.seeds(QUICK_OFFSETS if options.quick else play.count)
    for alike in (True, False):
        for periods in PERIODS:
            yield from _by_load(periods, alike, draws, options.seed)
    yield from _by_padding(draws, options.seed)
    yield from _by_mismatch(seeds)
    yield from _by_jitter(seeds)


def _by_load(periods: str, alike: bool, draws: int, seed: int) -> list[Row]:
    """Drawn jobs: all at 45 Gbps (`alike`), as what the paper trains data parallel, or at rates of their own."""
    random = np.random.default_rng(seed)
    found: list[tuple[float, float, float]] = []
    for draw in range(draws):
        phases = [_on_the_link(one, alike) for one in drawn_jobs(random, 2 + draw % 2, periods)]
        load = sum(one.bytes / one.iteration_s for one in phases) / LINK
        circle = unify([one.iteration_s for one in phases], TOLERANCE)
        with_s = _stretch(phases, shifted(phases, rotated(phases, circle), circle))
        without_s = float(np.mean([_mean(phases, one.iteration_s) for one in from_random_offsets(phases, range(4))]))
        found.append((load, without_s, with_s))
    rows = []
    for name, (low, high) in LOADS.items():
        here = [(without_s, with_s) for load, without_s, with_s in found if low < load <= high]
        rates = "one rate" if alike else "own rates"
        what = f"{periods} periods, {rates}, load {name} ({len(here)} of {draws})"
        gain = paired_ratio([one for one, _ in here], [other for _, other in here])
        rows.append(printed(f"{what}: gain", gain, "x"))
        rows.append(printed(f"{what}: with shifts, iteration over that alone", _average([b for _, b in here]), "x"))
    return rows


def _by_padding(draws: int, seed: int) -> list[Row]:
    """Free periods, one rate: how much the circle may make jobs wait, so that they have few iterations around."""
    rows = []
    for padding in PADDINGS:
        random = np.random.default_rng(seed)
        found: list[tuple[float, float, float]] = []
        for draw in range(draws):
            phases = [_on_the_link(one, True) for one in drawn_jobs(random, 2 + draw % 2, "free")]
            circle = unify([one.iteration_s for one in phases], padding)
            with_s = _stretch(phases, shifted(phases, rotated(phases, circle), circle))
            (free,) = from_random_offsets(phases, (draw,))
            load = sum(one.bytes / one.iteration_s for one in phases) / LINK
            found.append((load, _mean(phases, free.iteration_s), with_s))
        for name, (low, high) in LOADS.items():
            here = [(without_s, with_s) for load, without_s, with_s in found if low < load <= high]
            gain = paired_ratio([one for one, _ in here], [other for _, other in here])
            rows.append(printed(f"free periods, padding {100 * padding:g} %, load {name}: gain", gain, "x"))
    return rows


def _on_the_link(phases: Phases, alike: bool) -> Phases:
    """The drawn rates, fractions of a capacity, as those of the link; or all of them 45 Gbps."""
    rates = tuple(RATE if alike else rate * LINK for rate in phases.rate)
    return Phases(phases.iteration_s, phases.start_s, phases.duration_s, rates)


def _mean(phases: Sequence[Phases], iteration_s: np.ndarray) -> float:
    """Mean over the jobs of the iteration time over that alone."""
    return float(np.mean(iteration_s / np.array([one.iteration_s for one in phases])))


def _stretch(phases: Sequence[Phases], jobs: Sequence[Contender]) -> float:
    return _mean(phases, steady(jobs).iteration_s)


def _average(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _pair(mismatch: float = 0.0) -> list[Phases]:
    up_s = DUTY / 2.0 * ITERATION_S
    return [in_order([(length - up_s, 0.0), (up_s, RATE)]) for length in (ITERATION_S, ITERATION_S * (1.0 + mismatch))]


def _by_mismatch(seeds: Sequence[int]) -> list[Row]:
    """A pair whose iterations differ by a little: paced at the longer one, or only shifted once."""
    rows = []
    for mismatch in MISMATCHES:
        phases = _pair(mismatch)
        circle = Circle(phases[1].iteration_s, (1, 1))
        jobs = shifted(phases, rotated(phases, circle), circle)
        without = [_played(_drawn(phases, seed), SPANS[-1]) for seed in seeds]
        for pacing in (True, False):
            for span in SPANS:
                spent_s = _played(jobs, span, pacing=pacing)
                gain = paired_ratio(without, [spent_s] * len(without))
                how = "paced" if pacing else "shifted once"
                rows.append(printed(f"mismatch {100 * mismatch:g} %, {how}, {span} iterations: gain", gain, "x"))
    return rows


def _by_jitter(seeds: Sequence[int]) -> list[Row]:
    rows = []
    phases = _pair()
    for jitter in JITTERS:
        without = [_played(_drawn(phases, seed), SPANS[-1], jitter=jitter, seed=seed) for seed in seeds]
        for headroom in HEADROOMS:
            circle = Circle((1.0 + headroom) * ITERATION_S, (1, 1))
            jobs = shifted(phases, rotated(phases, circle), circle)
            for how, adjust in (("", math.inf), (", adjusted", TRIGGER)):
                spent = [_played(jobs, SPANS[-1], jitter=jitter, seed=seed, adjust=adjust) for seed in seeds]
                what = f"jitter {100 * jitter:g} %, headroom {100 * headroom:g} %{how}: gain"
                rows.append(printed(what, paired_ratio(without, spent), "x"))
    return rows


def _drawn(phases: Sequence[Phases], seed: int) -> list[Contender]:
    random = np.random.default_rng(seed)
    return [Contender(one, ACROSS, begin_s=float(random.uniform(0.0, one.iteration_s))) for one in phases]


def _played(
    jobs: Sequence[Contender],
    rounds: int,
    *,
    pacing: bool = True,
    jitter: float = 0.0,
    adjust: float = math.inf,
    seed: int = 0,
) -> float:
    """Mean seconds of an iteration over so many iterations alone of the first job."""
    run = PhaseRun([LINK], jobs, pacing=pacing, jitter=jitter, adjust=adjust, seed=seed)
    run.play(rounds * ITERATION_S)
    return float(run.iteration_s.mean())
