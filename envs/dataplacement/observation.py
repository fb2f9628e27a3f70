"""Features of the present: what `DataPlacement-v0` shows to an agent.

Counts n read n / (n + 32), ratios x x / (1 + x), times t log1p(t) / log1p(horizon), bytes b log2(1 + b / 1 MB) / 32;
all are cut at 1. A change c of the cost reads 1/2 + c / (2 (|c| + 0.01 c0)), c0 being the cost at the beginning: below
1/2 it gains. Tables lie where they will once everything that is on the way has arrived. Users of tables are the
training jobs that the slow path knows; one that counts as high priority does so with its GPU-hours a day. Everything
lies in [0, 1]; rows without a table, copy or region, and candidates that are not legal, are zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...simulator.warehouse.warehouse import HIGH_LEVELS
from ..python_step import PythonStepInterface, crowd
from .review import DONE, FIRST_REGION, KINDS, LEAVE, PlacementReview

CLUSTER = (
    "time since the first arrival",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "waiting jobs",
    "running jobs",
    "waiting jobs that no region can run for want of tables",
    "units that are free, of all",
    "tables that are behind, of all",
    "quota that is left, of the quota",
    "cost of Figure 4 c: c / (c + cost at the beginning)",
    "Expression 1: bytes read across regions, of all that are read",
    "Expression 6: high-priority GPU-hours that train at home, of all",
    "high-priority GPU-hours that some region has tables and GPUs for, of all",
    "highest demand over supply of a region, high priority",
    "storage that is taken, of all",
    "copies on the way",
)
QUEUE = (
    "1: a table stands here",
    "its bytes",
    "its bytes, of all tables",
    "readers",
    "bytes that are read of it, of all that are read",
    "high-priority GPU-hours of its readers, of all",
    "copies, of the regions",
    "1: its home is on the move",
    "what its best move by itself gains, of the cost at the beginning",
    "readers that no region can run, of its readers",
    "waiting jobs that read it",
    "decisions about it at this instant: n / (n + 4)",
)
RUNNING = (
    "1: a copy on the way stands here",
    "bytes left",
    "1: its table moves home with it",
    "1: it waits for a source",
    "readers of its table",
    "waiting jobs that read its table",
)
REGIONS = (
    "1: a region stands here",
    "1: it is up",
    "its GPUs, of all",
    "its units that are free, of its own",
    "demand over supply of high-priority GPU-hours",
    "demand over supply of all GPU-hours",
    "its storage, of all",
    "storage that is taken, of its own",
    "bytes that have their home here, of all tables",
    "jobs that run here",
    "1: home of the offered table",
    "1: the offered table lies here, or is on the way",
    "1: it is on the way",
    "readers of the offered table whose hardware is here, of its readers",
    "readers of the offered table that could run here, of its readers",
    "time to copy the offered table here from its home, over an idle link",
)
CANDIDATES = (
    "1: legal",
    "1: done for now",
    "1: home to the region",
    "1: drop the replica",
    "1: on to the next table",
    "1: replica to the region",
    "change of the cost",
    "1: Expressions 4 to 6 stay as they are, or get better",
    "bytes to copy, of the room in the region",
    "bytes to copy, of the quota that is left",
    "readers that can run in the region then, and could not",
    "high-priority GPU-hours of those that could run nowhere, of all",
    "readers that cannot run in the region then, and could",
    "high-priority GPU-hours of those that can run nowhere then, of all",
    "waiting jobs that can run in the region then, and in none now",
)
LEGAL, IS_DONE, IS_HOME, IS_DROP, IS_LEAVE, IS_REPLICA = range(6)
CHANGE = 6  # the first column that tells what a candidate comes to
MEGABYTE, LOG_MOST = 1e6, 32.0
SLIGHT_CHANGE = 0.01
FEW = 4.0
COLUMN_OF_KIND = (IS_HOME, IS_REPLICA, IS_DROP)  # in the order of review.KINDS


class Sight:
    """What several features are made of, as it is until the next decision is carried out.

    Attributes:
        first_cost: of Figure 4, where the tables were at the beginning.
        decisions: that the run had made.
        runs: bool (readers, regions), where known readers have tables and hardware; able: bool (readers,), somewhere.
        stranded: bool (waiting,), jobs of the queue that no region can run.
        unable: int64 (tables,), known readers that no region can run.
        gains: float64 (tables,), what the best move of each by itself would take off the cost.
        load: float64 (regions,), demand over supply of high-priority GPU-hours; load_of_all: of all.
    """

    def __init__(self, day: PlacementReview, first_cost: float) -> None:
        self.day, self.first_cost, ledger = day, first_cost, day.placement.ledger
        self.decisions = int(day.simulator.plain.record["decisions"])
        lacks, waiting_lacks = day.lacks
        self.runs = (lacks == 0) & day.known.fits
        self.stranded = ~((waiting_lacks == 0) & day.waiting.fits).any(axis=1)
        self.able = self.runs.any(axis=1)
        self.unable = day.known.count(len(day.order), ~self.able)
        self.gains = day.placement.best_moves()
        supply = np.maximum(ledger.supply.sum(axis=1), 1)
        self.load = ledger.demand[:, :, :HIGH_LEVELS].sum(axis=(1, 2)) / supply
        self.load_of_all = ledger.demand.sum(axis=(1, 2)) / supply

    def is_of(self, day: PlacementReview) -> bool:
        """Whether it is of that instant, and nothing has been decided since."""
        return self.day is day and self.decisions == int(day.simulator.plain.record["decisions"])


def observe(look: PythonStepInterface, sight: Sight | None, features: np.ndarray) -> None:
    """Write all features, float32: cluster, queue, running, regions and candidates, one after the other.

    `sight`: of the instant, while tables are offered; None: there is nothing to decide.
    """
    features[:] = 0.0
    parts = {key: features[place] for key, place in look.places.items()}
    _observe_clock(look, parts["cluster"])
    if sight is None:
        parts["candidates"][[LEGAL, IS_DONE]] = 1.0
        return
    _observe_tables(look, sight, parts["cluster"])
    _observe_queue(sight, parts["queue"].reshape(-1, len(QUEUE)))
    _observe_copies(look, sight, parts["running"].reshape(-1, len(RUNNING)))
    _observe_regions(look, sight, parts["regions"].reshape(-1, len(REGIONS)))
    _observe_candidates(sight, parts["candidates"].reshape(-1, len(CANDIDATES)))


def ratio(value: Any) -> Any:
    """Ratios from 0 up as features."""
    return value / (1.0 + value)


def bytes_read(size: float) -> float:
    """Bytes as a feature."""
    return min(1.0, math.log2(1.0 + size / MEGABYTE) / LOG_MOST)


def part(value: float, whole: float) -> float:
    """A share, cut at 1; of nothing, 1 where there is something."""
    return min(1.0, value / whole) if whole > 0 else float(value > 0)


def parts(values: np.ndarray, wholes: Any) -> np.ndarray:
    """`part` of arrays."""
    there = np.greater(wholes, 0)
    return np.where(there, np.minimum(1.0, values / np.where(there, wholes, 1)), values > 0)


def _observe_clock(look: PythonStepInterface, shown: np.ndarray) -> None:
    s, w = look.simulator.plain.record, look.plain
    shown[0] = min(1.0, math.log1p(max(0.0, float(s["now_s"] - s["start_s"]))) / float(w["log_horizon"]))
    jobs = int(s["n_jobs"])
    shown[1], shown[2] = int(s["next_arrival"]) / jobs, int(s["done"]) / jobs
    shown[3], shown[4] = crowd(int(s["waiting"])), crowd(int(s["running"]))
    shown[6] = int(s["free_gpus"]) / int(s["n_gpus"])


def _observe_tables(look: PythonStepInterface, sight: Sight, shown: np.ndarray) -> None:
    day, s = sight.day, look.simulator.plain.record
    ledger, n = day.placement.ledger, int(s["n_regions"])
    cost = day.placement.cost
    shown[5] = crowd(int(sight.stranded.sum()))
    shown[7] = day.place / len(day.order)
    shown[8] = 1.0 - part(day.spent_bytes, day.quota_bytes)
    shown[9] = cost / max(cost + sight.first_cost, 1e-12)
    shown[10] = part(float(ledger.remote[0]), float(max(1, ledger.total.sum())))
    shown[11] = part(float(ledger.met[0]), float(max(1, ledger.met_by.sum())))
    shown[12] = part(float(day.known.hours[sight.able].sum()), day.high_hours)
    shown[13] = ratio(float(sight.load.max()))
    shown[14] = part(float(s["stored_bytes"][:n].sum()), float(s["storage_bytes"][:n].sum()))
    shown[15] = crowd(int(s["n_transfers"]))


def _observe_queue(sight: Sight, rows: np.ndarray) -> None:
    """Write the offered table and those whose turn is next."""
    day, s = sight.day, sight.day.simulator.plain.record
    following = day.order[day.place :]
    tables = np.concatenate([[day.offered], following[following != day.offered]])[: len(rows)]
    shown, readers = rows[: len(tables)], day.readers[tables]
    shown[:] = _rows_of_day(day, tables)
    shown[:, 6] = day.copies[tables].mean(axis=1)
    shown[:, 7] = s["table_target"][tables] >= 0
    shown[:, 8] = parts(sight.gains[tables], sight.first_cost)
    shown[:, 9] = sight.unable[tables] / np.maximum(readers, 1)
    shown[:, 10] = crowd(day.waiting_readers[tables])
    if day.decided:
        shown[:, 11] = [_few(len(day.decided.get(table, ()))) for table in tables.tolist()]


def _rows_of_day(day: PlacementReview, tables: np.ndarray) -> np.ndarray:
    """The rows of tables, float64 (n, columns), but for what decisions change, which is 0 in them."""
    rows = day.rows
    for table in tables[rows[tables, 0] == 0.0].tolist():
        ledger, hours = day.placement.ledger, day.known.hours[day.known.of(table)]
        rows[table, :6] = (
            1.0,
            bytes_read(float(day.simulator.plain.record["table_size"][table])),
            part(float(ledger.size[table]), float(ledger.size.sum())),
            crowd(len(hours)),
            part(float(day.read_bytes[table]), float(day.read_bytes.sum())),
            part(float(hours.sum()), day.high_hours),
        )
    found: np.ndarray = rows[tables]
    return found


def _few(count: int) -> float:
    return count / (count + FEW)


def _observe_copies(look: PythonStepInterface, sight: Sight, rows: np.ndarray) -> None:
    """Write copies on the way, those with the most bytes left first."""
    view = look.simulator.view
    on_the_way = sorted(view.transfers, key=lambda copy: (-copy[3], copy[0], copy[2]))
    for row, (table, source, region, left) in zip(rows, on_the_way, strict=False):
        moves = float(view.moving_to(table) == region)
        row[:] = [
            1.0,
            bytes_read(left),
            moves,
            float(source is None),
            crowd(int(sight.day.readers[table])),
            crowd(int(sight.day.waiting_readers[table])),
        ]


def _observe_regions(look: PythonStepInterface, sight: Sight, rows: np.ndarray) -> None:
    day, s = sight.day, look.simulator.plain.record
    ledger, world, topology = day.placement.ledger, day.placement.warehouse.world, look.simulator.topology
    n, table = len(world), day.offered
    readers = day.known.of(table)
    clusters = int(s["n_clusters"])
    region_of = s["cluster_region"][:clusters]
    free = np.bincount(region_of, s["cluster_free"][:clusters], n)
    units = np.bincount(region_of, s["cluster_gpus"][:clusters], n)
    running = s["job_region"][s["runner"][: int(s["running"])]]
    shown = rows[:n]
    shown[:, 0] = 1.0
    shown[:, 1] = int(s["up_regions"]) >> np.arange(n) & 1
    shown[:, 2] = world.gpus.sum(axis=1) / max(1, int(world.gpus.sum()))
    shown[:, 3] = free / np.maximum(units, 1)
    shown[:, 4], shown[:, 5] = ratio(sight.load), ratio(sight.load_of_all)
    storage = np.maximum(world.storage_bytes, 1)
    shown[:, 6] = storage / storage.sum()
    shown[:, 7] = np.minimum(1.0, s["stored_bytes"][:n] / storage)
    shown[:, 8] = ledger.stored / max(1, int(ledger.stored.sum()))
    shown[:, 9] = crowd(np.bincount(running, minlength=n))
    home = int(ledger.home[table])
    shown[home, 10] = 1.0
    shown[:, 11] = day.copies[table]
    shown[:, 12] = day.copies[table] & ((int(s["table_copies"][table]) >> np.arange(n) & 1) == 0)
    if len(readers):
        shown[:, 13] = day.known.fits[readers].mean(axis=0)
        shown[:, 14] = sight.runs[readers].mean(axis=0)
    assert topology.lands is not None
    rate = topology.lands.wan_bytes_per_s[home]
    shown[:, 15] = np.minimum(1.0, np.log1p(float(s["table_size"][table]) / rate) / float(look.plain["log_horizon"]))
    shown[home, 15] = 0.0


def _observe_candidates(sight: Sight, rows: np.ndarray) -> None:
    """Write legal candidates and what each comes to."""
    day = sight.day
    rows[DONE, [LEGAL, IS_DONE]] = 1.0
    rows[LEAVE, [LEGAL, IS_LEAVE]] = 1.0
    rows[:2, CHANGE] = 0.5
    rows[:2, CHANGE + 1] = 1.0
    regions, kinds = np.nonzero(day.legal())
    if len(regions) == 0:
        return
    at, columns = FIRST_REGION + len(KINDS) * regions + kinds, np.array(COLUMN_OF_KIND)[kinds]
    rows[at, LEGAL] = rows[at, columns] = 1.0
    for column, values in enumerate(_worth(sight, regions, kinds), CHANGE):
        rows[at, column] = values


def _worth(sight: Sight, regions: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, ...]:
    """What decisions about the offered table come to, (n,), by the columns from CHANGE on."""
    day, s = sight.day, sight.day.simulator.plain.record
    columns = np.array(COLUMN_OF_KIND)[kinds]
    change, keeps = day.placement.changes(day.offered)
    is_home = columns == IS_HOME
    change, keeps = np.where(is_home, change[regions], 0.0), np.where(is_home, keeps[regions], True)
    size = day.sizes[regions, kinds].astype(np.float64)
    room = (s["storage_bytes"][regions] - s["stored_bytes"][regions]).astype(np.float64)
    came, found, left, lost, served = _readers_after(sight, regions, columns)
    return (
        0.5 + 0.5 * change / (np.abs(change) + SLIGHT_CHANGE * sight.first_cost + 1e-12),
        keeps,
        parts(size, room),
        parts(size, day.quota_bytes - day.spent_bytes),
        crowd(came),
        parts(found, day.high_hours),
        crowd(left),
        parts(lost, day.high_hours),
        crowd(served),
    )


def _readers_after(sight: Sight, regions: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Users of the offered table after decisions about it; a home that moves leaves a copy that was made a replica.

    Returns:
        Of each decision, (n,): readers that come to the region; hours of those that ran nowhere; readers that go; hours
        of those that run nowhere then; waiting jobs that come and had no region.
    """
    day, table = sight.day, sight.day.offered
    readers, home, which = day.known.of(table), int(day.placement.ledger.home[table]), np.arange(len(regions))
    runs, hours, could = sight.runs[readers], day.known.hours[readers], sight.able[readers]
    after = np.repeat(runs[None], len(regions), axis=0)
    comes = (columns != IS_DROP) & ~day.copies[table, regions]
    joined = (day.lacks[0][readers] == 1) & day.known.fits[readers]
    after[which[comes], :, regions[comes]] = joined[:, regions[comes]].T
    after[which[columns == IS_DROP], :, regions[columns == IS_DROP]] = False
    if not int(day.simulator.plain.record["table_wanted"][table]) >> home & 1:
        after[columns == IS_HOME, :, home] = False
    can = after.any(axis=2)
    waiting = day.waiting.of(table)
    freed = (day.lacks[1][waiting] == 1) & day.waiting.fits[waiting] & sight.stranded[waiting, None]
    return (
        (after & ~runs).sum(axis=(1, 2)),
        _sums(hours, can & ~could),
        (runs & ~after).sum(axis=(1, 2)),
        _sums(hours, could & ~can),
        np.where(comes, freed.sum(axis=0)[regions], 0),
    )


def _sums(hours: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The sum of hours, float64 (readers,), in each row of `among`, bool (n, readers)."""
    found = np.zeros(len(among))
    for row in np.flatnonzero(among.any(axis=1)).tolist():
        found[row] = hours[among[row]].sum()
    return found
