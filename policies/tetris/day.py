"""A day of Tetris: hill climbing with a move queue under a quota, then further replicas (paper mast, Sec. 3.4, 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...simulator.errors import InputError
from ...simulator.geo.placement import KIB, Move, Placement
from ...simulator.geo.warehouse import Warehouse
from .replicas import replicate
from .versions import Version


@dataclass(frozen=True)
class DayPlan:
    """What a day's run decides.

    Attributes:
        moves: of homes, in the order in which they were made.
        home: int64 (tables,), after them.
        copies: bool (tables, regions), where each table should lie then; its home at least.
        cost: Expressions 1 to 3, before and after.
        copied_bytes: that have to cross regions: moves and new replicas.
    """

    moves: list[Move]
    home: np.ndarray
    copies: np.ndarray
    cost: tuple[float, float]
    copied_bytes: float

    def applied(self, warehouse: Warehouse) -> Warehouse:
        """The warehouse once all is copied."""
        return warehouse.at(self.home, self.copies)


class Tetris:
    """Plans day by day.

    Args:
        version: V0, V1 or V2, or one of your own.
        quota_bytes: what may be copied across regions in a day, >= 0; moves come first, replicas get the rest.
    """

    def __init__(self, version: Version, quota_bytes: float = math.inf) -> None:
        if not quota_bytes >= 0:
            raise InputError(f"tetris: quota_bytes = {quota_bytes}; expected 0 or more")
        self.version = version
        self.quota_bytes = quota_bytes

    def plan(self, warehouse: Warehouse, progress: Callable[[str], None] = lambda _: None) -> DayPlan:
        """The moves and replicas of one day; the warehouse stays as it is. `progress` hears what begins."""
        progress("placement")
        placement = Placement(warehouse, self.version.objective)
        before = placement.cost
        moves: list[Move] = []
        if self.version.moves:
            progress("climbing")
            moves = climb(placement, self.quota_bytes)
        spent = KIB * float(sum(int(placement.ledger.size[move.table]) for move in moves))
        progress("replicas")
        copies, copied = replicate(warehouse, placement.home, self.version, self.quota_bytes - spent)
        return DayPlan(moves, placement.home, copies, (before, placement.cost), spent + copied)


def climb(placement: Placement, quota_bytes: float) -> list[Move]:
    """One run: the gain of every table, then the moves by falling gain, the best region of each found again before it.

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


def kick(placement: Placement, rng: np.random.Generator, kicks: int) -> None:
    """Leave local optima: so many times a few tables go anywhere and the climb, with pairs, starts there.

    What comes out is kept if it satisfies Expressions 4 to 6 and costs less, else undone.

    Args:
        placement: at a local optimum; changed in place.
        rng: from which tables and regions are drawn.
        kicks: how often.
    """
    tables, regions = len(placement.ledger.home), len(placement.warehouse.world)
    for _ in range(kicks):
        home, cost = placement.home, placement.cost
        for table in rng.choice(tables, size=min(int(rng.integers(2, 5)), tables), replace=False).tolist():
            placement.move(table, int(rng.integers(regions)))
        settle(placement, pairs=True)
        if not (placement.is_sound() and placement.cost < cost):
            for table in np.flatnonzero(placement.home != home).tolist():
                placement.move(table, int(home[table]))
