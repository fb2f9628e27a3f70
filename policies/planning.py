"""Bases of policies that decide in Python: they plan at an instant, then hand the plan out decision by decision."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ..simulator.base.decisions import Advance, Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.last_asked import NEVER, Happened, LastAsked
from ..simulator.engine.plans import Plan, decisions_of
from ..simulator.engine.view import ClusterView
from ..simulator.groups.group_config import GroupTerms
from ..simulator.rules.rule import Rule
from .base import Policy

CLOSE_S = 1e-3  # tolerance of `is_round`


class PlanningPolicy(Policy):
    """Plans once an instant and hands the plan out step by step. Write `plan`; other methods are optional.

    Args:
        name: in tables and logs.
        clock: see `Policy`.
    """

    def __init__(self, name: str, clock: Rule | GroupTerms | None = None) -> None:
        self.name = name
        self.clock = clock
        self._run: Hashable = None
        self._asked = NEVER
        self._left: list[Any] = []
        self._given: Decision = Advance()

    def plan(self, view: Any) -> Iterable[Any]:
        """All steps of this instant, in a legal order: decisions, or steps that `said` turns into decisions."""
        raise TypeError(f"{type(self).__name__} does not say what it decides: define plan(self, view)")

    def begin(self, view: Any) -> None:
        """Start a run, or go on from an unknown state."""

    def is_due(self, view: Any) -> bool:
        """Whether it plans at this instant."""
        return True

    def rest(self, view: Any, left: list[Any]) -> Iterable[Any]:
        """The steps after another party has decided at this instant too; a new plan by default.

        `view` is the cluster after that; `left` are the steps not handed out, or not seen carried out.
        """
        return self.plan(view) if self.is_due(view) else ()

    def then(self, view: Any) -> Iterable[Any]:
        """The steps after the plan has been carried out; asked until there are none."""
        return ()

    def said(self, view: Any, step: Any) -> Decision | None:
        """A step as a decision; None: it has become void."""
        decision: Decision = step
        return decision

    def is_done(self, view: Any, decision: Decision) -> bool:
        """Whether the decision carried out since the last call is `decision`, the one given then."""
        return True

    def decide(self, view: Any) -> Decision:
        """The next decision of this instant's plan."""
        if view.run != self._run:
            self._run, self._asked = view.run, NEVER
            self.begin(view)
        before, self._asked = self._asked, LastAsked((view.run, view.instant), view.decisions)
        happened = before.since(self._asked)
        if happened is Happened.NEW_INSTANT:
            self._left = list(self.plan(view)) if self.is_due(view) else []
        elif happened is Happened.ONE_DECISION and self.is_done(view, self._given):
            del self._left[:1]
        elif happened is not Happened.NOTHING:
            self._left = list(self.rest(view, self._left))
        self._given = self._next(view)
        return self._given

    def _next(self, view: Any) -> Decision:
        """The first step that is still a decision; drops those before it."""
        while True:
            while self._left:
                decision = self.said(view, self._left[0])
                if decision is not None:
                    return decision
                del self._left[0]
            self._left = list(self.then(view))
            if not self._left:
                return Advance()

    def forget_plan(self) -> None:
        """Plan anew at the next call, as at the start of a run."""
        self._run = None


class RoundPolicy(PlanningPolicy):
    """Plans at every multiple of `round`. Write `plan`, and `begin` if it has memory.

    It decides nothing between rounds, nor at a round after another party has decided.

    Args:
        name: in tables and logs.
        round: seconds, > 0.
        preemption_cost: seconds without progress when a stopped job starts again.
    """

    clock: Rule

    def __init__(self, name: str, round: float, preemption_cost: float) -> None:
        if not 0.0 < round < math.inf:
            raise InputError(f"policy {name}: round = {round:g}: expected seconds > 0")
        super().__init__(name, Rule("fifo", preemption_cost=(preemption_cost,), round=round))

    def is_due(self, view: ClusterView) -> bool:
        """Whether this is a round."""
        return is_round(view.now_s, self.clock.round)

    def rest(self, view: ClusterView, left: list[Decision]) -> Iterable[Decision]:
        """No steps."""
        return ()


class PlacementPolicy(PlanningPolicy):
    """Plans GPUs for all jobs, out of several plans that are equal to it: a candidate source. Write `candidates`."""

    clock: Rule
    _is_placed = False

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n distinct plans that are equal in its own terms; the first is its choice."""
        raise TypeError(f"{type(self).__name__} does not say how it places jobs: define candidates(self, view, n)")

    def choose(self, view: ClusterView) -> Plan:
        """The plan of this instant."""
        return self.candidates(view, 1)[0]

    def finish(self, view: ClusterView) -> list[Decision]:
        """Decisions after all jobs are placed."""
        return []

    def plan(self, view: ClusterView) -> list[Decision]:
        """The decisions that lead to the chosen plan."""
        self._is_placed = False
        return decisions_of(view, self.choose(view))

    def then(self, view: ClusterView) -> list[Decision]:
        """The decisions of `finish`, once."""
        if self._is_placed:
            return []
        self._is_placed = True
        return self.finish(view)


def is_round(now_s: float, round_s: float) -> bool:
    """Whether an instant is a multiple of `round_s`."""
    return abs(now_s - round(now_s / round_s) * round_s) < CLOSE_S


def rng_of(view: Any) -> np.random.Generator:
    """A generator for this instant of a run, the same at each call."""
    return np.random.default_rng([view.seed, view.instant])
