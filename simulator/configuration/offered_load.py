"""What a workload offers to a cluster, on a network: `Workload.offered_load`, each job as it runs alone there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..network.isolated import gang_factors, iteration_times_s
from .network_choice import Network, load_network, on_topology

if TYPE_CHECKING:
    import numpy as np

    from ..cluster.topology import Topology
    from ..jobs.workload import Workload
    from .unit_speeds import UnitSpeeds


def isolated_s(workload: Workload, topology: Topology, network: Network | str = "none") -> np.ndarray:
    """Run time of each job alone, placed best, seconds, float64 (n,); InputError: a bad network, an unknown job."""
    network = on_topology(load_network(network), topology)
    profile, factors = gang_factors(network, workload, topology)
    return workload.iterations * iteration_times_s(network, workload, topology, profile, factors)[1]


def offered_load(
    workload: Workload,
    topology: Topology,
    network: Network | str = "none",
    speeds: UnitSpeeds | None = None,
    slowest: bool = False,
) -> float | None:
    """GPU-seconds per second that arrive, each job as it runs alone, over the GPUs of the cluster.

    In regions only GPUs count, all types alike; speeds change how long jobs hold them. For PS jobs it is the
    machine-seconds of COMP over the machines, on any network. None: all jobs arrive at once, or there are no GPUs.

    Args:
        network: text or an object; it decides what `duration_s` means (network/isolated.py).
        speeds: in regions, speeds of models on types of units; None: `duration_s` on all.
        slowest: jobs are on the slowest types that they accept, not the fastest. The true load lies between both.

    Raises:
        InputError: see `isolated_s` and `UnitSpeeds.rows`.
    """
    gpus = topology.num_gpus - topology.num_cpu_machines if workload.ps is None else topology.num_machines
    if gpus == 0:
        return None
    run_s = isolated_s(workload, topology, network) if workload.ps is None else None
    if speeds is not None:
        row, speed = speeds.rows(workload)
        geo = workload.geo
        assert geo is not None  # else there are no rows
        run_s = run_s / (geo.slowest if slowest else geo.fastest)(speed[row])
    load = workload.offered_load(gpus, run_s)
    return load if math.isfinite(load) else None
