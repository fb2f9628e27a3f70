"""Tiresias as Pollux's simulator plays it (OSDI'21 artifact): two queues in order of entry, looked at every round.

Jobs enter the first queue in order of arrival, at the first round at or past it. One whose rounds on GPUs x GPUs reach
the threshold goes to the end of the second. Through both queues, every job that still fits by number of GPUs runs; the
others lose theirs. A job that goes on keeps its GPUs; one that starts takes them from the machine with the most free
ones (lowest index), then from the next. Seconds in which a job restarts count as service. In contrast to `tiresias`, a
waiting job passes running ones that stand behind it in its own queue.
"""

from __future__ import annotations

import math

from ..simulator.decisions import Advance, Decision, Preempt, Start
from ..simulator.errors import InputError
from ..simulator.kernels.codes import RUNNING
from ..simulator.rules.rule import Rule
from ..simulator.view import ClusterView
from .base import Policy
from .pollux import is_round


class TiresiasRounds(Policy):
    """See the module.

    Args:
        round: seconds, > 0.
        preemption_cost: seconds without progress at a start.
        threshold: GPU-seconds.
    """

    def __init__(self, round: float = 60.0, preemption_cost: float = 30.0, threshold: float = 57600.0) -> None:
        if not 0.0 < round < math.inf:
            raise InputError(f"round = {round:g}: expected seconds > 0")
        if not threshold > 0.0:
            raise InputError(f"threshold = {threshold:g}: expected GPU-seconds > 0")
        self.name = "tiresias-rounds"
        self.clock = Rule("fifo", preemption_cost=(preemption_cost,), round=round)
        self.threshold = threshold
        self._run = self._instant = -1
        self._looked_s = 0.0
        self._plan: list[Decision] = []
        self._queues: tuple[list[int], list[int]] = ([], [])
        self._service_gpu_s: dict[int, float] = {}

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of the pass at this round; between rounds, none."""
        simulator = view.simulator
        simulator.use(self.clock)
        if self._run != simulator.runs:
            self._run, self._instant = simulator.runs, -1
            self._queues, self._service_gpu_s, self._looked_s = ([], []), {}, 0.0
        if self._instant != view.instant:
            self._instant = view.instant
            self._plan = self._pass(view) if is_round(view.now_s, self.clock.round) else []
        return self._plan.pop(0) if self._plan else Advance()

    def _pass(self, view: ClusterView) -> list[Decision]:
        s = view.simulator.state
        running = set(view.running.tolist())
        there = running | set(view.queue.tolist())
        for queue in self._queues:
            queue[:] = [job for job in queue if job in there]
        self._demote(view, sorted(running))
        for job in sorted(there - set(self._service_gpu_s)):
            self._service_gpu_s[job] = 0.0
            self._queues[0].append(job)
        room = view.topology.num_gpus
        runs = []
        for job in (*self._queues[0], *self._queues[1]):
            if s.gpus[job] <= room:
                room -= int(s.gpus[job])
                runs.append(job)
        stopped = running.difference(runs)
        free = set(view.free_gpus.tolist()).union(*(view.gpus_of(job) for job in stopped))
        plan: list[Decision] = [Preempt(job) for job in sorted(stopped)]
        started = [job for job in runs if s.status[job] != RUNNING]
        return plan + [Start(job, _emptiest(view, free, int(s.gpus[job]))) for job in started]

    def _demote(self, view: ClusterView, running: list[int]) -> None:
        """Account the rounds since the last pass, in which nothing was to be decided, as if each had been looked at."""
        s = view.simulator.state
        first, second = self._queues
        rounds = round((view.now_s - self._looked_s) / self.clock.round)
        self._looked_s = view.now_s
        for _ in range(rounds if running else 0):
            for job in running:
                self._service_gpu_s[job] += self.clock.round * float(s.gpus[job])
                if job in first and self._service_gpu_s[job] >= self.threshold:
                    first.remove(job)
                    second.append(job)


def _emptiest(view: ClusterView, free: set[int], gpus: int) -> list[int]:
    """Modify `free`: take GPUs from the machine with the most, then from the next."""
    machine_of = view.topology.gpu_machine
    by_machine: dict[int, list[int]] = {}
    for gpu in sorted(free):
        by_machine.setdefault(int(machine_of[gpu]), []).append(gpu)
    taken: list[int] = []
    for machine in sorted(by_machine, key=lambda index: (-len(by_machine[index]), index)):
        taken += by_machine[machine][: gpus - len(taken)]
    free.difference_update(taken)
    return taken
