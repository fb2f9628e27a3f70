"""Paper harmony, Secs. V-A and V-C: naive co-location in all its cases, and what each technique adds.

A case is (P, C): the machines in P equal partitions, up to C jobs in each. Cases in which some job can never run, as
its data does not fit into the memory of a partition, are listed and left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ....policies.harmony.problem import never_runs
from ....simulator.groups.group_config import GroupConfig
from ...comparing.intervals import Estimate, paired_ratio
from ..case_runs import Runs, Take
from ..engine import Play, RowContext
from ..rows import Row, order, printed, ratio
from ..schema import Line
from .harmony_runs import MACHINES

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
TIMES = {"average JCT": "jct_mean", "makespan": "makespan"}
FREE, LIMITED = "memory without limit", "80 jobs"


def word(case: Case, execution: str = "") -> str:
    """The policy of a case."""
    own = f",execution={execution}" * bool(execution)
    return f"naive-colocation:partitions={case[0]},jobs={case[1]}{own}"


def label(case: Case) -> str:
    """A case in a row."""
    return f"P={case[0]} C={case[1]}"


def parted(play: Play) -> tuple[list[Case], list[Case]]:
    """All cases: those in which every job of every workload can run, and the others."""
    workloads = [case.workload for case in play.cases("harmony", LIMITED)]
    config, cases = GroupConfig(), QUICK if play.options.quick else ALL
    unable = {count for count, _ in cases if any(never_runs(one, config, MACHINES // count) for one in workloads)}
    return [case for case in cases if case[0] not in unable], [case for case in cases if case[0] in unable]


def averaged(runs: Runs, take: Take, words: Sequence[str], at: str) -> Estimate:
    """Isolated's mean over the mean of all cases, by workload."""
    times = np.mean([runs.each(take, one, at) for one in words], axis=0)
    return paired_ratio(runs.each(take, "isolated", at), times.tolist())


def _takes(play: Play) -> dict[str, Take]:
    return {name: play.number(metric, 1.0, 3600.0) for name, metric in TIMES.items()}


def naive(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Figure 10: the average of all cases, the best and the worst."""
    able, unable = parted(play)
    runs = play.sweep(play.name, [(one, at) for at in (LIMITED, FREE) for one in ("isolated", *map(word, able))])
    ran = [case for case in able if all(not outcome.metrics["stalled"] for outcome in runs.of(word(case), LIMITED))]
    yield from _judged(play, line.paper, runs, LIMITED, ran)
    yield from _judged(play, line.paper, runs, FREE, able)
    for case in ran:
        for name, take in _takes(play).items():
            yield printed(f"{label(case)}: {name}", runs.ratio(take, "isolated", word(case), LIMITED), "x")
        failed = runs.mean(play.number("out_of_memory"), word(case), LIMITED)
        yield printed(f"{label(case)}: groups out of memory", failed)
    left = ", ".join(map(label, [*unable, *(case for case in able if case not in ran)])) or "none"
    play.notes.append(f"left out, as a job can never run: {left}; and with more than {MOST_JOBS} at once")


def _judged(play: Play, papers: Mapping[str, float], runs: Runs, at: str, cases: Sequence[Case]) -> Iterator[Row]:
    """Average, best and worst."""
    usual, words = [case for case in cases if case[0] >= LEAST_PARTITIONS], f"{FREE}: " * (at == FREE)
    for name, take in _takes(play).items():
        found = {case: runs.ratio(take, "isolated", word(case), at) for case in cases}
        mean, paper = averaged(runs, take, [word(case) for case in usual], at), papers[name]
        worst = min(usual, key=lambda case: found[case].mean)
        best = max(cases, key=lambda case: found[case].mean)
        what = f"{words}{name}, the mean of {len(usual)} cases"
        yield printed(what, mean, "x", f"{paper:g}") if words else ratio(what, paper, mean, "x")
        yield order(f"{words}{name}, the worst of them, {label(worst)}", "below 1", found[worst])
        yield printed(f"{words}{name}, the best, {label(best)}", found[best], "x")
        every = averaged(runs, take, [word(case) for case in cases], at)
        yield printed(f"{words}{name}, the mean of all {len(cases)} cases", every, "x")


def breakdown(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Sec. V-C: what subtasks, grouping and reloading add, in shares of the whole benefit over isolated jobs."""
    able, _ = parted(play)
    cases = [case for case in able if case[0] >= LEAST_PARTITIONS]
    ways = {
        "naive co-location": [word(case) for case in cases],
        "+ subtasks": [word(case, "subtasks") for case in cases],
        "+ grouping": ["harmony:alpha=0"],  # groupings that fit into memory below the collector's threshold
        "+ reloading": ["harmony"],
        "+ reloading, alpha=1": ["harmony:alpha=1"],
    }
    names = ["isolated", *(one for some in ways.values() for one in some)]
    runs = play.sweep(play.name, [(one, at) for at in (LIMITED, FREE) for one in names])
    for name, take in _takes(play).items():
        reached = {way: averaged(runs, take, some, LIMITED) for way, some in ways.items()}
        for way, found in reached.items():
            yield printed(f"{way}: isolated's {name} over its", found, "x")
        whole = reached["+ reloading"].mean - 1.0
        for way, paper in zip(("+ subtasks", "+ grouping"), line.paper, strict=True):
            share = 100.0 * (reached[way].mean - 1.0) / whole if whole > 0.0 else float("nan")
            yield ratio(f"share of the benefit in {name}: {way[2:]}", paper, share, "%")
    for name, take in _takes(play).items():
        for way, some in (*list(ways.items())[:2], ("+ grouping", ["harmony"])):
            found = averaged(runs, take, some, FREE)
            yield printed(f"{FREE}, {way}: isolated's {name} over its", found, "x")
    play.notes.append(f"cases: {', '.join(map(label, cases))}")


def losses(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Isolated over naive co-location by its interference, and which comes nearest to the published ratios."""
    names, errors, takes = [word(case) for case in GRID], {}, _takes(play)
    places = play.group(["interference"])[: 2 if play.options.quick else None]
    for at in places:
        runs = play.sweep("harmony-calibration", [(one, at) for one in ("isolated", *names)])
        found = {name: averaged(runs, take, names, at) for name, take in takes.items()}
        loss = float(play.label(at))
        for name, one in found.items():
            words = f"interference {loss:g}: isolated's {name} over the mean of the cases"
            yield printed(words, one, "x", f"{line.paper[name]:g}")
        errors[loss] = sum(abs(math.log(one.mean / line.paper[name])) for name, one in found.items())
    yield printed("nearest interference", min(errors, key=lambda loss: errors[loss]), "", "0 (in use)")
