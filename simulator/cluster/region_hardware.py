"""Regions: dynamic clusters of GPU machines of a type, CPU machines, or both; storage; links (paper mast, Sec. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from ..base.errors import InputError
from .region_network import CPU_TYPE, MOST_REGIONS, RegionNetwork, given_or_inf
from .topology import Topology, check_gpu_count

NO_GPU = -1


@dataclass(frozen=True)
class Clusters:
    """The dynamic clusters of all regions, one row each; int64 (clusters,) unless said otherwise.

    Attributes:
        names: unique within a region. region: its index.
        gpu_type: code of its GPU machines, NO_GPU (-1) if it has none.
        gpu_machines, gpus_per_machine, cpu_machines: machines with GPUs and without, >= 0.
        machines_per_rack: >= 1.
    """

    names: tuple[str, ...]
    region: np.ndarray
    gpu_type: np.ndarray
    gpu_machines: np.ndarray
    gpus_per_machine: np.ndarray
    cpu_machines: np.ndarray
    machines_per_rack: np.ndarray

    @property
    def gpus(self) -> np.ndarray:
        """GPUs of each cluster, int64 (clusters,)."""
        return self.gpu_machines * self.gpus_per_machine

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class RegionHardware:
    """The regions.

    Attributes:
        regions, gpu_types: unique names; a code is the place in `gpu_types`.
        clusters: of all regions.
        storage_bytes, wan_bytes_per_s, fault_group, egress_bytes_per_s, ingress_bytes_per_s: as in `RegionNetwork`.
    """

    name: str
    regions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    clusters: Clusters
    storage_bytes: np.ndarray
    wan_bytes_per_s: np.ndarray
    fault_group: np.ndarray
    egress_bytes_per_s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    ingress_bytes_per_s: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("egress_bytes_per_s", "ingress_bytes_per_s"):
            object.__setattr__(self, name, given_or_inf(getattr(self, name), len(self)))
        _check(self)

    def __len__(self) -> int:
        return len(self.regions)

    @classmethod
    def of(cls, topology: Topology, gpu_types: Sequence[str] = ()) -> RegionHardware:
        """The regions of a topology; InputError: it has none. `gpu_types`: names that get the first codes."""
        if topology.region_network is None:
            raise InputError(f"topology {topology.name!r} has no regions with storage; expected such as mast:regions=4")
        kinds = topology.cluster_gpu_type
        known = [name for name in dict.fromkeys((*gpu_types, *kinds)) if name != CPU_TYPE]
        code = {name: number for number, name in enumerate(known)}
        first = topology.rack_first_machine[topology.cluster_first_rack]
        machines = np.diff([*first.tolist(), topology.num_machines])
        is_cpu = np.array([kind == CPU_TYPE for kind in kinds])
        clusters = Clusters(
            names=topology.cluster_names,
            region=topology.cluster_region,
            gpu_type=np.array([code.get(kind, NO_GPU) for kind in kinds], np.int64),
            gpu_machines=np.where(is_cpu, 0, machines),
            gpus_per_machine=np.where(is_cpu, 0, topology.machine_gpus[first]),
            cpu_machines=np.where(is_cpu, machines, 0),
            machines_per_rack=topology.rack_machines[topology.cluster_first_rack],
        )
        region_network = topology.region_network
        return cls(
            name=topology.name,
            regions=topology.region_names,
            gpu_types=tuple(known),
            clusters=clusters,
            storage_bytes=region_network.storage_bytes,
            wan_bytes_per_s=region_network.wan_bytes_per_s,
            fault_group=region_network.fault_group,
            egress_bytes_per_s=region_network.egress_bytes_per_s,
            ingress_bytes_per_s=region_network.ingress_bytes_per_s,
        )

    def topology(self) -> Topology:
        """The same with `region_network`; a mixed cluster becomes NAME and NAME-cpu; InputError: it is no topology."""
        halves = [half for row in np.argsort(self.clusters.region, kind="stable") for half in self._halves(int(row))]
        regions = np.array([half.region for half in halves], np.int64)
        names = tuple(half.name for half in halves)
        count = np.bincount(regions, minlength=len(self))
        expect(count > 0, f"machines of world {self.name!r}, region", self.regions, count, "one at least")
        for region, name in enumerate(self.regions):
            own = [half.name for half in halves if half.region == region]
            expect_unique(own, f"clusters of region {name!r}")
        racks = [half.racks() for half in halves]
        machines = np.array([half.machines for half in halves], np.int64)
        units = np.repeat(np.array([half.units for half in halves], np.int64), machines)
        check_gpu_count(int(units.sum()), f"world {self.name!r}")
        return Topology.from_counts(
            self.name,
            slot_gpus=units,
            machine_slots=np.ones(len(units), np.int64),
            rack_machines=np.concatenate(racks),
            cluster_racks=[len(rack) for rack in racks],
            region_clusters=count,
            cluster_gpu_type=[half.kind for half in halves],
            region_names=self.regions,
            cluster_names=names,
            region_network=self.region_network,
        )

    @property
    def region_network(self) -> RegionNetwork:
        """What is beside the machines."""
        ends = self.egress_bytes_per_s, self.ingress_bytes_per_s
        return RegionNetwork(self.storage_bytes, self.wan_bytes_per_s, self.fault_group, *ends)

    def _halves(self, row: int) -> list[_Half]:
        clusters = self.clusters
        name, region, per_rack = clusters.names[row], int(clusters.region[row]), int(clusters.machines_per_rack[row])
        halves = []
        if clusters.gpus[row]:
            kind, units = self.gpu_types[clusters.gpu_type[row]], int(clusters.gpus_per_machine[row])
            halves.append(_Half(name, region, kind, int(clusters.gpu_machines[row]), units, per_rack))
        if clusters.cpu_machines[row]:
            own = f"{name}-cpu" if halves else name
            halves.append(_Half(own, region, CPU_TYPE, int(clusters.cpu_machines[row]), 1, per_rack))
        return halves

    @cached_property
    def gpus(self) -> np.ndarray:
        """GPUs by region and type, int64 (regions, types)."""
        supply = np.zeros((len(self.regions), len(self.gpu_types)), np.int64)
        has = self.clusters.gpu_type != NO_GPU
        np.add.at(supply, (self.clusters.region[has], self.clusters.gpu_type[has]), self.clusters.gpus[has])
        return supply

    @cached_property
    def cpu_machines(self) -> np.ndarray:
        """CPU machines by region, int64 (regions,)."""
        return np.bincount(self.clusters.region, self.clusters.cpu_machines, len(self.regions)).astype(np.int64)


@dataclass(frozen=True)
class _Half:
    """Machines of one kind of a cluster."""

    name: str
    region: int
    kind: str
    machines: int
    units: int
    per_rack: int

    def racks(self) -> np.ndarray:
        whole, rest = divmod(self.machines, self.per_rack)
        return np.array([self.per_rack] * whole + [rest] * (rest > 0), np.int64)


class Names(Protocol):
    """Names by row: a tuple of them, or what makes one up."""

    def __getitem__(self, row: int, /) -> str: ...


def expect(ok: np.ndarray | bool, what: str, names: Names, values: np.ndarray, expected: str) -> None:
    """InputError that names the first row where `ok` is false, its value and what was expected."""
    wrong = np.flatnonzero(~np.atleast_1d(np.asarray(ok)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(f"{what} {names[row]!r}: {np.asarray(values)[row]} is out of range, expected {expected}")


def expect_unique(names: Sequence[str], what: str) -> None:
    """InputError if a name is used twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what}: the name {name!r} is used more than once")
        seen.add(name)


def _check(world: RegionHardware) -> None:
    count, clusters = len(world.regions), world.clusters
    if not 1 <= count <= MOST_REGIONS:
        raise InputError(f"world {world.name!r} has {count} regions, expected 1 to {MOST_REGIONS}")
    expect_unique(world.regions, f"regions of world {world.name!r}")
    expect_unique(world.gpu_types, f"GPU types of world {world.name!r}")
    if CPU_TYPE in world.gpu_types:
        raise InputError(f"world {world.name!r} has a GPU type {CPU_TYPE!r}; expected another name, for GPUs only")
    if world.storage_bytes.shape != (count,) or world.wan_bytes_per_s.shape != (count, count):
        raise InputError(
            f"world {world.name!r}: storage {world.storage_bytes.shape} and links {world.wan_bytes_per_s.shape} do not "
            f"fit {count} regions, expected ({count},) and ({count}, {count})"
        )
    expect(world.storage_bytes >= 0, "storage of region", world.regions, world.storage_bytes, "at least 0 bytes")
    slowest = np.where(np.eye(count, dtype=bool), np.inf, world.wan_bytes_per_s).min(axis=1)
    expect(slowest > 0, "slowest link of region", world.regions, slowest, "more than 0 bytes a second")
    world.region_network.check_caps(f"world {world.name!r}")
    names = clusters.names
    expect((clusters.region >= 0) & (clusters.region < count), "region of cluster", names, clusters.region, "a region")
    known = (clusters.gpu_type >= NO_GPU) & (clusters.gpu_type < len(world.gpu_types))
    expect(known, "GPU type of cluster", names, clusters.gpu_type, "a GPU type or -1")
    for count_of in ("gpu_machines", "gpus_per_machine", "cpu_machines"):
        values = getattr(clusters, count_of)
        expect(values >= 0, f"{count_of} of cluster", names, values, "at least 0")
    expect(
        clusters.machines_per_rack >= 1, "machines_per_rack of cluster", names, clusters.machines_per_rack, "1 or more"
    )
    typeless = (clusters.gpus > 0) & (clusters.gpu_type == NO_GPU)
    expect(~typeless, "GPU type of cluster", names, clusters.gpu_type, "the type of its GPUs")
