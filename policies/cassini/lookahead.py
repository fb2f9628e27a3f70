"""Lookahead: the placement with which the present jobs are through soonest, tried by playing each one on.

On a copy of the run each of the scheduler's placements, and nothing at all, is carried out, and CASSINI plays on from
there until all present jobs have ended (a rollout policy). That with the fewest job-seconds is taken, CASSINI's own
choice on a tie. Nobody arrives in the copy; machines fail there as in the run itself. Run times are known to it.
"""

from __future__ import annotations

from typing import Any

from ...simulator.base.decisions import Decision
from ...simulator.engine.plans import Plan, decisions_of, plan_now
from ...simulator.engine.view import ClusterView
from ..joined_parameters import takes
from ..themis import Auction, Themis
from .cassini import CANDIDATES, Cassini

NEVER_S = 1e8  # from one arrival to the next, once nobody is to arrive
LEAST_GAIN = 1e-6  # of the job-seconds: less is rounding


class Lookahead(Cassini):
    """Themis' placements, tried by playing them on; see the module.

    Args:
        candidates: how many placements are looked at, >= 1.
        auction: fields of `Auction`, of Themis.
    """

    @takes(Auction)
    def __init__(self, candidates: int = CANDIDATES, **auction: Any) -> None:
        source = Themis(**auction)
        super().__init__("lookahead", source, source.clock, candidates)
        self._goes_on = Cassini("themis+cassini", source, source.clock, candidates)
        self._copy: Any = None

    def begin(self, view: ClusterView) -> None:
        """A copy is of one cluster."""
        self._copy = None

    def choose(self, view: ClusterView) -> Plan:
        """The placement that comes to the fewest job-seconds, which may be that of now."""
        ahead, now = super().choose(view), plan_now(view)
        plans = [ahead, *(plan for plan in self.candidates(view, self.most) if plan.placement != ahead.placement)]
        if len(view.running) and all(plan.placement != now.placement for plan in plans):
            plans.append(now)
        if len(plans) == 1:
            return ahead
        spent = [self._job_seconds(view, decisions_of(view, plan)) for plan in plans]
        least = min(spent)
        if spent[0] <= least * (1.0 + LEAST_GAIN):
            return ahead
        self._chosen = None  # the reason that CASSINI would give is not why
        return plans[spent.index(least)]

    def _job_seconds(self, view: ClusterView, decisions: list[Decision]) -> float:
        """What the jobs that are there spend from the first arrival to their ends, if these decisions are taken."""
        self._copy = copy = view.copied(self._copy)
        s = copy.plain.record
        here = int(s["next_arrival"])
        s["arrival_s"][here : int(s["n_jobs"])] = s["now_s"] + NEVER_S
        for decision in decisions:
            copy.apply(decision)
        for decision in self._goes_on.finish(copy.view):
            copy.apply(decision)
        copy.advance()
        self._goes_on.forget_plan()
        while s["done"] < here and s["next_arrival"] == here and not copy.ended:
            for decision in copy.asked(self._goes_on):
                copy.apply(decision)
            copy.advance()
        return float(s["active_integral"])
