"""Generator `mast-like`: workloads of parts that read tables, for the preset `mast` of the same regions and GPUs.

Fitted (paper mast, Sec. 2, 3.4, 5.1, 5.5, 5.6; numbers in warehouse/mast_statistics.py), P50, P90 and P99 exact: GPUs
of a GPU workload 16, 64, 128; machines of any workload 72, 180, 205; run time with GPUs 20 min, 6.7 h, 66 h, without 38
min, 7.9 h, 38 h; set-up of containers 150, 278, 449 s; sizes of tables, as if they were those of replications, 565 MB,
103 GB, 7.5 TB; workloads of a day that read a table 3, 17, 45; shares of the seven levels; 70 % of workloads with GPUs;
30 % recurring; homes as users chose them (V0): 9 % of families with tables at two homes, and how uneven demand over
supply of the regions is: worst 2.63, deviation 0.76 in proportion. How high it is follows from `load`: at 1.1 (8
regions, 4,096 GPUs) what recurs at high priority asks 0.4 to 0.5 of the worst region's GPUs.

Assumed, as nothing is published:
* Machines without GPUs are shared: a workload takes a fifth of each that it uses (`machine_share`). The published sizes
  need 4.4 times as many machines as GPUs; in use are as many of the one as of the other, O(100,000).
* All sizes shrink together (`scale`) where clusters are smaller than the largest hundredth of workloads; none is larger
  than the largest cluster of its type at its tables' home, so that its users' choice of a home made sense.
* Half of the workloads have an evaluator with an eighth of the GPUs, half parameter servers with a quarter of the other
  machines; the rest of the GPUs train, the rest of the machines preprocess. Without GPUs the machines train.
* Size, run time, level and hardware are independent. A recurring workload comes each day at its time, give or take 10
  min, with its size; the others are Poisson, 1.4 times the mean rate at 15 h, 0.6 times at 3 h.
* With `backlog` what would run at time 0, had the same workloads come before, is there at time 0, with what is left of
  its run time; nothing of it is set up again. Three in ten of these are a run, begun before, of what recurs daily: the
  slow path counts on it each day (a third to six tenths of the recurring GPU-hours), though no more runs of it come.
* Of the GPU types at the home of its tables a family asks one so that all types are asked alike for their supply.
* A tenant is a team at a level. Quotas share the supply out by what tenants ask in all, as within them a start in time
  is guaranteed (Sec. 2); each is at least the tenant's P90 workload, and those at level 6 have none.
* First starts are due within 10, 20, 30 and 60 min at levels 0 to 3; below there is none. A checkpoint takes 60 s.
* Run times beyond `longest_h` and tables beyond a fifth of the smallest region's storage are capped; where a region
  cannot hold 1.2 times the tables that have their home there, those shrink.
* What analytics reads, and its quotas: warehouse/mast_data.py.

Setting: mast, Sec. 2, 3.4, 5.1, 5.5 and 5.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..base.codes import LEVELS
from ..base.errors import InputError
from ..base.names import choose
from ..cluster.region_hardware import NO_GPU, RegionHardware
from ..cluster.region_network import CPU_TYPE
from ..jobs.workload import Workload
from ..warehouse import mast_statistics as mast
from ..warehouse.demands import MOST_PARTS, NO_TYPE, Demands
from ..warehouse.job_families import Families, analytics_jobs, check_reads, draw_families, read_elsewhere, uses_of
from ..warehouse.mast_data import STORAGE_SLACK, homes_of_teams, quotas
from ..warehouse.mast_preset import mast_hardware
from ..warehouse.warehouse import NO_APP, Jobs, Tables
from .draws import MOST_JOBS, check_parameters
from .mast_drift import Active, drifting, in_zones, known_s
from .mast_rows import DAY_S, HOUR_S, Rows, Scale, arrivals, mean_gpu_s, running_at_start

SLO_S = (600.0, 1200.0, 1800.0, 3600.0, np.inf, np.inf, np.inf)
CHECKPOINT_S = 60.0
EVALUATORS, EVALUATOR_GPUS = 0.5, 8  # share of workloads, and one of so many GPUs
SERVERS, SERVER_MACHINES = 0.5, 4
QUOTA_QUANTILE = 0.9
TURNS, MOST_TURN = 100, 10.0  # until types are asked alike
LARGEST_TABLE = 0.2  # of the smallest region's storage
ALWAYS = -np.inf, np.inf
FACTORS = -60.0, 60.0  # powers of 2 by which tables grow or shrink to fill a share of the storage
READERS = 6.4  # mean number of workloads of a day that read a table
NEW_READS = 0.8  # share of a workload's tables that it has not drawn before: job_families.py, measured


def mast_like(
    days: float = 1.0,
    regions: int = 4,
    gpus: int = 256,
    load: float = 1.1,
    jobs: int | None = None,
    tables: int | None = None,
    reads: float = 2.0,
    size_reads: float = 0.0,
    backlog: bool | None = None,
    longest_h: float = 168.0,
    scale: float | None = None,
    machine_share: float = 0.2,
    cpu_machines: int | None = None,
    largest_cluster: int | None = None,
    storage_tb: float | None = None,
    world: int = 0,
    read_share: float = 1.0,
    fresh_levels: int = 0,
    zones: Literal["on", "off"] = "off",
    drift: float = 0.0,
    storage_ratio: float | None = None,
    any_type: float = 0.0,
    seed: int = 0,
) -> Workload:
    """ML training over regions with the statistics that paper mast publishes: parts, tables, tenants, levels.

    Args:
        days: over which workloads arrive, above 0, up to 366. longest_h: of a run time, hours.
        load: offered GPU-seconds per second and GPU, in the mean; seeds differ (256 GPUs: by 0.17 at load 1 in a year).
        jobs: how many arrive, in place of `load`. tables: how many; none: each is read as often as published.
        reads: tables that a workload reads, in the mean, 1 to 100; fewer by the duplicates.
        size_reads: how GPU-hours go with the number of tables, 0 (not at all) to 1; see warehouse/job_families.py.
        backlog: whether the regions are as full at time 0 as later, by more jobs; none: with `load`, not with `jobs`.
        scale: of all sizes, above 0, up to 1; none: 1 for clusters of 128 GPUs or more, else in proportion.
        machine_share: of a machine that a workload takes, above 0, up to 1.
        read_share: of a table's partitions, those that jobs read, above 0, up to 1: a replica holds only them.
        fresh_levels: so many of the highest levels run only where their tables have their home, 0 to 7 (Sec. 3.1).
        zones: on: the hour of the day is that of a family's home, regions lying evenly around the earth; off: one hour.
        drift: share of the families that is replaced each day, 0 to 1, of which the slow path knows the last 24 hours.
        storage_ratio: storage over the bytes of all tables, 1 to 100, which grow or shrink; none: as published.
        any_type: share of the families with GPUs, 0 to 1, that run on GPUs of any type, in the history too.
        seed: same parameters and seed, same workload. world: the seed of the preset `mast`, whose others are as its.
    """
    check_reads("workload mast-like", reads, size_reads)
    _check_changes(zones, drift, storage_ratio, any_type)
    _check(days, load, jobs, tables, longest_h, scale, machine_share, read_share, world, fresh_levels)
    built = mast_hardware(regions, gpus, cpu_machines, largest_cluster, storage_tb, None, world)
    largest, rng = int(built.clusters.gpus.max()), np.random.default_rng(seed)
    how = Scale(min(1.0, largest / mast.GPUS[0.99]) if scale is None else scale, machine_share, longest_h * HOUR_S)
    per_day = min(load * gpus * DAY_S / mean_gpu_s(how, largest) if jobs is None else jobs / days, MOST_JOBS / days)
    plan = (how, days * DAY_S, per_day, max(int(rng.poisson(per_day * days)) if jobs is None else jobs, 1))
    count = tables if tables is not None else max(regions, round(per_day * max(1.0, NEW_READS * reads) / READERS))
    families = draw_families(rng, count, regions, reads, size_reads)
    drawn = _rows(rng, families, plan, drift, jobs is None if backlog is None else backlog)
    zones_s = days * DAY_S if zones == "on" else None
    return _workload(rng, built, families, Draw(*drawn, zones_s, storage_ratio, read_share, fresh_levels, any_type))


def _rows(
    rng: np.random.Generator, families: Families, plan: tuple[Scale, float, float, int], drift: float, backlog: bool
) -> tuple[Rows, Rows | None]:
    """What comes; what recurred on the day before, where families are replaced. `plan`: of `arrivals`."""
    how, span_s, per_day, _ = plan
    before, members = None, None
    if drift > 0.0:
        active = Active.drawn(rng, families, int(np.ceil(span_s / DAY_S)), drift)
        rows, before = drifting(rng, families, active, *plan)
        members = active.members(families, -1)
    else:
        rows = arrivals(rng, families, *plan)
    if backlog:
        rows = Rows.joined([rows, running_at_start(rng, families, how, per_day, members)])
    return rows, before


@dataclass(frozen=True)
class Draw:
    """What was drawn, and how it goes on.

    Attributes:
        storage_ratio, read_share, fresh_levels, any_type: see `mast_like`.
    """

    rows: Rows  # what comes
    before: Rows | None  # what recurred on the day before; None: the slow path knows all
    zones_s: float | None  # the seconds over which arrivals go by time zones; None: they do not
    storage_ratio: float | None
    read_share: float
    fresh_levels: int
    any_type: float


def _check(
    days: float,
    load: float,
    jobs: int | None,
    tables: int | None,
    longest_h: float,
    scale: float | None,
    machine_share: float,
    read_share: float,
    world: int,
    fresh_levels: int,
) -> None:
    check_parameters("mast-like", load=load, jobs=1 if jobs is None else jobs)
    bounds = {
        "days": (days, 0.0, 366.0),
        "longest_h": (longest_h, 0.0, 8784.0),
        "scale": (1.0 if scale is None else scale, 0.0, 1.0),
        "machine_share": (machine_share, 0.0, 1.0),
        "read_share": (read_share, 0.0, 1.0),
    }
    for name, (value, above, high) in bounds.items():
        if not above < value <= high:
            raise InputError(f"workload mast-like: {name}={value:g}; expected a number above 0, up to {high:g}")
    if tables is not None and not 1 <= tables <= 1_000_000:
        raise InputError(f"workload mast-like: tables={tables}; expected 1 to 1000000")
    if not 0 <= fresh_levels <= LEVELS:
        raise InputError(f"workload mast-like: fresh_levels={fresh_levels}; expected 0 to {LEVELS}")
    if world < 0:
        raise InputError(f"workload mast-like: world={world}; expected a whole number of at least 0")


def _check_changes(zones: str, drift: float, storage_ratio: float | None, any_type: float) -> None:
    choose(zones, ("on", "off"), "zones of workload mast-like")
    if not 0.0 <= drift <= 1.0:
        raise InputError(f"workload mast-like: drift={drift:g}; expected 0 to 1")
    if not 0.0 <= any_type <= 1.0:
        raise InputError(f"workload mast-like: any_type={any_type:g}; expected 0 to 1")
    if storage_ratio is not None and not 1.0 <= storage_ratio <= 100.0:
        raise InputError(f"workload mast-like: storage_ratio={storage_ratio:g}; expected 1 to 100")


def _workload(rng: np.random.Generator, world: RegionHardware, families: Families, draw: Draw) -> Workload:
    rows = draw.rows
    first, table, home = _reads(rng, world, families, rows)
    place = home[table[first[:-1]]]  # where a family runs
    with_gpu = families.with_gpu
    kind = np.where(with_gpu, _types(rng, world, place, np.where(with_gpu, families.size, 0)), NO_GPU)
    if draw.zones_s is not None:
        ahead_h = 24.0 / len(world) * place[rows.family]
        rows = rows.only(np.arange(len(rows.name)), arrival_s=in_zones(rows.arrival_s, ahead_h, draw.zones_s))
    capped = _capped(world, rows, place[rows.family], kind[rows.family])
    capped = capped.only(np.argsort(capped.arrival_s, kind="stable"))
    part_type, part_units = _parts(rng, capped, kind[capped.family], len(world.gpu_types))
    key, tenant = np.unique(families.owner[capped.family] * LEVELS + capped.level, return_inverse=True)
    tenant = tenant.ravel().astype(np.int64)
    names = np.array([f"team{team}/{level}" for team, level in zip(*divmod(key, LEVELS), strict=True)], object)
    before = draw.before
    if before is not None:
        before = _capped(world, before, place[before.family], kind[before.family])
    observed, known = _observed(capped, before)
    history, apps, of_history = _history(rng, world, families, first, table, home, observed, kind)
    if len(known):
        known = np.concatenate([known, np.tile(ALWAYS, (len(history) - len(known), 1))])
    uses, used = uses_of(first, table, capped.family)
    geo = Demands(
        regions=world.regions,
        gpu_types=(*world.gpu_types, CPU_TYPE),
        level=capped.level,
        tenant=tenant,
        recurring=capped.recurring,
        part_type=part_type,
        part_units=part_units,
        container_s=capped.container_s,
        first=uses,
        table=used,
        tenant_names=tuple(names),
        table_names=tuple(f"t{row}" for row in range(len(home))),
        tables=Tables.at(_sizes(rng, world, home, draw.storage_ratio), home, len(world), draw.read_share),
        quota=_tenant_quotas(world, capped, tenant, len(key)),
        slo_s=np.array(SLO_S),
        checkpoint_s=CHECKPOINT_S,
        history=history,
        app_cpu_hours=apps,
        fresh=capped.level < draw.fresh_levels,
        known_s=known,
    )
    rest = {"job_id": capped.name, "tenant": names[tenant], "priority": LEVELS - 1 - capped.level}
    workload = Workload.from_arrays("mast-like", capped.arrival_s, geo.units, capped.duration_s, **rest)
    chosen = rng.random(len(with_gpu)) < draw.any_type
    return workload.with_geo(_of_any_type(geo, chosen, capped.family, of_history))


def _reads(
    rng: np.random.Generator, world: RegionHardware, families: Families, rows: Rows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each family reads, first and table as in `Families`, and the home of each table."""
    hours = rows.gpus * np.minimum(rows.duration_s / HOUR_S, 24.0)
    demand = {
        "level": rows.level,
        "recurring": rows.recurring,
        "team": families.owner[rows.family],
        "gpu_hours": np.where(families.with_gpu[rows.family], hours, 0.0),
    }
    share = world.gpus.sum(axis=1)
    of_team, _ = homes_of_teams(rng, demand, int(families.team[-1]) + 1, share / share.sum())
    home = of_team[families.team]
    return *read_elsewhere(rng, families, home), home


def _types(rng: np.random.Generator, world: RegionHardware, place: np.ndarray, workloads: np.ndarray) -> np.ndarray:
    """A GPU type that the place has, for `workloads` workloads each, so that demand over supply is alike for all."""
    supply = world.gpus.astype(np.float64)
    asked = np.bincount(place, workloads, len(world))
    wanted = supply.sum(axis=0) / supply.sum() * asked.sum()
    share = supply / supply.sum(axis=1, keepdims=True)
    for _ in range(TURNS if asked.any() else 0):
        share *= np.minimum(wanted / np.maximum(asked @ share, 1e-9), MOST_TURN)
        share /= share.sum(axis=1, keepdims=True)
    edges = np.cumsum(share, axis=1)[place]
    return np.minimum((edges <= rng.random((len(place), 1))).sum(axis=1), len(world.gpu_types) - 1)


def _capped(world: RegionHardware, rows: Rows, place: np.ndarray, kind: np.ndarray) -> Rows:
    """The rows with no more units of a kind than the largest cluster at their place has."""
    clusters = world.clusters
    gpus = np.zeros((len(world), len(world.gpu_types)), np.int64)
    has = clusters.gpu_type != NO_GPU
    np.maximum.at(gpus, (clusters.region[has], clusters.gpu_type[has]), clusters.gpus[has])
    machines = np.zeros(len(world), np.int64)
    np.maximum.at(machines, clusters.region, clusters.cpu_machines)
    most = np.where(kind == NO_GPU, 0, gpus[place, kind])
    capped = np.minimum(rows.machines, machines[place])
    if (most + capped == 0).any():
        region = world.regions[int(place[int((most + capped == 0).argmax())])]
        raise InputError(
            f"workload mast-like: {region} has no CPU machines, which a workload without GPUs needs; "
            "expected cpu_machines of at least one a region"
        )
    return rows.only(np.arange(len(place)), gpus=np.minimum(rows.gpus, most), machines=capped)


def _parts(rng: np.random.Generator, rows: Rows, kind: np.ndarray, cpu: int) -> tuple[np.ndarray, np.ndarray]:
    """Types and units of the parts: trainer, evaluator, preprocessing or trainer, parameter servers; from the left."""
    n = len(kind)
    evaluators = np.where(rng.random(n) < EVALUATORS, rows.gpus // EVALUATOR_GPUS, 0)
    servers = np.where(rng.random(n) < SERVERS, rows.machines // SERVER_MACHINES, 0)
    units = np.stack([rows.gpus - evaluators, evaluators, rows.machines - servers, servers], axis=1)
    types = np.stack([kind, kind, np.full(n, cpu), np.full(n, cpu)], axis=1)
    order = np.argsort(units == 0, axis=1, kind="stable")
    units = np.take_along_axis(units, order, axis=1)
    types = np.where(units > 0, np.take_along_axis(types, order, axis=1), NO_TYPE)
    assert units.shape[1] == MOST_PARTS
    return types, units


def _of_any_type(geo: Demands, chosen: np.ndarray, family: np.ndarray, of_history: np.ndarray) -> Demands:
    """The same, where GPUs of `chosen` families, bool (families,), may be of all types; families of rows, history."""
    cpu, history = len(geo.gpu_types) - 1, geo.history
    opens = chosen[family][:, None] & (geo.part_type != NO_TYPE) & (geo.part_type != cpu)
    known = np.zeros(len(history), bool)
    known[: len(of_history)] = chosen[of_history]
    known &= history.gpu_type != NO_GPU
    return replace(
        geo,
        history=replace(
            history,
            gpu_type=np.where(known, 0, history.gpu_type),
            accepts=np.where(known, (1 << cpu) - 1, history.accepts),
        ),
        part_type=np.where(opens, 0, geo.part_type),
        accepts=np.where(opens, (1 << cpu) - 1, geo.accepts),
    )


def _sizes(rng: np.random.Generator, world: RegionHardware, home: np.ndarray, ratio: float | None) -> np.ndarray:
    """Bytes of each table; as many in all as `ratio` says, as far as the regions where they have their homes go."""
    storage = world.storage_bytes.astype(np.float64)
    drawn = mast.through(mast.REPLICATION_BYTES, rng.standard_normal(len(home)))
    slack = STORAGE_SLACK if ratio is None else min(STORAGE_SLACK, ratio)

    def sizes(factor: float) -> np.ndarray:
        size = np.clip(factor * drawn, 1.0, LARGEST_TABLE * storage.min())
        stored = np.bincount(home, size, len(world))
        fitting: np.ndarray = size * np.minimum(storage / (slack * np.maximum(stored, 1.0)), 1.0)[home]
        return fitting

    factor = 1.0 if ratio is None else _factor(lambda power: sizes(2.0**power).sum() - storage.sum() / ratio)
    return np.maximum(np.floor(sizes(factor)), 1.0).astype(np.int64)


def _factor(excess: Callable[[float], float]) -> float:
    from scipy.optimize import brentq

    low, high = FACTORS
    return float(2.0 ** (high if excess(high) < 0.0 else brentq(excess, low, high)))


def _tenant_quotas(world: RegionHardware, rows: Rows, tenant: np.ndarray, tenants: int) -> np.ndarray:
    """GPUs and CPU machines of each tenant, int64 (tenants, 2)."""
    bounds = np.searchsorted(np.sort(tenant), np.arange(tenants + 1))
    at = bounds[:-1] + np.ceil(QUOTA_QUANTILE * (np.diff(bounds) - 1)).astype(np.int64)
    promised = rows.level < LEVELS - 1
    quota = np.zeros((tenants, 2), np.int64)
    supplies = int(world.gpus.sum()), int(world.cpu_machines.sum())
    for column, (supply, asked) in enumerate(zip(supplies, (rows.gpus, rows.machines), strict=True)):
        used = np.bincount(tenant, np.where(promised, asked * rows.duration_s, 0.0), tenants)
        share = used / max(used.sum(), 1.0)
        large = asked[np.lexsort((asked, tenant))][at]
        quota[:, column] = np.where(used > 0.0, np.ceil(np.maximum(supply * share, large)), 0.0)
    return quota


def _observed(rows: Rows, before: Rows | None) -> tuple[Rows, np.ndarray]:
    """Runs from which the slow path knows what recurs, and from when until when; without a row: always."""
    observed = rows.only(np.flatnonzero(rows.recurring))
    if before is None:
        return observed, np.zeros((0, 2))
    observed = Rows.joined([before, observed])
    which, known = known_s(observed.name, observed.arrival_s)
    return observed.only(which), known


def _history(
    rng: np.random.Generator,
    world: RegionHardware,
    families: Families,
    first: np.ndarray,
    table: np.ndarray,
    home: np.ndarray,
    rows: Rows,
    kind: np.ndarray,
) -> tuple[Jobs, np.ndarray, np.ndarray]:
    """The slow path's history: a day of recurring rows, then of analytics; quotas; the family of each row, int64."""
    _, once = np.unique([name.split(".")[0] for name in rows.name.tolist()], return_index=True)
    row = np.sort(once)
    hours = np.minimum(rows.duration_s[row] / HOUR_S, 24.0)
    family = rows.family[row]
    own_first, own_table = uses_of(first, table, family)
    training = Jobs(
        training=np.ones(len(row), bool),
        gpu_type=kind[family],
        gpus=rows.gpus[row],
        gpu_hours=rows.gpus[row] * hours,
        cpu_hours=rows.machines[row] * hours,
        level=rows.level[row],
        app=np.full(len(row), NO_APP),
        team=families.owner[family],
        recurring=np.ones(len(row), bool),
        first=own_first,
        table=own_table,
    )
    analytics = analytics_jobs(rng, families.team)
    jobs = training.followed_by(analytics)
    share = np.maximum(world.cpu_machines, 1).astype(np.float64)
    apps = quotas(jobs, home, share / share.sum()) if len(analytics) else np.zeros((0, len(world)))
    return jobs, apps, family
