"""All decisions of a policy at an instant, found on a copy of the run."""

from __future__ import annotations

from ..simulator.base.decisions import Decision
from ..simulator.engine.base_simulator import Decider
from ..simulator.engine.simulator import Simulator
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import Rule


class ShadowSimulator:
    """A second simulator that takes over the present of another and counts runs alike, as policies expect."""

    def __init__(self) -> None:
        self._copy: Simulator | None = None

    def decisions(self, simulator: Simulator, policy: Decider) -> list[Decision]:
        """All decisions of `policy` now, without the last `Advance`; its rule or clock is installed in `simulator`."""
        copy = self._taken_over(simulator)
        found: list[Decision] = []
        for decision in copy.asked(policy):
            copy.apply(decision)
            found.append(decision)
        simulator.use(copy.rule)
        return found

    def view(self, simulator: Simulator, clock: Rule) -> ClusterView:
        """The present of `simulator`, with this clock installed."""
        copy = self._taken_over(simulator)
        copy.use(clock)
        return copy.view

    def _taken_over(self, simulator: Simulator) -> Simulator:
        copy = self._copy
        if copy is None:
            copy = self._copy = simulator.twin()
        copy.copy_run(simulator)
        return copy
