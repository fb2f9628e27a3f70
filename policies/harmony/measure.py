"""How good and how fast the solvers are, on the problems of `samples.py`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .algorithm1 import algorithm1, counted
from .oracle import STEPS, exact
from .problem import BETA, Plan, Problem
from .samples import harmony_like_problem, small_problem
from .search import local_search

NEAR = 0.98  # of the best: what the paper claims for its algorithm


class Quality(NamedTuple):
    """Scores over the best score known, of one way to solve many problems."""

    solver: str
    mean: float
    worst: float
    near: float  # share of problems within 2 % of the best


class Pace(NamedTuple):
    """One run of Algorithm 1."""

    jobs: int
    machines: int
    seconds: float
    prefixes: int
    swaps: int
    groups: int


def over_exact(
    seeds: Iterable[int] = range(200), ratio_sigma: float = 0.4, beta: float = BETA, everyone: bool = False
) -> list[Quality]:
    """Scores over the exact optimum on problems of 4 to 8 jobs on 32 machines.

    Args:
        seeds: one problem each.
        ratio_sigma, beta: of `small_problem`.
        everyone: over the best grouping of all jobs, not of any subset.
    """
    problems = [small_problem(seed, ratio_sigma=ratio_sigma, beta=beta) for seed in seeds]
    best = [problem.score(exact(problem, everyone=everyone)) for problem in problems]
    plans = {
        **_plans(problems),
        "local search, 20,000 steps": [local_search(problem) for problem in problems],
    }
    return [_quality(solver, problems, found, best) for solver, found in plans.items()]


def over_search(
    seeds: Iterable[int] = range(10),
    jobs: int = 80,
    machines: int = 100,
    ratio_sigma: float = 0.3,
    steps: int = STEPS,
) -> list[Quality]:
    """Scores over that of a long local search, on harmony-like problems."""
    problems = [harmony_like_problem(seed, jobs, machines, ratio_sigma) for seed in seeds]
    best = [problem.score(local_search(problem, steps=steps)) for problem in problems]
    return [_quality(solver, problems, found, best) for solver, found in _plans(problems).items()]


def pace(jobs: int = 8_000, machines: int = 10_000, seed: int = 0, balance: str = "job") -> Pace:
    """Time of one run of Algorithm 1 on one thread; the kernels are compiled before."""
    counted(small_problem(0))
    problem = harmony_like_problem(seed, jobs, machines)
    began = time.perf_counter()
    scheduled = counted(problem, balance=balance)
    seconds = time.perf_counter() - began
    return Pace(jobs, machines, seconds, scheduled.prefixes, scheduled.swaps, len(scheduled.plan.machines))


def _plans(problems: list[Problem]) -> dict[str, list[Plan]]:
    return {
        "all prefixes": [algorithm1(problem) for problem in problems],
        "all prefixes, sums balanced": [algorithm1(problem, balance="group") for problem in problems],
        "as printed": [algorithm1(problem, stop="printed") for problem in problems],
    }


def _quality(solver: str, problems: list[Problem], plans: list[Plan], best: list[float]) -> Quality:
    scores = np.array([problem.score(plan) for problem, plan in zip(problems, plans, strict=True)])
    ratios = scores / np.array(best)
    return Quality(solver, float(ratios.mean()), float(ratios.min()), float((ratios >= NEAR).mean()))
