"""One run of paper harmony's evaluation: a policy, jobs on parameter servers, 100 machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...policies import Policy
from ...policies.registry import make_for
from ...simulator.base.decisions import Advance
from ...simulator.base.errors import Stalled
from ...simulator.groups.group_simulator import GroupSimulator
from ...simulator.workloads import Workload, open_workload
from .harmony_executor import Group
from .sweep import Configured

ENVIRONMENT = "clustergym/Grouping-v0"


@dataclass(frozen=True)
class GroupCase(Configured):
    """One run.

    Attributes:
        policy: its word.
        workload: a generator with all its parameters and its seed.
        config: words of `GroupConfig`.
        machines: of the cluster.
        seed: of errors in what is measured, of durations, and of policies that draw.
    """

    policy: str
    workload: str
    config: str = ""
    machines: int = 100
    seed: int = 0

    def columns(self) -> Mapping[str, Any]:
        """Play it."""
        simulator = GroupSimulator(f"harmony:machines={self.machines}", self.config)
        simulator.reset(case_workload(self.workload), self.seed)
        policy = make_for(self.policy, ENVIRONMENT).decider(simulator)
        assert policy is not None
        seen = _Seen(simulator)
        try:
            _play(simulator, policy, seen)
        except Stalled:
            return {"metrics": {"stalled": 1.0}, "jct_s": np.zeros(0), **seen.columns()}
        metrics = {**simulator.metrics(), **seen.metrics(), "stalled": 0.0}
        return {"metrics": metrics, "jct_s": simulator.jobs()["jct_s"], **seen.columns()}

    def outcome(self, held: Mapping[str, Any]) -> GroupOutcome:
        """What a file of it holds."""
        return GroupOutcome(**held)


@dataclass(frozen=True, eq=False)
class GroupOutcome:
    """What a run gave.

    Attributes:
        metrics: by the names of `simulator/groups/group_metrics.py`; `alpha_mean`, `alpha_least`, `alpha_most`: share
            of its input that an executed job has on disk, over time; `decisions`: instants at which something was
            decided; `stalled`: 1: jobs were left that could never run, and there is nothing else.
        jct_s: (jobs,), in order of arrival.
        group_size, group_machines: (groups,), jobs and machines of each of all different groups that were decided on.
        group_job: their jobs, one group after another.
        use_s: (p,), decision points and the end.
        cpu_use, network_use: (p,), shares of all machines' from each of them on.
    """

    metrics: dict[str, float]
    jct_s: np.ndarray
    group_size: np.ndarray
    group_machines: np.ndarray
    group_job: np.ndarray
    use_s: np.ndarray
    cpu_use: np.ndarray
    network_use: np.ndarray

    @property
    def has_run(self) -> bool:
        """Whether every job could run."""
        return not self.metrics["stalled"]

    def groups(self, workload: Workload) -> list[Group]:
        """The groups that were decided on; `workload` is that of the case."""
        ps = workload.ps
        assert ps is not None
        members = np.split(self.group_job.astype(np.int64), np.cumsum(self.group_size.astype(np.int64))[:-1])
        return [
            Group(ps.comp_machine_s[jobs], ps.comm_s[jobs], ps.input_bytes[jobs], ps.model_bytes[jobs], int(machines))
            for jobs, machines in zip(members, self.group_machines, strict=True)
        ]


@lru_cache(maxsize=64)
def case_workload(word: str) -> Workload:
    """The jobs of a case."""
    return open_workload(word)


class _Seen:
    """What is looked at while a run is played."""

    def __init__(self, simulator: GroupSimulator) -> None:
        self.meter = simulator.meter
        self.found: dict[tuple[tuple[int, ...], int], None] = {}
        self.decided = 0
        self.alpha_s = self.job_s = 0.0
        self.least, self.most = np.inf, 0.0

    def look(self, simulator: GroupSimulator) -> None:
        """At the groups that are to be."""
        view = simulator.view
        for group in view.groups.tolist():
            self.found[tuple(view.members(group)), view.machines_of(group)] = None

    def passed(self, simulator: GroupSimulator, since_s: float) -> None:
        """At the jobs that were executed until now."""
        view, s = simulator.view, simulator.state
        jobs = [job for job in view.running.tolist() if view.is_executed(job)]
        if jobs:
            alpha, elapsed_s = s.alpha[jobs], float(s.now_s) - since_s
            self.alpha_s += elapsed_s * float(alpha.sum())
            self.job_s += elapsed_s * len(jobs)
            self.least, self.most = min(self.least, float(alpha.min())), max(self.most, float(alpha.max()))

    def metrics(self) -> dict[str, float]:
        mean = self.alpha_s / self.job_s if self.job_s else 0.0
        return {
            "alpha_mean": mean,
            "alpha_least": min(self.least, self.most),
            "alpha_most": self.most,
            "decisions": float(self.decided),
        }

    def columns(self) -> dict[str, np.ndarray]:
        use = self.meter.over_time()
        return {
            "group_size": np.array([len(members) for members, _ in self.found], np.float64),
            "group_machines": np.array([machines for _, machines in self.found], np.float64),
            "group_job": np.array([job for members, _ in self.found for job in members], np.float64),
            "use_s": use.time_s,
            "cpu_use": use.cpu,
            "network_use": use.network,
        }


def _play(simulator: GroupSimulator, policy: Policy, seen: _Seen) -> None:
    while not simulator.ended:
        decided = 0
        while not isinstance(decision := policy.decide(simulator.view), Advance):
            simulator.apply(decision)
            decided = 1
        seen.decided += decided
        seen.look(simulator)
        since_s = simulator.view.now_s
        simulator.advance()
        seen.passed(simulator, since_s)
