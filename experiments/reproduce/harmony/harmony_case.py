"""Runs of paper harmony's evaluation: a policy, jobs on parameter servers, and their machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....policies import Policy
from ....simulator.base.errors import Stalled
from ....simulator.groups.group_config import GroupClusterConfig, GroupConfig
from ....simulator.groups.group_simulator import GroupSimulator
from ...settings.evaluation_setting import Setting
from ..case import Case


def group_case(policy: str, workload: str, config: str = "", machines: int = 100, seed: int = 0) -> Case:
    """One run of `grouped`.

    Args:
        policy: its word.
        workload: a generator with all its parameters and its seed.
        config: words of `GroupConfig`.
        machines: of the cluster.
        seed: of errors in what is measured, of durations, and of policies that draw.
    """
    cluster = GroupClusterConfig.of(f"harmony:machines={machines}", groups=GroupConfig.load(config))
    setting = Setting("clustergym/Grouping-v0", workload, cluster)
    return Case(policy, setting, seed, "harmony.harmony_case:grouped")


def grouped(case: Case) -> Mapping[str, Any]:
    """Play it.

    Metrics with `alpha_mean`, `alpha_least`, `alpha_most`: share of its input that an executed job has on disk, over
    time; `decisions`: instants at which something was decided; `stalled`: 1: jobs were left that could never run, and
    there is nothing else. `jct_s`, (jobs,), in order of arrival; `group_size`, `group_machines`, (groups,), jobs and
    machines of each of all different groups that were decided on; `group_job`: their jobs, one group after another;
    `use_s`, (p,), decision points and the end; `cpu_use`, `network_use`, (p,), shares of all machines' from each on.
    """
    simulator, policy = case.begun()
    decider = policy.decider(simulator)
    assert decider is not None
    seen = _Seen(simulator)
    try:
        _play(simulator, decider, seen)
    except Stalled:
        return {"metrics": {"stalled": 1.0}, "jct_s": np.zeros(0), **seen.columns()}
    metrics = {**simulator.metrics(), **seen.metrics(), "stalled": 0.0}
    return {"metrics": metrics, "jct_s": simulator.jobs()["jct_s"], **seen.columns()}


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
        for decision in simulator.asked(policy):
            simulator.apply(decision)
            decided = 1
        seen.decided += decided
        seen.look(simulator)
        since_s = simulator.view.now_s
        simulator.advance()
        seen.passed(simulator, since_s)
