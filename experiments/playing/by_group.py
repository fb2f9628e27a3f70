"""Metrics of a part of the jobs of a run over regions: of each level, tenant or region (`--set by=level`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.engine.metrics import totals

METRICS = ("jct_mean", "queueing_delay_mean", "slo_violation_rate", "data_wait_rate", "jobs_finished")
NOWHERE = -1


def name_of(metric: str, by: str, group: str) -> str:
    """What a metric of a group is called among those of its run: `jct_mean[level=0]`."""
    return f"{metric}[{by}={group}]"


def by_group(simulator: Any, by: str, counted: np.ndarray) -> dict[str, float]:
    """Those METRICS of each group that has jobs, by name.

    Args:
        simulator: at the end of a run over regions.
        by: `level`, `tenant` or `region`; a region's jobs are those that ran there last.
        counted: bool (jobs,), the jobs that count at all.

    Raises:
        InputError: its jobs ask nothing of regions.
    """
    geo = simulator.workload.geo
    if geo is None:
        raise InputError(f"by = {by}: the jobs of workload {simulator.workload.name!r} have no levels or regions")
    s = simulator.plain.record
    codes, names = {
        "level": (geo.level, [str(level) for level in range(len(geo.slo_s))]),
        "tenant": (geo.tenant, list(geo.tenant_names)),
        "region": (s["last_region"][: len(geo)], list(geo.regions)),
    }[by]
    arrived = np.arange(len(geo)) < int(s["next_arrival"])
    found: dict[str, float] = {}
    for code in sorted(set(codes[counted & arrived].tolist()) - {NOWHERE}):
        those = totals(simulator.plain, counted & arrived & (codes == code))
        found |= {name_of(metric, by, names[code]): those[metric] for metric in METRICS}
    return found
