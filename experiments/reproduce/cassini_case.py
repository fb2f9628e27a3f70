"""One run of paper cassini's traces: a scheduler on jobs that share links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...policies import make
from ..evaluate import Setting, simulator_of, workload_of
from .sweep import Configured

ENVIRONMENT = "clustergym/TimeShift-v0"


@dataclass(frozen=True)
class TraceCase(Configured):
    """One run.

    Attributes:
        policy, topology, workload, network: words.
        seed: of the workload, and of policies that draw.
    """

    policy: str
    topology: str
    workload: str
    network: str = "contention"
    seed: int = 0

    def columns(self) -> Mapping[str, Any]:
        """Play it."""
        setting = Setting(ENVIRONMENT, self.topology, self.workload, self.network)
        policy = make(self.policy)
        simulator = simulator_of(setting, policy)
        workload = workload_of(setting, self.seed)
        simulator.reset(workload, self.seed)
        simulator.run(policy if policy.rule is None else None)
        s, jobs = simulator.state, len(workload)
        rounds = s.job_rounds[:jobs]
        # Of a job that never was in the network no iterations are counted: it ran as if alone.
        mean_s = np.where(rounds > 0, s.job_rounds_s[:jobs] / np.maximum(rounds, 1), workload.iteration_s)
        return {
            "metrics": simulator.metrics(),
            "slowdown": mean_s / workload.iteration_s,
            "congestion_bytes": s.job_congestion[:jobs].copy(),
            "model": [str(name).partition("/")[0] for name in workload.model],
        }

    def outcome(self, held: Mapping[str, Any]) -> TraceOutcome:
        """What a file of it holds."""
        return TraceOutcome(**{**held, "model": np.array(held["model"], dtype=str)})


@dataclass(frozen=True, eq=False)
class TraceOutcome:
    """What a run gave; arrays of shape (jobs,), in order of arrival.

    Attributes:
        metrics: by the names of `simulator/engine/metrics.py`.
        slowdown: each job's mean iteration time, over that alone at its best placement.
        congestion_bytes: each job's part of the congestion.
        model: names, without how they are parallelised.
    """

    metrics: dict[str, float]
    slowdown: np.ndarray
    congestion_bytes: np.ndarray
    model: np.ndarray

    def congestion_of(self, model: str) -> float:
        """Congestion of all jobs of a model, bytes."""
        return float(self.congestion_bytes[self.model == model].sum())
