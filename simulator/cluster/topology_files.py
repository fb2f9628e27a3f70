"""A topology in YAML or JSON: read safely, checked, and built; docs/concepts/topologies.md has the schema.

A mapping with `nodes` is a graph: graph_files.py. Regions with `storage_tb`: warehouse/warehouse_files.py.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..base.tiers import TIER_NAMES
from ..files.yaml_files import load_mapping, shown, validated
from .topology import (
    BUILDERS,
    MAX_GPUS,
    MOST_LATENCY_US,
    NATURAL,
    Tier,
    Topology,
    builder,
    check_gpu_count,
    checked_order,
)

_SHORT_KEYS = ("racks", "machines", "slots", "gpus_per_slot")
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


@builder("file")
def load_topology(path: str | os.PathLike[str]) -> Topology:
    """The Topology that a YAML or JSON file describes; an InputError names the file and the place in it."""
    if os.fspath(path).lower().endswith(".csv") and os.path.isfile(path):
        raise InputError(
            f"topology {os.fspath(path)!r}: a csv of machines and their GPUs is read as nodes:file=PATH, one of hosts "
            "and their switches as hosts:file=PATH"
        )
    mapping = load_mapping(path, "topology")
    return topology_from_mapping(mapping, f"topology {os.fspath(path)!r}", Path(path).stem)


@builder("mapping")
def topology_from_mapping(mapping: Mapping[str, Any], source: str, name: str = "custom") -> Topology:
    """The Topology of a mapping in this module's schema; `source` is its name in errors, `name` the topology's default.

    InputError: one sentence with the source, the place in it, the value and what was expected.
    """
    if not isinstance(mapping, Mapping):
        raise InputError(f"{source} is {shown(mapping)}, expected a mapping")
    if "nodes" in mapping:
        return BUILDERS["node-link"](mapping, source, name)
    if _has_lands(mapping):
        return BUILDERS["regions"](mapping, source, name)
    short = "regions" not in mapping and any(key in mapping for key in _SHORT_KEYS)
    models = _models()
    spec = validated(models.Short if short else models.Full, mapping, source)
    regions = _short_regions(spec, models) if short else spec.regions
    # Every element holds at least one GPU, so from here on nothing is larger than the largest topology.
    check_gpu_count(sum(_region_gpus(region) for region in regions), source)
    tiers, order = _tiers(spec.tiers, source), checked_order(spec.machine_order, source)
    return _build(_numbered(regions, "region"), spec.name or name, tiers, order, source)


def _has_lands(mapping: Mapping[str, Any]) -> bool:
    if "wan_gbps" in mapping or "links" in mapping:
        return True
    regions = mapping.get("regions")
    return isinstance(regions, list) and any(isinstance(region, dict) and "storage_tb" in region for region in regions)


def _short_regions(spec: Any, models: SimpleNamespace) -> list[Any]:
    machine = models.Machines(count=spec.machines, slots=spec.slots, gpus_per_slot=spec.gpus_per_slot)
    rack = models.Racks(count=spec.racks, machines=[machine])
    return [models.Region(clusters=[models.Cluster(gpu_type=spec.gpu_type, racks=[rack])])]


def _numbered(items: Sequence[Any], noun: str) -> list[tuple[str, Any]]:
    named: list[tuple[str, Any]] = []
    for item in items:
        for copy in range(item.count):
            own = item.name if item.count == 1 else f"{item.name}-{copy}"
            named.append((own if item.name else f"{noun}{len(named)}", item))
    return named


def _check_unique(names: Sequence[str], place: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place}: the name {twice[0]!r} is used {names.count(twice[0])} times, expected once")


def _region_gpus(region: Any) -> int:
    def rack_gpus(rack: Any) -> int:
        return rack.count * sum(group.count * group.slots * group.gpus_per_slot for group in rack.machines)

    return region.count * sum(cluster.count * sum(map(rack_gpus, cluster.racks)) for cluster in region.clusters)


def _build(regions: list[tuple[str, Any]], name: str, tiers: tuple[Tier, ...], order: str, source: str) -> Topology:
    _check_unique([own for own, _ in regions], f"{source}: regions")
    per_region = [_numbered(region.clusters, "cluster") for _, region in regions]
    for (own, _), clusters in zip(regions, per_region, strict=True):
        _check_unique([cluster for cluster, _ in clusters], f"{source}: clusters of region {own!r}")
    flat = [cluster for clusters in per_region for cluster in clusters]
    slot_gpus, machine_slots, rack_machines = [], [], []
    for _, cluster in flat:
        for rack in cluster.racks:
            slots = np.concatenate([np.full(group.count, group.slots) for group in rack.machines])
            gpus = [np.full(group.count * group.slots, group.gpus_per_slot) for group in rack.machines]
            machine_slots.append(np.tile(slots, rack.count))
            slot_gpus.append(np.tile(np.concatenate(gpus), rack.count))
            rack_machines.append(np.full(rack.count, len(slots)))
    return Topology.from_counts(
        name,
        slot_gpus=np.concatenate(slot_gpus),
        machine_slots=np.concatenate(machine_slots),
        rack_machines=np.concatenate(rack_machines),
        cluster_racks=[sum(rack.count for rack in cluster.racks) for _, cluster in flat],
        region_clusters=[len(clusters) for clusters in per_region],
        cluster_gpu_type=[cluster.gpu_type for _, cluster in flat],
        region_names=[own for own, _ in regions],
        cluster_names=[own for own, _ in flat],
        tiers=tiers,
        machine_order=order,
    )


def _tiers(given: Sequence[Any], source: str) -> tuple[Tier, ...]:
    _check_unique([tier.name for tier in given], f"{source}: tiers")
    by_name = {tier.name: tier for tier in given}
    unknown = float("nan")
    tiers = []
    for name in TIER_NAMES:
        spec = by_name.get(name)
        numbers = (spec.bandwidth_gbps, spec.latency_us, spec.oversubscription) if spec else (None,) * 3
        bandwidth, latency_us, ratio = (unknown if number is None else float(number) for number in numbers)
        tiers.append(Tier(name, bandwidth, latency_us * 1e-6, ratio))
    return tuple(tiers)


@functools.cache
def _models() -> SimpleNamespace:
    from typing import Annotated, Literal

    from pydantic import BaseModel, ConfigDict, Field

    Count = Annotated[int, Field(ge=1, le=MAX_GPUS, strict=True)]
    Name = Annotated[str, Field(pattern=_NAME, max_length=100, strict=True)]
    Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    class TierSpec(Strict):
        name: Literal["slot", "machine", "rack", "network"]
        bandwidth_gbps: Annotated[Number, Field(gt=0)] | None = None
        latency_us: Annotated[Number, Field(ge=0, le=MOST_LATENCY_US)] | None = None
        oversubscription: Annotated[Number, Field(ge=1)] | None = None

    class Machines(Strict):
        count: Count = 1
        slots: Count = 1
        gpus_per_slot: Count

    class Racks(Strict):
        count: Count = 1
        machines: Annotated[list[Machines], Field(min_length=1)]

    class Cluster(Strict):
        name: Name | None = None
        count: Count = 1
        gpu_type: Annotated[str, Field(strict=True, max_length=100)] = ""
        racks: Annotated[list[Racks], Field(min_length=1)]

    class Region(Strict):
        name: Name | None = None
        count: Count = 1
        clusters: Annotated[list[Cluster], Field(min_length=1)]

    class Full(Strict):
        name: Name | None = None
        machine_order: Any = NATURAL  # checked by `checked_order`, for one sentence in place of two of a union
        regions: Annotated[list[Region], Field(min_length=1)]
        tiers: tuple[TierSpec, ...] = ()

    class Short(Strict):
        name: Name | None = None
        machine_order: Any = NATURAL
        gpu_type: Annotated[str, Field(strict=True, max_length=100)] = ""
        racks: Count = 1
        machines: Count
        slots: Count = 1
        gpus_per_slot: Count
        tiers: tuple[TierSpec, ...] = ()

    models = (Full, Short, Region, Cluster, Racks, Machines, TierSpec)
    return SimpleNamespace(**{model.__name__: model for model in models})
