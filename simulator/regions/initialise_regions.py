"""Writing regions, the demands of a workload and its tables into a record. Plain numpy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from ..record.region_fields import MOST_SPEEDS, MOST_TYPES, USAGE_BIN_S
from ..warehouse.demands import Demands
from .table_copies import OFF

if TYPE_CHECKING:
    from ..cluster.topology import Topology
    from ..costs.tariff import Tariff
    from ..jobs.workload import Workload

NONE = -1


def write_regions(
    s: np.void,
    topology: Topology,
    workload: Workload,
    every_s: float,
    published: bool = False,
    urgent: bool = False,
    lag_s: float = math.inf,
    tariff: Tariff | None = None,
) -> None:
    """Write the regions and the jobs' demands into a record with room, after the cluster and the jobs.

    Args:
        topology: with a region network. workload: with demands that fit.
        every_s: seconds from one look of the slow path to the next, the first at the first arrival; inf, or where
            there are no tables: none.
        published: copies take drawn times. urgent: those on demand and for high priority go first.
        lag_s: after so many seconds replicas have what a workload with fresh data needs; inf: never.
        tariff: None: no costs.

    Raises:
        InputError: they do not fit each other, a job fits no region, or a region holds less than lies there.
    """
    demands = workload.geo
    assert demands is not None
    _write_places(s, topology, demands)
    _write_jobs(s, topology, workload, demands)
    _write_tables(s, topology, demands)
    _write_links(s, topology)
    s["copy_published"], s["copy_urgent"] = published, urgent
    if tariff is not None:
        tariff.write_into(s, topology, demands.gpu_types)
    every_s = every_s if len(demands.tables) else math.inf
    s["tables_every_s"], s["tables_seen"] = every_s, -1
    s["usage_bin_s"] = USAGE_BIN_S
    if every_s < math.inf:
        _write_event(s, int(s["tables_event"]), float(s["start_s"]))
    fresh = np.flatnonzero(demands.fresh)
    s["home_until_s"][: len(demands)] = np.where(demands.fresh, workload.arrival_s + lag_s, -np.inf)
    if len(fresh) and lag_s < math.inf:
        s["lag_next"] = fresh[0]
        _write_event(s, int(s["tables_event"]) + 1, float(s["home_until_s"][fresh[0]]))


def _write_event(s: np.void, item: int, time_s: float) -> None:
    place = int(s["event_count"])
    s["event_key"][place], s["event_item"][place] = time_s, item
    s["event_position"][item], s["event_count"] = place, place + 1


def write_speeds(s: np.void, demands: Demands, speed_row: np.ndarray, type_speed: np.ndarray) -> None:
    """Write speeds of jobs on unit types, after the jobs: isolated times become those on the fastest types.

    `speed_row`: int64 (jobs,), rows of `type_speed`, float64 (rows, types), > 0, over a duration's speed. InputError:
    too many rows or types.
    """
    rows, types = len(type_speed), _types_of(demands)
    if rows > MOST_SPEEDS:
        raise InputError(f"speeds of {rows} models differ; one simulator tells at most {MOST_SPEEDS} apart")
    n = len(demands)
    fastest = demands.fastest(type_speed[speed_row])
    s["speed_row"][:n] = speed_row
    s["type_speed"][:rows, :types] = type_speed
    s["own_iteration_s"][:n] = s["compute_iteration_s"][:n]
    s["compute_iteration_s"][:n] /= fastest
    s["base_iteration_s"][:n] /= fastest


def parts_of(demands: Demands, job: int) -> list[tuple[str, int]]:
    """The unit type and the units of each part of a job; of several types that it accepts `A100|H100`."""
    return list(zip(demands.type_names(job), demands.part_units[job].tolist(), strict=False))


def _types_of(demands: Demands) -> int:
    types = len(demands.gpu_types)
    if types >= MOST_TYPES:
        raise InputError(f"{types} types of units: one simulator tells at most {MOST_TYPES - 1} apart")
    return types


def _write_places(s: np.void, topology: Topology, demands: Demands) -> None:
    regions, clusters, types = topology.num_regions, topology.num_clusters, _types_of(demands) + 1
    kind = demands.cluster_type(topology)
    kind = np.where(kind == NONE, types - 1, kind)  # no job asks it
    machine_cluster = topology.rack_cluster[topology.machine_rack]
    units = np.bincount(machine_cluster, topology.machine_gpus, clusters).astype(np.int64)
    machine_region = topology.cluster_region[machine_cluster]
    machines = np.bincount(machine_region, minlength=regions)
    s["n_regions"], s["n_clusters"], s["n_types"] = regions, clusters, types
    s["cpu_type"] = types - 2
    s["up_regions"] = (1 << regions) - 1
    s["region_machines"][:regions] = machines
    s["region_first_machine"][:regions] = np.cumsum(machines) - machines
    s["cluster_region"][:clusters] = topology.cluster_region
    s["cluster_type"][:clusters] = kind
    s["cluster_gpus"][:clusters] = s["cluster_free"][:clusters] = units
    s["machine_cluster"][: topology.num_machines] = machine_cluster
    s["type_gpus"][:types] = np.bincount(kind, units, types)


def _write_jobs(s: np.void, topology: Topology, workload: Workload, demands: Demands) -> None:
    n, uses = len(demands), len(demands.table)
    hosts = demands.hosts(topology)
    n_unplaceable = ~hosts.any(axis=1)
    if n_unplaceable.any():
        job = int(n_unplaceable.argmax())
        parts = ", ".join(f"{units} {name}" for name, units in parts_of(demands, job))
        raise InputError(
            f"workload {workload.name!r}: job {workload.job_id[job]} asks {parts}; no region of topology "
            f"{topology.name!r} has clusters that hold them"
        )
    s["save_s"], s["slo_s"] = demands.checkpoint_s, demands.slo_s
    s["job_level"][:n], s["job_tenant"][:n] = demands.level, demands.tenant
    s["job_hosts"][:n] = hosts @ (1 << np.arange(hosts.shape[1]))
    s["job_region"][:n] = s["last_region"][:n] = NONE
    s["gpu_units"][:n] = demands.asked[:, 0]
    s["container_s"][:n] = demands.container_s
    s["part_type"][:n], s["part_units"][:n] = demands.part_type, demands.part_units
    s["part_accepts"][:n] = demands.accepts
    s["first_read"][:n], s["n_reads"][:n] = demands.first[:-1], np.diff(demands.first)
    s["read_table"][:uses], s["reader_job"][:uses] = demands.table, demands.owner
    s["reader_prev"][:uses] = OFF


def _write_tables(s: np.void, topology: Topology, demands: Demands) -> None:
    tables = demands.tables
    n, regions = len(tables), topology.num_regions
    assert topology.region_network is not None
    size, replica = tables.size_bytes, tables.replica_bytes
    at_home = np.arange(regions) == tables.home[:, None]
    bits = 1 << np.arange(regions)
    s["n_tables"] = n
    s["table_size"][:n], s["replica_size"][:n] = size, replica
    s["table_home"][:n] = tables.home
    s["table_target"][:n] = s["table_reader"][:n] = s["table_transfer"][:n] = NONE
    s["table_copies"][:n] = tables.copies @ bits
    s["table_whole"][:n] = tables.whole_copies @ bits
    s["table_high"][demands.history.table[demands.history.high[demands.history.owner]]] = 1
    s["table_wanted"][:n] = (tables.copies & ~at_home) @ bits
    s["table_complete"][:n] = 0 if tables.whole is None else (tables.whole & tables.copies & ~at_home) @ bits
    held = tables.held_bytes.sum(axis=0)
    room = topology.region_network.storage_bytes
    if (held > room).any():
        region = int((held > room).argmax())
        raise InputError(
            f"region {topology.region_names[region]!r} of topology {topology.name!r}: it stores {room[region]:,} "
            f"bytes, but the workload's tables have {held[region]:,} there at first"
        )
    s["storage_bytes"][:regions], s["stored_bytes"][:regions] = room, held


def _write_links(s: np.void, topology: Topology) -> None:
    assert topology.region_network is not None
    regions = topology.num_regions
    s["wan_rate"][:regions, :regions] = topology.region_network.wan_bytes_per_s
    ends = topology.region_network.egress_bytes_per_s, topology.region_network.ingress_bytes_per_s
    s["egress_rate"][:regions], s["ingress_rate"][:regions] = ends
    s["copies_coupled"] = np.isfinite(ends).any()
    s["wan_first"][:] = NONE
    s["wan_since_s"][:] = s["start_s"]
    pool = len(s["transfer_next"])
    s["transfer_next"][:] = np.arange(1, pool + 1)
    s["transfer_next"][-1] = NONE
    s["free_transfer"] = 0
