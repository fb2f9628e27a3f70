"""Paper mast's fast path, Sec. 4.1, 4.3 and 5: its runs, and what is counted of them.

Workloads are `mast-like` on the preset `mast`, whose homes of tables are those that users chose. Tetris has looked at
them before, as the paper's does every day: it is asked for a plan, without a quota, and the run begins with the tables
as that plan has them. So only what the slow path does not know has to be copied during the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ....policies.mast.mast import WorkloadPassPolicy
from ....policies.tetris import VERSIONS, Tetris
from ....policies.two_paths import TwoPathPolicy
from ....simulator.base.codes import HIGH_LEVELS, LEVELS
from ....simulator.base.decisions import Advance
from ....simulator.cluster.region_network import CPU_TYPE
from ....simulator.cluster.topology import Topology
from ....simulator.engine.simulator import Simulator
from ....simulator.workloads import Workload, open_workload
from ..case import Case, Outcome
from ..engine import Play, RowContext
from ..rows import Row, printed, ratio
from ..schema import Line

HOUR_S = 3600.0
PROMISED = 4  # levels 0 to 3 have a time to start in
LEVELS_OF = {"promised": range(PROMISED), "high": range(HIGH_LEVELS), "third": range(PROMISED - 1, PROMISED)}
BUSY_H = (11.0, 19.0)  # the eight hours around the peak of a day's arrivals; two more for late starts
WARM_H = 2.0  # what is there at the beginning comes all at once


def fast(case: Case, gpus: int, tables: str, raised: bool, quotas: float = 1.0) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival, but those of passes.

    Args:
        case: what to play.
        gpus: in all regions together.
        tables: the version of Tetris that has placed the tables.
        raised: level 3 counts as level 2, so that nearly all are of high priority.
        quotas: times what `mast-like` gives every tenant.

    Metrics with how often regions were `asked` for a plan, for how many of these the negative cache `spared` the
    search; `starts` of workloads; `fullest`: of all passes the mean share of a region's GPUs that high priorities hold,
    in the region where it is largest; `demand`: GPU-seconds that all ask until the end of the run, over those that
    there are; `hours` of the run. `arrival_s`; `wait_s`: seconds until the first start, and until the state of those
    stopped for it is saved, inf: it has not started; `level`: priority; `within`: 1: within quota when GMS saw it
    first; `gpus` that it asks; `candidates`: regions with its tables and its hardware when the run begins.
    `pass_pending`, `pass_asked`, `pass_spared`: at each instant with passes, how many were pending in the last one, how
    often regions were asked, and for how many of these the negative cache had the answer.
    """
    workload = placed(case, tables, raised, quotas)
    simulator, policy = case.begun(workload)
    assert isinstance(policy, TwoPathPolicy) and workload.geo is not None
    within, fullest, passes = _played(simulator, policy)
    s, jobs = simulator.state, len(workload)
    first_s = s.first_start_s[:jobs]
    half = policy.fast
    assert isinstance(half, WorkloadPassPolicy)
    counts = {
        "asked": half.asked,
        "spared": half.spared,
        "starts": float(s.starts[:jobs].sum()),
        "fullest": fullest,
        "demand": _demand(workload, gpus, case.setting.config.horizon_s),
        "hours": case.setting.config.horizon_s / HOUR_S,
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


def _played(simulator: Simulator, policy: TwoPathPolicy) -> tuple[np.ndarray, float, np.ndarray]:
    """Play to the end. Returns which workloads GMS called within quota when it saw them first, bool (jobs,).

    Only to these a start in time is promised (Sec. 2). And `fullest`, and passes, float64 (n, 3): see `fast`.
    """
    fast, geo, topology = policy.fast, simulator.workload.geo, simulator.topology
    assert isinstance(fast, WorkloadPassPolicy) and geo is not None
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


def _late(outcome: Outcome, levels: range, hours: tuple[float, float], within: bool = True) -> float:
    """Workloads of these levels that came within some hours and started too late, % of all of them; nan: none came.

    Only those that were within quota when they came, or only those that were not.
    """
    from ....simulator.workloads.mast_jobs import SLO_S

    counted = (outcome["arrival_s"] >= hours[0] * HOUR_S) & (outcome["arrival_s"] < hours[1] * HOUR_S)
    counted &= np.isin(outcome["level"], list(levels)) & (outcome["within"].astype(bool) == within)
    late_ones = outcome["wait_s"] > np.array(SLO_S)[outcome["level"].astype(np.int64)]
    return 100.0 * float(late_ones[counted].mean()) if counted.any() else float("nan")


def busy(outcome: Outcome) -> tuple[float, float]:
    """From which hour to which starts are looked at: those that are due by the end."""
    return BUSY_H if outcome.metrics["hours"] > BUSY_H[1] else (WARM_H, outcome.metrics["hours"] - 1.0)


def late(outcome: Outcome, whose: str) -> float:
    """Workloads within quota, of some levels, that do not start in time in the busiest hours, %."""
    return _late(outcome, LEVELS_OF[whose], busy(outcome))


def late_over(outcome: Outcome, whose: str) -> float:
    """The same of those over quota."""
    return _late(outcome, LEVELS_OF[whose], busy(outcome), within=False)


def late_all(outcome: Outcome) -> float:
    """The same as `late` of all hours but the first."""
    return _late(outcome, LEVELS_OF["promised"], (WARM_H, outcome.metrics["hours"] - 1.0))


def worst_hour(outcome: Outcome, whose: str) -> float:
    """The same as `late` in the hour of the trace in which it is worst."""
    each = [_late(outcome, LEVELS_OF[whose], (hour, hour + 1.0)) for hour in np.arange(*busy(outcome))]
    return float(np.nanmax(each)) if np.isfinite(each).any() else float("nan")


def _waits_s(outcome: Outcome, within: int) -> np.ndarray:
    left_s = outcome.metrics["hours"] * HOUR_S - outcome["arrival_s"]
    chosen = (outcome["arrival_s"] >= WARM_H * HOUR_S) & (outcome["within"] == within)
    return np.asarray(np.minimum(outcome["wait_s"], left_s)[chosen])


def wait_p95_s(outcome: Outcome, within: int) -> float:
    """P95 of the seconds until workloads start, within quota (1) or over it (0); the end counts for those left."""
    return float(np.quantile(_waits_s(outcome, within), 0.95))


def wait_mean_s(outcome: Outcome, within: int) -> float:
    """Their mean."""
    return float(_waits_s(outcome, within).mean())


def wait_ratio(outcome: Outcome) -> float:
    """P95 within quota over that over quota."""
    return wait_p95_s(outcome, 1) / wait_p95_s(outcome, 0)


def preempted(outcome: Outcome) -> float:
    """How often a workload was preempted, in the mean over all that came (Sec. 5.1)."""
    return outcome.metrics["preemptions"] / len(outcome["arrival_s"])


def candidate_share(outcome: Outcome, least: int) -> float:
    """Workloads with so many candidate regions or more, % (Figure 7)."""
    return 100.0 * float((outcome["candidates"] >= least).mean())


def hit_share(outcome: Outcome, pending: str = "0/inf") -> float:
    """Attempts that the cache answered, % of those of passes with FROM/TO pending workloads; nan: there were none."""
    low, high = map(float, pending.split("/"))
    these = (outcome["pass_pending"] >= low) & (outcome["pass_pending"] < high)
    asked = float(outcome["pass_asked"][these].sum())
    return 100.0 * float(outcome["pass_spared"][these].sum()) / asked if asked else float("nan")


def attempts(outcome: Outcome) -> float:
    """Attempts to place a workload in a region, a start."""
    return outcome.metrics["asked"] / outcome.metrics["starts"]


def sameness(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Whether (9) with one workload at a time starts every workload when (6) does."""
    (at,) = play.group(play.entry.at)
    pairs = zip(*(play.runs.of(policy, at) for policy in line.policies), strict=True)
    same = [np.array_equal(one["wait_s"], other["wait_s"]) for one, other in pairs]
    what = "traces on which (9), one at a time, starts all as (6) does"
    yield Row(what, 100.0, 100.0 * float(np.mean(same)), (100.0, 100.0), unit="%")


def least_trace(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The least number of all traces."""
    (at,) = play.group(line.at)
    yield printed(line.what, min(play.runs.each(play.take(line, None), line.policies[0], at)), line.unit, line.paper)


def highest(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The highest mean of all settings."""
    take = play.take(line, next(iter(line.columns), None))
    means = (play.runs.mean(take, line.policies[0], at).mean for at in play.group(play.entry.at))
    yield ratio(line.what, line.paper, max(0.0, *means), line.unit)
