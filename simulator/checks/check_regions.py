"""Checking the units that a decision gives to a job in a simulation of regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InvalidDecision
from ..network.simulated import Simulated
from ..regions.region_calls import may_run_in

if TYPE_CHECKING:
    from ..cluster.topology import Topology
    from ..warehouse.demands import Demands


INSTEAD = "a workload for regions, as mast-like, or a topology of one region"  # of gangs that may not span regions


def check_parts(simulator: Simulated, what: str, job: int, units: np.ndarray) -> None:
    """Check the units of a job's parts, in order. Each part is in one cluster, all are in one region with its tables.

    Raises:
        InvalidDecision: the units do not satisfy this, a type is not accepted, or the region is down.
    """
    s, topology = simulator.state, simulator.topology
    clusters = s.machine_cluster[s.gpu_machine[units]]
    last = 0
    for part, size in enumerate(s.part_units[job].tolist()):
        if size == 0:
            break
        cluster = int(clusters[last])
        name = _label(topology, cluster)
        if not s.part_accepts[job, part] >> s.cluster_type[cluster] & 1:
            asked = " or ".join(_demands(simulator).type_names(job)[part].split("|"))
            raise InvalidDecision(
                f"{what}: a part asks {size} {asked}, cluster {name} has {topology.cluster_gpu_type[cluster]}"
            )
        if (clusters[last : last + size] != cluster).any():
            others = clusters[last : last + size]
            other = _label(topology, int(others[others != cluster][0]))
            raise InvalidDecision(f"{what}: a part of {size} units lies in clusters {name} and {other}; expected one")
        last += size
    region = expect_one_region(simulator, f"{what}: its parts lie", units)
    if not simulator.raw.call(may_run_in, job, region):
        raise InvalidDecision(f"{what}: {why_not(simulator, job, region)}")


def expect_one_region(simulator: Simulated, what: str, units: np.ndarray, expected: str = "one") -> int:
    """The region of units that exist; InvalidDecision where `what` lies in several: `expected` ends the sentence."""
    topology = simulator.topology
    regions = topology.cluster_region[topology.gpu_cluster[units]]
    region = int(regions[0])
    if (regions != region).any():
        other = topology.region_names[int(regions[regions != region][0])]
        raise InvalidDecision(f"{what} in regions {topology.region_names[region]} and {other}; expected {expected}")
    return region


def why_not(simulator: Simulated, job: int, region: int) -> str:
    """Why a job may not start in a region that has room for it."""
    s = simulator.state
    name = simulator.topology.region_names[region]
    if not s.up_regions >> region & 1:
        return f"region {name} is down"
    for table in simulator.view.tables_of(job).tolist():
        table_name = _demands(simulator).table_names[table]
        if not s.table_copies[table] >> region & 1:
            return f"region {name} has no copy of table {table_name}"
        if s.now_s < s.home_until_s[job] and s.table_home[table] != region:
            return f"it needs fresh data, and region {name} is not the home of table {table_name}"
        if s.table_doomed[table] >> region & 1:
            return f"the copy of table {table_name} in region {name} is about to be deleted"
    return f"its parts do not fit region {name}"


def _demands(simulator: Simulated) -> Demands:
    assert simulator.workload.geo is not None
    return simulator.workload.geo


def _label(topology: Topology, cluster: int) -> str:
    return f"{topology.region_names[topology.cluster_region[cluster]]}.{topology.cluster_names[cluster]}"
