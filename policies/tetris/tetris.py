"""Tetris, the slow path of paper mast: homes and replicas of tables, planned every day.

A day (`Tetris.plan`): hill climbing with a move queue under a quota, then further replicas (Sec. 3.4, 3.5).

The versions (Sec. 5.6): V0, `static`: users chose the regions by hand, and no table moves; there are copies for
disasters and for jobs that could run nowhere. V1 is Section 3, but overload costs no more than underload (no Expression
8), storage is a hard quota only (no Expressions 3 and 9), and collocation counts every workload alike. V2 has all of
it, and counts collocation in GPU-hours of high-priority workloads: Expression 6 sums these, and stranded jobs get
replicas in their order.

A day's quota goes first to tables of high-priority jobs that could run nowhere, then to disasters, then to other jobs
that could run nowhere, last to hot tables (Sec. 3.5). Where the paper is silent:
* Copies for disasters: tables of high-priority jobs come first, by the GPU-hours of such readers, then by size. The
  copy lies outside the home's fault group, or else in another region of it; where all of the table lies, else in a
  region that gets a copy anyway, else where the GPU type of most of the table's demand is least requested, or, without
  demand, where most storage is free. It holds all of the table; other replicas hold the partitions that jobs read.
* A job's demand is shared evenly by its tables.
* Jobs that run nowhere are served in the order of the version's collocation: by falling GPU-hours with high priority
  first, or the least to read first; each gets the region with the highest supply of its GPUs, wherever copies lie.
* Hot tables: a region's quota is split over GPU types by their supply there, and counts copies made for it; hotness is
  the number of jobs of that type that read the table. Existing copies cost no traffic.

In a simulation (`DataPolicy`) the day's plan, made once for the tables after all transfers on the way, becomes
decisions: unwanted replicas are dropped, homes move by falling gain, replicas are made. All begin at once and share the
links equally. The next day has what is impossible now. A replica is dropped only while as many others of the plan are
complete as the table should have, two at most, and no waiting job needs it.
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
from ...simulator.cluster.region_hardware import NO_GPU
from ...simulator.engine.view import ClusterView
from ...simulator.table_placement import replicas as kernels
from ...simulator.table_placement.placement import DAY_S, KIB, Objective, Placement, kib, seconds
from ...simulator.table_placement.placement import Move as HomeMove
from ...simulator.warehouse.warehouse import Jobs, Warehouse, type_shares
from ..planning import PlanningPolicy
from ..two_paths import SCHEDULER, TwoPathPolicy, fast_half
from .milp import best_homes
from .table_search import Search, climb, climb_jobs, wander_again


@dataclass(frozen=True)
class Version:
    """How a version plans. Paper: tetris, Sec. 5.6."""

    name: str
    moves: bool = True  # whether tables move
    objective: Objective = field(default_factory=Objective)  # of the hill climbing
    hot_share: float = 0.05  # of a region's storage, for hot tables; 0 to 1; the paper says only "storage quota"


VERSIONS: Mapping[str, Version] = {
    "static": Version("static", moves=False, hot_share=0.0),
    "tetris-v1": Version("tetris-v1", objective=Objective(storage=0.0, overload=False, at_home="jobs")),
    "tetris-v2": Version("tetris-v2"),
}


def replicate(
    warehouse: Warehouse, home: np.ndarray, version: Version, quota_bytes: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """The copies of each table, and the whole ones beside its home, bool (tables, regions); the bytes to copy.

    `home`, int64 (tables,), is decided already; `quota_bytes` is for new replicas. Paper: tetris, Sec. 3.5.
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
    by_need = np.lexsort((-whole, -urgency(jobs, len(tables))))
    present = (tables.copies, tables.whole_copies, room, purse, world.fault_group)
    most = demand.max(axis=1, initial=0)
    kernels.refuges(by_need, home, size, whole, copies, safe, *present, supply - asked, gpu, most)
    kernels.gather(order, *reading, *lying)
    _spread_hot(warehouse, version, copies, size, room, purse)
    return copies, safe, KIB * float(first - int(purse[0]))


def urgency(jobs: Jobs, tables: int) -> np.ndarray:
    """GPU-hours a day of the high-priority jobs that read each table, float64 (tables,) (Sec. 3.5)."""
    return np.bincount(jobs.table, (jobs.gpu_hours * jobs.high)[jobs.owner], tables)


def _table_demand(jobs: Jobs, home: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """GPU-seconds a day, int64 (tables, types): each job's evenly over its tables, by type shares at the home."""
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
    warehouse: Warehouse, version: Version, copies: np.ndarray, size: np.ndarray, room: np.ndarray, purse: np.ndarray
) -> None:
    """Modify copies, room and purse in place: copy the hottest tables of each GPU type to regions with the type."""
    jobs, world = warehouse.known, warehouse.world
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
class ReviewPlan:
    """The decisions of a day."""

    moves: list[HomeMove]  # in order
    home: np.ndarray  # int64 (tables,), after them
    copies: np.ndarray  # bool (tables, regions), all places of each table then, its home included
    whole: np.ndarray  # bool (tables, regions), copies for disasters, which hold all of it
    cost: tuple[float, float]  # Expressions 1 to 3, before and after
    copied_bytes: float  # across regions, for moves and new replicas

    def applied(self, warehouse: Warehouse) -> Warehouse:
        """The warehouse after all copies."""
        return warehouse.at(self.home, self.copies, self.whole)


class Tetris:
    """Plans day by day. Paper: tetris, Sec. 3.4 and 3.5.

    Args:
        version: V0, V1 or V2, or one of your own.
        quota_bytes: bytes that may be copied across regions in a day, >= 0; moves come first, replicas get the rest.
        search: finds the moves of a day.
    """

    def __init__(self, version: Version, quota_bytes: float = math.inf, search: Search = climb) -> None:
        if not quota_bytes >= 0:
            raise InputError(f"tetris: quota_bytes = {quota_bytes}; expected 0 or more")
        self.version = version
        self.quota_bytes = quota_bytes
        self.search = search

    def plan(self, warehouse: Warehouse, progress: Callable[[str], None] = lambda _: None) -> ReviewPlan:
        """The moves and replicas of one day; `progress` hears each step. Paper: tetris, Sec. 3.4; Sec. 3.5."""
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
        return ReviewPlan(moves, placement.home, copies, whole, (before, placement.cost), spent + copied)


QUOTA = 0.25  # of the bytes of all tables, in a day
SAFE_COPIES = 2  # complete copies that must remain after a drop, if the plan has as many
KICKS, MOST_KICKED_TABLES = 300, 500  # default kicks, up to so many tables

TableDecision = Move | Replicate | Drop
JobMoves = Literal["on", "off"]


class DataPolicy(PlanningPolicy):
    """The slow path of a policy: asked at instants with `view.tables_due`, until it returns `Advance`.

    Args:
        name: in tables.
        version: of its plans.
        quota: share of the bytes of all tables that may be copied between regions at one such instant, >= 0.
        search: the search of moves for a number of tables.
    """

    def __init__(self, name: str, version: Version, quota: float, search: Callable[[int], Search]) -> None:
        super().__init__(name)
        self.version, self.quota, self.search = version, quota, search

    def plan(self, view: ClusterView) -> Iterable[TableDecision]:
        """Decisions that lead to the day's plan."""
        warehouse = view.projected_warehouse()
        quota_bytes = self.quota * float(warehouse.tables.size_bytes.sum())
        plan = Tetris(self.version, quota_bytes, self.search(len(warehouse.tables))).plan(warehouse)
        return decisions_of(plan, warehouse, view)

    def rest(self, view: ClusterView, left: list[TableDecision]) -> Iterable[TableDecision]:
        """The rest of the plan, which decisions about workloads do not change."""
        return left

    def said(self, view: ClusterView, step: TableDecision) -> TableDecision | None:
        """A step, if it can be carried out now."""
        stays = view.moving_to(step.table) is None
        if stays and isinstance(step, Replicate) and view.home(step.table) == step.region:
            return None
        try:
            view.check_table(step)
        except InvalidDecision:
            return None
        return step

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The wish of the plan."""
        if isinstance(decision, Move):
            return f"its home in the plan of {self.name}"
        if isinstance(decision, Replicate):
            return f"the plan of {self.name}, or a waiting job, wants a copy there"
        return "neither the plan nor a waiting job needs that copy" if isinstance(decision, Drop) else ""


def _v0(quota: float = QUOTA) -> DataPolicy:
    return DataPolicy("static", VERSIONS["static"], _quota(quota), lambda tables: climb)


def _v1(quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off") -> DataPolicy:
    """V1; `kicks` (table_search.py): 0: the paper's climb; None: 300 up to 500 tables, else 0.

    `job_moves`: a climb without kicks then also moves all tables of a job at once (the paper's does not).
    """
    return DataPolicy("tetris-v1", VERSIONS["tetris-v1"], _quota(quota), _search(kicks, job_moves))


def _v2(quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off") -> DataPolicy:
    return DataPolicy("tetris-v2", VERSIONS["tetris-v2"], _quota(quota), _search(kicks, job_moves))


def _best(quota: float = QUOTA) -> DataPolicy:
    return DataPolicy("milp", VERSIONS["tetris-v2"], _quota(quota), lambda tables: best_homes)


DATA_POLICIES: dict[str, Callable[..., DataPolicy]] = {"static": _v0, "tetris-v1": _v1, "tetris-v2": _v2, "milp": _best}


def data_policy(word: str) -> DataPolicy:
    """The slow path of a word (`tetris-v2:quota=0.1`). Raises InputError for a wrong name, parameter or value."""
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


def decisions_of(plan: ReviewPlan, warehouse: Warehouse, view: ClusterView) -> Iterator[TableDecision]:
    """Steps from `warehouse`, the expected tables, to the plan, in order; some may not be possible now.

    Copies for waiting jobs stay, as the plan knows only recurring jobs. First come replicas of tables whose readers of
    high priority have the most GPU-hours (Sec. 3.5).
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
        # Its copy there, present, coming or made before, becomes a replica, or goes.
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
    """Copies that waiting or held jobs need, bool (tables, regions), where none of their regions is `kept`."""
    needed, up = np.zeros_like(lies), set(view.up_regions)
    for job in [*view.queue.tolist(), *view.held.tolist()]:
        tables = view.tables_of(job)
        hosts = np.array([region for region in view.hosts_of(job) if region in up], np.int64)
        if not kept[tables][:, hosts].all(axis=0).any():
            needed[np.ix_(tables, hosts[lies[tables][:, hosts].all(axis=0)])] = True
    return needed


def static(scheduler: str = SCHEDULER, quota: float = QUOTA) -> TwoPathPolicy:
    """V0; `scheduler` places workloads; the rest is as of `DataPolicy`."""
    return _beside("static", scheduler, _v0(quota))


def tetris_v1(
    scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off"
) -> TwoPathPolicy:
    """V1."""
    return _beside("tetris-v1", scheduler, _v1(quota, kicks, job_moves))


def tetris_v2(
    scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None, job_moves: JobMoves = "off"
) -> TwoPathPolicy:
    """V2."""
    return _beside("tetris-v2", scheduler, _v2(quota, kicks, job_moves))


def milp(scheduler: str = SCHEDULER, quota: float = QUOTA) -> TwoPathPolicy:
    """The best homes, then replicas as V2."""
    return _beside("milp", scheduler, _best(quota))


def _beside(name: str, scheduler: str, half: DataPolicy) -> TwoPathPolicy:
    return TwoPathPolicy(name, fast_half(name, scheduler), half)
