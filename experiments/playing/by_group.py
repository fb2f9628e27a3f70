"""Metrics of groups of jobs (`--set by=user`), or in regions of kinds of copies (`by=copy`).

Jobs are grouped by a column of the workload, by their GPUs (of job groups machines), by the hour of day of their
arrival, on an arrival clock whose time 0 is midnight, or by the region where they ran last. The MOST groups with most
jobs stand alone, in slices of a log those of the whole log; the jobs of all others are `others`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.engine.metric_registry import METRICS
from ...simulator.engine.metrics import totals
from ...simulator.regions.copy_times import KINDS
from ...simulator.regions.region_metrics import copy_seconds
from ...simulator.workloads import Workload
from ...simulator.workloads.log_samples import is_sampled, samples_of
from ..settings.evaluation_setting import Setting
from .runs import Run, grouped

MOST = 24  # as many as a day has hours
OTHERS, UNKNOWN = "others", "unknown"
OF_REGIONS, NUMBERS = ("region", "copy"), ("gpus", "level", "hour")
DAY_H = 24.0
HEADERS = {"queueing_delay_p95": "queueing P95", "slowdown_mean": "slowdown", "slo_violation_rate": "late"}
OF_JOBS = (
    *("jct_mean", "queueing_delay_mean", "queueing_delay_p95", "slowdown_mean"),
    *("slo_violation_rate", "data_wait_rate", "jobs_finished"),
)
COUNTS = ("jobs_finished", "copies")
SHARES = {"copy_seconds_p50": 0.5, "copy_seconds_p90": 0.9, "copy_seconds_p99": 0.99}
OF_COPIES = {"copies": ("complete", 1.0)}
OF_COPIES |= {name: (f"P{round(100 * share)}\n[s]", 1.0) for name, share in SHARES.items()}
Groups = Mapping[str, np.ndarray]  # a group's name -> which jobs are in it, bool (jobs,)


def _shown_of(by: str) -> dict[str, tuple[str, float]]:
    """The metrics of a group, with their headers and factors in tables."""
    if by == "copy":
        return OF_COPIES
    found = (replace(METRICS[name], header=HEADERS.get(name, METRICS[name].header)) for name in OF_JOBS)
    return {one.name: (one.title.replace("\n", " ", one.header.count("\n")), one.factor) for one in found}


def _name_of(metric: str, by: str, group: str) -> str:
    """The name of a group's metric among those of its run: `jct_mean[level=0]`."""
    return f"{metric}[{by}={group}]"


def expect_groups(setting: Setting, by: str, workload: Workload) -> None:
    """InputError: the jobs of a workload cannot be told apart by `by`."""
    whose = f"the jobs of workload {workload.name!r}"
    if by in OF_REGIONS and workload.geo is None:
        raise InputError(f"by = {by}: {whose} have no regions")
    if by == "hour" and is_sampled(setting.workload) and not (found := samples_of(setting.workload)[0]).has_hours:
        raise InputError(f"by = hour: {found.parts} begin at any hour of a day; expected slices of 24 h, or days")
    is_known = by in (*OF_REGIONS, "gpus", "hour") or (by == "level" and workload.geo is not None)
    if not is_known and not any(column_of(workload, by).tolist()):
        raise InputError(f"by = {by}: {whose} have no {by}{' but 0' if by == 'level' else ''}")


def by_group(simulator: Any, setting: Setting, by: str, counted: np.ndarray) -> dict[str, float]:
    """The metrics OF_JOBS of each group that has jobs, by name, at the end of a run; over `copy` of the whole run.

    `counted`: bool (jobs,), the jobs that count.
    """
    s, workload = simulator.raw.record, simulator.workload
    if by == "copy":
        return _of_copies(s)
    log = samples_of(setting.workload)[0].log if is_sampled(setting.workload) else workload
    in_group = _regions(s, workload) if by == "region" else groups_of(workload, by, log)
    arrived = np.arange(len(workload)) < int(s["next_arrival"])
    metrics = partial(totals, simulator.raw) if workload.ps is None else simulator.metrics
    no_limit = workload.geo is None and not np.isfinite(workload.deadline_s).any()
    absent = {"slo_violation_rate"} if no_limit else set()
    names = [name for name in OF_JOBS if name not in absent and (workload.geo or name != "data_wait_rate")]
    found: dict[str, float] = {}
    for group, jobs in in_group.items():
        chosen = jobs & counted & arrived
        if chosen.any():
            those = metrics(chosen)
            found |= {_name_of(metric, by, group): those[metric] for metric in names}
    return found


def groups_of(workload: Workload, by: str, log: Workload) -> Groups:
    """The jobs of a workload by a column; which groups stand alone is decided by all jobs of its `log`."""
    own, counts = column_of(workload, by).tolist(), Counter(column_of(log, by).tolist())
    counts.update(value for value in own if value not in counts)  # gangs that were capped
    kept = [value for value, _ in counts.most_common(MOST)]
    names = {value: str(value) or UNKNOWN for value in (sorted(kept) if by in NUMBERS else kept)}
    group = np.array([names.get(value, OTHERS) for value in own], dtype=object)
    return {name: group == name for name in dict.fromkeys([*names.values(), OTHERS])}


def column_of(workload: Workload, by: str) -> np.ndarray:
    """What `by` says of each job, (jobs,): text, or whole numbers of NUMBERS."""
    if by == "hour":
        return (workload.arrival_s // 3600.0 % DAY_H).astype(np.int64)
    if by == "tenant" and workload.geo is not None:
        return np.array(workload.geo.tenant_names, dtype=object)[workload.geo.tenant]
    return workload.gpus_asked if by == "gpus" else np.asarray(getattr(workload, by))


def _regions(s: np.void, workload: Workload) -> Groups:
    assert workload.geo is not None
    last = s["last_region"][: len(workload)]
    return {name: last == code for code, name in enumerate(workload.geo.regions)}


def _of_copies(s: np.void) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in np.flatnonzero(s["copy_times"].sum(axis=1)).tolist():
        times = zip(SHARES, copy_seconds(s, kind, list(SHARES.values())), strict=True)
        values = {"copies": float(s["copy_times"][kind].sum()), **dict(times)}
        found |= {_name_of(metric, "copy", KINDS[kind]): value for metric, value in values.items()}
    return found


def metrics_of(runs: Sequence[Run], by: str) -> dict[str, tuple[str, float]]:
    """The metrics that some runs have of groups, with their headers and factors in tables."""
    known = {name.partition("[")[0] for run in runs for name in run.metrics if f"[{by}=" in name}
    return {name: one for name, one in _shown_of(by).items() if name in known}


def means_of(runs: Sequence[Run], by: str, metrics: Sequence[str] = ()) -> list[tuple[str, str, dict[str, float]]]:
    """Policy, group, and means of metrics over the seeds that have it; nan: none has. No metric: all."""
    known = list(metrics_of(runs, by))
    found = []
    for policy, mine in grouped(runs).items():
        for group in _names(mine, next(iter(known), ""), by):
            means = {name: _mean(mine, _name_of(name, by, group)) for name in metrics or known}
            found.append((policy, group, means))
    return found


def table_of(runs: Sequence[Run], by: str, names: Sequence[str] = ()) -> tuple[list[str], list[list[str]], str]:
    """Headers and rows of a table of groups, policy, group, then `means_of` the metrics `names`; and a note."""
    metrics = metrics_of(runs, by)
    rows = [
        [policy, group, *(_shown(name, mean, metrics[name][1]) for name, mean in means.items())]
        for policy, group, means in means_of(runs, by, names)
    ]
    notes = ["means over the seeds that have some in the group"]
    notes += [f"{OTHERS}: all but the {MOST} groups with most jobs"] * any(row[1] == OTHERS for row in rows)
    notes += ["hours of arrival, of days that begin at time 0 of the arrival clock"] * (by == "hour")
    return ["policy", by, *(metrics[name][0] for name in names or metrics)], rows, "; ".join(notes)


def _shown(name: str, mean: float, factor: float) -> str:
    digits = 0 if name in COUNTS and mean % 1.0 == 0.0 else 1
    return "-" if math.isnan(mean) else f"{factor * mean:,.{digits}f}"


def _names(runs: Sequence[Run], metric: str, by: str) -> list[str]:
    """The groups of some runs: numbers ascending, names in order of appearance, OTHERS last."""
    names = dict.fromkeys(name for run in runs for name in run.metrics if name.startswith(f"{metric}[{by}="))
    groups = [name.partition("=")[2][:-1] for name in names]
    return sorted(groups, key=lambda one: math.inf if one == OTHERS else float(one) if by in NUMBERS else 0.0)


def _mean(runs: Sequence[Run], name: str) -> float:
    known = [value for run in runs if not math.isnan(value := run.metrics.get(name, math.nan))]
    return sum(known) / len(known) if known else math.nan
