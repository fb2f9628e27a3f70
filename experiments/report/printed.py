"""A drawing as a PDF or PNG file, by matplotlib: the same strokes and words as in the SVG file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from ..matplotlib_style import expect_installed
from .drawing import CARD, Drawing, Stroke

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 0.75  # of a pixel: 96 pixels and 72 points are an inch
PNG_DPI = 192  # two dots a pixel
ENDS = {"start": "left", "middle": "center", "end": "right"}


def pdf(drawing: Drawing) -> bytes:
    """As PDF, its letters embedded as TrueType; the same drawing gives the same bytes."""
    return _saved(drawing, format="pdf", metadata={"CreationDate": None, "Title": drawing.title})


def png(drawing: Drawing, dpi: float = PNG_DPI) -> bytes:
    """As PNG."""
    return _saved(drawing, format="png", dpi=dpi)


def _saved(drawing: Drawing, **options: object) -> bytes:
    expect_installed()
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "path.simplify": False}):
        figure_of(drawing).savefig(buffer, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def figure_of(drawing: Drawing) -> Figure:
    """The drawing as a figure of matplotlib whose only axes have its pixels as coordinates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(drawing.width * POINTS / 72.0, drawing.height * POINTS / 72.0), facecolor=CARD)
    FigureCanvasAgg(figure)  # no pyplot: no window, no global state
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, drawing.width), ylim=(drawing.height, 0.0))
    axes.set_axis_off()
    for stroke in drawing.strokes:
        _draw(axes, stroke)
    for words in drawing.words:
        axes.text(
            *(words.x, words.y, words.text),
            fontsize=words.size * POINTS,
            color=words.colour,
            ha=ENDS[words.anchor],
            va="baseline",
            fontweight="bold" if words.bold else "normal",
            parse_math=False,
        )
    return figure


def _draw(axes: Axes, stroke: Stroke) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    look = stroke.look
    opacity = float(look.get("opacity", 1.0))
    paths = [Path(_round_dot(path), closed=False) for path in stroke.paths]
    if stroke.closed:
        paths = [Path(np.vstack([path, path[:1]]), closed=True) for path in stroke.paths]
    edge, width = look.get("stroke", "none"), float(look.get("stroke-width", "0").removesuffix("px"))
    dashes = look.get("stroke-dasharray", "none")
    patch = PathPatch(
        Path.make_compound_path(*paths),
        facecolor=_colour(look.get("fill", "none"), opacity * float(look.get("fill-opacity", 1.0))),
        edgecolor=_colour(edge, opacity),
        linewidth=width * POINTS,
        linestyle="-" if dashes == "none" else (0.0, [float(part) / width for part in dashes.split()]),
        capstyle=look.get("stroke-linecap", "butt"),
        joinstyle=look.get("stroke-linejoin", "miter"),
    )
    patch.set_snap(None if stroke.closed else False)  # moved to whole dots, a line of almost no length has none
    axes.add_patch(patch)


def _colour(name: str, opacity: float) -> object:
    from matplotlib.colors import to_rgba

    return "none" if name == "none" else to_rgba(name, opacity)


def _round_dot(path: np.ndarray) -> np.ndarray:
    """A line of no length, a dot in SVG, has to have some for matplotlib."""
    if len(path) < 2 or np.ptp(path, axis=0).max() == 0.0:
        return np.vstack([path[:1], path[:1] + np.array([0.01, 0.0])])
    return path
