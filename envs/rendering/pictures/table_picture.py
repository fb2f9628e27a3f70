"""Places of tables as pixels: a row a region, a column a table; beside it decisions, costs and copies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....simulator.engine.simulator import Simulator
from ..drawing import palette
from ..drawing.pen import Pen
from ..drawing.picture_words import amount, clock, span
from ..scenes.seen import Seen, draw_run
from ..scenes.table_scene import COLOURS, WORDS, TableScene, read_tables
from .floor import Box
from .panels import draw_total

NARROWEST_NAMED = 8  # units of a column that has its name below it
LOWEST_OF_THREE = 44  # units of a row that says demand and storage in lines of their own
ROW = 15  # units, of a list
TERMS = (
    ("read across regions", "share of the bytes that jobs read from elsewhere"),
    ("uneven demand", "GPU-hours a region is asked, against its GPUs"),
    ("uneven storage", "bytes in a region, against its storage"),
)


class Boxes:
    """Places of the parts of a picture; `u` as `unit` of a pen."""

    def __init__(self, size: tuple[int, int], u: Callable[[float], int]) -> None:
        margin, head, foot, gap, side = u(14), u(76), u(34), u(10), u(256)
        right, bottom = size[0] - margin, size[1] - foot
        self.tables = (margin, head, right - side - gap, bottom)
        self.offered = (right - side, head, right, head + u(112))
        self.cost = (right - side, self.offered[3] + gap, right, self.offered[3] + gap + u(158))
        self.moving = (right - side, self.cost[3] + gap, right, bottom)
        self.foot = bottom


def draw_tables(
    simulator: Simulator, size: tuple[int, int], seen: Seen | None = None, offered: int | None = None
) -> np.ndarray:
    """Places of tables, uint8 (height, width, 3); `offered`: the one to be decided; else as `picture.draw_rgb`."""
    scene = read_tables(simulator)
    pen = Pen.page(size)
    boxes = Boxes(size, pen.unit)
    pen.panels(boxes.tables, boxes.offered, boxes.cost, boxes.moving)
    _draw_totals(pen, size[0], scene)
    draw_run(pen, scene.jct_s, seen, round(size[0] * 0.36))
    _draw_matrix(pen, boxes.tables, scene, offered)
    _draw_offered(pen, boxes.offered, scene, offered)
    _draw_cost(pen, boxes.cost, scene)
    _draw_moving(pen, boxes.moving, scene)
    _draw_legend(pen, boxes)
    return pen.pixels()


def _draw_totals(pen: Pen, width: int, scene: TableScene) -> None:
    u = pen.unit
    pen.text((u(14), u(14)), clock(scene.now_s), 24, palette.INK, bold=True)
    summary = f"{len(scene.regions)} regions · {scene.tables:,} tables of {amount(float(scene.size_bytes.sum()))}"
    pen.text((u(16), u(44)), summary, 10, palette.FAINT, within=round(width * 0.36))
    home, together = ([(round(10 * share), palette.USED)] for share in (scene.home, scene.collocated))
    draw_total(pen, round(width * 0.385), f"{scene.home:.0f} %", "train where their tables live", home, 1000)
    draw_total(pen, round(width * 0.585), f"{scene.collocated:.0f} %", "have data and GPUs together", together, 1000)
    draw_total(pen, round(width * 0.78), f"{len(scene.moving):,}", "copies on the way")
    draw_total(pen, round(width * 0.905), f"{scene.cost:.3f}", "cost")


def _draw_matrix(pen: Pen, box: Box, scene: TableScene, offered: int | None) -> None:
    u = pen.unit
    pen.title(box, "Tables")
    left, right = box[0] + u(114), box[2] - u(12)
    shown = scene.lies.shape[1]
    more = f"; the first {shown} of {scene.tables:,}" if shown < scene.tables else ""
    pen.text((left, box[1] + u(11)), f"from the left those of which most bytes are read{more}", 9, palette.FAINT)
    edges = np.linspace(left, right, shown + 1).round().astype(int).tolist()
    is_named = edges[1] - edges[0] >= u(NARROWEST_NAMED)
    sizes = (box[1] + u(28), box[1] + u(72))
    _draw_sizes(pen, scene, edges, sizes, box[0] + u(12))
    top, bottom = sizes[1] + u(8), box[3] - u(26 if is_named else 6)
    height = (bottom - top) / len(scene.regions)
    gap = 1 if edges[1] - edges[0] > 3 else 0
    for region, row in enumerate(scene.lies.tolist()):
        place = (round(top + region * height), round(top + (region + 1) * height) - max(1, u(6)))
        _draw_region(pen, scene, region, (box[0] + u(12), place[0], left - u(8), place[1]))
        for code, first, last in zip(row, edges[:-1], edges[1:], strict=True):
            pen.box((first, place[0], last - gap, place[1]), COLOURS[code])
    for column, name in enumerate(scene.names if is_named else ()):
        middle = (edges[column] + edges[column + 1]) // 2
        pen.upright((middle, box[3] - u(8)), name, 7, palette.FAINT, palette.CARD)
    if offered is not None and offered in scene.order:
        column = scene.order.index(offered)
        around = (edges[column] - u(2), sizes[0] - u(3), edges[column + 1] + u(1), bottom)
        pen.frame(around, palette.INK)
        pen.frame((around[0] + 1, around[1] + 1, around[2] - 1, around[3] - 1), palette.INK)


def _draw_sizes(pen: Pen, scene: TableScene, edges: list[int], rows: tuple[int, int], left: int) -> None:
    u = pen.unit
    largest = float(scene.size_bytes.max())
    pen.text((left, rows[0] + u(4)), "size, the largest", 9, palette.FAINT)
    pen.text((left, rows[0] + u(17)), f"{amount(largest)} (square root)", 9, palette.FAINT)
    gap = 1 if edges[1] - edges[0] > 3 else 0
    for table, first, last in zip(scene.order, edges[:-1], edges[1:], strict=True):
        high = max(1, round((rows[1] - rows[0]) * math.sqrt(float(scene.size_bytes[table]) / largest)))
        pen.box((first, rows[1] - high, last - gap, rows[1]), palette.FAINT)


def _draw_region(pen: Pen, scene: TableScene, region: int, box: Box) -> None:
    u, load, stored = pen.unit, float(scene.load[region]), float(scene.stored[region])
    colour = palette.TIER_COLOURS[3] if load > 1.0 else palette.USED
    if box[3] - box[1] < u(LOWEST_OF_THREE):
        middle = (box[1] + box[3]) // 2
        pen.text((box[0], middle), scene.regions[region], 10, palette.INK, anchor="lm", within=u(50))
        pen.text((box[2], middle), f"{load:.2f}x {100 * stored:.0f} %", 8, colour, anchor="rm")
        return
    pen.text((box[0], box[1]), scene.regions[region], 11, palette.INK, bold=True, within=box[2] - box[0])
    lines = (("GPUs", f"{load:.2f}x", min(load, 1.0), colour), ("data", f"{100 * stored:.0f} %", stored, palette.FAINT))
    for line, (words, number, share, fill) in enumerate(lines):
        middle = box[1] + u(22 + 14 * line)
        pen.text((box[0], middle), words, 9, palette.FAINT, anchor="lm")
        pen.text((box[2], middle), number, 9, fill, anchor="rm")
        track = (box[0] + u(30), middle - u(3), box[2] - u(32), middle + u(3))
        pen.bar(track, [(round(1000 * share), fill)], 1000)


def _draw_offered(pen: Pen, box: Box, scene: TableScene, offered: int | None) -> None:
    u, x = pen.unit, box[0] + pen.unit(12)
    pen.title(box, "To be decided")
    if offered is None:
        lines = ["tables are looked at now"] if scene.is_due else ["nothing: between two looks at the tables"]
        if math.isfinite(scene.every_s):
            lines.append(f"they are looked at every {span(scene.every_s)}")
    else:
        copies = [scene.regions[region] for region in scene.copies[offered]]
        lines = [
            f"table {scene.all_names[offered]}, {amount(float(scene.size_bytes[offered]))} (framed)",
            f"home: {scene.regions[scene.home_of[offered]]}; copies: {', '.join(copies)}",
            f"read by {scene.readers[offered]:,} jobs that recur",
            "move its home, add or drop a copy, or leave it",
        ]
    for number, words in enumerate(lines):
        colour = palette.INK if number == 0 else palette.FAINT
        pen.text((x, box[1] + u(32 + 18 * number)), words, 10, colour, within=box[2] - x - u(8))


def _draw_cost(pen: Pen, box: Box, scene: TableScene) -> None:
    u, x = pen.unit, box[0] + pen.unit(12)
    pen.title(box, f"Cost  {scene.cost:.3f}", "lower is better")
    whole = max(scene.cost, 1e-9)
    for number, ((name, meaning), term) in enumerate(zip(TERMS, scene.terms, strict=True)):
        top = box[1] + u(30 + 41 * number)
        pen.text((x, top), name, 10, palette.INK)
        pen.text((box[2] - u(12), top), f"{term:.3f}", 10, palette.INK, anchor="ra")
        pen.bar((x, top + u(15), box[2] - u(12), top + u(20)), [(round(1000 * term / whole), palette.USED)], 1000)
        pen.text((x, top + u(22)), meaning, 8, palette.FAINT, within=box[2] - x - u(8))


def _draw_moving(pen: Pen, box: Box, scene: TableScene) -> None:
    u, x = pen.unit, box[0] + pen.unit(12)
    pen.title(box, f"On the way  {len(scene.moving):,}", "left to copy")
    rows = max(1, (box[3] - box[1] - u(36)) // u(ROW))
    copies = sorted(scene.moving, key=lambda copy: -copy.left_bytes)
    shown = copies if len(copies) <= rows else copies[: rows - 1]
    for number, copy in enumerate(shown):
        y = box[1] + u(30 + ROW * number)
        pen.text((x, y), copy.table, 10, palette.INK, within=u(58))
        source = "no source" if copy.source is None else copy.source
        pen.text((x + u(62), y), f"{source} → {copy.target}", 10, palette.FAINT, within=u(108))
        pen.text((box[2] - u(12), y), amount(copy.left_bytes), 10, palette.FAINT, anchor="ra")
    if not shown:
        pen.text((x, box[1] + u(30)), "nothing is copied", 10, palette.FAINT)
    elif len(shown) < len(copies):
        pen.text((x, box[1] + u(30 + ROW * len(shown))), f"and {len(copies) - len(shown):,} more", 10, palette.FAINT)


def _draw_legend(pen: Pen, boxes: Boxes) -> None:
    u = pen.unit
    x, y, side = boxes.tables[0], boxes.foot + u(9), u(13)
    x = pen.swatches(x, y, side, zip(WORDS, COLOURS, strict=True))
    label = "GPUs 1.00x: high-priority jobs ask for all"
    pen.text((x, y + side // 2), label, 10, palette.FAINT, anchor="lm")
