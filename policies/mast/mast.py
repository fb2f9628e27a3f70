"""MAST, the fast path of paper mast: passes over the queue; and the other cells of its Table 1.

At every pass GMS ranks the pending workloads; in this order each is offered to the regions that have its tables and
could hold it, and gets the best plan of RMS (place_search.py), or is passed. Where workloads were preempted, the pass
is repeated at the same instant, with them in the queue; at most six times, as rounds of copies before them
(copies_on_demand.py). Sec. 5.4 gives the duration of a pass, 34 s, not its period. RMS places only in a pass, where the
paper's "constantly checks the job-queue database": `scan_s=0` is nearest to that.

At the beginning of an instant `decide` depends on the record alone, but for regions to which workloads are bound early;
within one the rest of the pass is kept.

Early binding (`Binding`): a workload goes to a region, or to a cluster, when it arrives (Sec. 4.1, 5.6): "to the region
with the lowest demand over supply rate of the required GPU type", that of the first part. The demand is our choice:
`now` is that of unfinished workloads bound there, `day` that of the slow path (Expression 2). Candidates have the
tables and could hold the workload. A workload whose tables are nowhere together is bound once they are; one whose
region has lost them for good, or is down, is bound anew. With `bind=any` candidates are all that could hold the
workload and its tables, and it waits there for copies. A cluster's demand is that of the first parts bound to it.

The schedulers: `mast`, `federated`, `global`, and `scope`, any valid cell of Table 1:

| queue | allocation: cluster | region | global |
| --- | --- | --- | --- |
| cluster | (1) | - | - |
| region | (2) | (5), `federated` | - |
| global | (3) | (6), `mast` | (9), `global` |

All use the priorities, credits and quotas of GMS. Allocation in a cluster: each cluster decides for itself, the least
loaded (by workloads of the same or a higher priority) first. In a region, RMS takes the best cluster. Global allocation
places several workloads jointly. The other parts of a workload go where RMS puts them in the same region.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.decisions import TABLE_DECISIONS, Decision, Preempt, Start
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from ...simulator.warehouse.demands import Demands, packs
from ...simulator.warehouse.warehouse import type_shares
from ..base import Policy
from ..planning import PlanningPolicy, is_round
from ..two_paths import SCAN_S, SLOW, TwoPathPolicy
from . import auction, global_scheduler
from . import region_units as kernels
from .compiled_passes import MOST_PASSES, MOST_ROUNDS
from .copies_on_demand import on_demand
from .global_scheduler import DAY_S, write_ranking
from .hardware import Hardware
from .mast_record import empty_record
from .ordering import Ordering
from .regional_scheduler import write_regions
from .type_choices import TypeChoices

if TYPE_CHECKING:
    from ..tetris.tetris import DataPolicy

NOWHERE = -1
SETTINGS = ("to_cluster", "daily", "blind", "_run")  # attributes that do not belong to a run


class Binding:
    """Binds each workload once. Paper: mast, Sec. 4.1 and 5.6.

    Args:
        to_cluster: bind the first part to a cluster of the region; RMS places the others in the region.
        daily: the demand is that of a day, not of now.
        blind: bind to any region that could hold the workload and its tables, wherever these lie.
    """

    def __init__(self, to_cluster: bool, daily: bool = False, blind: bool = False) -> None:
        self.to_cluster, self.daily, self.blind = to_cluster, daily, blind
        self._run: Hashable = None

    def bind(self, view: ClusterView, m: np.void, pending: int) -> None:
        """Leave in the queue's sets of regions the one of each workload, if it can run there now.

        `m`: fields by item (mast_record.py).
        """
        if self._run != view.run:
            self._run = view.run
            self._begin(view)
        jobs, regions = m["queued"][:pending], m["bits"]
        can_run = regions[jobs]
        bits = can_run | self._may_go[jobs] & view.record["up_regions"]
        bound = self._region[jobs]
        lost = (bound != NOWHERE) & (bits >> np.maximum(bound, 0) & 1 == 0)
        free = np.flatnonzero((bits != 0) & (lost | (bound == NOWHERE)))
        since_s = self._since_s(view, jobs[free])
        for place in np.lexsort((jobs[free], since_s)).tolist():
            self._bind(view, int(jobs[free[place]]), int(bits[free[place]]), float(since_s[place]))
        bound = self._region[jobs]
        regions[jobs] = np.where(bound == NOWHERE, 0, can_run & 1 << np.maximum(bound, 0))
        if self.to_cluster:
            m["only"][jobs] = self._cluster[jobs]

    def regions(self, jobs: np.ndarray) -> dict[int, int]:
        """The regions of bound workloads."""
        found = zip(jobs.tolist(), self._region[jobs].tolist(), strict=True)
        return {job: region for job, region in found if region != NOWHERE}

    def memory(self, simulator: Any) -> dict[str, Any] | None:
        """The bindings of the present run; None: there are none yet."""
        if self._run != simulator.view.run:
            return None
        return deepcopy({name: value for name, value in vars(self).items() if name not in SETTINGS})

    def recall(self, simulator: Any, memory: dict[str, Any] | None) -> None:
        """Continue a run from `memory` of it."""
        self._run = None
        if memory is not None:
            vars(self).update(deepcopy(memory))
            self._run = simulator.view.run

    def _begin(self, view: ClusterView) -> None:
        """Bind only workloads that run, or have run, to their region."""
        demands, topology = view.demands, view.topology
        jobs, clusters, types = len(view.workload), topology.num_clusters, len(demands.gpu_types)
        self._region = np.full(jobs, NOWHERE, np.int64)
        self._cluster = np.full(jobs, NOWHERE, np.int64)
        self._choices = TypeChoices.of(view)
        self._kind, self._need, self._accepts = demands.part_type.copy(), demands.part_units, demands.accepts
        self._cluster_kind = demands.cluster_type(topology)
        self._cluster_region = topology.cluster_region
        self._units = np.bincount(topology.rack_cluster[topology.machine_rack], topology.machine_gpus, clusters)
        self._supply = np.zeros((topology.num_regions, types))
        known = self._cluster_kind >= 0
        np.add.at(self._supply, (self._cluster_region[known], self._cluster_kind[known]), self._units[known])
        self._demand = np.zeros_like(self._supply)
        self._day = hours_of_a_day(demands, self._supply) if self.daily else None
        self._may_go = could_hold(view) if self.blind else np.zeros(jobs, np.int64)
        self._asked = np.zeros(clusters)
        self._bound = np.zeros(0, np.int64)  # unfinished ones, as of the last look
        s = view.record
        for job in range(int(s["next_arrival"])):
            region = int(s["job_region"][job] if s["job_region"][job] >= 0 else s["last_region"][job])
            if s["starts"][job] > 0 and region >= 0:
                self._note(job, region, int(s["part_cluster"][job, 0]))

    def _note(self, job: int, region: int, cluster: int) -> None:
        self._region[job], self._cluster[job] = region, cluster
        self._kind[job, 0] = self._cluster_kind[cluster]
        there = self._kind[job] >= 0
        np.add.at(self._demand[region], self._kind[job][there], self._need[job][there])
        self._asked[cluster] += self._need[job, 0]
        self._bound = np.append(self._bound, job)

    def _forget(self, jobs: np.ndarray) -> None:
        for job in jobs.tolist():
            there = self._kind[job] >= 0
            np.subtract.at(self._demand[self._region[job]], self._kind[job][there], self._need[job][there])
            self._asked[self._cluster[job]] -= self._need[job, 0]
        self._bound = self._bound[~np.isin(self._bound, jobs)]

    def _since_s(self, view: ClusterView, jobs: np.ndarray) -> np.ndarray:
        """When each could be bound: at its arrival, with its data, or now that its region is lost."""
        s = view.record
        since_s = s["arrival_s"][jobs] + (0.0 if self.blind else s["data_wait_s"][jobs])
        return np.where(self._region[jobs] != NOWHERE, view.now_s, since_s)

    def _bind(self, view: ClusterView, job: int, bits: int, since_s: float) -> None:
        if self._region[job] != NOWHERE:
            self._forget(np.array([job]))
        finish_s = view.record["finish_s"][self._bound]
        self._forget(self._bound[(finish_s >= 0.0) & (finish_s <= since_s)])
        kinds = self._choices.first_types(job)
        clusters = np.concatenate([self._clusters(job, kind, bits) for kind in kinds])
        load = self._asked[clusters] / self._units[clusters]
        if not self.to_cluster:
            demand = self._demand if self._day is None else self._day
            rate = demand / np.maximum(self._supply, 1.0)
            load = rate[self._cluster_region[clusters], self._cluster_kind[clusters]]
        cluster = int(clusters[np.argmin(load)])
        self._note(job, int(self._cluster_region[cluster]), cluster)

    def _clusters(self, job: int, kind: int, bits: int) -> np.ndarray:
        """Clusters of these regions for the first part on a type, with room in the region for others of it."""
        units = self._need[job].tolist()
        rest = [units[part] for part in range(1, len(units)) if self._accepts[job, part] == 1 << kind]
        alike = self._cluster_kind == kind
        able = np.flatnonzero(alike & (self._units >= units[0]) & (bits >> self._cluster_region & 1 == 1))
        if not rest:
            return able
        found = []
        for cluster in able.tolist():
            there = np.flatnonzero(alike & (self._cluster_region == self._cluster_region[cluster]))
            if packs(rest, np.where(there == cluster, self._units[there] - units[0], self._units[there]).tolist()):
                found.append(cluster)
        return np.array(found, np.int64)


def hours_of_a_day(demands: Demands, supply: np.ndarray) -> np.ndarray:
    """Hours a day of each type of units at each region, float64 (regions, types), of training jobs known to recur at 0.

    A job counts at the home of its first table, with GPUs of the types that it accepts by their shares there
    (`type_shares`); its CPU-hours count for CPU machines, the last type. `supply`: units, (regions, types).
    """
    jobs, found = demands.known(0.0), np.zeros(supply.shape)
    share = type_shares(jobs.type_sets, supply[:, :-1].astype(np.int64))
    known = np.flatnonzero(jobs.training & jobs.recurring)
    home = demands.tables.home[jobs.table[jobs.first[known]]]
    np.add.at(found[:, :-1], home, jobs.gpu_hours[known, None] * share[jobs.type_sets.row[known], home])
    np.add.at(found[:, -1], home, jobs.cpu_hours[known])
    return found


def could_hold(view: ClusterView) -> np.ndarray:
    """Sets of regions with the hardware of each workload and storage for all its tables, int64 (jobs,)."""
    demands, jobs = view.demands, len(view.workload)
    size = np.zeros(jobs, np.int64)
    np.add.at(size, demands.owner, demands.tables.size_bytes[demands.table])
    fits = size[:, None] <= view.storage_bytes
    return view.record["job_hosts"][:jobs] & (fits << np.arange(fits.shape[1])).sum(axis=1)


@dataclass(frozen=True)
class Weights:
    """Of the credit; see `write_ranking`."""

    age: float = 1.0
    age_cap_s: float = DAY_S
    fair: float = 1.0
    window_s: float = DAY_S


class WorkloadPassPolicy(PlanningPolicy):
    """See the module. Paper: mast, Sec. 4.1.

    Args:
        name: in tables and logs.
        binding: binds workloads when they arrive; None: the queue is global.
        first_fit: clusters decide by themselves, the least loaded first; else a region's best plan is taken.
        joint: workloads placed jointly, >= 1: one without a place may have that of one of the last joint - 1 placed
            before it without preemption, if that finds another one so.
        scan_s: seconds between passes, >= 0; 0: at every event.
        weights: of the credit.
        use_cache: RMS keeps its negative cache; never where run times decide stops, as refusals then differ.
        ordering: order of service, and of preemption.

    Attributes:
        asked, spared: plans asked of regions or clusters, and those that the negative cache answered, over all passes.
    """

    clock: Rule

    def __init__(
        self,
        name: str,
        *,
        binding: Binding | None = None,
        first_fit: bool = False,
        joint: int = 1,
        scan_s: float = SCAN_S,
        weights: Weights | None = None,
        use_cache: bool = True,
        ordering: Ordering | None = None,
    ) -> None:
        if joint < 1 or joint != int(joint):
            raise InputError(f"policy {name}: joint = {joint}: expected a whole number of at least 1")
        if not 0.0 <= scan_s < math.inf:
            raise InputError(f"policy {name}: scan_s = {scan_s:g}: expected a finite number of seconds, 0 or more")
        super().__init__(name, Rule("fifo", round=scan_s))
        self.weights, self.ordering = weights or Weights(), ordering or Ordering()
        self.knows_run_times = self.ordering.by_time
        use_cache = use_cache and self.ordering.preempts != "any"
        self.asked = self.spared = 0
        self._binding = binding
        self._option = (auction.FIRST_FIT if first_fit else auction.EXHAUSTIVE, int(joint), int(use_cache))
        self._terms_seen: tuple[Any, ...] | None = None
        self._solvers: np.recarray  # mast_record.py, of one record:
        self._record: np.void  # its fields by item
        self._passes = self._rounds = self._pending = 0
        self._again = False

    @property
    def levels(self) -> np.ndarray:
        """The priority at the last pass, int64 (jobs,), of workloads that ran or were pending then."""
        return np.array(self._record["level"][: self._jobs])

    @property
    def pending(self) -> int:
        """Number of pending workloads in the last pass."""
        return self._pending

    @property
    def held(self) -> np.ndarray:
        """Units held in each cluster after the last pass, int64 (clusters, 7), highest priority last."""
        return np.array(self._record["held"][: int(self._record["n_clusters"])])

    def is_due(self, view: ClusterView) -> bool:
        """Whether this is an instant of a pass."""
        return self.clock.round == 0.0 or is_round(view.now_s, self.clock.round)

    def plan(self, view: ClusterView) -> list[Decision]:
        """Decisions about missing tables, or all of one pass."""
        self._passes = self._rounds = 0
        return self._next_pass(view)

    def then(self, view: ClusterView) -> list[Decision]:
        """The pass again, after preemptions or copies."""
        is_more = self.is_due(view) and self._again and self._passes < MOST_PASSES
        return self._next_pass(view) if is_more else []

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The place of a workload in the queue: <priority, credit>; of a table why it is copied."""
        if isinstance(decision, TABLE_DECISIONS):
            blind = self._binding is not None and self._binding.blind
            return f"a waiting workload finds all its tables in no region{' that it may go to' if blind else ''}"
        m = self._record
        if isinstance(decision, Preempt) and self.ordering.preempts == "any":
            return "makes way for a workload with less time left x GPUs, or of a higher priority"
        if isinstance(decision, Preempt):
            return f"makes way for a workload of higher priority than its {int(m['level'][decision.job])}"
        if not isinstance(decision, Start):
            return ""
        order = m["order"][: self._pending].tolist()
        level, credit = int(m["level"][decision.job]), float(m["credit"][decision.job])
        words = f"{-credit:.3g} s in the order" if self.ordering.by_time else f"priority {level}, credit {credit:.3g}"
        if decision.job not in order:
            return words
        coming = {one.job for one in self._left if isinstance(one, Start)}
        waiting = set(view.queue.tolist()) - coming
        passed = sum(job in waiting for job in order[: order.index(decision.job)])
        place = f"; number {order.index(decision.job) + 1} of {len(order)}"
        return f"{words}{place}" + (f", of which {passed} before it fit nowhere" if passed else "")

    def memory(self, simulator: Any) -> Any:
        """The bindings of the present run, for `recall`; None: there are none."""
        return None if self._binding is None else self._binding.memory(simulator)

    def recall(self, simulator: Any, memory: Any) -> None:
        """Continue a run from `memory` of it."""
        self.forget_plan()
        if self._binding is not None:
            self._binding.recall(simulator, memory)

    @property
    def is_compiled(self) -> bool:
        """Whether `compiled_passes.play_instant` makes the same passes."""
        return type(self) is WorkloadPassPolicy and self._binding is None and self._option[auction.JOINT] == 1

    def _fit_to_run(self, view: ClusterView) -> None:
        if not view.has_terms(self._terms_seen):
            self._terms_seen = view.terms
            hardware, self._jobs = Hardware.of(view.topology, view.demands), len(view.workload)
            self._solvers, self._record = empty_record(hardware, self._jobs)
            self.write(view, self._solvers, self._record)

    def write(self, view: ClusterView, solvers: np.recarray, m: np.void) -> None:
        """Modify the only record of `solvers`, `m` by item: for the workload and the topology of a run."""
        demands, weights, ordering, jobs = view.demands, self.weights, self.ordering, len(view.workload)
        write_regions(solvers, m, Hardware.of(view.topology, demands), jobs, TypeChoices.of(view))
        write_ranking(m, demands, weights.age, weights.age_cap_s, weights.fair, weights.window_s, ordering)
        m["option"] = *self._option, 0, -1, ordering.stops, ordering.levels
        m["size_weight"][:jobs] = ordering.sizes(demands, ordering.exponent)
        m["least_ratio"], m["follows"] = ordering.theta, 0

    def _next_pass(self, view: ClusterView) -> list[Decision]:
        """Decisions about missing tables; without any, all of one pass."""
        self._fit_to_run(view)
        decisions: list[Decision] = []
        lacking = self._open(view)
        bits, bound = self._record["bits"], None
        jobs = self._record["queued"][: self._pending]
        if self._binding is not None and self._binding.blind:
            self._binding.bind(view, self._record, self._pending)
            bound = self._binding.regions(jobs)
            lacking = int((bits[jobs] == 0).sum())
        if lacking and self._rounds < MOST_ROUNDS:
            decisions += on_demand(view, np.sort(jobs[bits[jobs] == 0]).tolist(), bound)
        self._again = bool(decisions)
        if decisions:
            self._rounds += 1
            return decisions
        self._passes += 1
        return self._place(view)

    def _open(self, view: ClusterView) -> int:
        """Rank the pending workloads. Returns the number that lack tables."""
        self._pending = view.read_by(global_scheduler.scan, self._solvers)
        return int(view.read_by(auction.open_queue, self._solvers, self._pending))

    def _place(self, view: ClusterView) -> list[Decision]:
        if self._pending == 0:
            return []
        view.read_by(kernels.follow, self._solvers)
        kernels.clear_cache(self._solvers)
        if self._binding is not None:
            self._binding.bind(view, self._record, self._pending)
        decisions = self._placed(view.now_s, self._pending)
        count = self._record["count"]
        self.asked += int(count[kernels.ASKED])
        self.spared += int(count[kernels.SPARED])
        return decisions

    def _placed(self, now_s: float, pending: int) -> list[Decision]:
        """Starts of this pass, each after the stops that it needs."""
        m = self._record
        queued, option, count, leaving = m["queued"], m["option"], m["count"], m["leaving"]
        placed: dict[int, list[Decision]] = {}
        at = auction.place_next(self._solvers, 0, now_s)
        while at < pending:
            job, moved = int(queued[at]), int(option[auction.MOVED])
            before: list[Decision] = []
            for leaver in leaving[: count[kernels.LEAVES]].tolist():
                # One placed in this very pass does not start; workloads that left for it are stopped all the same.
                gone = placed.pop(leaver, None)
                before += [Preempt(leaver)] if gone is None else gone[:-1]
            self._again |= bool(before)
            if moved >= 0:
                before += placed.pop(moved)[:-1]
                placed[moved] = [*before, self._start(moved)]
                before = []
            placed[job] = [*before, self._start(job)]
            at = auction.place_next(self._solvers, at + 1, now_s)
        return [decision for decisions in placed.values() for decision in decisions]

    def _start(self, job: int) -> Start:
        return Start(job, self._record["taken"][: auction.list_units(self._solvers, job)].tolist())


SCOPES = ("cluster", "region", "global")
DEMANDS, BOUND_BY = ("now", "day"), ("data", "any")
JOINT = 8  # our choice; the paper gives no number


def scoped_scheduler(
    name: str,
    queue: str = "global",
    allocation: str = "region",
    slow: str = SLOW,
    scan_s: float = SCAN_S,
    joint: int | None = None,
    demand: str | None = None,
    bind: str | None = None,
    age_weight: float = 1.0,
    age_cap_s: float = DAY_S,
    fair_weight: float = 1.0,
    window_s: float = DAY_S,
    cache: bool = True,
) -> TwoPathPolicy:
    """A cell of Table 1. Raises InputError for a cell that the paper calls invalid, or a value out of range.

    Args:
        name: in tables and logs.
        queue, allocation: `cluster`, `region` or `global`; the allocation's scope may not be the larger one.
        slow: the policy that places tables, or `none`.
        scan_s: seconds between passes over the queue; 0: at every event.
        joint: workloads that global allocation places jointly, 8 by default; 1: one at a time.
        demand: binds a workload to a region: `now`, the default, or `day` (`Binding`).
        bind: regions, or clusters, for binding: `data`, the default, those with its tables; `any`: all that could hold
            it, and its tables follow.
        age_weight, age_cap_s, fair_weight, window_s: of the credit, see `global_scheduler.write_ranking`.
        cache: RMS keeps its negative cache.

    Paper: mast, Table 1.
    """
    places = [SCOPES.index(choose(word, SCOPES, f"scope of policy {name}")) for word in (queue, allocation)]
    if places[1] > places[0]:
        raise InputError(
            f"policy {name}: queue={queue}, allocation={allocation}: Table 1 of paper mast has no such cell; expected "
            "an allocation of no larger scope than the queue's"
        )
    if joint is not None and allocation != "global":
        raise InputError(f"policy {name}: joint = {joint}: expected none, as allocation={allocation} is not global")
    if demand is not None and queue != "region":
        raise InputError(f"policy {name}: demand = {demand}: expected none, as the queue is not a region's")
    if bind is not None and queue == "global":
        raise InputError(f"policy {name}: bind = {bind}: expected none, as a global queue binds no workload early")
    daily = choose(demand or "now", DEMANDS, f"demand of policy {name}") == "day"
    blind = choose(bind or "data", BOUND_BY, f"bind of policy {name}") == "any"
    fast = WorkloadPassPolicy(
        name,
        binding=None if queue == "global" else Binding(queue == "cluster", daily, blind),
        first_fit=allocation == "cluster" and queue != "cluster",
        joint=(joint if joint is not None else JOINT) if allocation == "global" else 1,
        scan_s=scan_s,
        weights=Weights(age_weight, age_cap_s, fair_weight, window_s),
        use_cache=cache,
    )
    return paths(name, fast, slow)


def paths(name: str, fast: Policy, slow: str) -> TwoPathPolicy:
    """A fast path beside the slow one of a name, or `none`. Raises InputError if there is no such slow path."""
    return TwoPathPolicy(name, fast, _data_policy(slow))


def _data_policy(word: str) -> DataPolicy | None:
    if word == "none":
        return None
    from ..tetris.tetris import data_policy

    return data_policy(word)
