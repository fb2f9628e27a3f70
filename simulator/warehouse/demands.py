"""The rows' demands of a Workload beyond GPUs and time, with regions (paper mast, Sec. 2, 4.2 and 5.1).

A row is a MAST workload: a gang of units (GPUs, or CPU machines) in at most four parts, MAST's jobs, each of units of
one type in one cluster; all in one region that holds every table of the row. A GPU part may accept several types.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.codes import LEVELS
from ..base.errors import InputError
from ..cluster.region_hardware import RegionHardware, expect
from ..cluster.region_network import CPU_TYPE
from ..cluster.topology import Topology
from .warehouse import Jobs, Tables, Warehouse

MOST_PARTS = 4
MOST_CODES = 63  # types that a set tells apart
MOST_CHOICES = 64  # of types for the parts of a row
NO_TYPE = -1
_PART_ROWS = ("part_type", "part_units", "accepts")
_ROWS = ("level", "tenant", "recurring", *_PART_ROWS, "container_s", "fresh")


@dataclass(frozen=True, eq=False)
class Demands:
    """The rows of a Workload in the same order; everything else is of the whole. Arrays are read-only.

    Attributes:
        regions: names of the regions, as the tables number them; without tables perhaps none: those of any topology.
        gpu_types: names of the unit types, the last is "CPU": units that are machines without GPUs.
        level: int64 (jobs,), priority, 0 (highest) to 6.
        tenant: int64 (jobs,), a row of `quota`.
        recurring: bool (jobs,): ran before, so the slow path knows what it reads.
        part_type: int64 (jobs, 4), index into `gpu_types`, the first of several accepted types; -1: no part. Parts come
            from the left, one at least.
        part_units: int64 (jobs, 4), >= 1 where there is a part, else 0; a row's sum is the workload's `gpus`.
        container_s: float64 (jobs,), seconds >= 0 that every start takes before the work goes on.
        first: int64 (jobs + 1,); table: int64 (uses,): row j reads `table[first[j] : first[j + 1]]`, each once.
        tenant_names: unique, one a row of `quota`.
        table_names: unique.
        tables: their sizes, homes and copies at time 0.
        quota: int64 (tenants, 2): GPUs and CPU machines that a tenant may have at once within its priority, >= 0.
        slo_s: float64 (7,), by level: how long a workload may wait for its first start, > 0; inf: any time.
        checkpoint_s: seconds >= 0 to save the state of a workload that is preempted.
        history: what the slow path knows: jobs whose `gpu_type` is an index into `gpu_types[:-1]`.
        app_cpu_hours: float64 (applications, regions), what each application of `history` may use in a day.
        fresh: bool (jobs,), needs the newest data and so runs only where all its tables have their home, as replicas
            are staler (paper mast, Sec. 3.1: training-at-home-region); by default none.
        known_s: float64 (jobs of `history`, 2), when the slow path counts on each, seconds; without a row: always.
        accepts: int64 (jobs, 4), set of the types that a part accepts, as bits, 0 for no part; by default `part_type`
            alone. CPU goes with no other type.
    """

    regions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    level: np.ndarray
    tenant: np.ndarray
    recurring: np.ndarray
    part_type: np.ndarray
    part_units: np.ndarray
    container_s: np.ndarray
    first: np.ndarray
    table: np.ndarray
    tenant_names: tuple[str, ...]
    table_names: tuple[str, ...]
    tables: Tables
    quota: np.ndarray
    slo_s: np.ndarray
    checkpoint_s: float
    history: Jobs
    app_cpu_hours: np.ndarray
    fresh: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    known_s: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    accepts: np.ndarray = field(default_factory=lambda: np.zeros((0, MOST_PARTS), np.int64))

    def __post_init__(self) -> None:
        if len(self.accepts) == 0:
            only = np.where(self.part_type == NO_TYPE, 0, 1 << np.maximum(self.part_type, 0))
            object.__setattr__(self, "accepts", only)
        if len(self.fresh) == 0:
            object.__setattr__(self, "fresh", np.zeros(len(self.level), bool))
        _check(self)
        for name in (*_ROWS, "first", "table", "quota", "slo_s", "app_cpu_hours", "known_s"):
            getattr(self, name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.level)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Demands):
            return NotImplemented
        return _same(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def units(self) -> np.ndarray:
        """Units of each row, int64 (jobs,)."""
        return self.part_units.sum(axis=1)

    @cached_property
    def owner(self) -> np.ndarray:
        """The row of each use, int64 (uses,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def chooses(self) -> np.ndarray:
        """Which rows have a part that accepts several types, bool (jobs,)."""
        return np.asarray((self.accepts & (self.accepts - 1) != 0).any(axis=1))

    def types_of(self, job: int) -> list[list[int]]:
        """The types that each part of a row accepts, indices into `gpu_types`, ascending."""
        return [_members(bits) for bits in self.accepts[job].tolist() if bits]

    def fastest(self, speed: np.ndarray) -> np.ndarray:
        """Speed of each row on its fastest accepted types, float64 (jobs,): as its slowest GPUs, else its machines."""
        return self._pace(speed, slowest=False)

    def slowest(self, speed: np.ndarray) -> np.ndarray:
        """The same on the slowest types that it accepts."""
        return self._pace(speed, slowest=True)

    def _pace(self, speed: np.ndarray, slowest: bool) -> np.ndarray:
        cpu, found = len(self.gpu_types) - 1, np.full(len(self), np.inf)
        for kind, bits in zip(self.part_type.T, self.accepts.T, strict=True):
            accepted = bits[:, None] >> np.arange(cpu + 1) & 1 == 1
            if slowest:
                own = speed.min(axis=1, where=accepted, initial=np.inf)
            else:
                own = speed.max(axis=1, where=accepted, initial=0.0)
            counts = (kind != NO_TYPE) & ((kind != cpu) | (self.asked[:, 0] == 0))
            found = np.where(counts, np.minimum(found, own), found)
        return found

    def type_names(self, job: int) -> list[str]:
        """The types that each part of a row accepts, as a file has them: `A100`, or `A100|H100`."""
        return ["|".join(self.gpu_types[kind] for kind in kinds) for kinds in self.types_of(job)]

    @cached_property
    def asked(self) -> np.ndarray:
        """GPUs and CPU machines of each row, int64 (jobs, 2)."""
        cpu = np.where(self.part_type == len(self.gpu_types) - 1, self.part_units, 0).sum(axis=1)
        return np.stack([self.units - cpu, cpu], axis=1)

    def take(self, rows: np.ndarray) -> Demands:
        """The rows of these indices, ascending; tables, quotas and history stay."""
        reads = np.diff(self.first)[rows]
        starts = np.repeat(self.first[:-1][rows], reads)
        first = np.concatenate([[0], np.cumsum(reads)]).astype(np.int64)
        within = np.arange(first[-1]) - np.repeat(first[:-1], reads)
        picked = {name: getattr(self, name)[rows] for name in _ROWS}
        return replace(self, **picked, first=first, table=self.table[starts + within])

    def over(self, regions: tuple[str, ...]) -> Demands:
        """The same rows, which name no regions and read no tables, over these regions."""
        return replace(
            self, regions=regions, tables=Tables.none(len(regions)), app_cpu_hours=np.zeros((0, len(regions)))
        )

    def everywhere(self) -> Demands:
        """The same rows with all tables in all regions from time 0, fresh, one byte a copy; homes stay."""
        tables = self.tables
        size, there, share = (np.ones_like(each) for each in (tables.size_bytes, tables.copies, tables.read_share))
        spread = replace(tables, size_bytes=size, copies=there, read_share=share)
        return replace(self, tables=replace(spread, whole=None), fresh=np.zeros(len(self), bool))

    def cluster_type(self, topology: Topology) -> np.ndarray:
        """Index into `gpu_types` of each cluster's type, int64 (clusters,); -1: unasked. Errors of `check_fits`."""
        self.check_fits(topology)
        code = {name: number for number, name in enumerate(self.gpu_types)}
        return np.array([code.get(name, NO_TYPE) for name in topology.cluster_gpu_type], np.int64)

    def check_fits(self, topology: Topology) -> None:
        """InputError: a topology without storage, of other regions, or without a type that a row asks."""
        what = f"topology {topology.name!r}"
        if topology.region_network is None:
            raise InputError(f"{what} has no regions with storage, which the workload's tables need; expected mast:...")
        if topology.region_names != self.regions:
            theirs, ours = topology.region_names, self.regions
            remedy = (
                f", as mast-like:regions={len(theirs)} has them" if {*ours} < {*theirs} or {*theirs} < {*ours} else ""
            )
            raise InputError(
                f"{what} has the regions {_listed(theirs)}, but the workload's tables lie in {_listed(ours)}; expected "
                f"the same, in the same order{remedy}"
            )
        asked = _members(int(np.bitwise_or.reduce(self.accepts, axis=None)))
        missing = [self.gpu_types[code] for code in asked if self.gpu_types[code] not in topology.cluster_gpu_type]
        if missing:
            there = ", ".join(dict.fromkeys(topology.cluster_gpu_type))
            raise InputError(f"{what} has no cluster of type {missing[0]!r}, which the workload asks; it has {there}")

    def hosts(self, topology: Topology) -> np.ndarray:
        """The regions that could hold each row if they were empty, bool (jobs, regions); tables are not looked at."""
        cluster_type = self.cluster_type(topology)
        units = np.bincount(topology.gpu_cluster, minlength=topology.num_clusters)
        rooms = [
            [
                np.sort(units[(topology.cluster_region == region) & (cluster_type == code)])[::-1].tolist()
                for code in range(len(self.gpu_types))
            ]
            for region in range(len(self.regions))
        ]
        largest = np.array([[max(room, default=0) for room in by_type] for by_type in rooms])
        fits = np.ones((len(self), len(rooms)), bool)
        for kind, size in zip(self.part_type.T, self.part_units.T, strict=True):
            fits &= (size <= largest[:, kind]).T  # of no part (-1) the size is 0
        for code in range(len(self.gpu_types)):
            asked = np.where(self.part_type == code, self.part_units, 0)
            (several,) = np.nonzero((asked > 0).sum(axis=1) > 1)
            shapes, index = np.unique(asked[several], axis=0, return_inverse=True)
            fitting = [[packs([n for n in shape if n], room[code]) for room in rooms] for shape in shapes.tolist()]
            fits[several] &= np.array(fitting, bool).reshape(-1, len(rooms))[index.ravel()]
        self._host_choosing(fits, rooms)
        return fits

    def _host_choosing(self, fits: np.ndarray, rooms: list[list[list[int]]]) -> None:
        """Modify `fits`, see `hosts`: rows that choose among types; `rooms`: units of clusters by region and type."""
        (rows,) = np.nonzero(self.chooses)
        both = np.concatenate([self.accepts[rows], self.part_units[rows]], axis=1)
        shapes, index = np.unique(both, axis=0, return_inverse=True)
        for shape, row in enumerate(shapes.tolist()):
            parts = [(_members(bits), units) for bits, units in zip(row[:MOST_PARTS], row[MOST_PARTS:], strict=True)]
            found = [_packs_among([part for part in parts if part[1]], by_type) for by_type in rooms]
            fits[rows[index.ravel() == shape]] = found

    def warehouse(
        self,
        topology: Topology,
        home: np.ndarray | None = None,
        copies: np.ndarray | None = None,
        whole: np.ndarray | None = None,
        now_s: float = 0.0,
    ) -> Warehouse:
        """The slow path's input: the regions, the tables as they are now, and the known jobs; errors of `check_fits`.

        `home`: int64 (tables,); `copies`, `whole`: bool (tables, regions), see `Tables`; None: at time 0. `now_s`: now.
        """
        self.check_fits(topology)
        tables = self.tables
        if home is not None:
            tables = replace(tables, home=home)
        if copies is not None:
            tables = replace(tables, copies=copies, whole=whole)
        return Warehouse(
            RegionHardware.of(topology, self.gpu_types[:-1]), tables, self.known(now_s), self.app_cpu_hours
        )

    def known(self, now_s: float) -> Jobs:
        """Of `history` what the slow path counts on at a time."""
        if len(self.known_s) == 0:
            return self.history
        return self.history.only((self.known_s[:, 0] <= now_s) & (now_s < self.known_s[:, 1]))


def packs(parts: list[int], rooms: list[int]) -> bool:
    """Whether parts go into rooms, each whole into one, several into one where they fit."""
    return _packs_among([([0], part) for part in parts], [rooms])


def _packs_among(parts: list[tuple[list[int], int]], rooms: list[list[int]]) -> bool:
    """Whether parts, each with the types that it accepts, go into rooms by type."""
    if not parts:
        return True
    kinds, units = parts[0]
    for kind in kinds:
        for room, size in enumerate(rooms[kind]):
            if size >= units:
                taken = [*rooms[kind][:room], size - units, *rooms[kind][room + 1 :]]
                if _packs_among(parts[1:], [*rooms[:kind], taken, *rooms[kind + 1 :]]):
                    return True
    return False


def _members(bits: int) -> list[int]:
    return [member for member in range(bits.bit_length()) if bits >> member & 1]


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "__dataclass_fields__"):
        return all(_same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    return bool(np.array_equal(one, other))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


class _Rows:
    """The number of a row as errors give it, from 1."""

    def __getitem__(self, row: int) -> str:
        return str(row + 1)


def _check(demands: Demands) -> None:
    rows, numbers, types = len(demands.level), _Rows(), len(demands.gpu_types)
    if types == 0 or demands.gpu_types[-1] != CPU_TYPE or len(set(demands.gpu_types)) != types:
        raise InputError(f"demands: unit types {demands.gpu_types}; expected different ones, {CPU_TYPE} last")
    if types > MOST_CODES:
        raise InputError(f"demands: {types} unit types; expected at most {MOST_CODES}")
    parts, single = (rows, MOST_PARTS), (rows,)
    for name in _ROWS:
        shape = getattr(demands, name).shape
        if shape != (parts if name in _PART_ROWS else single):
            raise InputError(f"demands: {name} has shape {shape}, expected {rows} rows")
    _in_range(demands.level, "level of job", 0, LEVELS - 1)
    _in_range(demands.tenant, "tenant of job", 0, len(demands.quota) - 1)
    _in_range(demands.part_type, "unit type of job", NO_TYPE, types - 1)
    there = demands.part_type != NO_TYPE
    expect(there[:, 0], "parts of job", numbers, demands.part_type[:, 0], "at least one")
    left = (there[:, 1:] <= there[:, :-1]).all(axis=1)
    expect(left, "parts of job", numbers, there.sum(axis=1), "parts from the left")
    sound = np.asarray(np.where(there, demands.part_units >= 1, demands.part_units == 0).all(axis=1))
    expect(sound, "units of job", numbers, demands.part_units.sum(axis=1), "at least 1 in every part, 0 elsewhere")
    _check_choices(demands, numbers, there)
    container = demands.container_s
    expect((container >= 0) & (container < np.inf), "container_s of job", numbers, container, "at least 0 seconds")
    _check_tables(demands, numbers)
    if len(demands.known_s) and demands.known_s.shape != (len(demands.history), 2):
        raise InputError(f"demands: known_s has shape {demands.known_s.shape}; expected ({len(demands.history)}, 2)")
    if demands.quota.ndim != 2 or demands.quota.shape[1] != 2 or (demands.quota < 0).any():
        raise InputError("demands: quota must be a row a tenant of GPUs and CPU machines, none below 0")
    names, tenants = demands.tenant_names, len(demands.quota)
    if len(set(names)) != len(names) or len(names) != tenants:
        raise InputError(f"demands: {len(names)} names of {tenants} tenants; expected one each, no two alike")
    if demands.slo_s.shape != (LEVELS,) or not (demands.slo_s > 0).all():
        raise InputError(f"demands: slo_s = {demands.slo_s}; expected {LEVELS} times in seconds above 0, inf for none")
    if not 0 <= demands.checkpoint_s < np.inf:
        raise InputError(f"demands: checkpoint_s = {demands.checkpoint_s}; expected at least 0 seconds")


def _check_choices(demands: Demands, numbers: _Rows, there: np.ndarray) -> None:
    accepts, types = demands.accepts, len(demands.gpu_types)
    lowest = accepts & -accepts
    sound = np.where(there, (lowest == 1 << np.maximum(demands.part_type, 0)) & (accepts < 1 << types), accepts == 0)
    expect(sound.all(axis=1), "accepted types of job", numbers, accepts[:, 0], "bits of types, `part_type` the lowest")
    cpu = 1 << (types - 1)
    mixed = (accepts & cpu != 0) & (accepts != cpu)
    expect(~mixed.any(axis=1), "accepted types of job", numbers, accepts[:, 0], f"{CPU_TYPE} with no other type")
    choices = np.ones(len(accepts), np.int64)
    for part in accepts.T:
        choices = choices * np.maximum(1, sum((part >> kind) & 1 for kind in range(types)))
    expect(choices <= MOST_CHOICES, "ways to choose types for job", numbers, choices, f"at most {MOST_CHOICES}")


def _in_range(values: np.ndarray, what: str, low: int, high: int) -> None:
    bad = ((values < low) | (values > high)).reshape(len(values), -1)
    worst = values.reshape(bad.shape)[np.arange(len(values)), bad.argmax(axis=1)]
    expect(np.asarray(~bad.any(axis=1)), what, _Rows(), worst, f"{low} to {high}")


def _check_tables(demands: Demands, numbers: _Rows) -> None:
    rows, count = len(demands), len(demands.tables)
    if len(demands.table_names) != count or len(set(demands.table_names)) != count:
        raise InputError(
            f"demands: {len(demands.table_names)} names of {count} tables; expected one each, no two alike"
        )
    if demands.first.shape != (rows + 1,) or demands.first[0] != 0 or demands.first[-1] != len(demands.table):
        raise InputError(f"demands: first must go from 0 to {len(demands.table)} over {rows} rows")
    expect(np.diff(demands.first) >= 0, "tables of job", numbers, np.diff(demands.first), "0 or more")
    inside = (demands.table >= 0) & (demands.table < count)
    if not inside.all():
        use = int((~inside).argmax())
        raise InputError(
            f"demands: job {numbers[demands.owner[use]]} reads table {demands.table[use]}; expected 0 to {count - 1}"
        )
    pair = np.sort(demands.owner * count + demands.table)
    twice = np.flatnonzero(np.diff(pair) == 0)
    if len(twice):
        job, table = divmod(int(pair[twice[0]]), count)
        raise InputError(
            f"demands: job {numbers[job]} reads table {demands.table_names[table]!r} twice; expected each table once"
        )
