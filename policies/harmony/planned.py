"""Policies that say at every instant which groups they want; the decisions that lead there follow from that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import Advance, AssignGroup, Decision, Preempt, SetMachines
from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GroupTerms
from ...simulator.groups.group_view import GroupView
from ..base import Policy
from .carry_out import Step, Wanted, decision_of, is_done, present, steps_to

FEW = 3


class GroupPolicy(Policy):
    """Wants groups. Write `wanted`, and `begin` and `look` if it remembers something.

    Where others decide at the same instant too, it plans anew on what they left.

    Args:
        name: how tables and logs call it.
        terms: how groups execute, and whether data is spilled, while it plays.

    Attributes:
        before: the groups that it wanted at the last instant at which it was asked; empty at first.
    """

    terms: GroupTerms

    def __init__(self, name: str, terms: GroupTerms | None = None) -> None:
        self.name = name
        self.terms = terms or GroupTerms()
        self.before: list[Wanted] = []
        self._run: tuple[Any, int] | None = None
        self._instant = -1
        self._decisions = -1
        self._after: list[Wanted] = []
        self._left: list[Step] = []
        self._given: Decision = Advance()

    def wanted(self, view: GroupView) -> list[Wanted]:
        """The groups that there are to be; the same whenever it is asked at an instant that nobody has changed."""
        raise TypeError(f"{type(self).__name__} does not say what it wants: define wanted(self, view)")

    def begin(self, view: GroupView) -> None:
        """A run begins, or goes on from a state that it has not seen."""

    def look(self, view: GroupView) -> None:
        """An instant begins."""

    def decide(self, view: Any) -> Decision:
        """The next decision on the way to what it wants.

        Raises:
            InputError: no groups run here.
        """
        if not isinstance(view, GroupView):
            raise InputError(
                f"policy {self.name} plays where jobs run in groups on parameter servers (Grouping-v0); expected a "
                "GroupSimulator's view"
            )
        simulator = view.simulator
        simulator.use(self.terms)
        decisions = int(simulator.plain.record["decisions"])
        run, instant = (simulator, simulator.runs), view.instant
        is_same = run == self._run and instant == self._instant
        if is_same and decisions == self._decisions + 1 and self._left and is_done(view, self._given):
            del self._left[0]
        elif run != self._run or instant != self._instant or decisions != self._decisions:
            if run != self._run:
                self._run, self._after = run, []
                self.begin(view)
                self._instant = -1
            if instant != self._instant:
                self.before, self._instant = self._after, instant
                self.look(view)
            self._after = self.wanted(view)
            self._left = [] if self._after == present(view) else steps_to(view, self._after)
        self._decisions = decisions
        self._given = decision_of(view, self._left[0]) if self._left else Advance()
        return self._given

    def why(self, view: Any, decision: Decision) -> str:
        """What the groups that it wants come to for the job."""
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

    def rng(self, view: GroupView) -> np.random.Generator:
        """A generator of its own for this instant, the same whenever it is asked."""
        return np.random.default_rng([int(view.simulator.plain.record["seed"]), view.instant])

    def __repr__(self) -> str:
        return f"{self.name}: {self.terms}"
