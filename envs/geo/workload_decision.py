"""A policy's decisions at an instant by workload; each is one action of the environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...simulator.base.decisions import Decision, Hold, Preempt, Start
from ...simulator.engine.view import ClusterView
from .geo_window import AS_IT_IS, IN_PLACE_OF_OTHERS, NO_CLUSTER


@dataclass(frozen=True)
class WorkloadDecision:
    """One workload starts, or is held."""

    job: int
    cluster: int  # of its first part; -1: it is held
    way: int  # AS_IT_IS, or IN_PLACE_OF_OTHERS
    decisions: tuple[Decision, ...]  # in order: preemptions for it, decisions about tables before it, its own

    @property
    def choice(self) -> tuple[int, int, int]:
        """The arguments of its action."""
        return self.job, self.cluster, self.way

    @property
    def ends_by_itself(self) -> bool:
        """Whether it holds a workload until a certain time, which is an event."""
        last = self.decisions[-1]
        return isinstance(last, Hold) and last.until_s is not None


def workload_decisions_of(
    view: ClusterView, decisions: Iterable[Decision]
) -> tuple[list[WorkloadDecision], list[Decision]]:
    """The turns of the decisions of one instant, and the decisions after the last of them."""
    topology = view.topology
    pending_decisions: list[WorkloadDecision] = []
    before: list[Decision] = []
    for decision in decisions:
        before.append(decision)
        if isinstance(decision, Start):
            cluster = int(topology.gpu_cluster[decision.gpus[0]])
            way = IN_PLACE_OF_OTHERS if any(isinstance(one, Preempt) for one in before) else AS_IT_IS
            pending_decisions.append(WorkloadDecision(decision.job, cluster, way, tuple(before)))
            before = []
        elif isinstance(decision, Hold):
            pending_decisions.append(WorkloadDecision(decision.job, NO_CLUSTER, AS_IT_IS, tuple(before)))
            before = []
    return pending_decisions, before
