"""A cluster between two decisions of one instant: a view, and decisions after it. Nothing is simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...simulator.base.decisions import Decision, Migrate, Preempt, Start
from ...simulator.base.tiers import MACHINE, NETWORK, RACK
from ...simulator.engine.view import ClusterView


class MidInstant:
    """The state of a view; `follow` applies a decision. `stopped`: jobs that lost their GPUs since."""

    def __init__(self, view: ClusterView) -> None:
        self.view, self.s = view, view.record
        self.machine_free, self.rack_free = view.free_by_machine.copy(), view.free_by_rack.copy()
        self.waiting = set(view.queue.tolist())
        self.stopped: set[int] = set()
        self._load = view.load.copy()
        self._gangs: dict[int, tuple[int, ...]] = {}

    @property
    def free(self) -> int:
        """Free GPUs."""
        return int(self.machine_free.sum())

    def name(self, job: int) -> str:
        """The job's name in the workload."""
        return str(self.view.workload.job_id[job])

    def names(self, jobs: Sequence[int]) -> str:
        """Names of jobs, the first few of many."""
        shown = ", ".join(self.name(job) for job in jobs[:FEW])
        return f"{shown} and {len(jobs) - FEW} more" if len(jobs) > FEW else shown

    def gang(self, job: int) -> tuple[int, ...]:
        """The GPUs of a job."""
        return self._gangs[job] if job in self._gangs else tuple(self.view.gpus_of(job))

    def jobs_on(self, gpu: int) -> list[int]:
        """The jobs on a GPU, ascending."""
        before = {job for job in self.view.jobs_on(gpu) if job not in self._gangs}
        return sorted(before | {job for job, gpus in self._gangs.items() if gpu in gpus})

    def waited_s(self, job: int) -> float:
        """Seconds since a waiting job arrived or lost its GPUs."""
        return 0.0 if job in self.stopped else self.view.waited_s(job)

    def tier(self, gpus: Sequence[int]) -> int:
        """MACHINE, RACK or NETWORK: the innermost tier that holds the GPUs."""
        machines = self.machines(gpus)
        if len(machines) == 1:
            return MACHINE
        return RACK if len(self._racks(machines)) == 1 else NETWORK

    def machines(self, gpus: Sequence[int]) -> np.ndarray:
        """The machines of GPUs."""
        return np.unique(self.view.topology.gpu_machine[list(gpus)])

    def place(self, gpus: Sequence[int]) -> str:
        """The span of GPUs, in words."""
        machines = self.machines(gpus)
        racks = len(self._racks(machines))
        if len(machines) == 1:
            return "one machine"
        return f"{len(machines)} machines of {'one rack' if racks == 1 else f'{racks} racks'}"

    def _racks(self, machines: np.ndarray) -> np.ndarray:
        return np.unique(self.view.topology.machine_rack[machines])

    def best_tier(self, job: int) -> int:
        """The innermost tier that can hold a job."""
        need = self.view.gpus(job)
        if need <= int(self.s["largest_machine"]):
            return MACHINE
        return RACK if need <= int(self.s["largest_rack"]) else NETWORK

    def has_room(self, job: int, tier: int) -> bool:
        """Whether a machine, a rack or the cluster has enough free GPUs for a job."""
        need = self.view.gpus(job)
        most = {MACHINE: self.machine_free, RACK: self.rack_free}.get(tier)
        return need <= (self.free if most is None else int(most.max()))

    def soonest_s(self, job: int, tier: int) -> float:
        """When a machine or rack will have enough free GPUs, not shared ones, if running jobs end as planned."""
        view, s, need = self.view, self.s, self.view.gpus(job)
        free = (self.machine_free if tier == MACHINE else self.rack_free).copy()
        if need <= int(free.max()):
            return view.now_s
        area_of = (
            view.topology.gpu_machine if tier == MACHINE else view.topology.machine_rack[view.topology.gpu_machine]
        )
        running = [one for one in view.running.tolist() if one not in self._gangs]
        for one in sorted(running, key=lambda one: (float(s["planned_finish_s"][one]), one)):
            gpus = [gpu for gpu in view.gpus_of(one) if self._load[gpu] == 1]
            np.add.at(free, area_of[gpus], 1)
            if need <= int(free.max()):
                return float(s["planned_finish_s"][one])
        return math.inf

    def follow(self, decision: Decision) -> None:
        """Apply a decision."""
        if isinstance(decision, Preempt | Migrate):
            self._give(decision.job, self.gang(decision.job), -1)
        if isinstance(decision, Start | Migrate):
            self._give(decision.job, decision.gpus, 1)
            self._gangs[decision.job] = decision.gpus
            self.waiting.discard(decision.job)
        elif isinstance(decision, Preempt):
            self._gangs[decision.job] = ()
            self.waiting.add(decision.job)
            self.stopped.add(decision.job)

    def _give(self, job: int, gpus: Sequence[int], by: int) -> None:
        at = np.array(gpus, np.int64)
        was_free = self._load[at] == 0
        self._load[at] += by
        changed = at[was_free != (self._load[at] == 0)]
        machines = self.view.topology.gpu_machine[changed]
        np.subtract.at(self.machine_free, machines, by)
        np.subtract.at(self.rack_free, self.view.topology.machine_rack[machines], by)


FEW = 3
