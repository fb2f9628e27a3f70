"""A set of workload parameters played under the policies of paper sjf-bsbf that share no GPU: one case of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.cluster.topology import Topology
from ...simulator.workloads import open_workload
from .bsbf_case import SharedCase
from .bsbf_published import LARGE_GPUS
from .sweep import Configured

EXCLUSIVE = ("fifo", "sjf", "tiresias")
HOUR_S = 3600.0


@dataclass(frozen=True)
class Reading:
    """How the paper's exclusive policies are read.

    Attributes:
        head: whether a job that does not fit blocks those behind it (strict) or not (skip).
        placer: consolidated: a gang waits for one machine, or for wholly free ones; tier: it takes any GPUs.
        thresholds: GPU-seconds, of Tiresias' queues.
        cost_s: seconds that a job loses that Tiresias stopped.
    """

    head: str = "strict"
    placer: str = "consolidated"
    thresholds: str = "57600"
    cost_s: int = 30

    def word(self, policy: str) -> str:
        """The policy with its parameters."""
        parameters = f"{policy}:head={self.head},placer={self.placer}"
        if policy != "tiresias":
            return parameters
        return f"{parameters},thresholds={self.thresholds},preemption_cost={self.cost_s}"


@dataclass(frozen=True)
class Candidate(Configured):
    """One set of parameters under one reading.

    Attributes:
        workload: a generator with all its parameters but the number of jobs and the seed.
        topology, gpu: of the cluster.
        jobs: the numbers of jobs that it is played with.
        seeds: of the workloads.
        by_class: the numbers are the mean completion times of all, large and small jobs, in hours; else the makespan
            and the mean completion time, in seconds.
        reading: of the policies.
    """

    workload: str
    topology: str
    gpu: str
    jobs: tuple[int, ...]
    seeds: tuple[int, ...]
    by_class: bool
    reading: Reading = Reading()

    def columns(self) -> Mapping[str, Any]:
        """Play it."""
        gpus = Topology.load(self.topology).num_gpus
        numbers, loads = [], []
        for count in self.jobs:
            words = [f"{self.workload},jobs={count},seed={seed}" for seed in self.seeds]
            for policy in EXCLUSIVE:
                numbers.append(np.mean([self._numbers(policy, word) for word in words], axis=0))
            loads.append(np.mean([open_workload(word).offered_load(gpus) for word in words]))
        return {"numbers": np.concatenate(numbers), "loads": np.array(loads)}

    def outcome(self, held: Mapping[str, Any]) -> Played:
        """What a file of it holds."""
        return Played(**held)

    def _numbers(self, policy: str, workload: str) -> list[float]:
        found = SharedCase(self.reading.word(policy), self.topology, workload, self.gpu).columns()
        jct_s, large = found["jct_s"], found["gpus"] > LARGE_GPUS
        if not self.by_class:
            return [found["metrics"]["makespan"], jct_s.mean()]
        return [some.mean() / HOUR_S for some in (jct_s, jct_s[large], jct_s[~large])]


@dataclass(frozen=True, eq=False)
class Played:
    """Means over workloads.

    Attributes:
        numbers: by number of jobs, then policy (EXCLUSIVE), then column.
        loads: offered load by number of jobs.
    """

    numbers: np.ndarray
    loads: np.ndarray
