"""Places of tables, read from a simulator, and as text: a row a region, a column a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....simulator.base.codes import HIGH_LEVELS
from ....simulator.engine.simulator import Simulator
from ....simulator.table_placement.placement import Objective, Placement
from ....simulator.table_placement.placement_metrics import placement_state_of
from ..drawing import palette
from ..drawing.picture_words import cut
from .seen import mean_jct_s

NOTHING, COPY, LEAVES, COMES, HOME, ARRIVES = range(6)  # of a table in a region
MARKS = (".", "o", "-", "+", "H", ">")
WORDS = ("nothing", "replica", "about to be deleted", "replica on the way", "home", "home on the way")
REPLICA = palette.mix(palette.USED, palette.WHITE, 0.55)
COMING = palette.mix(palette.TIER_COLOURS[2], palette.WHITE, 0.45)
COLOURS = (palette.GPU_FREE, REPLICA, palette.GPU_DOWN, COMING, palette.USED, palette.TIER_COLOURS[2])
MOST_TABLES = 200


@dataclass(frozen=True)
class Moving:
    """A copy on the way: the table, its source (None: no region has one), its target, and the bytes left."""

    table: str
    source: str | None
    target: str
    left_bytes: float


@dataclass(frozen=True, eq=False)
class TableScene:
    """Places of tables now."""

    now_s: float
    regions: tuple[str, ...]
    lies: np.ndarray  # int8 (regions, tables), codes of `WORDS`, of the first 200 tables by bytes read
    order: list[int]  # numbers of these tables
    names: tuple[str, ...]  # of these tables
    all_names: tuple[str, ...]  # of every table, as the next four
    size_bytes: np.ndarray
    home_of: list[int]
    copies: list[list[int]]
    readers: list[int]  # number of recurring jobs
    tables: int
    load: np.ndarray  # float64 (regions,), demand over supply of high-priority GPU-hours at the future places
    stored: np.ndarray  # float64 (regions,), share of the storage in use
    cost: float  # of Figure 4
    terms: tuple[float, float, float]  # Expressions 1 to 3 of it, weighted
    home: float  # percentage, as the next; see placement_metrics.py
    collocated: float
    moving: tuple[Moving, ...]  # copies on the way
    is_due: bool  # whether it is the time of a review
    every_s: float  # between reviews
    jct_s: float  # mean JCT of finished jobs, seconds; nan: none is


def read_tables(simulator: Simulator) -> TableScene:
    """The tables of a simulator now."""
    view, s = simulator.view, simulator.raw.record
    warehouse = view.projected_warehouse()
    placement, state = Placement(warehouse, Objective()), placement_state_of(warehouse)
    n, regions = int(s["n_tables"]), int(s["n_regions"])
    place = np.arange(regions)[:, None]
    lies = np.where(s["table_copies"][:n] >> place & 1, COPY, NOTHING).astype(np.int8)
    lies[(s["table_doomed"][:n] >> place & 1) == 1] = LEAVES
    transfers = view.transfers
    for table, _, region, _ in transfers:
        lies[region, table] = ARRIVES if view.moving_to(table) == region else COMES
    lies[s["table_home"][:n], np.arange(n)] = HOME
    ledger = placement.ledger
    read = np.diff(ledger.first_user) * ledger.kib
    order = np.argsort(-read, kind="stable")[:MOST_TABLES]
    high = ledger.demand[:, :, :HIGH_LEVELS].sum(axis=(1, 2)) / np.maximum(ledger.supply.sum(axis=1), 1)
    stored = s["stored_bytes"][:regions] / np.maximum(s["storage_bytes"][:regions], 1)
    names, tables = view.demands.regions, view.demands.table_names
    return TableScene(
        now_s=float(s["now_s"]),
        regions=names,
        lies=lies[:, order],
        order=order.tolist(),
        names=tuple(tables[table] for table in order.tolist()),
        all_names=tables,
        size_bytes=np.asarray(warehouse.tables.size_bytes),
        home_of=s["table_home"][:n].tolist(),
        copies=[view.copies(table) for table in range(n)],
        readers=np.diff(ledger.first_user).tolist(),
        tables=n,
        load=high,
        stored=stored,
        cost=placement.cost,
        terms=placement.terms,
        home=state.home,
        collocated=state.collocated,
        moving=tuple(
            Moving(tables[table], None if source is None else names[source], names[region], left)
            for table, source, region, left in transfers
        ),
        is_due=view.tables_due,
        every_s=float(s["tables_every_s"]),
        jct_s=mean_jct_s(s),
    )


def table_lines(simulator: Simulator, width: int = 100) -> list[str]:
    """The tables as lines of text, at most `width` columns."""
    scene = read_tables(simulator)
    room = max(10, width - 34)
    lines = [
        f"{scene.tables} tables, those of which most is read first; {len(scene.moving)} copies on the way",
        f"cost {scene.cost:.3f}; {scene.home:.0f} % train at home, {scene.collocated:.0f} % collocated",
        "  ".join(f"{mark} {word}" for mark, word in zip(MARKS, WORDS, strict=True)),
    ]
    for region, row in enumerate(scene.lies):
        head = f"{cut(scene.regions[region], 12):<12} {scene.load[region]:5.2f}x {100 * scene.stored[region]:3.0f} %  "
        marks = "".join(MARKS[code] for code in row.tolist())
        lines.append(head + (marks if len(marks) <= room else marks[: room - 2] + ".."))
    return [cut(line, width) for line in lines]
