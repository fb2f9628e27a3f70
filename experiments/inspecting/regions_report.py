"""What a workload over regions asks, in numbers (`region_facts`) and as tables (`region_tables`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.warehouse.demands import MOST_PARTS, Demands
from ...simulator.workloads import Workload

SHOWN = (0.5, 0.9, 0.99)
_HOUR_S = 3600.0
_TERABYTE = 1e12


def region_facts(workload: Workload, geo: Demands) -> dict[str, Any]:
    """What `workload inspect` says of regions (JSON-ready).

    Returns:
        `regions` (how many), `types` (list of {"type", of parts that accept several `A100|H100`, "jobs", "job_share",
        "units" (p50, p90, p99 of those that ask it), "unit_hours"}), `parts` (share of jobs with 1, 2, ... of them),
        `levels` (share of jobs, from the highest), `recurring` (share of jobs), `container_s` (p50, p90, p99),
        `tables` (how many, "tb" in all, p50, p90, p99 of "size_tb", of "readers": jobs that read a table that is read,
        and "per_job", mean), `history` (jobs that the slow path knows), `tenants` (that have a quota or a job).
    """
    hours = workload.duration_s / _HOUR_S
    types = []
    sets = np.unique(geo.accepts[geo.accepts != 0]).tolist()
    for bits in sorted(sets, key=lambda bits: (bits & bits - 1 != 0, bits)):
        name = "|".join(kind for code, kind in enumerate(geo.gpu_types) if bits >> code & 1)
        units = np.where(geo.accepts == bits, geo.part_units, 0).sum(axis=1)
        asks = units > 0
        row = {"type": name, "jobs": int(asks.sum()), "job_share": float(asks.mean())}
        types.append({**row, "units": _points(units[asks]), "unit_hours": float((units * hours).sum())})
    readers = np.bincount(geo.table, minlength=len(geo.tables))
    return {
        "regions": len(geo.regions),
        "types": types,
        "parts": _shares((geo.part_units > 0).sum(axis=1) - 1, MOST_PARTS),
        "levels": _shares(geo.level, len(geo.slo_s)),
        "recurring": float(geo.recurring.mean()),
        "container_s": _points(geo.container_s),
        "tables": {
            "tables": len(geo.tables),
            "tb": float(geo.tables.size_bytes.sum() / _TERABYTE),
            "size_tb": _points(geo.tables.size_bytes / _TERABYTE),
            "readers": _points(readers[readers > 0]),
            "per_job": float(np.diff(geo.first).mean()),
        },
        "history": len(geo.history),
        "tenants": len(geo.quota),
    }


def region_tables(facts: dict[str, Any]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, header and rows of each table that `workload inspect` prints of regions."""
    names = [f"p{100 * q:g}" for q in SHOWN]
    tables = facts["tables"]
    types = [
        (row["type"], f"{row['jobs']:,}", f"{row['job_share']:.1%}", *_words(row["units"]), f"{row['unit_hours']:,.0f}")
        for row in facts["types"]
    ]
    spreads = [
        ("set-up of containers, s", *_words(facts["container_s"])),
        ("size of a table, TB", *_words(tables["size_tb"])),
        ("jobs that read a table", *_words(tables["readers"])),
    ]
    levels = [(str(level), f"{share:.1%}") for level, share in enumerate(facts["levels"])]
    return [
        ("Units by type (CPU: machines)", ("", "jobs", "of jobs", *names, "unit-hours"), types),
        ("Levels (0 is the highest)", ("level", "of jobs"), levels),
        ("Data and set-up", ("", *names), spreads),
    ]


def region_line(facts: dict[str, Any]) -> str:
    """One line about regions and tables."""
    tables = facts["tables"]
    several = 1.0 - facts["parts"][0]
    return (
        f"over {facts['regions']} regions: {tables['tables']:,} tables of {tables['tb']:,.1f} TB, "
        f"{tables['per_job']:.2f} read by a job; {several:.0%} of several parts, {facts['recurring']:.0%} recurring; "
        f"{facts['history']:,} jobs in the slow path's history"
    )


def _points(values: np.ndarray) -> dict[str, float]:
    held = values if len(values) else np.zeros(1)
    return {f"p{100 * q:g}": float(value) for q, value in zip(SHOWN, np.quantile(held, SHOWN), strict=True)}


def _words(points: dict[str, float]) -> list[str]:
    return [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in points.values()]


def _shares(values: np.ndarray, kinds: int) -> list[float]:
    return [float(share) for share in np.bincount(values, minlength=kinds) / len(values)]
