"""What the parameter-server jobs of a workload ask, in numbers (`ps_facts`), a line and a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.names import numbered
from ...simulator.jobs.ps_jobs import GIGABYTE, PsJobs
from ...simulator.workloads import Workload

SHOWN = (0.05, 0.5, 0.95)
MOST_MODELS = 12  # of the table; the rest is summed up in one row
_HOUR_S = 3600.0


def ps_facts(workload: Workload, ps: PsJobs) -> dict[str, Any]:
    """What `workload inspect` says of PS jobs (JSON-ready), run times being those on their `gpus` machines.

    Returns:
        `machines` (fewest and most that run times are meant on), `comp_machine_hours`, `comm_hours` (of all iterations
        of all jobs), `summed_ratio` (COMP over COMM time, each summed over an iteration of each job), `ratio` and
        `iteration_s` (p5, p50, p95 over the jobs), `iterations` and `epoch_iterations` (mean), `input_gb` and
        `model_gb` (of all jobs), `models` (see `_facts_of`; falling by machine-hours of COMP).
    """
    ratio, iteration_s = ps.ratio(workload.gpus), ps.iteration_s(workload.gpus)
    code = numbered(workload.model.tolist())
    models = [_facts_of(workload, ps, np.flatnonzero(code == one)) for one in range(int(code.max()) + 1)]
    return {
        "machines": [int(workload.gpus.min()), int(workload.gpus.max())],
        "comp_machine_hours": float(workload.work_s().sum() / _HOUR_S),
        "comm_hours": float((workload.iterations * ps.comm_s).sum() / _HOUR_S),
        "summed_ratio": ps.summed_ratio(workload.gpus),
        "ratio": _points(ratio),
        "iteration_s": _points(iteration_s),
        "iterations": float(workload.iterations.mean()),
        "epoch_iterations": float(ps.epoch_iterations.mean()),
        "input_gb": float(ps.input_bytes.sum() / GIGABYTE),
        "model_gb": float(ps.model_bytes.sum() / GIGABYTE),
        "models": sorted(models, key=lambda row: -row["comp_machine_hours"]),
    }


def _facts_of(workload: Workload, ps: PsJobs, jobs: np.ndarray) -> dict[str, Any]:
    """The jobs of a model: how many, sizes of a job and COMM seconds of an iteration (means), ratio, work."""
    some = ps.take(jobs)
    return {
        "model": workload.model[jobs[0]] or "unknown",
        "jobs": len(jobs),
        "input_gb": float(some.input_bytes.mean() / GIGABYTE),
        "model_gb": float(some.model_bytes.mean() / GIGABYTE),
        "comm_s": float(some.comm_s.mean()),
        "summed_ratio": some.summed_ratio(workload.gpus[jobs]),
        "comp_machine_hours": float(workload.work_s()[jobs].sum() / _HOUR_S),
    }


def ps_line(facts: dict[str, Any]) -> str:
    """One line about COMP and COMM, and one about sizes."""
    low, high = facts["machines"]
    machines = f"{low} machines" if low == high else f"{low} to {high} machines"
    ratio = facts["ratio"]
    return (
        f"PS jobs: {facts['comp_machine_hours']:,.0f} machine-hours of COMP, {facts['comm_hours']:,.0f} h of COMM; on "
        f"{machines} COMP is {facts['summed_ratio']:.3g} of COMM (P5 {ratio['p5']:.3g}, P95 {ratio['p95']:.3g})\n"
        f"input {facts['input_gb']:,.4g} GB, models {facts['model_gb']:,.4g} GB, {facts['iterations']:,.0f} iterations "
        f"a job, a checkpoint every {facts['epoch_iterations']:,.4g}"
    )


def ps_tables(facts: dict[str, Any]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, header and rows of the table that `workload inspect` prints of PS jobs."""
    shown, rest = facts["models"][:MOST_MODELS], facts["models"][MOST_MODELS:]
    rows: list[tuple[str, ...]] = [
        (
            row["model"],
            f"{row['jobs']:,}",
            f"{row['input_gb']:,.4g}",
            f"{row['model_gb']:,.4g}",
            f"{row['comm_s']:.3g}",
            f"{row['summed_ratio']:.3g}",
            f"{row['comp_machine_hours']:,.0f}",
        )
        for row in shown
    ]
    if rest:
        jobs, hours = (sum(row[key] for row in rest) for key in ("jobs", "comp_machine_hours"))
        rows.append((f"{len(rest)} more", f"{jobs:,}", "", "", "", "", f"{hours:,.0f}"))
    header = ("", "jobs", "input GB", "model GB", "COMM s", "COMP / COMM", "COMP machine-hours")
    return [("What a PS job asks (means)", header, rows)]


def _points(values: np.ndarray) -> dict[str, float]:
    return {f"p{100 * q:g}": float(value) for q, value in zip(SHOWN, np.quantile(values, SHOWN), strict=True)}
