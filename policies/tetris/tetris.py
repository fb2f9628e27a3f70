"""Tetris, the slow path of paper mast: where tables have their homes and their replicas, planned anew every day.

A day (`Tetris.plan`): hill climbing with a move queue under a quota, then further replicas (Sec. 3.4, 3.5).

The versions (Sec. 5.6): V0, `static`: users chose the regions by hand, and no table moves; there are copies for
disasters and for jobs that could run nowhere. V1 places data as Section 3 says, but overload costs no more than
underload (no Expression 8), storage is a hard quota only (no Expressions 3 and 9), and collocation counts every
workload alike. V2 has all of it, and counts collocation in GPU-hours of high-priority workloads: that is what
Expression 6 sums here, and the order in which stranded jobs get replicas.

The quota of a day goes first to what high-priority jobs lack that could run nowhere, then to disasters, then to the
other jobs that could run nowhere, last to hot tables (Sec. 3.5). Where the paper is silent:
* Copies for disasters are made of the tables of high-priority jobs first, by the GPU-hours of such readers, then by
  size: outside the home's fault group, or, where that cannot be, in another region of it; to where all of the table
  lies, else to a region that gets a copy anyway, else where the GPUs that most of the table's demand is for are least
  asked for, or, for a table without such demand, where most storage is free. They hold all of the table; other replicas
  hold the partitions that jobs read.
* What a job asks is shared evenly by its tables.
* Jobs that run nowhere are served in the order in which the version counts collocation: by falling GPU-hours with high
  priority first, or those with the least to read first; each gets the region with the highest supply of its GPUs,
  wherever copies lie already.
* Hot tables: a region's quota is split over GPU types by their supply there, and counts the copies that are made for
  it; hotness is the number of jobs of that type that read the table. Copies that lie already cost no traffic.

In a simulation (`DataPolicy`) the day's plan, made once on the tables as they will be when all that is on the way has
arrived, becomes decisions: unwanted replicas are dropped, homes move by falling gain, replicas are made. All begin at
once and share the links equally. What cannot be done now is left to the next day. A replica is dropped only while as
many others of the plan are complete as the table should have, two at most, and no waiting job needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...simulator.base.decisions import Decision, Drop, Move, Replicate
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import bind, choose, parse_name
from ...simulator.checks.table_decisions import is_idle
from ...simulator.cluster.region_hardware import NO_GPU
from ...simulator.engine.view import ClusterView
from ...simulator.table_placement import replicas as kernels
from ...simulator.table_placement.placement import DAY_S, KIB, Objective, Placement, kib, seconds
from ...simulator.table_placement.placement import Move as HomeMove
from ...simulator.warehouse.warehouse import Jobs, Warehouse, type_shares
from ..planning import PlanningPolicy
from ..two_paths import SCHEDULER, Paths, fast_half
from .milp import best_homes
from .table_search import Search, climb, climb_jobs, wander_again


@dataclass(frozen=True)
class Version:
    """How a version plans.

    Attributes:
        name: as in results.
        moves: whether tables move at all.
        objective: of the hill climbing.
        hot_share: of a region's storage, for copies of hot tables; 0 to 1. The paper says "storage quota" and no more.

    Paper: tetris, Sec. 5.6.
    """

    name: str
    moves: bool = True
    objective: Objective = field(default_factory=Objective)
    hot_share: float = 0.05


VERSIONS: Mapping[str, Version] = {
    version.name: version
    for version in (
        Version("static", moves=False, hot_share=0.0),
        Version("tetris-v1", objective=Objective(storage=0.0, overload=False, at_home="jobs")),
        Version("tetris-v2"),
    )
}


def replicate(
    warehouse: Warehouse, home: np.ndarray, version: Version, quota_bytes: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Where each table should lie, and where whole beside its home, bool (tables, regions); the bytes that this copies.

    Args:
        warehouse: with the copies that lie now; only jobs that recur are known.
        home: int64 (tables,), decided already.
        version: how replicas are chosen.
        quota_bytes: of new replicas.

    Paper: tetris, Sec. 3.5.
    """
    world, tables = warehouse.world, warehouse.tables
    jobs = warehouse.known
    rows = np.arange(len(tables))
    copies = np.zeros_like(tables.copies)
    copies[rows, home] = True
    whole, size = kib(tables.size_bytes), kib(tables.replica_bytes)
    room = world.storage_bytes // KIB - np.bincount(home, whole, len(world)).astype(np.int64)
    purse = np.array([int(np.clip(quota_bytes / KIB, 0, 2.0**62))], np.int64)
    first, safe = int(purse[0]), np.zeros_like(copies)
    demand = _table_demand(jobs, home, world.gpus)
    supply = world.gpus * DAY_S
    asked = np.zeros_like(supply)
    np.add.at(asked, home, demand)
    gpu = np.where(demand.any(axis=1), demand.argmax(axis=1), NO_GPU)
    order = _by_need(jobs, size, version)
    reading = (jobs.first, jobs.table, jobs.type_sets.row, warehouse.offered(jobs.type_sets))
    lying = (copies, tables.copies, size, room, purse)
    kernels.gather(order[jobs.high[order]], *reading, *lying)
    kernels.refuges(
        np.lexsort((-whole, -urgency(jobs, len(tables)))),
        home,
        size,
        whole,
        copies,
        safe,
        tables.copies,
        tables.whole_copies,
        room,
        purse,
        world.fault_group,
        supply - asked,
        gpu,
        demand.max(axis=1, initial=0),
    )
    kernels.gather(order, *reading, *lying)
    _spread_hot(warehouse, jobs, version, copies, size, room, purse)
    return copies, safe, KIB * float(first - int(purse[0]))


def urgency(jobs: Jobs, tables: int) -> np.ndarray:
    """GPU-hours a day of the high-priority jobs that read each table, float64 (tables,): most come first (Sec. 3.5)."""
    return np.bincount(jobs.table, (jobs.gpu_hours * jobs.high)[jobs.owner], tables)


def _table_demand(jobs: Jobs, home: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """GPU-seconds a day by type, int64 (tables, types): of each job the same part at every table that it reads.

    Of several types that a job accepts by their shares at the table's home.
    """
    demand = np.zeros((len(home), gpus.shape[1]), np.int64)
    part, share = seconds(jobs.gpu_hours) // jobs.reads, type_shares(jobs.type_sets, gpus)
    kernels.demand_by_type(jobs.first, jobs.table, jobs.type_sets.row, share, part, home, demand)
    return demand


def _by_need(jobs: Jobs, size: np.ndarray, version: Version) -> np.ndarray:
    if version.objective.at_home == "gpu-hours":
        order = np.lexsort((-jobs.gpu_hours, ~jobs.high))
    else:
        total = np.zeros(len(jobs), np.int64)
        np.add.at(total, jobs.owner, size[jobs.table])
        order = np.argsort(total, kind="stable")
    return order[jobs.training[order]]


def _spread_hot(
    warehouse: Warehouse,
    jobs: Jobs,
    version: Version,
    copies: np.ndarray,
    size: np.ndarray,
    room: np.ndarray,
    purse: np.ndarray,
) -> None:
    """Modify copies, room and purse in place: the hottest tables of each GPU type go to every region that has it."""
    world = warehouse.world
    share = world.gpus / np.maximum(world.gpus.sum(axis=1, keepdims=True), 1)
    quota = (version.hot_share * share * (world.storage_bytes[:, None] // KIB)).astype(np.int64)
    readers = np.zeros((len(world.gpu_types), len(size)), np.int64)
    accepted = jobs.type_sets.accepted(len(readers))
    kernels.readers_by_type(jobs.first, jobs.table, jobs.type_sets.row, accepted, readers)
    for gpu, heat in enumerate(readers):
        order = np.argsort(-heat, kind="stable")[: int((heat > 0).sum())]
        for region in np.flatnonzero(quota[:, gpu]).tolist():
            kernels.spread(order, region, int(quota[region, gpu]), copies, warehouse.tables.copies, size, room, purse)


@dataclass(frozen=True)
class DayPlan:
    """What a day's run decides.

    Attributes:
        moves: of homes, in the order in which they were made.
        home: int64 (tables,), after them.
        copies: bool (tables, regions), where each table should lie then; its home at least.
        whole: bool (tables, regions), the copies for disasters, which are to hold all of it.
        cost: Expressions 1 to 3, before and after.
        copied_bytes: that have to cross regions, for moves and new replicas: what does not lie there yet.
    """

    moves: list[HomeMove]
    home: np.ndarray
    copies: np.ndarray
    whole: np.ndarray
    cost: tuple[float, float]
    copied_bytes: float

    def applied(self, warehouse: Warehouse) -> Warehouse:
        """The warehouse once all is copied."""
        return warehouse.at(self.home, self.copies, self.whole)


class Tetris:
    """Plans day by day.

    Args:
        version: V0, V1 or V2, or one of your own.
        quota_bytes: what may be copied across regions in a day, >= 0; moves come first, replicas get the rest.
        search: finds the moves of a day; the paper's climb unless told otherwise.

    Paper: tetris, Sec. 3.4 and 3.5.
    """

    def __init__(self, version: Version, quota_bytes: float = math.inf, search: Search = climb) -> None:
        if not quota_bytes >= 0:
            raise InputError(f"tetris: quota_bytes = {quota_bytes}; expected 0 or more")
        self.version = version
        self.quota_bytes = quota_bytes
        self.search = search

    def plan(self, warehouse: Warehouse, progress: Callable[[str], None] = lambda _: None) -> DayPlan:
        """The moves and replicas of one day; the warehouse stays as it is. `progress` hears what begins.

        Paper: tetris, Sec. 3.4; Sec. 3.5.
        """
        progress("placement")
        placement = Placement(warehouse, self.version.objective)
        before = placement.cost
        moves: list[HomeMove] = []
        if self.version.moves:
            progress("climbing")
            moves = self.search(placement, self.quota_bytes)
        spent = KIB * float(placement.moved_kib)
        progress("replicas")
        copies, whole, copied = replicate(warehouse, placement.home, self.version, self.quota_bytes - spent)
        return DayPlan(moves, placement.home, copies, whole, (before, placement.cost), spent + copied)


QUOTA = 0.25  # of the bytes of all tables, in a day
SAFE_COPIES = 2  # complete ones that a dropped replica leaves, where the plan has as many
KICKS, MOST_KICKED_TABLES = 300, 500  # kicks where nothing else is said, up to so many tables

TableDecision = Move | Replicate | Drop
JobMoves = Literal["on", "off"]


class DataPolicy(PlanningPolicy):
    """The slow half of a policy: asked at instants with `view.tables_due`, until it returns `Advance`.

    Args:
        name: how tables call it.
        version: what it plans by.
        quota: share of the bytes of all tables that may be copied between regions at one such instant, >= 0.
        search: what finds the moves in so many tables.
    """

    def __init__(self, name: str, version: Version, quota: float, search: Callable[[int], Search]) -> None:
        super().__init__(name)
        self.version, self.quota, self.search = version, quota, search

    def plan(self, view: ClusterView) -> Iterable[TableDecision]:
        """What leads to the tables as they are planned on this day."""
        warehouse = view.projected_warehouse()
        quota_bytes = self.quota * float(warehouse.tables.size_bytes.sum())
        plan = Tetris(self.version, quota_bytes, self.search(len(warehouse.tables))).plan(warehouse)
        return decisions_of(plan, warehouse, view)

    def rest(self, view: ClusterView, left: list[TableDecision]) -> Iterable[TableDecision]:
        """The rest of it: who decides about workloads does not change the plan."""
        return left

    def said(self, view: ClusterView, step: TableDecision) -> TableDecision | None:
        """A step that can be carried out now."""
        if is_idle(view, step):
            return None
        try:
            view.check_table(step)
        except InvalidDecision:
            return None
        return step

    def why(self, view: ClusterView, decision: Decision) -> str:
        """What the plan of this instant wants of the table."""
        if isinstance(decision, Move):
            return f"its home in the plan of {self.name}"
        if isinstance(decision, Replicate):
            return f"the plan of {self.name}, or a waiting job, wants a copy there"
        return "neither the plan nor a waiting job needs that copy" if isinstance(decision, Drop) else ""


def _v0(quota: float = QUOTA) -> DataPolicy:
    """V0: no table moves; copies for disasters and for jobs that could run nowhere."""
    return DataPolicy("static", VERSIONS["static"], _quota(quota), lambda tables: climb)


def _v1(quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off") -> DataPolicy:
    """V1; `kicks`: how often a climb is thrown out of a local optimum (table_search.py).

    0: the paper's climb; None: 300 where there are at most 500 tables, else 0. `job_moves`: whether a climb without
    kicks then moves all tables of a job at once, too (the paper's does not).
    """
    return DataPolicy("tetris-v1", VERSIONS["tetris-v1"], _quota(quota), _search(kicks, job_moves))


def _v2(quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off") -> DataPolicy:
    """V2; arguments as of V1."""
    return DataPolicy("tetris-v2", VERSIONS["tetris-v2"], _quota(quota), _search(kicks, job_moves))


def _best(quota: float = QUOTA) -> DataPolicy:
    """The best homes by HiGHS (milp.py), then replicas as V2."""
    return DataPolicy("milp", VERSIONS["tetris-v2"], _quota(quota), lambda tables: best_homes)


DATA_POLICIES: dict[str, Callable[..., DataPolicy]] = {
    "static": _v0,
    "tetris-v1": _v1,
    "tetris-v2": _v2,
    "milp": _best,
}


def data_policy(word: str) -> DataPolicy:
    """The slow half of a name with its parameters (`tetris-v2:quota=0.1`), without a scheduler.

    Raises:
        InputError: an unknown name or parameter, or a value out of range.
    """
    name, given = parse_name(word, "slow path")
    found: DataPolicy = bind(DATA_POLICIES[choose(name, DATA_POLICIES, "slow path")], given, f"slow path {name}")
    found.name = word
    return found


def _quota(quota: float) -> float:
    if isinstance(quota, bool) or not isinstance(quota, int | float) or not quota >= 0.0:
        raise InputError(f"quota = {quota!r}; expected a share of all bytes, 0 or more")
    return float(quota)


def _search(kicks: int | None, job_moves: JobMoves) -> Callable[[int], Search]:
    if kicks is not None and (isinstance(kicks, bool) or not isinstance(kicks, int) or kicks < 0):
        raise InputError(f"kicks = {kicks!r}; expected a whole number, 0 or more")

    def search(tables: int) -> Search:
        count = kicks if kicks is not None else KICKS if tables <= MOST_KICKED_TABLES else 0
        if count == 0:
            return climb_jobs if job_moves == "on" else climb
        return lambda placement, quota_bytes: wander_again(placement, quota_bytes, count)

    return search


def decisions_of(plan: DayPlan, warehouse: Warehouse, view: ClusterView) -> Iterator[TableDecision]:
    """What leads from `warehouse`, the tables as expected, to the plan, in order; some of it may not be possible now.

    What waiting jobs need stays, as the plan knows only jobs that recur. Replicas are made first of the tables whose
    readers of high priority have the most GPU-hours (Sec. 3.5).
    """
    complete, lies = view.lying(), warehouse.tables.copies
    wanted = plan.copies | _needed(plan.copies & lies, lies, view)
    kept = (complete & wanted).sum(axis=1)
    enough = kept >= np.minimum(wanted.sum(axis=1), SAFE_COPIES)
    for table, region in np.argwhere(lies & ~wanted & (enough[:, None] | ~complete)).tolist():
        if region != view.home(table) and region != view.moving_to(table):
            yield Drop(table, region)
    safe = plan.whole & (warehouse.tables.read_share < 1.0)[:, None]
    for move in plan.moves:
        # Its copy there, which may be on the way or have been made a replica before, is a replica then, or goes.
        yield (Replicate if wanted[move.table, move.source] else Drop)(move.table, move.source)
        if safe[move.table, move.source]:
            yield Replicate(move.table, move.source, whole=True)
        yield Move(move.table, move.target)
    lacking = wanted & ~lies
    moved = np.flatnonzero(plan.home != warehouse.tables.home)
    old = warehouse.tables.home[moved]
    lacking[moved, old] = wanted[moved, old]  # it lies there, but would be deleted with the home
    lacking[np.arange(len(lacking)), plan.home] = False
    order = np.argsort(-urgency(warehouse.jobs, len(lacking)), kind="stable")
    for table in order[(lacking | safe)[order].any(axis=1)].tolist():
        for region in np.flatnonzero(lacking[table]).tolist():
            yield Replicate(table, region)
        for region in np.flatnonzero(safe[table]).tolist():
            yield Replicate(table, region, whole=True)


def _needed(kept: np.ndarray, lies: np.ndarray, view: ClusterView) -> np.ndarray:
    """Copies that waiting or held jobs need, bool (tables, regions): where one finds its tables, if none `kept` do."""
    needed, up = np.zeros_like(lies), set(view.up_regions)
    for job in [*view.queue.tolist(), *view.held.tolist()]:
        tables = view.tables_of(job)
        hosts = np.array([region for region in view.hosts_of(job) if region in up], np.int64)
        if not kept[tables][:, hosts].all(axis=0).any():
            needed[np.ix_(tables, hosts[lies[tables][:, hosts].all(axis=0)])] = True
    return needed


def static(scheduler: str = SCHEDULER, quota: float = QUOTA) -> Paths:
    """V0; `scheduler`: the policy that places workloads; the rest: see `DataPolicy`."""
    return _beside("static", scheduler, _v0(quota))


def tetris_v1(
    scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off"
) -> Paths:
    """V1."""
    return _beside("tetris-v1", scheduler, _v1(quota, kicks, job_moves))


def tetris_v2(
    scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off"
) -> Paths:
    """V2."""
    return _beside("tetris-v2", scheduler, _v2(quota, kicks, job_moves))


def milp(scheduler: str = SCHEDULER, quota: float = QUOTA) -> Paths:
    """The best homes, then replicas as V2."""
    return _beside("milp", scheduler, _best(quota))


def _beside(name: str, scheduler: str, half: DataPolicy) -> Paths:
    return Paths(name, fast_half(name, scheduler), half)
