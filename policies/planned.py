"""Policies that make one plan for everybody at each instant, of several that are as good to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator.base.decisions import Advance, Decision
from ..simulator.engine.plans import Plan, decisions_of
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import Rule
from .base import Policy


class PlannedPolicy(Policy):
    """Makes a plan at every instant and hands it out decision by decision. Write `candidates`.

    A candidate source (simulator/engine/protocols.py): `candidates` depends on the view alone. Where others decide at
    the same instant too, it plans anew on what they left.

    Args:
        name: how tables and logs call it.
        clock: the rule whose preemption cost, rounds and leases the simulator keeps.
    """

    def __init__(self, name: str, clock: Rule) -> None:
        self.name = name
        self.clock = clock
        self._at: tuple[Any, int, int] | None = None
        self._decisions = -1
        self._left: list[Decision] = []
        self._placed = False

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n distinct plans that are equal in its own terms, the first the one that it takes."""
        raise TypeError(f"{type(self).__name__} does not say how it places jobs: define candidates(self, view, n)")

    def choose(self, view: ClusterView) -> Plan:
        """The plan of this instant."""
        return self.candidates(view, 1)[0]

    def finish(self, view: ClusterView) -> list[Decision]:
        """What else is to be decided once everybody is placed."""
        return []

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of this instant's plan, then of what follows it."""
        simulator = view.simulator
        simulator.use(self.clock)
        decisions = int(simulator.state.decisions)
        if self._at == (simulator, simulator.runs, view.instant) and decisions == self._decisions + 1:
            self._left = self._left[1:]
        elif self._at != (simulator, simulator.runs, view.instant) or decisions != self._decisions:
            self._at = (simulator, simulator.runs, view.instant)
            self._left, self._placed = decisions_of(view, self.choose(view)), False
        self._decisions = decisions
        if not self._left and not self._placed:
            self._left, self._placed = self.finish(view), True
        return self._left[0] if self._left else Advance()

    def rng(self, view: ClusterView) -> np.random.Generator:
        """A generator of its own for this instant, the same whenever it is asked."""
        return np.random.default_rng([int(view.simulator.state.seed), view.instant])
