"""`mast-like`: regions, tables and one day's jobs with the statistics that paper mast publishes, at any scale.

job_families.py has reads and demands. Fitted too (mast_statistics.py): sizes of tables, as if they were those of
replications; and V0, the placement that users chose by hand: demand over supply of high-priority jobs in the worst
region and its standard deviation over the regions, the rate of training at the home region. These give the GPUs.

Assumed, as nothing is published: Figure 2's bars are an image, so shares of GPUs, CPUs and storage are three
independent log-normals over the regions, sigma 0.6, and the region with the fewest GPUs has the most storage, as
Region6; three GPU types, each in two regions of three; a run a day, at most 24 h of it; at most 1,024 GPUs and 1 PB; an
application of analytics may compute in each region 1.2 times what it did plus 0.2 of their total by its CPUs; storage
for 3.5 times all tables, in each region for 1.2 times V0's there at least; 400 Gbps between regions.
"""

from __future__ import annotations

import numpy as np

from ..base.codes import HIGH_LEVELS
from ..base.errors import InputError
from ..cluster.region_hardware import MOST_REGIONS, NO_GPU, Clusters, RegionHardware
from . import mast_statistics as mast
from .job_families import (
    HOURS,
    MACHINE_GPUS,
    READS,
    SIZE_READS,
    Families,
    analytics_jobs,
    check_reads,
    draw_families,
    draw_work,
    read_elsewhere,
    uses_of,
)
from .warehouse import NO_APP, Jobs, Tables, Warehouse

GPU_TYPES = ("V100", "A100", "H100")
UNEVEN_SIGMA = 0.6
LARGEST_TABLE_BYTES, MOST_GPUS = 1e15, 1024
STORAGE_FACTOR, STORAGE_SLACK, CPU_SLACK, CPU_SPREAD = 3.5, 1.2, 1.2, 0.2
WAN_BYTES_PER_S = 50e9
CLUSTER_MACHINES = 128
LOAD_POWER = 2.668
MOST_TABLES = 5_000_000


def mast_like(
    tables: int = 2000, regions: int = 20, reads: float = READS, size_reads: float = SIZE_READS, seed: int = 0
) -> Warehouse:
    """Regions, tables at V0's homes, and the jobs of a day; the same parameters and seed give the same arrays.

    Args:
        tables: 50 to 5 million; jobs follow from how often tables are shared: about 10 uses and 4 jobs a table.
        regions: 3 to 64.
        reads, size_reads: as of `check_reads` in job_families.py. With 1 of `reads` all train at home.

    Raises:
        InputError: a parameter out of range.
    """
    for name, value, low, high in (("tables", tables, 50, MOST_TABLES), ("regions", regions, 3, MOST_REGIONS)):
        if not low <= value <= high:
            raise InputError(f"mast-like: {name}={value}; expected {low} to {high}")
    check_reads("mast-like", reads, size_reads)
    rng = np.random.default_rng(seed)
    shares = uneven_shares(rng, regions)
    hosts = gpu_hosts(rng, shares["gpu"])
    families = draw_families(rng, tables, regions, reads, size_reads)
    size = capped(rng, tables, mast.lognormal(mast.REPLICATION_BYTES), 1.0, LARGEST_TABLE_BYTES)
    family = np.repeat(np.arange(len(families)), families.size)
    demand = _demands(rng, families, family)
    home_of_team, load = homes_of_teams(rng, demand, int(families.team[-1]) + 1, shares["gpu"])
    home = home_of_team[families.team]
    read = read_elsewhere(rng, families, home)
    kind = _types(rng, families, home[read[1][read[0][:-1]]], shares["gpu"][:, None] * hosts)
    first, table = uses_of(*read, family)
    jobs = Jobs(**demand, gpu_type=kind[family], first=first, table=table)
    jobs = jobs.followed_by(analytics_jobs(rng, families.team))
    asked = jobs.gpu_hours[jobs.high & jobs.recurring].sum()
    world = _world(shares, hosts, float(asked / (load @ shares["gpu"]) / HOURS), size, home)
    apps = quotas(jobs, home, shares["cpu"])
    return Warehouse(world, Tables.at(size.astype(np.int64), home, regions), jobs, apps)


def uneven_shares(rng: np.random.Generator, regions: int) -> dict[str, np.ndarray]:
    """Shares of the regions in all GPUs, CPUs and storage, float64 (regions,) each, adding up to 1 (Figure 2).

    Setting: mast, Figure 2.
    """
    shares = {}
    for what in ("gpu", "cpu", "storage"):
        drawn = np.exp(UNEVEN_SIGMA * rng.standard_normal(regions))
        shares[what] = drawn / drawn.sum()
    poorest, fullest = int(shares["gpu"].argmin()), int(shares["storage"].argmax())
    shares["storage"][[poorest, fullest]] = shares["storage"][[fullest, poorest]]
    return shares


def gpu_hosts(rng: np.random.Generator, gpu_share: np.ndarray) -> np.ndarray:
    """Which region has which GPU type, bool (regions, types): every region one at least, every type in two at least."""
    regions, types = len(gpu_share), len(GPU_TYPES)
    hosts = rng.random((regions, types)) < 2.0 / 3.0
    hosts[np.arange(regions), rng.integers(0, types, regions)] = True
    for gpu in range(types):
        hosts[rng.permutation(regions)[:2], gpu] = True
    return hosts


def capped(rng: np.random.Generator, n: int, fit: tuple[float, float], low: float, high: float) -> np.ndarray:
    """(n,) draws of a log-normal, `fit` its mu and sigma, within bounds."""
    return np.clip(np.exp(fit[0] + fit[1] * rng.standard_normal(n)), low, high)


def _demands(rng: np.random.Generator, families: Families, family: np.ndarray) -> dict[str, np.ndarray]:
    """What training jobs of these families ask for in a day, by column of `Jobs`; of each the first may recur."""
    work = draw_work(rng, families, family, HOURS * 3600.0)
    hours, gpus = work.run_s / 3600.0, np.minimum(work.gpus, MOST_GPUS)
    begins = np.append(True, np.diff(family) > 0)
    return {
        "training": np.ones(len(family), bool),
        "gpus": gpus.astype(np.int64),
        "gpu_hours": gpus * hours,
        "cpu_hours": np.maximum(np.rint(work.machines), 1.0) * hours,
        "level": work.level,
        "app": np.full(len(family), NO_APP),
        "team": families.owner[family],
        "recurring": begins & families.recurring[family],
    }


def skewed_loads(regions: int) -> np.ndarray:
    """High-priority demand over supply by region, ascending, under V0: the published worst x (rank / regions)^a.

    Its limit of the standard deviation is a / ((a + 1) sqrt(2 a + 1)) of the worst; `LOAD_POWER` is the larger of the
    two powers that give the published one (the smaller leaves more demand than supply everywhere).
    """
    return mast.OVERLOAD["V0"] * ((np.arange(regions) + 1.0) / regions) ** LOAD_POWER


def homes_of_teams(
    rng: np.random.Generator, demand: dict[str, np.ndarray], teams: int, gpu_share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each team's region, and the regions' loads, under V0: the most demanding first, where most demand is missing."""
    load = rng.permutation(skewed_loads(len(gpu_share)))
    high = (demand["level"] < HIGH_LEVELS) & demand["recurring"]
    asked = np.bincount(demand["team"][high], demand["gpu_hours"][high], teams)
    missing = load * gpu_share / (load @ gpu_share) * asked.sum()
    home = np.zeros(teams, np.int64)
    for team in np.argsort(-asked, kind="stable"):
        home[team] = missing.argmax()
        missing[home[team]] -= asked[team]
    return home, load


def _types(rng: np.random.Generator, families: Families, place: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """A GPU type of each family that its place has; `gpus`: float64 (regions, types), relative supply."""
    edges = np.cumsum(gpus, axis=1)[place]
    point = rng.random(len(edges)) * edges[:, -1]
    kind = np.minimum((edges <= point[:, None]).sum(axis=1), gpus.shape[1] - 1)
    return np.where(families.with_gpu, kind, NO_GPU)


def _world(
    shares: dict[str, np.ndarray], hosts: np.ndarray, gpus: float, size: np.ndarray, home: np.ndarray
) -> RegionHardware:
    regions = len(hosts)
    machines = gpus * shares["gpu"][:, None] * hosts / hosts.sum(axis=1, keepdims=True) / MACHINE_GPUS
    machines = np.where(hosts, np.maximum(np.rint(machines), 1), 0).astype(np.int64)
    rows = []
    for region, gpu in np.argwhere(hosts).tolist():
        whole, rest = divmod(int(machines[region, gpu]), CLUSTER_MACHINES)
        rows += [(region, gpu, CLUSTER_MACHINES)] * whole + ([(region, gpu, rest)] if rest else [])
    cpu_machines = np.rint(gpus * shares["cpu"]).astype(np.int64)
    table = np.array([*rows, *((region, NO_GPU, 0) for region in range(regions))], np.int64)
    no_gpu = table[:, 1] == NO_GPU
    clusters = Clusters(
        names=tuple(f"c{i}" for i in range(len(table))),
        region=table[:, 0],
        gpu_type=table[:, 1],
        gpu_machines=table[:, 2],
        gpus_per_machine=np.where(no_gpu, 0, MACHINE_GPUS),
        cpu_machines=np.where(no_gpu, cpu_machines[table[:, 0]], 0),
        machines_per_rack=np.full(len(table), 16),
    )
    stored = np.bincount(home, size, regions)
    storage = np.maximum(STORAGE_FACTOR * size.sum() * shares["storage"], STORAGE_SLACK * stored)
    return RegionHardware(
        name="mast-like",
        regions=tuple(f"region{i}" for i in range(regions)),
        gpu_types=GPU_TYPES,
        clusters=clusters,
        storage_bytes=np.ceil(storage).astype(np.int64) + 2**20,
        wan_bytes_per_s=np.full((regions, regions), WAN_BYTES_PER_S),
        fault_group=np.arange(regions),
    )


def quotas(jobs: Jobs, home: np.ndarray, cpu_share: np.ndarray) -> np.ndarray:
    """CPU-hours a day by application and region, float64: use at its jobs' main homes with some slack."""
    regions, apps = len(cpu_share), int(jobs.app.max()) + 1
    at = np.zeros((len(jobs), regions), np.int64)
    np.add.at(at, (jobs.owner, home[jobs.table]), 1)
    analytics = jobs.app != NO_APP
    used = np.zeros((apps, regions))
    np.add.at(used, (jobs.app[analytics], at.argmax(axis=1)[analytics]), jobs.cpu_hours[analytics])
    return CPU_SLACK * used + CPU_SPREAD * used.sum(axis=1, keepdims=True) * cpu_share
