"""`mast-like`: regions, tables and one day's jobs with the statistics that paper mast publishes, at any scale.

Fitted (mast_statistics.py): the number of workloads that read a table, Figure 3; sizes of tables, as if they were those
of replications; priorities; shares of GPU and of recurring workloads; GPUs, machines and run times of a workload; and
V0,
the placement that users chose by hand: demand over supply of high-priority jobs in the worst region and its standard
deviation over the regions, the rate of training at the home region. The supply of GPUs follows from the last three.

Assumed, as nothing is published: Figure 2's bars are an image, so shares of GPUs, CPUs and storage are three
independent log-normals over the regions, sigma 0.6, and the region with the fewest GPUs has the most storage, as
Region6; three GPU types, each in two regions of three; teams of 25 tables whose jobs read each other's tables only,
but for those that break collocation at home; a job reads a geometric number of tables, less the duplicates;
a run a day, at most 24 h of it; at most 1,024 GPUs and 1 PB; analytics has 45 % of all uses, 4 tables in the mean, its
CPU-hours log-normal; its applications, one for 20 teams, may compute in each region 1.2 times what they did plus 0.2
of their total by its CPUs; storage for 3.5 times all tables, in each region for 1.2 times what V0 puts there at least;
400 Gbps between regions.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import InputError
from ..cluster.region_hardware import MOST_REGIONS, NO_GPU, Clusters, World
from ..numerics.float_sums import sum_in_order
from . import mast_statistics
from .warehouse import HIGH_LEVELS, NO_APP, Jobs, Tables, Warehouse

GPU_TYPES = ("V100", "A100", "H100")
UNEVEN_SIGMA = 0.6
TEAM_TABLES, APP_TEAMS = 25, 20
LARGEST_TABLE_BYTES, MOST_GPUS = 1e15, 1024
ANALYTICS_SHARE, ANALYTICS_READS = 0.45, 4.0
STORAGE_FACTOR, STORAGE_SLACK, CPU_SLACK, CPU_SPREAD = 3.5, 1.2, 1.2, 0.2
WAN_BYTES_PER_S = 50e9
MACHINE_GPUS, CLUSTER_MACHINES = 8, 128
HOURS = 24.0
LOAD_POWER = 2.668
MOST_TABLES = 5_000_000


def mast_like(tables: int = 2000, regions: int = 20, reads: float = 2.0, seed: int = 0) -> Warehouse:
    """Regions, tables at V0's homes, and the jobs of a day; the same parameters and seed give the same arrays.

    Args:
        tables: 50 to 5 million; jobs follow from how often tables are shared: about 10 uses and 4 jobs a table.
        regions: 3 to 64.
        reads: tables that a training job reads, in the mean, 1 to 100; nothing is published. With 1 all train at home.
        seed: of everything that is drawn.

    Raises:
        InputError: a parameter out of range.
    """
    for name, value, low, high in (("tables", tables, 50, MOST_TABLES), ("regions", regions, 3, MOST_REGIONS)):
        if not low <= value <= high:
            raise InputError(f"mast-like: {name}={value}; expected {low} to {high}")
    if not 1.0 <= reads <= 100.0:
        raise InputError(f"mast-like: reads={reads}; expected 1 to 100")
    rng = np.random.default_rng(seed)
    shares = uneven_shares(rng, regions)
    hosts = gpu_hosts(rng, shares["gpu"])
    team = np.sort(rng.integers(0, max(tables // TEAM_TABLES, regions), tables))
    size = capped(rng, tables, mast_statistics.lognormal(mast_statistics.REPLICATION_BYTES), 1.0, LARGEST_TABLE_BYTES)
    first, table, training = _uses(rng, team, reads)
    demand = _demands(rng, training, team[table[first[:-1]]])
    home_of_team, load = homes_of_teams(rng, demand, shares["gpu"])
    home = home_of_team[team]
    read_elsewhere(rng, first, table, training, home)
    first, table = each_once(first, table, tables)
    jobs = _typed(rng, demand, first, table, home, shares["gpu"][:, None] * hosts)
    world = _world(shares, hosts, _gpu_supply(jobs, load, shares["gpu"]), size, home)
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


def _uses(rng: np.random.Generator, team: np.ndarray, mean_reads: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jobs with the tables that they read: first (jobs + 1,), table (uses,), training (jobs,)."""
    parts = []
    for training in (True, False):
        first, stub = _grouped(rng, team, 1.0, 1, mean_reads) if training else analytics_uses(rng, team)
        parts.append((first, stub, np.full(len(first) - 1, training)))
    (first_a, table_a, kind_a), (first_b, table_b, kind_b) = parts
    first = np.concatenate([first_a, first_b[1:] + len(table_a)])
    return first, np.concatenate([table_a, table_b]), np.concatenate([kind_a, kind_b])


def analytics_uses(rng: np.random.Generator, team: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What analytics jobs read: first (jobs + 1,), table (uses,), some tables twice; `team`: int64 (tables,)."""
    return _grouped(rng, team, ANALYTICS_SHARE / (1.0 - ANALYTICS_SHARE), 0, ANALYTICS_READS)


def _grouped(
    rng: np.random.Generator, team: np.ndarray, factor: float, least: int, mean_reads: float
) -> tuple[np.ndarray, np.ndarray]:
    """Uses of all tables, `factor` times as many as workloads share one, in jobs that each stay within a team."""
    shared = capped(rng, len(team), mast_statistics.lognormal(mast_statistics.SHARING), 0.0, 1e5)
    uses = np.maximum(np.rint(shared * factor), least).astype(np.int64)
    stub = np.repeat(np.arange(len(team)), uses)
    stub = stub[np.lexsort((rng.random(len(stub)), team[stub]))]  # shuffled within each team
    reads = rng.geometric(1.0 / mean_reads, len(stub))
    first = np.cumsum(reads)
    first = first[: np.searchsorted(first, len(stub))]
    # A job ends where its team's tables do.
    borders = np.flatnonzero(np.diff(team[stub])) + 1
    return np.unique(np.concatenate([[0], first, borders, [len(stub)]])), stub


def _demands(rng: np.random.Generator, training: np.ndarray, team: np.ndarray) -> dict[str, np.ndarray]:
    """What jobs ask for in a day, by column of `Jobs`; analytics has neither GPUs nor a priority of its own."""
    n = len(training)
    with_gpu = training & (rng.random(n) < mast_statistics.GPU_SHARE)
    gpus = np.rint(capped(rng, n, mast_statistics.lognormal(mast_statistics.GPUS), 1.0, MOST_GPUS)).astype(np.int64)
    gpu_s = capped(rng, n, mast_statistics.lognormal(mast_statistics.GPU_DURATION_S), 1.0, math.inf)
    cpu_s = capped(rng, n, mast_statistics.lognormal(mast_statistics.CPU_DURATION_S), 1.0, math.inf)
    hours = np.minimum(np.where(with_gpu, gpu_s, cpu_s) / 3600.0, HOURS)
    quantiles = mast_statistics.MACHINES
    machines = np.interp(rng.random(n), (0.0, *quantiles, 1.0), (1.0, *quantiles.values(), 256.0))
    level = np.searchsorted(
        np.cumsum(mast_statistics.PRIORITIES), rng.random(n) * sum_in_order(mast_statistics.PRIORITIES), side="right"
    )
    return {
        "training": training,
        "with_gpu": with_gpu,
        "gpus": np.where(with_gpu, gpus, 0),
        "gpu_hours": np.where(with_gpu, gpus * hours, 0.0),
        "cpu_hours": np.rint(machines) * hours,
        "level": np.where(training, np.minimum(level, 6), 6).astype(np.int64),
        "app": np.where(training, NO_APP, team // APP_TEAMS).astype(np.int64),
        "team": team,
        "recurring": (rng.random(n) < mast_statistics.RECURRING_SHARE) | ~training,
    }


def skewed_loads(regions: int) -> np.ndarray:
    """High-priority demand over supply by region, ascending, under V0: the published worst x (rank / regions)^a.

    Among many regions its standard deviation is a / ((a + 1) sqrt(2 a + 1)) of the worst; `LOAD_POWER` is the larger of
    the two powers for which that is the published one (the smaller leaves more demand than supply everywhere).
    """
    return mast_statistics.OVERLOAD["V0"] * ((np.arange(regions) + 1.0) / regions) ** LOAD_POWER


def homes_of_teams(
    rng: np.random.Generator, demand: dict[str, np.ndarray], gpu_share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The region that each team chose, and the load of each region under V0.

    The teams with the most high-priority demand choose first, each where most of a region's demand is still missing.
    """
    load = rng.permutation(skewed_loads(len(gpu_share)))
    high = demand["training"] & (demand["level"] < HIGH_LEVELS) & demand["recurring"]
    teams = int(demand["team"].max()) + 1
    asked = np.bincount(demand["team"][high], demand["gpu_hours"][high], teams)
    missing = load * gpu_share / (load @ gpu_share) * asked.sum()
    home = np.zeros(teams, np.int64)
    for team in np.argsort(-asked, kind="stable"):
        home[team] = missing.argmax()
        missing[home[team]] -= asked[team]
    return home, load


def read_elsewhere(
    rng: np.random.Generator, first: np.ndarray, table: np.ndarray, training: np.ndarray, home: np.ndarray
) -> None:
    """Modify `table` in place: so many training jobs read a table at another home that V0's rate is the published one.

    Jobs of several tables swap their last ones, so that tables stay shared as often as they were.
    """
    reads = np.diff(first)
    several = np.flatnonzero(training & (reads > 1))
    chosen = rng.permutation(several)
    wanted = round((1.0 - mast_statistics.HOME_RATE["V0"] / 100.0) * training.sum())
    half = len(chosen) // 2
    one, other = chosen[:half], chosen[half : 2 * half]
    apart = home[table[first[one]]] != home[table[first[other]]]
    one, other = one[apart][: wanted // 2], other[apart][: wanted // 2]
    last_one, last_other = first[one + 1] - 1, first[other + 1] - 1
    table[last_one], table[last_other] = table[last_other], table[last_one]


def each_once(first: np.ndarray, table: np.ndarray, tables: int) -> tuple[np.ndarray, np.ndarray]:
    """The uses without those where a job reads a table again."""
    job = np.repeat(np.arange(len(first) - 1), np.diff(first))
    pair = np.sort(job * tables + table)
    pair = pair[np.diff(pair, prepend=-1) > 0]
    kept = np.bincount(pair // tables, minlength=len(first) - 1)
    return np.concatenate([[0], np.cumsum(kept)]), pair % tables


def _typed(
    rng: np.random.Generator,
    demand: dict[str, np.ndarray],
    first: np.ndarray,
    table: np.ndarray,
    home: np.ndarray,
    gpus: np.ndarray,
) -> Jobs:
    """The jobs, each with a GPU type that its home has; `gpus`: float64 (regions, types), relative supply."""
    edges = np.cumsum(gpus, axis=1)[home[table[first[:-1]]]]
    point = rng.random(len(edges)) * edges[:, -1]
    kind = np.minimum((edges <= point[:, None]).sum(axis=1), gpus.shape[1] - 1)
    columns = {name: column for name, column in demand.items() if name != "with_gpu"}
    return Jobs(**columns, gpu_type=np.where(demand["with_gpu"], kind, NO_GPU), first=first, table=table)


def _gpu_supply(jobs: Jobs, load: np.ndarray, gpu_share: np.ndarray) -> float:
    """GPUs of all regions at which high-priority, recurring demand is so much of them."""
    asked = jobs.gpu_hours[jobs.high & jobs.recurring].sum()
    return float(asked / (load @ gpu_share) / HOURS)


def _world(shares: dict[str, np.ndarray], hosts: np.ndarray, gpus: float, size: np.ndarray, home: np.ndarray) -> World:
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
    return World(
        name="mast-like",
        regions=tuple(f"region{i}" for i in range(regions)),
        gpu_types=GPU_TYPES,
        clusters=clusters,
        storage_bytes=np.ceil(storage).astype(np.int64) + 2**20,
        wan_bytes_per_s=np.full((regions, regions), WAN_BYTES_PER_S),
        fault_group=np.arange(regions),
    )


def quotas(jobs: Jobs, home: np.ndarray, cpu_share: np.ndarray) -> np.ndarray:
    """CPU-hours a day of each application in each region: float64 (applications, regions).

    What it computes at the homes that hold most of its jobs' tables, with some slack.
    """
    regions, apps = len(cpu_share), int(jobs.app.max()) + 1
    at = np.zeros((len(jobs), regions), np.int64)
    np.add.at(at, (jobs.owner, home[jobs.table]), 1)
    analytics = jobs.app != NO_APP
    used = np.zeros((apps, regions))
    np.add.at(used, (jobs.app[analytics], at.argmax(axis=1)[analytics]), jobs.cpu_hours[analytics])
    return CPU_SLACK * used + CPU_SPREAD * used.sum(axis=1, keepdims=True) * cpu_share
