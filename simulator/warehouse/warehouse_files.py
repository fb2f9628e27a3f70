"""Regions and their data in YAML or JSON: read safely, checked, and built into a Warehouse.

Regions and links (docs/concepts/topologies.md) are a topology too; its clusters of both kinds of machines become two. A
warehouse goes on with (optional are those with a default here; names must be given and unique):

    apps:                            # applications; CPU hours a day by region, 0 where none are given
      - {name: spark, cpu_hours: {east: 1000}}
    tables:
      - {name: clicks, size_tb: 1.5, home: east, replicas: [west], partitions: 1, read_share: 1}
    jobs:
      - {name: rank, tables: [clicks], kind: training, gpu_type: A100, gpus: 8, gpu_hours: 100, cpu_hours: 0,
         priority: 6, app: spark, team: 0, recurring: true}   # kind: training, analytics; priority 0 is the highest
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..cluster.region_hardware import NO_GPU, Clusters, RegionHardware, expect_unique
from ..cluster.topology import Topology, builder
from ..files.yaml_files import load_mapping, validated
from .warehouse import NO_APP, Jobs, Tables, Warehouse

TERABYTE = 10**12
GIGABIT = 1e9 / 8.0  # bytes


def load_warehouse(path: str | os.PathLike[str]) -> Warehouse:
    """The Warehouse that a YAML or JSON file describes; an InputError names the file and the place in it."""
    mapping = load_mapping(path, "regions")
    return warehouse_from_mapping(mapping, f"regions {os.fspath(path)!r}", Path(path).stem)


def warehouse_from_mapping(mapping: Mapping[str, Any], source: str, name: str = "custom") -> Warehouse:
    """The Warehouse of a mapping in this module's schema; `source`: for errors; `name`: the default.

    InputError: one sentence with the source, the place in it, the value and what was expected.
    """
    from .warehouse_schema import Spec  # pydantic is imported when it is needed

    spec = validated(Spec, mapping, source)
    for what in ("regions", "apps", "tables", "jobs"):
        expect_unique([item.name for item in getattr(spec, what)], f"{source}: {what}")
    world = _world(spec, source, name)
    tables = _tables(spec, world, source)
    apps = np.zeros((len(spec.apps), len(world)))
    for row, app in enumerate(spec.apps):
        for region, hours in app.cpu_hours.items():
            apps[row, _code(region, world.regions, f"region of {source}: app {app.name!r}")] = hours
    try:
        return Warehouse(world, tables, _jobs(spec, world, source), apps)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


@builder("regions")
def topology_of_regions(mapping: Mapping[str, Any], source: str, name: str = "custom") -> Topology:
    """The topology of `hardware_from_mapping`; InputError: see there."""
    world = hardware_from_mapping(mapping, source, name)
    try:
        return world.topology()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def hardware_from_mapping(mapping: Mapping[str, Any], source: str, name: str = "custom") -> RegionHardware:
    """The regions of a mapping in this module's schema, with or without apps, tables and jobs; else as above."""
    from .warehouse_schema import RegionHardwareSpec

    if "tables" in mapping:
        return warehouse_from_mapping(mapping, source, name).world
    spec = validated(RegionHardwareSpec, mapping, source)
    expect_unique([region.name for region in spec.regions], f"{source}: regions")
    return _world(spec, source, name)


def _code(name: str, names: Sequence[str], what: str) -> int:
    return list(names).index(choose(name, names, what))


def _world(spec: Any, source: str, name: str) -> RegionHardware:
    regions = tuple(region.name for region in spec.regions)
    flat = [(place, cluster) for place, region in enumerate(spec.regions) for cluster in region.clusters]
    for region in spec.regions:
        expect_unique([cluster.name for cluster in region.clusters], f"{source}: clusters of region {region.name!r}")
    types = tuple(dict.fromkeys(cluster.gpu_type for _, cluster in flat if cluster.gpu_type is not None))
    code = {gpu: number for number, gpu in enumerate(types)}
    groups: dict[str, int] = {}
    named = [region.fault_group or region.name for region in spec.regions]
    clusters = Clusters(
        names=tuple(cluster.name for _, cluster in flat),
        region=np.array([place for place, _ in flat], np.int64),
        gpu_type=np.array([code.get(cluster.gpu_type, NO_GPU) for _, cluster in flat], np.int64),
        **{
            field: np.array([getattr(cluster, field) for _, cluster in flat], np.int64)
            for field in ("gpu_machines", "gpus_per_machine", "cpu_machines", "machines_per_rack")
        },
    )
    wan = np.full((len(regions), len(regions)), spec.wan_gbps * GIGABIT)
    for link in spec.links:
        ends = [_code(end, regions, f"region of {source}: links") for end in (link.from_, link.to)]
        wan[ends[0], ends[1]] = link.gbps * GIGABIT
    caps = {}
    for what in ("egress", "ingress"):
        gbps = [getattr(region, f"{what}_gbps") or np.inf for region in spec.regions]
        caps[f"{what}_bytes_per_s"] = np.array(gbps) * GIGABIT
    try:
        return RegionHardware(
            name=spec.name or name,
            regions=regions,
            gpu_types=types,
            clusters=clusters,
            storage_bytes=np.array([round(region.storage_tb * TERABYTE) for region in spec.regions], np.int64),
            wan_bytes_per_s=wan,
            fault_group=np.array([groups.setdefault(group, len(groups)) for group in named], np.int64),
            **caps,
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _tables(spec: Any, world: RegionHardware, source: str) -> Tables:
    home = [_code(table.home, world.regions, f"home of {source}: table {table.name!r}") for table in spec.tables]
    size = [max(1, round(table.size_tb * TERABYTE)) for table in spec.tables]
    plain = Tables.at(np.array(size, np.int64), np.array(home, np.int64), len(world))
    for row, table in enumerate(spec.tables):
        for region in table.replicas:
            plain.copies[row, _code(region, world.regions, f"replica of {source}: table {table.name!r}")] = True
    return Tables(
        plain.size_bytes,
        plain.home,
        plain.copies,
        np.array([table.partitions for table in spec.tables], np.int64),
        np.array([table.read_share for table in spec.tables], np.float64),
    )


def _jobs(spec: Any, world: RegionHardware, source: str) -> Jobs:
    tables = {table.name: row for row, table in enumerate(spec.tables)}
    apps = {app.name: row for row, app in enumerate(spec.apps)}
    read, first, gpu, app = [], [0], [], []
    for job in spec.jobs:
        place = f"of {source}: job {job.name!r}"
        read += [tables[choose(name, tables, f"table {place}")] for name in job.tables]
        first.append(len(read))
        gpu.append(NO_GPU if job.gpu_type is None else _code(job.gpu_type, world.gpu_types, f"GPU type {place}"))
        app.append(NO_APP if job.app is None else apps[choose(job.app, apps, f"app {place}")])
    number = {
        "gpus": np.int64,
        "gpu_hours": np.float64,
        "cpu_hours": np.float64,
        "team": np.int64,
        "recurring": np.bool_,
    }
    return Jobs(
        training=np.array([job.kind == "training" for job in spec.jobs], bool),
        gpu_type=np.array(gpu, np.int64),
        level=np.array([job.priority for job in spec.jobs], np.int64),
        app=np.array(app, np.int64),
        first=np.array(first, np.int64),
        table=np.array(read, np.int64),
        **{field: np.array([getattr(job, field) for job in spec.jobs], kind) for field, kind in number.items()},
    )
