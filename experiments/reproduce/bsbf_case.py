"""One run of paper sjf-bsbf's experiments: a policy on a workload whose jobs may share GPUs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...policies import Policy, make
from ...policies.pollux import Pollux
from ...simulator.cluster.topology import Topology
from ...simulator.elastic.applications import fitted_applications
from ...simulator.elastic.elastic import TrainingPace
from ...simulator.engine.simulator import Simulator
from ...simulator.profiles.throughput import GPU_MEMORY_BYTES
from ...simulator.sharing.sharing_model import GIB, Sharing
from ...simulator.workloads import Workload, open_workload
from .sweep import Configured

JOBS_PER_GPU = 2
NO_LIMIT = "none"
# The paper's Eq. 4 has one time of communication a job, wherever its GPUs lie; ours can charge what was measured.
NETWORKS = {"paper": "none", "measured": "allreduce:calibration=measured,gpu={gpu}"}


@dataclass(frozen=True)
class SharedCase(Configured):
    """One run.

    Attributes:
        policy, topology: words.
        workload: a generator with all its parameters, its seed included.
        gpu: GPU type: its fits say what gradient accumulation costs, its memory what fits beside what.
        interference: preset of `Sharing`; it changes nothing for policies that do not share.
        memory: what `Sharing` assumes of models whose needs were not measured, or `none`: no limit of memory.
        net: a key of NETWORKS: whether a gang that lies spread pays for it.
        seed: of policies that draw.
    """

    policy: str
    topology: str
    workload: str
    gpu: str
    interference: str = "measured"
    memory: str = "assumed"
    net: str = "measured"
    seed: int = 0

    def columns(self) -> Mapping[str, Any]:
        """Play it."""
        policy = make(self.policy)
        simulator = shared_simulator(self, policy)
        simulator.run(policy if policy.rule is None else None)
        jobs, s = simulator.jobs(), simulator.state
        metrics = simulator.metrics() | {"shared_rate": float(s.shared_integral / s.busy_integral)}
        return {
            "metrics": metrics,
            "jct_s": jobs["jct_s"],
            "queued_s": jobs["queueing_delay_s"],
            "alone_s": jobs["duration_s"],
            "gpus": simulator.workload.gpus.astype(np.float64),  # of the table: those that an elastic job had last
            "model": [str(name) for name in jobs["model"]],
        }

    def outcome(self, held: Mapping[str, Any]) -> SharedOutcome:
        """What a file of it holds."""
        return SharedOutcome(**{**held, "model": np.array(held["model"], dtype=str)})


@dataclass(frozen=True, eq=False)
class SharedOutcome:
    """What a run gave; arrays of shape (jobs,), in order of arrival.

    Attributes:
        metrics: by the names of `simulator/engine/metrics.py`, and `shared_rate`: of the time that a GPU is held, the
            share in which two jobs hold it.
        jct_s, queued_s, alone_s: completion time, time without GPUs, isolated run time; seconds.
        gpus: asked.
        model: names.
    """

    metrics: dict[str, float]
    jct_s: np.ndarray
    queued_s: np.ndarray
    alone_s: np.ndarray
    gpus: np.ndarray
    model: np.ndarray


def shared_simulator(case: SharedCase, policy: Policy) -> Simulator:
    """The simulator of a case, at the first decision."""
    simulator = Simulator(
        case.topology,
        NETWORKS[case.net].format(gpu=case.gpu),
        rule=policy.rule,
        sharing=_sharing(case),
        pace=_pace(case, policy),
    )
    simulator.reset(case_workload(case), case.seed)
    return simulator


def _sharing(case: SharedCase) -> Sharing:
    if case.memory == NO_LIMIT:
        return Sharing(JOBS_PER_GPU, case.interference, None, case.gpu)
    limit_gb = GPU_MEMORY_BYTES[case.gpu] / GIB
    return Sharing(JOBS_PER_GPU, case.interference, limit_gb, case.gpu, memory=case.memory)


def _pace(case: SharedCase, policy: Policy) -> TrainingPace | None:
    """Elastic jobs for Pollux, whose times are the same fits as everybody's."""
    if not isinstance(policy, Pollux):
        return None
    return TrainingPace(fitted_applications(case.gpu), interval_s=policy.clock.round)


def case_workload(case: SharedCase) -> Workload:
    """The jobs of a case."""
    return _workload(case.workload, case.topology)


@functools.lru_cache(maxsize=128)
def _workload(word: str, topology: str) -> Workload:
    return open_workload(word, cluster_gpus=Topology.load(topology).num_gpus)
