"""Muri (Zhao et al., SIGCOMM'22): jobs with interleaving stages share machines, by matchings of pairs, in rounds.

Its stages are those of deep learning and its resources GPUs; here a parameter-server job loads, computes and
communicates on the machines of its group: an analogy, no reproduction.

Jobs of a group go through the k stages in turn, each one stage behind the one before: a round takes the sum over the k
steps of the longest stage in each. The efficiency of a group is the sum of its stage times over k times its round, for
the best order of its jobs. As in the published code, groups have at most k jobs and equal machines, and are merged only
while there are more than fit, first the pairs of a matching of the greatest total efficiency.

Every group has `dop` machines (all, if there are fewer); the rest stays idle. At every event the jobs with the least
attained service come in, three for each group that fits (`remaining=hidden`; Muri-L), or those with the least service
left (`known`; Muri-S); service is seconds alone on 16 machines. Groups are formed anew, and jobs move. `load=input`: an
iteration reads all of its input from disk; `none`: nothing.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Literal

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import MB
from ...simulator.groups.group_view import GroupView
from .group_policy import GroupPlan, planned_groups_of
from .harmony import JobStages, ProfiledPolicy, alone, problem_of
from .problem import REFERENCE_MACHINES, Plan, Problem

STAGES = 3  # load, COMP, COMM

Members = tuple[int, ...]


def muri(problem: Problem, load_s: np.ndarray | None = None, machines_each: int = REFERENCE_MACHINES) -> Plan:
    """The groups of Muri, on `machines_each` machines each; the rest stays idle. Raises InputError out of range.

    `problem`: jobs by priority; up to three for each group that fits come in. `load_s`: float64 (jobs,), seconds of
    reading from disk in an iteration, None: 0.
    """
    if not 1 <= machines_each <= problem.machines:
        raise InputError(f"machines_each={machines_each}: expected 1 to the {problem.machines} machines there are")
    loads = np.zeros(problem.jobs) if load_s is None else np.asarray(load_s, dtype=np.float64)
    if loads.shape != (problem.jobs,):
        raise InputError(f"load_s has shape {loads.shape}: expected one value for each of {problem.jobs} jobs")
    stages = np.stack([loads, problem.comp / machines_each, problem.comm], axis=1)
    fit = problem.machines // machines_each
    room = problem.ram_bytes * machines_each
    groups: list[Members] = [
        (job,) for job in np.flatnonzero(problem.models_in_memory <= room)[: STAGES * fit].tolist()
    ]
    while len(groups) > fit:
        merged = _merged(problem, groups, stages, room, len(groups) - fit)
        if len(merged) == len(groups):
            break
        groups = merged
    return Plan.of(problem.jobs, [(members, machines_each) for members in groups[:fit]])


def round_s(stages: np.ndarray, members: Members) -> float:
    """Seconds of a round of the group in its best order; `stages` is float64 (jobs, k), members at most k."""
    k = stages.shape[1]
    steps = (np.arange(k)[:, None] - np.arange(len(members))) % k  # the stage of each job in each step
    return min(float(stages[np.array(order), steps].max(axis=1).sum()) for order in permutations(members))


def efficiency(stages: np.ndarray, members: Members) -> float:
    """Mean utilisation of the resources, 1/k for a job alone."""
    return float(stages[list(members)].sum()) / (stages.shape[1] * round_s(stages, members))


def _merged(problem: Problem, groups: list[Members], stages: np.ndarray, room: float, most: int) -> list[Members]:
    """One round: of the matching of the greatest total efficiency, the `most` best pairs."""
    import networkx

    graph: networkx.Graph = networkx.Graph()
    for one, other in combinations(range(len(groups)), 2):
        together = groups[one] + groups[other]
        if len(together) <= STAGES and problem.models_in_memory[list(together)].sum() <= room:
            graph.add_edge(one, other, weight=efficiency(stages, together))
    pairs = [(min(pair), max(pair)) for pair in networkx.max_weight_matching(graph)]
    pairs.sort(key=lambda pair: (-graph.edges[pair]["weight"], pair))
    mate = dict(pairs[:most])
    gone = set(mate.values())
    return [
        members + (groups[mate[one]] if one in mate else ()) for one, members in enumerate(groups) if one not in gone
    ]


class Muri(ProfiledPolicy):
    """Groups of jobs with interleaving stages.

    Args:
        dop: machines of every group, >= 1.
        remaining: whether lengths of jobs are known.
        load: bytes that an iteration reads.
    """

    def __init__(
        self,
        dop: int = REFERENCE_MACHINES,
        remaining: Literal["hidden", "known"] = "hidden",
        load: Literal["input", "none"] = "input",
    ) -> None:
        super().__init__("muri")
        if dop < 1:
            raise InputError(f"policy muri: dop = {dop}: expected at least 1 machine")
        self.dop, self.remaining, self.load = dop, remaining, load
        self.knows_run_times = remaining == "known"

    def grouped(self, view: GroupView, now: JobStages) -> list[GroupPlan]:
        """The groups of Muri."""
        jobs = sorted(now.settled + now.fresh + now.waiting)
        if not jobs:
            return []
        iterations = view.remaining_iterations if self.remaining == "known" else view.attained_iterations
        service_s = np.array([iterations(job) for job in jobs]) * problem_of(view, jobs, now.machines).solo_s()
        jobs = [jobs[place] for place in np.argsort(service_s, kind="stable")]
        problem = problem_of(view, jobs, now.machines)
        each = min(self.dop, now.machines)
        loads = None
        if self.load == "input":
            read = view.config.pass_fraction * np.array([view.input_bytes(job) for job in jobs])
            loads = read / (each * view.config.disk_mb_s * MB)
        return planned_groups_of(muri(problem, loads, each), jobs) or alone(view, now)
