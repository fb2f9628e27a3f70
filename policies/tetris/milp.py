"""`milp`: the best homes of a small instance, by HiGHS (paper mast, Sec. 3.3; its production does not use it).

The problem is not linear: R(job) follows from the homes, and Expression 2 is a square times a sigmoid over a sum. So
each GPU type has one column, with its cost, for every way to seat its jobs; each analytics job one for every placement
of its tables; Expression 9 one for every pair of tables in a region. Such columns need not be whole numbers: for given
homes only one column of each set can be above 0.

For a day's moves it gives the optimum of small instances. Else a climb with kicks comes first; then blocks of tables
that share readers are placed best in turn, all others held (`best_homes`), until no block gains.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.table_placement.ledger import Ledger
from ...simulator.table_placement.placement import KIB, Move, Placement
from .table_search import Bounds, moves_from, send_home, wander

MOST_COLUMNS = 200_000
NOWHERE = -1
TOLERANCE = 2e-6  # twice that of HiGHS for a row
SECONDS = 3600.0


@dataclass
class _Model:
    """Columns and rows of a linear program; `ways`: most ways to seat the jobs of a GPU type."""

    ways: int = MOST_COLUMNS
    cost: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def column(self, cost: float, whole: bool = False) -> int:
        """A variable from 0 to 1."""
        if len(self.cost) >= MOST_COLUMNS:
            raise InputError(f"milp: more than {MOST_COLUMNS} columns; expected a smaller instance, or take tetris-v2")
        self.cost.append(cost)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, terms: Sequence[tuple[int, float]], low: float, high: float) -> None:
        """The sum of coefficient x column is from low to high."""
        place = len(self.low)
        self.entries += [(place, column, value) for column, value in terms]
        self.low.append(low)
        self.high.append(high)

    def solve(self, ones: Sequence[int]) -> tuple[np.ndarray, float]:
        """The columns, float64, with the least cost, and that cost; those in `ones` are 1."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        row, column, value = (np.array(part) for part in zip(*self.entries, strict=True))
        matrix = coo_array((value, (row, column)), shape=(len(self.low), len(self.cost))).tocsr()
        least = np.zeros(len(self.cost))
        least[list(ones)] = 1.0
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.whole, dtype=np.int64),
            bounds=Bounds(least, 1.0),
            constraints=LinearConstraint(matrix, np.array(self.low), np.array(self.high)),
            options={"mip_rel_gap": 1e-9},
        )
        if found.x is None:
            raise InputError(f"milp: no placement satisfies Expressions 4 to 6, or none was found ({found.message})")
        return found.x, float(found.fun)


@dataclass
class _Variables:
    """Columns: homes[t][r]; seats[j][r], for jobs of one table those of its home."""

    homes: list[list[int]]
    tables: list[list[int]]  # of each job
    free: np.ndarray  # bool (tables,), those that may move
    seats: dict[int, list[int]] = field(default_factory=dict)


def optimum(
    placement: Placement, quota_bytes: float = math.inf, free: np.ndarray | None = None, ways: int = MOST_COLUMNS
) -> tuple[np.ndarray, float]:
    """The homes with the least cost that satisfy Expressions 4 to 6, int64 (tables,), and that cost.

    `quota_bytes` may be copied from present places; `free`, bool (tables,): tables that may move, None: all; `ways`:
    most ways to seat the jobs of a GPU type. Raises InputError if the instance is too large, or infeasible.
    """
    ledger = placement.ledger
    model = _Model(ways)
    homes = [[model.column(0.0, whole=True) for _ in ledger.storage] for _ in ledger.kib]
    for home in homes:
        model.row([(column, 1.0) for column in home], 1.0, 1.0)
    tables = _tables_of(ledger)
    variables = _Variables(homes, tables, np.ones(len(homes), bool) if free is None else free)
    _spend(model, variables, ledger, quota_bytes)
    constant = 0.0
    for job in range(len(tables)):
        add = _training if ledger.training[job] or len(tables[job]) == 1 else _analytics
        constant += add(model, variables, ledger, job)
    for gpu in range(len(ledger.bases)):
        _balance(model, variables, ledger, gpu)
    constant += _storage(model, variables, ledger)
    _constraints(model, variables, ledger)
    stays = [homes[table][int(ledger.home[table])] for table in np.flatnonzero(~variables.free)]
    chosen, cost = model.solve(stays)
    return chosen[np.array(homes)].argmax(axis=1), cost + constant


def _tables_of(ledger: Ledger) -> list[list[int]]:
    tables: list[list[int]] = [[] for _ in ledger.reads]
    for table in range(len(ledger.kib)):
        for job in ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]].tolist():
            tables[job].append(table)
    return tables


def _spend(model: _Model, variables: _Variables, ledger: Ledger, quota_bytes: float) -> None:
    """Bound the bytes copied by the quota, less HiGHS's tolerance."""
    total = int(ledger.kib.sum())
    if quota_bytes < KIB * total:
        rows = zip(variables.homes, ledger.missing.tolist(), strict=True)
        terms = [(home, kib / total) for homes, row in rows for home, kib in zip(homes, row, strict=True) if kib]
        model.row(terms, -np.inf, max(quota_bytes / KIB / total - TOLERANCE, 0.0))


def _regions_of(variables: _Variables, ledger: Ledger, table: int) -> list[int]:
    return list(range(len(ledger.storage))) if variables.free[table] else [int(ledger.home[table])]


def _seats_of(variables: _Variables, ledger: Ledger, job: int) -> list[int]:
    """Possible regions of a job, NOWHERE among them if it may have none."""
    tables = variables.tables[job]
    if len(tables) > 1 and not ledger.training[job]:
        return [*range(len(ledger.storage)), NOWHERE]
    fixed = {int(ledger.home[table]) for table in tables if not variables.free[table]}
    if len(fixed) > 1:
        return [NOWHERE]
    several = len(tables) > 1 and variables.free[tables].any()
    return [*(sorted(fixed) or range(len(ledger.storage))), *([NOWHERE] if several else [])]


def _training(model: _Model, variables: _Variables, ledger: Ledger, job: int) -> float:
    """Seats of a job that needs all its tables. Returns its cost without a seat, which seats take off."""
    tables = variables.tables[job]
    if len(tables) == 1:
        variables.seats[job] = variables.homes[tables[0]]
        return 0.0
    away = float(ledger.term_weight[0] * ledger.total[job])
    seats = [model.column(-away) for _ in ledger.storage]
    for region, seat in enumerate(seats):
        lies = [variables.homes[table][region] for table in tables]
        for home in lies:
            model.row([(home, 1.0), (seat, -1.0)], 0.0, np.inf)
        model.row([(seat, 1.0), *((home, -1.0) for home in lies)], 1.0 - len(lies), np.inf)
    variables.seats[job] = seats
    return away


def _analytics(model: _Model, variables: _Variables, ledger: Ledger, job: int) -> float:
    """A column for every placement of the tables of an analytics job."""
    tables, regions = variables.tables[job], len(ledger.storage)
    size = ledger.kib[tables]
    seats = [model.column(0.0) for _ in range(regions)]
    at_home: dict[tuple[int, int], list[int]] = {}
    at_seat: list[list[int]] = [[] for _ in range(regions)]
    for lies in itertools.product(*(_regions_of(variables, ledger, table) for table in tables)):
        seat = int(np.bincount(lies, minlength=regions).argmax())
        remote = int(ledger.total[job] - size[np.array(lies) == seat].sum())
        column = model.column(float(ledger.term_weight[0] * remote))
        at_seat[seat].append(column)
        for table, region in zip(tables, lies, strict=True):
            at_home.setdefault((table, region), []).append(column)
    for (table, region), columns in at_home.items():
        _equal(model, variables.homes[table][region], columns)
    for region, columns in enumerate(at_seat):
        _equal(model, seats[region], columns)
    variables.seats[job] = seats
    return 0.0


def _equal(model: _Model, column: int, parts: list[int]) -> None:
    model.row([(column, -1.0), *((part, 1.0) for part in parts)], 0.0, 0.0)


def _balance(model: _Model, variables: _Variables, ledger: Ledger, gpu: int) -> None:
    """A column for every way to seat the jobs of a GPU type."""
    jobs = np.flatnonzero(ledger.type_share[ledger.accepts, :, gpu].any(axis=1))
    regions = len(ledger.storage)
    choices = [_seats_of(variables, ledger, job) for job in jobs.tolist()]
    if np.prod([float(len(choice)) for choice in choices]) > model.ways:
        raise InputError(f"milp: {len(jobs)} jobs of one GPU type; expected a smaller instance, or take tetris-v2")
    if not len(jobs):
        return
    ways = np.array(list(itertools.product(*choices)), np.int64)
    costs = ledger.term_weight[1] * seated_cost(ledger, gpu, jobs, ways)
    columns = [model.column(float(cost)) for cost in costs]
    model.row([(column, 1.0) for column in columns], 1.0, 1.0)
    for place, job in enumerate(jobs.tolist()):
        for region in range(regions):
            chosen = [columns[way] for way in np.flatnonzero(ways[:, place] == region)]
            _equal(model, variables.seats[job][region], chosen)


def seated_cost(ledger: Ledger, gpu: int, jobs: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Expressions 2, 7 and 8 of a GPU type for each way to seat its jobs, weighted by levels but not by w_2.

    `jobs`: (n,) rows; `ways`: int64 (ways, n), the region of each job, -1 for NULL.
    """
    regions, levels = len(ledger.storage), ledger.level_weight.shape[1]
    demand = np.zeros((len(ways), regions, levels))
    for place, job in enumerate(jobs.tolist()):
        seated = np.flatnonzero(ways[:, place] != NOWHERE)
        parts = np.floor(ledger.gpu_s[job] * ledger.type_share[ledger.accepts[job], :, gpu])
        np.add.at(demand, (seated, ways[seated, place], ledger.job_level[job]), parts[ways[seated, place]])
    asked = demand.sum(axis=1, keepdims=True)
    share = np.divide(demand, asked, out=np.zeros_like(demand), where=asked > 0)
    over_h = np.maximum(demand.sum(axis=2) - ledger.supply[:, gpu], 0.0) / SECONDS
    pressed = 1.0 / (1.0 + np.exp(-over_h)) if ledger.overload[0] else np.full(over_h.shape, 0.5)
    squares = (share - ledger.supply_share[:, gpu][None, :, None]) ** 2 * pressed[:, :, None]
    return squares.sum(axis=1) @ ledger.level_weight[gpu]


def _storage(model: _Model, variables: _Variables, ledger: Ledger) -> float:
    """Expressions 3 and 9, expanded: a term for each table, and for each pair in one region."""
    if ledger.term_weight[2] == 0.0:
        return 0.0
    part = ledger.kib / float(ledger.kib.sum())
    weight, tables = float(ledger.term_weight[2]), range(len(ledger.kib))
    for region, share in enumerate(ledger.storage_share):
        for table in tables:
            model.cost[variables.homes[table][region]] += weight * (part[table] ** 2 - 2.0 * part[table] * share)
        for one, other in itertools.combinations(tables, 2):
            price = 2.0 * weight * part[one] * part[other]
            fixed = [table for table in (one, other) if not variables.free[table]]
            if fixed:
                if ledger.home[fixed[0]] == region:
                    model.cost[variables.homes[other if fixed[0] == one else one][region]] += price
                continue
            both = model.column(price)
            pair = [(variables.homes[table][region], 1.0) for table in (one, other)]
            model.row([*pair, (both, -1.0)], -np.inf, 1.0)
    return weight * float((ledger.storage_share**2).sum())


def _constraints(model: _Model, variables: _Variables, ledger: Ledger) -> None:
    """Expressions 4 to 6, scaled to a right side of about 1."""
    for region, room in enumerate(ledger.storage.tolist()):
        scale = max(room, 1)
        terms = [(home[region], size / scale) for home, size in zip(variables.homes, ledger.kib, strict=True)]
        model.row(terms, -np.inf, room / scale)
    for app, quotas in enumerate(ledger.app_cpu):
        for region, quota in enumerate(quotas.tolist()):
            scale = max(quota, 1)
            jobs = np.flatnonzero(ledger.app == app).tolist()
            terms = [(variables.seats[job][region], ledger.cpu_s[job] / scale) for job in jobs]
            model.row(terms, -np.inf, quota / scale)
    scale = max(int(ledger.threshold[0]), 1)
    terms = [
        (seat, ledger.met_by[job] / scale)
        for job, seats in variables.seats.items()
        for region, seat in enumerate(seats)
        if ledger.has_gpus[ledger.accepts[job], region]
    ]
    model.row(terms, int(ledger.threshold[0]) / scale, np.inf)


EXACT_WAYS, EXACT_TABLES = 5000, 16  # of all: ways to seat the jobs of a GPU type, and tables
BLOCK_WAYS, BLOCK_TABLES = 1000, 8
MOST_ROUNDS = 3
KICKS = 300
SLIGHT = 1e-9


def best_homes(placement: Placement, quota_bytes: float) -> list[Move]:
    """Move the tables of a placement to the best homes found; one move a table, see `moves_from`.

    An instance that is infeasible within the quota, or has too many columns, is climbed as a larger one.
    """
    start, gains, bounds = placement.home, placement.best_moves(), Bounds(placement, quota_bytes)
    everything = np.ones(len(start), bool)
    is_small = len(start) <= EXACT_TABLES and _ways(placement, everything) <= EXACT_WAYS
    if not (is_small and _solve(placement, bounds, everything, EXACT_WAYS)):
        wander(placement, quota_bytes, KICKS, np.random.default_rng(0))
        for _ in range(MOST_ROUNDS):
            before = placement.cost
            for free in list(_blocks(placement)):
                _solve(placement, bounds, free, BLOCK_WAYS)
            if placement.cost > before - SLIGHT:
                break
    return moves_from(placement, start, gains)


def _solve(placement: Placement, bounds: Bounds, free: np.ndarray, ways: int) -> bool:
    """Modify the placement: the optimum of the free tables, if it costs less and holds exactly. True if optimal."""
    before = placement.home
    try:
        home, cost = optimum(placement, KIB * bounds.quota_kib, free, ways)
    except InputError:
        return False
    if cost < placement.cost - SLIGHT:
        send_home(placement, home)
        if not bounds.hold():
            send_home(placement, before)
            return False
    return True


def _ways(placement: Placement, free: np.ndarray) -> float:
    """Ways to seat the jobs of a GPU type, or placements of the tables of analytics jobs: the larger number."""
    ledger, regions = placement.ledger, len(placement.warehouse.world)
    by_type = np.zeros(len(ledger.bases))
    lie = 0.0
    for job, reads in enumerate(ledger.reads.tolist()):
        loose = int(free[placement.tables_of(job)].sum())
        if not ledger.training[job]:
            lie += float(regions) ** loose if loose and reads > 1 else 0.0
        elif loose:
            choices = regions + (reads > 1) if loose == reads else 2
            by_type[ledger.type_share[ledger.accepts[job]].any(axis=0)] += math.log(choices)
    return max(lie, math.exp(by_type.max(initial=0.0)))


def _blocks(placement: Placement) -> Iterator[np.ndarray]:
    """Sets of tables, bool (tables,), that cover all; tables with common readers are together."""
    ledger = placement.ledger
    left = dict.fromkeys(np.argsort(-ledger.kib, kind="stable").tolist())
    while left:
        free = np.zeros(len(ledger.kib), bool)
        reach = [next(iter(left))]
        while reach and free.sum() < BLOCK_TABLES:
            table = reach.pop(0)
            if table not in left:
                continue
            free[table] = True
            if free.sum() > 1 and _ways(placement, free) > BLOCK_WAYS:
                free[table] = False
                continue
            del left[table]
            readers = ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]].tolist()
            reach += [int(one) for job in readers for one in placement.tables_of(job)]
            if not reach:
                reach = [next(iter(left))] if left else []
        yield free
