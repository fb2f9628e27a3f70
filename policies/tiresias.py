"""Tiresias: discretised two-dimensional least attained service, and placement by the skew of the model.

Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19, as paper dally and other
simulators describe it. Discretised 2D-LAS: W GPUs held for t seconds are W x t attained service; queues by thresholds
(3250 and 7200 GPU-seconds, as in the published code), first come first served inside a queue, no promotion. Placement:
"Tiresias consolidates jobs with high skew, while other jobs accept any resource offer they receive" (paper dally, Sec.
III-B; simulator/profiles/skew.py). A model of unknown skew counts as skewed; a warning says if all are unknown.

`tiresias-rounds` is Tiresias as Pollux's simulator plays it (OSDI'21 artifact): two queues in order of entry, looked at
every round. Jobs enter the first queue by arrival; a job whose rounds on GPUs x GPUs reach the threshold goes to the
end of the second. Through both queues, every job that still fits by number of GPUs runs; the others are stopped. A
running job keeps its GPUs; a new one takes them from the machine with the most free ones (lowest index), then from the
next. Seconds in which a job restarts count as service. Paper: tiresias, as in paper dally, Sec. III-B.
"""

from __future__ import annotations

from functools import partial

from ..simulator.base.decisions import Decision, Preempt, Start
from ..simulator.base.errors import InputError
from ..simulator.engine.view import ClusterView
from .ordered import las
from .planning import RoundPolicy

tiresias = partial(las, placer="skew", _name="tiresias")


class TiresiasRounds(RoundPolicy):
    """See the module; `threshold`: GPU-seconds. Paper: tiresias, two queues, as in the simulator of Pollux."""

    def __init__(self, round: float = 60.0, preemption_cost: float = 30.0, threshold: float = 57600.0) -> None:
        super().__init__("tiresias-rounds", round, preemption_cost)
        if not threshold > 0.0:
            raise InputError(f"policy tiresias-rounds: threshold = {threshold:g}: expected GPU-seconds > 0")
        self.threshold = threshold

    def begin(self, view: ClusterView) -> None:
        """Empty the queues."""
        self._looked_s = 0.0
        self._queues: tuple[list[int], list[int]] = ([], [])
        self._service_gpu_s: dict[int, float] = {}

    def plan(self, view: ClusterView) -> list[Decision]:
        """Preemptions, then starts, of one pass through both queues."""
        running = set(view.running.tolist())
        there = running | set(view.queue.tolist())
        for queue in self._queues:
            queue[:] = [job for job in queue if job in there]
        self._demote(view, sorted(running))
        for job in sorted(there - set(self._service_gpu_s)):
            self._service_gpu_s[job] = 0.0
            self._queues[0].append(job)
        room = view.topology.num_gpus - int(view.record["down_gpus"])
        runs = []
        for job in (*self._queues[0], *self._queues[1]):
            if view.gpus(job) <= room:
                room -= view.gpus(job)
                runs.append(job)
        stopped = running.difference(runs)
        free = set(view.free_gpus.tolist()).union(*(view.gpus_of(job) for job in stopped))
        stops: list[Decision] = [Preempt(job) for job in sorted(stopped)]
        started = [job for job in runs if job not in running]
        return stops + [Start(job, _emptiest(view, free, view.gpus(job))) for job in started]

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The job's queue and its service."""
        if not isinstance(decision, Start | Preempt):
            return ""
        queue = next((number for number, jobs in enumerate(self._queues) if decision.job in jobs), 0)
        words = f"queue {queue}, {self._service_gpu_s.get(decision.job, 0.0):,.0f} GPU-seconds in rounds"
        return f"{words}; those before it need its GPUs" if isinstance(decision, Preempt) else words

    def _demote(self, view: ClusterView, running: list[int]) -> None:
        """Account the rounds since the last pass, each as if it had been looked at."""
        first, second = self._queues
        rounds = round((view.now_s - self._looked_s) / self.clock.round)
        self._looked_s = view.now_s
        for _ in range(rounds if running else 0):
            for job in running:
                self._service_gpu_s[job] += self.clock.round * view.gpus(job)
                if job in first and self._service_gpu_s[job] >= self.threshold:
                    first.remove(job)
                    second.append(job)


def _emptiest(view: ClusterView, free: set[int], gpus: int) -> list[int]:
    """Modify `free`: take GPUs from the machine with the most free ones, then from the next."""
    machine_of = view.topology.gpu_machine
    by_machine: dict[int, list[int]] = {}
    for gpu in sorted(free):
        by_machine.setdefault(int(machine_of[gpu]), []).append(gpu)
    taken: list[int] = []
    for machine in sorted(by_machine, key=lambda index: (-len(by_machine[index]), index)):
        taken += by_machine[machine][: gpus - len(taken)]
    free.difference_update(taken)
    return taken
