"""Policies that decide everything at scheduling rounds, all at once."""

from __future__ import annotations

import math
from typing import Any

from ..simulator.base.decisions import Advance, Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import Rule
from .base import Policy

CLOSE_S = 1e-3  # an instant so near to a round is the round


class RoundPolicy(Policy):
    """Makes a plan at every multiple of `round` and hands it out decision by decision. Write `begin` and `plan`.

    Args:
        name: how tables and logs call it.
        round: seconds, > 0.
        preemption_cost: seconds without progress when a stopped job starts again.

    Attributes:
        clock: the rule whose rounds and cost the simulator keeps.
    """

    def __init__(self, name: str, round: float, preemption_cost: float) -> None:
        if not 0.0 < round < math.inf:
            raise InputError(f"policy {name}: round = {round:g}: expected seconds > 0")
        self.name = name
        self.clock = Rule("fifo", preemption_cost=(preemption_cost,), round=round)
        self._run: tuple[Any, int] | None = None
        self._instant = self._decisions = -1
        self._plan: list[Decision] = []

    def begin(self, view: ClusterView) -> None:
        """A run has begun."""
        raise TypeError(f"{type(self).__name__} does not say how a run begins: define begin(self, view)")

    def plan(self, view: ClusterView) -> list[Decision]:
        """All decisions of this round, in the order in which they can be carried out."""
        raise TypeError(f"{type(self).__name__} does not say what it decides: define plan(self, view)")

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of this round's plan; between rounds, and when somebody else has decided too, none."""
        simulator = view.simulator
        simulator.use(self.clock)
        decisions = int(simulator.state.decisions)
        if self._run != (simulator, simulator.runs):
            self._run, self._instant = (simulator, simulator.runs), -1
            self.begin(view)
        if self._instant != view.instant:
            self._instant, self._decisions = view.instant, decisions
            self._plan = self.plan(view) if is_round(view.now_s, self.clock.round) else []
        elif decisions == self._decisions + 1:
            self._plan, self._decisions = self._plan[1:], decisions
        elif decisions != self._decisions:
            self._plan = []
        return self._plan[0] if self._plan else Advance()


def is_round(now_s: float, round_s: float) -> bool:
    """Whether an instant is a multiple of `round_s`."""
    return abs(now_s - round(now_s / round_s) * round_s) < CLOSE_S
