"""A topology without some of its clusters: the GPUs alone, for GPU jobs, or those of some types."""

from __future__ import annotations

import numpy as np

from ..base.errors import InputError
from .region_network import CPU_TYPE
from .topology import Topology


def gpus_of(topology: Topology) -> Topology:
    """A topology without its CPU machines and `region_network`, racks to GPUs renumbered; itself where it has none.

    Clusters and regions keep their names. InputError: nothing is left.
    """
    if CPU_TYPE not in topology.cluster_gpu_type:
        return topology
    return only(topology, frozenset(topology.cluster_gpu_type) - {CPU_TYPE})


def only(topology: Topology, kinds: frozenset[str]) -> Topology:
    """The clusters of a topology whose units are of certain types; itself where all are; InputError: as `gpus_of`."""
    if kinds.issuperset(topology.cluster_gpu_type):
        return topology
    if kinds not in topology.parts:
        topology.parts[kinds] = _only(topology, kinds)
    return topology.parts[kinds]


def _only(topology: Topology, kinds: frozenset[str]) -> Topology:
    cluster = np.array([kind in kinds for kind in topology.cluster_gpu_type])
    if not cluster.any():
        there = ", ".join(dict.fromkeys(topology.cluster_gpu_type))
        wanted = " or ".join(sorted(kinds)) or "GPUs"
        raise InputError(f"topology {topology.name!r} has no {wanted}, but {there} machines; GPU jobs need some")
    rack = cluster[topology.rack_cluster]
    machine = rack[topology.machine_rack]
    slot = machine[topology.slot_machine]
    clusters = np.bincount(topology.cluster_region, cluster, topology.num_regions).astype(np.int64)
    kept = np.flatnonzero(cluster).tolist()
    return Topology.from_counts(
        topology.name,
        slot_gpus=topology.slot_gpus[slot],
        machine_slots=np.bincount(topology.slot_machine)[machine],
        rack_machines=topology.rack_machines[rack],
        cluster_racks=np.bincount(topology.rack_cluster)[cluster],
        region_clusters=clusters[clusters > 0],
        cluster_gpu_type=[topology.cluster_gpu_type[place] for place in kept],
        region_names=[name for name, count in zip(topology.region_names, clusters.tolist(), strict=True) if count],
        cluster_names=[topology.cluster_names[place] for place in kept],
        tiers=topology.tiers,
        machine_order=topology.machine_order,
        written=topology.written,
    )
