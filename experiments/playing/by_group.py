"""Metrics of each level, tenant or region of jobs (`--set by=level`), or of each kind of copies (`by=copy`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.engine.metric_registry import METRICS
from ...simulator.engine.metrics import totals
from ...simulator.regions.copy_times import KINDS
from ...simulator.regions.region_metrics import copy_seconds

OF_JOBS = ("jct_mean", "queueing_delay_mean", "slo_violation_rate", "data_wait_rate", "jobs_finished")
SHARES = {"copy_seconds_p50": 0.5, "copy_seconds_p90": 0.9, "copy_seconds_p99": 0.99}
OF_COPIES = {"copies": ("complete", 1.0)}
OF_COPIES |= {name: (f"P{round(100 * share)}\n[s]", 1.0) for name, share in SHARES.items()}
NOWHERE = -1


def shown_of(by: str) -> dict[str, tuple[str, float]]:
    """The metrics of a group, with their headers and factors in tables; the first is there for every group."""
    if by == "copy":
        return OF_COPIES
    shown = (METRICS[name] for name in OF_JOBS)
    return {one.name: (one.title.replace("\n", " ", one.header.count("\n")), one.factor) for one in shown}


def name_of(metric: str, by: str, group: str) -> str:
    """The name of a group's metric among those of its run: `jct_mean[level=0]`."""
    return f"{metric}[{by}={group}]"


def by_group(simulator: Any, by: str, counted: np.ndarray) -> dict[str, float]:
    """The metrics OF_JOBS of each group that has jobs, by name, at the end of a run; InputError without regions.

    Groups are by `level`, `tenant`, `region` (where a job ran last), or `copy`: kinds of copies, of the whole run.
    `counted`: bool (jobs,), the jobs that count.
    """
    geo = simulator.workload.geo
    if geo is None:
        raise InputError(f"by = {by}: the jobs of workload {simulator.workload.name!r} have no levels or regions")
    s = simulator.raw.record
    if by == "copy":
        return _of_copies(s)
    codes, names = {
        "level": (geo.level, [str(level) for level in range(len(geo.slo_s))]),
        "tenant": (geo.tenant, list(geo.tenant_names)),
        "region": (s["last_region"][: len(geo)], list(geo.regions)),
    }[by]
    arrived = np.arange(len(geo)) < int(s["next_arrival"])
    found: dict[str, float] = {}
    for code in sorted(set(codes[counted & arrived].tolist()) - {NOWHERE}):
        those = totals(simulator.raw, counted & arrived & (codes == code))
        found |= {name_of(metric, by, names[code]): those[metric] for metric in OF_JOBS}
    return found


def _of_copies(s: np.void) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in np.flatnonzero(s["copy_times"].sum(axis=1)).tolist():
        times = zip(SHARES, copy_seconds(s, kind, list(SHARES.values())), strict=True)
        values = {"copies": float(s["copy_times"][kind].sum()), **dict(times)}
        found |= {name_of(metric, "copy", KINDS[kind]): value for metric, value in values.items()}
    return found
