"""Families of training workloads, and analytics: the tables that they read and their demands.

Paper mast, Sec. 3.1: "multiple one-time experimental jobs are often submitted to fine-tune a parameter of a production
recurring job", they "share input tables and require the same types of hardware". Fitted: how many workloads of a day
read a table (Figure 3), 30 % of which recur; demands and run times. Assumed: teams of 25 tables, whose jobs read each
other's tables only, but for the families that break collocation at home; a family has a geometric number of workloads,
1 / 0.3 in the mean, and reads a geometric number of tables; analytics has 45 % of all uses, 4 tables in the mean, its
CPU-hours those of a workload without GPUs; one application for 20 teams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.codes import LEVELS
from ..base.errors import InputError
from ..cluster.region_hardware import NO_GPU
from . import mast_statistics as mast
from .warehouse import Jobs

READS, SIZE_READS = 2.0, 0.0  # of the slow path; what other values do: docs/policies/mast.md
TEAM_TABLES, APP_TEAMS = 25, 20
MOST_SHARED = 1e5
LOOK_BACK = 3  # tables of a family before the last, among which it is looked for again
MACHINE_GPUS = 8
ANALYTICS_SHARE, ANALYTICS_READS = 0.45, 4.0
HOURS = 24.0


@dataclass(frozen=True)
class Families:
    """The tables that each family reads in a day."""

    team: np.ndarray  # int64 (tables,), the team of each table, ascending
    owner: np.ndarray  # int64 (families,), the team of each family
    size: np.ndarray  # int64 (families,), its workloads, >= 1
    recurring: np.ndarray  # bool (families,): its first workload recurs; else all come for the first time
    with_gpu: np.ndarray  # bool (families,): they train on GPUs
    first: np.ndarray  # int64 (families + 1,)
    table: np.ndarray  # int64 (uses,), what each reads, each table once
    size_reads: float  # how GPU-hours go with the number of tables, see `check_reads`

    def __len__(self) -> int:
        return len(self.size)

    @property
    def reads(self) -> np.ndarray:
        """Tables of each family, int64 (families,)."""
        return np.diff(self.first)


@dataclass(frozen=True)
class Work:
    """What workloads ask, one row each, before anything is scaled or capped by hardware.

    Attributes:
        gpus: float64, whole numbers, 0 without GPUs. machines: float64, beyond those of the GPUs.
        run_s, container_s: float64, seconds. level: int64, priority, 0 to 6.
    """

    gpus: np.ndarray
    machines: np.ndarray
    run_s: np.ndarray
    level: np.ndarray
    container_s: np.ndarray


def check_reads(what: str, reads: float, size_reads: float) -> None:
    """InputError for what cannot be drawn; `what`: whose parameters they are.

    Args:
        reads: tables that a family reads, in the mean, 1 to 100; fewer by the borders of teams and by duplicates.
        size_reads: correlation of the normal scores of GPU-hours and the number of tables, 0 (independent) to 1.
            Marginals of GPUs and run times, and their dependence, stay.
    """
    if not 1.0 <= reads <= 100.0:
        raise InputError(f"{what}: reads={reads:g}; expected 1 to 100")
    if not 0.0 <= size_reads <= 1.0:
        raise InputError(f"{what}: size_reads={size_reads:g}; expected 0 to 1")


def draw_families(rng: np.random.Generator, tables: int, least_teams: int, reads: float, size_reads: float) -> Families:
    """Families over `tables` tables of about 25 a team, `least_teams` teams at least; the rest: see `check_reads`.

    Setting: mast, Sec. 3.1.
    """
    team = np.sort(rng.integers(0, max(tables // TEAM_TABLES, least_teams), tables))
    shared = mast.through(mast.SHARING, rng.standard_normal(tables))
    readers = np.rint(np.clip(shared, 1.0, MOST_SHARED)).astype(np.int64)
    # Each reader of a table begins another family by chance; so their sizes are geometric and add up to the readers.
    row = np.repeat(np.arange(tables), readers)
    begins = rng.random(len(row)) < mast.RECURRING_SHARE
    begins[np.cumsum(readers) - readers] = True
    stub, size = row[begins], np.diff([*np.flatnonzero(begins), len(row)])
    # Neighbours become one family that reads several tables: of a team, and of about the same size.
    order = np.lexsort((rng.random(len(stub)), -size, team[stub]))
    stub, size = stub[order], size[order]
    cut = rng.random(len(stub)) < 1.0 / reads
    cut[1:] |= team[stub[1:]] != team[stub[:-1]]
    for back in range(1, min(LOOK_BACK, len(stub) - 1) + 1):
        cut[back:] |= stub[back:] == stub[:-back]
    cut[0] = True
    starts = np.flatnonzero(cut)
    first = np.append(starts, len(stub))
    mean = np.add.reduceat(size, starts) / np.diff(first)
    sizes = np.maximum(np.rint(mean), 1).astype(np.int64)
    owner = team[stub[starts]]
    first, table = each_once(first, stub, tables)
    recurring = rng.permutation(len(sizes)) < round(mast.RECURRING_SHARE * sizes.sum())
    with_gpu = rng.random(len(sizes)) < mast.GPU_SHARE
    return Families(team, owner, sizes, recurring, with_gpu, first, table, size_reads)


def draw_work(rng: np.random.Generator, families: Families, family: np.ndarray, longest_s: float) -> Work:
    """What workloads of these families, int64 (n,), ask, none for longer than `longest_s`."""
    n = len(family)
    normal = rng.standard_normal((4, n))
    has = families.with_gpu[family]
    run_s = np.where(
        has,
        mast.through(mast.GPU_DURATION_S, normal[0]),
        mast.through(mast.CPU_DURATION_S, normal[0]),
    )
    run_s = np.clip(run_s, 1.0, longest_s)
    gpus = np.where(has, np.maximum(np.rint(mast.through(mast.GPUS, normal[1])), 1.0), 0.0)
    shares = np.cumsum(mast.PRIORITIES)
    level = np.searchsorted(shares, rng.random(n) * shares[-1], side="right")
    if families.size_reads > 0.0:
        rows = np.flatnonzero(has)
        order = _by_tables(rng, families.reads[family[rows]], (gpus * run_s)[rows], families.size_reads)
        run_s[rows], gpus[rows] = run_s[rows][order], gpus[rows][order]
    return Work(
        gpus=gpus,
        machines=mast.through(mast.MACHINES, normal[2]) - np.ceil(gpus / MACHINE_GPUS),
        run_s=run_s,
        level=np.minimum(level, LEVELS - 1).astype(np.int64),
        container_s=mast.through(mast.CONTAINER_S, normal[3]),
    )


def _by_tables(rng: np.random.Generator, reads: np.ndarray, hours: np.ndarray, size_reads: float) -> np.ndarray:
    """The workload whose GPUs and run time each one takes, a permutation: int64 (n,)."""
    own = _scores(np.argsort(hours, kind="stable"))
    of_tables = _scores(np.lexsort((rng.random(len(reads)), reads)))
    wanted = size_reads * of_tables + np.sqrt(1.0 - size_reads**2) * own
    order = np.empty(len(reads), np.int64)
    order[np.argsort(wanted, kind="stable")] = np.argsort(hours, kind="stable")
    return order


def _scores(order: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    scores = np.empty(len(order))
    scores[order] = ndtri((np.arange(len(order)) + 0.5) / max(len(order), 1))
    return scores


def read_elsewhere(rng: np.random.Generator, families: Families, home: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and table of each family's reads, as in `Families`, with the published share of tables at another home.

    Families of several tables swap their last ones, so that tables stay shared as often. V0's rate of training at home
    is the published one then, if enough of them read several.
    """
    first, table = families.first, families.table.copy()
    chosen = rng.permutation(np.flatnonzero(families.reads > 1))
    wanted = round((1.0 - mast.HOME_RATE["V0"] / 100.0) * len(families))
    half = len(chosen) // 2
    one, other = chosen[:half], chosen[half : 2 * half]
    apart = home[table[first[one]]] != home[table[first[other]]]
    one, other = one[apart][: wanted // 2], other[apart][: wanted // 2]
    last_one, last_other = first[one + 1] - 1, first[other + 1] - 1
    table[last_one], table[last_other] = table[last_other], table[last_one]
    return each_once(first, table, len(home))


def uses_of(first: np.ndarray, table: np.ndarray, family: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What workloads of these families read, likewise: first (n + 1,), table (uses,)."""
    reads = np.diff(first)[family]
    starts = np.repeat(first[:-1][family], reads)
    uses = np.concatenate([[0], np.cumsum(reads)]).astype(np.int64)
    return uses, table[starts + np.arange(uses[-1]) - np.repeat(uses[:-1], reads)]


def analytics_jobs(rng: np.random.Generator, team: np.ndarray) -> Jobs:
    """A day's analytics on tables of these teams, int64 (tables,); all recur, at the lowest priority."""
    first, table = _analytics_uses(rng, team)
    n = len(first) - 1
    of_team = team[table[first[:-1]]]
    machines = mast.through(mast.MACHINES, rng.standard_normal(n))
    hours = mast.through(mast.CPU_DURATION_S, rng.standard_normal(n)) / 3600.0
    none = np.zeros(n, np.int64)
    return Jobs(
        training=np.zeros(n, bool),
        gpu_type=none + NO_GPU,
        gpus=none,
        gpu_hours=np.zeros(n),
        cpu_hours=np.rint(machines) * np.minimum(hours, HOURS),
        level=none + LEVELS - 1,
        app=of_team // APP_TEAMS,
        team=of_team,
        recurring=np.ones(n, bool),
        first=first,
        table=table,
    )


def _analytics_uses(rng: np.random.Generator, team: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factor = ANALYTICS_SHARE / (1.0 - ANALYTICS_SHARE)
    mu, sigma = mast.lognormal(mast.SHARING)
    shared = np.clip(np.exp(mu + sigma * rng.standard_normal(len(team))), 0.0, MOST_SHARED)
    stub = np.repeat(np.arange(len(team)), np.maximum(np.rint(shared * factor), 0).astype(np.int64))
    stub = stub[np.lexsort((rng.random(len(stub)), team[stub]))]  # shuffled within each team
    first = np.cumsum(rng.geometric(1.0 / ANALYTICS_READS, len(stub)))
    first = first[: np.searchsorted(first, len(stub))]
    # A job ends where its team's tables do.
    borders = np.flatnonzero(np.diff(team[stub])) + 1
    return each_once(np.unique(np.concatenate([[0], first, borders, [len(stub)]])), stub, len(team))


def each_once(first: np.ndarray, table: np.ndarray, tables: int) -> tuple[np.ndarray, np.ndarray]:
    """The uses without those where a job reads a table again."""
    job = np.repeat(np.arange(len(first) - 1), np.diff(first))
    pair = np.sort(job * tables + table)
    pair = pair[np.diff(pair, prepend=-1) > 0]
    kept = np.bincount(pair // tables, minlength=len(first) - 1)
    return np.concatenate([[0], np.cumsum(kept)]), pair % tables
