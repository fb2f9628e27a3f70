"""Runs on network contention whose decisions are written down beforehand: clusters, players, GPUs."""

from __future__ import annotations

from clustergym.simulator.base.decisions import Advance
from clustergym.simulator.engine.simulator import Simulator
from clustergym.tests.support.random_contended import PHASES, dumbbell, workload


class Script:
    """Decisions by instant: at the first decision point from each time on, these."""

    def __init__(self, *plan: tuple[float, object]) -> None:
        self.plan = list(plan)

    def decide(self, view):
        if self.plan and self.plan[0][0] <= view.now_s:
            return self.plan.pop(0)[1]
        return Advance()


def contended(*rows, words="", topology=None, **options) -> Simulator:
    simulator = Simulator(topology or dumbbell(), f"contention:models={PHASES}{words}", **options)
    simulator.reset(workload(*rows))
    return simulator


ACROSS, ALSO = (0, 4), (1, 5)  # GPUs of the dumbbell, each pair on both sides
