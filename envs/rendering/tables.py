"""What lies where: a row a region, a column a table, as text and as pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulator.engine import Simulator
from ...simulator.geo.expected import expected_warehouse
from ...simulator.geo.placement import Objective, Placement
from ...simulator.geo.standing import standing_of
from ...simulator.geo.warehouse import HIGH_LEVELS
from . import colours
from .pen import Pen, new_image
from .words import clock, cut

NOTHING, COPY, LEAVES, COMES, HOME, ARRIVES = range(6)  # of a table in a region
MARKS = (".", "o", "-", "+", "H", ">")
WORDS = ("nothing", "replica", "about to be deleted", "replica on the way", "home", "home on the way")
COLOURS = (
    colours.GPU_FREE,
    colours.mix(colours.USED, colours.WHITE, 0.55),
    colours.GPU_DOWN,
    colours.mix(colours.TIER_COLOURS[2], colours.WHITE, 0.45),
    colours.USED,
    colours.TIER_COLOURS[2],
)
MOST_TABLES = 200


@dataclass(frozen=True, eq=False)
class TableScene:
    """What lies where now.

    Attributes:
        now_s: the clock.
        regions: names. lies: int8 (regions, tables), codes of `WORDS`; tables in order of the bytes that are read, the
            first 200.
        tables: of all, how many. load: float64 (regions,), demand over supply of high-priority GPU-hours as the tables
            will lie. stored: float64 (regions,), share of the storage that is taken.
        cost: of Figure 4. home, collocated: percentages (simulator/geo/standing.py). on_the_way: copies.
    """

    now_s: float
    regions: tuple[str, ...]
    lies: np.ndarray
    tables: int
    load: np.ndarray
    stored: np.ndarray
    cost: float
    home: float
    collocated: float
    on_the_way: int


def read_tables(simulator: Simulator) -> TableScene:
    """The tables of a simulator at the present instant."""
    view, s = simulator.view, simulator.plain.record
    warehouse = expected_warehouse(view)
    placement, standing = Placement(warehouse, Objective()), standing_of(warehouse)
    n, regions = int(s["n_tables"]), int(s["n_regions"])
    place = np.arange(regions)[:, None]
    lies = np.where(s["table_copies"][:n] >> place & 1, COPY, NOTHING).astype(np.int8)
    lies[(s["table_doomed"][:n] >> place & 1) == 1] = LEAVES
    transfers = view.transfers
    for table, _, region, _ in transfers:
        lies[region, table] = ARRIVES if view.moving_to(table) == region else COMES
    lies[s["table_home"][:n], np.arange(n)] = HOME
    ledger = placement.ledger
    read = np.diff(ledger.first_user) * ledger.size
    order = np.argsort(-read, kind="stable")[:MOST_TABLES]
    high = ledger.demand[:, :, :HIGH_LEVELS].sum(axis=(1, 2)) / np.maximum(ledger.supply.sum(axis=1), 1)
    stored = s["stored_bytes"][:regions] / np.maximum(s["storage_bytes"][:regions], 1)
    percent = standing.home, standing.collocated
    names = view.demands.regions
    return TableScene(
        float(s["now_s"]), names, lies[:, order], n, high, stored, placement.cost, *percent, len(transfers)
    )


def table_lines(simulator: Simulator, width: int = 100) -> list[str]:
    """The tables as lines of text, at most `width` columns."""
    scene = read_tables(simulator)
    room = max(10, width - 34)
    lines = [_told(scene), "  ".join(f"{mark} {word}" for mark, word in zip(MARKS, WORDS, strict=True))]
    for region, row in enumerate(scene.lies):
        told = f"{cut(scene.regions[region], 12):<12} {scene.load[region]:5.2f}x {100 * scene.stored[region]:3.0f} %  "
        marks = "".join(MARKS[code] for code in row.tolist())
        lines.append(told + (marks if len(marks) <= room else marks[: room - 2] + ".."))
    return [cut(line, width) for line in lines]


def _told(scene: TableScene) -> str:
    return (
        f"{scene.tables} tables, those of which most is read first; cost {scene.cost:.3f}, {scene.home:.0f} % train at "
        f"home, {scene.collocated:.0f} % collocated, {scene.on_the_way} copies on the way"
    )


def draw_tables(simulator: Simulator, size: tuple[int, int]) -> np.ndarray:
    """What lies where, as a picture: uint8 (height, width, 3); `size`: width and height in pixels."""
    scene = read_tables(simulator)
    scale = min(size[0] / 960, size[1] / 640)
    pen = Pen(new_image(size, colours.PAGE), scale)
    u = pen.unit
    pen.text((u(14), u(14)), clock(scene.now_s), 24, colours.INK, bold=True)
    pen.text((u(14), u(48)), _told(scene), 11, colours.FAINT, within=size[0] - u(28))
    card = (u(14), u(74), size[0] - u(14), size[1] - u(44))
    pen.card(card, colours.CARD, colours.CARD_EDGE, 8)
    top, bottom = card[1] + u(28), card[3] - u(12)
    height = (bottom - top) / len(scene.regions)
    left, right = card[0] + u(230), card[2] - u(12)
    for text, x in (("region", u(12)), ("demand / supply", u(92)), ("storage", u(186))):
        pen.text((card[0] + x, card[1] + u(9)), text, 10, colours.FAINT)
    for region, row in enumerate(scene.lies.tolist()):
        box = (round(top + region * height), round(top + (region + 1) * height) - max(1, u(6)))
        _draw_region(pen, scene, region, (card[0], box[0], left, box[1]))
        edges = np.linspace(left, right, len(row) + 1).round().astype(int).tolist()
        gap = 1 if edges[1] - edges[0] > 3 else 0
        for code, first, last in zip(row, edges[:-1], edges[1:], strict=True):
            pen.box((first, box[0], last - gap, box[1]), COLOURS[code])
    _draw_legend(pen, size)
    return pen.pixels()


def _draw_region(pen: Pen, scene: TableScene, region: int, box: tuple[int, int, int, int]) -> None:
    u, middle = pen.unit, (box[1] + box[3]) // 2
    pen.text((box[0] + u(12), middle), scene.regions[region], 11, colours.INK, anchor="lm", within=u(76))
    load = float(scene.load[region])
    colour = colours.TIER_COLOURS[3] if load > 1.0 else colours.USED
    shares = (
        (u(92), min(load, 2.0) / 2.0, colour, f"{load:.2f}"),
        (u(186), float(scene.stored[region]), colours.USED, ""),
    )
    for x, share, fill, number in shares:
        pen.bar((box[0] + x, middle - u(4), box[0] + x + u(40), middle + u(4)), [(round(1000 * share), fill)], 1000)
        pen.text((box[0] + x + u(44), middle), number, 9, colours.FAINT, anchor="lm")


def _draw_legend(pen: Pen, size: tuple[int, int]) -> None:
    u = pen.unit
    x, y, side = u(14), size[1] - u(30), u(14)
    for word, colour in zip(WORDS, COLOURS, strict=True):
        pen.box((x, y, x + side, y + side), colour)
        x = pen.text((x + side + u(5), y + side // 2), word, 10, colours.FAINT, anchor="lm") + u(14)
