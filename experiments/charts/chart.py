"""A chart before it becomes a part of a page or a file: paths in a unit square, axes, labels.

On a page a chart is drawn once and fits any screen: its SVG is stretched, lines keep their width
(`non-scaling-stroke`), and all words are HTML beside it. Colours are classes, so that the style sheet has a dark side.
drawing.py lays charts out for files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .axes import Axis

WIDTH, HEIGHT = 2000, 1000  # of the coordinates on a page, whole numbers
LABEL_PX = 17  # least distance of two labels at the right edge


def chart_name(*parts: str) -> str:
    """The name of a chart's file: of letters, digits, "-", "_" and "." alone."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(parts)).strip("-")[:150]


@dataclass(frozen=True)
class Shape:
    """Lines or areas that look the same."""

    classes: str  # as in marks.py
    paths: Sequence[np.ndarray]  # float64 (n, 2) each, n >= 1, in the unit square: 0, 0 is below at the left
    closed: bool = False  # whether each path returns to its beginning

    @property
    def d(self) -> str:
        """Its `d` on a page."""
        return path_d([(path * (1.0, -1.0) + (0.0, 1.0)) * (WIDTH, HEIGHT) for path in self.paths], self.closed)


@dataclass(frozen=True)
class Label:
    """A word beside the drawing."""

    classes: str
    at: float  # per cent of the width or height
    text: str
    full: str = ""  # the text before it was shortened


@dataclass(frozen=True)
class Chart:
    """One chart; `rows` or `y` label the left side."""

    title: str
    summary: str  # for readers who cannot see the chart
    height: int  # pixels
    x: Axis
    y: Axis | None  # None where `rows` are the lines
    x_label: str = ""
    y_label: str = ""
    shapes: Sequence[Shape] = ()  # drawn in this order
    rows: Sequence[Label] = ()  # labels of lines at the left, place from above
    ends: Sequence[Label] = ()  # labels at the right edge, place from below; narrow screens have the legend instead
    legend: Sequence[tuple[str, str]] = ()  # (classes, label)
    note: str = ""  # a sentence under the chart
    name: str = "chart"  # of a file that shows it alone, without ending
    is_gantt: bool = False  # whether its ground stands for free GPUs
    inside: Sequence[tuple[float, float, str]] = ()  # words in the plot, in files alone: place of their middle, text

    def with_shapes(self, *shapes: Shape, first: bool = False) -> Chart:
        """With more shapes, above all others or below them."""
        return replace(self, shapes=[*shapes, *self.shapes] if first else [*self.shapes, *shapes])

    def with_note(self, sentence: str) -> Chart:
        """With a sentence more under the chart; "" adds nothing."""
        return replace(self, note=" ".join(filter(None, (self.note, sentence and f"{sentence}."))))

    def with_labels_apart(self) -> Chart:
        """With the labels at the right edge moved as little as possible so that they do not touch at this height."""
        places = spread([end.at for end in self.ends], self.height)
        return replace(self, ends=[replace(end, at=at) for end, at in zip(self.ends, places, strict=True)])


def path_d(paths: Sequence[np.ndarray], closed: bool, steps: int = 1) -> str:
    """The `d` of an SVG path in relative steps of a `steps`-th: short, and rounding errors do not add up."""
    end = "z" if closed else ""
    return "".join(_path_d(np.rint(steps * path).astype(np.int64), steps) + end for path in paths)


def _path_d(points: np.ndarray, steps: int) -> str:
    moves = np.diff(points, axis=0)
    moves = moves[np.any(moves != 0, axis=1)]
    start = f"M{points[0, 0] / steps:g} {points[0, 1] / steps:g}"
    return start + ("l" + " ".join(f"{x / steps:g} {y / steps:g}" for x, y in moves.tolist()) if len(moves) else "h0")


def polyline(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A line through points."""
    return np.stack([x, y], axis=1)


def staircase(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A step function: `y[i]` holds from `x[i]` to `x[i + 1]`; one more x than y."""
    return polyline(np.repeat(x, 2)[1:-1], np.repeat(y, 2))


def segment(x0: float, x1: float, y: float) -> np.ndarray:
    """A level line; of no length it is a dot of the line's width."""
    return np.array([[x0, y], [x1, y]])


def upright(x: float, y0: float, y1: float) -> np.ndarray:
    """An upright line."""
    return np.array([[x, y0], [x, y1]])


def box(x0: float, x1: float, y0: float, y1: float) -> np.ndarray:
    """The corners of a rectangle."""
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def grid(x: Axis | None, y: Axis | None) -> Shape:
    """Faint lines at the ticks."""
    lines = [upright(float(x.at(value)), 0.0, 1.0) for value, _ in x.ticks] if x is not None else []
    lines += [segment(0.0, 1.0, float(y.at(value))) for value, _ in y.ticks] if y is not None else []
    return Shape("grid", lines)


def spread(places: Sequence[float], height: int) -> list[float]:
    """Places (per cent of `height` pixels, from below) moved as little as possible so that labels do not touch."""
    apart = 100.0 * LABEL_PX / height
    order = sorted(range(len(places)), key=lambda number: places[number])
    groups: list[tuple[list[int], float]] = []  # members, centre
    for number in order:
        groups.append(_group([number], places, apart))
        while len(groups) > 1:
            (lower, low), (upper, high) = groups[-2:]
            if high - apart * len(upper) / 2.0 >= low + apart * len(lower) / 2.0:
                break
            groups[-2:] = [_group(lower + upper, places, apart)]
    moved = list(places)
    for members, centre in groups:
        for position, member in enumerate(members):
            moved[member] = round(centre + apart * (position - (len(members) - 1) / 2.0), 2)
    return moved


def _group(members: list[int], places: Sequence[float], apart: float) -> tuple[list[int], float]:
    """Labels in a stack around the mean of their places, inside the chart if it is high enough."""
    half = apart * (len(members) - 1) / 2.0
    centre = float(np.mean([places[member] for member in members]))
    return members, min(max(centre, half), 100.0 - half) if half < 50.0 else 50.0
