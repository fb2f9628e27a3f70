"""Paper harmony, Secs. V-A and V-C: naive co-location in all its cases, and what each technique adds.

A case is (P, C): the machines in P equal partitions, up to C jobs in each. Cases in which some job can never run, as its
data does not fit into the memory of a partition, are listed and left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...policies.harmony.memory_need import never_runs
from ...simulator.groups.config import GroupConfig
from ..estimates import Estimate, estimate, paired_ratio
from . import harmony_published as published
from .harmony_case import GroupOutcome, case_workload
from .harmony_runs import HARMONY, LOSS, MACHINES, QUICK_JOBS, Cell, Number, Runs, jct_h, makespan_h, metric, offered, play, said
from .registry import Findings, Options, Reproduction
from .rows import Row, printed, ratio

PARTITIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 25, 33, 50, 100)
QUICK_PARTITIONS = (8, 12, 25)
TOGETHER = (2, 3, 4)
LEAST_PARTITIONS = 6  # partitions of at most 16 machines, on which the paper profiles its jobs
Case = tuple[int, int]


def cases(options: Options, cell: Cell, seeds: Sequence[int]) -> tuple[list[Case], list[Case]]:
    """All (P, C), those in which every job can run on every workload first, then the others."""
    jobs = QUICK_JOBS if options.quick else 80
    workloads = [case_workload(cell.workload(seed, jobs)) for seed in seeds]
    can: dict[int, bool] = {}
    for partitions in QUICK_PARTITIONS if options.quick else PARTITIONS:
        config = GroupConfig()
        can[partitions] = not any(never_runs(one, config, MACHINES // partitions) for one in workloads)
    found = [(partitions, together) for partitions in can for together in TOGETHER]
    return [case for case in found if can[case[0]]], [case for case in found if not can[case[0]]]


def word(case: Case, execution: str = "") -> str:
    """The policy of a case."""
    own = f",execution={execution}" * bool(execution)
    return f"naive-colocation:partitions={case[0]},jobs={case[1]}{own}"


def averaged(runs: Runs, number: Number, words: Sequence[str], cell: Cell) -> Estimate:
    """Isolated's mean over the mean of all cases, by workload."""
    times = np.mean([runs.each(number, one, cell) for one in words], axis=0)
    return paired_ratio(runs.each(number, "isolated", cell), times.tolist())


def naive(options: Options) -> Findings:
    """Figure 10: the average of all cases, the best and the worst."""
    cell = Cell()
    able, unable = cases(options, cell, options.seeds(10))
    runs = play("harmony-naive", options, [cell], ("isolated", HARMONY, *map(word, able)))
    able, stalled = _that_ran(runs, able, cell)
    usual = [case for case in able if case[0] >= LEAST_PARTITIONS]
    rows: list[Row] = []
    for name, number, paper in (("average JCT", jct_h, published.NAIVE.jct), ("makespan", makespan_h, published.NAIVE.makespan)):
        by_case = {case: runs.speedup(number, word(case), cell) for case in able}
        best, worst = (choose(by_case, key=lambda case: by_case[case].mean) for choose in (max, min))
        few = {case: by_case[case] for case in usual}
        least = min(few, key=lambda case: few[case].mean)
        rows += [
            ratio(f"isolated's {name} over the mean of the cases, P >= {LEAST_PARTITIONS}", paper, averaged(runs, number, [word(case) for case in usual], cell), "x"),
            Row(f"the same of the worst of them, {_told(least)}", "below 1", few[least].mean, (0.0, 1.0), *_bounds(few[least]), "x"),
            printed(f"the same over the mean of all cases: {name}", averaged(runs, number, [word(case) for case in able], cell), "x"),
            printed(f"best case, {_told(best)}: {name}", by_case[best], "x"),
            printed(f"worst case, {_told(worst)}: {name}", by_case[worst], "x"),
            printed(f"harmony's gain in {name}", runs.speedup(number, HARMONY, cell), "x"),
        ]
        rows += [printed(f"{_told(case)}: {name}", by_case[case], "x") for case in able]
    rows += [printed(f"{_told(case)}: groups out of memory", runs.mean(metric("out_of_memory"), word(case), cell)) for case in able]
    notes = [
        said(options),
        offered(options, {"80 jobs": cell}),
        f"interference {LOSS:g}, calibrated on the average and the worst case of this table on other workloads: evidence of nothing",
        f"a job can never run, left out: {', '.join(map(_told, [*unable, *stalled])) or 'none'}",
        f"judged: P >= {LEAST_PARTITIONS}, partitions of at most {MACHINES // LEAST_PARTITIONS} machines; the paper does not say which "
        "cases it played, and with few large partitions any average is far below isolated",
    ]
    return Findings(rows, notes)


def _that_ran(runs: Runs, able: list[Case], cell: Cell) -> tuple[list[Case], list[Case]]:
    """Cases in which every job ran on every workload, and those in which company that does not fit was all there was."""
    ran = [case for case in able if all(outcome.has_run for outcome in runs.of(word(case), cell))]
    return ran, [case for case in able if case not in ran]


def _told(case: Case) -> str:
    return f"P={case[0]} C={case[1]}"


def _bounds(found: Estimate) -> tuple[float | None, float | None]:
    return (None, None) if found.is_sure else (found.low, found.high)
