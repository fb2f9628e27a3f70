"""The environments by id: registered with Gymnasium, listed for people."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from ..simulator.base.errors import InputError
from ..simulator.base.names import choose
from .autoreset import autoreset_mode
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
    run_times: bool = True  # somebody may ask how long jobs run (simulator/jobs/estimates.py)
    tables_every_s: float | None = None  # where there are regions: from one look at their tables to the next
    simulator: str | None = None  # the class that plays it, where that is not simulator/engine/simulator.py,
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
        simulator="clustergym.simulator.groups.group_simulator:GroupSimulator",
        config="clustergym.simulator.groups.group_config:GroupConfig",
        config_words={"profile_iterations": str(grouping.PROFILE_ITERATIONS)},
        picture="clustergym.envs.rendering.groups:draw_groups",
    ),
}


OF_BATCHES = ("replicas", "variants")  # arguments of our own vector environments only,
OF_VECTORS = ("autoreset_mode", *OF_BATCHES, "copy")  # and of all vector environments


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


def make_vec(
    id: str,
    num_envs: int = 1,
    *,
    vector_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Callable[[Any], Any]] = (),
    **kwargs: Any,
) -> Any:
    """Many environments of one kind, stepped by one kernel call: a Gymnasium `VectorEnv` (envs/vector.py).

    Args:
        id: `clustergym/Delay-v0`, or `Delay`.
        num_envs: how many.
        vector_kwargs: `autoreset_mode`, `replicas`, `variants`, `copy`; they may as well stand among `kwargs`.
        wrappers: put around each environment. A row of a batch cannot be wrapped, so then, and with
            `vectorization_mode="sync"` or `"async"`, these are single environments, in Gymnasium's own `VectorEnv`.
        kwargs: keyword arguments of the environment.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """
    mode = kwargs.pop("vectorization_mode", None) or ("sync" if wrappers else None)
    if mode is None:
        return gymnasium.make_vec(resolve(id), num_envs=num_envs, **kwargs, **(vector_kwargs or {}))
    vector_kwargs = {**(vector_kwargs or {}), **{key: kwargs.pop(key) for key in OF_VECTORS if key in kwargs}}
    if "autoreset_mode" in vector_kwargs:
        vector_kwargs["autoreset_mode"] = autoreset_mode(vector_kwargs["autoreset_mode"])
    for key in OF_BATCHES:
        if key in vector_kwargs and str(mode) in ("sync", "async"):
            raise InputError(
                f"{key}: single environments, as wrappers need them, have none; leave it or the wrappers out"
            )
    return gymnasium.make_vec(
        resolve(id), num_envs, vectorization_mode=mode, vector_kwargs=vector_kwargs, wrappers=wrappers, **kwargs
    )
