"""Paper harmony, Sec. V-F: how good Algorithm 1 is, beside the exact optimum and a long search, and how fast.

The paper's Oracle is called exhaustive, but its times grow as the number of jobs does (80 jobs in 13.8 minutes, 4,000
in 10 hours), and the groupings of 80 jobs cannot be enumerated. Ours is exact up to 10 jobs, a long local search above.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ....policies.harmony.harmony import Scheduled, algorithm1, counted
from ....policies.harmony.local_search import local_search
from ....policies.harmony.oracle import ORACLE_STEPS, exact
from ....policies.harmony.problem import Plan, Problem
from ....policies.harmony.solver_samples import harmony_like_problem, small_problem
from ...comparing.intervals import Estimate, estimate
from ..case_runs import metric
from ..findings import Findings, Options
from ..rows import Row, bounded, printed
from . import harmony_published as published
from .harmony_runs import HARMONY, NO_LIMIT, WORK, Cell, jct_h, makespan_h, play, said, under

SMALL, QUICK_SMALL = 200, 20  # problems of 4 to 8 jobs
TINY_JOBS, TINY_MACHINES = (2, 3, 4), 6
TINY = 30
SPREADS_SMALL, SPREADS_LARGE = (0.4, 0.8), (0.3, 0.6)
NEAR, FAR = 1.0 - published.ORACLE_GAP / 100.0, 1.0 + published.ORACLE_GAP / 100.0
ORACLE = "oracle:steps=50000"
WAYS = {"all prefixes": {}, "as printed": {"stop": "printed"}, "all prefixes, sums balanced": {"balance": "group"}}
SIZES = ((80, 100), (800, 1_000), (8_000, 10_000), (80_000, 100_000))  # jobs, machines
AIM_S = 0.5  # ours, for 8,000 jobs
REPEATS = 3
SAME = 1e-9


def quality(options: Options) -> list[Row]:
    """Algorithm 1's score, u_cpu + .5 u_net, over the best known."""
    tiny = [
        small_problem(10_000 * options.seed + seed, TINY_JOBS[seed % len(TINY_JOBS)], TINY_MACHINES)
        for seed in range(TINY)
    ]
    same = sum(abs(problem.score(exact(problem)) / enumerated(problem) - 1.0) <= SAME for problem in tiny)
    rows = [Row("tiny problems whose exact grouping is that of enumeration", f"all {TINY}", same, (TINY, TINY))]
    few = QUICK_SMALL if options.quick else SMALL
    for spread in SPREADS_SMALL:
        problems = [small_problem(10_000 * options.seed + seed, ratio_sigma=spread) for seed in range(few)]
        best = [problem.score(exact(problem)) for problem in problems]
        for way in WAYS:
            rows += _small_rows(way, spread, problems, best)
    for spread in SPREADS_LARGE:
        problems = [harmony_like_problem(seed, ratio_sigma=spread) for seed in options.seeds(10)]
        steps = ORACLE_STEPS // 10 if options.quick else ORACLE_STEPS
        best = [problem.score(local_search(problem, steps=steps)) for problem in problems]
        for way in WAYS:
            rows.append(_large_row(way, spread, problems, best))
    return rows


def _shares(way: str, problems: Sequence[Problem], best: Sequence[float]) -> np.ndarray:
    scores = [problem.score(algorithm1(problem, **WAYS[way])) for problem in problems]  # type: ignore[arg-type]
    return np.array(scores) / np.array(best)


def _small_rows(way: str, spread: float, problems: Sequence[Problem], best: Sequence[float]) -> list[Row]:
    shares = _shares(way, problems, best)
    words = f"{len(problems)} problems of 4 to 8 jobs, ratio spread {spread:g}, {way}"
    rows = [printed(f"{words}: score over the optimum", estimate(shares.tolist()), "x")]
    if way == "all prefixes":
        rows += [
            printed(f"{words}: the worst of them", float(shares.min()), "x"),
            printed(f"{words}: those within 2 %", _share(shares >= NEAR), "%"),
        ]
    return rows


def _large_row(way: str, spread: float, problems: Sequence[Problem], best: Sequence[float]) -> Row:
    found = estimate(_shares(way, problems, best).tolist())
    words = f"80 jobs on 100 machines, ratio spread {spread:g}, {way}: score over that of a long search"
    if way == "all prefixes" and spread == SPREADS_LARGE[0]:
        return bounded(words, "at least 0.98", found, (NEAR, np.inf))
    return printed(words, found, "x")


def _share(which: np.ndarray) -> Estimate:
    return estimate((100.0 * which).tolist())


def enumerated(problem: Problem) -> float:
    """The best score of all groupings of all subsets of the jobs on all splits of the machines, by enumeration."""
    return max(problem.score(plan) for plan in _plans(problem))


def _plans(problem: Problem) -> Iterator[Plan]:
    for partition in _partitions(list(range(problem.jobs))):
        for machines in _splits(problem.machines, len(partition)):
            yield Plan.of(problem.jobs, list(zip(partition, machines, strict=True)))


def _partitions(jobs: list[int]) -> Iterator[list[tuple[int, ...]]]:
    """All partitions of all subsets."""
    if not jobs:
        yield []
        return
    first, others = jobs[0], jobs[1:]
    for partition in _partitions(others):
        yield partition
        yield [(first,), *partition]
        for place, group in enumerate(partition):
            yield [*partition[:place], (first, *group), *partition[place + 1 :]]


def _splits(machines: int, groups: int) -> Iterator[tuple[int, ...]]:
    """All ways to give at most so many machines to groups, at least one each."""
    if groups == 0:
        yield ()
        return
    for first in range(1, machines - groups + 2):
        for others in _splits(machines - first, groups - 1):
            yield (first, *others)


def oracle(options: Options) -> Findings:
    """Figure 14."""
    rows = quality(options)
    ample = under(Cell(), NO_LIMIT)
    runs = play("harmony-oracle", options, [ample, Cell()], (HARMONY, ORACLE))
    for name, number, bounds in (
        ("CPU use", WORK, (NEAR, np.inf)),
        ("network use", metric("network_utilisation"), (NEAR, np.inf)),
        ("average JCT", jct_h, (0.0, FAR)),
        ("makespan", makespan_h, (0.0, FAR)),
    ):
        found = runs.ratio(number, HARMONY, ORACLE, ample)
        rows.append(bounded(f"a run of 80 jobs: harmony's {name} over oracle's", "within 2 %", found, bounds))
    rows += [
        printed(
            f"with the machines' memory: harmony's {name} over oracle's",
            runs.ratio(number, HARMONY, ORACLE, Cell()),
            "x",
        )
        for name, number in (("average JCT", jct_h), ("makespan", makespan_h))
    ]
    notes = [
        said(options),
        "oracle is exact up to 10 jobs and the best of two local searches of 50,000 steps above; it maximises use, "
        "as the paper's does, and looks neither at memory nor at what moves cost; so the runs have memory without "
        "limit",
        "the paper's Oracle grows 43-fold for 50 times the jobs: it was no enumeration either",
    ]
    return Findings(rows, notes)


def scale(options: Options) -> Findings:
    """Sec. V-F: seconds of one run of Algorithm 1, one thread, the least of a few."""
    sizes = SIZES[:2] if options.quick else SIZES
    algorithm1(small_problem(0))  # compiles
    seconds: dict[int, float] = {}
    rows = []
    for jobs, machines in sizes:
        problem = harmony_like_problem(options.seed, jobs, machines)
        seconds[jobs], found = timed(problem, 1 if jobs == SIZES[-1][0] else REPEATS)
        words = f"{jobs:,} jobs on {machines:,} machines"
        rows.append(_pace_row(jobs, words, seconds[jobs]))
        rows += [
            printed(f"{words}: prefixes tried", found.prefixes),
            printed(f"{words}: swaps of all of them", found.swaps),
            printed(f"{words}: jobs that run", len(found.plan.running)),
            printed(f"{words}: groups", len(found.plan.machines)),
        ]
    for (few, _), (many, _) in pairwise(sizes):
        exponent = np.log(seconds[many] / seconds[few]) / np.log(many / few)
        rows.append(printed(f"growth from {few:,} to {many:,} jobs: exponent", float(exponent)))
    problem = harmony_like_problem(options.seed)
    began = time.perf_counter()
    local_search(problem, steps=ORACLE_STEPS)
    rows.append(
        printed("80 jobs, the long search", time.perf_counter() - began, "s", f"Oracle {published.ORACLE_S:g} s")
    )
    note = (
        "one thread of this machine, while whatever else ran on it; the least of three runs, of the largest size of one"
    )
    return Findings(rows, [note])


def _pace_row(jobs: int, words: str, seconds: float) -> Row:
    if jobs == 80:
        return Row(words, f"{published.SCHEDULE_S} s", seconds, (0.0, published.SCHEDULE_S), unit="s")
    if jobs == 8_000:
        return Row(words, f"within 5 s; our aim {AIM_S:g}", seconds, (0.0, AIM_S), unit="s")
    return printed(words, seconds, "s")


def timed(problem: Problem, repeats: int = REPEATS) -> tuple[float, Scheduled]:
    """Least seconds of Algorithm 1, and what it found."""
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        found = counted(problem)
        spent.append(time.perf_counter() - began)
    return min(spent), found
