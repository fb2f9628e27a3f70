"""A drawing as an SVG file that stands alone: for papers, slides, README files; it opens in browsers and editors."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from .drawing import CARD, Drawing, Stroke, Words

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
_OURS = f'role="img" font-family="{FONT}"'


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
    d = "".join(_steps(path) + ("z" if stroke.closed else "") for path in stroke.paths)
    look = " ".join(f"{name}={quoteattr(value.removesuffix('px'))}" for name, value in stroke.look.items())
    return f'<path d="{d}" {look}/>'


def _steps(path: np.ndarray) -> str:
    """Relative steps of tenths of a pixel: short, and rounding adds up to nothing."""
    tenths = np.rint(10.0 * path).astype(np.int64)
    steps = np.diff(tenths, axis=0)
    start = f"M{tenths[0, 0] / 10:g} {tenths[0, 1] / 10:g}"
    return (
        start + "l" + " ".join(f"{dx / 10:g} {dy / 10:g}" for dx, dy in steps.tolist()) if len(steps) else start + "h0"
    )


def _text(words: Words) -> str:
    attributes = f'x="{words.x:.1f}" y="{words.y:.1f}" font-size="{words.size:g}" fill="{words.colour}"'
    attributes += f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    attributes += ' font-weight="bold"' if words.bold else ""
    return f"<text {attributes}>{escape(words.text)}</text>"
