"""Themis: GPUs are leased, and auctioned to the jobs that are farthest from fair; LeastShared and ideal build on it.

Source: Themis (Mahajan et al., NSDI'20) as paper cassini describes and runs it (Sec. 4.2, 5.1). Finish-time fairness of
a job that is still there:

    rho = T_shared / T_ideal = (age + isolated run time left) / time alone on a 1 / N share of the GPUs

N is the mean number of jobs since its arrival, itself included; a share smaller than its gang slows it in proportion.
Choices where the papers are silent:
* The number of workers is "automatically tuned" (Sec. 5.1) at every auction: `fair_counts` says how many, `Exchange`
  which. Data-parallel jobs have 1 to `most`, or up to their request if larger. A model split over its workers (DLRM;
  GPTs under pipeline, tensor or hybrid parallelism) has its request or none. `contention:workers=elastic` gives speeds.
* A lease is for a place, not for a number: all jobs bid, but a job under a lease keeps at least one worker, and the
  workers that it keeps stay where they are (Sec. 5.2).
* `workers=fixed`: gangs are whole. Waiting jobs and jobs whose lease has ended bid for free GPUs and those of ended
  leases. They win in order of rho while their gangs fit; a gang that does not fit is passed. Winners are placed in that
  order, as close together as possible; one that would not be closer keeps its GPUs.
* Candidates (paper cassini, Sec. 4.2: "achieve the same finish-time fairness, but their worker placements are
  different"): `equal=fairness`: each job has as many workers; `equal=locality`: each gang also spans as many racks and
  machines as in Themis' own placement (equivalent_placements.py).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ..simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ..simulator.base.errors import InputError
from ..simulator.base.names import choose
from ..simulator.cluster.routes import sharing
from ..simulator.cluster.topology import Topology
from ..simulator.engine.plans import Plan
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import Rule
from .equivalent_placements import TRIES, equivalent_placements, locality, place
from .gang_fairness import write_fairness
from .gang_links import uses
from .joined_parameters import takes
from .planning import PlacementPolicy, rng_of
from .reasons.mid_instant import MidInstant

Workers = Literal["elastic", "fixed"]
Equal = Literal["fairness", "locality"]
MOST_WORKERS = 12  # paper cassini, Sec. 5.1: "between 1 to 12 GPUs"
LEASE_S = 600.0  # paper cassini, Sec. 5.1: "the bidding period (epoch) is set to 10 mins"
CANDIDATES = 10  # paper cassini, Sec. 5.1: "up to 10 placement candidates"


@dataclass(frozen=True)
class Auction:
    """The parameters of Themis, and of what is built on it. Raises InputError out of range or for unknown words."""

    lease: float = LEASE_S  # seconds, > 0
    preemption_cost: float = 0.0  # seconds without progress when a job starts again, moves, or changes workers
    workers: Workers = "elastic"  # tuned; `fixed`: a job has its request, or none
    equal: Equal = "fairness"  # of candidates: the workers of each job; `locality`: also racks and machines per gang
    most: int = MOST_WORKERS  # with workers=elastic, the most workers of a job, >= 1; a larger request counts instead

    def __post_init__(self) -> None:
        if not 0.0 < self.lease < float("inf"):
            raise InputError(f"policy themis: lease = {self.lease:g}: expected seconds > 0")
        if self.most < 1:
            raise InputError(f"policy themis: most = {self.most}: expected a whole number of at least 1")
        choose(self.workers, get_args(Workers), "workers of policy themis")
        choose(self.equal, get_args(Equal), "equal of policy themis")


class Themis(PlacementPolicy):
    """See the module. Paper: themis, auctions of leased GPUs, as in paper cassini, Sec. 4.2 and 5.1."""

    knows_run_times = True

    @takes(Auction)
    def __init__(self, **auction: Any) -> None:
        terms = Auction(**auction)
        super().__init__("themis", Rule("fifo", preemption_cost=(terms.preemption_cost,), lease=terms.lease))
        self.tunes_workers = terms.workers == "elastic"
        self.same_span = terms.equal == "locality"
        self.most = int(terms.most)

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n placements of this auction. Raises InputError if workers are tuned and jobs are not elastic."""
        if self.tunes_workers:
            return self._exchange(view).plans(view.topology, n, rng_of(view), self.same_span)
        held = view.gangs
        ended = [job for job in held if view.lease_end_s(job) <= view.now_s]
        pool = set(view.free_gpus.tolist()).union(*(held[job] for job in ended))
        winners = self._winners(view, [*view.queue.tolist(), *ended], len(pool))
        gangs = {job: gpus for job, gpus in held.items() if job not in ended}
        gangs |= _placed(view, winners, held, pool)
        plan = Plan(gangs)
        if not winners:
            return [plan]
        return equivalent_placements(view.topology, plan, winners, pool, n, rng_of(view), self.same_span)

    def _exchange(self, view: ClusterView) -> Exchange:
        """The workers that jobs get now. Paper: themis, auction, as in paper cassini, Sec. 4.2."""
        if not getattr(view.rate_provider, "elastic", False):
            raise InputError(
                f"policy {self.name}: jobs have the workers that they ask in this simulator; expected network "
                "contention:workers=elastic, or the policy with workers=fixed"
            )
        held = view.gangs
        leased = {job for job in held if view.lease_end_s(job) > view.now_s}
        free = view.free_gpus.tolist()
        jobs = _farthest_from_fair_first(view, [*view.queue.tolist(), *held])
        bids = [self._bid(view, job, len(held[job]) if job in leased else 0) for job in jobs]
        counts = fair_counts(bids, len(set(free).union(*held.values())))
        won = {job: count for job, count in zip(jobs, counts, strict=True) if count}
        return Exchange(won, held, leased, free)

    def _bid(self, view: ClusterView, job: int, leased: int) -> Bid:
        asked = view.asked_gpus(job)
        if not view.may_resize(job):
            return Bid(asked, asked, asked, leased)
        return Bid(asked, 1, max(asked, self.most), leased)

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The job's finish-time fairness, and its GPUs."""
        if not isinstance(decision, Start | Migrate | Preempt | Resize):
            return ""
        rho = f"T_shared / T_ideal {finish_time_fairness(view, [decision.job])[0]:.3g}"
        if isinstance(decision, Preempt):
            return f"its lease is over, and it has won no GPUs or others; {rho}"
        if isinstance(decision, Resize):
            asked = view.asked_gpus(decision.job)
            return f"its fair number of workers is {len(decision.gpus)} now, where it asks {asked}; {rho}"
        return f"won at the auction by {rho}; {MidInstant(view).place(decision.gpus)}"

    def _winners(self, view: ClusterView, bidders: list[int], gpus: int) -> list[int]:
        """Bidders that get their gangs, in order. Paper: themis, auction, as in paper cassini, Sec. 4.2."""
        winners = []
        for job in _farthest_from_fair_first(view, bidders):
            if view.gpus(job) <= gpus:
                gpus -= view.gpus(job)
                winners.append(job)
        return winners


def _farthest_from_fair_first(view: ClusterView, jobs: list[int]) -> list[int]:
    unfair = dict(zip(jobs, finish_time_fairness(view, jobs).tolist(), strict=True))
    return sorted(jobs, key=lambda job: (-unfair[job], view.arrived_s(job), job))


def finish_time_fairness(view: ClusterView, jobs: list[int]) -> np.ndarray:
    """Rho of each job, float64 (jobs,): 1 is fair, more is worse. Paper: themis, finish-time fairness."""
    if jobs:
        view.estimates.expect_known("a policy that asks for isolated_s or remaining_s")
    listed, found = np.array(jobs, np.int64), np.empty(len(jobs))
    view.read_alike(write_fairness, listed, view.workload.gpus[listed].astype(np.int64), view.topology.num_gpus, found)
    return found


def _placed(
    view: ClusterView, winners: list[int], held: dict[int, tuple[int, ...]], pool: set[int]
) -> dict[int, tuple[int, ...]]:
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
    """Of Themis' `candidates` >= 1 the one with the fewest shared links; it ignores phases and shifts no job."""

    @takes(Auction)
    def __init__(self, candidates: int = CANDIDATES, **auction: Any) -> None:
        super().__init__(**auction)
        self.name = "least-shared"
        self.looked_at = checked_count("least-shared", candidates)

    def choose(self, view: ClusterView) -> Plan:
        """The first candidate with the fewest shared links."""
        return min(self.candidates(view, self.looked_at), key=lambda plan: len(sharing(uses(view, plan))))

    def why(self, view: ClusterView, decision: Decision) -> str:
        """As Themis."""
        words = super().why(view, decision)
        return f"{words}; of up to {self.looked_at} candidates the one with the fewest shared links" if words else ""


@takes(Auction)
def ideal(**auction: Any) -> Themis:
    """Themis' placements where each job has its links alone: "a dedicated cluster" for each (paper cassini)."""
    policy = Themis(**auction)
    policy.name, policy.dedicated = "ideal", True
    return policy


def checked_count(policy: str, candidates: Any) -> int:
    """A number of candidates; raises InputError below 1."""
    if candidates < 1:
        raise InputError(f"policy {policy}: candidates = {candidates}: expected a whole number of at least 1")
    return int(candidates)


@dataclass(frozen=True)
class Bid:
    """Workers that a job may have: none, or `least` to `most` (1 <= least <= most)."""

    asked: int  # >= 1
    least: int
    most: int
    leased: int = 0  # under a running lease; 0: it waits, or its lease has ended


def fair_counts(bids: Sequence[Bid], gpus: int) -> list[int]:
    """Workers of each job: none can get one more except from a job whose share is then as small, or smaller.

    First jobs get their `least`, leased ones first, then in order; one that does not fit gets none. Then single workers
    go to the smallest count / request, the share that finish-time fairness compares; ties: to the lease holder, then to
    the job farther from fair. The papers give no rule.

    `bids`: the farthest from fair first; `gpus`: all, held ones included, enough for the `least` of all leased jobs.
    Paper: themis, number of workers, as in paper cassini, Sec. 4.2 and 5.1.
    """
    counts = [0] * len(bids)
    for i in sorted(range(len(bids)), key=lambda i: bids[i].leased == 0):
        if bids[i].least <= gpus:
            counts[i] = bids[i].least
            gpus -= bids[i].least
    heap = [_turn(bids[i], i, count) for i, count in enumerate(counts) if count]
    heapq.heapify(heap)
    while gpus > 0 and heap:
        _, _, i = heapq.heappop(heap)
        if counts[i] < bids[i].most:
            counts[i] += 1
            gpus -= 1
            heapq.heappush(heap, _turn(bids[i], i, counts[i]))
    return counts


def _turn(bid: Bid, i: int, count: int) -> tuple[float, bool, int]:
    """Key of a job that has `count` workers; the smallest is served next."""
    return count / bid.asked, count >= bid.leased, i


Gang = tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Workers that change hands; others stay, so gangs fragment (paper cassini, Sec. 4.1).

    A job that shrinks keeps the GPUs in the racks, then on the machines, where it has most. A job that grows takes free
    GPUs on its machines, then in its racks, then as close together as possible. A new job is placed as any gang.
    """

    counts: Mapping[int, int]  # job -> GPUs, > 0, in the order of choice; a running job that is missing stops
    held: Mapping[int, Gang]  # of every running job
    leased: Collection[int]  # jobs under a lease, which keep all GPUs that they are to have
    free: Collection[int]

    def plan(self, topology: Topology) -> Plan:
        """The placement in which the fewest workers change."""
        return self._plan(topology, None)

    def plans(self, topology: Topology, n: int, rng: np.random.Generator, same_span: bool) -> list[Plan]:
        """Up to n distinct placements with these counts: `plan`, then random ones.

        In these any workers are given up, jobs choose in any order, and jobs whose lease has ended are anywhere.
        `same_span`: every gang spans as many racks and machines as in the first.
        """
        first = self.plan(topology)
        spans = {job: locality(topology, gpus) for job, gpus in first.gangs.items()}
        found = {first.placement: first}
        for _ in range(TRIES * (n - 1) if self._has_choice else 0):
            if len(found) == n:
                break
            other = self._plan(topology, rng)
            if not same_span or all(locality(topology, gpus) == spans[job] for job, gpus in other.gangs.items()):
                found.setdefault(other.placement, other)
        return list(found.values())

    @property
    def _has_choice(self) -> bool:
        return any(job not in self.leased or count != len(self.held[job]) for job, count in self.counts.items())

    def _plan(self, topology: Topology, rng: np.random.Generator | None) -> Plan:
        gangs: dict[int, Gang] = {}
        for job, own in self.held.items():
            count = min(self.counts.get(job, 0), len(own))
            gangs[job] = () if rng is not None and job not in self.leased else kept(topology, own, count, rng)
        free = set(self.free).union(*self.held.values()).difference(*gangs.values())
        order: Sequence[int] = list(self.counts)
        for job in order if rng is None else [order[index] for index in rng.permutation(len(order))]:
            own = gangs.get(job, ())
            gangs[job] = tuple(sorted((*own, *taken(topology, own, free, self.counts[job] - len(own), rng))))
            free.difference_update(gangs[job])
        starts = [job for job in self.counts if job not in self.held]
        return Plan({job: gangs[job] for job in (*self.held, *starts) if job in self.counts})


def kept(topology: Topology, own: Gang, count: int, rng: np.random.Generator | None = None) -> Gang:
    """`count` of a job's GPUs, ascending: those closest together, or with `rng` any."""
    if count == len(own):
        return tuple(sorted(own))
    if rng is not None:
        return tuple(sorted(rng.choice(own, count, replace=False).tolist()))
    machine = topology.gpu_machine[list(own)].tolist()
    rack = topology.machine_rack[machine].tolist()
    in_rack, on_machine = Counter(rack), Counter(machine)
    places = zip(rack, machine, own, strict=True)
    order = sorted(places, key=lambda at: (-in_rack[at[0]], at[0], -on_machine[at[1]], at))
    return tuple(sorted(gpu for _, _, gpu in order[:count]))


def taken(
    topology: Topology, own: Gang, free: Collection[int], count: int, rng: np.random.Generator | None = None
) -> Gang:
    """`count` free GPUs for a job that has `own`: the nearest; ties by index, or drawn by `rng`."""
    if count == 0:
        return ()
    if not own:
        return place(topology, free, count, rng)
    machine = topology.gpu_machine[list(own)].tolist()
    on_machine, in_rack = Counter(machine), Counter(topology.machine_rack[machine].tolist())
    near = []
    gpus = sorted(free)
    for gpu in gpus if rng is None else rng.permutation(gpus).tolist():
        there = int(topology.gpu_machine[gpu])
        rack = int(topology.machine_rack[there])
        if rack in in_rack:
            near.append(((-on_machine[there], -in_rack[rack]), gpu))
    first = [gpu for _, gpu in sorted(near, key=lambda at: at[0])[:count]]
    rest = count - len(first)
    return (*first, *(place(topology, set(free).difference(first), rest, rng) if rest else ()))
