"""The pictures of reproductions: charts that a paper's file names, the looks of labels, files of several charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.durations import duration
from ..charts import axes, plots
from ..charts.axes import Axis
from ..charts.chart import Chart
from ..charts.chart_files import save
from ..charts.drawing import PANEL_PX, PAPER, laid_out, stacked
from ..charts.marks import DASHES, Style, styles, variables_of
from ..comparing.intervals import Estimate
from .rows import Options
from .schema import Picture

if TYPE_CHECKING:
    from .engine import Play

HOUR_S, DAY_S = 3600.0, 86400.0
MOST_LABELS = 32  # of a chart


def drawn(play: Play) -> list[Path]:
    """The pictures of a reproduction, written to the folder of the options."""
    paths = [] if play.entry.draw is None else list(play.find(play.entry.draw)(play))
    files: list[list[Picture]] = []
    for one in play.entry.pictures:
        files += [[one]] if one.file else []
        files[-1] += [] if one.file else [one]
    for some in files:
        charts = [chart for one in some for chart in _charts(play, one)]
        paths += picture(
            play.options, some[0].file, charts, play.entry.summary if len(charts) > 1 else "", min(2, len(charts))
        )
    return paths


def _charts(play: Play, one: Picture) -> list[Chart | None]:
    places = play.group(one.at)
    if one.kind == "distribution":
        return [_distribution(play, one, at) for at in places]
    policies, columns = one.policies, list(one.columns)
    names = columns or [play.label(at) for at in places]
    spots = [(at, one.columns.get(column) if column else None) for at in places for column in columns or [""]]
    series = {
        policy: [
            _times(play.runs.mean(play.number(one.number, one.factor, 1.0, value), policy, at), one)
            for at, value in spots
        ]
        for policy in policies
    }
    if one.kind == "bars":
        return [bars_of_times(names, series, one.title, one.y_label, log=one.log)]
    about = {"title": one.title, "x_label": one.x_label, "y_label": one.y_label}
    every = [value for line in series.values() for value in line]
    y = None if one.log else axes.durations(0.0, 1.03 * max(value.high for value in every))
    return [means_of_times(names, series, y, **about)]


def _times(found: Estimate, one: Picture) -> Estimate:
    scale = HOUR_S if one.hours else 1.0
    return replace(found, mean=scale * found.mean, low=scale * found.low, high=scale * found.high)


def _distribution(play: Play, one: Picture, at: str) -> Chart | None:
    times = {policy: np.concatenate([run["jct_s"] for run in play.runs.of(policy, at)]) for policy in one.policies}
    about: dict[str, Any] = {"x_label": "job completion time (log scale)", "y_label": "jobs done within it"}
    title = one.title if len(play.group(one.at)) == 1 else f"{one.title}, {play.label(at)}"
    return plots.distribution(times, looks(one.policies), title=title, **about)


def looks(labels: Iterable[str]) -> dict[str, Style]:
    """A colour and dashes a label, so that curves are told apart without colour too."""
    found = styles([], list(labels))
    return {label: replace(one, dash=DASHES[number % len(DASHES)]) for number, (label, one) in enumerate(found.items())}


def picture(
    options: Options, name: str, charts: Sequence[Chart | None], title: str = "", columns: int = 1
) -> list[Path]:
    """Write `name`.png, whole or not at all.

    Args:
        options: they name the folder.
        name: of the file.
        charts: in order; their labels look as `looks` says; None is none.
        title: of all charts together.
        columns: how many charts are beside each other.
    """
    assert options.out is not None, "pictures are drawn where there is a folder for them"
    colours = variables_of(looks(map(str, range(MOST_LABELS))))
    drawings = [laid_out(chart, colours, PAPER if columns == 1 else PANEL_PX) for chart in charts if chart is not None]
    return [save(stacked(drawings, title, columns), options.out / f"{name}.png")]


def bars_of_times(
    groups: Sequence[str], series: Mapping[str, Sequence[Estimate]], title: str, y_label: str, *, log: bool = False
) -> Chart:
    """Bars of durations in seconds: from 0, or on a log axis from half of the least mean on."""
    means = [one.mean for values in series.values() for one in values if one.mean > 0.0]
    most = max((one.high for values in series.values() for one in values if one.mean > 0.0), default=1.0)
    y = axes.log_durations(min(means, default=1.0) / 2.0, most) if log else axes.durations(0.0, 1.03 * most)
    return plots.bars(groups, series, looks(series), y, duration, title=title, y_label=y_label)


def means_of_times(
    values: Sequence[str], lines: Mapping[str, Sequence[Estimate]], y: Axis | None = None, **about: Any
) -> Chart:
    """Means of durations, seconds, over the values of a parameter; `y` None: an axis on which all means lie."""
    every = [one for line in lines.values() for one in line]
    y = axes.between(min(one.low for one in every), max(one.high for one in every)) if y is None else y
    return plots.means(values, lines, looks(lines), y, duration, **about)
