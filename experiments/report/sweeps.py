"""One parameter at several values (`evaluate --sweep`): a line a policy, with its 95 % interval as a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.base.names import parse_name
from ..comparing.intervals import Estimate
from ..settings.sweeping import PLACES
from ..tensorboard_log import folder_name
from . import axes
from .charts import Chart, Label, Shape, grid, polyline, segment
from .colours import Style
from .load import Section

PLOT_PX = 330
MOST_TICKS = 9
WIDEST = 2.0  # of few seeds an interval reaches at most so many times beyond what is in sight
Lines = Mapping[str, Sequence[Estimate | None]]  # label -> its number at each value
LONG = 20.0  # values that span more than this factor have a log axis


@dataclass(frozen=True)
class Swept:
    """Settings that differ in one parameter.

    Attributes:
        name: of the parameter: `workload.load`, `mtbf_s`.
        values: of each setting, as text, in the order of the chart.
        sections: what was played at each.
    """

    name: str
    values: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def labels(self) -> list[str]:
        """Policies that were played at several values."""
        counts: dict[str, int] = {}
        for section in self.sections:
            for entry in section.entries:
                counts[entry.label] = counts.get(entry.label, 0) + 1
        return [label for label, count in counts.items() if count > 1]

    @property
    def baseline(self) -> str | None:
        """That of all sections, if it is one."""
        baselines = {section.baseline for section in self.sections}
        return next(iter(baselines)) if len(baselines) == 1 else None


def swept(name: str, sections: Mapping[str, Section]) -> Swept:
    """A sweep from what was played at each value: ascending where the values are numbers, else as they come."""
    numbers = [_number(value) for value in sections]
    known = [number for number in numbers if number is not None]
    order = list(sections)
    if len(known) == len(order):
        order = [value for _, value in sorted(zip(known, order, strict=True))]
    return Swept(name, tuple(order), tuple(sections[value] for value in order))


def found(sections: Sequence[Section]) -> Swept | None:
    """The sweep that some settings are; None where they differ in more than one parameter, or there are not two."""
    if len(sections) < 2:
        return None
    parameters = [_parameters(section.setting.words()) for section in sections]
    names = dict.fromkeys(name for some in parameters for name in some)
    differing = [name for name in names if len({some.get(name) for some in parameters}) > 1]
    if len(differing) != 1:
        return None
    values = [some.get(differing[0]) for some in parameters]
    if None in values or len(set(values)) < len(values):
        return None
    return swept(differing[0], dict(zip(map(str, values), sections, strict=True)))


def _parameters(words: Mapping[str, Any]) -> dict[str, str]:
    """A setting by its parameters, those of its words one by one."""
    told: dict[str, str] = {}
    for key, value in words.items():
        try:
            name, params = parse_name(str(value), key) if key in PLACES else (str(value), {})
        except InputError:  # a file, or a word of its own kind
            name, params = str(value), {}
        told[key] = name
        told |= {f"{key}.{name}": text for name, text in params.items()}
    return told


def charts(sweep: Swept, styles: Mapping[str, Style]) -> list[Chart]:
    """The mean JCT over the values; and its ratio to the baseline's, if there is one."""
    means = {label: [_of(section, label, is_ratio=False) for section in sweep.sections] for label in sweep.labels}
    drawn = [_chart(sweep, styles, means, f"Mean JCT over {sweep.name}", is_ratio=False)]
    if sweep.baseline is not None:
        ratios = {
            label: [_of(section, label, is_ratio=True) for section in sweep.sections]
            for label in sweep.labels
            if label != sweep.baseline
        }
        title = f"Mean JCT as a ratio to {sweep.baseline}, over {sweep.name}"
        drawn.append(_chart(sweep, styles, ratios, title, is_ratio=True))
    return [chart for chart in drawn if chart is not None]


def _of(section: Section, label: str, is_ratio: bool) -> Estimate | None:
    entry = next((entry for entry in section.entries if entry.label == label), None)
    if entry is None:
        return None
    value = section.ratio(entry) if is_ratio else entry.estimate("jct_mean")
    return value if value is not None and math.isfinite(value.mean) and value.mean > 0.0 else None


def _chart(
    sweep: Swept,
    styles: Mapping[str, Style],
    lines: Mapping[str, Sequence[Estimate | None]],
    title: str,
    is_ratio: bool,
) -> Chart | None:
    every = [value for line in lines.values() for value in line if value is not None]
    if not every:
        return None
    means = [value.mean for value in every]
    low, high = min(means), max(means)
    low = max(min(value.low for value in every), low / WIDEST)
    high = min(max(value.high for value in every), high * WIDEST)
    y = axes.log_ratios(0.98 * low, 1.02 * high) if is_ratio else _times(low, high)
    x, at = _x_axis(sweep.values)
    shapes = [grid(x, y)]
    if is_ratio:
        shapes.append(Shape("one", segment(0.0, 1.0, float(y.at(1.0)))))
    ends = []
    for label, line in lines.items():
        there = [(place, value) for place, value in zip(at, line, strict=True) if value is not None]
        if not there:
            continue
        places = np.array([place for place, _ in there])
        shapes += _line(styles[label].classes, places, [value for _, value in there], y)
        ends.append(Label(styles[label].classes, 100.0 * float(y.at(there[-1][1].mean)), label))
    return Chart(
        title=title,
        summary="; ".join(f"{label}: {_said(sweep.values, line, is_ratio)}" for label, line in lines.items()),
        height=PLOT_PX,
        x=x,
        y=y,
        x_label=sweep.name,
        y_label="below 1 is better (log scale)" if is_ratio else f"mean JCT{' (log scale)' if y.log else ''}",
        shapes=shapes,
        ends=ends,
        legend=[(end.classes, end.text) for end in sorted(ends, key=lambda end: -end.at)],
        note=f"Dots: means over seeds. Bands: {'paired ' * is_ratio}95 % intervals.",
        name=f"sweep-{folder_name(sweep.name)}-{'jct-ratio' if is_ratio else 'jct'}",
    )


def _line(classes: str, places: np.ndarray, values: Sequence[Estimate], y: axes.Axis) -> list[Shape]:
    """A band, a line and a dot a value."""
    low, mean, high = (y.at(np.array([getattr(value, name) for value in values])) for name in ("low", "mean", "high"))
    around = polyline(np.concatenate([places, places[::-1]]), np.concatenate([high, low[::-1]]))
    dots = "".join(segment(place, place, level) for place, level in zip(places.tolist(), mean.tolist(), strict=True))
    has_band = len(values) > 1 and not all(value.is_sure for value in values)
    band = [Shape(f"band {classes}", f"{around}z")] if has_band else []
    return [*band, Shape(f"line {classes}", polyline(places, mean)), Shape(f"dot {classes}", dots)]


def _times(low: float, high: float) -> axes.Axis:
    if high > 3.0 * low:
        return axes.log_durations(low / 1.05, high * 1.05)
    room = 0.06 * (high - low) or 0.06 * high
    return axes.durations(max(low - room, 0.0), high + room)


def _x_axis(values: Sequence[str]) -> tuple[axes.Axis, list[float]]:
    """The axis and the place of each value: by its size where all are numbers, else one beside the other."""
    sizes = [_number(value) for value in values]
    known = np.array([size for size in sizes if size is not None])
    if len(known) < len(values):
        known = np.arange(len(values), dtype=float)
    is_long = bool(known.min() > 0.0 and known.max() > LONG * known.min())
    low, high = float(known.min()), float(known.max())
    step = max(1, math.ceil(len(values) / MOST_TICKS))
    ticks = tuple((float(size), value) for size, value in zip(known, values, strict=True))[::step]
    axis = axes.Axis(low, high if high > low else low + 1.0, is_long, ticks)
    return axis, axis.at(known).tolist()


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _said(values: Sequence[str], line: Sequence[Estimate | None], is_ratio: bool) -> str:
    told = [
        f"{value}: {f'{one.mean:.3f}' if is_ratio else axes.duration(one.mean)}"
        for value, one in zip(values, line, strict=True)
        if one is not None
    ]
    return ", ".join(told)
