"""What the pictures of reproductions share: the looks of their labels, axes for means, and files of several charts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from ...simulator.base.durations import duration
from ..charts import axes, plots
from ..charts.axes import Axis
from ..charts.chart import Chart
from ..charts.chart_files import save
from ..charts.drawing import PANEL_PX, PAPER, laid_out, stacked
from ..charts.marks import DASHES, Style, styles, variables_of
from ..comparing.intervals import Estimate
from .findings import Options

P = ParamSpec("P")
HOUR_S, DAY_S = 3600.0, 86400.0
MOST_LABELS = 32  # of a chart


def if_asked(draw: Callable[Concatenate[Options, P], list[Path]]) -> Callable[Concatenate[Options, P], list[Path]]:
    """Let a function draw where there is a folder for pictures alone; else there are none, and nothing is computed."""

    @functools.wraps(draw)
    def drawn(options: Options, /, *args: P.args, **kwargs: P.kwargs) -> list[Path]:
        return [] if options.out is None else draw(options, *args, **kwargs)

    return drawn


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
    assert options.out is not None, "whoever draws is decorated with `if_asked`"
    colours = variables_of(looks(map(str, range(MOST_LABELS))))
    drawn = [laid_out(chart, colours, PAPER if columns == 1 else PANEL_PX) for chart in charts if chart is not None]
    return [save(stacked(drawn, title, columns), options.out / f"{name}.png")]


def bars_of_times(
    groups: Sequence[str], series: Mapping[str, Sequence[Estimate]], title: str, y_label: str, *, log: bool = False
) -> Chart:
    """Bars of durations in seconds: from 0, or on a log axis from half of the least mean on."""
    means = [one.mean for values in series.values() for one in values if one.mean > 0.0]
    most = max((one.high for values in series.values() for one in values if one.mean > 0.0), default=1.0)
    y = axes.log_durations(min(means, default=1.0) / 2.0, most) if log else axes.durations(0.0, 1.03 * most)
    return plots.bars(groups, series, looks(series), y, duration, title=title, y_label=y_label)


def in_seconds(hours: Estimate) -> Estimate:
    """An estimate of hours in seconds."""
    return replace(hours, mean=HOUR_S * hours.mean, low=HOUR_S * hours.low, high=HOUR_S * hours.high)


def means_of_times(
    values: Sequence[float], lines: Mapping[str, Sequence[Estimate]], y: Axis | None = None, **about: Any
) -> Chart:
    """Means of durations, seconds, over the values of a parameter.

    Args:
        values: of the parameter.
        lines: label -> one estimate a value.
        y: the axis; None: one on which all means lie.
        about: more fields of the chart.
    """
    every = [one for line in lines.values() for one in line]
    y = axes.between(min(one.low for one in every), max(one.high for one in every)) if y is None else y
    return plots.means([f"{value:g}" for value in values], lines, looks(lines), y, duration, **about)
