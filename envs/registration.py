"""The environments by id, registered with Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from ..simulator.base.capabilities import Capabilities, install_environments, resolve
from ..simulator.base.errors import InputError
from ..simulator.base.names import loaded
from .autoreset import autoreset_mode


@dataclass(frozen=True, kw_only=True)
class Entry(Capabilities):
    """Data of an environment for lists and the command line. Classes are `module:name`, loaded when needed."""

    summary: str
    paper: str
    entry_point: str
    vector_entry_point: str
    defaults: Mapping[str, str]  # topology, workload, network: small, and congested so that there is something to learn
    options: Mapping[str, Any] = field(default_factory=dict)  # of the cluster, where they differ from the usual ones
    features: frozenset[str] = frozenset({"run times", "leases", "outages"})
    config: str = "clustergym.simulator.configuration.cluster_config:ClusterConfig"  # the class of its cluster
    picture: str = "clustergym.envs.rendering.pictures.picture:draw_rgb"  # draws a run: (simulator, size, seen)


ENVIRONMENTS: dict[str, Entry] = {
    # 64 GPUs on two racks, 128 jobs: 48 wait at the start, the others arrive a third faster than the cluster could
    # serve them at isolated speed. The network's slowdowns are measured.
    "clustergym/Delay-v0": Entry(
        summary="place waiting jobs at a tier of the network, or hold them for a better one",
        paper="dally",
        entry_point="clustergym.envs.delay.env:DelayEnv",
        vector_entry_point="clustergym.envs.delay.env:DelayVectorEnv",
        defaults={
            "topology": "dally:racks=2,machines=4",
            "workload": "poisson:jobs=128,backlog=48,load=1.3",
            "network": "penalty:table=chronus",
        },
        decisions=frozenset({"start", "make room", "hold", "preempt", "migrate"}),
        features=frozenset({"run times", "leases", "outages", "exclusive"}),
    ),
    # Paper sjf-bsbf, section VI: four machines of four 2080 Ti GPUs, its six models with their measured step times,
    # memory and interference. 64 jobs of the sampled Philly workload come within two hours, too many unless some
    # share; many pairs lose by sharing.
    "clustergym/Sharing-v0": Entry(
        summary="start waiting jobs on free GPUs or beside running ones, with smaller sub-batches, or hold them",
        paper="sjf-bsbf",
        entry_point="clustergym.envs.sharing.env:SharingEnv",
        vector_entry_point="clustergym.envs.sharing.env:SharingVectorEnv",
        defaults={
            "topology": "bsbf-physical",
            "workload": "philly-sample:jobs=64,hours=2",
            "network": "allreduce:calibration=measured,gpu=2080ti",
        },
        options={"jobs_per_gpu": 2, "memory_gb": 11.0},
        decisions=frozenset({"start", "share", "hold", "preempt", "resize"}),
        features=frozenset({"run times", "leases", "outages", "sharing", "elastic"}),
    ),
    # Paper cassini, section 5: its testbed of 24 servers with one GPU each and links of 50 Gbps, at an oversubscription
    # of 2 : 1, its 13 models, and random arrivals at a load as in its Poisson traces. Unlike there: gangs of 4 to 8,
    # mostly on several racks of 4 servers, and iterations of 0.8 s, as shifts need small common multiples of periods.
    "clustergym/TimeShift-v0": Entry(
        summary="choose among a scheduler's placements on links that jobs share, then each job's time-shift",
        paper="cassini",
        entry_point="clustergym.envs.timeshift.env:TimeShiftEnv",
        vector_entry_point="clustergym.envs.timeshift.env:TimeShiftVectorEnv",
        defaults={
            "topology": "cassini-testbed",
            "workload": "cassini-poisson:jobs=24,load=0.9,workers=4/8,iteration_s=0.8",
            "network": "contention",
        },
        options={"gpu": "a100"},
        decisions=frozenset({"plan", "shift"}),
        features=frozenset({"run times", "leases", "outages", "sharing", "links"}),
    ),
    # Six regions with unevenly spread hardware (paper mast, Figure 2), and a day of workloads with its percentiles at
    # half their size. Tables fill the storage, and three families in ten change each day; copies of large tables take
    # hours, as published. Tetris runs daily (Sec. 5.3).
    "clustergym/Geo-v0": Entry(
        summary="start waiting workloads in a region beside their data, with or without preempting others",
        paper="mast",
        entry_point="clustergym.envs.geo.env:GeoEnv",
        vector_entry_point="clustergym.envs.geo.env:GeoVectorEnv",
        defaults={
            "topology": "mast:regions=6,gpus=256,wan_gbps=0.2",
            "workload": "mast-like:regions=6,load=0.6,scale=0.5,longest_h=12,tables=60,"
            "drift=0.3,zones=on,storage_ratio=1.25",
            "network": "none",
        },
        options={"tables_every_s": 86_400.0},
        decisions=frozenset({"region", "preempt", "hold", "bring"}),
        features=frozenset({"run times", "leases", "outages", "regions"}),
    ),
    # The same regions, links and demand, for two days, so that the second day uses the placement of the first.
    "clustergym/DataPlacement-v0": Entry(
        summary="in which region each table has its home and its replicas, every 12 hours; workloads follow the data",
        paper="mast",
        entry_point="clustergym.envs.dataplacement.env:DataPlacementEnv",
        vector_entry_point="clustergym.envs.dataplacement.env:DataPlacementVectorEnv",
        defaults={
            "topology": "mast:regions=6,gpus=256,wan_gbps=1",
            "workload": "mast-like:regions=6,load=0.6,scale=0.5,longest_h=12,days=2,tables=60,"
            "drift=0.3,zones=on,storage_ratio=1.25",
            "network": "none",
        },
        options={"tables_every_s": 43_200.0},
        decisions=frozenset({"tables"}),
        features=frozenset({"leases", "outages", "regions"}),
        picture="clustergym.envs.rendering.pictures.table_picture:draw_tables",
    ),
    # Paper harmony on a third of its cluster: 24 jobs of its applications and data sets, one every quarter of an hour,
    # more than the machines can serve alone. Run times and the ratio of COMP to COMM differ more than in the paper.
    # Times are known at arrival: profiling is an option.
    "clustergym/Grouping-v0": Entry(
        summary="which jobs on parameter servers share machines, in which groups, on how many machines each",
        paper="harmony",
        entry_point="clustergym.envs.grouping.env:GroupingEnv",
        vector_entry_point="clustergym.envs.grouping.env:GroupingVectorEnv",
        defaults={
            "topology": "harmony:machines=32",
            "workload": "harmony-like:jobs=24,length_sigma=0.6,ratio_sigma=0.4,gap_min=15",
            "network": "none",
        },
        options={"profile_iterations": 0},
        decisions=frozenset({"group"}),
        features=frozenset({"run times"}),
        config="clustergym.simulator.groups.group_config:GroupClusterConfig",
        picture="clustergym.envs.rendering.pictures.group_picture:draw_groups",
    ),
}
install_environments(ENVIRONMENTS)


OF_BATCHES = ("replicas", "variants", "strict", "full_infos")  # arguments of our own vector environments only,
OF_VECTORS = ("autoreset_mode", *OF_BATCHES, "copy")  # and of all vector environments


def register() -> None:
    """Register every environment with Gymnasium, unless it is registered already."""
    for env_id, entry in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry.entry_point,
                vector_entry_point=entry.vector_entry_point,
                order_enforce=False,  # an environment does so itself,
                disable_env_checker=True,  # and is checked by the tests: wrappers would slow each step
            )


def env_class(name: str) -> Any:
    """The class of an environment, by id or short name."""
    return loaded(ENVIRONMENTS[resolve(name)].entry_point)


def drawn_as(name: str) -> Callable[..., Any]:
    """The function that draws runs of an environment: (simulator, size, seen) -> uint8 (height, width, 3)."""
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
        num_envs: number of environments.
        vector_kwargs: `autoreset_mode`, `replicas`, `variants`, `strict`, `full_infos`, `copy`; they may also stand
            among `kwargs`.
        wrappers: put around each environment. With them, or with `vectorization_mode="sync"` or `"async"`, these are
            single environments in Gymnasium's own `VectorEnv`, since a row of a batch cannot be wrapped.
        kwargs: keyword arguments of the environment.

    Returns:
        A `ClusterVectorEnv`: observations, rewards and masks have a row an environment.

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
            none = "single environments, as wrappers need them, have none"
            raise InputError(f"{key}: {none}; leave it or the wrappers out")
    return gymnasium.make_vec(
        resolve(id), num_envs, vectorization_mode=mode, vector_kwargs=vector_kwargs, wrappers=wrappers, **kwargs
    )
