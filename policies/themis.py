"""Themis: GPUs are leased, and auctioned to the jobs that are farthest from fair; and what is built on its placements.

Source: Themis (Mahajan et al., NSDI'20) as paper cassini describes and runs it (Sec. 4.2, 5.1): jobs that are farthest
from finish-time fairness bid first; leases of 10 minutes; auctions when jobs come and go and when leases end; placement
that knows racks. How far a job is from fair is the metric of simulator/engine/metrics.py, for a job that is still
there:

    rho = T_shared / T_ideal = (age + isolated run time left) / time alone on a 1 / N share of the GPUs

N is the mean number of jobs since it came, itself among them; a share that is smaller than its gang slows it down in
proportion. Whoever has the largest rho is farthest from fair. Choices, where the papers leave some:
* Gangs are whole: a job bids for all the workers that it asks and gets all or none. The paper's Themis also tunes
  their number, "automatically", by a rule that it does not give; that is left out.
* With such bids fairness improves most where the largest rho is served first: jobs win in this order as long as their
  gangs fit, and whoever does not fit is passed. To offer GPUs to the worst part of the jobs first, and what they leave
  to the others, would come to the same order.
* At an auction are all free GPUs and those whose lease has ended; bidders are the jobs that wait or whose lease has
  ended. A job whose lease runs keeps its GPUs.
* Winners are placed as close together as the GPUs at the auction lie, in order of rho. One that has GPUs and would not
  get closer ones elsewhere keeps them.
* Candidates (paper cassini, Sec. 4.2: "achieve the same finish-time fairness, but their worker placements are
  different"): the same winners on other GPUs of the auction, each as close together as before
  (equivalent_placements.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator.base.decisions import Decision, Migrate, Preempt, Start
from ..simulator.base.errors import InputError
from ..simulator.cluster.routes import sharing
from ..simulator.engine.plans import Plan
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import Rule
from .equivalent_placements import equivalent_placements, locality, place
from .gang_links import uses
from .planning import PlacementPolicy, rng_of
from .reasons.mid_instant import Moment

LEASE_S = 600.0  # paper cassini, Sec. 5.1: "the bidding period (epoch) is set to 10 mins"
CANDIDATES = 10  # paper cassini, Sec. 5.1: "up to 10 placement candidates"


class Themis(PlacementPolicy):
    """See the module.

    Args:
        lease: seconds, > 0.
        preemption_cost: seconds without progress when a job starts again or moves.

    Paper: themis, auctions of leased GPUs, as in paper cassini, Sec. 4.2 and 5.1.
    """

    knows_run_times = True

    def __init__(self, lease: float = LEASE_S, preemption_cost: float = 0.0) -> None:
        if not 0.0 < lease < float("inf"):
            raise InputError(f"policy themis: lease = {lease:g}: expected seconds > 0")
        super().__init__("themis", Rule("fifo", preemption_cost=(preemption_cost,), lease=lease))

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n placements of this instant's auction."""
        held = {job: tuple(view.gpus_of(job)) for job in view.running.tolist()}
        ended = [job for job in held if view.lease_end_s(job) <= view.now_s]
        pool = set(view.free_gpus.tolist()).union(*(held[job] for job in ended))
        winners = self._winners(view, [*view.queue.tolist(), *ended], len(pool))
        gangs = {job: gpus for job, gpus in held.items() if job not in ended}
        gangs |= _placed(view, winners, held, pool)
        return equivalent_placements(view.topology, Plan(gangs), winners, pool, n, rng_of(view))

    def why(self, view: ClusterView, decision: Decision) -> str:
        """How far the job is from fair, by which GPUs are auctioned; and what it has won."""
        if not isinstance(decision, Start | Migrate | Preempt):
            return ""
        rho = f"T_shared / T_ideal {finish_time_fairness(view, [decision.job])[0]:.3g}"
        if isinstance(decision, Preempt):
            return f"its lease is over, and it has won no GPUs or others; {rho}"
        return f"won at the auction by {rho}; {Moment(view).place(decision.gpus)}"

    def _winners(self, view: ClusterView, bidders: list[int], gpus: int) -> list[int]:
        """Those bidders that get their gangs, the farthest from fair first.

        Paper: themis, auction, as in paper cassini, Sec. 4.2.
        """
        unfair = dict(zip(bidders, finish_time_fairness(view, bidders).tolist(), strict=True))
        winners = []
        for job in sorted(bidders, key=lambda job: (-unfair[job], view.arrived_s(job), job)):
            if view.gpus(job) <= gpus:
                gpus -= view.gpus(job)
                winners.append(job)
        return winners


def finish_time_fairness(view: ClusterView, jobs: list[int]) -> np.ndarray:
    """How far each job is from fair: 1 is fair, more is worse, float64 (jobs,).

    Paper: themis, finish-time fairness.
    """
    found = []
    for job in jobs:
        age_s = view.now_s - view.arrived_s(job)
        share = view.topology.num_gpus / max(1.0, view.active_mean(job))
        alone_s = view.isolated_s(job) * max(1.0, view.gpus(job) / share)
        found.append((age_s + view.remaining_s(job)) / alone_s)
    return np.array(found)


def _placed(
    view: ClusterView, winners: list[int], held: dict[int, tuple[int, ...]], pool: set[int]
) -> dict[int, tuple[int, ...]]:
    """GPUs of the pool for every winner, in their order."""
    topology, free = view.topology, set(pool)
    idle = set(view.free_gpus.tolist())
    stay = {}
    for job in winners:
        if job in held:
            better = place(topology, idle | set(held[job]), len(held[job]))
            if locality(topology, held[job]) <= locality(topology, better):
                stay[job] = held[job]
                free.difference_update(held[job])
    gangs = {}
    for job in winners:
        gangs[job] = stay.get(job) or place(topology, free, view.gpus(job))
        free.difference_update(gangs[job])
    return gangs


class LeastShared(Themis):
    """Of Themis' candidates the one with the fewest shared links; it looks at no phases and shifts nobody.

    Args:
        candidates: how many are looked at, >= 1. The rest as of Themis.
    """

    def __init__(self, candidates: int = CANDIDATES, lease: float = LEASE_S, preemption_cost: float = 0.0) -> None:
        super().__init__(lease, preemption_cost)
        self.name = "least-shared"
        self.most = checked_count("least-shared", candidates)

    def choose(self, view: ClusterView) -> Plan:
        """The first candidate with the fewest shared links."""
        return min(self.candidates(view, self.most), key=lambda plan: len(sharing(uses(view, plan))))

    def why(self, view: ClusterView, decision: Decision) -> str:
        """As of Themis, whose candidates these are."""
        words = super().why(view, decision)
        return f"{words}; of up to {self.most} candidates the one with the fewest shared links" if words else ""


def ideal(lease: float = LEASE_S, preemption_cost: float = 0.0) -> Themis:
    """Themis' placements where every job has the links to itself: "a dedicated cluster" for each (paper cassini)."""
    policy = Themis(lease, preemption_cost)
    policy.name, policy.dedicated = "ideal", True
    return policy


def checked_count(policy: str, candidates: Any) -> int:
    """A number of candidates; InputError where it is none."""
    if candidates < 1:
        raise InputError(f"policy {policy}: candidates = {candidates}: expected a whole number of at least 1")
    return int(candidates)
