"""Compiled rules as candidate sources: Dally and SJF-BSBF tell where their jobs go; others GPUs would do as well."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...simulator.base.decisions import Decision, Hold, Migrate, Preempt, Start
from ...simulator.engine.plans import Plan, plan_now
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from ..realisations import realisations
from ..reasons import reasons


class RuleSource:
    """Candidates of a compiled rule: the pass that it would make now, and the same on other free GPUs.

    Gangs are as close together as in the rule's own pass, which decides by tiers (realisations.py). Jobs that go on
    stay where they are, and so does who starts on GPUs that others hold.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.knows_run_times = rule.needs_run_times

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n realisations of the rule's pass at this instant."""
        view.simulator.use(self.rule)
        before = plan_now(view).gangs
        plan = _carried_out(before, view.simulator.pass_ahead())
        stays = {job for job, gpus in before.items() if plan.gangs.get(job) == gpus}
        taken = set().union(*(plan.gangs[job] for job in stays))
        pool = set(view.free_gpus.tolist()).union(*before.values()) - taken
        movers = [job for job, gpus in plan.gangs.items() if job not in stays and pool.issuperset(gpus)]
        counts = np.bincount([gpu for job in plan.gangs for gpu in plan.gangs[job]], minlength=view.topology.num_gpus)
        movers = [job for job in movers if all(counts[gpu] == 1 for gpu in plan.gangs[job])]
        pool -= {gpu for job, gpus in plan.gangs.items() if job not in movers for gpu in gpus}
        rng = np.random.default_rng([int(view.simulator.state.seed), view.instant])
        return realisations(view.topology, plan, movers, pool, n, rng)

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The terms of the rule."""
        return reasons(view, self.rule, (decision,))[0]


def _carried_out(gangs: Mapping[int, tuple[int, ...]], decisions: list[Decision]) -> Plan:
    """What decisions of one instant come to."""
    after, sub_batch, held = dict(gangs), {}, []
    for decision in decisions:
        if isinstance(decision, Preempt):
            after.pop(decision.job, None)
        elif isinstance(decision, Hold):
            held.append(decision.job)
        elif isinstance(decision, Start | Migrate):
            after.pop(decision.job, None)  # in the order in which they start
            after[decision.job] = decision.gpus
            if isinstance(decision, Start) and decision.sub_batch is not None:
                sub_batch[decision.job] = decision.sub_batch
    return Plan(after, sub_batch, tuple(held))
