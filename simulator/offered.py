"""What a workload offers to a cluster: the one definition of load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .network import Network, load_network, on_topology
from .network.isolated import iteration_times_s

if TYPE_CHECKING:
    import numpy as np

    from .topology import Topology
    from .workloads.schema import Workload


def isolated_s(workload: Workload, topology: Topology, network: Network | str = "none") -> np.ndarray:
    """Run time of each job alone on the best placement of the empty cluster, seconds, float64 (n,).

    Raises:
        InputError: a network that does not load, or a job that it knows nothing about.
    """
    network = on_topology(load_network(network), topology)
    profile, factors = network.tier_factors(workload, topology)
    return workload.iterations * iteration_times_s(network, workload, topology, profile, factors)[1]


def offered_load(workload: Workload, topology: Topology, network: Network | str = "none") -> float | None:
    """GPU-seconds per second that arrive, each job as it runs alone, over the GPUs of the cluster.

    The jobs that are there at the first arrival are a backlog, or where the clock starts: what the others ask is
    divided by the span from the first arrival to the last. In regions GPUs count alone, not CPU machines.

    Args:
        workload: the jobs; their isolated times are those on this topology and network.
        topology: the cluster.
        network: text or an object; what `duration_s` means is up to it (network/isolated.py).

    Returns:
        None where all jobs arrive at once, or there are no GPUs.

    Raises:
        InputError: see `isolated_s`.
    """
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0])
    gpus = topology.num_gpus - topology.num_cpu_machines
    if span_s == 0.0 or gpus == 0:
        return None
    asked = workload.gpus if workload.geo is None else workload.geo.asked[:, 0]
    later = workload.arrival_s > workload.arrival_s[0]
    return float((asked * isolated_s(workload, topology, network))[later].sum() / (gpus * span_s))
