"""Time of one search for rotations, and how often it finds the optimum: rows that `bench network` prints.

The jobs are drawn as experiments/reproduce/cassini/cassini_instances.py says. The grid is 5 degrees of each job's own
circle, and of the unified circle for the last row.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _measure import verdict

from clustergym.experiments.reproduce.cassini.cassini_instances import PERIODS, drawn_jobs, on_one_link
from clustergym.policies.cassini.compatibility import exact, solve
from clustergym.simulator.contention.circle import Grid

SAME, CLOSE = 1e-9, 1e-3  # of the score
GOAL_S, GOAL_JOBS = 2e-3, 5
COLUMNS = ("jobs", "periods", "grid", "angles", "ms, median", "ms, 95 %", "optimum", "within 0.001", "target", "")


def measure_rotations(seed: int, quick: bool) -> list[dict[str, Any]]:
    """The rows: two to six jobs, three kinds of periods. Up to four jobs (five, unless quick) against all rotations."""
    rows = [
        _measured(jobs, periods, Grid(), 3 if quick else 100, seed, compared=jobs <= 4)
        for jobs in (2, 3, 4, 5, 6)
        for periods in PERIODS
    ]
    return [*rows, _measured(5, "free", Grid(of_circle=True), 3 if quick else 100, seed, compared=True)]


def _measured(jobs: int, periods: str, grid: Grid, instances: int, seed: int, compared: bool) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    solve(on_one_link(drawn_jobs(np.random.default_rng(seed), jobs, periods), grid))  # compiles
    taken_s, gaps, angles = [], [], []
    for _ in range(instances):
        overlay = on_one_link(drawn_jobs(random, jobs, periods), grid)
        began_s = time.process_time()
        found = solve(overlay)
        taken_s.append(time.process_time() - began_s)
        angles.append(overlay.demand.shape[1])
        if compared:
            gaps.append(exact(overlay).scores[0] - found.scores[0])
    median_s = float(np.median(taken_s))
    target = GOAL_S if jobs == GOAL_JOBS else None
    return {
        "name": f"rotations of {jobs} jobs, {periods} periods" + (", degrees of the circle" if grid.of_circle else ""),
        "jobs": jobs,
        "periods": periods,
        "grid": "unified circle" if grid.of_circle else "own circle",
        "angles": float(np.mean(angles)),
        "instances": instances,
        "median_s": median_s,
        "p95_s": float(np.quantile(taken_s, 0.95)),
        "optimal": float(np.mean(np.array(gaps) < SAME)) if gaps else None,
        "close": float(np.mean(np.array(gaps) < CLOSE)) if gaps else None,
        "target": target,
        "met": None if target is None else median_s <= target,
    }


def table_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row of `measure_rotations` for the columns `COLUMNS`."""
    return (
        str(row["jobs"]),
        row["periods"],
        row["grid"],
        f"{row['angles']:.0f}",
        f"{1e3 * row['median_s']:.2f}",
        f"{1e3 * row['p95_s']:.2f}",
        None if row["optimal"] is None else f"{100 * row['optimal']:.0f} %",
        None if row["close"] is None else f"{100 * row['close']:.0f} %",
        row["target"] and f"<= {1e3 * row['target']:g} ms",
        verdict(row["met"]),
    )
