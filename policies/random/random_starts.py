"""`random-start`: while a workload can start in regions, one of all legal starts, each as likely as any other.

A start is a waiting workload and a cluster for its first part in a region with its tables, if necessary in place of
workloads of a lower priority; RMS's best plan places it. Workloads started at this instant stay. These are the starts
of an agent in Geo-v0 with all clusters and workloads shown, so it is the value of a game in which only needless waiting
is excluded. Tables are copied where no region can run a workload (policies/mast/copies_on_demand.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import TABLE_DECISIONS, Decision, Preempt, Start
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from ..mast.copies_on_demand import on_demand
from ..mast.global_scheduler import scan, write_ranking
from ..mast.hardware import Hardware
from ..mast.mast import paths
from ..mast.regional_scheduler import Plan, RegionalScheduler
from ..mast.type_choices import TypeChoices
from ..planning import PlanningPolicy, is_round
from ..two_paths import SCAN_S, SLOW, TwoPathPolicy

HIGHEST = 0


class _Draws(PlanningPolicy):
    clock: Rule

    def __init__(self, scan_s: float) -> None:
        super().__init__("random-start", Rule("fifo", round=scan_s))
        self._terms_seen: tuple[Any, ...] | None = None
        self._scheduler: RegionalScheduler
        self._choices: TypeChoices

    def is_due(self, view: ClusterView) -> bool:
        """Whether this is an instant of a pass."""
        return self.clock.round == 0.0 or is_round(view.now_s, self.clock.round)

    def plan(self, view: ClusterView) -> list[Decision]:
        """Copies of missing tables, and room for them; without any a first start."""
        return [*on_demand(view)] or self._start(view)

    def then(self, view: ClusterView) -> list[Decision]:
        """One more start."""
        return self._start(view) if self.is_due(view) else []

    def why(self, view: ClusterView, decision: Decision) -> str:
        """Chance, or preemption."""
        if isinstance(decision, TABLE_DECISIONS):
            return "a waiting workload finds all its tables in no region"
        return "makes way for a start that was drawn" if isinstance(decision, Preempt) else "drawn at random"

    def _start(self, view: ClusterView) -> list[Decision]:
        levels = self._levels(view)
        hardware = self._scheduler.hardware
        pairs = []
        for job in view.queue.tolist():
            regions = view.regions_of(job)
            alike = np.isin(hardware.region, regions) & np.isin(hardware.kind, self._choices.first_types(job))
            pairs += [(job, cluster) for cluster in np.flatnonzero(alike).tolist()]
        # The first legal one of a random order: each is equally likely.
        rng = np.random.default_rng([view.seed, view.instant, view.decisions])
        for place in rng.permutation(len(pairs)).tolist():
            job, cluster = pairs[place]
            plan = self._plan_of(view, job, cluster, int(levels[job]))
            if plan is not None:
                return [*(Preempt(other) for other in plan.leaves), Start(job, plan.gpus)]
        return []

    def _levels(self, view: ClusterView) -> np.ndarray:
        """Take over the state. Returns the present priorities, the highest for workloads started at this instant."""
        if not view.has_terms(self._terms_seen):
            self._terms_seen = view.terms
            hardware = Hardware.of(view.topology, view.demands)
            self._scheduler = RegionalScheduler(hardware, len(view.workload), False)
            self._choices = TypeChoices.of(view)
            write_ranking(self._scheduler.record, view.demands)
        view.read_by(scan, self._scheduler.solvers)
        levels = self._scheduler.record["level"][: len(view.workload)].copy()
        running = view.running
        levels[running[view.record["started_s"][running] == view.now_s]] = HIGHEST
        self._scheduler.follow(view, levels)
        return levels

    def _plan_of(self, view: ClusterView, job: int, cluster: int, level: int) -> Plan | None:
        ways = self._choices.parts(job, int(self._scheduler.hardware.kind[cluster]))
        plans = (self._scheduler.plan(job, level, parts, view.now_s, cluster=cluster) for parts in ways)
        return next((plan for plan in plans if plan is not None), None)


def random_starts(slow: str = SLOW, scan_s: float = SCAN_S) -> TwoPathPolicy:
    """The policy `random-start`; `slow` places tables; `scan_s`: seconds between passes."""
    return paths("random-start", _Draws(scan_s), slow)
