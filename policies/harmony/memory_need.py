"""How many machines a job needs for its memory, where nothing is spilled."""

from __future__ import annotations

import math

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GB, GroupConfig
from ...simulator.groups.group_view import GroupView
from ...simulator.jobs.workload import Workload


def machines_for(config: GroupConfig, raw_bytes: float, occupancy: float = 1.0) -> int:
    """The fewest machines whose memory so many raw bytes fill up to a share of it, > 0; at least 1."""
    used = config.expansion * raw_bytes
    machines = max(math.ceil(used / (config.ram_gb * GB * occupancy) * (1.0 - 1e-9)), 1)
    while used / (machines * config.ram_gb * GB) > occupancy:
        machines += 1
    return machines


def never_runs(workload: Workload, config: GroupConfig, machines: int) -> list[int]:
    """The jobs that run out of memory even alone on so many machines."""
    assert workload.ps is not None
    used = config.expansion * (workload.ps.input_bytes + workload.ps.model_bytes)
    found: list[int] = np.flatnonzero(used / (machines * config.ram_gb * GB) > 1.0).tolist()
    return found


def expect_room(policy: str, view: GroupView) -> None:
    """Nothing if every job fits into the memory of all machines.

    Raises:
        InputError: naming the first that does not.
    """
    machines = view.topology.num_machines
    for job in never_runs(view.workload, view.config, machines):
        needed = machines_for(view.config, view.input_bytes(job) + view.model_bytes(job))
        raise InputError(
            f"policy {policy}: job {view.workload.job_id[job]} needs the memory of {needed} machines, and there are "
            f"{machines}; expected more machines or more ram_gb"
        )
