"""The rows of generator `mast-like` (mast_jobs.py): which families' workloads come when, how large, for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..warehouse import mast_statistics as mast
from ..warehouse.job_families import Families, draw_work

DAY_S, HOUR_S = 86400.0, 3600.0
PEAK_H, SWING = 15.0, 0.4
JITTER_S = 600.0
GRID = (np.arange(10_000) + 0.5) / 10_000


@dataclass(frozen=True)
class Rows:
    """Workloads, one row each, in no order."""

    family: np.ndarray
    recurring: np.ndarray
    arrival_s: np.ndarray
    duration_s: np.ndarray
    gpus: np.ndarray
    machines: np.ndarray
    level: np.ndarray
    container_s: np.ndarray
    name: np.ndarray

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """All of them, in this order."""
        names = cls.__dataclass_fields__
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def only(self, which: np.ndarray, **changes: np.ndarray) -> Rows:
        """The rows of these indices, with other columns where `changes` has them."""
        kept = {name: getattr(self, name)[which] for name in self.__dataclass_fields__}
        return Rows(**{**kept, **changes})


@dataclass(frozen=True)
class Scale:
    """How sizes are drawn: factor of all, share of a machine without GPUs, the longest run."""

    sizes: float
    machine_share: float
    longest_s: float


def mean_gpu_s(how: Scale, largest: int) -> float:
    """Mean GPU-seconds of a workload."""
    from scipy.special import ndtri

    normal = ndtri(GRID)
    gpus = np.clip(np.rint(mast.through(mast.GPUS, normal) * how.sizes), 1, largest)
    run_s = np.clip(mast.through(mast.GPU_DURATION_S, normal), 1.0, how.longest_s)
    return mast.GPU_SHARE * float(gpus.mean() * run_s.mean())


def drawn(rng: np.random.Generator, families: Families, family: np.ndarray, how: Scale) -> Rows:
    """Workloads of these families, without an arrival; GPUs and machines are not yet capped."""
    n, has = len(family), families.with_gpu[family]
    work = draw_work(rng, families, family, how.longest_s)
    machines = np.rint(work.machines * how.sizes * how.machine_share)
    return Rows(
        family=family,
        recurring=np.zeros(n, bool),
        arrival_s=np.zeros(n),
        duration_s=work.run_s,
        gpus=np.where(has, np.maximum(np.rint(work.gpus * how.sizes), 1.0), 0.0).astype(np.int64),
        machines=np.maximum(machines, np.where(has, 0, 1)).astype(np.int64),
        level=work.level,
        container_s=work.container_s,
        name=np.full(n, "", object),
    )


def cycled(rng: np.random.Generator, items: np.ndarray, count: int) -> np.ndarray:
    """`count` of `items`, each as often as any other but for one, in random order."""
    turns = -(-count // max(len(items), 1))
    return np.concatenate([rng.permutation(items) for _ in range(turns)] or [items[:0]])[:count]


def curve(rng: np.random.Generator, count: int, span_s: float) -> np.ndarray:
    """Times within the span at the rate of their hour of the day."""
    kept = np.zeros(0)
    while len(kept) < count:
        at = rng.random(2 * count + 16) * span_s
        rate = 1.0 + SWING * np.cos(2.0 * np.pi * (at / HOUR_S - PEAK_H) / 24.0)
        kept = np.concatenate([kept, at[rng.random(len(at)) * (1.0 + SWING) < rate]])
    return kept[:count]


def arrivals(
    rng: np.random.Generator, families: Families, how: Scale, span_s: float, per_day: float, count: int
) -> Rows:
    """Recurring workloads day by day, and so many for the first time that there are `count`."""
    regular = cycled(rng, np.flatnonzero(families.recurring), round(mast.RECURRING_SHARE * per_day))
    once = drawn(rng, families, regular, how)
    at = curve(rng, len(regular), DAY_S)
    parts = []
    for day in range(int(np.ceil(span_s / DAY_S))):
        arrival_s = day * DAY_S + (at + JITTER_S * rng.standard_normal(len(at))) % DAY_S
        within = np.flatnonzero(arrival_s < span_s)
        name = np.array([f"r{row}.{day}" for row in within.tolist()], object)
        is_recurring = np.ones(len(within), bool)
        parts.append(once.only(within, arrival_s=arrival_s[within], recurring=is_recurring, name=name))
    rows = Rows.joined(parts)
    rows = rows.only(np.sort(rng.permutation(len(rows.name))[:count]))
    left = count - len(rows.name)
    members = np.repeat(np.arange(len(families)), families.size - families.recurring)
    new = drawn(rng, families, cycled(rng, members if len(members) else np.arange(len(families)), left), how)
    name = np.array([f"f{row}" for row in range(left)], object)
    return Rows.joined([rows, new.only(np.arange(left), arrival_s=curve(rng, left, span_s), name=name)])


def running_at_start(
    rng: np.random.Generator, families: Families, how: Scale, per_day: float, members: np.ndarray | None = None
) -> Rows:
    """What came before time 0 at the mean rate and would still run; `members`: of which families, each as often."""
    count = int(rng.poisson(per_day * how.longest_s / DAY_S))
    if members is None:
        members = np.repeat(np.arange(len(families)), families.size)
    rows = drawn(rng, families, members[rng.integers(0, len(members), count)], how)
    left_s = rows.duration_s - rng.random(count) * how.longest_s
    runs = np.flatnonzero(left_s > 0.0)
    return rows.only(
        runs,
        duration_s=np.maximum(left_s[runs], 1.0),
        recurring=rng.random(len(runs)) < mast.RECURRING_SHARE,
        container_s=np.zeros(len(runs)),
        name=np.array([f"b{row}" for row in range(len(runs))], object),
    )
