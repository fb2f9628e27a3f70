"""`random`: a random order and random places, drawn from the seed: what everything should beat.

Without regions it is a compiled rule. With regions every waiting workload, in a random order, is offered to one region
of those that have its tables, drawn at random, and there to the clusters of its first part's type, in a random order;
it starts at the first where it fits without preemption. Tables are copied where no region can run a workload
(policies/mast/copies_on_demand.py). Where jobs run in groups on parameter servers see harmony/drawn.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator.base.decisions import Advance, Decision, Start
from ..simulator.engine.view import ClusterView
from .base import Policy, RulePolicy
from .harmony.drawn import AnyGroup
from .mast.copies_on_demand import on_demand
from .mast.rms import Hardware, RegionalScheduler
from .ordered import Head, Placer, ordered
from .twofold import Twofold


class Anywhere(Policy):
    """Random places in regions; see the module."""

    def __init__(self) -> None:
        self.name = "random"
        self._laid: tuple[Any, Any] | None = None
        self._scheduler: RegionalScheduler
        self._now: tuple[Any, int, int] | None = None
        self._decisions = 0
        self._left: list[Decision] = []

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of this instant's draw."""
        simulator = view.simulator
        now, decisions = (simulator, simulator.runs, view.instant), int(simulator.state.decisions)
        if now == self._now and decisions == self._decisions + 1:
            self._left = self._left[1:]
        elif now != self._now or decisions != self._decisions:
            self._now, self._left = now, self._draw(view)
        self._decisions = decisions
        return self._left[0] if self._left else Advance()

    def why(self, view: ClusterView, decision: Decision) -> str:
        """Chance; tables are copied where no region has all that a workload reads."""
        return (
            "drawn at random" if isinstance(decision, Start) else "a waiting workload finds all its tables in no region"
        )

    def _draw(self, view: ClusterView) -> list[Decision]:
        simulator, demands = view.simulator, view.demands
        if self._laid is None or self._laid[0] is not view.workload or self._laid[1] is not view.topology:
            self._laid = (view.workload, view.topology)
            self._scheduler = RegionalScheduler(Hardware.of(view.topology, demands), len(view.workload), False)
        rng = np.random.default_rng([int(simulator.state.seed), view.instant])
        self._scheduler.follow(simulator.records, demands.level)
        clusters = self._scheduler.hardware
        found: list[Decision] = []
        lacking: list[int] = []
        for job in rng.permutation(view.queue).tolist():
            regions = view.regions_of(job)
            if not regions:
                lacking.append(job)
                continue
            region = int(rng.choice(regions))
            parts = list(zip(demands.part_type[job].tolist(), demands.part_units[job].tolist(), strict=True))
            parts = [part for part in parts if part[0] >= 0]
            there = np.flatnonzero((clusters.region == region) & (clusters.kind == parts[0][0]))
            for cluster in rng.permutation(there).tolist():
                plan = self._scheduler.start(
                    job, demands.level[job], parts, view.now_s, cluster=cluster, preempts=False
                )
                if plan is not None:
                    found.append(Start(job, plan.gpus))
                    break
        return [*on_demand(view, sorted(lacking)), *found]


class RandomPolicy(Twofold):
    """The compiled rule, in regions `Anywhere`, or `AnyGroup`."""

    def __init__(self, rule: RulePolicy) -> None:
        super().__init__(rule, AnyGroup(), for_gpus=("head", "placer", "preemption_cost", "round", "lease"))
        self._anywhere = Anywhere()

    def decide(self, view: Any) -> Decision:
        """The next decision at this instant."""
        return self._anywhere.decide(view) if view.workload.geo is not None else super().decide(view)

    def why(self, view: Any, decision: Decision) -> str:
        """What whoever plays there says."""
        return self._anywhere.why(view, decision) if view.workload.geo is not None else super().why(view, decision)


def drawn(
    head: Head = "skip",
    placer: Placer = "random",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> RandomPolicy:
    """The policy `random`; its parameters are those of `ordered`, for clusters without regions."""
    return RandomPolicy(ordered("random", head, placer, preemption_cost, round, lease))
