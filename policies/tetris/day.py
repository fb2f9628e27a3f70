"""A day of Tetris: hill climbing with a move queue under a quota, then further replicas (paper mast, Sec. 3.4, 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.table_placement.placement import KIB, Move, Placement
from ...simulator.warehouse.warehouse import Warehouse
from .replicas import replicate
from .search import Search, climb
from .versions import Version


@dataclass(frozen=True)
class DayPlan:
    """What a day's run decides.

    Attributes:
        moves: of homes, in the order in which they were made.
        home: int64 (tables,), after them.
        copies: bool (tables, regions), where each table should lie then; its home at least.
        cost: Expressions 1 to 3, before and after.
        copied_bytes: that have to cross regions, for moves and new replicas: what does not lie there yet.
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
        search: finds the moves of a day; the paper's climb unless told otherwise.
    """

    def __init__(self, version: Version, quota_bytes: float = math.inf, search: Search = climb) -> None:
        if not quota_bytes >= 0:
            raise InputError(f"tetris: quota_bytes = {quota_bytes}; expected 0 or more")
        self.version = version
        self.quota_bytes = quota_bytes
        self.search = search

    def plan(self, warehouse: Warehouse, progress: Callable[[str], None] = lambda _: None) -> DayPlan:
        """The moves and replicas of one day; the warehouse stays as it is. `progress` hears what begins."""
        progress("placement")
        placement = Placement(warehouse, self.version.objective)
        before = placement.cost
        moves: list[Move] = []
        if self.version.moves:
            progress("climbing")
            moves = self.search(placement, self.quota_bytes)
        spent = KIB * float(placement.moved_kib)
        progress("replicas")
        copies, copied = replicate(warehouse, placement.home, self.version, self.quota_bytes - spent)
        return DayPlan(moves, placement.home, copies, (before, placement.cost), spent + copied)
