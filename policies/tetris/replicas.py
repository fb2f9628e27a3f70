"""Replicas outside the home (paper mast, Sec. 3.5): for disasters, for jobs that could run nowhere, of hot tables.

The quota of a day goes to disasters first, the tables of high-priority jobs before all others: by the GPU-hours of such
readers, then by size. Where the paper is silent: its policy for disasters weighs correlated failures and "the
availability of hardware"; here the copy goes outside the home's fault group, or, where that cannot be, to another
region of it: to one where a copy lies, else where the GPUs that most of the table's demand is for are least asked for,
or, for a table without such demand, where most storage is free. It holds the partitions that jobs read, as every
replica does. What a job asks is shared evenly by the tables that it reads. Jobs that run nowhere are served in the
order in which the version counts collocation: by falling GPU-hours with high priority first, or, where every job counts
alike, those with the least to read first; each gets the region with the highest supply of its GPUs (Sec. 3.5), wherever
copies lie already. Hot tables: a region's quota is split over GPU types by their supply there, and counts the copies
that are made for it, not what lies in the region for another reason; hotness is the number of jobs of that type that
read the table. Copies that lie already cost no traffic.
"""

from __future__ import annotations

import numpy as np

from ...simulator.cluster.region_hardware import NO_GPU
from ...simulator.table_placement import replicas as kernels
from ...simulator.table_placement.placement import DAY_S, KIB, kib, seconds
from ...simulator.warehouse.warehouse import Jobs, Warehouse
from .versions import Version


def replicate(warehouse: Warehouse, home: np.ndarray, version: Version, quota_bytes: float) -> tuple[np.ndarray, float]:
    """Where each table should lie, bool (tables, regions), and the bytes of new replicas that this takes.

    Args:
        warehouse: with the copies that lie now; only jobs that recur are known.
        home: int64 (tables,), decided already.
        version: how replicas are chosen.
        quota_bytes: of new replicas.
    """
    world, tables = warehouse.world, warehouse.tables
    jobs = warehouse.jobs.only(warehouse.jobs.recurring)
    rows = np.arange(len(tables))
    copies = np.zeros_like(tables.copies)
    copies[rows, home] = True
    whole, size = kib(tables.size_bytes), kib(tables.replica_bytes)
    room = world.storage_bytes // KIB - np.bincount(home, whole, len(world)).astype(np.int64)
    purse = np.array([int(np.clip(quota_bytes / KIB, 0, 2.0**62))], np.int64)
    first = int(purse[0])
    demand = _table_demand(jobs, len(tables), len(world.gpu_types))
    supply = world.gpus * DAY_S
    asked = np.zeros_like(supply)
    np.add.at(asked, home, demand)
    gpu = np.where(demand.any(axis=1), demand.argmax(axis=1), NO_GPU)
    kernels.refuges(
        np.lexsort((-whole, -urgency(jobs, len(tables)))),
        home,
        size,
        copies,
        tables.copies,
        room,
        purse,
        world.fault_group,
        supply - asked,
        gpu,
        demand.max(axis=1, initial=0),
    )
    order = _by_need(jobs, size, version)
    kernels.gather(order, jobs.first, jobs.table, jobs.gpu_type, supply, copies, tables.copies, size, room, purse)
    _spread_hot(warehouse, jobs, version, copies, size, room, purse)
    return copies, KIB * float(first - int(purse[0]))


def urgency(jobs: Jobs, tables: int) -> np.ndarray:
    """GPU-hours a day of the high-priority jobs that read each table, float64 (tables,): most come first (Sec. 3.5)."""
    return np.bincount(jobs.table, (jobs.gpu_hours * jobs.high)[jobs.owner], tables)


def _table_demand(jobs: Jobs, tables: int, types: int) -> np.ndarray:
    """GPU-seconds a day by type, int64 (tables, types): of each job the same part at every table that it reads."""
    demand = np.zeros((tables, types), np.int64)
    with_gpu = jobs.gpu_type[jobs.owner] != NO_GPU
    owner = jobs.owner[with_gpu]
    part = seconds(jobs.gpu_hours) // jobs.reads
    np.add.at(demand, (jobs.table[with_gpu], jobs.gpu_type[owner]), part[owner])
    return demand


def _by_need(jobs: Jobs, size: np.ndarray, version: Version) -> np.ndarray:
    if version.objective.at_home == "gpu-hours":
        order = np.lexsort((-jobs.gpu_hours, ~jobs.high))
    else:
        total = np.zeros(len(jobs), np.int64)
        np.add.at(total, jobs.owner, size[jobs.table])
        order = np.argsort(total, kind="stable")
    return order[jobs.training[order]]


def _spread_hot(
    warehouse: Warehouse,
    jobs: Jobs,
    version: Version,
    copies: np.ndarray,
    size: np.ndarray,
    room: np.ndarray,
    purse: np.ndarray,
) -> None:
    """Modify copies, room and purse in place: the hottest tables of each GPU type go to every region that has it."""
    world = warehouse.world
    share = world.gpus / np.maximum(world.gpus.sum(axis=1, keepdims=True), 1)
    quota = (version.hot_share * share * (world.storage_bytes[:, None] // KIB)).astype(np.int64)
    use_type = jobs.gpu_type[jobs.owner]
    for gpu in range(len(world.gpu_types)):
        heat = np.bincount(jobs.table[use_type == gpu], minlength=len(size))
        order = np.argsort(-heat, kind="stable")[: int((heat > 0).sum())]
        for region in np.flatnonzero(quota[:, gpu]).tolist():
            kernels.spread(order, region, int(quota[region, gpu]), copies, warehouse.tables.copies, size, room, purse)
