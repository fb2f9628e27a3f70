"""What the pictures of reproductions share: figures in the house style, bars by cluster size, curves, saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparing.intervals import Estimate
from ..matplotlib_style import COLOURS, DPI, LINES
from ..terminal import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOUR_S, DAY_S = 3600.0, 86400.0


def figure(width: float, height: float) -> Figure:
    """An empty figure; no pyplot, so no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def save(drawn: Figure, folder: Path, name: str) -> Path:
    """Write `name`.png into `folder`, whole or not at all."""
    path = folder / f"{name}.png"
    with written_whole(path) as draft:
        drawn.savefig(draft, dpi=DPI, format="png")
    return path


def style(number: int) -> dict[str, Any]:
    """Colour and dashes of the curve of that number."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": LINES[number % len(LINES)],  # so that curves are told apart without colour too
        "linewidth": 1.8,
    }


def finish(axis: Axes) -> None:
    """The house style: no box, a light grid behind."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, which="major", color="0.9")
    axis.set_axisbelow(True)


def bars(
    axis: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[Estimate]],
    scale: float = 1.0,
    *,
    log: bool = False,
) -> None:
    """Bars side by side, a group a cluster size, with their 95 % intervals.

    Args:
        axis: to draw on.
        groups: names below the axis.
        series: label -> one estimate a group.
        scale: what a unit of the axis is worth.
        log: a logarithmic axis, from half of the least mean on.
    """
    width = 0.8 / len(series)
    for number, (label, estimates) in enumerate(series.items()):
        place = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        height = np.array([one.mean for one in estimates]) / scale
        spread = np.array([[one.mean - one.low, one.high - one.mean] for one in estimates]).T / scale
        axis.bar(place, height, width * 0.92, label=label, color=COLOURS[number % len(COLOURS)])
        axis.errorbar(place, height, np.maximum(spread, 0.0), fmt="none", ecolor="black", elinewidth=1.0, capsize=2.5)
    axis.set_xticks(np.arange(len(groups)), groups)
    least = min((one.mean / scale for estimates in series.values() for one in estimates if one.mean > 0.0), default=1.0)
    if log:
        axis.set_yscale("log")
        axis.set_ylim(bottom=least / 2)
    else:
        axis.axhline(0.0, color="black", linewidth=0.8)
    finish(axis)
    axis.grid(False, axis="x")


def cdf(axis: Axes, curves: Mapping[str, np.ndarray], scale: float = DAY_S) -> None:
    """Share of jobs within a time, in percent, a curve a policy; seconds on a log axis of units of `scale` (days)."""
    for number, (label, values) in enumerate(curves.items()):
        ordered = np.sort(values) / scale
        share = 100.0 * np.arange(1, len(ordered) + 1) / len(ordered)
        axis.step(ordered, share, where="post", label=label, **style(number))
    axis.set_xscale("log")
    axis.set_ylim(0, 100.5)
    finish(axis)
