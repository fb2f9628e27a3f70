"""Asking a policy why it decides as it does, decision by decision, while a run is recorded.

A compiled rule makes a whole pass at once; it is told afterwards, from a copy of the state before it. So a run is the
same to the bit, asked or not.
"""

from __future__ import annotations

from typing import Any

from ...policies import Policy
from ...simulator.base.decisions import Decision
from ...simulator.base.errors import InputError
from ...simulator.events.journal import logged


class Asking:
    """Plays an instant, and keeps the words for every entry of the simulator's log.

    Args:
        simulator: just reset; its log is on.
        policy: who decides, or whose compiled rule plays.
    """

    def __init__(self, simulator: Any, policy: Policy) -> None:
        self._simulator, self._policy = simulator, policy
        self._copy: Any = None
        self._words: dict[int, str] = {}

    def schedule(self) -> None:
        """Make the pass of the compiled rule."""
        simulator = self._simulator
        if not self._may_decide():
            simulator.schedule()
            return
        if self._copy is None:
            self._copy = simulator.twin()
        self._copy.mirror(simulator)
        first = int(simulator.state.log_count)
        simulator.schedule()
        if int(simulator.state.log_count) == first:
            return
        decisions = [decision for _, decision in logged(simulator.state)][first:]
        words = self._policy.whys(self._copy.view, decisions)
        self._words |= {first + place: self._checked(text) for place, text in enumerate(words)}

    def _may_decide(self) -> bool:
        """Whether the compiled rule may find something to decide; a copy is dear, and at many instants it cannot."""
        s, rule = self._simulator.plain.record, self._simulator.rule
        if rule.migrates or rule.restore:
            return True
        if s["waiting"] == 0:
            return False
        takes_others = rule.preempt or rule.lease or rule.preemptive or rule.sharing != "none"
        return bool(takes_others or s["free_gpus"] > 0)

    def apply(self, decision: Decision) -> None:
        """Carry out a decision of the policy."""
        simulator = self._simulator
        words = self._checked(self._policy.why(simulator.view, decision))
        first = int(simulator.state.log_count)
        simulator.apply(decision)
        self._words |= dict.fromkeys(range(first, int(simulator.state.log_count)), words)

    def taken(self) -> dict[int, str]:
        """The words by entry of the log, of this instant; those of the next begin anew."""
        words, self._words = self._words, {}
        return words

    def _checked(self, words: Any) -> str:
        if not isinstance(words, str):
            raise InputError(f"policy {self._policy.name!r}: why gave {words!r}; expected text")
        return " ".join(words.split())
