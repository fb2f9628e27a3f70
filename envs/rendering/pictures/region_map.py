"""Regions around the edge, as pixels: a map of demand over supply with the tables on their way, and past use."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....simulator.engine.simulator import Simulator
from ..drawing import palette
from ..drawing.palette import Colour
from ..drawing.pen import Pen
from ..drawing.picture_words import amount, clock, span
from ..scenes.region_scene import Flow, Region, RegionScene, Supply, read_regions
from ..scenes.seen import Seen, draw_run
from .floor import Box
from .panels import draw_queue, draw_running, draw_total

LOW, EVEN, HIGH = palette.TIER_COLOURS[0], palette.TIER_COLOURS[2], palette.TIER_COLOURS[3]
GPUS, CPUS = palette.USED, palette.HUES[1]
ASKED = palette.mix(HIGH, palette.WHITE, 0.62)
FLOW = palette.HUES[3]
TAG_AT = 0.28  # of an arrow, from its start: tags of both directions differ
GRID = 4  # lines of the plot


def load_colour(load: float) -> Colour:
    """Green up to a demand over supply of 1/2, amber at 1, red from 2 on."""
    if load <= 1.0:
        return palette.mix(LOW, EVEN, min(1.0, max(0.0, 2.0 * load - 1.0)))
    return palette.mix(EVEN, HIGH, min(1.0, load - 1.0))


class Boxes:
    """Places of the parts of a picture; `u` as `unit` of a pen."""

    def __init__(self, size: tuple[int, int], u: Callable[[float], int]) -> None:
        margin, head, foot, gap, side = u(14), u(76), u(50), u(10), u(256)
        right, bottom = size[0] - margin, size[1] - foot
        middle = head + round((bottom - head) * 0.56)
        self.map = (margin, head, right - side - gap, head + round((bottom - head) * 0.7))
        self.course = (margin, self.map[3] + gap, self.map[2], bottom)
        self.queue = (right - side, head, right, middle)
        self.running = (right - side, middle + gap, right, bottom)
        self.foot = bottom


def draw_regions(simulator: Simulator, size: tuple[int, int], seen: Seen | None = None) -> np.ndarray:
    """The picture of a cluster with regions; see `picture.draw_rgb`."""
    return draw_region_scene(read_regions(simulator), size, seen)


def draw_region_scene(region_scene: RegionScene, size: tuple[int, int], seen: Seen | None = None) -> np.ndarray:
    """A scene of regions as a picture."""
    pen = Pen.page(size)
    boxes = Boxes(size, pen.unit)
    pen.panels(boxes.map, boxes.course, boxes.queue, boxes.running)
    _draw_totals(pen, boxes.map[0], size[0], region_scene)
    draw_run(pen, region_scene.scene.jct_s, seen, round(size[0] * 0.3))
    _draw_map(pen, boxes.map, region_scene)
    _draw_course(pen, boxes.course, region_scene)
    draw_queue(pen, boxes.queue, region_scene.scene)
    draw_running(pen, boxes.running, region_scene.scene, bands=False)
    _draw_legend(pen, boxes)
    return pen.pixels()


def _draw_totals(pen: Pen, margin: int, width: int, region_scene: RegionScene) -> None:
    scene = region_scene.scene
    pen.text((margin, pen.unit(14)), clock(scene.now_s), 24, palette.INK, bold=True)
    words = f"{scene.name} · {len(region_scene.regions)} regions"
    words += f" · {region_scene.late:,} started too late" if region_scene.late else ""
    pen.text((margin + 2, pen.unit(44)), words, 10, palette.FAINT, within=round(width * 0.3))
    down = f"GPUs used, {scene.down:,} units down" if scene.down else "GPUs used"
    draw_total(
        pen, round(width * 0.33), _of(region_scene.gpus), down, [(region_scene.gpus[0], GPUS)], region_scene.gpus[1]
    )
    draw_total(
        pen,
        round(width * 0.505),
        _of(region_scene.cpus),
        "CPU machines used",
        [(region_scene.cpus[0], CPUS)],
        region_scene.cpus[1],
    )
    waits = "waiting" + (f", {region_scene.n_unplaceable:,} for data" if region_scene.n_unplaceable else "")
    draw_total(pen, round(width * 0.661), f"{len(scene.running):,}", "running")
    draw_total(pen, round(width * 0.713), f"{scene.waiting + scene.held_jobs:,}", waits)
    done = [(scene.done, palette.TIER_COLOURS[0])]
    draw_total(pen, round(width * 0.838), f"{scene.done:,} / {scene.jobs:,}", "done", done, scene.jobs)


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} / {pair[1]:,}"


def _draw_map(pen: Pen, box: Box, region_scene: RegionScene) -> None:
    u = pen.unit
    pen.title(box, "Regions", _flow_words(region_scene))
    inner = (box[0] + u(10), box[1] + u(30), box[2] - u(10), box[3] - u(10))
    places = place_regions(len(region_scene.regions), inner, u(12), u(170))
    tags = [_draw_flow(pen, places, flow, region_scene) for flow in region_scene.flows]
    for at, words in tags:
        if words:
            pen.tag(at, words, 9, FLOW, palette.CARD)
    for region, place in zip(region_scene.regions, places, strict=True):
        _draw_region(pen, place, region)


def _flow_words(region_scene: RegionScene) -> str:
    tables = sum(flow.tables for flow in region_scene.flows)
    if not tables and not region_scene.stuck:
        return "no tables on the way"
    left = amount(sum(flow.left_bytes for flow in region_scene.flows))
    stuck = f", {region_scene.stuck:,} without a source" if region_scene.stuck else ""
    return f"copies on the way: {tables:,}, {left} left{stuck}"


def place_regions(count: int, inner: Box, gap: int, most_high: int) -> list[Box]:
    """A box for each region around the edge of `inner`, clockwise from the top left; at most `most_high` high.

    With two rows or two columns they fill `inner`, but for four times `gap`, where arrows have their words.
    """
    beside = 0 if count <= 6 else max(1, (count - 4) // 4)
    top = math.ceil((count - 2 * beside) / 2)
    below = count - 2 * beside - top
    rows = 2 + beside
    height = min(most_high, (inner[3] - inner[1] - (4 * gap if rows == 2 else (rows - 1) * gap)) // rows)
    width = (inner[2] - inner[0] - (max(top, 2) - 1) * gap) // max(top, 2)
    width = min(width, (inner[2] - inner[0] - 4 * gap) // 2)
    right, bottom = inner[2] - width, inner[3] - height
    steps = [inner[1] + (bottom - inner[1]) * (row + 1) // (beside + 1) for row in range(beside)]
    corners = [(x, inner[1]) for x in _spread(inner[0], right, top)]
    corners += [(right, y) for y in steps]
    corners += [(x, bottom) for x in reversed(_spread(inner[0], right, below))]
    corners += [(inner[0], y) for y in reversed(steps)]
    return [(x, y, x + width, y + height) for x, y in corners]


def _spread(first: int, last: int, count: int) -> list[int]:
    if count == 1:
        return [(first + last) // 2]
    return [first + (last - first) * i // (count - 1) for i in range(count)]


def _draw_region(pen: Pen, place: Box, region: Region) -> None:
    u = pen.unit
    left, top, right, bottom = place
    edge = load_colour(region.load) if region.is_up else palette.GPU_DOWN
    pen.card(place, palette.MACHINE if region.is_up else palette.mix(palette.GPU_DOWN, palette.WHITE, 0.6), edge, 6)
    pen.box((left + u(1), top + u(6), left + u(5), bottom - u(6)), edge)
    pad = left + u(12)
    rows = len(region.supplies) + 1
    line = min(u(26), (bottom - top - u(26)) // max(1, rows))
    if right - left < u(84) or line < u(9):
        load_end = pen.text((right - u(5), (top + bottom) // 2), f"{region.load:.2f}x", 9, edge, bold=True, anchor="rm")
        room = right - pad - (load_end - right) - u(12)
        pen.text((pad, (top + bottom) // 2), region.name, 9, palette.INK, anchor="lm", within=room)
        return
    state = "down" if not region.is_up else ""
    end = pen.text((right - u(8), top + u(6)), state, 9, HIGH, anchor="ra") if state else right - u(8)
    pen.text((pad, top + u(5)), region.name, 11, palette.INK, bold=True, within=end - pad)
    for number, supply in enumerate(region.supplies):
        _draw_supply(pen, (pad, top + u(21) + number * line, right - u(8), line), supply)
    _draw_storage(pen, (pad, top + u(21) + (rows - 1) * line, right - u(8), line), region)


def _draw_supply(pen: Pen, row: Box, supply: Supply) -> None:
    """A line of a card: type, track of used and asked units with a tick for the supply if more is asked, ratio."""
    u = pen.unit
    left, top, right, line = row
    middle = top + line // 2
    narrow = right - left < u(150)
    pen.text((left, middle), supply.kind, 9, palette.INK, anchor="lm", within=u(34 if narrow else 44))
    pen.text((right, middle), f"{supply.load:.2f}x", 9, load_colour(supply.load), bold=True, anchor="rm")
    track = (left + u(36 if narrow else 46), middle - u(4), right - u(34 if narrow else 92), middle + u(4))
    if not narrow:
        pen.text((right - u(36), middle), f"{supply.used:,} / {supply.units:,}", 9, palette.FAINT, anchor="rm")
    if track[2] - track[0] < u(12):
        return
    whole = max(float(supply.units), supply.used + supply.down + supply.asked)
    held = [(supply.used, CPUS if supply.kind == "CPU" else GPUS), (supply.down, palette.GPU_DOWN)]
    pen.bar(track, [*held, (round(supply.asked), ASKED)], whole)
    at = track[0] + round((track[2] - track[0]) * supply.units / whole)
    if whole > supply.units:
        pen.box((at - 1, track[1] - u(2), at + 1, track[3] + u(2)), palette.INK)


def _draw_storage(pen: Pen, row: Box, region: Region) -> None:
    u = pen.unit
    left, top, right, line = row
    middle = top + line // 2
    narrow = right - left < u(150)
    pen.text((left, middle), "data", 9, palette.FAINT, anchor="lm", within=u(34))
    track = (left + u(36 if narrow else 46), middle - u(2), right - u(34 if narrow else 92), middle + u(2))
    share = region.stored_bytes / max(1.0, region.storage_bytes)
    pen.text((right, middle), f"{100 * share:.0f} %", 9, palette.FAINT, anchor="rm")
    if not narrow:
        pen.text((right - u(36), middle), amount(region.storage_bytes), 9, palette.FAINT, anchor="rm")
    if track[2] - track[0] >= u(12):
        there = region.stored_bytes - region.coming_bytes
        parts = [(round(1000 * part / max(1.0, region.storage_bytes)), colour) for part, colour in (
            (there, palette.FAINT), (region.coming_bytes, FLOW))]  # fmt: skip
        pen.bar(track, parts, 1000)


def _draw_flow(pen: Pen, places: list[Box], flow: Flow, region_scene: RegionScene) -> tuple[tuple[int, int], str]:
    """An arrow from card to card, wider for more bytes; directions side by side. Returns place and words of its tag."""
    boxes = [places[region] for region in (flow.source, flow.target)]
    source, target = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in boxes)
    angle = math.atan2(target[1] - source[1], target[0] - source[0])
    sideways = 5 * pen.scale
    shift = -math.sin(angle) * sideways, math.cos(angle) * sideways
    start = _on_edge(places[flow.source], source, angle, shift)
    end = _on_edge(places[flow.target], target, angle + math.pi, shift)
    largest = max(other.left_bytes for other in region_scene.flows)
    width = 1.0 + 3.0 * math.sqrt(flow.left_bytes / largest) if largest > 0.0 else 1.0
    pen.arrow(start, end, FLOW, width)
    place = tuple(round(a + TAG_AT * (b - a)) for a, b in zip(start, end, strict=True))
    words = f"{amount(flow.left_bytes)}" + (f" ({flow.tables})" if flow.tables > 1 else "")
    return (place[0], place[1]), words if math.hypot(end[0] - start[0], end[1] - start[1]) > 40 * pen.scale else ""


def _on_edge(place: Box, middle: tuple[float, float], angle: float, shift: tuple[float, float]) -> tuple[int, int]:
    dx, dy = math.cos(angle), math.sin(angle)
    half = (place[2] - place[0]) / 2 + 3, (place[3] - place[1]) / 2 + 3
    far = min(half[0] / abs(dx) if abs(dx) > 1e-9 else math.inf, half[1] / abs(dy) if abs(dy) > 1e-9 else math.inf)
    return round(middle[0] + dx * far + shift[0]), round(middle[1] + dy * far + shift[1])


def _draw_course(pen: Pen, box: Box, region_scene: RegionScene) -> None:
    u = pen.unit
    pen.title(box, "In use")
    x = box[0] + u(64)
    for words, colour in (("GPUs", GPUS), ("CPU machines", CPUS)):
        pen.box((x, box[1] + u(14), x + u(12), box[1] + u(17)), colour)
        x = pen.text((x + u(16), box[1] + u(11)), words, 9, palette.FAINT) + u(12)
    plot = (box[0] + u(42), box[1] + u(32), box[2] - u(16), box[3] - u(22))
    for step in range(GRID + 1):
        y = plot[3] - (plot[3] - plot[1]) * step // GRID
        pen.box((plot[0], y, plot[2], y + 1), palette.TRACK)
        if step % 2 == 0:
            pen.text((plot[0] - u(5), y), f"{100 * step // GRID} %", 9, palette.FAINT, anchor="rm")
    bins = region_scene.course.shape[1]
    if bins == 0:
        pen.text((plot[0], plot[3] + u(5)), "nothing has happened yet", 9, palette.FAINT)
        return
    pen.text((plot[0], plot[3] + u(5)), "first arrival", 9, palette.FAINT)
    pen.text((plot[2], plot[3] + u(5)), f"{span(region_scene.elapsed_s)} later", 9, palette.FAINT, anchor="ra")
    for number, colour in ((1, CPUS), (0, GPUS)):
        _draw_line(pen, plot, region_scene, region_scene.course[number], colour)


def _draw_line(pen: Pen, plot: Box, region_scene: RegionScene, shares: np.ndarray, colour: Colour) -> None:
    before: tuple[int, int] | None = None
    for number, share in enumerate(shares.tolist()):
        y = plot[3] - round((plot[3] - plot[1]) * min(1.0, share))
        begin, end = (min(region_scene.elapsed_s, edge * region_scene.bin_s) for edge in (number, number + 1))
        left, right = (plot[0] + round((plot[2] - plot[0]) * at / region_scene.elapsed_s) for at in (begin, end))
        if before is not None:
            pen.line(before, (left, y), colour, 1.6)
        pen.line((left, y), (right, y), colour, 1.6)
        before = right, y


def _draw_legend(pen: Pen, boxes: Boxes) -> None:
    u = pen.unit
    x, y, side = boxes.map[0], boxes.foot + u(7), u(12)
    entries = [("GPUs used", GPUS), ("CPU machines used", CPUS), ("asked by waiting jobs", ASKED)]
    entries += [("down", palette.GPU_DOWN), ("tables on the way", FLOW)]
    x = pen.swatches(x, y, side, entries)
    pen.box((x, y + u(2), x + u(30), y + side - u(2)), ASKED)
    pen.box((x, y + u(2), x + u(18), y + side - u(2)), GPUS)
    pen.box((x + u(18) - 1, y, x + u(18) + 1, y + side), palette.INK)
    label = "black tick: all there is, where more is asked"
    pen.text((x + u(35), y + side // 2), label, 10, palette.FAINT, anchor="lm")
    x, y = boxes.map[0], boxes.foot + u(32)
    words = "1.00x: held and asked over what there is; a region's frame has the colour of its scarcest units"
    x = pen.text((x, y), words, 10, palette.FAINT, anchor="lm") + u(12)
    x = pen.text((x, y), "0.5 or less", 10, palette.FAINT, anchor="lm") + u(5)
    width = u(150)
    pen.shades((x, y - u(4), x + width, y + u(4)), 30, lambda share: load_colour(0.5 + 1.5 * share))
    pen.text((x + width // 3, y), "1", 9, palette.INK, anchor="mm")
    x = pen.text((x + width + u(5), y), "2 or more", 10, palette.FAINT, anchor="lm") + u(12)
    pen.box((x, y - u(6), x + side, y + u(6)), palette.GPU_DOWN)
    pen.text((x + side + u(5), y), "region is down", 10, palette.FAINT, anchor="lm")
