"""The data warehouse (paper mast, Sec. 2 and 3): tables, their jobs, and quotas of applications.

A "job" is any reader of tables, as in the paper: an ML workload, a Spark job, a Presto query. Arrays are flat; job j
reads the tables `table[first[j] : first[j + 1]]`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..base.codes import HIGH_LEVELS, LEVELS
from ..base.errors import InputError
from ..cluster.region_hardware import NO_GPU, RegionHardware, expect

NO_APP = -1
LARGEST_TABLE = 2**60
MOST_TYPES = 62  # of GPUs; a set is the bits of a whole number


@dataclass(frozen=True)
class Tables:
    """Tables, one row each.

    Attributes:
        read_share: float64 (tables,) in (0, 1]: the share of its partitions that jobs read. A replica holds only those
            (Sec. 3.5), unless it is whole.
        whole: bool (tables, regions), the copies that hold all partitions wherever the home is, such as those for
            disasters; None: only that at home.
    """

    size_bytes: np.ndarray  # int64 (tables,), 1 to 2**60
    home: np.ndarray  # int64 (tables,), the region where its new data is written
    copies: np.ndarray  # bool (tables, regions), where it lies: at home at least
    partitions: np.ndarray  # int64 (tables,), >= 1, all equal; nothing depends on their number
    read_share: np.ndarray
    whole: np.ndarray | None = None

    @classmethod
    def at(cls, size_bytes: np.ndarray, home: np.ndarray, regions: int, read_share: float = 1.0) -> Tables:
        """Tables that lie at home only, of one partition; `read_share` is that of all."""
        size_bytes, home = np.asarray(size_bytes, np.int64), np.asarray(home, np.int64)
        rows = len(size_bytes)
        copies = np.zeros((rows, regions), bool)
        inside = (home >= 0) & (home < regions)  # what is not inside is refused by the warehouse, with its row
        copies[np.flatnonzero(inside), home[inside]] = True
        return cls(size_bytes, home, copies, np.ones(rows, np.int64), np.full(rows, read_share))

    @classmethod
    def none(cls, regions: int) -> Tables:
        """No tables in so many regions."""
        return cls.at(np.zeros(0, np.int64), np.zeros(0, np.int64), regions)

    def __len__(self) -> int:
        return len(self.size_bytes)

    @property
    def replica_bytes(self) -> np.ndarray:
        """What a copy takes that is not whole, int64 (tables,): the partitions that jobs read."""
        read = np.ceil(self.size_bytes * self.read_share).astype(np.int64)
        return np.where(self.read_share == 1.0, self.size_bytes, np.minimum(read, self.size_bytes))

    @property
    def whole_copies(self) -> np.ndarray:
        """The copies that hold all partitions, bool (tables, regions)."""
        found = self.copies & (self.read_share == 1.0)[:, None]
        if self.whole is not None:
            found |= self.whole & self.copies
        found[np.arange(len(self)), self.home] = True
        return found

    @property
    def held_bytes(self) -> np.ndarray:
        """What each table takes in each region, int64 (tables, regions)."""
        held = np.where(self.copies, self.replica_bytes[:, None], 0)
        return np.where(self.whole_copies, self.size_bytes[:, None], held)


@dataclass(frozen=True)
class TypeSets:
    """The different sets of GPU types that jobs accept: few, however many jobs there are."""

    bits: np.ndarray  # int64 (sets,), rising; 0 is the set of jobs without GPUs
    row: np.ndarray  # int64 (jobs,), the set of each job

    def accepted(self, types: int) -> np.ndarray:
        """Which of so many types are in each set, bool (sets, types)."""
        return (self.bits[:, None] >> np.arange(types) & 1).astype(bool)


@dataclass(frozen=True)
class Jobs:
    """Jobs, one row each; demands are those of one day.

    Attributes:
        training: bool (jobs,): reads all its tables in its own region; else analytics, which may read some elsewhere.
        gpu_hours, cpu_hours: float64 (jobs,), >= 0.
        level: int64 (jobs,), priority, 0 (highest) to 6.
        app: int64 (jobs,), the application whose CPU quota it uses, NO_APP (-1) for none.
        team: int64 (jobs,), >= 0.
        recurring: bool (jobs,): known to the slow path before it runs.
        first: int64 (jobs + 1,); table: int64 (uses,), the tables that each reads, each once, at least one.
        accepts: int64 (jobs,), set of the GPU types that each accepts, as bits, 0 for none; default: `gpu_type`.
    """

    training: np.ndarray
    gpu_type: np.ndarray  # int64 (jobs,), NO_GPU (-1) for none; of several that a job accepts the lowest
    gpus: np.ndarray  # int64 (jobs,), at once
    gpu_hours: np.ndarray
    cpu_hours: np.ndarray
    level: np.ndarray  # int64 (jobs,), priority, 0 (highest) to 6
    app: np.ndarray  # int64 (jobs,), the application whose CPU quota it uses, NO_APP (-1) for none
    team: np.ndarray  # int64 (jobs,), >= 0
    recurring: np.ndarray  # bool (jobs,): known to the slow path before it runs
    first: np.ndarray  # int64 (jobs + 1,)
    table: np.ndarray  # int64 (uses,), the tables that each reads, each once, at least one
    accepts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.accepts) == 0:
            only = np.where(self.gpu_type == NO_GPU, 0, 1 << np.clip(self.gpu_type, 0, MOST_TYPES))
            object.__setattr__(self, "accepts", only)

    def __len__(self) -> int:
        return len(self.training)

    @cached_property
    def reads(self) -> np.ndarray:
        """How many tables each job reads, int64 (jobs,)."""
        return np.diff(self.first)

    @cached_property
    def owner(self) -> np.ndarray:
        """The job of each use, int64 (uses,)."""
        return np.repeat(np.arange(len(self)), self.reads)

    @cached_property
    def type_sets(self) -> TypeSets:
        """Which sets of GPU types they accept."""
        bits, row = np.unique(self.accepts, return_inverse=True)
        return TypeSets(bits, row.ravel().astype(np.int64))

    @property
    def high(self) -> np.ndarray:
        """Training jobs of high priority, bool (jobs,)."""
        return self.training & (self.level < HIGH_LEVELS)

    def only(self, which: np.ndarray) -> Jobs:
        """The jobs where `which`, bool (jobs,), is true, in the same order."""
        rows = {key: getattr(self, key)[which] for key in self.__dataclass_fields__ if key not in ("first", "table")}
        first = np.concatenate([[0], np.cumsum(self.reads[which])])
        return Jobs(**rows, first=first, table=self.table[which[self.owner]])

    def followed_by(self, others: Jobs) -> Jobs:
        """These jobs, then others of the same tables."""
        both = {key: np.concatenate([getattr(self, key), getattr(others, key)]) for key in self.__dataclass_fields__}
        return Jobs(**{**both, "first": np.concatenate([self.first, others.first[1:] + len(self.table)])})


@dataclass(frozen=True)
class Warehouse:
    """Everything that the slow path decides on.

    Attributes:
        world, tables, jobs: as above.
        app_cpu_hours: float64 (applications, regions), what each may use in a day, >= 0.

    Setting: tetris, Sec. 2 and 3.
    """

    world: RegionHardware
    tables: Tables
    jobs: Jobs
    app_cpu_hours: np.ndarray

    def __post_init__(self) -> None:
        _check_tables(self.tables, len(self.world))
        _check_jobs(self)

    def at(self, home: np.ndarray, copies: np.ndarray | None = None, whole: np.ndarray | None = None) -> Warehouse:
        """The same with the tables at other homes; `copies` None: at home only; `whole`: see `Tables`."""
        plain = Tables.at(self.tables.size_bytes, home, len(self.world))
        copies = plain.copies if copies is None else copies
        return replace(self, tables=replace(self.tables, home=plain.home, copies=copies, whole=whole))

    @cached_property
    def known(self) -> Jobs:
        """The jobs that the slow path knows: those that recur (Sec. 3.1)."""
        return self.jobs.only(self.jobs.recurring)

    def offered(self, sets: TypeSets) -> np.ndarray:
        """GPUs of each region of the types of each set, int64 (sets, regions); -1 of the empty set."""
        gpus = sets.accepted(len(self.world.gpu_types)).astype(np.int64) @ self.world.gpus.T
        return np.where(sets.bits[:, None] == 0, -1, gpus)


def type_shares(sets: TypeSets, gpus: np.ndarray) -> np.ndarray:
    """Shares of `sets` of types among them, float64 (sets, regions, types), sum 1, of the empty set 0; our choice.

    Shares follow the region's `gpus`, int64 (regions, types); without any, those of all regions, or equal ones.
    """
    share = np.zeros((len(sets.bits), *gpus.shape))
    for found, kinds in zip(share, sets.accepted(gpus.shape[1]).astype(np.int64), strict=True):
        there = gpus * kinds
        there = np.where(there.any(axis=1, keepdims=True), there, there.sum(axis=0))
        there = np.where(there.any(axis=1, keepdims=True), there, kinds)
        found[:] = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return share


def _check_tables(tables: Tables, regions: int) -> None:
    count = len(tables)
    if count == 0:
        raise InputError("warehouse: no tables, expected at least one")
    for name in ("home", "partitions", "read_share"):
        if getattr(tables, name).shape != (count,):
            raise InputError(f"tables: {name} has shape {getattr(tables, name).shape}, expected ({count},)")
    for name, sets in (("copies", tables.copies), ("whole", tables.whole)):
        if sets is not None and sets.shape != (count, regions):
            raise InputError(f"tables: {name} has shape {sets.shape}, expected ({count}, {regions})")
    numbers = _Numbers()
    sound = (tables.size_bytes >= 1) & (tables.size_bytes <= LARGEST_TABLE)
    expect(sound, "size of table", numbers, tables.size_bytes, f"1 to {LARGEST_TABLE} bytes")
    expect((tables.home >= 0) & (tables.home < regions), "home of table", numbers, tables.home, "a region")
    expect(tables.copies[np.arange(count), tables.home], "copies of table", numbers, tables.home, "one at home")
    expect(tables.partitions >= 1, "partitions of table", numbers, tables.partitions, "1 or more")
    share = tables.read_share
    expect((share > 0) & (share <= 1), "read_share of table", numbers, share, "more than 0, at most 1")


class _Numbers:
    """The text of a row's number, made when it is asked for."""

    def __getitem__(self, row: int) -> str:
        return str(row)


def _check_jobs(warehouse: Warehouse) -> None:
    jobs, count, numbers = warehouse.jobs, len(warehouse.jobs), _Numbers()
    types, apps = len(warehouse.world.gpu_types), len(warehouse.app_cpu_hours)
    if warehouse.app_cpu_hours.shape != (apps, len(warehouse.world)) or not (warehouse.app_cpu_hours >= 0).all():
        raise InputError(
            f"app_cpu_hours of shape {warehouse.app_cpu_hours.shape}: expected a row an application, a column a "
            "region, none below 0"
        )
    if jobs.first.shape != (count + 1,) or jobs.first[0] != 0 or jobs.first[-1] != len(jobs.table):
        raise InputError(
            f"jobs: first has shape {jobs.first.shape}, expected ({count + 1},) from 0 to {len(jobs.table)}"
        )
    ranges = {
        "gpu_type": (NO_GPU, types - 1),
        **dict.fromkeys(("gpus", "gpu_hours", "cpu_hours"), (0, None)),
        "level": (0, LEVELS - 1),
        "app": (NO_APP, apps - 1),
        "team": (0, None),
    }
    for name, (low, high) in ranges.items():
        values = getattr(jobs, name)
        if values.shape != (count,):
            raise InputError(f"jobs: {name} has shape {values.shape}, expected ({count},)")
        fits = (values >= low) & np.isfinite(values) & (True if high is None else values <= high)
        said = f"at least {low}" if high is None else f"{low} to {high}"
        expect(fits, f"{name} of job", numbers, values, said)
    if types > MOST_TYPES:
        raise InputError(f"world {warehouse.world.name!r}: {types} GPU types; expected at most {MOST_TYPES}")
    if jobs.accepts.shape != (count,):
        raise InputError(f"jobs: accepts has shape {jobs.accepts.shape}, expected ({count},)")
    lowest = np.where(jobs.gpu_type == NO_GPU, 0, 1 << np.maximum(jobs.gpu_type, 0))
    sound = (jobs.accepts & -jobs.accepts == lowest) & (jobs.accepts < 1 << types)
    expect(sound, "accepted types of job", numbers, jobs.accepts, "bits of types, `gpu_type` the lowest")
    typeless = (jobs.gpu_hours > 0) & (jobs.gpu_type == NO_GPU)
    expect(~typeless, "gpu_type of job", numbers, jobs.gpu_type, "the type of its GPUs")
    expect(jobs.training | (jobs.gpu_hours == 0), "gpu_hours of analytics job", numbers, jobs.gpu_hours, "0")
    expect(jobs.reads >= 1, "tables of job", numbers, jobs.reads, "one or more")
    inside = (jobs.table >= 0) & (jobs.table < len(warehouse.tables))
    if not inside.all():
        use = int(np.flatnonzero(~inside)[0])
        raise InputError(
            f"job {jobs.owner[use]} reads table {jobs.table[use]}, expected 0 to {len(warehouse.tables) - 1}"
        )
    pair = np.sort(jobs.owner * len(warehouse.tables) + jobs.table)
    twice = np.flatnonzero(np.diff(pair) == 0)
    if len(twice):
        job, table = divmod(int(pair[twice[0]]), len(warehouse.tables))
        raise InputError(f"job {job} reads table {table} twice, expected each table once")
