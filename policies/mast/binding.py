"""Early binding: a workload goes to a region, or to a cluster, when it arrives (paper mast, Sec. 4.1 and 5.6).

Sec. 5.6: "dispatches a workload to the region with the lowest demand over supply rate of the required GPU type". The
type is that of the first part. Which demand is not said: `now` is what the workloads bound there ask that have not
finished, `day` what the slow path knows (Expression 2: hours a day of the workloads that recur, at the homes of their
tables), the same for a whole run. Regions, or clusters, are those that have the tables and could hold the workload. One
whose tables are nowhere together is bound when they are; one whose region has lost them for good, or is down, is bound
anew as soon as another one can run it. A cluster's demand is that of the first parts that are bound to it: the others
go where RMS puts them.

With `now` what a workload was bound to depends on who arrived, or had its tables, and finished before it, not on when
it is asked for.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from ...simulator.cluster.region_hardware import NO_GPU
from ...simulator.engine.view import ClusterView
from ...simulator.warehouse.demands import Demands, packs
from .auction import Queue

NOWHERE = -1
SETTINGS = ("to_cluster", "daily", "_run")  # attributes that are not of a run


class Binding:
    """Binds each workload once.

    Args:
        to_cluster: bind the first part to a cluster of the region; the others go where RMS puts them there.
        daily: the demand is that of a day, not of now.
    """

    def __init__(self, to_cluster: bool, daily: bool = False) -> None:
        self.to_cluster, self.daily = to_cluster, daily
        self._run: tuple[Any, int] | None = None

    def bind(self, view: ClusterView, queue: Queue, pending: int) -> None:
        """Leave in the queue's sets of regions the one that each workload is bound to, if it can run there now."""
        run = (view.simulator, view.simulator.runs)
        if self._run != run:
            self._run = run
            self._begin(view)
        jobs = queue.job[:pending]
        bits = queue.bits[jobs]
        bound = self._region[jobs]
        lost = (bound != NOWHERE) & (bits >> np.maximum(bound, 0) & 1 == 0)
        free = jobs[(bits != 0) & (lost | (bound == NOWHERE))]
        since_s = self._since_s(view, free)
        for place in np.lexsort((free, since_s)).tolist():
            self._bind(view, int(free[place]), int(queue.bits[free[place]]), float(since_s[place]))
        bound = self._region[jobs]
        queue.bits[jobs] = np.where(bound == NOWHERE, 0, bits & 1 << np.maximum(bound, 0))
        if self.to_cluster:
            queue.only[jobs] = self._cluster[jobs]

    def memory(self, simulator: Any) -> dict[str, Any] | None:
        """Where the workloads of the present run are bound; None: nobody was asked yet."""
        if self._run != (simulator, simulator.runs):
            return None
        return deepcopy({name: value for name, value in vars(self).items() if name not in SETTINGS})

    def recall(self, simulator: Any, memory: dict[str, Any] | None) -> None:
        """A simulator now stands where one stood of whose run `memory` was remembered."""
        self._run = None
        if memory is not None:
            vars(self).update(deepcopy(memory))
            self._run = (simulator, simulator.runs)

    def _begin(self, view: ClusterView) -> None:
        """Nobody is bound, but to where it runs or has run last."""
        demands, topology = view.demands, view.topology
        jobs, clusters, types = len(view.workload), topology.num_clusters, len(demands.gpu_types)
        self._region = np.full(jobs, NOWHERE, np.int64)
        self._cluster = np.full(jobs, NOWHERE, np.int64)
        self._kind, self._need = demands.part_type, demands.part_units
        self._cluster_kind = demands.cluster_type(topology)
        self._cluster_region = topology.cluster_region
        self._units = np.bincount(topology.rack_cluster[topology.machine_rack], topology.machine_gpus, clusters)
        self._supply = np.zeros((topology.num_regions, types))
        known = self._cluster_kind >= 0
        np.add.at(self._supply, (self._cluster_region[known], self._cluster_kind[known]), self._units[known])
        self._demand = np.zeros_like(self._supply)
        self._day = hours_of_a_day(demands, self._supply.shape) if self.daily else None
        self._asked = np.zeros(clusters)
        self._bound = np.zeros(0, np.int64)  # those that have not finished, as far as was looked
        s = view.simulator.state
        for job in range(int(s.next_arrival)):
            region = int(s.job_region[job] if s.job_region[job] >= 0 else s.last_region[job])
            if s.starts[job] > 0 and region >= 0:
                self._note(job, region, int(s.part_cluster[job, 0]))

    def _note(self, job: int, region: int, cluster: int) -> None:
        self._region[job], self._cluster[job] = region, cluster
        there = self._kind[job] >= 0
        np.add.at(self._demand[region], self._kind[job][there], self._need[job][there])
        self._asked[cluster] += self._need[job, 0]
        self._bound = np.append(self._bound, job)

    def _forget(self, jobs: np.ndarray) -> None:
        for job in jobs.tolist():
            there = self._kind[job] >= 0
            np.subtract.at(self._demand[self._region[job]], self._kind[job][there], self._need[job][there])
            self._asked[self._cluster[job]] -= self._need[job, 0]
        self._bound = self._bound[~np.isin(self._bound, jobs)]

    def _since_s(self, view: ClusterView, jobs: np.ndarray) -> np.ndarray:
        """When each could be bound: as it arrived, when its data was there, or now that its region is lost to it."""
        s = view.simulator.state
        return np.where(self._region[jobs] != NOWHERE, view.now_s, s.arrival_s[jobs] + s.data_wait_s[jobs])

    def _bind(self, view: ClusterView, job: int, bits: int, since_s: float) -> None:
        if self._region[job] != NOWHERE:
            self._forget(np.array([job]))
        finish_s = view.simulator.state.finish_s[self._bound]
        self._forget(self._bound[(finish_s >= 0.0) & (finish_s <= since_s)])
        kind = int(self._kind[job, 0])
        clusters = self._clusters(job, bits)
        load = self._asked[clusters] / self._units[clusters]
        if not self.to_cluster:
            demand = self._demand if self._day is None else self._day
            rate = demand[:, kind] / np.maximum(self._supply[:, kind], 1.0)
            load = rate[self._cluster_region[clusters]]
        cluster = int(clusters[np.argmin(load)])
        self._note(job, int(self._cluster_region[cluster]), cluster)

    def _clusters(self, job: int, bits: int) -> np.ndarray:
        """Clusters of these regions that can have the first part, and leave the others of its type room beside it."""
        kind, units = int(self._kind[job, 0]), self._need[job].tolist()
        rest = [units[part] for part in range(1, len(units)) if self._kind[job, part] == kind]
        alike = self._cluster_kind == kind
        able = np.flatnonzero(alike & (self._units >= units[0]) & (bits >> self._cluster_region & 1 == 1))
        if not rest:
            return able
        found = []
        for cluster in able.tolist():
            there = np.flatnonzero(alike & (self._cluster_region == self._cluster_region[cluster]))
            if packs(rest, np.where(there == cluster, self._units[there] - units[0], self._units[there]).tolist()):
                found.append(cluster)
        return np.array(found, np.int64)


def hours_of_a_day(demands: Demands, shape: tuple[int, int]) -> np.ndarray:
    """Hours a day of each type of units at each region, float64 (regions, types), of training jobs that recur.

    A job counts where its first table has its home; of CPU machines, the last type, it counts its CPU-hours.
    """
    jobs, found = demands.history, np.zeros(shape)
    known = np.flatnonzero(jobs.training & jobs.recurring)
    home = demands.tables.home[jobs.table[jobs.first[known]]]
    has = jobs.gpu_type[known] != NO_GPU
    np.add.at(found, (home[has], jobs.gpu_type[known[has]]), jobs.gpu_hours[known[has]])
    np.add.at(found[:, -1], home, jobs.cpu_hours[known])
    return found
