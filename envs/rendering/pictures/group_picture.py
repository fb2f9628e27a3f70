"""Job groups as pixels: machines, past use (paper harmony, Figure 11), next subtasks (Figures 5 and 8)."""

from __future__ import annotations

import math

import numpy as np

from ....simulator.groups.group_simulator import GroupSimulator
from ..drawing import palette
from ..drawing.palette import job_colour
from ..drawing.pen import SIZE, Pen, checked_size
from ..drawing.picture_words import clock, span
from ..scenes.group_scene import GroupLane, GroupScene, read_groups
from ..scenes.seen import Seen, run_words
from .floor import Box
from .panels import draw_total

SMALLEST_LANE = 46  # units; more groups than fit are counted below
TICKS = 6
COLUMN = 2  # pixels of a time in the charts of what has been
NET = palette.TIER_COLOURS[2]


def draw_groups(simulator: GroupSimulator, size: tuple[int, int] = SIZE, seen: Seen | None = None) -> np.ndarray:
    """The groups of a simulator now, uint8 (height, width, 3); arguments and errors as of `picture.draw_rgb`."""
    size = checked_size(size)
    scene = read_groups(simulator)
    pen = Pen.page(size)
    u = pen.unit
    _draw_totals(pen, size[0], scene)
    for line, words in enumerate(run_words(scene.jct_s, seen).split(" · ")):
        pen.text((u(14) + 2, u(44 + 14 * line)), words, 10, palette.INK, within=round(size[0] * 0.165))
    right, bottom = size[0] - u(14), size[1] - u(34)
    _draw_machines(pen, scene, (u(14), u(76), right, u(94)))
    middle = size[0] // 2
    _draw_use(pen, scene, "CPU use", scene.past.cpu, palette.USED, (u(14), u(102), middle - u(6), u(150)))
    _draw_use(pen, scene, "network use", scene.past.network, NET, (middle + u(6), u(102), right, u(150)))
    _draw_lanes(pen, scene, (u(14), u(158), right, bottom))
    _draw_foot(pen, scene, (u(14), size[1] - u(25), right, size[1] - u(10)))
    return pen.pixels()


def _draw_totals(pen: Pen, width: int, scene: GroupScene) -> None:
    pen.text((pen.unit(14), pen.unit(14)), clock(scene.now_s), 24, palette.INK, bold=True)
    used = scene.machines - scene.free - scene.down
    machines = [(used, palette.USED), (scene.down, palette.GPU_DOWN)]
    down = f", {scene.down} down" if scene.down else ""
    waiting = f"in groups, {len(scene.waiting)} waiting"
    shares = [(round(1000 * scene.cpu), palette.USED)]
    net = [(round(1000 * scene.net), NET)]
    draw_total(pen, round(width * 0.19), f"{used} / {scene.machines}", "machines" + down, machines, scene.machines)
    draw_total(pen, round(width * 0.355), f"{scene.cpu:.0%}", "CPU use, by Eq. 1", shares, 1000)
    draw_total(pen, round(width * 0.52), f"{scene.net:.0%}", "network use, by Eq. 1", net, 1000)
    draw_total(pen, round(width * 0.685), f"{scene.running}", waiting)
    done = [(scene.done, palette.TIER_COLOURS[0])]
    draw_total(pen, round(width * 0.83), f"{scene.done} / {scene.jobs}", "jobs done", done, scene.jobs)


def _draw_machines(pen: Pen, scene: GroupScene, box: Box) -> None:
    pen.box(box, palette.GPU_FREE)
    left, of_all = box[0], (box[2] - box[0]) / scene.machines
    first = 0
    parts = [(lane.machines, _group_colour(lane.group), f"group {lane.group}") for lane in scene.lanes]
    for machines, colour, word in [*parts, (scene.down, palette.GPU_DOWN, "down")]:
        right = box[0] + round((first + machines) * of_all)
        pen.box((left, box[1], right - (right - left > 2), box[3]), colour)
        if machines:
            ink = palette.ink_on(colour)
            place = ((left + right) // 2, (box[1] + box[3]) // 2)
            pen.text(place, f"{word}: {machines}", 10, ink, anchor="mm", within=right - left - pen.unit(4))
        left, first = right, first + machines


def _draw_use(pen: Pen, scene: GroupScene, what: str, share: np.ndarray, colour: palette.Colour, box: Box) -> None:
    u, time_s = pen.unit, scene.past.time_s
    top = box[1] + u(13)
    pen.box((box[0], top, box[2], box[3]), palette.TRACK)
    words = f"{what} so far"
    if len(time_s) > 1:
        done_s = np.concatenate([[0.0], np.cumsum(share[:-1] * np.diff(time_s))])
        edges_s = np.linspace(time_s[0], time_s[-1], (box[2] - box[0]) // COLUMN + 1)
        means = np.diff(np.interp(edges_s, time_s, done_s)) / (edges_s[1] - edges_s[0])
        for column, mean in enumerate(means.tolist()):
            left = box[0] + COLUMN * column
            pen.box((left, box[3] - round(min(1.0, mean) * (box[3] - top)), left + COLUMN, box[3]), colour)
        span_s = float(time_s[-1] - time_s[0])
        words += f", for {span(span_s)}: {done_s[-1] / span_s:.0%} on average"
    pen.text((box[0], box[1]), words, 9, palette.FAINT, within=box[2] - box[0])


def _draw_lanes(pen: Pen, scene: GroupScene, box: Box) -> None:
    u = pen.unit
    pen.card(box, palette.CARD, palette.CARD_EDGE, 8)
    top, bottom = box[1] + u(10), box[3] - u(26)
    fit = max(1, (bottom - top) // u(SMALLEST_LANE))
    shown = scene.lanes[:fit]
    axis = (box[0] + u(60), top, box[2] - u(14), bottom)
    if not shown:
        pen.text(((box[0] + box[2]) // 2, (top + bottom) // 2), "no job is in a group", 12, palette.FAINT, anchor="mm")
    height = min((bottom - top) / max(1, len(shown)), 4.5 * u(SMALLEST_LANE))
    for number, lane in enumerate(shown):
        lane_box = (axis[0], round(top + number * height), axis[2], round(top + (number + 1) * height) - u(6))
        _draw_lane(pen, scene, lane, lane_box, box[0] + u(14))
    _draw_axis(pen, scene, axis)
    if len(scene.lanes) > fit:
        words = f"and {len(scene.lanes) - fit} more groups"
        pen.text((box[0] + u(14), box[3] - u(18)), words, 10, palette.FAINT)


def _draw_lane(pen: Pen, scene: GroupScene, lane: GroupLane, box: Box, left: int) -> None:
    u = pen.unit
    lasts = f"round {span(lane.round_s)}" if math.isfinite(lane.round_s) else "not measured yet"
    facts = f"{lane.machines} machines · {lasts} · CPU {lane.cpu:.0%} · network {lane.net:.0%} · "
    facts += f"memory {lane.memory:.0%} · jobs"
    swatch = (left, box[1] + u(2), left + u(9), box[1] + u(11))
    pen.box(swatch, _group_colour(lane.group))
    x = pen.text((left + u(14), box[1] + u(6)), f"group {lane.group}", 10, palette.INK, bold=True, anchor="lm") + u(8)
    x = pen.text((x, box[1] + u(6)), facts, 10, palette.FAINT, anchor="lm", within=box[2] - x) + u(6)
    _draw_members(pen, lane, (x, box[1] + u(1), box[2], box[1] + u(11)))
    first = box[1] + u(15)
    middle = (first + box[3]) // 2
    rows = {True: (first, middle - u(1)), False: (middle + u(1), box[3])}
    for is_cpu, (top, bottom) in rows.items():
        pen.text((left + u(14), (top + bottom) // 2), "CPU" if is_cpu else "net", 9, palette.FAINT, anchor="lm")
        pen.box((box[0], top, box[2], bottom), palette.TRACK)
    for subtask in lane.subtasks:
        top, bottom = rows[subtask.kind == "COMP"]
        ends = [_column(scene, box, at_s) for at_s in (subtask.begin_s, subtask.end_s)]
        _draw_subtask(pen, (ends[0], top, ends[1], bottom), subtask.job)


def _draw_members(pen: Pen, lane: GroupLane, box: Box) -> None:
    u, (x, middle) = pen.unit, (box[0], (box[1] + box[3]) // 2)
    leaving = sorted({subtask.job for subtask in lane.subtasks} - set(lane.members))
    for job in [*lane.members, *leaving]:
        if x + u(70) > box[2]:
            pen.text((x, middle), "and more", 10, palette.FAINT, anchor="lm")
            return
        pen.box((x, box[1], x + u(9), box[3]), job_colour(job))
        words = f"{job}{' loads' if job in lane.loading else ' leaves' if job in leaving else ''}"
        x = pen.text((x + u(12), middle), words, 10, palette.FAINT, anchor="lm") + u(8)


def _draw_subtask(pen: Pen, box: Box, job: int) -> None:
    colour = job_colour(job)
    wide = box[2] - box[0]
    pen.box((box[0], box[1], box[2] - (wide > 3), box[3]), colour)
    size = pen.fitting_size(str(job), 10, wide - 2)
    if size * pen.scale >= 7.5:
        place = ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)
        pen.text(place, str(job), size, palette.ink_on(colour), anchor="mm")


def _draw_axis(pen: Pen, scene: GroupScene, box: Box) -> None:
    for tick in range(TICKS + 1):
        at_s = scene.seconds * tick / TICKS
        x = _column(scene, box, scene.now_s + at_s)
        pen.line((x, box[3]), (x, box[3] + pen.unit(4)), palette.FAINT, 1)
        words = "now" if tick == 0 else f"+{span(at_s)}"
        pen.text((x, box[3] + pen.unit(7)), words, 9, palette.FAINT, anchor="ra" if tick == TICKS else "ma")


def _draw_foot(pen: Pen, scene: GroupScene, box: Box) -> None:
    u, middle = pen.unit, (box[1] + box[3]) // 2
    if not scene.waiting:
        pen.text((box[0], middle), "no job waits", 10, palette.FAINT, anchor="lm")
        return
    x = pen.text((box[0], middle), "waiting", 10, palette.FAINT, anchor="lm") + u(8)
    for job in scene.waiting:
        if x + u(70) > box[2]:
            pen.text((x, middle), "and more", 10, palette.FAINT, anchor="lm")
            return
        colour = job_colour(job)
        pen.box((x, box[1], x + u(22), box[3]), colour)
        pen.text((x + u(11), middle), str(job), 9, palette.ink_on(colour), anchor="mm")
        x += u(26)


def _column(scene: GroupScene, box: Box, at_s: float) -> int:
    share = min(1.0, max(0.0, (at_s - scene.now_s) / scene.seconds))
    return box[0] + round(share * (box[2] - box[0]))


def _group_colour(group: int) -> palette.Colour:
    return palette.mix(palette.HUES[group % len(palette.HUES)], palette.WHITE, 0.25)
