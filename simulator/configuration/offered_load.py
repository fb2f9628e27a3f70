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
    """Run time of each job alone on the best placement of the empty cluster, seconds, float64 (n,).

    Raises:
        InputError: a network that does not load, or a job that it knows nothing about.
    """
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

    In regions GPUs count alone, not CPU machines, and are as many whatever their type: how fast jobs run on it says how
    long they hold them. Of PS jobs it is the machine-seconds of COMP over the machines, on any network.

    Args:
        workload: the jobs; their isolated times are those on this topology and network.
        network: text or an object; what `duration_s` means is up to it (network/isolated.py).
        speeds: in regions, how fast models are on types of units; None: on all as `duration_s` has it.
        slowest: all jobs are on the slowest types that they accept, not on the fastest: what a cluster is offered by
            those who accept several lies between both.

    Returns:
        None where all jobs arrive at once, or there are no GPUs.

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
