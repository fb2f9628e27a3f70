"""A chart laid out on paper, for files that stand alone: every stroke and word with its place in pixels.

The page stretches its charts and sets their words as HTML (chart.py); here both are fixed. Words stand beside the plot
or under it (in it only where the chart says so), and the legend has lines of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .chart import Chart, Shape, box, segment
from .marks import MARKS, THEME, properties

PAPER, MARGIN, GAP = 760.0, 14.0, 8.0  # pixels: width of a drawing, around it, between its parts
PANEL_PX = 520.0  # the width of one of several charts beside each other
SIZE, SMALL, TITLE = 12.0, 11.0, 15.0  # of letters
LINE = 1.45  # from one line of text to the next, of its size
SWATCH = 26.0
HIGHEST = 0.75  # of the width of a drawing: a plot
MOST_OF_ROWS = 0.3  # of the width, for labels at the left; as much for those at the right
INK, FAINT, CARD = (THEME[name][0] for name in ("ink", "faint", "card"))
GROUND = "#f4f5f6"  # under a Gantt chart: free GPUs
Legend = Sequence[tuple[str, str]]
Variables = Mapping[str, Mapping[str, str]]
# Widths of characters without a font at hand: those of DejaVu Sans, which is wider than the fonts of browsers.
# Hundredths of the size, of the characters 32 to 126; regular and bold.
_REGULAR = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34),
    *(84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68),
    *(99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41),
    *(52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84),
)
_BOLD = (
    *(35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 40, 40),
    *(84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85, 73, 85, 77, 72, 68, 81, 77),
    *(110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72),
    *(49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84),
)
_OTHER = 100  # of a character that is not among them


@dataclass(frozen=True)
class Stroke:
    """Lines and areas that look the same."""

    paths: Sequence[np.ndarray]  # float64 (n, 2) each, pixels from above at the left
    closed: bool  # whether each path returns to its beginning
    look: Mapping[str, str]  # properties of SVG


@dataclass(frozen=True)
class Words:
    """One line of text."""

    x: float  # pixels from the left, of the end of the base line that `anchor` names
    y: float  # pixels from above
    text: str
    size: float = SIZE
    anchor: str = "start"  # `start`, `middle`, `end`
    colour: str = INK
    bold: bool = False

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom; rather too wide than too narrow."""
        width = width_of(self.text, self.size, self.bold)
        left = self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * width
        return left, self.y - 0.78 * self.size, left + width, self.y + 0.24 * self.size


@dataclass(frozen=True)
class Drawing:
    """The content of one file."""

    width: float  # pixels
    height: float
    title: str
    summary: str  # for readers who cannot see it
    strokes: Sequence[Stroke]  # drawn in this order
    words: Sequence[Words]
    plots: Sequence[tuple[float, float, float, float]]  # left, top, right, bottom of the areas of curves and boxes


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Pixels that a line takes at most."""
    table = _BOLD if bold else _REGULAR
    return size / 100.0 * sum(table[ord(one) - 32] if " " <= one <= "~" else _OTHER for one in text)


def shortened(text: str, room: float, size: float, bold: bool = False) -> str:
    """The text if it fits, else its two ends: words of policies differ in either."""
    if width_of(text, size, bold) <= room:
        return text
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 1) // 2
        found = f"{text[:head]}…{text[len(text) - (kept - head) :]}"
        if width_of(found, size, bold) <= room:
            return found
    return "…"


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Lines of whole words; a word that is longer than a line is shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(shortened(word, room, size, bold))
    return lines


def laid_out(chart: Chart, variables: Variables, width: float = PAPER, least_left: float = 0.0) -> Drawing:
    """A chart as a drawing; `least_left`, least left end of the plot in pixels, aligns charts of one time axis."""
    words = _heading(chart, width)
    top = _below(words) + GAP
    if chart.y_label:
        for line in wrapped(chart.y_label, width - 2 * MARGIN, SMALL):
            words.append(Words(MARGIN, top + SMALL, line, SMALL, colour=FAINT))
            top += LINE * SMALL
        top += GAP
    beside = MOST_OF_ROWS * width
    left = max(MARGIN + _room_at_left(chart, beside), least_left)
    right = width - MARGIN - _room_at_right(chart, beside)
    plot = (left, top, right, top + chart.height)
    strokes = [Stroke([box(left, right, top, plot[3])], True, {"fill": GROUND})] if chart.is_gantt else []
    strokes += [stroke for shape in chart.shapes if (stroke := _stroke(shape, plot, variables)) is not None]
    words += _at_left(chart, plot, beside) + _at_right(chart, plot, beside, variables) + _under(chart, plot, width)
    for x, y, text in chart.inside:
        foot = plot[3] - y * chart.height + 0.35 * SMALL
        words.append(Words(left + x * (right - left), foot, text, SMALL, "middle", CARD))
    y = plot[3] + GAP + LINE * SIZE + (LINE * SMALL if chart.x_label else 0.0)
    keys, named = _legend(chart.legend if not chart.ends else (), y + GAP, width, variables)
    strokes, words = strokes + keys, words + named
    y = _below(named, y)
    for line in wrapped(chart.note, width - 2 * MARGIN, SMALL):
        y += LINE * SMALL
        words.append(Words(MARGIN, y, line, SMALL, colour=FAINT))
    return Drawing(width, round(y + MARGIN), chart.title, chart.summary, strokes, words, [plot])


def fitting(chart: Chart, width: float) -> Chart:
    """A chart for a drawing of this width: of curves and jobs no higher than three quarters of it."""
    height = round(HIGHEST * width)
    if height >= chart.height or (chart.y is None and not chart.is_gantt):
        return chart
    return replace(chart, height=height).with_labels_apart()


def stacked(drawings: Sequence[Drawing], title: str, columns: int = 1) -> Drawing:
    """Drawings one under the other; in several columns they go from left to right, under their common title."""
    strokes, words, plots = [], [], []
    width, height = max(one.width for one in drawings), 0.0
    if columns > 1:
        words.append(Words(columns * width / 2.0, MARGIN + TITLE, title, TITLE, "middle", bold=True))
        height = MARGIN + LINE * TITLE
    for first in range(0, len(drawings), columns):
        beside = drawings[first : first + columns]
        for number, one in enumerate(beside):
            x = number * width
            by = np.array([x, height])
            strokes += [replace(some, paths=[path + by for path in some.paths]) for some in one.strokes]
            words += [replace(word, x=word.x + x, y=word.y + height) for word in one.words]
            plots += [(left + x, top + height, right + x, bottom + height) for left, top, right, bottom in one.plots]
        height += max(one.height for one in beside)
    summary = " ".join(f"{one.title}. {one.summary}." for one in drawings)
    return Drawing(columns * width, height, title, summary, strokes, words, plots)


def _heading(chart: Chart, width: float) -> list[Words]:
    lines = wrapped(chart.title, width - 2 * MARGIN, TITLE, bold=True)
    return [Words(MARGIN, MARGIN + TITLE + at * LINE * TITLE, line, TITLE, bold=True) for at, line in enumerate(lines)]


def _below(words: Sequence[Words], least: float = MARGIN) -> float:
    return max((word.extent[3] for word in words), default=least)


def _room_at_left(chart: Chart, most: float) -> float:
    marks = [width_of(text, SMALL) for _, text in chart.y.marks()] if chart.y is not None else []
    rows = [width_of(row.text, SIZE, _is_bold(row.classes)) for row in chart.rows]
    return min(max([0.0, *marks, *rows]), most) + (GAP if marks or rows else 0.0)


def _room_at_right(chart: Chart, most: float) -> float:
    names = [width_of(end.text, SIZE, _is_bold(end.classes)) for end in chart.ends]
    return min(max(names), most) + 1.5 * GAP if names else GAP


def _is_bold(classes: str) -> bool:
    return "agent" in classes.split()


def _at_left(chart: Chart, plot: tuple[float, float, float, float], most: float) -> list[Words]:
    left, top, _, bottom = plot
    marks = chart.y.marks() if chart.y is not None else []
    ys = [bottom - at / 100.0 * (bottom - top) + 0.35 * SMALL for at, _ in marks]
    found = [Words(left - GAP, y, text, SMALL, "end", FAINT) for y, (_, text) in zip(ys, marks, strict=True)]
    for row in chart.rows:
        is_machine, bold = "machine" in row.classes.split(), _is_bold(row.classes)
        size, colour = (SMALL - 1.0, FAINT) if is_machine else (SIZE, INK)
        text = shortened(row.text, most, size, bold)
        y = top + row.at / 100.0 * (bottom - top) + 0.35 * size
        found.append(Words(left - GAP, y, text, size, "end", colour, bold))
    return found


def _at_right(chart: Chart, plot: tuple[float, float, float, float], most: float, variables: Variables) -> list[Words]:
    _, top, right, bottom = plot
    found = []
    for end in chart.ends:
        y, bold = bottom - end.at / 100.0 * (bottom - top) + 0.35 * SIZE, _is_bold(end.classes)
        colour = next((variables[name]["c"] for name in end.classes.split() if name in variables), INK)
        found.append(Words(right + 1.5 * GAP, y, shortened(end.text, most, SIZE, bold), colour=colour, bold=bold))
    return found


def _under(chart: Chart, plot: tuple[float, float, float, float], width: float) -> list[Words]:
    """Marks of the horizontal axis, without those for which there is no room, and its label."""
    left, _, right, bottom = plot
    y = bottom + GAP + SMALL
    found: list[Words] = []
    for at, text in chart.x.marks():
        anchor = "start" if at < 4 else "end" if at > 96 else "middle"
        mark = Words(left + at / 100.0 * (right - left), y, text, SMALL, anchor, FAINT)
        if not found or mark.extent[0] >= found[-1].extent[2] + GAP / 2.0:
            found.append(mark)
    if chart.x_label:
        text = shortened(chart.x_label, width - 2 * MARGIN, SMALL)
        half = MARGIN + width_of(text, SMALL) / 2.0
        middle = min(max((left + right) / 2.0, half), width - half)
        found.append(Words(middle, y + LINE * SMALL, text, SMALL, "middle", FAINT))
    return found


def _legend(entries: Legend, top: float, width: float, variables: Variables) -> tuple[list[Stroke], list[Words]]:
    keys: list[Stroke] = []
    names: list[Words] = []
    x, y, room = MARGIN, top + SIZE, width - 2 * MARGIN
    for classes, text in entries:
        bold = _is_bold(classes)
        text = shortened(text, room - SWATCH - GAP, SIZE, bold)
        wide = SWATCH + GAP + width_of(text, SIZE, bold)
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + LINE * SIZE
        middle = y - 0.35 * SIZE
        key = properties(classes if classes.split()[0] in MARKS else f"line {classes}", variables)
        is_area = key["fill"] != "none"
        half = 0.4 * SIZE
        right = x + SWATCH
        path = box(x, right, middle - half, middle + half) if is_area else segment(x, right, middle)
        keys.append(Stroke([path], is_area, key))
        names.append(Words(x + SWATCH + GAP, y, text, bold=bold))
        x += wide + 2 * GAP
    return keys, names


def _stroke(shape: Shape, plot: tuple[float, float, float, float], variables: Variables) -> Stroke | None:
    left, top, right, bottom = plot
    found = [path * (right - left, top - bottom) + (left, bottom) for path in shape.paths]
    return Stroke(found, shape.closed, properties(shape.classes, variables)) if found else None
