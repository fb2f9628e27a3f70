"""The best grouping there is: exact for few jobs, above them the best that a long local search finds, and named so.

The paper calls its own oracle exhaustive, but its times (80 jobs in 13.8 minutes, 4,000 in 10 hours) grow about as the
number of jobs does: it was not.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from .kernels.subsets import group_exactly
from .problem import Plan, Problem
from .search import POWER, gains_of, local_search

MOST_JOBS = 10
MOST_MACHINES = 256  # the time grows with their square: 10 jobs on 100 machines take 0.2 s
STEPS = 200_000


class Answer(NamedTuple):
    """A grouping, and whether it is the best or only what a search found."""

    plan: Plan
    how: Literal["exact", "local search"]


def exact(
    problem: Problem,
    objective: str = "utilisation",
    everyone: bool = False,
    remaining_s: np.ndarray | None = None,
    power: float = POWER,
) -> Plan:
    """The best of all groupings: of all subsets of the jobs, all their partitions, all splits of the machines.

    Args:
        problem: of at most 10 jobs and 256 machines.
        objective, remaining_s, power: as of `local_search`; `utilisation` is the score.
        everyone: only groupings in which every job runs.

    Returns:
        The best plan; an empty one where no group is legal, or `everyone` is more than there is room for.

    Raises:
        InputError: more jobs or machines.
    """
    if not is_small(problem):
        raise InputError(
            f"{problem.jobs} jobs on {problem.machines} machines: an exact grouping takes at most {MOST_JOBS} jobs on "
            f"{MOST_MACHINES} machines"
        )
    gains = gains_of(problem, objective, remaining_s, power)
    shape = (1 << problem.jobs, problem.machines + 1)
    alone, best = np.zeros(shape), np.zeros(shape)
    group, given = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    group_exactly(
        problem.comp,
        problem.comm,
        problem.models_in_memory,
        gains,
        float(problem.ram_bytes),
        everyone,
        alone,
        best,
        group,
        given,
    )
    if np.isneginf(best[-1, -1]):
        return Plan.empty(problem.jobs)
    return Plan.of(problem.jobs, _groups(problem, group, given))


def is_small(problem: Problem) -> bool:
    """Whether `exact` takes it."""
    return problem.jobs <= MOST_JOBS and problem.machines <= MOST_MACHINES


def oracle(
    problem: Problem,
    objective: str = "utilisation",
    steps: int = STEPS,
    seed: int = 0,
    remaining_s: np.ndarray | None = None,
) -> Answer:
    """The exact optimum of a small problem, else what a local search of so many steps finds."""
    if is_small(problem):
        return Answer(exact(problem, objective, remaining_s=remaining_s), "exact")
    plan = local_search(problem, objective, steps=steps, seed=seed, remaining_s=remaining_s)
    return Answer(plan, "local search")


def _groups(problem: Problem, group: np.ndarray, given: np.ndarray) -> list[tuple[tuple[int, ...], int]]:
    """The groups that the tables lead to."""
    groups = []
    jobs, machines = (1 << problem.jobs) - 1, problem.machines
    while jobs:
        one, share = int(group[jobs, machines]), int(given[jobs, machines])
        if one:
            groups.append((tuple(job for job in range(problem.jobs) if one >> job & 1), share))
        jobs ^= one or jobs & -jobs
        machines -= share
    return groups
