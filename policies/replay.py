"""`replay`: each job starts when its log says that it started (`start_s`), so the run is the log as it was.

A check too: where a log does not fit a cluster some jobs start late, and tables say how many, when and by how much.

Choices:

* A job whose GPUs are not free at its logged start starts as soon as they are. Late jobs go first, in the order of
  their logged starts; a job that fits does not wait for one that does not, so that the rest stays as it was.
* Where the log names a job's machines (`hosts`) and the topology has all of them, by name or by number, the job runs
  on those. A name for each GPU (`n1 n1 n2`) says how many it holds on each; else they are spread as evenly as the free
  ones allow, which need not be as it was, so that another job may find too few on its machines. Such a job, and one
  whose machines are not known, is placed by `placer`.
* A job without a logged start starts at its arrival; more than 1 in 100 of them are refused.
* Run times are those of the workload on the network that is played: `none` leaves ends as they were, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..simulator.base.decisions import Advance, Decision, Start
from ..simulator.base.errors import InputError
from ..simulator.cluster.topology import Topology
from ..simulator.engine.view import ClusterView
from ..simulator.jobs.workload import Workload
from ..simulator.rules.rule import Rule
from ..simulator.rules.semantics import Semantics
from .base import Policy, RulePolicy
from .ordered import Placer

MOST_UNKNOWN = 0.01  # of the jobs may have no logged start
LATE_S = 1e-3  # logs have whole seconds; less is rounding


class Replay(RulePolicy):
    """The policy `replay`; `placer` is for jobs that do not run on the machines that the log names."""

    def __init__(self, placer: Placer = "tier") -> None:
        super().__init__("replay", Rule("logged", placer=placer))
        self._seen: tuple[Any, ...] | None = None
        self._machines: dict[int, list[int]] = {}  # by job
        self._run: Hashable = None
        self._elsewhere: set[int] = set()  # jobs whose machines had too few free GPUs in this run

    def rule_under(self, semantics: Semantics) -> Rule:
        """The rule. Raises InputError with auctions."""
        if semantics.auctions:
            raise InputError(f"policy replay: semantics {semantics.name} starts jobs at auctions; expected events")
        return self.rule

    def workload_for(self, workload: Workload) -> Workload:
        """The workload. Raises InputError if too many jobs have no logged start."""
        unknown = int(np.isinf(workload.start_s).sum())
        if unknown > MOST_UNKNOWN * len(workload):
            raise InputError(
                f"policy replay: workload {workload.name!r} does not say of {unknown:,} of its {len(workload):,} jobs "
                f"when they started; expected a log with start_s, of which at most {MOST_UNKNOWN:.0%} of the jobs lack"
            )
        return workload

    def decider(self, simulator: Any) -> Policy | None:
        """Itself where jobs run on machines that the log names; else None: its compiled rule plays."""
        self._look(simulator.view)
        return self if self._machines else None

    def decide(self, view: ClusterView) -> Decision:
        """The first start that is due, in order, and finds GPUs."""
        self._look(view)
        if not self._machines:
            return super().decide(view)
        queue = view.queue
        start_s = view.record["logged_s"][queue]
        for place in np.lexsort((queue, start_s)).tolist():
            if start_s[place] > view.now_s:
                break
            gpus = self._find(view, int(queue[place]))
            if gpus is not None:
                return Start(int(queue[place]), gpus)
        return Advance()

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The logged start of the job, and its place."""
        if not self._machines or not isinstance(decision, Start):
            return super().why(view, decision)
        is_there = decision.job in self._machines and decision.job not in self._elsewhere
        where = "on its machines" if is_there else f"placed by {self.rule.placer}"
        return f"started at {view.record['logged_s'][decision.job]:,.0f} s in the log; {where}"

    def measured(self, simulator: Any, counted: np.ndarray | None = None) -> dict[str, float]:
        """Waits as they were, and starts later than logged: see experiments/comparing/replays.py, which tells them."""
        self._look(simulator.view)
        workload, first_s = simulator.workload, simulator.raw.record["first_start_s"][: len(simulator.workload)]
        counted = np.ones(len(workload), bool) if counted is None else counted
        has_start, is_there = np.isfinite(workload.start_s), np.zeros(len(workload), bool)
        is_there[list(self._machines.keys() - self._elsewhere)] = True
        known = has_start & counted
        late_s = np.where(known & (first_s >= 0.0), first_s - workload.start_s, 0.0)
        late = late_s > LATE_S
        waits_s = (workload.start_s - workload.arrival_s)[known]
        return {
            "observed_wait_mean": float(waits_s.mean()) if known.any() else math.nan,
            "late_jobs": float(late.sum()),
            "first_late_s": float(workload.start_s[late].min()) if late.any() else math.nan,
            "most_late_s": float(late_s.max()),
            "jobs_without_start": float((counted & ~has_start).sum()),
            "jobs_elsewhere": float((counted & ~is_there).sum()),
        }

    def _look(self, view: ClusterView) -> None:
        if not view.has_terms(self._seen):
            self._seen, self._machines = view.terms, machines_of_log(view.workload, view.topology)
        if view.run != self._run:
            self._run, self._elsewhere = view.run, set()

    def _find(self, view: ClusterView, job: int) -> list[int] | None:
        """Free GPUs for a job, on its machines if possible; None: there are too few."""
        if job in self._machines:
            left, free = view.gpus(job), view.free_gpus
            found: list[int] = []
            by_machine, held = view.free_by_machine, Counter(self._machines[job])
            is_said = held.total() == left
            for place, machine in enumerate(sorted(held, key=lambda one: (by_machine[one], one))):
                share = held[machine] if is_said else -(-left // (len(held) - place))
                own = free[view.topology.gpu_machine[free] == machine][:share].tolist()
                found, left = found + own, left - len(own)
            if left == 0:
                self._elsewhere.discard(job)
                return sorted(found)
            self._elsewhere.add(job)
        return view.find_gpus(job, self.rule.placer)


def machines_of_log(workload: Workload, topology: Topology) -> dict[int, list[int]]:
    """The machines of each job according to its log, by job; only of jobs whose machines the topology has."""
    number, found = topology.machine_numbers, {}
    for job in np.flatnonzero(workload.hosts != "").tolist():
        machines = [number.get(host, -1) for host in workload.hosts[job].split()]
        if min(machines, default=-1) >= 0:
            found[job] = machines
    return found
