"""CASSINI on top of a scheduler (paper cassini, Sec. 4.2): it picks among the scheduler's placements, and shifts jobs.

At every instant: the scheduler's candidates, up to 10 of them; the best by Algorithm 2 (candidates.py); the decisions
that lead there. Then, at the same instant, a time-shift for every job that shares a link. Hyper-parameters and the
number of workers stay the scheduler's.

Shifts are computed anew at every instant, and decided where they or the period have changed. They are whole 72nds of
the job's period, as the environment's are (policies/cassini/shift_buckets.py). A job loses its shift where that costs
more than it saves (worth.py), and where it would make it wait for jobs that it no longer meets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from ...simulator.base.decisions import Decision, Shift
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import Grid
from ...simulator.engine.plans import Plan, plan_now
from ...simulator.engine.protocols import CandidateSource
from ...simulator.engine.view import ClusterView
from ...simulator.profiles.phases import Phases
from ...simulator.rules.rule import Rule
from ..links import alone, network_of
from ..planned import PlannedPolicy
from ..reasons.moment import Moment
from .candidates import Candidate, Choice, Interleaving, best_candidate, interleave
from .rank import RANKINGS
from .shift_buckets import bucket_s, nearest_bucket

Shifts = Literal["worth", "always"]
CANDIDATES = 10  # Sec. 5.1: "up to 10 placement candidates"
DEGREES = 5.0  # Sec. 5.1


class Cassini(PlannedPolicy):
    """A scheduler augmented.

    Args:
        name: how tables and logs call it.
        source: whose candidates these are.
        clock: the rule of the source: its preemption cost, rounds and leases hold.
        candidates: how many are looked at, >= 1.
        ranking: what a candidate is worth: mean (the paper's) or worst; see rank.py.
        degrees: steps of the rotations that are tried, a divisor of 360.
        shifts: `worth`: only where they save more than the padding of periods costs; `always`: for every job that
            shares a link, whatever its padding.

    Raises:
        InputError: a parameter out of range.
    """

    def __init__(
        self,
        name: str,
        source: CandidateSource,
        clock: Rule,
        candidates: int = CANDIDATES,
        ranking: str = "mean",
        degrees: float = DEGREES,
        shifts: Shifts = "worth",
    ) -> None:
        super().__init__(name, clock)
        if candidates < 1:
            raise InputError(f"policy {name}: candidates = {candidates}: expected a whole number of at least 1")
        self.source = source
        self.knows_run_times = getattr(source, "knows_run_times", False)
        self.most = int(candidates)
        self.ranking = choose(ranking, RANKINGS, f"ranking of policy {name}")
        self.grid = Grid(degrees)
        self.if_worth = choose(shifts, get_args(Shifts), f"shifts of policy {name}") == "worth"
        self._chosen: Choice | None = None
        self._found: Interleaving | None = None

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Those of the scheduler."""
        return self.source.candidates(view, n)

    def choose(self, view: ClusterView) -> Plan:
        """The best of the scheduler's candidates."""
        plans = self.candidates(view, self.most)
        self._chosen = None
        if len(plans) == 1:
            return plans[0]
        network, links = network_of(view), view.topology.links
        assert links is not None
        placements = [_candidate(alone(view, plan)) for plan in plans]
        best = best_candidate(
            placements, links.capacity, self.ranking, self.grid, tolerance=network.padding, if_worth=self.if_worth
        )
        self._chosen = best
        return plans[best.index]

    def finish(self, view: ClusterView) -> list[Decision]:
        """Shifts of the jobs as they are placed now, those that change, jobs ascending."""
        network, links = network_of(view), view.topology.links
        assert links is not None
        own = alone(view, plan_now(view))
        found = interleave(
            _candidate(own), links.capacity, self.grid, tolerance=network.padding, if_worth=self.if_worth
        )
        self._found = found
        meeting = {job for jobs in found.jobs_on.values() for job in jobs}
        decisions: list[Decision] = []
        for job in [job for job, (_, use) in own.items() if len(use.links)]:
            period_s, present_s, paced_s = view.period_s(job), view.shift_s(job), view.shift_period_s(job)
            if job in found.shifts_s and period_s is not None:
                seconds = bucket_s(nearest_bucket(found.shifts_s[job], period_s), period_s)
                if (seconds, period_s) != (present_s, paced_s):
                    decisions.append(Shift(job, seconds))
            elif present_s is not None and (job in meeting or paced_s != period_s):
                decisions.append(Shift(job, None))
        return decisions

    def why(self, view: ClusterView, decision: Decision) -> str:
        """What its scheduler says, and which of its candidates this is; of a shift whom the job meets."""
        if isinstance(decision, Shift):
            return self._why_shift(view, decision)
        told = [self.source.why(view, decision)] if hasattr(self.source, "why") else []
        if self._chosen is not None:
            value, all_values = self._chosen.values[self._chosen.index], self._chosen.values
            kept = sum(one is not None for one in all_values)
            worth = "" if value is None else f", worth {value:.3g}, the most of {kept}"
            told.append(f"candidate {self._chosen.index + 1} of {len(all_values)}{worth}")
        return "; ".join(text for text in told if text)

    def _why_shift(self, view: ClusterView, shift: Shift) -> str:
        assert self._found is not None, "shifts follow from what was found"
        links = [link for link, jobs in self._found.jobs_on.items() if shift.job in jobs]
        there = {job for link in links for job in self._found.jobs_on[link] if isinstance(job, int)}
        mates = sorted(there - {shift.job})
        if not mates:
            return "meets nobody on its links any more"
        where = f"shares {'a link' if len(links) == 1 else f'{len(links)} links'} with {Moment(view).names(mates)}"
        if shift.seconds is None:
            return f"{where}: a shift costs more than it saves"
        return f"{where}: compatibility {min(self._found.scores[link] for link in links):.3g} with the shifts"


def _candidate(own: Mapping[int, tuple[Phases, LinkUse]]) -> Candidate:
    return Candidate({job: use for job, (_, use) in own.items()}, {job: phases for job, (phases, _) in own.items()})
