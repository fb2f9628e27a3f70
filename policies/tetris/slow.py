"""Tetris in a simulation: what it plans at an instant at which tables may be looked at, as decisions about tables.

In order: replicas that the plan does not want any more are dropped, homes move by falling gain, and replicas are made.
All begin at once and share the links equally, so the order decides only who gets room, or the last of the copies that
can be under way. The day's plan is made once, on the tables as they will be when everything that is on the way has
arrived. What cannot be done now, as a region is full or down, is left to the next day. A replica is dropped only while
as many others of the plan are complete as the table should have, two at most, and no waiting job needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...simulator.base.decisions import Advance, Decision, Drop, Move, Replicate
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import bind, choose, parse_name
from ...simulator.checks.table_decisions import check_table, is_idle
from ...simulator.engine.view import ClusterView
from ...simulator.table_placement.projected import expected_warehouse
from ...simulator.warehouse.warehouse import Warehouse
from ..base import Policy
from .blocks import best_homes
from .day import DayPlan, Tetris
from .replicas import urgency
from .search import Search, climb, wander_again
from .versions import VERSIONS, Version

QUOTA = 0.25  # of the bytes of all tables, in a day
SAFE_COPIES = 2  # complete ones that a dropped replica leaves, where the plan has as many
KICKS, MOST_KICKED_TABLES = 300, 500  # kicks where nothing else is said, up to so many tables

TableDecision = Move | Replicate | Drop
Instant = tuple[Any, int, int]


class SlowPath(Policy):
    """The slow half of a policy: asked at instants with `view.tables_due`, until it returns `Advance`.

    Args:
        name: how tables call it.
        version: what it plans by.
        quota: share of the bytes of all tables that may be copied between regions at one such instant, >= 0.
        search: what finds the moves in so many tables.
    """

    def __init__(self, name: str, version: Version, quota: float, search: Callable[[int], Search]) -> None:
        self.name, self.version, self.quota, self.search = name, version, quota, search
        self._at: Instant | None = None
        self._left: Iterator[TableDecision] = iter(())

    def decide(self, view: ClusterView) -> TableDecision | Advance:
        """The next decision about a table at this instant."""
        simulator = view.simulator
        at = (simulator, simulator.runs, view.instant)
        if at != self._at:
            self._at, self._left = at, self._plan(view)
        found = next(self._left, None)
        return Advance() if found is None else found

    def why(self, view: ClusterView, decision: Decision) -> str:
        """What the plan of this instant wants of the table."""
        if isinstance(decision, Move):
            return f"its home in the plan of {self.name}"
        if isinstance(decision, Replicate):
            return f"the plan of {self.name}, or a waiting job, wants a copy there"
        return "neither the plan nor a waiting job needs that copy" if isinstance(decision, Drop) else ""

    def _plan(self, view: ClusterView) -> Iterator[TableDecision]:
        warehouse = expected_warehouse(view)
        quota_bytes = self.quota * float(warehouse.tables.size_bytes.sum())
        plan = Tetris(self.version, quota_bytes, self.search(len(warehouse.tables))).plan(warehouse)
        for decision in decisions_of(plan, warehouse, view):
            if is_idle(view, decision):
                continue
            try:
                check_table(view.simulator, decision)
            except InvalidDecision:
                continue
            yield decision


def static(quota: float = QUOTA) -> SlowPath:
    """V0: no table moves; copies for disasters and for jobs that could run nowhere."""
    return SlowPath("static", VERSIONS["static"], _quota(quota), lambda tables: climb)


def tetris_v1(quota: float = QUOTA, kicks: int | None = None) -> SlowPath:
    """V1; `kicks`: how often a climb is thrown out of a local optimum (search.py).

    0: the paper's climb; None: 300 where there are at most 500 tables, else 0.
    """
    return SlowPath("tetris-v1", VERSIONS["tetris-v1"], _quota(quota), _search(kicks))


def tetris_v2(quota: float = QUOTA, kicks: int | None = None) -> SlowPath:
    """V2; arguments as of V1."""
    return SlowPath("tetris-v2", VERSIONS["tetris-v2"], _quota(quota), _search(kicks))


def milp(quota: float = QUOTA) -> SlowPath:
    """The best homes by HiGHS (blocks.py), then replicas as V2."""
    return SlowPath("milp", VERSIONS["tetris-v2"], _quota(quota), lambda tables: best_homes)


HALVES: dict[str, Callable[..., SlowPath]] = {
    "static": static,
    "tetris-v1": tetris_v1,
    "tetris-v2": tetris_v2,
    "milp": milp,
}


def slow_half(word: str) -> SlowPath:
    """The slow half of a name with its parameters (`tetris-v2:quota=0.1`), without a scheduler.

    Raises:
        InputError: an unknown name or parameter, or a value out of range.
    """
    name, given = parse_name(word, "slow path")
    half: SlowPath = bind(HALVES[choose(name, HALVES, "slow path")], given, f"slow path {name}")
    half.name = word
    return half


def _quota(quota: float) -> float:
    if isinstance(quota, bool) or not isinstance(quota, int | float) or not quota >= 0.0:
        raise InputError(f"quota = {quota!r}; expected a share of all bytes, 0 or more")
    return float(quota)


def _search(kicks: int | None) -> Callable[[int], Search]:
    if kicks is not None and (isinstance(kicks, bool) or not isinstance(kicks, int) or kicks < 0):
        raise InputError(f"kicks = {kicks!r}; expected a whole number, 0 or more")

    def search(tables: int) -> Search:
        count = kicks if kicks is not None else KICKS if tables <= MOST_KICKED_TABLES else 0
        if count == 0:
            return climb
        return lambda placement, quota_bytes: wander_again(placement, quota_bytes, count)

    return search


def decisions_of(plan: DayPlan, warehouse: Warehouse, view: ClusterView) -> Iterator[TableDecision]:
    """What leads from `warehouse`, the tables as expected, to the plan, in order; some of it may not be possible now.

    What waiting jobs need stays, as the plan knows only jobs that recur. Replicas are made first of the tables whose
    readers of high priority have the most GPU-hours (Sec. 3.5).
    """
    complete, lies = view.warehouse().tables.copies, warehouse.tables.copies
    wanted = plan.copies | _needed(plan.copies & lies, lies, view)
    kept = (complete & wanted).sum(axis=1)
    enough = kept >= np.minimum(wanted.sum(axis=1), SAFE_COPIES)
    for table, region in np.argwhere(lies & ~wanted & (enough[:, None] | ~complete)).tolist():
        if region != view.home(table) and region != view.moving_to(table):
            yield Drop(table, region)
    for move in plan.moves:
        # Its copy there, which may be on the way or have been made a replica before, is a replica then, or goes.
        yield (Replicate if wanted[move.table, move.source] else Drop)(move.table, move.source)
        yield Move(move.table, move.target)
    lacking = wanted & ~lies
    moved = np.flatnonzero(plan.home != warehouse.tables.home)
    old = warehouse.tables.home[moved]
    lacking[moved, old] = wanted[moved, old]  # it lies there, but would be deleted with the home
    lacking[np.arange(len(lacking)), plan.home] = False
    for table in np.argsort(-urgency(warehouse.jobs, len(lacking)), kind="stable").tolist():
        for region in np.flatnonzero(lacking[table]).tolist():
            yield Replicate(table, region)


def _needed(kept: np.ndarray, lies: np.ndarray, view: ClusterView) -> np.ndarray:
    """Copies that waiting or held jobs need, bool (tables, regions): where one finds its tables, if none `kept` do."""
    needed, up = np.zeros_like(lies), set(view.up_regions)
    for job in [*view.queue.tolist(), *view.held.tolist()]:
        tables = view.tables_of(job)
        hosts = np.array([region for region in view.hosts_of(job) if region in up], np.int64)
        if not kept[tables][:, hosts].all(axis=0).any():
            needed[np.ix_(tables, hosts[lies[tables][:, hosts].all(axis=0)])] = True
    return needed
