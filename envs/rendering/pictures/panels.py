"""Panels of all pictures: queue, running jobs, and the numbers at the head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from ..drawing import palette
from ..drawing.palette import Colour, job_colour, waited_colour
from ..drawing.pen import Pen
from ..drawing.picture_words import clock, span
from ..scenes.scene import RunningJob, Scene, WaitingJob
from .floor import Box

ROW = 15  # units
TIERS_LABEL = "colour: the job; band: its gang lies within one"
Job = TypeVar("Job")


def draw_queue(pen: Pen, box: Box, scene: Scene) -> None:
    """Waiting jobs in window order: bars as wide as the square root of their GPUs, darker the longer they wait."""
    u = pen.unit
    title = f"Queue  {scene.waiting:,}" + (f"  + {scene.held_jobs:,} held (outlined)" if scene.held_jobs else "")
    top, rows = _heading(pen, box, title, "waited", foot=20)
    _draw_waited_scale(pen, box)
    jobs = [*scene.queue, *scene.held]
    shown, more = _share(jobs, rows, scene.waiting + scene.held_jobs)
    widest = math.sqrt(scene.largest_gang)
    for number, job in enumerate(shown):
        _draw_waiting(pen, box, top + number * u(ROW), job, widest)
    if more:
        pen.text((box[0] + u(12), top + len(shown) * u(ROW)), f"and {more:,} more", 10, palette.FAINT)
    elif not shown:
        pen.text((box[0] + u(12), top), "no job waits", 10, palette.FAINT)


def _draw_waiting(pen: Pen, box: Box, y: int, job: WaitingJob, widest: float) -> None:
    u = pen.unit
    middle = y + u(ROW) // 2
    pen.text((box[0] + u(12), middle), job.label, 10, palette.INK, anchor="lm", within=u(42))
    left, room = box[0] + u(58), u(104)
    width = max(u(3), round(room * math.sqrt(job.gpus) / widest))
    bar = (left, y + u(2), left + width, y + u(ROW) - u(2))
    if job.is_held:
        pen.frame(bar, waited_colour(job.waited_s))
    else:
        pen.box(bar, waited_colour(job.waited_s))
    pen.text((left + width + u(4), middle), f"{job.gpus:,}", 10, palette.INK, anchor="lm")
    pen.text((box[2] - u(12), middle), span(job.waited_s), 10, palette.FAINT, anchor="rm")


def _draw_waited_scale(pen: Pen, box: Box) -> None:
    u = pen.unit
    left, right, y = box[0] + u(58), box[2] - u(48), box[3] - u(13)
    pen.shades((left, y - u(3), right, y + u(3)), 24, lambda share: waited_colour(60.0 * (86_400.0 / 60.0) ** share))
    pen.text((left - u(5), y), "1 min", 9, palette.FAINT, anchor="rm")
    pen.text((right + u(5), y), "1 day", 9, palette.FAINT, anchor="lm")


def draw_running(pen: Pen, box: Box, scene: Scene, *, bands: bool = True) -> None:
    """The largest running jobs: colour, with a band in that of the tier, model, GPUs, progress, remaining time."""
    u = pen.unit
    top, rows = _heading(pen, box, f"Running  {len(scene.running):,}", "still needs", foot=6)
    largest = sorted(scene.running, key=lambda job: (-job.gpus, job.job))
    shown, more = _share(largest, rows, len(largest))
    for number, job in enumerate(shown):
        _draw_job(pen, box, top + number * u(ROW), job, bands)
    if more:
        pen.text((box[0] + u(12), top + len(shown) * u(ROW)), f"and {more:,} more, no larger", 10, palette.FAINT)
    elif not shown:
        pen.text((box[0] + u(12), top), "nothing runs", 10, palette.FAINT)


def _draw_job(pen: Pen, box: Box, y: int, job: RunningJob, has_band: bool) -> None:
    u = pen.unit
    middle = y + u(ROW) // 2
    left = box[0] + u(12)
    swatch = (left, y + u(2), left + u(11), y + u(ROW) - u(2))
    pen.box(swatch, job_colour(job.job))
    if has_band:
        draw_band(pen, swatch, u(1), job.tier)
    pen.text((left + u(16), middle), job.label, 10, palette.INK, anchor="lm", within=u(38))
    pen.text((left + u(56), middle), job.model or job.name, 10, palette.FAINT, anchor="lm", within=u(62))
    pen.text((left + u(146), middle), f"{job.gpus:,}", 10, palette.INK, anchor="rm")
    track = (left + u(152), middle - u(2), left + u(187), middle + u(3))
    pen.bar(track, [(round(1000 * job.progress), palette.FAINT)], 1000)
    pen.text((box[2] - u(12), middle), span(job.remaining_s), 10, palette.FAINT, anchor="rm")


def draw_tiers(pen: Pen, place: tuple[int, int], label: str = TIERS_LABEL) -> int:
    """A swatch for each tier, after `label`; from `place`, left and middle. Returns the x of its end."""
    u, (x, y), side = pen.unit, place, pen.unit(15)
    x = pen.text((x, y), label, 10, palette.FAINT, anchor="lm") + u(8)
    for tier, word in enumerate(("slot", "machine", "rack", "or across racks")):
        swatch = (x, y - side // 2, x + side, y - side // 2 + side)
        pen.box(swatch, palette.mix(palette.USED, palette.WHITE, 0.45))
        draw_band(pen, swatch, u(2), tier)
        x = pen.text((x + side + u(5), y), word, 10, palette.FAINT, anchor="lm") + u(14)
    return x


def draw_band(pen: Pen, box: Box, level: int, tier: int) -> None:
    """The band at the foot of a box, `level` pixels high for the narrowest tier and so many more for each wider one."""
    top = box[3] - level * (tier + 1)
    pen.box((box[0], top - 1, box[2], top), palette.WHITE)
    pen.box((box[0], top, box[2], box[3]), palette.TIER_COLOURS[tier])


def _heading(pen: Pen, box: Box, title: str, note: str, foot: int) -> tuple[int, int]:
    u = pen.unit
    pen.title(box, title, note)
    top = box[1] + u(30)
    return top, max(1, (box[3] - u(foot) - u(2) - top) // u(ROW))


def _share(jobs: list[Job], rows: int, total: int) -> tuple[list[Job], int]:
    if total <= rows:
        return jobs[:total], 0
    shown = jobs[: rows - 1]
    return shown, total - len(shown)


def draw_totals(pen: Pen, margin: int, width: int, scene: Scene) -> None:
    """The clock, and four numbers with their meaning; bars for the two that are shares."""
    pen.text((margin, pen.unit(14)), clock(scene.now_s), 24, palette.INK, bold=True)
    held = f"waiting, {scene.held_jobs:,} held" if scene.held_jobs else "waiting"
    down = "GPUs used" + (f", {scene.shared:,} shared" if scene.shared else "")
    down += f", {scene.down:,} down" if scene.down else ""
    used = [(scene.used, palette.USED), (scene.down, palette.GPU_DOWN)]
    done = [(scene.done, palette.TIER_COLOURS[0])]
    draw_total(pen, round(width * 0.385), f"{scene.used:,} / {scene.gpus:,}", down, used, scene.gpus)
    draw_total(pen, round(width * 0.59), f"{len(scene.running):,}", "running")
    draw_total(pen, round(width * 0.69), f"{scene.waiting:,}", held)
    draw_total(pen, round(width * 0.83), f"{scene.done:,} / {scene.jobs:,}", "jobs done", done, scene.jobs)


def draw_total(
    pen: Pen, x: int, number: str, word: str, parts: Sequence[tuple[int, Colour]] = (), whole: int = 0
) -> None:
    """A number and its meaning; with a bar if it is a part of a `whole`."""
    u = pen.unit
    room = u(148 if whole else 90)
    pen.text((x, u(10)), number, pen.fitting_size(number, 18, room, bold=True), palette.INK, bold=True)
    pen.text((x, u(34)), word, pen.fitting_size(word, 11, room + u(30)), palette.FAINT)
    if whole:
        pen.bar((x, u(54), x + u(140), u(60)), parts, whole)
