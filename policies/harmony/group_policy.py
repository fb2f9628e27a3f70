"""The base of policies among groups: they plan groups, and the decisions that lead there follow.

`steps_to` leads from the present to the wanted groups in as few decisions as possible, each legal in its turn. An
assignment of the greatest weight pairs wanted groups with present ones; the weight is the jobs in common, each times
the share of its partitions that stays: a staying job loads the change of machines, a coming one loads all. First jobs
pause and groups give machines back, then jobs join present groups, then new groups open on the machines of emptied
ones, and at last groups grow. Plans are made for the machines that are up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.base.decisions import AssignGroup, Decision, Preempt, SetMachines
from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GroupTerms
from ...simulator.groups.group_view import GroupView
from ..planning import PlanningPolicy
from .problem import Plan


@dataclass(frozen=True)
class GroupPlan:
    """A group as planned: its jobs, at least one, each in one group only, and its machines, >= 1."""

    members: tuple[int, ...]
    machines: int


@dataclass(frozen=True)
class Follow:
    """Let a job join the group that `mate` is in by then."""

    job: int
    mate: int


Step = Decision | Follow


def present(view: GroupView) -> list[GroupPlan]:
    """The present groups, in the order of their numbers."""
    return [GroupPlan(tuple(view.members(group)), view.machines_of(group)) for group in view.groups.tolist()]


def planned_groups_of(plan: Plan, jobs: Sequence[int]) -> list[GroupPlan]:
    """The groups of a solver's plan; `jobs` are those of its problem, in order."""
    return [GroupPlan(tuple(jobs[place] for place in members), machines) for members, machines in plan.groups()]


def steps_to(view: GroupView, wanted: Sequence[GroupPlan]) -> list[Step]:
    """Steps from the present groups to the wanted ones, which fit the machines that are up; see `decision_of`."""
    numbers = view.groups.tolist()
    group_of = view.group_of_jobs
    own = [view.machines_of(group) for group in numbers]
    old_of = _pairs(numbers, own, group_of, wanted)
    staying = {job for group in wanted for job in group.members}
    pauses: list[Step] = [Preempt(job) for job in view.running.tolist() if job not in staying]
    shrinks, joins, opens, grows = ([], [], [], [])  # type: tuple[list[Step], list[Step], list[Step], list[Step]]
    for old, group in zip(old_of, wanted, strict=True):
        if old < 0:
            first, *others = group.members
            opens.append(AssignGroup(first, None, group.machines))
            opens += [Follow(job, first) for job in others]
            continue
        number, machines = numbers[old], own[old]
        joins += [AssignGroup(job, number) for job in group.members if group_of[job] != number]
        if group.machines != machines:
            (shrinks if group.machines < machines else grows).append(SetMachines(number, group.machines))
    return pauses + shrinks + joins + opens + grows


def decision_of(view: GroupView, step: Step) -> Decision:
    """A step as a decision, once those before it have been made."""
    return AssignGroup(step.job, view.group_of(step.mate)) if isinstance(step, Follow) else step


def is_done(view: GroupView, decision: Decision) -> bool:
    """Whether the groups are as a decision of `decision_of` wants."""
    if isinstance(decision, SetMachines):
        return view.machines_of(decision.group) == decision.machines
    if isinstance(decision, AssignGroup):
        group = view.group_of(decision.job)
        return group >= 0 and (group == decision.group or view.machines_of(group) == decision.machines)
    return isinstance(decision, Preempt) and view.group_of(decision.job) < 0


def _pairs(numbers: list[int], own: list[int], group_of: np.ndarray, wanted: Sequence[GroupPlan]) -> list[int]:
    """For each wanted group the index of the present one that it continues; -1: a new group."""
    kept = np.zeros((len(wanted), len(numbers)))
    place = {group: i for i, group in enumerate(numbers)}
    for row, group in enumerate(wanted):
        for job in group.members:
            old = place.get(int(group_of[job]), -1)
            if old >= 0:
                kept[row, old] += min(group.machines, own[old]) / max(group.machines, own[old])
    old_of = [-1] * len(wanted)
    if kept.size and (np.count_nonzero(kept, axis=0) <= 1).all() and (np.count_nonzero(kept, axis=1) <= 1).all():
        for row in np.flatnonzero(kept.any(axis=1)).tolist():
            old_of[row] = int(kept[row].argmax())
    elif kept.size:
        from scipy.optimize import linear_sum_assignment

        rows, olds = linear_sum_assignment(kept, maximize=True)
        for row, old in zip(rows.tolist(), olds.tolist(), strict=True):
            if kept[row, old] > 0.0:
                old_of[row] = old
    return old_of


FEW = 3


class GroupPolicy(PlanningPolicy):
    """Plans groups. Write `wanted`, and `begin` and `look` if it has memory.

    Where others decide at the same instant too, it plans anew.

    Args:
        name: in tables and logs.
        clock: how groups execute, and whether data is spilled.
    """

    clock: GroupTerms

    def __init__(self, name: str, clock: GroupTerms | None = None) -> None:
        super().__init__(name, clock or GroupTerms())
        self.before: list[GroupPlan] = []
        self._after: list[GroupPlan] = []
        self._after_of: Hashable = None

    def wanted(self, view: GroupView) -> list[GroupPlan]:
        """The groups that it wants; the same at each call while the state is the same."""
        raise TypeError(f"{type(self).__name__} does not say what it wants: define wanted(self, view)")

    def look(self, view: GroupView) -> None:
        """Start an instant."""

    def clock_for(self, view: Any) -> Any:
        """How groups execute. Raises InputError where no groups run."""
        if not isinstance(view, GroupView):
            raise InputError(
                f"policy {self.name} plays where jobs run in groups on parameter servers (Grouping-v0); expected a "
                "GroupSimulator's view"
            )
        return super().clock_for(view)

    def plan(self, view: GroupView) -> list[Step]:
        """Steps to the groups that it wants."""
        self.before = self._after if self._after_of == view.run else []
        self._after_of = view.run
        self.look(view)
        return self.rest(view, [])

    def rest(self, view: GroupView, left: list[Step]) -> list[Step]:
        """Steps after another party's decisions."""
        self._after = self.wanted(view)
        return [] if self._after == present(view) else steps_to(view, self._after)

    def said(self, view: GroupView, step: Step) -> Decision:
        """The decision of a step."""
        return decision_of(view, step)

    def is_done(self, view: GroupView, decision: Decision) -> bool:
        """Whether the groups are as the decision wants."""
        return is_done(view, decision)

    def why(self, view: Any, decision: Decision) -> str:
        """The job's groups and machines in the plan."""
        if isinstance(decision, SetMachines):
            return f"{decision.machines} machines in the groups that it wants"
        if isinstance(decision, Preempt):
            return "in none of the groups that it wants"
        if not isinstance(decision, AssignGroup):
            return ""
        own = next((group for group in self._after if decision.job in group.members), None)
        if own is None:
            return ""
        mates = [str(view.workload.job_id[job]) for job in own.members if job != decision.job]
        beside = (
            f"with {', '.join(mates[:FEW])}{f' and {len(mates) - FEW} more' * (len(mates) > FEW)}" if mates else "alone"
        )
        return f"wanted {beside} on {own.machines} machines"

    def __repr__(self) -> str:
        return f"{self.name}: {self.clock}"
