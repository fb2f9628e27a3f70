"""The home regions of tables as Tetris's hill climbing sees them: what they cost, what a move changes, what is allowed.

Paper mast, Sec. 3.3, Figure 4: its first step, tables to regions. The second, partitions to the data centers of a
region (Sec. 3.1), is left out: every cluster reads all in its region. Where the paper is silent: Expression 1 is a
share of all read bytes, so that its weight is of the size of the others'; if some job asks a GPU type at a level but
none that trains at home does, each region's share of that demand is 0, and if no job asks it, it does not count;
Expressions 4 and 5 are printed with "<", read as "at most", so that no quota means no computing.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from ..base.codes import LEVELS
from ..base.errors import InputError
from ..record.field_axes import shape_of
from ..warehouse.warehouse import Jobs, Warehouse, type_shares
from . import climb, cost, job_moves, table_pairs
from .ledger import Ledger, sum_fields

KIB = 1024
DAY_S = 86400
HALVING = tuple(0.5**level for level in range(LEVELS))


@dataclass(frozen=True)
class Objective:
    """What is minimised and what must hold.

    Attributes:
        remote, gpu, storage: w_1, w_2 and w_3, >= 0; the paper gives no values, so each term counts alike.
        levels: w_Pk, one for each of the 7 priorities, >= 0; not given either: each counts twice the next.
        overload: whether overload costs more than underload (Expression 8).
        at_home: what Expression 6 sums over the jobs that train at home: the GPU-hours of high-priority jobs, or one
            for each training job whatever its size and priority.
        home_share: right side of Expression 6, as a share of that sum over all jobs; None: the sum at the start. That
            is stricter than the paper, which has no threshold: "we empirically validate but do not mandate that the
            number of jobs satisfying this property does not decrease over time".
    """

    remote: float = 1.0
    gpu: float = 1.0
    storage: float = 1.0
    levels: tuple[float, ...] = HALVING
    overload: bool = True
    at_home: Literal["gpu-hours", "jobs"] = "gpu-hours"
    home_share: float | None = None

    def __post_init__(self) -> None:
        weights = (self.remote, self.gpu, self.storage, *self.levels)
        if len(self.levels) != LEVELS or not all(0 <= weight < 1e9 for weight in weights):
            raise InputError(f"objective: weights {weights}; expected 3 and {LEVELS} for the levels, each 0 to 1e9")
        if self.at_home not in ("gpu-hours", "jobs"):
            raise InputError(f"objective: at_home = {self.at_home!r}; expected 'gpu-hours' or 'jobs'")
        if self.home_share is not None and not 0 <= self.home_share <= 1:
            raise InputError(f"objective: home_share = {self.home_share}; expected 0 to 1")


@dataclass(frozen=True)
class Move:
    """A table gets another home: its data is copied to `target`, then deleted at `source`."""

    table: int
    source: int
    target: int


class Placement:
    """Homes of the tables and the sums that follow from them; moves change it in place.

    Args:
        warehouse: tables at their homes, jobs.
        objective: what is minimised and what must hold.
        known: bool (jobs,), the jobs that count; None: those that recur, which the slow path knows (Sec. 3.1).

    Attributes:
        jobs: those that count, as the ledger numbers them.
    """

    def __init__(self, warehouse: Warehouse, objective: Objective, known: np.ndarray | None = None) -> None:
        self.warehouse = warehouse
        self.objective = objective
        self.jobs = warehouse.known if known is None else warehouse.jobs.only(known)
        self.ledger = _ledger(warehouse, objective, self.jobs)

    def copy(self) -> Placement:
        """The same homes; moves change either alone."""
        found = copy(self)
        found.ledger = Ledger(*(array.copy() for array in self.ledger))
        return found

    @property
    def home(self) -> np.ndarray:
        """Home of each table, int64 (tables,); a copy."""
        return np.array(self.ledger.home)

    @property
    def cost(self) -> float:
        """Expressions 1 to 3, weighted."""
        return float(cost.total_cost(self.ledger))

    @property
    def terms(self) -> tuple[float, float, float]:
        """What the cost is made of: Expressions 1 (read across regions), 2 (uneven demand), 3 (storage), weighted."""
        ledger = self.ledger
        remote = float(ledger.term_weight[0] * ledger.remote[0])
        demand = float(ledger.term_weight[1] * (ledger.level_weight * ledger.balance).sum())
        share = ledger.stored / max(int(ledger.stored.sum()), 1)
        return remote, demand, float(ledger.term_weight[2] * ((share - ledger.storage_share) ** 2).sum())

    @property
    def moved_kib(self) -> int:
        """KiB to copy so that the homes are where they are now: what the warehouse's copies there lack."""
        home = self.ledger.home
        return int(self.ledger.missing[np.arange(len(home)), home].sum())

    def tables_of(self, job: int) -> np.ndarray:
        """The tables of a job, by its row in the ledger: int64 (n,)."""
        return self.jobs.table[self.jobs.first[job] : self.jobs.first[job + 1]]

    def change(self, table: int, target: int) -> float:
        """What moving the table there would add to the cost, found without moving it."""
        return float(climb.change_of(self.ledger, self._table(table), self._region(target)))

    def allows(self, table: int, target: int) -> bool:
        """Whether Expressions 4 to 6 hold after the move; what is broken before may stay so, but not get worse."""
        return bool(climb.allows(self.ledger, self._table(table), self._region(target)))

    def move(self, table: int, target: int) -> None:
        """Give the table another home, allowed or not."""
        cost.move(self.ledger, self._table(table), self._region(target))

    def best_moves(self) -> np.ndarray:
        """What the best allowed move of each table by itself would gain, float64 (tables,), >= 0."""
        gains = np.zeros(len(self.ledger.home))
        climb.survey(self.ledger, 0, len(gains), gains)
        return gains

    def follow(self, queue: np.ndarray, quota_bytes: float) -> list[Move]:
        """Move the tables of a queue to their best homes; they may copy `quota_bytes` more than earlier homes."""
        log = np.zeros((3, max(len(queue), 1)), np.int64)
        quota = int(min(quota_bytes / KIB, 2.0**62))
        made = int(climb.follow(self.ledger, np.asarray(queue, np.int64), quota, log[0], log[1], log[2]))
        return [Move(*entry) for entry in log[:, :made].T.tolist()]

    def job_gains(self, jobs: np.ndarray) -> np.ndarray:
        """Gain of each of `jobs`, int64 (n,), if its tables move to the best region together, or 0: float64 (n,)."""
        gains = np.zeros(len(jobs))
        job_moves.survey_jobs(self.ledger, self.jobs.first, self.jobs.table, jobs, self._were(), gains)
        return gains

    def follow_jobs(self, queue: np.ndarray, quota_bytes: float) -> int:
        """Move all tables of each queued job to their best region, within `quota_bytes`; returns jobs moved."""
        quota = int(min(quota_bytes / KIB, 2.0**62))
        return int(job_moves.follow_jobs(self.ledger, self.jobs.first, self.jobs.table, queue, quota, self._were()))

    def _were(self) -> np.ndarray:
        return np.zeros(int(self.jobs.reads.max(initial=1)), np.int64)

    def pair_up(self, table: int, partners: np.ndarray) -> list[Move]:
        """Move a table and a partner, int64 (n,), for most gain, as Expressions 4 to 6 allow; both moves, or none."""
        homes = self.ledger.home
        before, choice = int(homes[self._table(table)]), np.zeros(3, np.int64)
        were = homes[partners]
        table_pairs.pair_up(self.ledger, table, partners, 0, len(partners), choice)
        if choice[0] < 0:
            return []
        partner = int(choice[1])
        was = int(were[partners.tolist().index(partner)])
        return [Move(table, before, int(choice[0])), Move(partner, was, int(choice[2]))]

    def is_sound(self) -> bool:
        """Whether Expressions 4 to 6 hold."""
        ledger = self.ledger
        fits = (ledger.stored <= ledger.storage).all() and (ledger.cpu <= ledger.app_cpu).all()
        return bool(fits and ledger.met[0] >= ledger.threshold[0])

    def _table(self, table: int) -> int:
        if not 0 <= table < len(self.ledger.home):
            raise InputError(f"table {table}: expected 0 to {len(self.ledger.home) - 1}")
        return int(table)

    def _region(self, region: int) -> int:
        if not 0 <= region < len(self.warehouse.world):
            raise InputError(f"region {region}: expected 0 to {len(self.warehouse.world) - 1}")
        return int(region)


def kib(size_bytes: np.ndarray) -> np.ndarray:
    """Whole KiB that hold so many bytes, int64."""
    return -(-np.asarray(size_bytes, np.int64) // KIB)


def seconds(hours: np.ndarray) -> np.ndarray:
    """Whole seconds, int64."""
    return np.rint(np.asarray(hours) * 3600.0).astype(np.int64)


def _ledger(warehouse: Warehouse, objective: Objective, jobs: Jobs) -> Ledger:
    world, tables = warehouse.world, warehouse.tables
    sizes = len(tables), len(jobs), len(world), len(world.gpu_types), len(warehouse.app_cpu_hours)
    fields = [(field[0], field[1], cast("tuple[int, ...]", shape_of(field))) for field in sum_fields(*sizes)]
    sums = {name: np.zeros(shape, kind) for name, kind, shape in fields}
    sums["home"][:] = tables.home
    missing = kib(tables.size_bytes[:, None] - tables.held_bytes)  # a replica there may have a part
    ledger = Ledger(**fixed_terms(warehouse, objective, jobs), missing=missing, threshold=np.zeros(1, np.int64), **sums)
    cost.sum_up(ledger)
    share = objective.home_share
    ledger.threshold[0] = ledger.met[0] if share is None else int(np.ceil(share * ledger.met_by.sum()))
    return ledger


def fixed_terms(warehouse: Warehouse, objective: Objective, jobs: Jobs) -> dict[str, np.ndarray]:
    """What a ledger of these jobs holds that depends neither on where tables lie nor on the right side of Expression 6.

    `overload`, `training` and `has_gpus` are int8.
    """
    world, tables = warehouse.world, warehouse.tables
    size, gpu_s = kib(tables.size_bytes), seconds(jobs.gpu_hours)
    order = np.argsort(jobs.table, kind="stable")
    uses = np.bincount(jobs.table, minlength=len(tables))
    total = np.zeros(len(jobs), np.int64)
    np.add.at(total, jobs.owner, size[jobs.table])
    met_by = np.where(jobs.high, gpu_s, 0) if objective.at_home == "gpu-hours" else jobs.training.astype(np.int64)
    supply = world.gpus * DAY_S
    sets = jobs.type_sets
    accepted = sets.accepted(len(world.gpu_types))
    levels = np.zeros((len(sets.bits), LEVELS), bool)
    levels[sets.row, jobs.level] = True
    return {
        "extent": np.array([len(tables), len(jobs), len(world), len(world.gpu_types)]),
        "kib": size,
        "first_user": np.concatenate([[0], np.cumsum(uses)]).astype(np.int64),
        "user": jobs.owner[order],
        "reads": jobs.reads.astype(np.int64),
        "training": jobs.training.astype(np.int8),
        "accepts": sets.row,
        "first_type": np.concatenate([[0], np.cumsum(accepted.sum(axis=1))]).astype(np.int64),
        "type": np.nonzero(accepted)[1].astype(np.int64),
        "type_share": type_shares(sets, world.gpus),
        "has_gpus": (warehouse.offered(sets) != 0).astype(np.int8),
        "job_level": jobs.level,
        "gpu_s": gpu_s,
        "cpu_s": seconds(jobs.cpu_hours),
        "app": jobs.app,
        "total": total,
        "met_by": met_by,
        "supply": supply,
        "supply_share": supply / np.maximum(supply.sum(axis=0), 1),
        "storage": world.storage_bytes // KIB,
        "storage_share": world.storage_bytes / max(int(world.storage_bytes.sum()), 1),
        "app_cpu": seconds(warehouse.app_cpu_hours),
        "level_weight": (accepted.T @ levels) * np.asarray(objective.levels),
        "term_weight": np.array([objective.remote / max(int(total.sum()), 1), objective.gpu, objective.storage]),
        "overload": np.array([objective.overload], np.int8),
    }
