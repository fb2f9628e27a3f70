"""Runs of paper sjf-bsbf's experiments: a policy on a workload whose jobs may share GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....simulator.cluster.topology import Topology
from ....simulator.profiles.throughput import GPU_MEMORY_BYTES
from ....simulator.sharing.sharing_model import GIB
from ....simulator.workloads import open_workload
from ...settings.evaluation_setting import Setting
from ..case import Case
from .bsbf_published import LARGE_GPUS

NO_LIMIT = "none"
# The paper's Eq. 4 has one time of communication a job, wherever its GPUs lie; ours can charge what was measured.
NETWORKS = {"paper": "none", "measured": "allreduce:calibration=measured,gpu={gpu}"}
HOUR_S = 3600.0


def shared_case(
    policy: str,
    topology: str,
    workload: str,
    gpu: str = "2080ti",
    interference: str = "measured",
    memory: str = "assumed",
    net: str = "measured",
    seed: int = 0,
) -> Case:
    """One run of `shared`.

    Args:
        policy: its word.
        topology: of the cluster.
        workload: a generator with all its parameters, its seed included.
        gpu: GPU type: its fits say what gradient accumulation costs, its memory what fits beside what.
        interference: preset of `Sharing`; it changes nothing for policies that do not share.
        memory: what `Sharing` assumes of models whose needs were not measured, or `none`: no limit of memory.
        net: a key of NETWORKS: whether a gang that lies spread pays for it.
        seed: of policies that draw.
    """
    limit = {"memory_gb": None} if memory == NO_LIMIT else {"memory_gb": GPU_MEMORY_BYTES[gpu] / GIB, "memory": memory}
    network = NETWORKS[net].format(gpu=gpu)
    told: dict[str, Any] = {"jobs_per_gpu": 2, "interference": interference, "gpu": gpu, **limit}
    return Case(
        policy, Setting.of("clustergym/Sharing-v0", topology, workload, network, **told), seed, "bsbf.bsbf_case:shared"
    )


def shared(case: Case) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    Metrics with `shared_rate`: of the time that a GPU is held, the share in which two jobs hold it. `jct_s`,
    `queued_s`, `alone_s`: completion time, time without GPUs, isolated run time, seconds; `gpus`, asked; `model`.
    """
    simulator, policy = case.begun()
    simulator.run(policy.decider(simulator))
    jobs, s = simulator.jobs(), simulator.state
    return {
        "metrics": simulator.metrics() | {"shared_rate": float(s.shared_integral / s.busy_integral)},
        "jct_s": jobs["jct_s"],
        "queued_s": jobs["queueing_delay_s"],
        "alone_s": jobs["duration_s"],
        "gpus": simulator.workload.gpus.astype(np.float64),  # of the table: those that an elastic job had last
        "model": [str(name) for name in jobs["model"]],
    }


def calibrated(
    case: Case, policies: Sequence[str], jobs: Sequence[int], seeds: Sequence[int], by_class: bool
) -> Mapping[str, Any]:
    """Play parameters of a workload, with every number of jobs, under policies that share no GPU.

    Returns `numbers`, means over workloads by number of jobs, then policy, then column; `loads`, by number of jobs.

    Args:
        case: its workload has all parameters but the number of jobs and the seed.
        policies: words.
        jobs: the numbers of jobs that it is played with.
        seeds: of the workloads.
        by_class: the numbers are the mean completion times of all, large and small jobs, in hours; else the makespan
            and the mean completion time, in seconds.
    """
    gpus = Topology.load(case.setting.topology).num_gpus
    numbers, loads = [], []
    for count in jobs:
        words = [f"{case.setting.workload},jobs={count},seed={seed}" for seed in seeds]
        for policy in policies:
            found = [shared(case.on(policy, workload=word)) for word in words]
            numbers.append(np.mean([_numbers(one, by_class) for one in found], axis=0))
        loads.append(np.mean([open_workload(word).offered_load(gpus) for word in words]))
    return {"numbers": np.concatenate(numbers), "loads": np.array(loads)}


def _numbers(found: Mapping[str, Any], by_class: bool) -> list[float]:
    jct_s, large = found["jct_s"], found["gpus"] > LARGE_GPUS
    if not by_class:
        return [found["metrics"]["makespan"], jct_s.mean()]
    return [some.mean() / HOUR_S for some in (jct_s, jct_s[large], jct_s[~large])]
