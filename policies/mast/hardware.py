"""Clusters of regions with their racks and machines, for the regional schedulers of MAST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.warehouse.demands import Demands


@dataclass(frozen=True)
class Hardware:
    """Clusters with their machines, in natural order."""

    region: np.ndarray  # int64 (clusters,)
    kind: np.ndarray  # int64 (clusters,), code of the type
    rack_cluster: np.ndarray  # int64 (racks,), ascending
    machine_rack: np.ndarray  # int64 (machines,), ascending
    machine_units: np.ndarray  # int64 (machines,), >= 1
    regions: int
    types: int

    @classmethod
    def of(cls, topology: Topology, demands: Demands) -> Hardware:
        """That of a topology; a type without requests has the last code. Raises InputError if they do not fit."""
        kind, types = demands.cluster_type(topology), len(demands.gpu_types)
        return cls(
            region=topology.cluster_region,
            kind=np.where(kind < 0, types, kind),
            rack_cluster=topology.rack_cluster,
            machine_rack=topology.machine_rack,
            machine_units=topology.machine_gpus,
            regions=topology.num_regions,
            types=types + 1,
        )

    @classmethod
    def from_clusters(
        cls, region: Sequence[int], kind: Sequence[int], machines: Sequence[np.ndarray], racks: Sequence[np.ndarray]
    ) -> Hardware:
        """From each cluster's machines' units, and their racks, ascending.

        Raises:
            InputError: lists that do not fit, racks out of order, machines without units.
        """
        counts = [len(one) for one in machines]
        if not counts or not len(region) == len(kind) == len(counts) or [len(one) for one in racks] != counts:
            raise InputError(f"region of {len(kind)} clusters: expected as many lists of machines and racks, 1 or more")
        if any((np.diff(one) < 0).any() for one in racks) or any((one < 1).any() for one in machines):
            raise InputError("region: expected racks in ascending order and machines with one unit or more")
        names = [np.unique(one, return_inverse=True) for one in racks]
        offsets = np.concatenate([[0], np.cumsum([len(found) for found, _ in names])])
        return cls(
            region=np.array(region, np.int64),
            kind=np.array(kind, np.int64),
            rack_cluster=np.repeat(np.arange(len(counts)), np.diff(offsets)),
            machine_rack=np.concatenate([row + first for (_, row), first in zip(names, offsets, strict=False)]),
            machine_units=np.concatenate(machines).astype(np.int64),
            regions=max(region) + 1,
            types=max(kind) + 1,
        )
