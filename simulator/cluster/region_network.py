"""What a topology knows of its regions beside machines: storage, the links between them, who fails with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
