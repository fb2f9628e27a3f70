"""`milp`: the best homes of a small instance, by HiGHS (paper mast, Sec. 3.3; its production does not use it).

The problem is not linear: R(job) follows from the homes, and Expression 2 is a square times a sigmoid over a sum. What
makes it exact: for each GPU type one column for every way in which its jobs can be seated, with its cost; for each
analytics job one for every way in which its tables can lie; for Expression 9 one for every pair of tables in a region.
Such columns need not be whole numbers: where the homes are, only one column of each set can be above 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...simulator.errors import InputError
from ...simulator.geo.kernels.ledger import Ledger
from ...simulator.geo.placement import Placement

MOST_COLUMNS = 200_000
NOWHERE = -1
SECONDS = 3600.0


@dataclass
class _Model:
    """Columns and rows of a linear program as they are added."""

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


@dataclass
class _Variables:
    """Where to find them: homes[t][r]; seats[j][r], of jobs of one table those of its home."""

    homes: list[list[int]]
    seats: dict[int, list[int]] = field(default_factory=dict)


def optimum(placement: Placement) -> tuple[np.ndarray, float]:
    """The homes with the least cost that satisfy Expressions 4 to 6, int64 (tables,), and that cost.

    Raises:
        InputError: the instance is too large, or nothing satisfies the constraints.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    ledger = placement.ledger
    model = _Model()
    homes = [[model.column(0.0, whole=True) for _ in ledger.storage] for _ in ledger.size]
    for home in homes:
        model.row([(column, 1.0) for column in home], 1.0, 1.0)
    variables = _Variables(homes)
    constant = 0.0
    for job, tables in enumerate(_tables_of(ledger)):
        add = _training if ledger.training[job] or len(tables) == 1 else _analytics
        constant += add(model, variables, ledger, job, tables)
    for gpu in range(len(ledger.bases)):
        constant += _balance(model, variables, ledger, gpu)
    constant += _storage(model, variables, ledger)
    _constraints(model, variables, ledger)
    row, column, value = (np.array(part) for part in zip(*model.entries, strict=True))
    matrix = coo_array((value, (row, column)), shape=(len(model.low), len(model.cost))).tocsr()
    found = milp(
        np.array(model.cost),
        integrality=np.array(model.whole, dtype=np.int64),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, np.array(model.low), np.array(model.high)),
        options={"mip_rel_gap": 1e-9},
    )
    if found.x is None:
        raise InputError(f"milp: no placement satisfies Expressions 4 to 6, or none was found ({found.message})")
    return found.x[np.array(homes)].argmax(axis=1), float(found.fun + constant)


def _tables_of(ledger: Ledger) -> list[list[int]]:
    tables: list[list[int]] = [[] for _ in ledger.reads]
    for table in range(len(ledger.size)):
        for job in ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]].tolist():
            tables[job].append(table)
    return tables


def _training(model: _Model, variables: _Variables, ledger: Ledger, job: int, tables: list[int]) -> float:
    """Seats of a job that needs all its tables; the cost where it has none, which seats take off again."""
    if len(tables) == 1:
        variables.seats[job] = variables.homes[tables[0]]
        return 0.0
    away = float(ledger.weight[0] * ledger.total[job])
    seats = [model.column(-away) for _ in ledger.storage]
    for region, seat in enumerate(seats):
        lies = [variables.homes[table][region] for table in tables]
        for home in lies:
            model.row([(home, 1.0), (seat, -1.0)], 0.0, np.inf)
        model.row([(seat, 1.0), *((home, -1.0) for home in lies)], 1.0 - len(lies), np.inf)
    variables.seats[job] = seats
    return away


def _analytics(model: _Model, variables: _Variables, ledger: Ledger, job: int, tables: list[int]) -> float:
    """A column for every way in which the tables of an analytics job can lie."""
    regions = len(ledger.storage)
    size = ledger.size[tables]
    seats = [model.column(0.0) for _ in range(regions)]
    at_home: dict[tuple[int, int], list[int]] = {}
    at_seat: list[list[int]] = [[] for _ in range(regions)]
    for lies in itertools.product(range(regions), repeat=len(tables)):
        seat = int(np.bincount(lies, minlength=regions).argmax())
        remote = int(ledger.total[job] - size[np.array(lies) == seat].sum())
        column = model.column(float(ledger.weight[0] * remote))
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


def _balance(model: _Model, variables: _Variables, ledger: Ledger, gpu: int) -> float:
    """A column for every way in which the jobs of a GPU type can be seated; Expression 2 without jobs otherwise."""
    jobs = np.flatnonzero(ledger.gpu_type == gpu)
    regions = len(ledger.storage)
    choices = [[*range(regions), *([NOWHERE] if ledger.reads[job] > 1 else [])] for job in jobs]
    if np.prod([float(len(choice)) for choice in choices]) > MOST_COLUMNS:
        raise InputError(f"milp: {len(jobs)} jobs of one GPU type; expected a smaller instance, or take tetris-v2")
    if not len(jobs):
        return 0.0
    ways = np.array(list(itertools.product(*choices)), np.int64)
    costs = ledger.weight[1] * seated_cost(ledger, gpu, jobs, ways)
    columns = [model.column(float(cost)) for cost in costs]
    model.row([(column, 1.0) for column in columns], 1.0, 1.0)
    for place, job in enumerate(jobs.tolist()):
        for region in range(regions):
            chosen = [columns[way] for way in np.flatnonzero(ways[:, place] == region)]
            _equal(model, variables.seats[job][region], chosen)
    return 0.0


def seated_cost(ledger: Ledger, gpu: int, jobs: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Expressions 2, 7 and 8 of a GPU type for each way of seating its jobs, weighted by levels but not by w_2.

    Args:
        ledger: demands, supplies and weights. gpu: code. jobs: (n,) rows.
        ways: int64 (ways, n), the region of each job, -1 for NULL.
    """
    regions, levels = len(ledger.storage), ledger.level_weight.shape[1]
    demand = np.zeros((len(ways), regions, levels))
    for place, job in enumerate(jobs.tolist()):
        seated = np.flatnonzero(ways[:, place] != NOWHERE)
        np.add.at(demand, (seated, ways[seated, place], ledger.level[job]), float(ledger.gpu_s[job]))
    asked = demand.sum(axis=1, keepdims=True)
    share = np.divide(demand, asked, out=np.zeros_like(demand), where=asked > 0)
    over_h = np.maximum(demand.sum(axis=2) - ledger.supply[:, gpu], 0.0) / SECONDS
    pressed = 1.0 / (1.0 + np.exp(-over_h)) if ledger.overload[0] else np.full(over_h.shape, 0.5)
    squares = (share - ledger.supply_share[:, gpu][None, :, None]) ** 2 * pressed[:, :, None]
    return squares.sum(axis=1) @ ledger.level_weight[gpu]


def _storage(model: _Model, variables: _Variables, ledger: Ledger) -> float:
    """Expressions 3 and 9, multiplied out: of a table by itself, and of each pair in one region."""
    if ledger.weight[2] == 0.0:
        return 0.0
    part = ledger.size / float(ledger.size.sum())
    weight, tables = float(ledger.weight[2]), range(len(ledger.size))
    for region, share in enumerate(ledger.storage_share):
        for table in tables:
            model.cost[variables.homes[table][region]] += weight * (part[table] ** 2 - 2.0 * part[table] * share)
        for one, other in itertools.combinations(tables, 2):
            both = model.column(2.0 * weight * part[one] * part[other])
            pair = [(variables.homes[table][region], 1.0) for table in (one, other)]
            model.row([*pair, (both, -1.0)], -np.inf, 1.0)
    return weight * float((ledger.storage_share**2).sum())


def _constraints(model: _Model, variables: _Variables, ledger: Ledger) -> None:
    """Expressions 4 to 6, each scaled so that its right side is of size 1."""
    for region, room in enumerate(ledger.storage.tolist()):
        scale = max(room, 1)
        terms = [(home[region], size / scale) for home, size in zip(variables.homes, ledger.size, strict=True)]
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
        if ledger.gpu_type[job] < 0 or ledger.supply[region, ledger.gpu_type[job]] > 0
    ]
    model.row(terms, int(ledger.threshold[0]) / scale, np.inf)
