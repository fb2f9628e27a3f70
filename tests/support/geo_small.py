"""Three small regions, five tables and ten workloads, by hand; and workloads drawn at random for the same regions.

East has 48 A100 in two clusters and 16 CPU machines, west 32 V100, 16 A100 and 8 CPU machines, south 16 A100 alone.
Links have 8 Gbps, 1e9 bytes a second; 100 Gbps is 12.5e9. A table of 0.1 TB takes 100 s on an idle link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from clustergym.simulator.base.codes import LEVELS
from clustergym.simulator.cluster.region_hardware import NO_GPU, Clusters, RegionHardware
from clustergym.simulator.cluster.region_network import CPU_TYPE
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.warehouse.demands import MOST_PARTS, NO_TYPE, Demands
from clustergym.simulator.warehouse.warehouse import NO_APP, Jobs, Tables
from clustergym.simulator.workloads import Workload

REGIONS = ("east", "west", "south")
TYPES = ("A100", "V100", CPU_TYPE)
A100, V100, CPU = range(3)
TABLES = ("clicks", "users", "ads", "logs", "videos")
TENANTS = ("ranking", "vision")
SIZE_BYTES = np.array([100, 200, 50, 400, 1000], np.int64) * 10**9
HOME = np.array([0, 0, 1, 1, 2], np.int64)


def small_world() -> RegionHardware:
    # region, type, GPU machines, GPUs each, CPU machines
    rows = [(0, A100, 4, 8, 0), (0, A100, 2, 8, 16), (1, V100, 4, 8, 8), (1, A100, 2, 8, 0), (2, A100, 2, 8, 0)]
    region, gpu, machines, gpus, cpus = np.array(rows, np.int64).T
    return RegionHardware(
        name="small",
        regions=REGIONS,
        gpu_types=TYPES[:-1],
        clusters=Clusters(("a", "b", "a", "b", "a"), region, gpu, machines, gpus, cpus, np.full(5, 2)),
        storage_bytes=np.array([2000, 1500, 1200], np.int64) * 10**9,
        wan_bytes_per_s=np.full((3, 3), 1e9),
        fault_group=np.arange(3),
    )


def small_topology(**caps: np.ndarray) -> Topology:
    return replace(small_world(), **caps).topology()


def small_tables() -> Tables:
    return Tables.at(SIZE_BYTES, HOME, len(REGIONS))


def demands(rows: list[tuple[list[tuple[Any, int]], list[int], int, int, float]], **changes: object) -> Demands:
    """`rows`: parts as (type, or types, units), tables, level, tenant, seconds of container set-up."""
    part_type = np.full((len(rows), MOST_PARTS), NO_TYPE, np.int64)
    part_units, accepts = np.zeros((2, len(rows), MOST_PARTS), np.int64)
    for row, (parts, *_rest) in enumerate(rows):
        for place, (kind, units) in enumerate(parts):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            part_type[row, place], part_units[row, place] = min(kinds), units
            accepts[row, place] = sum(1 << one for one in kinds)
    reads = [tables for _, tables, *_rest in rows]
    whole = {
        "regions": REGIONS,
        "gpu_types": TYPES,
        "level": np.array([level for *_rest, level, _, _ in rows], np.int64),
        "tenant": np.array([tenant for *_rest, tenant, _ in rows], np.int64),
        "recurring": np.arange(len(rows)) % 3 == 0,
        "part_type": part_type,
        "part_units": part_units,
        "accepts": accepts,
        "container_s": np.array([seconds for *_rest, seconds in rows], np.float64),
        "first": np.cumsum([0, *map(len, reads)]),
        "table": np.array([table for tables in reads for table in tables], np.int64),
        "tenant_names": TENANTS,
        "table_names": TABLES,
        "tables": small_tables(),
        "quota": np.array([[32, 16], [48, 24]], np.int64),
        "slo_s": np.array([300.0, 600.0, 1200.0, *[np.inf] * (LEVELS - 3)]),
        "checkpoint_s": 30.0,
        "history": small_history(),
        "app_cpu_hours": np.zeros((0, len(REGIONS))),
    }
    whole |= changes
    whole["tenant_names"] = TENANTS[: len(whole["quota"])]  # type: ignore[arg-type]
    return Demands(**whole)  # type: ignore[arg-type]


def small_history() -> Jobs:
    """Three recurring workloads of a day: one at each region's tables."""
    return Jobs(
        training=np.ones(3, bool),
        gpu_type=np.array([A100, V100, NO_GPU], np.int64),
        gpus=np.array([16, 8, 0], np.int64),
        gpu_hours=np.array([64.0, 16.0, 0.0]),
        cpu_hours=np.array([0.0, 4.0, 24.0]),
        level=np.array([0, 2, 6], np.int64),
        app=np.full(3, NO_APP, np.int64),
        team=np.array([0, 1, 1], np.int64),
        recurring=np.ones(3, bool),
        first=np.array([0, 2, 3, 4], np.int64),
        table=np.array([0, 1, 2, 4], np.int64),
    )


def small_workload() -> Workload:
    """Ten workloads, 60 s apart; the first of them is alone for its whole first minute."""
    rows = [
        ([(A100, 8)], [0], 6, 0, 10.0),
        ([(A100, 16), (CPU, 8)], [0, 1], 0, 0, 20.0),
        ([(V100, 8)], [2], 3, 1, 10.0),
        ([(A100, 16)], [4], 6, 1, 0.0),  # south: with its table
        ([(A100, 32)], [1], 3, 0, 10.0),  # fills a cluster of the east
        ([(V100, 16), (V100, 8), (CPU, 4)], [2, 3], 2, 1, 30.0),
        ([(CPU, 6)], [], 6, 1, 5.0),  # reads nothing: any region with CPU machines
        ([(V100, 8)], [0], 3, 0, 10.0),  # its table is where no V100 is: waits for a copy
        ([(A100, 16), (A100, 8)], [0], 1, 1, 15.0),
        ([(A100, 8)], [4, 1], 4, 0, 10.0),  # its tables have no home in common
    ]
    geo = demands(rows)
    count = len(rows)
    arrival_s, duration_s = 60.0 * np.arange(count), 600.0 + 100.0 * np.arange(count)
    return Workload.from_arrays("small", arrival_s, geo.units, duration_s, tenant=tenants(geo)).with_geo(geo)


def tenants(geo: Demands) -> list[str]:
    return [TENANTS[code] for code in geo.tenant]


def choosing_workload(seed: int, jobs: int = 40, share: float = 0.6, mean_s: float = 900.0) -> Workload:
    """`random_workload` of two models, `fast` and `slow`, where such a share accepts GPUs of both types."""
    whole, rng = random_workload(seed, jobs, mean_s=mean_s), np.random.default_rng([seed, 1])
    assert whole.geo is not None
    geo, chosen = whole.geo, rng.random(jobs) < share
    opens = chosen[:, None] & np.isin(geo.part_type, (A100, V100))
    part_type, accepts = np.where(opens, A100, geo.part_type), np.where(opens, 1 << A100 | 1 << V100, geo.accepts)
    rows = whole.arrival_s, whole.gpus, whole.duration_s
    model = np.where(rng.random(jobs) < 0.5, "fast", "slow").astype(object)
    own = Workload.from_arrays("choosing", *rows, model=model, tenant=tenants(geo))
    return own.with_geo(replace(geo, part_type=part_type, accepts=accepts))


def random_workload(seed: int, jobs: int = 40, span_s: float = 3600.0, mean_s: float = 900.0) -> Workload:
    """Workloads that the empty regions can hold, of up to three parts and up to two tables."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(jobs):
        gpu = A100 if rng.random() < 0.6 else V100
        parts = [(gpu, int(rng.choice([1, 2, 4, 8, 16])))]
        if rng.random() < 0.3:
            parts.append((gpu, int(rng.integers(1, 9))))
        if rng.random() < 0.5:
            parts.append((CPU, int(rng.integers(1, 7))))
        if rng.random() < 0.2:
            parts = [(CPU, int(rng.integers(1, 9)))]
        tables = rng.permutation(len(TABLES))[: rng.integers(0, 3)].tolist()
        rows.append((parts, tables, int(rng.integers(0, LEVELS)), int(rng.integers(0, 2)), float(rng.integers(0, 60))))
    geo = demands(rows)
    arrival_s = np.sort(rng.integers(0, int(span_s), jobs)).astype(np.float64)
    duration_s = np.ceil(rng.exponential(mean_s, jobs))
    return Workload.from_arrays("random", arrival_s, geo.units, duration_s, tenant=tenants(geo)).with_geo(geo)


def fresh_workload(seed: int) -> Workload:
    """The same, the four highest levels with fresh data."""
    workload = random_workload(seed)
    assert workload.geo is not None
    return workload.with_geo(replace(workload.geo, fresh=workload.geo.level < 4))
