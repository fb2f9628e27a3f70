"""One run of paper mast's fast path: a scheduler on generated workloads whose tables Tetris has placed.

Workloads are `mast-like` on the preset `mast`, whose homes of tables are those that users chose. Tetris has looked at
them before, as the paper's does every day: it is asked for a plan, without a quota, and the run begins with the tables
as that plan has them. So only what the slow path does not know has to be copied during the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ....policies.mast.mast import Passes
from ....policies.tetris import VERSIONS, Tetris
from ....policies.two_paths import Paths
from ....simulator.base.codes import HIGH_LEVELS, LEVELS
from ....simulator.base.decisions import Advance
from ....simulator.cluster.region_network import CPU_TYPE
from ....simulator.cluster.topology import Topology
from ....simulator.engine.simulator import Simulator
from ....simulator.workloads import Workload, open_workload
from ...settings.evaluation_setting import Setting
from ..case import Case

HOUR_S, DAY_S = 3600.0, 86_400.0


def fast_case(
    policy: str,
    regions: int,
    gpus: int,
    cpus: int,
    hours: float,
    load: float,
    tables: str = "tetris-v2",
    seed: int = 0,
    raised: bool = False,
    quotas: float = 1.0,
    copies: str = "bandwidth",
) -> Case:
    """One run of `fast`.

    Args:
        policy: its word, without a slow half.
        regions: of the preset and of the generator.
        gpus: in all regions together.
        cpus: CPU machines.
        hours: how long it is played; workloads arrive all the while.
        load: offered GPU-seconds over those that there are.
        tables: the version of Tetris that has placed the tables.
        seed: of the workloads.
        raised: level 3 counts as level 2, so that nearly all are of high priority.
        quotas: times what `mast-like` gives every tenant.
        copies: of tables take what links allow (`bandwidth`), or drawn hours, the urgent first (`published`).
    """
    order = "urgent" if copies == "published" else "equal"
    size = f"regions={regions},gpus={gpus},cpu_machines={cpus}"
    words = f"mast:{size}", f"mast-like:days={hours / 24.0!r},{size},load={load!r}"
    setting = Setting.of(
        "clustergym/Geo-v0",
        *words,
        "none",
        horizon_s=hours * HOUR_S,
        tables_every_s=None,
        copy_time=copies,
        copy_order=order,
    )
    given = {"gpus": gpus, "tables": tables, "raised": raised, "quotas": quotas}
    return Case(policy, setting, seed, "mast.mast_case:fast", tuple(given.items()))


def fast(case: Case, gpus: int, tables: str, raised: bool, quotas: float = 1.0) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival, but those of passes.

    Metrics with how often regions were `asked` for a plan, for how many of these the negative cache `spared` the
    search; `starts` of workloads; `fullest`: of all passes the mean share of a region's GPUs that high priorities hold,
    in the region where it is largest; `demand`: GPU-seconds that all ask until the end of the run, over those that
    there are. `arrival_s`; `wait_s`: seconds until the first start, and until the state of those stopped for it is
    saved, inf: it has not started; `level`: priority; `within`: 1: within quota when GMS saw it first; `gpus` that it
    asks; `candidates`: regions with its tables and its hardware when the run begins. `pass_pending`, `pass_asked`,
    `pass_spared`: at each instant with passes, how many were pending in the last one, how often regions were asked, and
    for how many of these the negative cache had the answer.
    """
    workload = placed(case, tables, raised, quotas)
    simulator, policy = case.begun(workload)
    assert isinstance(policy, Paths) and workload.geo is not None
    within, fullest, passes = _played(simulator, policy)
    s, jobs = simulator.state, len(workload)
    first_s = s.first_start_s[:jobs]
    half = policy.fast
    assert isinstance(half, Passes)
    counts = {
        "asked": half.asked,
        "spared": half.spared,
        "starts": float(s.starts[:jobs].sum()),
        "fullest": fullest,
        "demand": _demand(workload, gpus, case.setting.config.horizon_s),
    }
    return {
        "metrics": {**simulator.metrics(), **counts},
        "arrival_s": workload.arrival_s,
        "wait_s": np.where(first_s >= 0.0, first_s + s.first_save_s[:jobs], np.inf) - workload.arrival_s,
        "level": workload.geo.level.astype(np.float64),
        "within": within.astype(np.float64),
        "gpus": workload.geo.asked[:, 0].astype(np.float64),
        "candidates": _candidates(workload, simulator.topology).astype(np.float64),
        **dict(zip(("pass_pending", "pass_asked", "pass_spared"), passes.T, strict=True)),
    }


@lru_cache(maxsize=2)
def _placed(topology: str, word: str, version: str, seed: int, raised: bool, quotas: float) -> Workload:
    workload = open_workload(word, seed=seed)
    assert workload.geo is not None
    warehouse = workload.geo.warehouse(Topology.load(topology))
    for name in dict.fromkeys(("static", version)):
        warehouse = Tetris(VERSIONS[name]).plan(warehouse).applied(warehouse)
    level, quota = workload.geo.level, np.ceil(quotas * workload.geo.quota).astype(np.int64)
    if raised:
        level = np.where(level == HIGH_LEVELS, HIGH_LEVELS - 1, level)
    return workload.with_geo(replace(workload.geo, tables=warehouse.tables, level=level, quota=quota))


def placed(case: Case, tables: str, raised: bool = False, quotas: float = 1.0) -> Workload:
    """The workloads of a case, their tables where a version of Tetris has put them."""
    return _placed(case.setting.topology, case.setting.workload, tables, case.seed, raised, quotas)


def _candidates(workload: Workload, topology: Topology) -> np.ndarray:
    """Regions that have all tables of each workload, and its hardware, int64 (jobs,)."""
    geo = workload.geo
    assert geo is not None
    found = geo.hosts(topology).copy()
    np.logical_and.at(found, geo.owner, geo.tables.copies[geo.table])
    return found.sum(axis=1)


def _demand(workload: Workload, gpus: int, horizon_s: float) -> float:
    assert workload.geo is not None
    runs_s = np.minimum(workload.duration_s, horizon_s - workload.arrival_s)
    return float((workload.geo.asked[:, 0] * runs_s).sum() / (gpus * horizon_s))


def _played(simulator: Simulator, policy: Paths) -> tuple[np.ndarray, float, np.ndarray]:
    """Play to the end. Returns which workloads GMS called within quota when it saw them first, bool (jobs,).

    Only to these a start in time is promised (Sec. 2). And `fullest`, and what there is of passes, float64 (n, 3); see
    `FastOutcome`.
    """
    fast, geo, topology = policy.fast, simulator.workload.geo, simulator.topology
    assert isinstance(fast, Passes) and geo is not None
    units = np.bincount(topology.gpu_cluster, minlength=topology.num_clusters)
    gpus = np.array([kind != CPU_TYPE for kind in topology.cluster_gpu_type])
    there = np.bincount(topology.cluster_region[gpus], units[gpus])
    within, seen, shares, passes = np.zeros(len(geo), bool), 0, [], []
    while not simulator.ended:
        before = (fast.asked, fast.spared)
        decision = simulator.ask(policy)
        come = int(simulator.state.next_arrival)
        within[seen:come] = fast.levels[seen:come] == geo.level[seen:come]
        seen = come
        while not isinstance(decision, Advance):
            simulator.apply(decision)
            decision = simulator.ask(policy)
        if fast.asked > before[0]:
            passes.append((fast.pending, fast.asked - before[0], fast.spared - before[1]))
        held = fast.held[:, LEVELS - HIGH_LEVELS :].sum(axis=1)
        shares.append(float((np.bincount(topology.cluster_region[gpus], held[gpus]) / there).max()))
        simulator.advance()
    return within, float(np.mean(shares)), np.array(passes, np.float64).reshape(-1, 3)
