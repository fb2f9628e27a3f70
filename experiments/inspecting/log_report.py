"""What a log says beyond its jobs: waits as they were, estimates, whether it fits a cluster, load by week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.durations import duration
from ...simulator.cluster.topology import Topology
from ...simulator.cluster.unit_types import gpus_of
from ...simulator.workloads import Workload
from ..console.terminal import print_lines
from .workload_report import print_table

if TYPE_CHECKING:
    from rich.console import Console

DAY_S = 86400.0
WEEK_S = 7 * DAY_S
MOST_PARTS = 12  # of a log, in a table
DIGITS = 3  # of instants: milliseconds, so that rounding lets no job begin before another has ended
WITHIN = 2.0
ALL = "all"


def log_facts(workload: Workload, topology: Topology | None = None) -> dict[str, Any]:
    """A log in plain numbers (JSON-ready), as far as it says them; nothing over regions and of PS jobs.

    Returns:
        `waits` ("jobs", mean, p50, p95 of `start_s - arrival_s`, seconds), `estimates` ("jobs", "median" of
        `estimate_s / duration_s`, shares "within_2x": from a half to twice, "under": below 1), `held` (most GPUs held
        at once if jobs start at `start_s`, "at_s"); with a topology there also "jobs_over": those that start when more
        than its GPUs are held, "first_over_s", and `load` (list of {"from_s", "to_s", by type and of "all" the
        GPU-seconds that arrive over those of the GPUs}; parts of equal length, about a week; without the jobs of the
        first arrival, as in `Workload.offered_load`), `too_large` (jobs that ask more GPUs than there are),
        `unknown_types` (types of jobs that the topology names nowhere; where it names any).
    """
    if workload.geo is not None or workload.ps is not None:
        return {}
    facts: dict[str, Any] = {}
    known = np.isfinite(workload.start_s)
    if known.any():
        wait_s = (workload.start_s - workload.arrival_s)[known]
        half_s, most_s = np.quantile(wait_s, [0.5, 0.95]).tolist()
        facts["waits"] = {"jobs": int(known.sum()), "mean": float(wait_s.mean()), "p50": half_s, "p95": most_s}
        facts["held"] = _held(workload.take(known), topology)
    guessed = np.isfinite(workload.estimate_s)
    if guessed.any():
        ratio = (workload.estimate_s / workload.duration_s)[guessed]
        within = float(((ratio >= 1.0 / WITHIN) & (ratio <= WITHIN)).mean())
        facts["estimates"] = {"jobs": int(guessed.sum()), "median": float(np.median(ratio)), "within_2x": within}
        facts["estimates"]["under"] = float((ratio < 1.0).mean())
    return facts if topology is None else facts | _on(workload, topology)


def _held(log: Workload, topology: Topology | None) -> dict[str, Any]:
    time_s = np.round(np.concatenate([log.start_s, log.start_s + log.duration_s]), DIGITS)
    change = np.concatenate([log.gpus, -log.gpus])
    order = np.lexsort((change, time_s))  # at one instant ends come first
    held = np.cumsum(change[order])
    most = int(np.argmax(held))
    facts: dict[str, Any] = {"gpus": int(held[most]), "at_s": float(time_s[order][most])}
    if topology is None:
        return facts
    over = order[(held > gpus_of(topology).num_gpus) & (order < len(log))]
    return facts | {"jobs_over": len(over), "first_over_s": float(time_s[over[0]]) if len(over) else None}


def _on(workload: Workload, topology: Topology) -> dict[str, Any]:
    there = gpus_of(topology)
    gpus = {ALL: there.num_gpus}
    for kind, count in zip(there.cluster_gpu_type, np.bincount(there.gpu_cluster).tolist(), strict=True):
        gpus[kind] = gpus.get(kind, 0) + count
    accepted = {text: [kind for kind in text.split("|") if kind in gpus] for text in set(workload.gpu_type) - {""}}
    is_typed = any(there.cluster_gpu_type)
    unknown = sorted(text for text, kinds in accepted.items() if is_typed and not kinds)
    shown = {text: sum(gpus[kind] for kind in kinds) for text, kinds in sorted(accepted.items()) if kinds}
    facts: dict[str, Any] = {"too_large": int((workload.gpus > there.num_gpus).sum()), "unknown_types": unknown}
    return facts | {"load": _load(workload, {ALL: there.num_gpus} | shown)}


def _load(workload: Workload, gpus: dict[str, int]) -> list[dict[str, float]]:
    """The load in each part of the log; `gpus`: by type. Empty where all jobs come at once."""
    since_s = workload.arrival_s - workload.arrival_s[0]
    span_s = float(since_s[-1])
    if span_s <= 0.0:
        return []
    parts = min(MOST_PARTS, max(1, round(span_s / WEEK_S)))
    part = np.minimum((since_s / span_s * parts).astype(np.int64), parts - 1)
    rows: list[dict[str, float]] = [
        {"from_s": span_s * number / parts, "to_s": span_s * (number + 1) / parts} for number in range(parts)
    ]
    for kind, count in gpus.items():
        mine = (since_s > 0.0) & ((workload.gpu_type == kind) | (kind == ALL))
        work_s = np.bincount(part[mine], (workload.gpus * workload.duration_s)[mine], parts)
        for row, asked_s in zip(rows, work_s.tolist(), strict=True):
            row[kind] = asked_s * parts / (count * span_s)
    return rows


def print_log(facts: dict[str, Any], console: Console) -> None:
    """Print the load by week and type, where there are several, and the facts as lines."""
    rows = facts.get("load", [])
    kinds = [key for key in rows[0] if key not in ("from_s", "to_s")] if rows else []
    if len(rows) * len(kinds) > 1:
        days = [f"{row['from_s'] / DAY_S:.1f} - {row['to_s'] / DAY_S:.1f}" for row in rows]
        shown = [[day, *(f"{row[kind]:.3g}" for kind in kinds)] for day, row in zip(days, rows, strict=True)]
        print_table(console, "Load that arrives, over the GPUs (by type)", ["days", *kinds], shown)
    print_lines(*_lines(facts))


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    if "waits" in facts:
        waits = facts["waits"]
        lines.append(
            f"waits as they were, {waits['jobs']:,} jobs: mean {waits['mean']:,.0f} s, median {waits['p50']:,.0f} s, "
            f"95 % at most {waits['p95']:,.0f} s"
        )
        held = facts["held"]
        lines.append(f"held at once by the log's starts: at most {held['gpus']:,} GPUs, at {duration(held['at_s'])}")
        if held.get("jobs_over"):
            first = duration(held["first_over_s"])
            lines.append(f"does not fit: {held['jobs_over']:,} jobs start when too few GPUs are left, first at {first}")
    if facts.get("too_large"):
        lines.append(f"does not fit: {facts['too_large']:,} jobs ask more GPUs than there are")
    if facts.get("unknown_types"):
        lines.append(f"does not fit: jobs ask types that the topology lacks: {', '.join(facts['unknown_types'])}")
    if "estimates" in facts:
        found = facts["estimates"]
        lines.append(
            f"estimates over run times, {found['jobs']:,} jobs: median {found['median']:.3g}, within a factor of 2 "
            f"{found['within_2x']:.0%}, under 1 {found['under']:.0%}"
        )
    return lines
