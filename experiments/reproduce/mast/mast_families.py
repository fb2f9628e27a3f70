"""Paper mast, Sec. 5.3 and 5.6, Figure 7: what V1 and V2 of Tetris change, by how many tables jobs read, and which.

Neither is published. `reads`, tables of a family of jobs, and `size_reads`, how GPU-hours go with the number of tables,
decide what one table at a time can do: jobs that read several lose their home as one of them moves. Which of them
come nearest to two published numbers of V1, the worst region and the deviation, `fit` asks on weeks of its own; what
else follows is compared on others. Neither are the weights of the objective: where w_1, what tables that are read
across regions cost, is 0, nothing but Expression 6 speaks for training at home; that is compared too, and not fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....simulator.warehouse import mast_statistics
from ...comparing.intervals import Estimate, estimate, paired_difference
from ..case import Outcome
from ..findings import Findings, Options
from ..rows import Row, bounded, printed, ratio
from ..sweep import sweep_by
from .mast_week import QUOTA_SHARE, READS, REGIONS, REMOTE, SIZE_READS, V0, V1, V2, size_of, week_case
from .mast_weeks import MOST_WAITING

WEEKS = 10
FIT_SEED, FIT_WEEKS = 1000, 15
FIT_READS, FIT_SIZE_READS = (1.18, 1.2, 1.22, 1.24, 1.26, 1.3, 1.4, 1.5), (0.0, 0.25, 0.5, 1.0)
GRID_READS, GRID_SIZE_READS = (1.0, 1.22, 1.3, 1.5, 2.0), (0.0, 0.5, 1.0)
QUICK_READS, QUICK_SIZE_READS = (1.0, 2.0), (0.0, 1.0)
DEVIATIONS = (0.18, 0.375)  # of V1's: the published 0.30, 40 % less to 25 % more
LEAST_GAP = 10.0  # points that V2 collocates more than V1


class Point(NamedTuple):
    """What jobs read, `mast_like`'s parameters, and w_1 of the objective."""

    reads: float
    size_reads: float
    remote: float = REMOTE

    def __str__(self) -> str:
        weight = "" if self.remote == REMOTE else f", w_1={self.remote:g}"
        return f"reads={self.reads:g}, size_reads={self.size_reads:g}{weight}"


Weeks = Mapping[tuple[Point, str], Sequence[Outcome]]
USUAL = Point(READS, SIZE_READS)
WEIGHED = tuple(Point(reads, 0.0, 0.0) for reads in (1.22, 1.3, 1.5))  # played with w_1 = 0, too


def _weeks(
    what: str, options: Options, points: Iterable[Point], versions: Sequence[str], seeds: Sequence[int]
) -> Weeks:
    size = size_of(options.quick)
    cases = {}
    for point in points:
        for version in versions:
            played = point._replace(remote=REMOTE) if version == V0 else point  # which plans no moves
            cases[point, version] = [week_case(version, seed, *size, *played) for seed in seeds]
    return sweep_by(what, cases, options)


def fit(options: Options) -> Findings:
    """How far V1 is from its published worst region and deviation at each point of the grid, on the fit's own weeks."""
    count = 2 if options.quick else FIT_WEEKS
    points = _grid(options, FIT_READS, FIT_SIZE_READS)
    weeks = _weeks("mast-families-fit", options, points, (V1,), range(FIT_SEED, FIT_SEED + count))
    rows: list[Row] = []
    misses: dict[Point, tuple[bool, float]] = {}
    for point in points:
        worst, deviation = (estimate(_each(weeks, point, V1, field)) for field in ("worst", "deviation"))
        found = _worst(point, worst), _deviation(point, deviation)
        misses[point] = not all(row.ok for row in found), _miss(worst.mean, deviation.mean)
        rows += [*found, printed(f"{point}: miss", misses[point][1])]
    best = min(misses, key=lambda point: misses[point])
    rows += [printed("fitted reads", best.reads), printed("fitted size_reads", best.size_reads)]
    note = (
        f"fitted: the point with the least miss among those inside both ranges, if there are any; the miss is the "
        f"root of the sum of the squares of ln(ours / published) of V1's "
        f"worst region and deviation, on {count} weeks from seed {FIT_SEED} on, which mast-families does not play; "
        f"mast-overload and its like are drawn with {USUAL}"
    )
    return Findings(rows, [note])


def _miss(worst: float, deviation: float) -> float:
    ratios = np.array([worst / mast_statistics.OVERLOAD["V1"], deviation / mast_statistics.OVERLOAD_DEVIATION["V1"]])
    return float(np.sqrt((np.log(ratios) ** 2).sum()))


def _grid(options: Options, reads: Sequence[float], size_reads: Sequence[float]) -> list[Point]:
    """The points of a grid, and the fitted one."""
    if options.quick:
        reads, size_reads = QUICK_READS, QUICK_SIZE_READS
    grid = {USUAL, *(Point(one, other) for one in reads for other in size_reads)}
    return sorted(grid, key=lambda point: (point.size_reads, point.reads))


def families(options: Options) -> Findings:
    """All figures at each point; which points have them all."""
    seeds = options.seeds(WEEKS)
    points = _grid(options, GRID_READS, GRID_SIZE_READS)
    points += [] if options.quick else WEIGHED
    weeks = _weeks("mast-families", options, points, (V0, V1, V2), seeds)
    rows: list[Row] = []
    whole, most = [], []
    for point in [USUAL, *(point for point in points if point != USUAL)]:
        found = _figures(weeks, point)
        rows += found
        if all(row.ok for row in found if row.ok is not None):
            whole.append(str(point))
        if found[0].ok and found[1].ok and (found[2].ok or found[3].ok):
            most.append(str(point))
    rows.append(printed("points of the sweep that have all figures", float(len(whole)), "", "1"))
    tables, days = size_of(options.quick)
    notes = [
        f"means and 95 % intervals over {len(seeds)} generated weeks of {days} days: {tables} tables in {REGIONS} "
        f"regions, {100 * QUOTA_SHARE:g} % of all bytes a day across regions. First the fitted point, with which "
        f"mast-overload and its like are drawn: {USUAL}; mast-families-fit fits it to V1's overload alone",
        "points with worst region and deviation, and training at home or what V2 collocates more: "
        f"{'; '.join(most) or 'none'}",
        f"points that have all figures: {'; '.join(whole) or 'none'}",
    ]
    return Findings(rows, notes)


def _figures(weeks: Weeks, point: Point) -> list[Row]:
    """The published figures at a point, and V2's worst region."""
    gain = mast_statistics.HOME_RATE["V1"] - mast_statistics.HOME_RATE["V0"]
    gap, at_home = (_points(weeks, point, field, V2, V1) for field in ("collocated", "collocated_at_home"))
    waiting = estimate(_each(weeks, point, V2, "waiting"))
    four = estimate(_each(weeks, point, V2, "four"))
    return [
        _worst(point, estimate(_each(weeks, point, V1, "worst"))),
        _deviation(point, estimate(_each(weeks, point, V1, "deviation"))),
        ratio(f"{point}: training at home, V1 - V0, points", gain, _points(weeks, point, "home", V1, V0), ""),
        bounded(f"{point}: GPU-hours collocated, V2 - V1, points", "18", gap, (LEAST_GAP, 100.0), ""),
        printed(f"{point}: GPU-hours collocated by homes alone, V2 - V1, points", at_home, ""),
        bounded(f"{point}: wait for data, V2", "below 0.1", waiting, (0.0, MOST_WAITING), "%"),
        bounded(
            f"{point}: two candidate regions or more, V2",
            "most",
            estimate(_each(weeks, point, V2, "two")),
            (50.0, 100.0),
            "%",
        ),
        ratio(f"{point}: four candidate regions or more, V2", 40.0, four),
        printed(f"{point}: worst region, V2", estimate(_each(weeks, point, V2, "worst"))),
    ]


def _worst(point: Point, worst: Estimate) -> Row:
    return ratio(f"{point}: worst region, V1", mast_statistics.OVERLOAD["V1"], worst, "")


def _deviation(point: Point, deviation: Estimate) -> Row:
    return bounded(
        f"{point}: deviation, V1", f"{mast_statistics.OVERLOAD_DEVIATION['V1']:g}", deviation, DEVIATIONS, ""
    )


def _points(weeks: Weeks, point: Point, field: str, version: str, base: str) -> Estimate:
    """By how much a field is higher under a version than under another, week by week."""
    return paired_difference(_each(weeks, point, version, field), _each(weeks, point, base, field))


def _each(weeks: Weeks, point: Point, version: str, field: str) -> list[float]:
    return [week.metrics[field] for week in weeks[point, version]]
