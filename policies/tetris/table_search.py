"""Climbs wider than the paper's: runs until nothing gains, pairs of tables, and kicks out of local optima.

A job with two tables has no home while only one has moved, which Expressions 1 and 6 forbid: the paper's climb, one
table at a time, cannot cross that. Kicks can, as the tables of a job go to one region together.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from ...simulator.table_placement.placement import KIB, Move, Placement

MOST_KICKED = 4  # tables moved at once
FEW_TABLES = 16  # up to so many, pairs are tried too
MOST_KEPT = 1024  # cached results of wandering, a few kB each

Search = Callable[[Placement, float], list[Move]]  # moves a placement within a quota of bytes


def climb(placement: Placement, quota_bytes: float) -> list[Move]:
    """The paper's run: the gain of every table, then moves by falling gain and number, each to the best region."""
    gains = placement.best_moves()
    queue = np.argsort(-gains, kind="stable")
    return placement.follow(queue[: int((gains > 0).sum())], quota_bytes)


def converged_moves(placement: Placement, most_days: int = 100, pairs: bool = False) -> list[Move]:
    """Modify the placement: runs without a quota until nothing gains, at most `most_days`: a local optimum.

    `pairs`: when no single table gains, also all pairs (the paper moves one at a time), in quadratic time.
    """
    moves: list[Move] = []
    for _ in range(most_days):
        made = climb(placement, math.inf) or (_climb_pairs(placement) if pairs else [])
        moves += made
        if not made:
            break
    return moves


def _climb_pairs(placement: Placement) -> list[Move]:
    tables = np.arange(len(placement.ledger.home))
    moves: list[Move] = []
    for table in tables.tolist():
        moves += placement.pair_up(table, np.delete(tables, table))
    return moves


def climb_jobs(placement: Placement, quota_bytes: float) -> list[Move]:
    """Modify the placement: the paper's run, then moves of all tables of a job at once, by falling gain.

    `quota_bytes` may be copied from present places. Returns one move a table, by its gain alone at the start, falling.
    """
    start, gains = placement.home, placement.best_moves()
    climb(placement, quota_bytes)
    jobs = np.flatnonzero(placement.jobs.training & (placement.jobs.reads > 1))
    of_jobs = placement.job_gains(jobs)
    queue = jobs[np.argsort(-of_jobs, kind="stable")[: int((of_jobs > 0).sum())]]
    placement.follow_jobs(queue, quota_bytes - KIB * placement.moved_kib)
    return moves_from(placement, start, gains)


def wander(placement: Placement, quota_bytes: float, kicks: int, rng: np.random.Generator) -> list[Move]:
    """Modify the placement: climb one table at a time, then leave local optima by kicks, within a quota.

    A kick sends the tables of a training job to one region, or a few tables anywhere, in turn. The climb after it is
    kept if it costs less, stays in the quota, and breaks Expressions 4 to 6 no more than the start did. `quota_bytes`
    may be copied from present places. Returns one move a table, by its gain alone at the start, falling.
    """
    start, gains = placement.home, placement.best_moves()
    bounds = Bounds(placement, quota_bytes)
    bounds.converged_moves()
    for turn in range(kicks):
        home, cost = placement.home, placement.cost
        (_gather_job if turn % 2 else _scatter)(placement, rng)
        bounds.converged_moves()
        if not (placement.cost < cost and bounds.hold()):
            send_home(placement, home)
    return moves_from(placement, start, gains)


_kept: OrderedDict[bytes, list[Move]] = OrderedDict()


def wander_again(placement: Placement, quota_bytes: float, kicks: int) -> list[Move]:
    """`wander` with seed 0, cached by placement, as training plays one workload several times."""
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
    """One move of each table that is not where `start` has it, by falling gain, then number."""
    moved = np.flatnonzero(placement.home != start)
    order = moved[np.argsort(-gains[moved], kind="stable")]
    return [Move(int(table), int(start[table]), int(placement.ledger.home[table])) for table in order]


class Bounds:
    """Bounds of a wandering placement: the quota, and Expressions 4 to 6 as far as they held at first."""

    def __init__(self, placement: Placement, quota_bytes: float) -> None:
        ledger = placement.ledger
        self.placement, self.quota_kib = placement, quota_bytes / KIB
        self.stored = np.maximum(ledger.storage, ledger.stored)
        self.cpu = np.maximum(ledger.app_cpu, ledger.cpu)
        self.met = min(int(ledger.threshold[0]), int(ledger.met[0]))

    def converged_moves(self) -> None:
        """Climb until nothing gains, each run with the rest of the quota; few tables also by pairs."""
        few = len(self.placement.ledger.home) <= FEW_TABLES
        for _ in range(100):
            left = self.quota_kib - self.placement.moved_kib
            if left < 0 or not (climb(self.placement, KIB * left) or (few and self._pair())):
                return

    def _pair(self) -> bool:
        home = self.placement.home
        if not _climb_pairs(self.placement):
            return False
        if self.placement.moved_kib > self.quota_kib:
            send_home(self.placement, home)
            return False
        return True

    def hold(self) -> bool:
        """Whether the placement may be kept."""
        ledger = self.placement.ledger
        fits = (ledger.stored <= self.stored).all() and (ledger.cpu <= self.cpu).all() and ledger.met[0] >= self.met
        return bool(fits and self.placement.moved_kib <= self.quota_kib)


def _scatter(placement: Placement, rng: np.random.Generator) -> None:
    tables, regions = len(placement.ledger.home), len(placement.warehouse.world)
    count = min(int(rng.integers(2, MOST_KICKED + 1)), tables)
    for table in rng.choice(tables, size=count, replace=False).tolist():
        placement.move(table, int(rng.integers(regions)))


def _gather_job(placement: Placement, rng: np.random.Generator) -> None:
    """Move all tables of one job that reads a random table to one region."""
    ledger = placement.ledger
    table, region = int(rng.integers(len(ledger.home))), int(rng.integers(len(placement.warehouse.world)))
    readers = ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]]
    tables = [table]
    if len(readers):
        tables = placement.tables_of(int(readers[int(rng.integers(len(readers)))])).tolist()
    for one in tables:
        placement.move(one, region)


def send_home(placement: Placement, home: np.ndarray) -> None:
    """Give every table its home in `home`, int64 (tables,), allowed or not."""
    for table in np.flatnonzero(placement.home != home).tolist():
        placement.move(table, int(home[table]))
