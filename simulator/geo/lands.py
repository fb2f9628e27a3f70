"""What a topology knows of its regions beside machines: storage, the links between them, who fails with whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from ..topology import Topology

CPU_TYPE = "CPU"  # the "GPU type" of a cluster of CPU machines; each of them is one unit
MOST_REGIONS = 64  # a table's copies are the bits of one word


@dataclass(frozen=True, eq=False)
class Lands:
    """The regions of a topology, in its order. Arrays are read-only.

    Attributes:
        storage_bytes: int64 (regions,), >= 0.
        wan_bytes_per_s: float64 (regions, regions), from a region to another, > 0 off the diagonal; the diagonal is
            not looked at.
        fault_group: int64 (regions,): regions of one group may fail together, so a copy for disasters lies in another;
            the simulator lets each fail by itself.
    """

    storage_bytes: np.ndarray
    wan_bytes_per_s: np.ndarray
    fault_group: np.ndarray

    def __post_init__(self) -> None:
        for array in self._arrays():
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.storage_bytes)

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.storage_bytes, self.wan_bytes_per_s, self.fault_group

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lands):
            return NotImplemented
        return all(np.array_equal(own, its) for own, its in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(array.tobytes() for array in self._arrays()))

    def check(self, topology: Topology) -> None:
        """Whether regions so described can be those of `topology`.

        Raises:
            InputError: another number of regions or more than 64, a cluster without a type or of unequal machines,
                or one of CPU machines with several units each.
        """
        what, regions = f"topology {topology.name!r}", topology.num_regions
        shapes = self.storage_bytes.shape, self.wan_bytes_per_s.shape, self.fault_group.shape
        if shapes != ((regions,), (regions, regions), (regions,)) or regions > MOST_REGIONS:
            raise InputError(
                f"{what}: lands of shapes {', '.join(map(str, shapes))} for {regions} regions; expected ({regions},), "
                f"({regions}, {regions}) and ({regions},), at most {MOST_REGIONS} regions"
            )
        first = topology.rack_first_machine[topology.cluster_first_rack]
        units = topology.machine_gpus[first]
        uneven = topology.machine_gpus != np.repeat(units, np.diff([*first, topology.num_machines]))
        for cluster, gpu_type in enumerate(topology.cluster_gpu_type):
            name = f"{what}: cluster {topology.cluster_names[cluster]!r}"
            if not gpu_type:
                raise InputError(f"{name} has no GPU type; expected one, or {CPU_TYPE}")
            if gpu_type == CPU_TYPE and units[cluster] != 1:
                raise InputError(f"{name} has CPU machines of {units[cluster]} units; expected 1")
        if uneven.any():
            cluster = int(topology.rack_cluster[topology.machine_rack[int(uneven.argmax())]])
            raise InputError(
                f"{what}: cluster {topology.cluster_names[cluster]!r} has unequal machines; expected equal ones, "
                "as the topology has regions with storage"
            )
