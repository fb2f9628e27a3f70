"""Lookahead: the placement with which the present jobs end soonest, found by playing each one on.

On a copy of the run each of the scheduler's placements, and no change, is carried out, and CASSINI plays on until all
present jobs have ended (a rollout policy). The fewest job-seconds win, CASSINI's own choice on a tie. No job arrives in
the copy; machines fail as in the run. Run times are known to it.
"""

from __future__ import annotations

from typing import Any

from ...simulator.base.decisions import Decision
from ...simulator.engine.plans import Plan, decisions_of, plan_now
from ...simulator.engine.view import ClusterView
from ..joined_parameters import takes
from ..themis import Auction, Themis
from .cassini import CANDIDATES, Cassini

NEVER_S = 1e8  # between arrivals in the copy
LEAST_GAIN = 1e-6  # of the job-seconds; less is rounding


class Lookahead(Cassini):
    """Themis' placements, `candidates` >= 1 of them, tried by playing them on; see the module."""

    @takes(Auction)
    def __init__(self, candidates: int = CANDIDATES, **auction: Any) -> None:
        source = Themis(**auction)
        super().__init__("lookahead", source, source.clock, candidates)
        self._goes_on = Cassini("themis+cassini", source, source.clock, candidates)
        self._copy: Any = None

    def begin(self, view: ClusterView) -> None:
        """Drop the copy, which is of one cluster."""
        self._copy = None

    def choose(self, view: ClusterView) -> Plan:
        """The placement with the fewest job-seconds, which may be the present one."""
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
        self._chosen = None  # CASSINI's reason is not the one
        return plans[spent.index(least)]

    def _job_seconds(self, view: ClusterView, decisions: list[Decision]) -> float:
        """Job-seconds of the present jobs, from the first arrival to their ends, after these decisions."""
        self._copy = copy = view.copied(self._copy)
        s = copy.raw.record
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
