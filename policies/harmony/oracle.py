"""`oracle` and `greedy` among groups: policies that search for the best groups at every event.

Both plan for all jobs with known metrics. `oracle` maximises the paper's u_cpu + beta u_net, exactly up to 10 jobs
(`exact`), else by a long local search; moves are free, and it changes nothing without a gain. (The paper calls its own
exhaustive, but its times, 80 jobs in 13.8 minutes and 4,000 in 10 hours, grow about as the number of jobs does.)

`greedy` searches for the largest sum of the worth of each job's speed, from the present groups:

* `remaining=hidden`: its speed over that alone on 16 machines.
* `remaining=known`: the same over (hours left alone on 16 machines)**power: short ones first, as far as that pays.

A job that moves stands still for `move_s`, so it loses the share move_s / `holds_s`, the expected life of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_view import GroupView
from .group_policy import GroupPlan, planned_groups_of
from .grouping import group_exactly
from .harmony import ALPHA, JobStages, ProfiledPolicy, alone, problem_of
from .local_search import POWER, STEPS, gains_of, local_search, worth_of_moves
from .problem import BETA, REFERENCE_MACHINES, Plan, Problem

MOST_JOBS = 10
MOST_MACHINES = 256  # time is quadratic: 10 jobs on 100 machines take 0.2 s
ORACLE_STEPS = 200_000


class Answer(NamedTuple):
    """A grouping, and whether it is optimal or found by search."""

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

    `objective`, `remaining_s` and `power` are as of `local_search`; `everyone`: every job runs. The plan is empty if no
    group is legal, or `everyone` does not fit. Raises InputError above 10 jobs or 256 machines.
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
    sizes = problem.comp, problem.comm, problem.models_in_memory
    group_exactly(*sizes, gains, float(problem.ram_bytes), everyone, alone, best, group, given)
    if np.isneginf(best[-1, -1]):
        return Plan.empty(problem.jobs)
    return Plan.of(problem.jobs, _groups(problem, group, given))


def is_small(problem: Problem) -> bool:
    """Whether `exact` takes it."""
    return problem.jobs <= MOST_JOBS and problem.machines <= MOST_MACHINES


def oracle(
    problem: Problem,
    objective: str = "utilisation",
    steps: int = ORACLE_STEPS,
    seed: int = 0,
    remaining_s: np.ndarray | None = None,
) -> Answer:
    """The optimum of a small problem, else the result of a local search."""
    if is_small(problem):
        return Answer(exact(problem, objective, remaining_s=remaining_s), "exact")
    plan = local_search(problem, objective, steps=steps, seed=seed, remaining_s=remaining_s)
    return Answer(plan, "local search")


def _groups(problem: Problem, group: np.ndarray, given: np.ndarray) -> list[tuple[tuple[int, ...], int]]:
    groups = []
    jobs, machines = (1 << problem.jobs) - 1, problem.machines
    while jobs:
        one, share = int(group[jobs, machines]), int(given[jobs, machines])
        if one:
            groups.append((tuple(job for job in range(problem.jobs) if one >> job & 1), share))
        jobs ^= one or jobs & -jobs
        machines -= share
    return groups


HOLDS_S = 2700.0  # tuned on seeds of no table; 900 to 10,000 are within 2 %
BETTER = 1.0 + 1e-9


class Oracle(ProfiledPolicy):
    """The best utilisation at every event.

    Args:
        beta: worth of the network's utilisation beside the CPU's, >= 0.
        steps: of the local search, >= 1.
        alpha: share of the inputs that a grouping may need on disk, 0 to 1.
    """

    def __init__(self, beta: float = BETA, steps: int = ORACLE_STEPS, alpha: float = ALPHA) -> None:
        super().__init__("oracle")
        if not 0.0 <= alpha <= 1.0:
            raise InputError(f"policy oracle: alpha = {alpha:g}: expected a share from 0 to 1")
        if not (beta >= 0.0 and np.isfinite(beta)) or steps < 1:
            raise InputError(f"policy oracle: beta = {beta:g}, steps = {steps}: expected at least 0 and 1")
        self.beta, self.steps, self.alpha = beta, steps, alpha

    def grouped(self, view: GroupView, now: JobStages) -> list[GroupPlan]:
        """The best groups, or the present ones if none is better."""
        jobs = sorted(now.settled + now.fresh + now.waiting)
        if not jobs:
            return []
        problem = problem_of(view, jobs, now.machines, self.beta, alpha=self.alpha)
        start = plan_of(now.groups, jobs)
        if is_small(problem):
            best = exact(problem)
        else:
            best = local_search(problem, steps=self.steps, seed=view.instant)
            if problem.is_legal(start):
                other = local_search(problem, steps=self.steps, seed=view.instant, start=start)
                best = max((other, best), key=problem.score)
        if len(start.machines) and problem.is_legal(start) and problem.score(best) <= problem.score(start) * BETTER:
            return now.groups
        return planned_groups_of(best, jobs) or alone(view, now)


class Greedy(ProfiledPolicy):
    """The largest sum of rates, from the present groups.

    Args:
        remaining: whether lengths of jobs count.
        power: of the remaining time, 0 to 2; with `remaining=known`.
        steps: moves that the search tries at each event, >= 1.
        holds_s: expected seconds until the next plan, > 0.
        disk: whether reading of spilled data counts; the paper's Eq. (1) ignores it.
    """

    def __init__(
        self,
        remaining: Literal["hidden", "known"] = "hidden",
        power: float | None = None,
        steps: int = STEPS,
        holds_s: float = HOLDS_S,
        disk: Literal["counted", "ignored"] = "counted",
    ) -> None:
        super().__init__("greedy")
        if power is not None and not (0.0 <= power <= 2.0 and remaining == "known"):
            raise InputError(f"policy greedy: power = {power:g}: expected 0 to 2, with remaining=known")
        if steps < 1 or not holds_s > 0.0:
            raise InputError(f"policy greedy: steps = {steps}, holds_s = {holds_s:g}: expected at least 1, and > 0")
        self.remaining, self.power = remaining, POWER if power is None else power
        self.steps, self.holds_s, self.disk = steps, holds_s, disk
        self.knows_run_times = remaining == "known"

    def grouped(self, view: GroupView, now: JobStages) -> list[GroupPlan]:
        """The groups of the search."""
        jobs = sorted(now.settled + now.fresh + now.waiting)
        if not jobs:
            return []
        problem = problem_of(view, jobs, now.machines, counts_disk=self.disk == "counted")
        start: Plan | None = plan_of(now.groups, jobs)
        best = local_search(
            problem,
            "known" if self.remaining == "known" else "rates",
            start=start if start is not None and problem.is_legal(start) else None,
            steps=self.steps,
            seed=view.instant,
            move_worth=worth_of_moves(view.config.move_s, self.holds_s),
            remaining_s=self._remaining_s(view, jobs, problem),
            power=self.power,
        )
        return planned_groups_of(best, jobs) or alone(view, now)

    def _remaining_s(self, view: GroupView, jobs: Sequence[int], problem: Problem) -> np.ndarray | None:
        if self.remaining == "hidden":
            return None
        return np.array([view.remaining_iterations(job) for job in jobs]) * problem.solo_s(REFERENCE_MACHINES)


def plan_of(groups: Sequence[GroupPlan], jobs: Sequence[int]) -> Plan:
    """Groups as a solver's plan; `jobs` are those of its problem, in order."""
    place = {job: i for i, job in enumerate(jobs)}
    return Plan.of(len(jobs), [(tuple(place[job] for job in group.members), group.machines) for group in groups])
