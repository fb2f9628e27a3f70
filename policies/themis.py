"""Themis: GPUs are leased, and auctioned to the jobs that are farthest from fair; and what is built on its placements.

Source: Themis (Mahajan et al., NSDI'20) as paper cassini describes and runs it (Sec. 4.2, 5.1): jobs that are farthest
from finish-time fairness bid first; leases of 10 minutes; auctions when jobs come and go and when leases end; placement
that knows racks. How far a job is from fair is the metric of simulator/engine/metrics.py, for a job that is still
there:

    rho = T_shared / T_ideal = (age + isolated run time left) / time alone on a 1 / N share of the GPUs

N is the mean number of jobs since it came, itself among them; a share that is smaller than its gang slows it down in
proportion. Choices, where the papers leave some:
* The number of workers is "automatically tuned" (Sec. 5.1) at every auction: `fair_counts` says how many a job gets,
  `Exchange` which. Data-parallel jobs have 1 to `most` of them, or up to what they ask if that is more. A model that is
  split over its workers (DLRM, and GPTs under pipeline, tensor or hybrid parallelism) has what it asks or nothing. How
  fast a job is on other numbers network contention says (`workers=elastic` there).
* A lease is for a place, not for a number: at an auction everybody bids, but a job whose lease runs has at least one
  worker there, and those that it keeps stay where they are (Sec. 5.2).
* `workers=fixed`: gangs are whole. Bidders are the jobs that wait or whose lease has ended, for all free GPUs and those
  whose lease has ended; they win in order of rho as long as their gangs fit, and one that does not fit is passed.
  Winners are placed as close together as those GPUs lie, in order of rho; one that would not get closer ones keeps its
  own.
* Candidates (paper cassini, Sec. 4.2: "achieve the same finish-time fairness, but their worker placements are
  different"): `equal=fairness`: every job has as many workers, on other GPUs of the auction; `equal=locality`: each
  gang also spans as many racks and machines as in Themis' own placement (equivalent_placements.py).
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
from .gang_links import uses
from .joined_parameters import takes
from .planning import PlacementPolicy, rng_of
from .reasons.mid_instant import Moment

Workers = Literal["elastic", "fixed"]
Equal = Literal["fairness", "locality"]
MOST_WORKERS = 12  # paper cassini, Sec. 5.1: "between 1 to 12 GPUs"
LEASE_S = 600.0  # paper cassini, Sec. 5.1: "the bidding period (epoch) is set to 10 mins"
CANDIDATES = 10  # paper cassini, Sec. 5.1: "up to 10 placement candidates"


@dataclass(frozen=True)
class Auction:
    """The parameters of Themis, and of what is built on its placements.

    Attributes:
        lease: seconds, > 0.
        preemption_cost: seconds without progress when a job starts again, moves, or has other workers than before.
        workers: `elastic`: their number is tuned; `fixed`: a job has all that it asks, or none.
        equal: in what candidates are: `fairness`, how many workers everybody has; `locality`, that and how many racks
            and machines each gang spans.
        most: with workers=elastic, the most workers of a job, >= 1; of one that asks more, what it asks.

    Raises:
        InputError: a number out of range, or an unknown word.
    """

    lease: float = LEASE_S
    preemption_cost: float = 0.0
    workers: Workers = "elastic"
    equal: Equal = "fairness"
    most: int = MOST_WORKERS

    def __post_init__(self) -> None:
        if not 0.0 < self.lease < float("inf"):
            raise InputError(f"policy themis: lease = {self.lease:g}: expected seconds > 0")
        if self.most < 1:
            raise InputError(f"policy themis: most = {self.most}: expected a whole number of at least 1")
        choose(self.workers, get_args(Workers), "workers of policy themis")
        choose(self.equal, get_args(Equal), "equal of policy themis")


class Themis(PlacementPolicy):
    """See the module.

    Args:
        auction: fields of `Auction`.

    Paper: themis, auctions of leased GPUs, as in paper cassini, Sec. 4.2 and 5.1.
    """

    knows_run_times = True

    @takes(Auction)
    def __init__(self, **auction: Any) -> None:
        terms = Auction(**auction)
        super().__init__("themis", Rule("fifo", preemption_cost=(terms.preemption_cost,), lease=terms.lease))
        self.tunes_workers = terms.workers == "elastic"
        self.same_span = terms.equal == "locality"
        self.most = int(terms.most)

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n placements of this instant's auction.

        Raises:
            InputError: the number of workers is tuned, and jobs have what they ask here.
        """
        if self.tunes_workers:
            return self._exchange(view).plans(view.topology, n, rng_of(view), self.same_span)
        held = {job: tuple(view.gpus_of(job)) for job in view.running.tolist()}
        ended = [job for job in held if view.lease_end_s(job) <= view.now_s]
        pool = set(view.free_gpus.tolist()).union(*(held[job] for job in ended))
        winners = self._winners(view, [*view.queue.tolist(), *ended], len(pool))
        gangs = {job: gpus for job, gpus in held.items() if job not in ended}
        gangs |= _placed(view, winners, held, pool)
        return equivalent_placements(view.topology, Plan(gangs), winners, pool, n, rng_of(view), self.same_span)

    def _exchange(self, view: ClusterView) -> Exchange:
        """How many workers everybody gets now, and what there is.

        Paper: themis, auction, as in paper cassini, Sec. 4.2.
        """
        if not getattr(view.pace, "elastic", False):
            raise InputError(
                f"policy {self.name}: jobs have the workers that they ask in this simulator; expected network "
                "contention:workers=elastic, or the policy with workers=fixed"
            )
        held = {job: tuple(view.gpus_of(job)) for job in view.running.tolist()}
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
        """How far the job is from fair, by which GPUs are auctioned; and what it has won."""
        if not isinstance(decision, Start | Migrate | Preempt | Resize):
            return ""
        rho = f"T_shared / T_ideal {finish_time_fairness(view, [decision.job])[0]:.3g}"
        if isinstance(decision, Preempt):
            return f"its lease is over, and it has won no GPUs or others; {rho}"
        if isinstance(decision, Resize):
            asked = view.asked_gpus(decision.job)
            return f"its fair number of workers is {len(decision.gpus)} now, where it asks {asked}; {rho}"
        return f"won at the auction by {rho}; {Moment(view).place(decision.gpus)}"

    def _winners(self, view: ClusterView, bidders: list[int], gpus: int) -> list[int]:
        """Those bidders that get their gangs, the farthest from fair first.

        Paper: themis, auction, as in paper cassini, Sec. 4.2.
        """
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
    """How far each job is from fair: 1 is fair, more is worse, float64 (jobs,).

    Paper: themis, finish-time fairness.
    """
    found = []
    for job in jobs:
        age_s = view.now_s - view.arrived_s(job)
        share = view.topology.num_gpus / max(1.0, view.active_mean(job))
        alone_s = view.isolated_s(job) * max(1.0, view.asked_gpus(job) / share)
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
        candidates: how many are looked at, >= 1.
        auction: fields of `Auction`.
    """

    @takes(Auction)
    def __init__(self, candidates: int = CANDIDATES, **auction: Any) -> None:
        super().__init__(**auction)
        self.name = "least-shared"
        self.looked_at = checked_count("least-shared", candidates)

    def choose(self, view: ClusterView) -> Plan:
        """The first candidate with the fewest shared links."""
        return min(self.candidates(view, self.looked_at), key=lambda plan: len(sharing(uses(view, plan))))

    def why(self, view: ClusterView, decision: Decision) -> str:
        """As of Themis, whose candidates these are."""
        words = super().why(view, decision)
        return f"{words}; of up to {self.looked_at} candidates the one with the fewest shared links" if words else ""


@takes(Auction)
def ideal(**auction: Any) -> Themis:
    """Themis' placements where every job has the links to itself: "a dedicated cluster" for each (paper cassini)."""
    policy = Themis(**auction)
    policy.name, policy.dedicated = "ideal", True
    return policy


def checked_count(policy: str, candidates: Any) -> int:
    """A number of candidates; InputError where it is none."""
    if candidates < 1:
        raise InputError(f"policy {policy}: candidates = {candidates}: expected a whole number of at least 1")
    return int(candidates)


@dataclass(frozen=True)
class Bid:
    """What a job may have.

    Attributes:
        asked: workers that it asks, >= 1. least, most: it has none, or `least` to `most`; 1 <= least <= most.
        leased: workers that it holds under a lease that runs; 0: it waits, or its lease is over.
    """

    asked: int
    least: int
    most: int
    leased: int = 0


def fair_counts(bids: Sequence[Bid], gpus: int) -> list[int]:
    """Workers of each job: nobody could have one more but from somebody whose share then is as small, or smaller.

    First jobs get their `least`: those under a lease, then in order; one that does not fit gets nothing. Then one
    worker after the other goes to the smallest count / request, the share that finish-time fairness compares; ties go
    to the job that holds the worker under a lease, then to the one farther from fair. The papers give no rule.

    Args:
        bids: the farthest from fair first.
        gpus: how many there are, those that the jobs hold among them; enough for the `least` of all under a lease.

    Returns:
        Workers of each, in the order of the bids.

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
    """When a job that has `count` workers is next; the smallest first."""
    return count / bid.asked, count >= bid.leased, i


Gang = tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Which workers change hands; others stay, so gangs fragment (paper cassini, Sec. 4.1).

    A job that gives some up keeps those in the racks, then on the machines, of which it holds most; one that gets more
    takes free ones on its machines, then in its racks, then as close together as others lie; one that starts is placed
    as any gang.

    Attributes:
        counts: job -> GPUs, > 0, in the order in which jobs choose; there must be as many. Who runs and is not here
            stops.
        held: the GPUs of every running job. leased: those whose lease runs, who keep all that they are to have.
        free: GPUs that nobody holds.
    """

    counts: Mapping[int, int]
    held: Mapping[int, Gang]
    leased: Collection[int]
    free: Collection[int]

    def plan(self, topology: Topology) -> Plan:
        """The placement in which as few workers change as can be."""
        return self._plan(topology, None)

    def plans(self, topology: Topology, n: int, rng: np.random.Generator, same_span: bool) -> list[Plan]:
        """Up to n placements with these counts, all distinct: that one, then others.

        In the others any workers are given up, jobs choose in any order, and those whose lease is over are anywhere.

        Args:
            n: at least 1.
            rng: draws them.
            same_span: only those in which every gang spans as many racks and machines as in the first.
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
        """Whether any job has other GPUs than now, or could have."""
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
    """`count` of a job's GPUs, ascending: those that lie closest together; any of them, as `rng` draws."""
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
    """`count` of the free GPUs for a job that has `own`: the nearest; of those that are as near any, as `rng` draws."""
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
