"""Axes of a chart: the place of a value between 0 and 1, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.base.durations import duration, unit

_MIN, _HOUR, _DAY = 60.0, 3600.0, 86400.0
# Round durations, in order of preference; a log axis takes the first kinds first, while there is room.
ROUND_S = (
    (1.0, 10.0, _MIN, 10 * _MIN, _HOUR, 10 * _HOUR, 4 * _DAY, 40 * _DAY, 400 * _DAY),
    (3.0, 30.0, 3 * _MIN, 30 * _MIN, 3 * _HOUR, _DAY, 10 * _DAY, 100 * _DAY),
    (2.0, 5.0, 20.0, 2 * _MIN, 5 * _MIN, 20 * _MIN, 2 * _HOUR, 5 * _HOUR, 15 * _HOUR, 2 * _DAY, 20 * _DAY),
    (1.5 * _HOUR, 2.5 * _HOUR, 4 * _HOUR, 7 * _HOUR, 15 * _MIN, 45 * _MIN),
)
RATIOS = ((1.0,), (0.5, 2.0, 5.0, 10.0), (0.8, 1.5, 3.0), (0.9, 1.2, 0.7), (0.95, 1.1, 0.6, 4.0, 7.0), (0.98, 1.05))
Ticks = tuple[tuple[float, str], ...]  # value and text of each
MOST_TICKS, MOST_VALUES = 6, 9
LONG_FACTOR = 3.0  # durations that span more have a log axis
FAR_FACTOR = 20.0  # other values that span more have one


@dataclass(frozen=True)
class Axis:
    """A range, its scale and its ticks."""

    low: float  # the ends, low < high; both > 0 on a log scale
    high: float
    log: bool  # whether equal factors are equal lengths
    ticks: Ticks  # inside the range

    def at(self, values: np.ndarray | float) -> np.ndarray:
        """Places of values: 0 at `low`, 1 at `high`; values outside move to the nearer end."""
        clipped = np.clip(np.asarray(values, np.float64), self.low, self.high)
        if self.log:
            return np.log(clipped / self.low) / math.log(self.high / self.low)
        return (clipped - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        """(place in per cent, text) of each tick."""
        return [(round(100.0 * float(self.at(value)), 2), text) for value, text in self.ticks]


def linear(low: float, high: float, text: Callable[[float], str] = "{:g}".format) -> Axis:
    """An axis of equal steps between the given ends."""
    high = high if high > low else low + 1.0
    step = _round_step((high - low) / (MOST_TICKS - 1))
    first = math.ceil(low / step - 1e-9)
    values = [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]
    return Axis(low, high, False, tuple((value, text(value)) for value in values))


def widened(low: float, high: float, text: Callable[[float], str] = "{:g}".format) -> Axis:
    """An axis of equal steps with a little room at both ends, but none below 0 for values >= 0."""
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return linear(max(low - room, 0.0) if low >= 0.0 else low - room, high + room, text)


def durations(low_s: float, high_s: float) -> Axis:
    """An axis of equal steps in a readable unit."""
    unit_s, sign = unit(high_s)
    inner = linear(low_s / unit_s, high_s / unit_s)
    ticks = tuple((value * unit_s, f"{value:g} {sign}") for value, _ in inner.ticks)
    return Axis(inner.low * unit_s, inner.high * unit_s, False, ticks)


def log_durations(low_s: float, high_s: float) -> Axis:
    """A log axis with round durations."""
    low_s = max(low_s, 1e-3)
    high_s = max(high_s, 1.05 * low_s)
    return Axis(low_s, high_s, True, _ticks(ROUND_S, low_s, high_s, duration))


def between(low_s: float, high_s: float) -> Axis:
    """An axis for durations between these, with a little room; logarithmic where they are far apart."""
    if low_s > 0.0 and high_s > LONG_FACTOR * low_s:
        return log_durations(low_s / 1.06, high_s * 1.06)
    room = 0.06 * (high_s - low_s) or 0.06 * high_s
    return durations(max(low_s - room, 0.0), high_s + room)


def categories(names: Sequence[str]) -> Axis:
    """An axis of names at equal distances, each in the middle of its part."""
    return Axis(0.0, float(len(names)), False, tuple((number + 0.5, name) for number, name in enumerate(names)))


def of_values(values: Sequence[str]) -> tuple[Axis, list[float]]:
    """An axis of some values, and the place of each: by size where all are numbers, else at equal distances."""
    sizes = [number_of(value) for value in values]
    known = np.array([size for size in sizes if size is not None])
    if len(known) < len(values):
        known = np.arange(len(values), dtype=float)
    is_long = bool(known.min() > 0.0 and known.max() > FAR_FACTOR * known.min())
    low, high = float(known.min()), float(known.max())
    step = max(1, math.ceil(len(values) / MOST_VALUES))
    ticks = tuple((float(size), value) for size, value in zip(known, values, strict=True))[::step]
    axis = Axis(low, high if high > low else low + 1.0, is_long, ticks)
    return axis, axis.at(known).tolist()


def number_of(text: str) -> float | None:
    """The finite number in a text; None: there is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def log_numbers(low: float, high: float) -> Axis:
    """A log axis of numbers > 0."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    kinds = [[size * one for one in powers] for size in (1, 3, 2, 5)]
    return Axis(low, high, True, _ticks(kinds, low, high, "{:g}".format))


def log_ratios(low: float, high: float) -> Axis:
    """A log axis of ratios around 1."""
    low, high = max(min(low, 0.98), 1e-3), max(high, 1.02)
    return Axis(low, high, True, _ticks(RATIOS, low, high, "{:g}".format))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))


def _ticks(kinds: Sequence[Sequence[float]], low: float, high: float, text: Callable[[float], str]) -> Ticks:
    """Ticks of the kinds in turn, each at some distance from those before it."""
    apart = math.log(high / low) / (1.8 * MOST_TICKS)
    chosen: list[float] = []
    for values in kinds:
        if len(chosen) >= 4:
            break
        for value in values:
            if low <= value <= high and all(abs(math.log(value / other)) >= apart for other in chosen):
                chosen.append(value)
    return tuple((value, text(value)) for value in sorted(chosen))
