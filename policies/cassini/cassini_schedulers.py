"""The schedulers that CASSINI augments: `themis+cassini`, `pollux+cassini`, `dally+cassini`, `sjf-bsbf+cassini`.

Each takes the parameters of CASSINI (cassini.py) and the main ones of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ...simulator.base.decisions import Decision, Hold, Migrate, Preempt, Start
from ...simulator.engine.plans import Plan, plan_now
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from ...simulator.rules.semantics import LEASE_S as DALLY_LEASE_S
from ..bsbf import shared
from ..dally import dally
from ..equivalent_placements import equivalent_placements
from ..joined_parameters import takes
from ..planning import rng_of
from ..pollux.pollux import Pollux
from ..reasons import reasons
from ..themis import Auction, Themis
from .cassini import CANDIDATES, DEGREES, Cassini, Shifts


class RuleSource:
    """Candidates of a compiled rule: the pass that it would make now, and the same on other free GPUs.

    Gangs are as compact as in the rule's own pass (equivalent_placements.py). Jobs that keep their GPUs, and jobs that
    start on GPUs of others, have the same GPUs in all candidates. The rule, or one that makes the same passes, must be
    installed as `clock`.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.knows_run_times = rule.needs_run_times

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n placements of the rule's pass."""
        before = plan_now(view).gangs
        plan = _carried_out(before, view.preview_pass())
        stays = {job for job, gpus in before.items() if plan.gangs.get(job) == gpus}
        taken = set().union(*(plan.gangs[job] for job in stays))
        pool = set(view.free_gpus.tolist()).union(*before.values()) - taken
        movers = [job for job, gpus in plan.gangs.items() if job not in stays and pool.issuperset(gpus)]
        counts = np.bincount([gpu for job in plan.gangs for gpu in plan.gangs[job]], minlength=view.topology.num_gpus)
        movers = [job for job in movers if all(counts[gpu] == 1 for gpu in plan.gangs[job])]
        pool -= {gpu for job, gpus in plan.gangs.items() if job not in movers for gpu in gpus}
        return equivalent_placements(view.topology, plan, movers, pool, n, rng_of(view))

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The terms of the rule."""
        return reasons(view, self.rule, (decision,))[0]


def _carried_out(gangs: Mapping[int, tuple[int, ...]], decisions: list[Decision]) -> Plan:
    """The plan after the decisions of one instant."""
    after, sub_batch, held = dict(gangs), {}, []
    for decision in decisions:
        if isinstance(decision, Preempt):
            after.pop(decision.job, None)
        elif isinstance(decision, Hold):
            held.append(decision.job)
        elif isinstance(decision, Start | Migrate):
            after.pop(decision.job, None)  # the order is that of the starts
            after[decision.job] = decision.gpus
            if isinstance(decision, Start) and decision.sub_batch is not None:
                sub_batch[decision.job] = decision.sub_batch
    return Plan(after, sub_batch, tuple(held))


Ranking = Literal["mean", "worst"]


@takes(Auction)
def themis_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    **auction: Any,
) -> Cassini:
    """Themis augmented: paper cassini's Th+CASSINI. Setting: cassini, Sec. 5.1."""
    source = Themis(**auction)
    return Cassini("themis+cassini", source, source.clock, candidates, ranking, degrees, shifts)


def pollux_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    round: float = 60.0,
    preemption_cost: float = 30.0,
) -> Cassini:
    """Pollux augmented, jobs of fixed size: paper cassini's Po+CASSINI. Setting: cassini, Sec. 5.1."""
    source = Pollux(round, preemption_cost)
    return Cassini("pollux+cassini", source, source.clock, candidates, ranking, degrees, shifts)


def dally_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    lease: float = DALLY_LEASE_S,
    preemption_cost: tuple[float, ...] = (0.0,),
) -> Cassini:
    """Dally augmented."""
    rule = dally(lease=lease, preemption_cost=preemption_cost).rule
    return Cassini("dally+cassini", RuleSource(rule), rule, candidates, ranking, degrees, shifts)


def bsbf_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    preemption_cost: tuple[float, ...] = (0.0,),
) -> Cassini:
    """SJF-BSBF augmented."""
    rule = shared("sjf-bsbf", "best-benefit", preemption_cost=preemption_cost).rule
    return Cassini("sjf-bsbf+cassini", RuleSource(rule), rule, candidates, ranking, degrees, shifts)
