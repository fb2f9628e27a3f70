"""Demand of generator `mast-like` that changes: recurring families are replaced by day, and peaks follow time zones.

Nothing of it is published. Each day a share of the active families, the oldest, is replaced by others, so that each has
its turn. Families of a team that read the same tables come and go together, so tables fall out of use and new ones come
into it. All workloads of a day are of active families. Tables have their sizes, at their homes, from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..warehouse import mast_statistics as mast
from ..warehouse.job_families import Families
from .mast_rows import DAY_S, HOUR_S, JITTER_S, PEAK_H, SWING, Rows, Scale, curve, cycled, drawn

STEPS_A_DAY = 1440  # of the cumulated rate


@dataclass(frozen=True)
class Active:
    """The active families by day, from day -1: recurring and other ones at each place, int64 (1 + days, places)."""

    recurring: np.ndarray
    others: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, families: Families, days: int, drift: float) -> Active:
        """Families of `days` days and the one before; of each day the share `drift` of the last is replaced."""
        order = np.lexsort((rng.random(len(families)), families.table[families.first[:-1]], families.owner))
        place = np.argsort(order)
        within = place - np.searchsorted(families.owner[order], families.owner)
        age = (within + rng.random(len(families))) / np.bincount(families.owner)[families.owner]
        oldest = np.argsort(age, kind="stable")
        recur = families.recurring[oldest]
        return cls(_turns(oldest[recur], days, drift), _turns(oldest[~recur], days, drift))

    def members(self, families: Families, day: int) -> np.ndarray:
        """The families of a day's one-time workloads, each as often as it has such, int64 (n,); -1: the day before."""
        there = np.unique(np.concatenate([self.recurring[1 + day], self.others[1 + day]]))
        count = families.size[there] - families.recurring[there]
        return np.repeat(there, count if count.any() else 1)


def _turns(family: np.ndarray, days: int, drift: float) -> np.ndarray:
    """Of families, oldest first, those at each place, int64 (1 + days, places): by day others replace the oldest."""
    if len(family) == 0:
        return np.zeros((1 + days, 0), np.int64)
    places = max(1, round(len(family) / (1.0 + drift * days)))
    each = max(1, round(drift * places))
    line = np.resize(family, places + each * days)
    found = np.empty((1 + days, places), np.int64)
    found[0] = line[:places]
    for day in range(1, 1 + days):
        come = np.arange(each * (day - 1), each * day)
        found[day] = found[day - 1]
        found[day, come % places] = line[places + come]
    return found


def drifting(
    rng: np.random.Generator, families: Families, active: Active, how: Scale, span_s: float, per_day: float, count: int
) -> tuple[Rows, Rows]:
    """`count` workloads as `arrivals` draws them, of the day's active families; and the recurring ones of day -1."""
    regular = _regular(rng, families, active, how, per_day)
    at = regular.arrival_s
    before, rows = (regular.only(np.flatnonzero(of)) for of in (at < 0.0, (at >= 0.0) & (at < span_s)))
    rows = rows.only(np.sort(rng.permutation(len(rows.name))[:count]))
    left = count - len(rows.name)
    at = np.sort(curve(rng, left, span_s))
    of_day = np.bincount((at // DAY_S).astype(np.int64), minlength=len(active.recurring) - 1)
    family = [cycled(rng, active.members(families, day), size) for day, size in enumerate(of_day.tolist())]
    new = drawn(rng, families, np.concatenate(family), how)
    name = np.array([f"f{row}" for row in range(left)], object)
    return Rows.joined([rows, new.only(np.arange(left), arrival_s=at, name=name)]), before


def _regular(rng: np.random.Generator, families: Families, active: Active, how: Scale, per_day: float) -> Rows:
    """What recurs, from the day before the first; what comes to a place with a new family is drawn anew."""
    days, places = active.recurring.shape
    place = cycled(rng, np.arange(places), round(mast.RECURRING_SHARE * per_day))
    turn = np.zeros(len(place), np.int64)
    rows = drawn(rng, families, active.recurring[0][place], how)
    at, parts = curve(rng, len(place), DAY_S), []
    for day in range(days):
        if day > 0:
            new = np.flatnonzero((active.recurring[day] != active.recurring[day - 1])[place])
            order = np.arange(len(place))
            order[new] = len(place) + np.arange(len(new))
            rows = Rows.joined([rows, drawn(rng, families, active.recurring[day][place[new]], how)]).only(order)
            at[new], turn[new] = curve(rng, len(new), DAY_S), day
        arrival_s = (day - 1) * DAY_S + (at + JITTER_S * rng.standard_normal(len(at))) % DAY_S
        name = np.array([f"r{row}-{since}.{day - 1}" for row, since in enumerate(turn.tolist())], object)
        every = np.arange(len(place))
        parts.append(rows.only(every, arrival_s=arrival_s, recurring=np.ones(len(place), bool), name=name))
    return Rows.joined(parts)


def known_s(name: np.ndarray, arrival_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A run of each recurring workload, int64 (n,), and from when until when it is known, float64 (n, 2).

    The slow path counts on the last 24 hours. `name`: of each run, to the point. `arrival_s`: float64 (runs,).
    """
    _, once, which = np.unique([one.split(".")[0] for one in name.tolist()], return_index=True, return_inverse=True)
    since, until = np.full(len(once), np.inf), np.full(len(once), -np.inf)
    np.minimum.at(since, which.ravel(), arrival_s)
    np.maximum.at(until, which.ravel(), arrival_s + DAY_S)
    order = np.argsort(once)
    return once[order], np.stack([since, until], axis=1)[order]


def in_zones(arrival_s: np.ndarray, ahead_h: np.ndarray, span_s: float) -> np.ndarray:
    """Arrivals at the hourly rate of time 0's place, moved to places `ahead_h`, float64 (n,), hours ahead, seconds.

    Each keeps its share of the arrivals of `span_s` by the local clock, so numbers stay; of whole days, its hour.
    """
    grid = np.linspace(0.0, span_s, max(2, int(np.ceil(STEPS_A_DAY * span_s / DAY_S)) + 1))
    plain, found = _come(grid, 0.0), np.empty(len(arrival_s))
    for ahead in np.unique(ahead_h).tolist():
        rows = ahead_h == ahead
        there = _come(grid, ahead)
        share = np.interp(arrival_s[rows], grid, plain) / plain[-1]
        found[rows] = np.interp(share * there[-1], there, grid)
    return found


def _come(grid: np.ndarray, ahead_h: float) -> np.ndarray:
    angle = 2.0 * np.pi / 24.0
    hours = grid / HOUR_S
    wave = np.sin(angle * (hours + ahead_h - PEAK_H)) - np.sin(angle * (ahead_h - PEAK_H))
    found: np.ndarray = hours + SWING / angle * wave
    return found
