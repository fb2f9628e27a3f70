"""A drawing as a file: SVG without a library; PDF and PNG by matplotlib, with the same strokes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ...simulator.base.errors import InputError, MissingExtra
from ..console.terminal import written_whole
from .chart import path_d
from .drawing import CARD, Drawing, Stroke, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("svg", "pdf", "png")
UNITS = {"in": 96.0, "cm": 96.0 / 2.54, "mm": 96.0 / 25.4, "pt": 96.0 / 72.0, "px": 1.0}  # pixels
NARROWEST_IN, WIDEST_IN = 2.0, 20.0
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
_OURS = f'role="img" font-family="{FONT}"'
POINTS = 0.75  # of a pixel: 96 pixels and 72 points are an inch
PNG_DPI = 192  # two dots a pixel
ENDS = {"start": "left", "middle": "center", "end": "right"}


def kinds_of(text: str) -> list[str]:
    """Kinds of files from their names, as `svg` or `svg,pdf`; InputError for an unknown one."""
    kinds = text.replace(",", " ").lower().split()
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise InputError(f"{text!r}: expected kinds of pictures among {', '.join(KINDS)}, as svg,pdf")
    return list(dict.fromkeys(kinds))


def width_px(text: str) -> float:
    """The width of a drawing in pixels, from text such as `3.3in`; InputError: another unit, or no such width."""
    found = re.fullmatch(r"(\d{1,5}(?:\.\d{1,5})?)([a-z]{2})", text.strip().lower())
    pixels = float(found[1]) * UNITS.get(found[2], 0.0) if found else 0.0
    if not NARROWEST_IN <= pixels / UNITS["in"] <= WIDEST_IN:
        limits = f"{NARROWEST_IN:g} to {WIDEST_IN:g} inches"
        raise InputError(f"{text!r}: expected a width of {limits} in {', '.join(UNITS)}, as 3.3in or 84mm")
    return pixels


def expect_installed(kinds: Sequence[str], what: str = "pictures as PDF and PNG") -> None:
    """Raise MissingExtra where a kind needs matplotlib and it is not installed; `what` is drawn, in the plural."""
    try:
        if set(kinds) - {"svg"}:
            import matplotlib.figure  # noqa: F401  # the package alone may be there in part
    except ImportError:
        raise MissingExtra(f'{what} need matplotlib; install it with: pip install "clustergym[report]"') from None


def save(drawing: Drawing, path: Path) -> Path:
    """Write a drawing, of the kind that the path's ending names; the file appears whole or not at all."""
    content = content_of(drawing, path.suffix[1:].lower())
    with written_whole(path) as draft:
        draft.write_bytes(content)
    return path


def content_of(drawing: Drawing, kind: str) -> bytes:
    """A drawing as the content of a file of a kind; MissingExtra of pdf and png, where matplotlib is not installed."""
    if kind == "svg":
        return svg(drawing).encode()
    return pdf(drawing) if kind == "pdf" else png(drawing)


def is_ours(path: Path) -> bool:
    """Whether a file begins as `svg` has it."""
    with path.open("rb") as file:
        return _OURS.encode() in file.readline(300)


def svg(drawing: Drawing) -> str:
    """The content of the file."""
    size = f'width="{drawing.width:g}" height="{drawing.height:g}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_OURS}>',
        f"<title>{escape(drawing.title)}</title>",
        f"<desc>{escape(drawing.summary)}</desc>",
        f'<rect width="100%" height="100%" fill="{CARD}"/>',
        *(_path(stroke) for stroke in drawing.strokes),
        *(_text(words) for words in drawing.words),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _path(stroke: Stroke) -> str:
    look = " ".join(f"{name}={quoteattr(value.removesuffix('px'))}" for name, value in stroke.look.items())
    return f'<path d="{path_d(stroke.paths, stroke.closed, 10)}" {look}/>'


def _text(words: Words) -> str:
    attributes = f'x="{words.x:.1f}" y="{words.y:.1f}" font-size="{words.size:g}" fill="{words.colour}"'
    attributes += f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    attributes += ' font-weight="bold"' if words.bold else ""
    return f"<text {attributes}>{escape(words.text)}</text>"


def pdf(drawing: Drawing) -> bytes:
    """As PDF, its letters embedded as TrueType; the same drawing gives the same bytes."""
    return _saved(drawing, format="pdf", metadata={"CreationDate": None, "Title": drawing.title})


def png(drawing: Drawing, dpi: float = PNG_DPI) -> bytes:
    """As PNG."""
    return _saved(drawing, format="png", dpi=dpi)


def _saved(drawing: Drawing, **options: object) -> bytes:
    expect_installed(["pdf"])
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "path.simplify": False}):
        figure_of(drawing).savefig(buffer, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def figure_of(drawing: Drawing) -> Figure:
    """The drawing as a figure of matplotlib; its only axes have the drawing's pixels as coordinates."""
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
        font: Any = {"fontsize": words.size * POINTS, "fontweight": "bold" if words.bold else "normal"}
        place: Any = {"ha": ENDS[words.anchor], "va": "baseline", "parse_math": False}
        axes.text(words.x, words.y, words.text, color=words.colour, **font, **place)
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
    """A line of no length is a dot in SVG; matplotlib needs some length."""
    if len(path) < 2 or np.ptp(path, axis=0).max() == 0.0:
        return np.vstack([path[:1], path[:1] + np.array([0.01, 0.0])])
    return path
