"""Paper harmony, Secs. V-A and V-C: naive co-location in all its cases, and what each technique adds.

A case is (P, C): the machines in P equal partitions, up to C jobs in each. Cases in which some job can never run, as
its data does not fit into the memory of a partition, are listed and left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....policies.harmony.problem import never_runs
from ....simulator.groups.group_config import GroupConfig
from ...comparing.intervals import Estimate, paired_ratio
from ..case_runs import Number
from ..findings import Findings, Options
from ..rows import Row, order, printed, ratio
from . import harmony_published as published
from .harmony_runs import (
    HARMONY,
    LOSS,
    MACHINES,
    NO_LIMIT,
    UNAWARE,
    Cell,
    GroupRuns,
    jct_h,
    jobs_of,
    makespan_h,
    offered,
    play,
    said,
    under,
)

Case = tuple[int, int]
PARTITIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 25, 33, 50, 100)
TOGETHER = (2, 3, 4)
MOST_JOBS = 24  # at once: with more, hundreds of groups run out of memory in a run, and nothing else happens
LEAST_PARTITIONS = 6  # of at most 16 machines, on which the paper takes the characteristics of its jobs
ALL: list[Case] = [
    (count, jobs) for count in PARTITIONS for jobs in TOGETHER if count * jobs <= MOST_JOBS or count > 12
]
GRID: list[Case] = [case for case in ALL if LEAST_PARTITIONS <= case[0] <= 12]  # in which every job can run
QUICK = [(6, 2), (12, 2), (25, 2)]
TIMES = (
    ("average JCT", jct_h, published.NAIVE.jct, published.MAIN.jct),
    ("makespan", makespan_h, published.NAIVE.makespan, published.MAIN.makespan),
)
STEPS = (published.SHARE_SUBTASKS, published.SHARE_GROUPING)
WITHIN = "harmony:alpha=0"  # groupings that fit into memory below the collector's threshold


def word(case: Case, execution: str = "") -> str:
    """The policy of a case."""
    own = f",execution={execution}" * bool(execution)
    return f"naive-colocation:partitions={case[0]},jobs={case[1]}{own}"


def told(case: Case) -> str:
    """A case in a row."""
    return f"P={case[0]} C={case[1]}"


def parted(options: Options, cell: Cell) -> tuple[list[Case], list[Case]]:
    """All cases: those in which every job of every workload can run, and the others."""
    jobs = jobs_of(options)
    workloads = [cell.drawn(seed, jobs) for seed in options.seeds(10)]
    config = GroupConfig()
    cases = QUICK if options.quick else ALL
    unable = {count for count, _ in cases if any(never_runs(one, config, MACHINES // count) for one in workloads)}
    return [case for case in cases if case[0] not in unable], [case for case in cases if case[0] in unable]


def averaged(runs: GroupRuns, number: Number, words: Sequence[str], cell: Cell) -> Estimate:
    """Isolated's mean over the mean of all cases, by workload."""
    times = np.mean([runs.each(number, one, cell) for one in words], axis=0)
    return paired_ratio(runs.each(number, "isolated", cell), times.tolist())


def naive(options: Options) -> Findings:
    """Figure 10: the average of all cases, the best and the worst."""
    cell = Cell()
    ample = under(cell, NO_LIMIT)
    able, unable = parted(options, cell)
    runs = play("harmony-naive", options, [cell, ample], ("isolated", *map(word, able)))
    ran = [case for case in able if all(not outcome.metrics["stalled"] for outcome in runs.of(word(case), cell))]
    stalled = [case for case in able if case not in ran]
    rows = _judged(runs, cell, ran, "")
    rows += _judged(runs, ample, able, "memory without limit: ")
    for case in ran:
        rows += [
            printed(f"{told(case)}: {name}", runs.speedup(number, word(case), cell), "x") for name, number, *_ in TIMES
        ]
        failed = runs.mean("out_of_memory", word(case), cell)
        rows.append(printed(f"{told(case)}: groups out of memory", failed))
    notes = [
        said(options),
        offered(options, {"80 jobs": cell}),
        "rows are isolated's time over naive co-location's",
        f"interference {LOSS:g}, calibrated on these rows where nobody lacks memory, on other workloads: they are "
        "no evidence",
        f"left out, as a job can never run: {', '.join(map(told, [*unable, *stalled])) or 'none'}; and with more than "
        f"{MOST_JOBS} jobs at once",
        f"judged are cases of {LEAST_PARTITIONS} and more partitions: the paper does not say which it played; of "
        "few large ones any mean is far below isolated",
        "the miss: the collector. Its cost was fitted on one number (harmony-reload), and grows without bound as "
        "memory fills; jobs that nobody keeps apart fill it",
    ]
    return Findings(rows, notes)


def _judged(runs: GroupRuns, cell: Cell, cases: Sequence[Case], words: str) -> list[Row]:
    """Average, best and worst."""
    usual = [case for case in cases if case[0] >= LEAST_PARTITIONS]
    rows = []
    for name, number, paper, _ in TIMES:
        found = {case: runs.speedup(number, word(case), cell) for case in cases}
        mean = averaged(runs, number, [word(case) for case in usual], cell)
        worst = min(usual, key=lambda case: found[case].mean)
        best = max(cases, key=lambda case: found[case].mean)
        said_of = f"{words}{name}, the mean of {len(usual)} cases"
        rows += [
            printed(said_of, mean, "x", f"{paper:g}") if words else ratio(said_of, paper, mean, "x"),
            order(f"{words}{name}, the worst of them, {told(worst)}", "below 1", found[worst]),
            printed(f"{words}{name}, the best, {told(best)}", found[best], "x"),
            printed(
                f"{words}{name}, the mean of all {len(cases)} cases",
                averaged(runs, number, [word(case) for case in cases], cell),
                "x",
            ),
        ]
    return rows


def breakdown(options: Options) -> Findings:
    """Sec. V-C: what subtasks, grouping and reloading add, in shares of the whole benefit over isolated jobs."""
    cell = Cell()
    ample = under(cell, NO_LIMIT)
    able, _ = parted(options, cell)
    cases = [case for case in able if case[0] >= LEAST_PARTITIONS]
    ways = {
        "naive co-location": [word(case) for case in cases],
        "+ subtasks": [word(case, "subtasks") for case in cases],
        "+ grouping": [WITHIN],
        "+ reloading": [HARMONY],
        "+ reloading, alpha=1": [UNAWARE],
    }
    names = [one for some in ways.values() for one in some]
    runs = play("harmony-breakdown", options, [cell, ample], ("isolated", *names))
    rows: list[Row] = []
    for name, number, *_ in TIMES:
        reached = {way: averaged(runs, number, some, cell) for way, some in ways.items()}
        rows += [printed(f"{way}: isolated's {name} over its", found, "x") for way, found in reached.items()]
        rows += _shares(f"share of the benefit in {name}", reached, "+ reloading")
    for name, number, *_ in TIMES:
        some = list(ways.items())
        rows += [
            printed(f"memory without limit, {way}: isolated's {name} over its", averaged(runs, number, one, ample), "x")
            for way, one in (*some[:2], ("+ grouping", [HARMONY]))
        ]
    notes = [
        said(options),
        f"naive co-location and subtasks are means over {len(cases)} cases ({', '.join(map(told, cases))}); "
        "grouping without reloading is Algorithm 1 over groupings that fit into memory below the collector's threshold",
        "published: 32 % with subtasks, 81 % with grouping, the rest with reloading; a share of a benefit that is "
        "none is not a number",
    ]
    return Findings(rows, notes)


def _shares(words: str, reached: dict[str, Estimate], last: str) -> list[Row]:
    whole = reached[last].mean - 1.0
    rows = []
    for way, paper in zip(("+ subtasks", "+ grouping"), STEPS, strict=True):
        share = 100.0 * (reached[way].mean - 1.0) / whole if whole > 0.0 else float("nan")
        rows.append(ratio(f"{words}: {way[2:]}", paper, share, "%"))
    return rows
