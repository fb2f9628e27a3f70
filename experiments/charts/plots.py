"""Bars, distributions, curves, and means over the values of a parameter, of numbers by label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...simulator.base.durations import duration
from ..comparing.intervals import Estimate
from . import axes
from .axes import Axis
from .chart import Chart, Label, Shape, box, grid, polyline, segment, staircase, upright
from .marks import Style

PLOT_PX = 330
CDF_POINTS = 140
BARS, BAR = 0.8, 0.92  # of a group's room: all bars together; of a bar's: the bar
Styles = Mapping[str, Style]
Curve = tuple[np.ndarray, np.ndarray]
Curves = Mapping[str, Curve]
Thin = Mapping[str, Sequence[Curve]]
Said = Callable[[float], str]
Series = Mapping[str, Sequence[Estimate]]
Lines = Mapping[str, Sequence[Estimate | None]]


def bars(
    groups: Sequence[str], series: Series, styles: Styles, y: Axis, said: Said = "{:.3g}".format, **about: Any
) -> Chart:
    """Bars beside each other, group after group, with their 95 % intervals; they stand on 0 of `y`, or on its low end.

    `series`: label -> one estimate a group; there is no bar for nan. `said` writes a number of the summary.
    """
    x, wide, foot = axes.categories(groups), BARS / len(series), float(y.at(0.0))
    shapes, errors = [grid(None, y)], []
    for number, (label, values) in enumerate(series.items()):
        boxes = []
        for group, one in enumerate(values):
            left = float(x.at(group + (1.0 - BARS) / 2.0 + number * wide))
            right = left + BAR * wide / len(groups)
            if one.mean == one.mean:
                boxes.append(box(left, right, foot, float(y.at(one.mean))))
                middle = (left + right) / 2.0
                errors += [] if one.is_sure else [upright(middle, float(y.at(one.low)), float(y.at(one.high)))]
        shapes.append(Shape(f"bar {styles[label].classes}", boxes, closed=True))
    summaries = [f"{label}: {', '.join(said(one.mean) for one in values)}" for label, values in series.items()]
    drawn = [*shapes, Shape("error", errors), Shape("one", [segment(0.0, 1.0, foot)])]
    keys = [(f"bar {styles[label].classes}", label) for label in series]
    return _chart(x, y, drawn, f"{', '.join(groups)}. {'; '.join(summaries)}", legend=keys, **about)


def distribution(values: Mapping[str, np.ndarray], styles: Styles, **about: Any) -> Chart | None:
    """Share of durations (label -> seconds) within a time, on a log axis; None if none is above 0."""
    pooled = {label: np.sort(some) for label, some in values.items() if np.any(some > 0.0)}
    if not pooled:
        return None
    low_s = min(float(np.quantile(some[some > 0.0], 0.005)) for some in pooled.values())
    x = axes.log_durations(low_s, max(float(some[-1]) for some in pooled.values()))
    y = axes.linear(0.0, 100.0, "{:g} %".format)
    share = np.linspace(0.0, 1.0, CDF_POINTS)
    lines = {label: (np.quantile(some, share), 100.0 * share) for label, some in pooled.items()}
    half = "; ".join(f"{label}: half within {duration(float(np.median(some)))}" for label, some in pooled.items())
    found = curves(lines, styles, x, y, summary=half, **about)
    return found.with_shapes(grid(x, None), first=True)


def curves(lines: Curves, styles: Styles, x: Axis, y: Axis, thin: Thin | None = None, **about: Any) -> Chart:
    """A line a label, those of agents above the others, better above worse; `thin`: label -> lines below its line.

    `lines`: label -> x and y; a step function has one more x than y: the edges of its steps.
    """
    best_last = list(lines)[::-1]
    order = [one for is_agent in (False, True) for one in best_last if styles[one].is_agent is is_agent]
    thins = (thin or {}).items()
    fine = [Shape(f"thin {styles[label].classes}", [_path(curve, x, y) for curve in some]) for label, some in thins]
    drawn = [Shape(f"line {styles[label].classes}", [_path(lines[label], x, y)]) for label in order]
    keys = [(styles[label].classes, label) for label in lines]
    return _chart(x, y, [grid(None, y), *fine, *drawn], **{"legend": keys, "summary": "; ".join(lines)} | about)


def _path(curve: Curve, x: Axis, y: Axis) -> np.ndarray:
    along, up = curve
    return (staircase if len(along) > len(up) else polyline)(x.at(along), y.at(up))


def means(values: Sequence[str], lines: Lines, styles: Styles, y: Axis, said: Said, **about: Any) -> Chart:
    """Means over the values of a parameter: a line a label with a dot a value, the 95 % interval as a band.

    `values` are text; numbers lie at their size. `lines`: label -> one estimate a value, or None. `said` writes a
    number of the summary.
    """
    x, at = axes.of_values(values)
    shapes, ends, summaries = [grid(x, y)], [], []
    for label, line in lines.items():
        there = [(place, value) for place, value in zip(at, line, strict=True) if value is not None]
        numbers = [f"{value}: {said(one.mean)}" for value, one in zip(values, line, strict=True) if one is not None]
        summaries.append(f"{label}: {', '.join(numbers)}")
        if there:
            shapes += _means(styles[label].classes, [at for at, _ in there], [one for _, one in there], y)
            ends.append(Label(styles[label].classes, 100.0 * float(y.at(there[-1][1].mean)), label))
    keys = [(end.classes, end.text) for end in sorted(ends, key=lambda end: -end.at)]
    return _chart(x, y, shapes, "; ".join(summaries), ends=ends, legend=keys, **about).with_labels_apart()


def _means(classes: str, places: list[float], values: list[Estimate], y: Axis) -> list[Shape]:
    low, mean, high = (y.at(np.array([getattr(value, name) for value in values])) for name in ("low", "mean", "high"))
    around = polyline(np.array([*places, *places[::-1]]), np.concatenate([high, low[::-1]]))
    has_band = len(values) > 1 and not all(value.is_sure for value in values)
    band = [Shape(f"band {classes}", [around], closed=True)] if has_band else []
    dots = [segment(place, place, level) for place, level in zip(places, mean.tolist(), strict=True)]
    return [*band, Shape(f"line {classes}", [polyline(np.array(places), mean)]), Shape(f"dot {classes}", dots)]


def _chart(x: Axis, y: Axis, shapes: Sequence[Shape], summary: str, **about: Any) -> Chart:
    return Chart(x=x, y=y, shapes=shapes, summary=summary, **{"title": "", "height": PLOT_PX, **about})
