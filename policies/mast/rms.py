"""RMS: one region's exhaustive search for a job's place, with a negative cache (paper mast, Sec. 4.3).

For every cluster with the job's GPU type a plan and its placement score; the highest wins, the lowest number among
equals.

* Without preemption: GPUs on as few neighbouring racks as suffice, there on the machines with the most free GPUs. The
  score is the higher, the fewer racks; the paper's packing prefers them, its score does not mention them.
* With preemption, only of jobs with a lower priority: the score falls with the priority of the most important job that
  leaves, then with the number of jobs, then with how short the youngest has run. The paper names these three in this
  order, without weights. Its scan, by priority and running time, then by size, is a heuristic for the same: here the
  best plan is found. Its example comes out the same: for 10 GPUs from jobs with 4, 5 and 12, only the third leaves.

A plan that does not preempt beats all that do. Departures: GPUs are the only resource, and a job takes them from any
machines of its cluster in whatever pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulator.errors import InputError
from ...simulator.geo.kernels import region as kernels
from ...simulator.geo.world import LEVELS, NO_GPU, World


@dataclass(frozen=True)
class Plan:
    """Where a job could run now.

    Attributes:
        cluster: of the region, by number.
        score: the placement score, <= 0; the higher the better.
        leaves: slots of the jobs that have to be preempted.
        machines, gpus: which of the region's machines, and how many GPUs on each.
    """

    cluster: int
    score: float
    leaves: tuple[int, ...]
    machines: tuple[int, ...]
    gpus: tuple[int, ...]


class RegionalScheduler:
    """The machines and jobs of one region.

    Args:
        gpu_type: of each cluster, codes.
        machine_gpus: GPUs of the machines of each cluster, in the order of their racks.
        rack: rack of each machine likewise, ascending.
        most_jobs: slots, >= 1.

    Attributes:
        asked, spared: how many searches there were, and how many the negative cache answered, since `begin_scan`.
    """

    def __init__(
        self, gpu_type: list[int], machine_gpus: list[np.ndarray], rack: list[np.ndarray], most_jobs: int = 4096
    ) -> None:
        counts = [len(gpus) for gpus in machine_gpus]
        if not counts or len(gpu_type) != len(counts) or [len(one) for one in rack] != counts:
            raise InputError(
                f"region of {len(gpu_type)} clusters: expected as many lists of machines and racks, 1 or more"
            )
        if any((np.diff(one) < 0).any() for one in rack) or any((gpus < 1).any() for gpus in machine_gpus):
            raise InputError("region: expected racks in ascending order and machines with one GPU or more")
        self._region = _empty(gpu_type, machine_gpus, rack, most_jobs)
        self._window = np.zeros(2, np.int64)
        self._types = max(gpu_type) + 1
        self.use_cache = True
        self.begin_scan()

    @classmethod
    def of(cls, world: World, region: int, most_jobs: int = 4096) -> RegionalScheduler:
        """A region of a world, its GPU clusters in their order."""
        clusters = world.clusters
        rows = np.flatnonzero((clusters.region == region) & (clusters.gpu_type != NO_GPU))
        machines = [np.full(clusters.gpu_machines[row], clusters.gpus_per_machine[row]) for row in rows]
        racks = [np.arange(clusters.gpu_machines[row]) // clusters.machines_per_rack[row] for row in rows]
        return cls(clusters.gpu_type[rows].tolist(), machines, racks, most_jobs)

    @property
    def free(self) -> np.ndarray:
        """Free GPUs of each machine, int64 (machines,); a copy."""
        return np.array(self._region.free)

    @property
    def jobs(self) -> list[int]:
        """Slots of the jobs that run."""
        return np.flatnonzero(self._region.cluster >= 0).tolist()

    def begin_scan(self) -> None:
        """Empty the negative cache: at the start of each scan of the queue, and when a job ended by itself."""
        self._refused = np.full((self._types, LEVELS), np.iinfo(np.int64).max)
        self.asked = self.spared = 0

    def plan(self, gpu_type: int, gpus: int, level: int, now_s: float) -> Plan | None:
        """The best plan for a job; None: there is none.

        What failed fails again for as many GPUs or more with the same priority or a lower one: a job that starts takes
        GPUs that were free, or of jobs that an equal or higher priority could have preempted too, so for those nothing
        becomes more. Lower ones are asked anew once somebody was preempted: what is left over is free for them.
        """
        if not (0 <= level < LEVELS and gpus >= 1):
            raise InputError(f"job of {gpus} GPUs at level {level}: expected 1 or more, and 0 to {LEVELS - 1}")
        if not 0 <= gpu_type < self._types:
            return None
        self.asked += 1
        if self.use_cache and gpus >= self._refused[gpu_type, level]:
            self.spared += 1
            return None
        r = self._region
        if kernels.find(r, gpu_type, gpus, LEVELS - 1 - level, now_s, self._window) < 0:
            lower = self._refused[gpu_type, level:]
            np.minimum(lower, gpus, out=lower)
            return None
        cluster, leaves, machines = r.plan.tolist()
        return Plan(
            cluster,
            float(r.score[0]),
            tuple(r.leaving[:leaves].tolist()),
            tuple(r.chosen[:machines].tolist()),
            tuple(r.taken[:machines].tolist()),
        )

    def start(self, gpu_type: int, gpus: int, level: int, now_s: float) -> tuple[int, Plan] | None:
        """Carry out the best plan; the job's slot and the plan. Time must not run back from one start to the next."""
        plan = self.plan(gpu_type, gpus, level, now_s)
        if plan is None:
            return None
        r = self._region
        empty = plan.leaves[0] if plan.leaves else int(np.argmax(r.cluster < 0))
        if not plan.leaves and r.cluster[empty] >= 0:
            raise InputError(f"region: more than {len(r.cluster)} jobs; expected most_jobs to be larger")
        kernels.carry_out(r, empty, gpus, LEVELS - 1 - level, now_s)
        if plan.leaves:
            self._refused[:, level + 1 :] = np.iinfo(np.int64).max
        return empty, plan

    def end(self, slot: int) -> None:
        """A job ends: its GPUs are free, and what was refused may fit now."""
        if not (0 <= slot < len(self._region.cluster) and self._region.cluster[slot] >= 0):
            raise InputError(f"slot {slot}: expected that of a job that runs")
        kernels.stop(self._region, slot)
        self._refused[:] = np.iinfo(np.int64).max


def _empty(gpu_type: list[int], machine_gpus: list[np.ndarray], rack: list[np.ndarray], slots: int) -> kernels.Region:
    counts = [len(gpus) for gpus in machine_gpus]
    free = np.concatenate(machine_gpus).astype(np.int64)
    widest, clusters, jobs = max(counts), len(counts), min(slots, int(max(gpus.sum() for gpus in machine_gpus)))
    whole = {
        "cluster": (slots,),
        "importance": (slots,),
        "gpus": (slots,),
        "width": (slots,),
        "machine": (slots, widest),
        "share": (slots, widest),
        "by_size": (clusters, jobs),
        "by_start": (clusters, jobs),
        "running": (clusters,),
        "release": (LEVELS,),
        "room": (len(free),),
        "leaving": (jobs,),
        "chosen": (widest,),
        "taken": (widest,),
        "plan": (3,),
    }
    arrays = {name: np.zeros(shape, np.int64) for name, shape in whole.items()}
    arrays["cluster"][:] = -1
    return kernels.Region(
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        gpu_type=np.array(gpu_type, np.int64),
        rack=np.concatenate(rack).astype(np.int64),
        free=free,
        spare=np.array([gpus.sum() for gpus in machine_gpus], np.int64),
        start_s=np.zeros(slots),
        score=np.zeros(1),
        **arrays,
    )
