"""Learning curves: agents over training steps, heuristics as level lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...simulator.base.durations import duration
from ...simulator.engine.metric_registry import GROUPS, METRICS, kind_of
from ..charts import axes
from ..charts.chart import Chart, Label, Shape, chart_name, grid, polyline, segment
from ..charts.marks import Style
from .load import Training

# tag: (title, whether in seconds)
SHOWN: Mapping[str, tuple[str, bool]] = {
    **{metric.tag: (metric.curve, metric.unit == "s") for metric in METRICS.values() if metric.curve},
    "rollout/ep_rew_mean": ("Return of training episodes", False),
}
RATIO = r"(?:against|ratio_to)_(.+)/mean"  # a tag that the training of an agent writes, or wrote in earlier versions
FIRST = METRICS["jct_mean"].tag
FIRST_PX, OTHER_PX = 340, 260
Agents = Mapping[Training, Style]
OUT_OF_SIGHT = 4.0


def charts(trainings: Sequence[Training], agents: Agents, heuristics: Mapping[str, Style]) -> list[Chart]:
    """The charts of trainings (at least one) with one yardstick; `heuristics`: styles by folder name of the policy."""
    ratios = sorted({tag for one in trainings for tag in one.agent if re.fullmatch(RATIO, tag)})
    known = {tag for one in trainings for tag in one.agent}
    left_out = {metric.tag for metric in METRICS.values() if kind_of(known) == GROUPS and GROUPS not in metric.tables}
    others = [tag for tag in SHOWN if tag != FIRST and tag not in left_out]
    found = [_chart(tag, trainings, agents, heuristics) for tag in (FIRST, *ratios, *others)]
    drawn = [chart for chart in found if chart is not None]
    return [
        replace(chart, height=OTHER_PX if number else FIRST_PX).with_labels_apart()
        for number, chart in enumerate(drawn)
    ]


def _chart(tag: str, trainings: Sequence[Training], agents: Agents, heuristics: Mapping[str, Style]) -> Chart | None:
    ratio = re.fullmatch(RATIO, tag)
    title, is_time = (f"Mean JCT as a ratio to {ratio[1]}", False) if ratio else SHOWN[tag]
    curves = {one: np.array(one.agent[tag], np.float64).reshape(-1, 2) for one in trainings if one.agent.get(tag)}
    if not curves:
        return None
    levels = {name: tags[tag] for one in trainings for name, tags in one.heuristics.items() if tag in tags}
    levels |= {ratio[1]: 1.0} if ratio and ratio[1] in heuristics else {}
    y = _y_axis(np.concatenate([curve[:, 1] for curve in curves.values()]), np.array(list(levels.values())), is_time)
    levels = {name: level for name, level in levels.items() if y.low <= level <= y.high}
    x = axes.linear(0.0, max(float(curve[-1, 0]) for curve in curves.values()), _steps)
    shapes, ends = [grid(None, y)], []
    for name, level in levels.items():
        shapes.append(Shape(f"line level {heuristics[name].classes}", [segment(0.0, 1.0, float(y.at(level)))]))
        ends.append(Label(heuristics[name].classes, 100.0 * float(y.at(level)), name))
    for one, curve in curves.items():
        last, place = float(x.at(curve[-1, 0])), float(y.at(curve[-1, 1]))
        shapes.append(Shape(f"line {agents[one].classes}", [polyline(x.at(curve[:, 0]), y.at(curve[:, 1]))]))
        shapes.append(Shape(f"mean {agents[one].classes}", [segment(last, last, place)]))
        ends.append(Label(agents[one].classes, 100.0 * place, _name(one)))
    ended = [f"{_name(one)} ends at {_value(curve[-1, 1], is_time)}" for one, curve in curves.items()]
    summary = "; ".join([*ended, *(f"{name} {_value(level, is_time)}" for name, level in levels.items())])
    legend, name = [(end.classes, end.text) for end in sorted(ends, key=lambda end: -end.at)], chart_name(tag)
    about: Any = {"ends": ends, "legend": legend, "name": f"learning-{name}"}
    return Chart(title, summary, OTHER_PX, x, y, "training steps", shapes=shapes, **about)


def _name(training: Training) -> str:
    return training.folder.resolve().name


def _y_axis(curve: np.ndarray, levels: np.ndarray, is_time: bool) -> axes.Axis:
    """Room for all curves and for the heuristics, but for those far above the best."""
    near = levels[levels <= OUT_OF_SIGHT * np.min(curve)] if is_time else levels
    every = np.concatenate([curve, near])
    low, high = float(every.min()), float(every.max())
    return axes.between(low, high) if is_time else axes.widened(low, high)


def _value(value: float, is_time: bool) -> str:
    return duration(value) if is_time else f"{value:.3g}"


def _steps(value: float) -> str:
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {sign}"
    return f"{value:g}"
