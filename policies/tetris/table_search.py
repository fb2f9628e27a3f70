"""Climbs wider than the paper's: runs until nothing gains, pairs of tables, and kicks out of local optima.

A job that reads two tables has no home while one of them has moved, which Expressions 1 and 6 forbid: the paper's
climb, one table at a time, cannot cross that. Kicks can, as the tables of a job go to one region together.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from ...simulator.table_placement.placement import KIB, Move, Placement

MOST_KICKED = 4  # tables that go anywhere at once
FEW_TABLES = 16  # up to so many pairs of them are looked at too
MOST_KEPT = 1024  # results of wandering, a few kB each

Search = Callable[[Placement, float], list[Move]]  # moves a placement within a quota of bytes


def climb(placement: Placement, quota_bytes: float) -> list[Move]:
    """The paper's run: the gain of every table, then the moves by falling gain, each to what is then the best region.

    Equal gains: the lower number first.
    """
    gains = placement.best_moves()
    queue = np.argsort(-gains, kind="stable")
    return placement.follow(queue[: int((gains > 0).sum())], quota_bytes)


def settle(placement: Placement, most_days: int = 100, pairs: bool = False) -> list[Move]:
    """Runs without a quota until nothing gains any more, at most so many: a local optimum.

    Args:
        placement: changed in place.
        most_days: runs.
        pairs: when no single table gains, also two at once, of all pairs (the paper moves one at a time). It takes time
            with the square of the tables: for small instances.
    """
    moves: list[Move] = []
    for _ in range(most_days):
        made = climb(placement, math.inf) or (_climb_pairs(placement) if pairs else [])
        moves += made
        if not made:
            break
    return moves


def _climb_pairs(placement: Placement) -> list[Move]:
    """Each table in turn, with the partner that gains most."""
    tables = np.arange(len(placement.ledger.home))
    moves: list[Move] = []
    for table in tables.tolist():
        moves += placement.pair_up(table, np.delete(tables, table))
    return moves


def climb_jobs(placement: Placement, quota_bytes: float) -> list[Move]:
    """The paper's run, then moves of all tables of a job at once, of those jobs that gain, by falling gain.

    Args:
        placement: changed in place.
        quota_bytes: to copy from where the tables of the warehouse lie.

    Returns:
        One move a table, by what it would have gained alone at the start, falling.
    """
    start, gains = placement.home, placement.best_moves()
    climb(placement, quota_bytes)
    jobs = np.flatnonzero(placement.jobs.training & (placement.jobs.reads > 1))
    of_jobs = placement.job_gains(jobs)
    queue = jobs[np.argsort(-of_jobs, kind="stable")[: int((of_jobs > 0).sum())]]
    placement.follow_jobs(queue, quota_bytes - KIB * placement.moved_kib)
    return moves_from(placement, start, gains)


def wander(placement: Placement, quota_bytes: float, kicks: int, rng: np.random.Generator) -> list[Move]:
    """Climb one table at a time, then leave local optima by kicks, within a quota of what is copied.

    A kick sends the tables of a training job to one region, or a few tables anywhere, by turns; what a climb from there
    comes to is kept if it costs less, stays in the quota, and breaks Expressions 4 to 6 no more than the start did.

    Args:
        placement: changed in place.
        quota_bytes: to copy from where the tables of the warehouse lie.
        kicks: how often.
        rng: from which jobs, tables and regions are drawn.

    Returns:
        One move a table, by what it would have gained at the start, falling.
    """
    start, gains = placement.home, placement.best_moves()
    bounds = Bounds(placement, quota_bytes)
    bounds.settle()
    for turn in range(kicks):
        home, cost = placement.home, placement.cost
        (_gather_job if turn % 2 else _scatter)(placement, rng)
        bounds.settle()
        if not (placement.cost < cost and bounds.hold()):
            send_home(placement, home)
    return moves_from(placement, start, gains)


_kept: OrderedDict[bytes, list[Move]] = OrderedDict()


def wander_again(placement: Placement, quota_bytes: float, kicks: int) -> list[Move]:
    """`wander` with the random numbers of seed 0; what it found for the same placement before is kept.

    Whoever plays a workload several times, as a training does, asks for the same moves each time.

    Args:
        placement: changed in place.
        quota_bytes, kicks: as of `wander`.
    """
    key = hashlib.sha256(repr((quota_bytes, kicks)).encode())
    for array in (*placement.ledger, placement.jobs.first, placement.jobs.table):
        key.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    moves = _kept.get(key.digest())
    if moves is None:
        _kept[key.digest()] = moves = wander(placement, quota_bytes, kicks, np.random.default_rng(0))
        if len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    else:
        for move in moves:
            placement.move(move.table, move.target)
    return list(moves)


def moves_from(placement: Placement, start: np.ndarray, gains: np.ndarray) -> list[Move]:
    """One move of each table that is elsewhere than at `start`: by falling gain, equal ones by number."""
    moved = np.flatnonzero(placement.home != start)
    order = moved[np.argsort(-gains[moved], kind="stable")]
    return [Move(int(table), int(start[table]), int(placement.ledger.home[table])) for table in order]


class Bounds:
    """What a wandering placement must keep: the quota, and Expressions 4 to 6 as far as they held where it began."""

    def __init__(self, placement: Placement, quota_bytes: float) -> None:
        ledger = placement.ledger
        self.placement, self.quota_kib = placement, quota_bytes / KIB
        self.stored = np.maximum(ledger.storage, ledger.stored)
        self.cpu = np.maximum(ledger.app_cpu, ledger.cpu)
        self.met = min(int(ledger.threshold[0]), int(ledger.met[0]))

    def settle(self) -> None:
        """Climb until nothing gains, each run with what is left of the quota; of few tables also two at once."""
        few = len(self.placement.ledger.home) <= FEW_TABLES
        for _ in range(100):
            left = self.quota_kib - self.placement.moved_kib
            if left < 0 or not (climb(self.placement, KIB * left) or (few and self._pair())):
                return

    def _pair(self) -> bool:
        """Move pairs, if any gain within the quota."""
        home = self.placement.home
        if not _climb_pairs(self.placement):
            return False
        if self.placement.moved_kib > self.quota_kib:
            send_home(self.placement, home)
            return False
        return True

    def hold(self) -> bool:
        """Whether the placement is one that may be kept."""
        ledger = self.placement.ledger
        fits = (ledger.stored <= self.stored).all() and (ledger.cpu <= self.cpu).all() and ledger.met[0] >= self.met
        return bool(fits and self.placement.moved_kib <= self.quota_kib)


def _scatter(placement: Placement, rng: np.random.Generator) -> None:
    tables, regions = len(placement.ledger.home), len(placement.warehouse.world)
    count = min(int(rng.integers(2, MOST_KICKED + 1)), tables)
    for table in rng.choice(tables, size=count, replace=False).tolist():
        placement.move(table, int(rng.integers(regions)))


def _gather_job(placement: Placement, rng: np.random.Generator) -> None:
    """All tables that some table's readers, one of them, read."""
    ledger = placement.ledger
    table, region = int(rng.integers(len(ledger.home))), int(rng.integers(len(placement.warehouse.world)))
    readers = ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]]
    tables = [table]
    if len(readers):
        tables = placement.tables_of(int(readers[int(rng.integers(len(readers)))])).tolist()
    for one in tables:
        placement.move(one, region)


def send_home(placement: Placement, home: np.ndarray) -> None:
    """Give every table the home that is told, int64 (tables,), allowed or not."""
    for table in np.flatnonzero(placement.home != home).tolist():
        placement.move(table, int(home[table]))
