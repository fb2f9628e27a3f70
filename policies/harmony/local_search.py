"""Local search for a grouping, for three objectives, from the present grouping or that of Algorithm 1.

Each objective is a sum over the groups of (worth of one iteration of each of its jobs) / (the group's cycle):

* `utilisation`: of the CPU, plus beta times that of the network: Eq. (4), the paper's objective.
* `rates`: each job's speed over its speed alone on 16 machines. It needs no lengths of jobs.
* `known`: the same, each job's rate over (its remaining hours alone on 16 machines)**power. In iterations left it is
  the sum of 1 / (T_g left_j) (remaining hours)**(1 - power).

Bytes of a group above the free part of memory come from disk in every iteration, which may bound its cycle
(`Problem.comfort_bytes`, `spill_s`).

A move costs time: a job that changes group, whose group changes machines, or that starts loses the share of the plan's
time in which it stands still (`worth_of_moves`); a paused one loses its worth. If moves are free, only `heat=0` stays
close to the first grouping: it makes no move that does not gain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from . import climbing
from .climbing import climb
from .harmony import algorithm1
from .problem import Plan, Problem

OBJECTIVES = ("utilisation", "rates", "known")
STEPS = 20_000
HEAT = 0.02
POWER = 0.4  # of the remaining hours; .4 to 1 are within 6 %
HOUR_S = 3600.0
LEAST_S = 1.0  # of remaining time, which bounds the worth of a job about to end


class Searched(NamedTuple):
    """The plan of a search, its worth with the moves that it needs, and the number of accepted moves."""

    plan: Plan
    worth: float
    taken: int


def worth_of_moves(move_s: float, holds_s: float) -> float:
    """Share of its worth, 0 to 1, that a job loses by a move of `move_s` seconds, in a plan for `holds_s` seconds."""
    if move_s < 0.0 or not holds_s > 0.0:
        raise InputError(f"a move of {move_s} s in a plan of {holds_s} s: expected at least 0 and more than 0")
    return min(move_s / holds_s, 1.0)


def local_search(problem: Problem, objective: str = "utilisation", start: Plan | None = None, **search: Any) -> Plan:
    """The plan of `searched`."""
    return searched(problem, objective, start, **search).plan


def searched(
    problem: Problem,
    objective: str = "utilisation",
    start: Plan | None = None,
    steps: int = STEPS,
    seed: int = 0,
    move_worth: float = 0.0,
    remaining_s: np.ndarray | None = None,
    power: float = POWER,
    heat: float = HEAT,
) -> Searched:
    """The grouping that a local search finds: never worth less to its objective than its start.

    Args:
        problem: jobs and machines; a grouping whose models exceed memory is not taken.
        objective: `utilisation`, `rates` or `known`.
        start: where to begin; None: the plan of Algorithm 1, from which moves cost nothing.
        steps: moves tried, >= 0; about 0.15 us each.
        seed: of the moves.
        move_worth: share of its worth that a job loses by a move, 0 to 1; see `worth_of_moves`.
        remaining_s: float64 (jobs,), seconds left of each job alone on 16 machines; for `known` only.
        power: of the remaining time, in `known`.
        heat: accepted loss at first, over the mean worth of a group; 0: none.

    The plan's `continues` names the groups of `start`. Raises InputError for an unknown objective, `known` without
    remaining times, an illegal start, or a share out of range.
    """
    if not (0.0 <= move_worth <= 1.0 and heat >= 0.0 and steps >= 0):
        raise InputError(f"move_worth={move_worth}, heat={heat}, steps={steps}: expected 0 to 1, and at least 0")
    gains = gains_of(problem, objective, remaining_s, power)
    begun = algorithm1(problem) if start is None else start
    if not problem.is_legal(begun):
        raise InputError("the grouping to start with has more machines than there are, or models that exceed memory")
    state = _State(problem, gains, begun, move_worth if start is not None else 0.0)
    before = state.climb(seed, 0, heat)
    after = state.climb(seed, steps, heat)
    if not after > before:
        return Searched(_as_given(begun, start), before, 0)
    return Searched(state.plan(start is not None), after, state.taken)


def gains_of(
    problem: Problem, objective: str, remaining_s: np.ndarray | None = None, power: float = POWER
) -> np.ndarray:
    """Worth of an iteration a second of each job, and more per machine of its group: float64 (jobs, 2)."""
    if objective == "utilisation":
        return np.stack([problem.comp, problem.beta * problem.comm], axis=1) / problem.machines
    worth = problem.solo_s()
    if objective == "known":
        if remaining_s is None or np.shape(remaining_s) != (problem.jobs,):
            raise InputError(f"objective=known needs remaining_s, one value for each of {problem.jobs} jobs")
        worth = worth * (np.maximum(remaining_s, LEAST_S) / HOUR_S) ** -power
    elif objective != "rates":
        raise InputError(f"objective={objective}: expected one of {', '.join(OBJECTIVES)}")
    return np.stack([worth, np.zeros(problem.jobs)], axis=1)


def worth(problem: Problem, plan: Plan, gains: np.ndarray) -> float:
    """Worth of a plan without moves; `gains` as of `gains_of`."""
    jobs = plan.running
    machines = plan.machines[plan.group_of[jobs]]
    return float((problem.speeds(plan)[jobs] * (gains[jobs, 0] + machines * gains[jobs, 1])).sum())


def _as_given(begun: Plan, start: Plan | None) -> Plan:
    return Plan(begun.group_of, begun.machines, np.arange(len(begun.machines)) if start is not None else None)


class _State:
    """The arrays of `climbing.py`."""

    def __init__(self, problem: Problem, gains: np.ndarray, start: Plan, move_worth: float) -> None:
        c, n, most = climbing, problem.jobs, max(min(problem.jobs, problem.machines), 1)
        sizes = np.stack([problem.comp, problem.comm, problem.models_in_memory], axis=1)
        self.jobs = np.ascontiguousarray(np.column_stack([sizes, gains, problem.bytes_in_memory]))
        self.links = np.full((n, 4), -1, dtype=np.int64)
        self.links[:, c.HOME] = start.group_of
        self.groups = np.full((most, 5), -1, dtype=np.int64)
        begun = len(start.machines)
        self.groups[:, c.COUNT] = np.bincount(start.group_of[start.running], minlength=most)
        self.groups[:, c.MACHINES] = 0
        self.groups[:begun, c.MACHINES] = self.groups[:begun, c.MACHINES_AT_START] = start.machines
        self.groups[:begun, c.PLACE] = np.arange(begun)
        for job in start.running[::-1].tolist():
            self._hang(job, int(start.group_of[job]))
        self.lists = np.zeros((4, 2 * n + most), dtype=np.int64)
        self.lists[c.LIVE, :begun] = np.arange(begun)
        self.lists[c.SPARE, : most - begun] = np.arange(begun, most)[::-1]
        self.counts = np.zeros(8, dtype=np.int64)
        self.counts[[c.N_LIVE, c.N_SPARE, c.FREE]] = begun, most - begun, problem.machines - start.machines.sum()
        self.touched, self.worth = np.zeros((2, 4), dtype=np.int64), np.zeros((2, most))
        self.terms = np.array([problem.ram_bytes, move_worth, problem.comfort_bytes, problem.spill_s])

    def _hang(self, job: int, group: int) -> None:
        c, first = climbing, self.groups[group, climbing.FIRST]
        self.links[job, [c.GROUP, c.NEXT]] = group, first
        if first >= 0:
            self.links[first, c.PREVIOUS] = job
        self.groups[group, c.FIRST] = job

    def climb(self, seed: int, steps: int, heat: float) -> float:
        """Worth after `steps` moves."""
        arrays = self.jobs, self.links, self.groups, self.lists, self.touched, self.worth, self.counts, self.terms
        return float(climb(seed, steps, heat, *arrays))

    @property
    def taken(self) -> int:
        """Accepted moves."""
        return int(self.counts[climbing.TAKEN])

    def plan(self, continues: bool) -> Plan:
        """The grouping, by group number."""
        live = np.sort(self.lists[climbing.LIVE, : self.counts[climbing.N_LIVE]])
        number = np.full(len(self.groups) + 1, -1, dtype=np.int64)  # the last: of waiting jobs
        number[live] = np.arange(len(live))
        machines = self.groups[live, climbing.MACHINES]
        begun = self.groups[live, climbing.MACHINES_AT_START] >= 0
        return Plan(number[self.links[:, climbing.GROUP]], machines, np.where(begun, live, -1) if continues else None)
