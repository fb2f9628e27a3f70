"""`mast`: regions with hardware as uneven as in paper mast's Figure 2, at any scale.

Published: a region has several dynamic clusters, "typically" of GPU and CPU machines (Sec. 2), about 20 clusters in one
of 20,000 GPUs (Sec. 4.3.1); as many CPU machines as GPUs are in use, O(100,000) each (Sec. 5.1); GPUs and storage are
uneven over the regions; there are slightly more CPU machines for ML than needed (Sec. 5.2). Hence all clusters have the
same ratio of CPU machines to GPUs; the CPUs of Figure 2 also serve everything else. Assumed: unevenness and types as in
mast_data.py; a region's GPUs are spread evenly over its types; machines of 8 GPUs, racks of 16 machines. Storage is 0.2
TB a GPU, some five times the tables that a day at load 1 reads (mast_jobs.py); the links have 400 Gbps between regions
of 5,000 GPUs, and in proportion for others.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..base.errors import InputError
from ..cluster.region_hardware import MOST_REGIONS, Clusters, RegionHardware
from ..cluster.topology import Topology, preset
from .job_families import MACHINE_GPUS
from .mast_data import GPU_TYPES, gpu_hosts, uneven_shares

RACK_MACHINES = 16
MOST_UNITS = 1_000_000
REGION_CLUSTERS = 3  # of a region of the mean size, where GPUs allow it
LARGEST_CLUSTER = (32, 1024)  # of the largest clusters, at least and at most, where it is not given
GBPS_PER_GPU = 400.0 / 5000.0
STORAGE_TB_PER_GPU = 0.2
GIGABIT, TERABYTE = 1e9 / 8.0, 1e12


@preset("mast")
def mast(
    regions: int = 4,
    gpus: int = 256,
    cpu_machines: int | None = None,
    largest_cluster: int | None = None,
    storage_tb: float | None = None,
    wan_gbps: float | None = None,
    egress_gbps: float | None = None,
    ingress_gbps: float | None = None,
    seed: int = 0,
) -> Topology:
    """Regions with uneven hardware, storage and links between them, as paper mast, Sec. 2, Figure 2, describes them.

    Assumptions: this module. Clusters of CPU machines have the type "CPU" and one unit a machine; the GPU types are
    V100, A100 and H100. `regions`: 1 to 64. `gpus`: of all, a multiple of 8. `cpu_machines`: of all; none: as many as
    GPUs. `largest_cluster`: its GPUs; none: a region of the mean size has three, of 32 to 1,024. `storage_tb`: of all
    regions; none: 0.2 a GPU. `wan_gbps`: from each region to each other; none: 0.08 x gpus / regions. `egress_gbps`,
    `ingress_gbps`: of all links from a region, and to it; none: their sum. `seed`: of the shares and the GPU types.
    InputError: a parameter out of range, or too few GPUs for all types of a region. Setting: mast, Figure 2; Sec. 2.
    """
    world = mast_hardware(regions, gpus, cpu_machines, largest_cluster, storage_tb, wan_gbps, seed)
    ends = _caps("egress_gbps", egress_gbps, regions), _caps("ingress_gbps", ingress_gbps, regions)
    return replace(world, egress_bytes_per_s=ends[0], ingress_bytes_per_s=ends[1]).topology()


def mast_hardware(
    regions: int = 4,
    gpus: int = 256,
    cpu_machines: int | None = None,
    largest_cluster: int | None = None,
    storage_tb: float | None = None,
    wan_gbps: float | None = None,
    seed: int = 0,
) -> RegionHardware:
    """The regions; see `mast` for the parameters and the error."""
    cpu_machines = gpus if cpu_machines is None else cpu_machines
    if largest_cluster is None:
        largest_cluster = default_largest_cluster(regions, gpus)
    storage_tb = STORAGE_TB_PER_GPU * gpus if storage_tb is None else storage_tb
    wan_gbps = GBPS_PER_GPU * gpus / max(regions, 1) if wan_gbps is None else wan_gbps
    _check(regions, gpus, cpu_machines, largest_cluster, storage_tb, wan_gbps)
    rng = np.random.default_rng(seed)
    shares = uneven_shares(rng, regions)
    hosts = gpu_hosts(rng, shares["gpu"])
    pairs = np.argwhere(hosts)
    if gpus < MACHINE_GPUS * len(pairs):
        raise InputError(
            f"topology mast: gpus={gpus} for {len(pairs)} pairs of region and GPU type; expected at least "
            f"{MACHINE_GPUS * len(pairs)}, a machine of {MACHINE_GPUS} each"
        )
    weight = (shares["gpu"] / hosts.sum(axis=1))[pairs[:, 0]]
    machines = apportioned(gpus // MACHINE_GPUS, weight, 1)
    rows = []
    for (region, kind), count in zip(pairs.tolist(), machines.tolist(), strict=True):
        several = math.ceil(count / (largest_cluster // MACHINE_GPUS))
        rows += [(region, kind, size) for size in apportioned(count, np.ones(several), 1).tolist()]
    region, kind, size = np.array(rows, np.int64).T
    number = np.arange(len(rows)) - np.searchsorted(region, region)
    return RegionHardware(
        name="mast",
        regions=tuple(f"region{i}" for i in range(regions)),
        gpu_types=GPU_TYPES,
        clusters=Clusters(
            names=tuple(f"c{i}" for i in number),
            region=region,
            gpu_type=kind,
            gpu_machines=size,
            gpus_per_machine=np.full(len(rows), MACHINE_GPUS),
            cpu_machines=apportioned(cpu_machines, size.astype(np.float64), 0),
            machines_per_rack=np.full(len(rows), RACK_MACHINES),
        ),
        storage_bytes=np.ceil(storage_tb * TERABYTE * shares["storage"]).astype(np.int64),
        wan_bytes_per_s=np.full((regions, regions), wan_gbps * GIGABIT),
        fault_group=np.arange(regions),
    )


def default_largest_cluster(regions: int, gpus: int) -> int:
    """GPUs of the largest clusters: so many that a region of the mean size has three, within bounds."""
    wanted = gpus / (REGION_CLUSTERS * max(regions, 1))
    return int(np.clip(MACHINE_GPUS * math.ceil(wanted / MACHINE_GPUS), *LARGEST_CLUSTER))


def apportioned(total: int, weights: np.ndarray, least: int) -> np.ndarray:
    """`total` as whole numbers by `weights`, each at least `least`: int64, of the largest remainders."""
    rest = total - least * len(weights)
    exact = rest * weights / weights.sum()
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: rest - int(whole.sum())]] += 1
    return whole + least


def _caps(name: str, gbps: float | None, regions: int) -> np.ndarray:
    if gbps is not None:
        _check_amount(name, gbps)
    return np.full(regions, math.inf if gbps is None else gbps * GIGABIT)


def _check(regions: int, gpus: int, cpus: int, largest_cluster: int, storage_tb: float, wan_gbps: float) -> None:
    wholes = {
        "regions": (regions, 1, MOST_REGIONS),
        "gpus": (gpus, MACHINE_GPUS, MOST_UNITS),
        "cpu_machines": (cpus, 0, MOST_UNITS),
        "largest_cluster": (largest_cluster, MACHINE_GPUS, MOST_UNITS),
    }
    for name, (value, low, high) in wholes.items():
        if not low <= value <= high:
            raise InputError(f"topology mast: {name}={value}; expected a whole number from {low} to {high}")
    for name, value in (("gpus", gpus), ("largest_cluster", largest_cluster)):
        if value % MACHINE_GPUS:
            raise InputError(f"topology mast: {name}={value}; expected a multiple of {MACHINE_GPUS}, as machines have")
    _check_amount("storage_tb", storage_tb)
    _check_amount("wan_gbps", wan_gbps)


def _check_amount(name: str, amount: float) -> None:
    if not 0 < amount <= 1e6:
        raise InputError(f"topology mast: {name}={amount:g}; expected a number above 0, up to 1e6")
