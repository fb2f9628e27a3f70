"""Paper harmony: what its two baselines were calibrated on: `isolated`'s machines, naive co-location's interference.

On workloads of seeds 1000 to 1009, which nothing else is played on, and on the rows of these two alone.
"""

from __future__ import annotations

import math

from ..findings import Findings, Options
from ..rows import Row, printed
from . import harmony_published as published
from .harmony_naive import GRID, averaged, word
from .harmony_runs import CPU, DOP, LOSS, NO_LIMIT, Cell, Select, jct_h, makespan_h, play, under

SEEDS = range(1000, 1010)
DOPS = (4, 5, 6, 7, 8, 9, 10, 12)
LOSSES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
DERIVED: dict[Select, float] = {
    "all": 58.3,
    "compute": 57.3,
    "communication": 58.5,
}  # Harmony's CPU over its makespan ratio


def calibration(options: Options) -> Findings:
    """Every candidate, and which is nearest."""
    seeds = SEEDS[:2] if options.quick else SEEDS
    rows: list[Row] = []
    for select, paper in DERIVED.items():
        cell = Cell(select)
        words = {dop: f"isolated:dop={dop}" for dop in DOPS}
        runs = play("harmony-calibration", options, [cell], list(words.values()), seeds=seeds)
        found = {dop: runs.mean(CPU, one, cell) for dop, one in words.items()}
        rows += [printed(f"{select}: CPU use, dop={dop}", one, "%", f"{paper} (derived)") for dop, one in found.items()]
        nearest = min(found, key=lambda dop: abs(found[dop].mean - paper))
        most = max(found, key=lambda dop: found[dop].mean)
        rows += [
            printed(f"{select}: dop nearest to the derived use", nearest, "", f"{DOP[select]} (in use)"),
            printed(f"{select}: dop of most CPU use", most),
        ]
    rows += _losses(options, seeds)
    notes = [
        "derived: Harmony's published CPU use over its makespan ratio, as COMP is conserved; dop: machines of an "
        "isolated job, or what its memory below the collector's threshold needs: 20 of 80 jobs need 11 and 30 more 6 "
        "whatever dop is",
        "interference: on the mean of the cases with 6 and more partitions where nobody lacks memory; with the "
        "memory of the machines the collector's cost alone makes every mean worse than isolated",
    ]
    return Findings(rows, notes)


def _losses(options: Options, seeds: range) -> list[Row]:
    cell = under(Cell(), NO_LIMIT)
    names = [word(case) for case in GRID]
    paper = (published.NAIVE.jct, published.NAIVE.makespan)
    rows, errors = [], {}
    for loss in LOSSES[:2] if options.quick else LOSSES:
        one = under(cell, f"loss={loss:g}")
        runs = play("harmony-calibration", options, [one], ["isolated", *names], seeds=seeds)
        found = [averaged(runs, number, names, one) for number in (jct_h, makespan_h)]
        rows += [
            printed(f"interference {loss:g}: isolated's {name} over the mean of the cases", ratio, "x", f"{value:g}")
            for name, ratio, value in zip(("average JCT", "makespan"), found, paper, strict=True)
        ]
        errors[loss] = sum(abs(math.log(ratio.mean / value)) for ratio, value in zip(found, paper, strict=True))
    rows.append(printed("nearest interference", min(errors, key=lambda loss: errors[loss]), "", f"{LOSS:g} (in use)"))
    return rows
