"""Regions for pictures: demand over supply, storage, tables on the way, and past use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ....simulator.base.codes import DOWN
from ....simulator.engine.simulator import Simulator
from .scene import RunningJob, Scene, WaitingJob, read_scene


@dataclass(frozen=True)
class Supply:
    """Units of one type in a region."""

    kind: str  # the type's name
    units: int  # all, >= 1
    used: int  # held by workloads
    down: int  # on failed machines
    asked: float  # by waiting workloads, each divided evenly among the regions that could run it

    @property
    def load(self) -> float:
        """Demand over supply: held and asked units, over all."""
        return (self.used + self.asked) / self.units


@dataclass(frozen=True)
class Region:
    """One region: its types in the order of the workload's, GPUs before CPU machines; bytes."""

    name: str
    is_up: bool
    supplies: tuple[Supply, ...]
    stored_bytes: float
    coming_bytes: float  # on the way; part of `stored_bytes`
    storage_bytes: float

    @property
    def load(self) -> float:
        """The largest demand over supply of its types."""
        return max((supply.load for supply in self.supplies), default=0.0)


@dataclass(frozen=True)
class Flow:
    """Tables that are copied from one region to another: their number, and the bytes left."""

    source: int
    target: int
    tables: int
    left_bytes: float


@dataclass(frozen=True, eq=False)
class RegionScene:
    """The regions now."""

    scene: Scene  # the rest; a job's model is its priority and region
    regions: tuple[Region, ...]
    flows: tuple[Flow, ...]  # by source, then target
    stuck: int  # copies that wait for a source
    gpus: tuple[int, int]  # used, all
    cpus: tuple[int, int]  # used, all
    n_unplaceable: int  # waiting workloads that no region can run
    late: int  # workloads whose first start was too late
    bin_s: float  # width of the bins of `course` from the first arrival on, seconds
    course: np.ndarray  # float64 (2, k): share of the GPUs, and of the CPU machines, in use in each bin
    elapsed_s: float  # since the first arrival


def has_regions(simulator: Simulator) -> bool:
    """Whether a simulator plays a workload of regions."""
    return simulator.workload.geo is not None


def read_regions(simulator: Simulator) -> RegionScene:
    """The regions of a simulator now."""
    s, view = simulator.raw.record, simulator.view
    demands, cpu = view.demands, int(s["cpu_type"])
    asked, n_unplaceable = _asked(simulator)
    flows, stuck = _flows(simulator)
    units, held = (s[name][: int(s["n_types"])] for name in ("type_gpus", "type_held"))
    is_gpu = np.arange(len(units)) != cpu
    elapsed_s = float(s["now_s"] - s["start_s"])
    bins = max(1, int(np.ceil(elapsed_s / float(s["usage_bin_s"])))) if elapsed_s > 0.0 else 0
    lasted_s = np.minimum(float(s["usage_bin_s"]), elapsed_s - np.arange(bins) * float(s["usage_bin_s"]))
    whole = np.array([max(1, int(units[is_gpu].sum())), max(1, int(units[cpu]))])
    return RegionScene(
        scene=_with_regions(simulator, read_scene(simulator)),
        regions=tuple(_region(simulator, region, asked[region]) for region in range(len(demands.regions))),
        flows=flows,
        stuck=stuck,
        gpus=(int(held[is_gpu].sum()), int(units[is_gpu].sum())),
        cpus=(int(held[cpu]), int(units[cpu])),
        n_unplaceable=n_unplaceable,
        late=int(s["late_starts"]),
        bin_s=float(s["usage_bin_s"]),
        course=s["usage_held_s"][:, :bins] / (whole[:, None] * lasted_s),
        elapsed_s=elapsed_s,
    )


def _asked(simulator: Simulator) -> tuple[np.ndarray, int]:
    """Units that waiting workloads ask, float64 (regions, types); number of workloads that no region can run."""
    s, view = simulator.raw.record, simulator.view
    asked = np.zeros((int(s["n_regions"]), int(s["n_types"])))
    n_unplaceable = 0
    for job in [*view.queue.tolist(), *view.held.tolist()]:
        regions = view.regions_of(job)
        n_unplaceable += not regions
        for kinds, units in zip(view.demands.types_of(job), s["part_units"][job].tolist(), strict=False):
            for kind in kinds if regions else ():
                asked[regions, kind] += units / len(regions) / len(kinds)
    return asked, n_unplaceable


def _region(simulator: Simulator, region: int, asked: np.ndarray) -> Region:
    s, view = simulator.raw.record, simulator.view
    clusters = np.flatnonzero(s["cluster_region"][: int(s["n_clusters"])] == region)
    kinds, names = s["cluster_type"][clusters], simulator.topology.cluster_gpu_type
    first, machines = int(s["region_first_machine"][region]), int(s["region_machines"][region])
    unit = int(s["machine_first_gpu"][first])
    count = int(s["machine_gpus"][first : first + machines].sum())
    is_down = s["gpu_job"][unit : unit + count] == DOWN
    where = s["machine_cluster"][s["gpu_machine"][unit : unit + count]]
    supplies = []
    for kind in np.unique(kinds).tolist():
        own = clusters[kinds == kind]
        units, free = int(s["cluster_gpus"][own].sum()), int(s["cluster_free"][own].sum())
        down = int((is_down & np.isin(where, own)).sum())
        supplies.append(Supply(names[int(own[0])], units, max(0, units - free - down), down, float(asked[kind])))
    coming = sum(int(s["transfer_room"][each]) for each in _transfers(s) if int(s["transfer_to"][each]) == region)
    return Region(
        name=view.demands.regions[region],
        is_up=bool(int(s["up_regions"]) >> region & 1),
        supplies=tuple(supplies),
        stored_bytes=float(s["stored_bytes"][region]),
        coming_bytes=float(coming),
        storage_bytes=float(s["storage_bytes"][region]),
    )


def _transfers(s: np.void) -> list[int]:
    found = []
    for first in s["table_transfer"][: int(s["n_tables"])].tolist() if int(s["n_transfers"]) else ():
        transfer = first
        while transfer >= 0:
            found.append(transfer)
            transfer = int(s["transfer_after"][transfer])
    return found


def _flows(simulator: Simulator) -> tuple[tuple[Flow, ...], int]:
    by_link: dict[tuple[int, int], tuple[int, float]] = {}
    stuck = 0
    for _table, source, target, left in simulator.view.transfers:
        if source is None:
            stuck += 1
            continue
        tables, total = by_link.get((source, target), (0, 0.0))
        by_link[source, target] = tables + 1, total + left
    return tuple(Flow(*link, *by_link[link]) for link in sorted(by_link)), stuck


def _with_regions(simulator: Simulator, scene: Scene) -> Scene:
    view, names = simulator.view, simulator.view.demands.regions

    def running(job: RunningJob) -> RunningJob:
        region = view.region_of(job.job)
        where = "" if region is None else names[region]
        return replace(job, model=f"P{view.level(job.job)} {where}")

    def waiting(job: WaitingJob) -> WaitingJob:
        return replace(job, model=f"P{view.level(job.job)} {view.parts(job.job)[0][0]}")

    queue, held = tuple(map(waiting, scene.queue)), tuple(map(waiting, scene.held))
    return replace(scene, running=tuple(map(running, scene.running)), queue=queue, held=held)
