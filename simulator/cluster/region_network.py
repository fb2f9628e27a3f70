"""The regions of a topology beside machines: storage, the links between them, fault groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.errors import InputError

CPU_TYPE = "CPU"  # the "GPU type" of a cluster of CPU machines; each of them is one unit
MOST_REGIONS = 64  # a table's copies are the bits of one word


def given_or_inf(caps: np.ndarray, regions: int) -> np.ndarray:
    """Caps of regions, float64 (regions,): as given, or inf where there are none."""
    return np.asarray(caps, np.float64) if len(caps) else np.full(regions, np.inf)


@dataclass(frozen=True, eq=False)
class RegionNetwork:
    """The regions of a topology, in its order. Arrays are read-only.

    Attributes:
        storage_bytes: int64 (regions,), >= 0.
        wan_bytes_per_s: float64 (regions, regions), from a region to another, > 0 off the diagonal, which is not read.
        fault_group: int64 (regions,): regions of one group may fail together, so a copy for disasters lies in another;
            the simulator lets each fail by itself.
        egress_bytes_per_s, ingress_bytes_per_s: float64 (regions,), > 0, caps of a region's links, out and in; inf:
            none.
    """

    storage_bytes: np.ndarray
    wan_bytes_per_s: np.ndarray
    fault_group: np.ndarray
    egress_bytes_per_s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    ingress_bytes_per_s: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("egress_bytes_per_s", "ingress_bytes_per_s"):
            object.__setattr__(self, name, given_or_inf(getattr(self, name), len(self)))
        for array in self._arrays():
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.storage_bytes)

    def check_caps(self, what: str) -> None:
        """InputError where a cap is not above 0, or there are not as many as regions; `what` is theirs."""
        for name in ("egress", "ingress"):
            caps = getattr(self, f"{name}_bytes_per_s")
            if caps.shape != (len(self),) or not (caps > 0.0).all():
                raise InputError(
                    f"{what}: {name} of {caps.tolist()} bytes a second; expected {len(self)} numbers above 0"
                )

    def _arrays(self) -> tuple[np.ndarray, ...]:
        caps = self.egress_bytes_per_s, self.ingress_bytes_per_s
        return self.storage_bytes, self.wan_bytes_per_s, self.fault_group, *caps

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegionNetwork):
            return NotImplemented
        return all(np.array_equal(own, its) for own, its in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(array.tobytes() for array in self._arrays()))


def check_machines(topology: Any) -> None:
    """InputError where a machine of a `Topology` that is of type "CPU" has several units."""
    if CPU_TYPE not in topology.cluster_gpu_type:
        return
    is_cpu = np.array([kind == CPU_TYPE for kind in topology.cluster_gpu_type])
    several = is_cpu[topology.rack_cluster[topology.machine_rack]] & (topology.machine_gpus != 1)
    if several.any():
        machine = int(several.argmax())
        cluster = topology.cluster_names[topology.rack_cluster[topology.machine_rack[machine]]]
        raise InputError(
            f"topology {topology.name!r}: cluster {cluster!r} has CPU machines of {topology.machine_gpus[machine]} "
            "units; expected 1"
        )


def check_region_network(topology: Any, region_network: RegionNetwork | None) -> None:
    """Check that `region_network`, unless None, fits the topology.

    InputError: another number of regions or more than 64, or a cluster without a type or of unequal machines.
    """
    if region_network is None:
        return
    what, regions = f"topology {topology.name!r}", topology.num_regions
    shapes = region_network.storage_bytes.shape, region_network.wan_bytes_per_s.shape, region_network.fault_group.shape
    if shapes != ((regions,), (regions, regions), (regions,)) or regions > MOST_REGIONS:
        raise InputError(
            f"{what}: regions of shapes {', '.join(map(str, shapes))} for {regions} regions; expected ({regions},), "
            f"({regions}, {regions}) and ({regions},), at most {MOST_REGIONS} regions"
        )
    region_network.check_caps(what)
    first = topology.rack_first_machine[topology.cluster_first_rack]
    units = topology.machine_gpus[first]
    uneven = topology.machine_gpus != np.repeat(units, np.diff([*first, topology.num_machines]))
    for cluster, gpu_type in enumerate(topology.cluster_gpu_type):
        name = f"{what}: cluster {topology.cluster_names[cluster]!r}"
        if not gpu_type:
            raise InputError(f"{name} has no GPU type; expected one, or {CPU_TYPE}")
    if uneven.any():
        cluster = int(topology.rack_cluster[topology.machine_rack[int(uneven.argmax())]])
        raise InputError(
            f"{what}: cluster {topology.cluster_names[cluster]!r} has unequal machines; expected equal ones, "
            "as the topology has regions with storage"
        )
