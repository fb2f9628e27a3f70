"""One pass over the queue after the other: the fast path of paper mast, and the other cells of its Table 1.

At every pass GMS ranks the pending workloads (policies/mast/gms.py); in this order each is offered to the regions that
have its tables and could hold it, and gets the best plan of RMS (policies/mast/rms.py), or is passed. Where workloads
were preempted, the pass is made again at the same instant, with them in the queue. Workloads that no region can run
have their tables copied (policies/mast/copies_on_demand.py).

A pass is made at most six times at one instant, and so are rounds of copies before them. Sec. 5.4 gives the duration
of a pass, 34 s, not its period; it says that 5 minutes suffice. RMS places only in a pass, where the paper's
"constantly checks the job-queue database": `scan_s=0` comes nearest to that.

At the beginning of an instant `decide` depends on the record alone, but for regions to which workloads are bound early
(binding.py); within one the rest of the pass is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.base.decisions import TABLE_DECISIONS, Advance, Decision, Preempt, Start
from ...simulator.base.errors import InputError
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from ..base import Policy
from ..rounds import is_round
from . import auction, gms_scan
from . import region_units as kernels
from .binding import Binding
from .copies_on_demand import on_demand
from .gms import DAY_S, lay_ranking
from .rms import Hardware, lay_regions

SCAN_S = 34.0  # Sec. 5.4: how long a GMS-scan pass takes, on average; not how often it is made
MOST_PASSES, MOST_ROUNDS = 6, 6  # at one instant: over the queue; of decisions about tables


@dataclass(frozen=True)
class Weights:
    """Of the credit; see `lay_ranking`."""

    age: float = 1.0
    age_cap_s: float = DAY_S
    fair: float = 1.0
    window_s: float = DAY_S


@dataclass
class _Arrays:
    """What the kernels work on, for one workload in one topology."""

    ranking: gms_scan.Ranking
    regions: kernels.Regions
    queue: auction.Queue

    @classmethod
    def of(cls, view: ClusterView, weights: Weights, option: tuple[int, int, int]) -> _Arrays:
        demands, jobs = view.demands, len(view.workload)
        rows = {name: np.zeros(jobs, np.int64) for name in ("job", "bits", "only", "region", "movable")}
        queue = auction.Queue(
            kind=np.array(demands.part_type, np.int64),
            need=np.array(demands.part_units, np.int64),
            option=np.array([*option, 0, -1], np.int64),
            **rows,
        )
        ranking = lay_ranking(demands, weights.age, weights.age_cap_s, weights.fair, weights.window_s)
        return cls(ranking, lay_regions(Hardware.of(view.topology, demands), jobs), queue)


class Passes(Policy):
    """See the module.

    Args:
        name: how tables and logs call it.
        binding: where workloads are bound when they arrive; None: nowhere, the queue is global.
        first_fit: clusters decide by themselves, the least loaded is asked first; else a region's best plan is taken.
        joint: how many workloads are placed jointly, >= 1: one that finds no place may have that of one of the last
            joint - 1 that were placed before it in the pass without preemption, if that finds another one so.
        scan_s: seconds from one pass to the next, >= 0; 0: at every event.
        weights: of the credit.
        use_cache: whether RMS keeps its negative cache.

    Attributes:
        asked, spared: how many times a region, or a cluster that decides by itself, was asked for a plan, and how often
            the negative cache had the answer, over all passes so far.
    """

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
    ) -> None:
        if joint < 1 or joint != int(joint):
            raise InputError(f"policy {name}: joint = {joint}: expected a whole number of at least 1")
        if not 0.0 <= scan_s < math.inf:
            raise InputError(f"policy {name}: scan_s = {scan_s:g}: expected a finite number of seconds, 0 or more")
        self.name = name
        self.clock = Rule("fifo", round=scan_s)
        self.weights = weights or Weights()
        self.asked = self.spared = 0
        self._binding = binding
        self._option = (auction.FIRST_FIT if first_fit else auction.EXHAUSTIVE, int(joint), int(use_cache))
        self._laid: tuple[Any, Any] | None = None
        self._arrays: _Arrays
        self._now: tuple[Any, int, int] | None = None
        self._decisions = self._passes = self._rounds = self._pending = 0
        self._again = False
        self._left: list[Decision] = []

    @property
    def levels(self) -> np.ndarray:
        """The priority that counted when GMS looked last, int64 (jobs,), of those that ran or were pending then."""
        return self._arrays.ranking.level

    @property
    def pending(self) -> int:
        """How many workloads were pending in the last pass."""
        return self._pending

    @property
    def held(self) -> np.ndarray:
        """Units of each cluster that workloads hold after the last pass, int64 (clusters, 7), highest priority last."""
        return self._arrays.regions.held

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of this instant's passes."""
        simulator = view.simulator
        simulator.use(self.clock)
        now, decisions = (simulator, simulator.runs, view.instant), int(simulator.state.decisions)
        if now != self._now or decisions not in (self._decisions, self._decisions + 1):  # or somebody else decides too
            self._now, self._passes, self._rounds, self._left = now, 0, 0, []
            if self.clock.round == 0.0 or is_round(view.now_s, self.clock.round):
                self._left = self._begin(view)
        elif decisions == self._decisions + 1:
            self._left = self._left[1:]
            if not self._left and self._again and self._passes < MOST_PASSES:
                self._left = self._begin(view)
        self._decisions = decisions
        return self._left[0] if self._left else Advance()

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The place of a workload in the queue: <priority, credit>; of a table why it is copied."""
        if isinstance(decision, TABLE_DECISIONS):
            return "a waiting workload finds all its tables in no region"
        ranking = self._arrays.ranking
        if isinstance(decision, Preempt):
            return f"makes way for a workload of higher priority than its {int(ranking.level[decision.job])}"
        if not isinstance(decision, Start):
            return ""
        order = ranking.order[: self._pending].tolist()
        words = f"priority {int(ranking.level[decision.job])}, credit {float(ranking.credit[decision.job]):.3g}"
        if decision.job not in order:
            return words
        coming = {one.job for one in self._left if isinstance(one, Start)}
        waiting = set(view.queue.tolist()) - coming
        passed = sum(job in waiting for job in order[: order.index(decision.job)])
        place = f"; number {order.index(decision.job) + 1} of {len(order)}"
        return f"{words}{place}" + (f", of whom {passed} before it fit nowhere" if passed else "")

    def memory(self, simulator: Any) -> Any:
        """Where the workloads of the present run are bound, for `recall`; None: nowhere."""
        return None if self._binding is None else self._binding.memory(simulator)

    def recall(self, simulator: Any, memory: Any) -> None:
        """A simulator now stands where one stood of whose run `memory` was remembered."""
        self._now = None
        if self._binding is not None:
            self._binding.recall(simulator, memory)

    def _begin(self, view: ClusterView) -> list[Decision]:
        """What is decided next: about tables that pending workloads lack; if nothing, all of one pass."""
        if self._laid is None or self._laid[0] is not view.workload or self._laid[1] is not view.topology:
            self._laid = (view.workload, view.topology)
            self._arrays = _Arrays.of(view, self.weights, self._option)
        decisions: list[Decision] = []
        lacking = self._open(view)
        if lacking and self._rounds < MOST_ROUNDS:
            queue, pending = self._arrays.queue, self._pending
            jobs = queue.job[:pending]
            decisions += on_demand(view, np.sort(jobs[queue.bits[jobs] == 0]).tolist())
        self._again = bool(decisions)
        if decisions:
            self._rounds += 1
            return decisions
        self._passes += 1
        return self._place(view)

    def _open(self, view: ClusterView) -> int:
        """Rank the pending workloads. Returns how many of them lack tables."""
        arrays, records = self._arrays, view.simulator.records
        self._pending = gms_scan.scan(records, 0, arrays.ranking)
        return int(auction.open_queue(records, 0, arrays.regions, arrays.ranking, arrays.queue, self._pending))

    def _place(self, view: ClusterView) -> list[Decision]:
        """All decisions of one pass, in an order in which they can be carried out."""
        ranking, regions, queue = self._arrays.ranking, self._arrays.regions, self._arrays.queue
        if self._pending == 0:
            return []
        kernels.follow(view.simulator.records, 0, regions, ranking.level)
        kernels.begin_scan(regions)
        if self._binding is not None:
            self._binding.bind(view, queue, self._pending)
        decisions = self._placed(view.now_s, self._pending)
        self.asked += int(regions.count[kernels.ASKED])
        self.spared += int(regions.count[kernels.SPARED])
        return decisions

    def _placed(self, now_s: float, pending: int) -> list[Decision]:
        """Who is started in this pass, each after those that leave for it."""
        regions, queue = self._arrays.regions, self._arrays.queue
        placed: dict[int, list[Decision]] = {}
        at = auction.auction(regions, queue, 0, now_s)
        while at < pending:
            job, moved = int(queue.job[at]), int(queue.option[auction.MOVED])
            before: list[Decision] = []
            for leaver in regions.leaving[: regions.count[kernels.LEAVES]].tolist():
                # One that was placed in this very pass does not start; who left for it is stopped all the same.
                gone = placed.pop(leaver, None)
                before += [Preempt(leaver)] if gone is None else gone[:-1]
            self._again |= bool(before)
            if moved >= 0:
                before += placed.pop(moved)[:-1]
                placed[moved] = [*before, self._start(moved)]
                before = []
            placed[job] = [*before, self._start(job)]
            at = auction.auction(regions, queue, at + 1, now_s)
        return [decision for decisions in placed.values() for decision in decisions]

    def _start(self, job: int) -> Start:
        regions = self._arrays.regions
        return Start(job, regions.taken[: auction.units_of(regions, job, self._arrays.queue.need)].tolist())
