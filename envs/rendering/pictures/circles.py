"""The jobs on one link: their circles before and after rotation, and its use (Figures 4, 5 and 15, paper cassini)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ....simulator.cluster.links import GBPS
from ..drawing import palette
from ..drawing.palette import job_colour
from ..drawing.pen import Pen, new_image, pillow
from ..scenes.link_scene import Crossing
from .floor import Box

if TYPE_CHECKING:
    from PIL.Image import Image

OVERSAMPLING = 3  # arcs are drawn larger and scaled down: Pillow does not smooth them
MOST_RINGS = 8
VARIANTS = ("all begin at once", "as they are turned")


def draw_circles(pen: Pen, box: Box, crossing: Crossing | None, labels: Mapping[int, str], when: str = "") -> None:
    """Two circles side by side: a ring a job, coloured where it uses the link; the score in the middle."""
    u = pen.unit
    subtitle = "" if crossing is None else f"{crossing.link}, {1000 * crossing.perimeter_s:,.0f} ms around"
    pen.title(box, f"Circles{when}", subtitle)
    if crossing is None:
        pen.text((box[0] + u(12), box[1] + u(30)), "no jobs meet on a link", 10, palette.FAINT)
        return
    half = (box[2] - box[0]) // 2
    side = min(half - u(20), box[3] - box[1] - u(86))
    top = box[1] + u(46)
    for number, variant in enumerate(VARIANTS):
        middle = box[0] + half // 2 + number * half
        pen.text((middle, box[1] + u(30)), variant, 10, palette.FAINT, anchor="ma")
        begins_s = crossing.begins_s if number else (0.0,) * len(crossing.jobs)
        disc = _disc(crossing, begins_s, side)
        pen.image.paste(disc, (middle - side // 2, top))
        score = f"{crossing.scores[number]:.2f}"
        pen.text((middle, top + side // 2 - u(2)), score, 15, palette.INK, bold=True, anchor="mm")
        pen.text((middle, top + side // 2 + u(11)), "score", 9, palette.FAINT, anchor="mm")
    _draw_jobs(pen, (box[0] + u(12), box[3] - u(20), box[2] - u(12), box[3]), crossing, labels)


def _disc(crossing: Crossing, begins_s: tuple[float, ...], side: int) -> Image:
    """Rings from the outside in, time clockwise from the top; a job's consecutive iterations once around."""
    large = OVERSAMPLING * side
    pen = Pen(new_image((large, large), palette.CARD), 1.0)
    rings = min(MOST_RINGS, len(crossing.jobs))
    width = round(large / 2 * 0.58 / rings)
    ring = max(2, round(width * 0.8))
    for number in range(rings):
        inset = number * width
        box = (inset, inset, large - inset, large - inset)
        pen.arc(box, 0.0, 360.0, palette.TRACK, ring)
        phases, job = crossing.phases[number], crossing.jobs[number]
        for turn in range(crossing.iterations[number]):
            origin = begins_s[number] + turn * crossing.periods_s[number]
            for start, duration, rate in zip(phases.start_s, phases.duration_s, phases.rate, strict=True):
                first = 360.0 * ((origin + start) % crossing.perimeter_s) / crossing.perimeter_s
                last = first + 360.0 * duration / crossing.perimeter_s
                shade = palette.mix(palette.TRACK, job_colour(job), 0.35 + 0.65 * rate / phases.peak)
                pen.arc(box, first, last, shade, ring)
    return pen.image.resize((side, side), pillow().Image.Resampling.BOX)


def draw_use(pen: Pen, box: Box, crossing: Crossing | None, when: str = "") -> None:
    """Use of the link by the jobs in the long run, stacked: all at once above, as turned below."""
    u = pen.unit
    pen.title(box, f"Use of the link{when}", "" if crossing is None else f"{crossing.capacity / GBPS:g} Gbps")
    if crossing is None:
        pen.text((box[0] + u(12), box[1] + u(30)), "no jobs share a link", 10, palette.FAINT)
        return
    top, bottom = box[1] + u(30), box[3] - u(22)
    height = (bottom - top - u(16)) // 2
    for number, variant in enumerate(VARIANTS):
        first = top + number * (height + u(16))
        pen.text((box[0] + u(12), first), variant, 9, palette.FAINT)
        _draw_strip(pen, (box[0] + u(12), first + u(13), box[2] - u(12), first + height), crossing, number)
    length_s = float(crossing.use[0][0][-1])
    pen.text((box[0] + u(12), box[3] - u(16)), "0 s", 9, palette.FAINT)
    pen.text((box[2] - u(12), box[3] - u(16)), f"{length_s:.3g} s", 9, palette.FAINT, anchor="ra")


def _draw_strip(pen: Pen, box: Box, crossing: Crossing, number: int) -> None:
    pen.box(box, palette.TRACK)
    when, sent = crossing.use[number]
    columns, height = box[2] - box[0], box[3] - box[1]
    moments = (np.arange(columns) + 0.5) / columns * when[-1]
    rows = sent[np.searchsorted(when, moments, side="right") - 1] / crossing.capacity
    levels = np.round(np.minimum(1.0, rows.cumsum(axis=1)) * height).astype(int)
    start = 0
    for column in range(1, columns + 1):  # columns alike are one box
        if column < columns and np.array_equal(levels[column], levels[start]):
            continue
        floor = 0
        for job, level in zip(crossing.jobs, levels[start].tolist(), strict=True):
            pen.box((box[0] + start, box[3] - level, box[0] + column, box[3] - floor), job_colour(job))
            floor = level
        start = column


def _draw_jobs(pen: Pen, box: Box, crossing: Crossing, labels: Mapping[int, str]) -> None:
    u = pen.unit
    x, y = box[0], (box[1] + box[3]) // 2
    x = pen.text((x, y), "turned by", 9, palette.FAINT, anchor="lm") + u(8)
    for job, begins_s, period_s in zip(crossing.jobs, crossing.begins_s, crossing.periods_s, strict=True):
        words = f"{labels.get(job, job)}: {1000 * (begins_s % period_s):.0f} ms"
        if x + u(80) > box[2]:
            pen.text((x, y), "...", 9, palette.FAINT, anchor="lm")
            return
        pen.box((x, y - u(5), x + u(10), y + u(5)), job_colour(job))
        x = pen.text((x + u(14), y), words, 9, palette.FAINT, anchor="lm") + u(12)
