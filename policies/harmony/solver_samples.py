"""Grouping problems drawn at random, and how good and how fast the solvers are on them.

The simulator's workloads come from elsewhere.
The ratio of a job's COMP and COMM times is lognormal with median 1; the paper shows both in a figure only, without
numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...simulator.workloads.harmony_jobs import LINK_BYTES_S
from ...simulator.workloads.trace_statistics import HARMONY_GB
from .harmony import algorithm1, counted
from .local_search import local_search
from .oracle import ORACLE_STEPS, exact
from .problem import BETA, REFERENCE_MACHINES, Plan, Problem

GB = 1e9
COMM_SPREAD = (0.7, 1.4)  # of the COMM time about that of moving the model twice, a hyper-parameter's doing


def harmony_like_problem(seed: int, jobs: int = 80, machines: int = 100, ratio_sigma: float = 0.3) -> Problem:
    """Jobs with the paper's eight pairs of application and data set, in random order.

    COMM is the time in which 16 machines send and receive the model, times 0.7 to 1.4. Memory is no limit here.

    Args:
        seed: of everything drawn.
        jobs: how many, >= 1.
        machines: of the cluster, >= 1.
        ratio_sigma: spread of the logarithm of COMP over COMM on 16 machines, >= 0.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array(list(HARMONY_GB.values()))[np.arange(jobs) % len(HARMONY_GB)][rng.permutation(jobs)] * GB
    comm = rng.uniform(*COMM_SPREAD, jobs) * 2.0 * sizes[:, 1] / (REFERENCE_MACHINES * LINK_BYTES_S)
    comp = REFERENCE_MACHINES * rng.lognormal(0.0, ratio_sigma, jobs) * comm
    return Problem(comp, comm, machines, input_bytes=sizes[:, 0])


def small_problem(
    seed: int,
    jobs: int | None = None,
    machines: int = 32,
    ratio_sigma: float = 0.4,
    beta: float = 0.5,
    even_machines: int = 8,
) -> Problem:
    """A problem that `exact` can solve: COMM of 1 to 10 s, COMP about as long on a quarter of the machines.

    Args:
        seed: of everything drawn.
        jobs: how many; None = 4 to 8, drawn.
        machines: of the cluster, >= 1.
        ratio_sigma: spread of the logarithm of COMP over COMM, >= 0.
        beta: worth of the network's utilisation.
        even_machines: on so many the median job's COMP and COMM take equally long.
    """
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(4, 9)) if jobs is None else jobs
    comm = rng.uniform(1.0, 10.0, jobs)
    comp = even_machines * rng.lognormal(0.0, ratio_sigma, jobs) * comm
    return Problem(comp, comm, machines, beta=beta)


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
    steps: int = ORACLE_STEPS,
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
