"""`random`: a random order and random places, drawn from the seed: the least baseline.

Without regions it is a compiled rule. With regions every waiting workload, in a random order, tries one random region
of those with its tables, and there the clusters of its first part's types, in a random order, without preemption.
Tables are copied first, where no region can run a workload (policies/mast/copies_on_demand.py), which may drop
replicas. In groups on parameter servers: harmony/group_baselines.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import Decision, Start
from ...simulator.engine.view import ClusterView
from ..harmony.group_baselines import AnyGroup
from ..mast.copies_on_demand import on_demand
from ..mast.hardware import Hardware
from ..mast.regional_scheduler import RegionalScheduler
from ..mast.type_choices import TypeChoices
from ..ordered import Head, Placer, ordered
from ..planning import PlanningPolicy, rng_of
from ..policy_by_view import PolicyByView

FOR_GPUS = ("head", "placer", "preemption_cost", "round", "lease")


class RandomRegions(PlanningPolicy):
    """Random places in regions; see the module."""

    def __init__(self) -> None:
        super().__init__("random")
        self._terms_seen: tuple[Any, ...] | None = None
        self._is_drawn = False
        self._scheduler: RegionalScheduler
        self._choices: TypeChoices

    def why(self, view: ClusterView, decision: Decision) -> str:
        """Chance, or the missing tables."""
        return (
            "drawn at random" if isinstance(decision, Start) else "a waiting workload finds all its tables in no region"
        )

    def plan(self, view: ClusterView) -> list[Decision]:
        """Copies of missing tables, and room for them."""
        self._is_drawn = False
        return [*on_demand(view)]

    def then(self, view: ClusterView) -> list[Decision]:
        """Random starts, with the tables of now; once."""
        if self._is_drawn:
            return []
        self._is_drawn = True
        demands = view.demands
        if not view.has_terms(self._terms_seen):
            self._terms_seen = view.terms
            self._scheduler = RegionalScheduler(Hardware.of(view.topology, demands), len(view.workload), False)
            self._choices = TypeChoices.of(view)
        rng = rng_of(view)
        self._scheduler.follow(view, demands.level)
        clusters = self._scheduler.hardware
        found: list[Decision] = []
        for job in rng.permutation(view.queue).tolist():
            regions = view.regions_of(job)
            if not regions:
                continue
            region = int(rng.choice(regions))
            alike = np.isin(clusters.kind, self._choices.first_types(job))
            there = np.flatnonzero((clusters.region == region) & alike)
            plans = (
                self._scheduler.start(job, demands.level[job], parts, view.now_s, cluster=cluster, preempts=False)
                for cluster in rng.permutation(there).tolist()
                for parts in self._choices.parts(job, int(clusters.kind[cluster]))
            )
            plan = next((one for one in plans if one is not None), None)
            if plan is not None:
                found.append(Start(job, plan.gpus))
        return found


def random_policy(
    head: Head = "skip",
    placer: Placer = "random",
    preemption_cost: tuple[float, ...] = (0.0,),
    round: float = 0.0,
    lease: float = 0.0,
) -> PolicyByView:
    """The policy `random`; parameters as of `ordered`, for clusters without regions."""
    rule = ordered("random", head, placer, preemption_cost, round, lease)
    return PolicyByView(rule, AnyGroup, for_gpus=FOR_GPUS, regions=RandomRegions)
