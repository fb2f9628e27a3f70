"""Paper cassini: Figure 5, Theorem 1, and Figure 18: circles, shifts and angles, with no network played."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ....policies.cassini.compatibility import (
    Job,
    Overlay,
    SharedLink,
    exact,
    has_loop,
    link_scores,
    solve,
    time_shifts,
)
from ....simulator.contention.circle import Circle, Grid, unify
from ....simulator.profiles.phases import in_order
from ..engine import Play
from ..rows import Row, order, printed
from .cassini_links import PERIODS, drawn_jobs, on_one_link

if TYPE_CHECKING:
    import networkx

CIRCLE_S = (0.040, 0.060)  # Figure 5: iterations
DEGREES = 5.0  # Figure 18: of 100 % accuracy
UP_S = 0.010  # of Figure 5, assumed: the text has none
GRAPHS, QUICK_GRAPHS = 1_000, 100
COMMON_S = 1.2  # of all periods of the drawn graphs: they are 1.2 s / 1 to 1.2 s / 6
SAME_S = 1e-9
ALL = (100.0, 100.0)
FINEST = 1.0
PRECISIONS = (FINEST, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 90.0)
DRAWS, QUICK_DRAWS = 200, 20
LOST = 0.01  # of a score: shifts that cost less than this are accurate


def figure5(play: Play) -> list[Row]:
    """The unified circle of 40 and 60 ms, and the rotations at which nothing collides."""
    circle = unify(CIRCLE_S)
    jobs = [in_order([(UP_S, 1.0), (iteration_s - UP_S, 0.0)]) for iteration_s in CIRCLE_S]
    rows = [Row("perimeter of the unified circle", 120.0, 1e3 * circle.perimeter_s, (120.0, 120.0), unit="ms")]
    for degrees in (DEGREES, 1.0):
        overlay = Overlay.of(jobs, circle, [SharedLink((0, 1), (1, 1), 1.0)], Grid(degrees, of_circle=True))
        good = [degrees * step for step in range(round(360 / degrees)) if _score_turned(overlay, step) == 1.0]
        wanted = [30.0 + 60.0 * turn for turn in range(6)]
        wrong = len(set(good) ^ set(wanted))
        what = f"rotations in steps of {degrees:g} degrees"
        rows.append(Row(f"{what}: first with score 1", 30.0, good[0] if good else math.nan, (30.0, 30.0), unit="deg"))
        rows.append(Row(f"{what}: score 1 elsewhere than at 30 modulo 60, or not there", "none", wrong, (0.0, 0.0)))
    play.notes.append(
        f"Up phases of {1e3 * UP_S:g} ms each, assumed: the text has none; rates are those of the whole link"
    )
    return rows


def _score_turned(overlay: Overlay, angles: int) -> float:
    """The score with the second job turned by so many angles of the unified circle, beyond its first iteration too."""
    demand = np.stack([overlay.demand[0], np.roll(overlay.demand[1], angles)])
    return float(link_scores(Overlay(overlay.circle, overlay.grid, demand, overlay.links), (0, 0))[0])


def theorem1(play: Play) -> list[Row]:
    """1,000 random affinity graphs without loops: do jobs that share a link keep their relative shift on it?"""
    random = np.random.default_rng(play.options.seed)
    graphs = QUICK_GRAPHS if play.options.quick else GRAPHS
    pairs = kept = to_the_letter = assigned = jobs = 0
    for _ in range(graphs):
        graph, periods = random_forest(random)
        shifts = time_shifts(graph, periods)
        jobs += len(periods)
        assigned += sum(0.0 <= shifts.get(job, -1.0) < period for job, period in periods.items())
        for between, modulus in _differences(graph, shifts, periods):
            pairs += 1
            kept += _multiple(between, modulus)
            to_the_letter += _multiple(between, COMMON_S)
    rows = [
        Row("jobs with one time-shift, less than an iteration", "all", 100.0 * assigned / jobs, ALL, unit="%"),
        Row("pairs of jobs on a link that keep their relative shift", "all", 100.0 * kept / pairs, ALL, unit="%"),
        printed("pairs for which Eq. 6 holds to the letter", 100.0 * to_the_letter / pairs, "%"),
    ]
    play.notes += [
        f"{graphs} graphs of 1 to 8 links and {jobs / graphs:.3g} jobs on average, {pairs:,} pairs; periods "
        "1.2 s / 1 to 1.2 s / 6, shifts on links drawn evenly",
        "relative shifts are equal up to whole iterations of the two jobs, which change no overlap; Eq. 6 to the "
        "letter, modulo the perimeter, holds before line 23 of Algorithm 1 takes each shift modulo its iteration",
    ]
    return rows


def random_forest(random: np.random.Generator) -> tuple[networkx.Graph, dict[Job, float]]:
    """A loop-free affinity graph and its jobs' periods, seconds.

    Each new link meets one job that is there already, or none, and one to three new ones.
    """
    import networkx

    graph: networkx.Graph = networkx.Graph()
    periods: dict[Job, float] = {}
    for link in range(int(random.integers(1, 9))):
        known = list(periods)
        here = [known[int(random.integers(len(known)))]] if known and random.random() < 0.8 else []
        for _ in range(int(random.integers(2 - len(here), 4))):
            here.append(len(periods))
            periods[here[-1]] = COMMON_S / float(random.integers(1, 7))
        for job in here:
            graph.add_edge(("job", job), ("link", link), shift_s=float(random.uniform(0, periods[job])))
    assert not has_loop(graph)
    return graph, periods


def _differences(
    graph: networkx.Graph, shifts: Mapping[Job, float], periods: Mapping[Job, float]
) -> list[tuple[float, float]]:
    """Per link and pair on it: by how much the relative shift differs from that on the link, and modulo what.

    Whole iterations of the one and of the other make any multiple of the largest time that is in both.
    """
    found = []
    for link in (vertex for vertex in graph if vertex[0] == "link"):
        jobs = [job for _, job in graph[link]]
        there = {job: graph.edges[link, ("job", job)]["shift_s"] for job in jobs}
        for place, one in enumerate(jobs):
            for other in jobs[place + 1 :]:
                between = (shifts[one] - shifts[other]) - (there[one] - there[other])
                counts = (round(COMMON_S / periods[one]), round(COMMON_S / periods[other]))
                found.append((between, COMMON_S / math.lcm(*counts)))
    return found


def _multiple(value: float, of: float) -> bool:
    return abs((value + of / 2) % of - of / 2) < SAME_S


def discretisation(play: Play) -> list[Row]:
    """Accuracy of time-shifts and time of the search against the step of the angles."""
    draws = QUICK_DRAWS if play.options.quick else DRAWS
    taken_s: dict[float, float] = {}
    shares: dict[tuple[str, float], float] = {}
    for degrees in PRECISIONS:
        for periods in PERIODS:
            lost, spent_s = _losses(play.options.seed, draws, periods, degrees)
            shares[periods, degrees] = 100.0 * float(np.mean(lost <= LOST))
            taken_s[degrees] = taken_s.get(degrees, 0.0) + 1e3 * spent_s / len(PERIODS)
    what = f"{DEGREES:g} degrees, equal periods: accurate time-shifts"
    accurate = shares["equal", DEGREES]
    rows = [Row(what, 100.0, accurate, (95.0, 100.0), unit="%")]
    faster = taken_s[DEGREES] / taken_s[FINEST]
    rows.append(order("time of a search of three jobs, 5 over 1 degree", "below 1", faster))
    for degrees in PRECISIONS:
        rows += [
            printed(f"{degrees:g} degrees, {periods} periods: accurate time-shifts", shares[periods, degrees], "%")
            for periods in PERIODS
            if (periods, degrees) != ("equal", DEGREES)
        ]
        rows.append(printed(f"{degrees:g} degrees: time of a search of three jobs", taken_s[degrees], "ms"))
    play.notes += [
        f"{draws} draws of two and of three jobs for each kind of periods (cassini_links.py says which); "
        "angles of the unified circle, as Table 1 has them; accurate, which the paper does not define: on circles of 1 "
        f"degree the shifts score at most {LOST:g} less than the best ones",
        "a job with r iterations around has 1 / r of the rotations, so free periods, with up to 24, need finer angles: "
        "which is why the default grid of this package counts the degrees on each job's own circle",
    ]
    return rows


def _losses(seed: int, draws: int, periods: str, degrees: float) -> tuple[np.ndarray, float]:
    """How much less the shifts of a coarse search score on fine circles than the best; seconds of a search of three."""
    random = np.random.default_rng(seed)
    lost, spent_s = [], []
    for draw in range(draws):
        phases = drawn_jobs(random, 2 + draw % 2, periods)
        coarse, fine = (on_one_link(phases, Grid(step, of_circle=True)) for step in (degrees, FINEST))
        found = solve(coarse)
        if draw % 2:
            began = time.process_time()
            solve(coarse)
            spent_s.append(time.process_time() - began)
        there = _steps(found.shifts_s, fine.circle)
        lost.append(exact(fine).scores[0] - float(link_scores(fine, there)[0]))
    return np.array(lost), float(np.median(spent_s))


def _steps(shifts_s: tuple[float, ...], circle: Circle) -> list[int]:
    return [round(shift * 360 / FINEST / circle.perimeter_s) for shift in shifts_s]
