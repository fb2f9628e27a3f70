"""The environments by id: registered with Gymnasium, listed for people."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from ..simulator.names import choose
from .dataplacement import defaults as dataplacement
from .delay import defaults as delay
from .geo import defaults as geo
from .grouping import defaults as grouping
from .sharing import defaults as sharing
from .timeshift import defaults as timeshift


@dataclass(frozen=True)
class Entry:
    """What the lists and the command line know of an environment. Classes are `module:name`, loaded when needed."""

    summary: str
    paper: str
    entry_point: str
    vector_entry_point: str
    defaults: dict[str, str]
    sharing: dict[str, Any] | None = None  # arguments of `Sharing`, where jobs share GPUs
    run_times: bool = True  # somebody may ask how long jobs run (simulator/estimates.py)
    tables_every_s: float | None = None  # where there are regions: from one look at their tables to the next
    simulator: str | None = None  # the class that plays it, where that is not simulator/engine.py,
    config: str | None = None  # the dataclass of what that simulates,
    config_words: Mapping[str, str] = field(default_factory=dict)  # and of its fields those that differ here
    picture: str = "clustergym.envs.rendering.picture:draw_rgb"  # draws a run: (simulator, size, seen)


ENVIRONMENTS: dict[str, Entry] = {
    "clustergym/Delay-v0": Entry(
        summary="place waiting jobs at a tier of the network, or hold them for a better one",
        paper="dally",
        entry_point="clustergym.envs.delay.env:DelayEnv",
        vector_entry_point="clustergym.envs.delay.vector:DelayVectorEnv",
        defaults={"topology": delay.TOPOLOGY, "workload": delay.WORKLOAD, "network": delay.NETWORK},
    ),
    "clustergym/Sharing-v0": Entry(
        summary="start waiting jobs on free GPUs or beside running ones, with smaller sub-batches, or hold them",
        paper="sjf-bsbf",
        entry_point="clustergym.envs.sharing.env:SharingEnv",
        vector_entry_point="clustergym.envs.sharing.vector:SharingVectorEnv",
        defaults={"topology": sharing.TOPOLOGY, "workload": sharing.WORKLOAD, "network": sharing.NETWORK},
        sharing={"jobs_per_gpu": 2, "interference": "measured", "memory_gb": sharing.MEMORY_GB, "gpu": "2080ti"},
    ),
    "clustergym/TimeShift-v0": Entry(
        summary="choose among a scheduler's placements on links that jobs share, then each job's time-shift",
        paper="cassini",
        entry_point="clustergym.envs.timeshift.env:TimeShiftEnv",
        vector_entry_point="clustergym.envs.timeshift.vector:TimeShiftVectorEnv",
        defaults={"topology": timeshift.TOPOLOGY, "workload": timeshift.WORKLOAD, "network": timeshift.NETWORK},
    ),
    "clustergym/Geo-v0": Entry(
        summary="start waiting workloads in a region beside their data, with or without preempting others",
        paper="mast",
        entry_point="clustergym.envs.geo.env:GeoEnv",
        vector_entry_point="clustergym.envs.geo.vector:GeoVectorEnv",
        defaults={"topology": geo.TOPOLOGY, "workload": geo.WORKLOAD, "network": geo.NETWORK},
        tables_every_s=geo.TABLES_EVERY_S,
    ),
    "clustergym/DataPlacement-v0": Entry(
        summary="in which region each table has its home and its replicas, every 12 hours; workloads follow the data",
        paper="mast",
        entry_point="clustergym.envs.dataplacement.env:DataPlacementEnv",
        vector_entry_point="clustergym.envs.dataplacement.vector:DataPlacementVectorEnv",
        defaults={
            "topology": dataplacement.TOPOLOGY,
            "workload": dataplacement.WORKLOAD,
            "network": dataplacement.NETWORK,
        },
        run_times=False,
        tables_every_s=dataplacement.TABLES_EVERY_S,
        picture="clustergym.envs.rendering.table_picture:draw_tables",
    ),
    "clustergym/Grouping-v0": Entry(
        summary="which jobs on parameter servers share machines, in which groups, on how many machines each",
        paper="harmony",
        entry_point="clustergym.envs.grouping.env:GroupingEnv",
        vector_entry_point="clustergym.envs.grouping.vector:GroupingVectorEnv",
        defaults={"topology": grouping.TOPOLOGY, "workload": grouping.WORKLOAD, "network": grouping.NETWORK},
        simulator="clustergym.simulator.groups.engine:GroupSimulator",
        config="clustergym.simulator.groups.config:GroupConfig",
        config_words={"profile_iterations": str(grouping.PROFILE_ITERATIONS)},
        picture="clustergym.envs.rendering.groups:draw_groups",
    ),
}


def register() -> None:
    """Register every environment with Gymnasium; those that are registered already stay as they are."""
    for env_id, entry in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry.entry_point, vector_entry_point=entry.vector_entry_point)


def resolve(name: str) -> str:
    """The full id of an environment given by id or by its short name (`Delay`); InputError if there is none."""
    short = {env_id.removeprefix("clustergym/").removesuffix("-v0"): env_id for env_id in ENVIRONMENTS}
    if name in ENVIRONMENTS:
        return name
    return short[choose(name, short, "environment")]


def env_class(name: str) -> Any:
    """The class of an environment, by id or short name."""
    return loaded(ENVIRONMENTS[resolve(name)].entry_point)


def loaded(place: str) -> Any:
    """What an entry names as `module:name`."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def drawn_as(name: str) -> Callable[..., Any]:
    """What draws the runs of an environment: (simulator, size, seen) -> uint8 (height, width, 3)."""
    draw: Callable[..., Any] = loaded(ENVIRONMENTS[resolve(name)].picture)
    return draw


def make_vec(id: str, num_envs: int = 1, **kwargs: Any) -> Any:
    """Many environments of one kind, stepped by one kernel call: a Gymnasium `VectorEnv` (envs/vector.py).

    Args:
        id: `clustergym/Delay-v0`, or `Delay`.
        num_envs: how many.
        kwargs: `autoreset_mode`, `replicas`, `variants`, `copy`, and keyword arguments of the environment.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """
    return gymnasium.make_vec(resolve(id), num_envs=num_envs, **kwargs)
