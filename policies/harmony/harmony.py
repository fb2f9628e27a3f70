"""`harmony`: the paper's scheduler: Algorithm 1, and its rules for when to regroup whom (Sec. IV-B4).

* A job that has been profiled is looked at only if no other one waits: it joins the group where the cluster is used
  best, if it is used better than without it; else it waits.
* When a job ends, the most similar one that waits takes its place: iteration time and COMP:COMM ratio within 5 % of
  its; failing that, two or three that together are as similar. Failing that, Algorithm 1 plans for the jobs of its
  group and of the group with the fewest jobs, and for all that wait; then for one more group at a time, up to all. A
  larger set is preferred only if the cluster is used 5 % better, and nothing is done for less than 5 %.
* Where nobody runs Algorithm 1 plans for everybody.

Choices where the paper leaves some (see algorithm1.py for the algorithm itself):

* How well the cluster is used: u_cpu + beta u_net over all machines that are up, Eqs. (3) and (4).
* Those who are profiled at one instant are looked at one after another; from the first that does not help on all wait.
* `Similar` is measured on the machines of the ended job's group; of several the most similar one is taken, by the
  larger of its two differences. Bunches are of the first 60 that wait, of two if any suffice.
* Machines of a group whose last job has ended, or that have been repaired, are free: replacements open a group on the
  first, and whoever is regrouped shares them. Where some are left at an instant at which nobody has ended, Algorithm 1
  plans for everybody if that is worth 5 %; else they stay free.
* Memory: Algorithm 1 does not know of it, and left to itself it runs twice as many jobs as the paper had, whose input
  the disks cannot deliver. So a grouping is legal where the memory of its groups, below the collector's threshold,
  holds all models and the inputs but for a share `alpha`. .34 is the paper's mean share (Sec. V-G); with 1 only models
  count.
* Where no grouping is legal one job has all machines, and as much of it is on disk as must be.
* `regroup=always` plans for everybody at every event instead.
* `order`: of jobs in Algorithm 1: running, paused and profiled ones, each by arrival (`stages`); all by arrival
  (`arrival`); by their iteration time on 16 machines, shortest first (`short`).
* `profile`: new jobs are profiled in the group with the fewest machines (`smallest`), or with the most (`largest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GroupTerms
from ...simulator.groups.group_view import GroupView
from .algorithm1 import BALANCES, STOPS, algorithm1
from .carry_out import Wanted, wanted_of
from .memory_need import expect_room
from .problem import BETA, REFERENCE_MACHINES, Plan, Problem
from .profiled import ALPHA, Present, ProfiledPolicy, alone, problem_of

SIMILAR = 0.05
WORTH = 0.05
BUNCHED, LARGEST_BUNCH = 60, 3
BETTER = 1.0 + 1e-12


class Ended(NamedTuple):
    """A job that has ended, the machines of its group, and who of that is left."""

    job: int
    machines: int
    mates: tuple[int, ...]


class Harmony(ProfiledPolicy):
    """The paper's scheduler.

    Args:
        stop, balance: of Algorithm 1, see `algorithm1`.
        beta: worth of the network's utilisation beside the CPU's, >= 0.
        regroup, order, profile: see the module.
        alpha: share of the inputs that a grouping may need to have on disk, 0 to 1.
        spills: whether data goes to disk where memory is short (the paper's third technique); without it a job that
            needs more memory than there is gets an InputError.
    """

    def __init__(
        self,
        stop: Literal["all", "printed"] = "all",
        beta: float = BETA,
        balance: Literal["job", "group"] = "job",
        regroup: Literal["paper", "always"] = "paper",
        order: Literal["stages", "arrival", "short"] = "stages",
        profile: Literal["smallest", "largest"] = "smallest",
        alpha: float = ALPHA,
        spills: bool = True,
    ) -> None:
        super().__init__("harmony", GroupTerms(spills=spills))
        if not (beta >= 0.0 and np.isfinite(beta)):
            raise InputError(f"policy harmony: beta = {beta:g}: expected a finite number >= 0")
        if not 0.0 <= alpha <= 1.0:
            raise InputError(f"policy harmony: alpha = {alpha:g}: expected a share from 0 to 1")
        assert stop in STOPS and balance in BALANCES
        self.stop, self.balance, self.beta = stop, balance, beta
        self.alpha = alpha
        self.regroup, self.order, self.profile = regroup, order, profile

    def profiles_in(self, group: Wanted) -> int:
        """Where new jobs are profiled."""
        return group.machines if self.profile == "smallest" else -group.machines

    def plan(self, view: GroupView, now: Present) -> list[Wanted]:
        """What the rules come to at this instant."""
        if not now.settled or self.regroup == "always":
            return self._schedule(view, now, now.settled, now.machines) or alone(view, now)
        groups, waiting = list(now.groups), list(now.waiting)
        fresh = now.fresh + [job for job in waiting if job not in self._seen]
        waiting = [job for job in waiting if job not in {*fresh}]
        ended = self._ended(view)
        for one in ended:
            groups = self._repair(view, now, groups, sorted(waiting + fresh), one)
            inside = {job for group in groups for job in group.members}
            waiting = [job for job in (*now.settled, *waiting) if job not in inside]
            fresh = [job for job in fresh if job not in inside]
        if not waiting:
            groups = self._add(view, now, groups, sorted(fresh))
        if not ended and sum(group.machines for group in groups) < now.machines:
            groups = self._regroup(view, now, groups, [], len(groups))
        return groups

    def begin(self, view: GroupView) -> None:
        """Nobody has had a turn; every job must fit somewhere, if nothing is spilled."""
        super().begin(view)
        if not self.terms.spills:
            expect_room(self.name, view)
        self._seen = self._seeing = frozenset[int]()

    def look(self, view: GroupView) -> None:
        """Whoever was there at the last instant has had its turn."""
        super().look(view)
        self._seen, self._seeing = self._seeing, frozenset((*view.queue.tolist(), *view.running.tolist()))

    def _ended(self, view: GroupView) -> list[Ended]:
        found = []
        for group in self.before:
            done = [job for job in group.members if view.stage(job) == "done"]
            mates = tuple(job for job in group.members if job not in done)
            found += [Ended(job, group.machines, mates) for job in done]
        return sorted(found)

    def _repair(
        self, view: GroupView, now: Present, groups: list[Wanted], idle: list[int], ended: Ended
    ) -> list[Wanted]:
        """A job has ended: somebody takes its place, or groups are made anew."""
        own = next((place for place, group in enumerate(groups) if {*group.members} & {*ended.mates}), -1)
        machines = groups[own].machines if own >= 0 else ended.machines
        free = now.machines - sum(group.machines for group in groups)
        instead = self._similar(view, ended.job, machines, idle)
        if instead and own >= 0:
            found = list(groups)
            found[own] = replace(found[own], members=(*found[own].members, *instead))
            if self._problem(view, now, found)[0].is_legal(self._problem(view, now, found)[1]):
                return found
        elif instead and free > 0:
            return [*groups, Wanted(instead, min(machines, free))]
        fewest = sorted(range(len(groups)), key=lambda place: (place != own, len(groups[place].members), place))
        return self._regroup(view, now, groups, fewest, 2 if own >= 0 else 1)

    def _similar(self, view: GroupView, job: int, machines: int, idle: Sequence[int]) -> tuple[int, ...]:
        """Who waits and is like the job, alone or together; empty if nobody is."""
        if not idle:
            return ()
        at = np.array(idle[:], np.int64)
        comp = np.array([view.comp_machine_s(one) for one in idle]) / machines
        comm = np.array([view.comm_s(one) for one in idle])
        own_comp, own_comm = view.comp_machine_s(job) / machines, view.comm_s(job)
        for size in range(1, LARGEST_BUNCH + 1):
            count = len(at) if size == 1 else min(len(at), BUNCHED)
            if count < size:
                break
            rows = np.array(list(combinations(range(count), size)))
            off = difference(comp[rows].sum(axis=1), comm[rows].sum(axis=1), own_comp, own_comm)
            best = int(off.argmin())
            if off[best] <= SIMILAR:
                return tuple(int(one) for one in at[rows[best]])
        return ()

    def _regroup(
        self, view: GroupView, now: Present, groups: list[Wanted], fewest: list[int], least: int
    ) -> list[Wanted]:
        """Algorithm 1 for more and more groups, if that is worth it; `fewest` first, at least so many."""
        taken = fewest or list(range(len(groups)))
        chosen, worth = groups, -np.inf
        for count in range(min(least, len(groups)), len(groups) + 1):
            involved = {*taken[:count]}
            kept = [group for place, group in enumerate(groups) if place not in involved]
            running = sorted(job for place in involved for job in groups[place].members)
            machines = now.machines - sum(group.machines for group in kept)
            planned = self._schedule(view, now, running, machines, {job for group in kept for job in group.members})
            score = self._score(view, now, kept + planned) if planned else -np.inf
            if score > -np.inf and (worth == -np.inf or score >= (1.0 + WORTH) * worth):
                chosen, worth = kept + planned, score
        return chosen if worth >= (1.0 + WORTH) * self._score(view, now, groups) else groups

    def _add(self, view: GroupView, now: Present, groups: list[Wanted], fresh: Sequence[int]) -> list[Wanted]:
        """Jobs join one after another, each where it helps most; from the first that does not help on all wait."""
        for job in fresh:
            worth = self._score(view, now, groups)
            best: list[Wanted] = []
            free = now.machines - sum(group.machines for group in groups)
            options = [
                [*groups[:place], replace(group, members=(*group.members, job)), *groups[place + 1 :]]
                for place, group in enumerate(groups)
            ] + ([[*groups, Wanted((job,), free)]] if free > 0 else [])
            for option in options:
                score = self._score(view, now, option)
                if score > worth * BETTER:
                    best, worth = option, score
            if not best:
                break
            groups = best
        return groups

    def _schedule(
        self, view: GroupView, now: Present, running: Sequence[int], machines: int, out: set[int] | None = None
    ) -> list[Wanted]:
        """Algorithm 1 for these running jobs, and for all others that are not in `out`."""
        others = [job for job in (*now.settled, *now.waiting, *now.fresh) if job not in {*running} | (out or set())]
        paused = [job for job in others if view.stage(job) != "profiled" and job not in now.fresh]
        profiled = [job for job in others if job not in {*paused}]
        jobs = [*running, *sorted(paused), *sorted(profiled)]
        if not jobs or machines < 1:
            return []
        if self.order == "arrival":
            jobs.sort()
        elif self.order == "short":
            times = problem_of(view, jobs, machines).solo_s(REFERENCE_MACHINES)
            jobs = [jobs[place] for place in np.argsort(times, kind="stable")]
        problem = problem_of(view, jobs, machines, self.beta, alpha=self.alpha)
        return wanted_of(algorithm1(problem, self.stop, self.balance), jobs)

    def _problem(self, view: GroupView, now: Present, groups: Sequence[Wanted]) -> tuple[Problem, Plan]:
        jobs = [job for group in groups for job in group.members]
        place = {job: i for i, job in enumerate(jobs)}
        plan = Plan.of(len(jobs), [(tuple(place[job] for job in group.members), group.machines) for group in groups])
        return problem_of(view, jobs, now.machines, self.beta, alpha=self.alpha), plan

    def _score(self, view: GroupView, now: Present, groups: Sequence[Wanted]) -> float:
        """How well the cluster is used; minus infinity where the grouping is not legal."""
        if not groups:
            return 0.0
        problem, plan = self._problem(view, now, groups)
        return problem.score(plan) if problem.is_legal(plan) else -np.inf


def difference(comp_s: np.ndarray, comm_s: np.ndarray, own_comp_s: float, own_comm_s: float) -> np.ndarray:
    """How far jobs are from one: the larger of the relative differences of iteration time and COMP:COMM ratio."""
    time = np.abs(comp_s + comm_s - own_comp_s - own_comm_s) / (own_comp_s + own_comm_s)
    ratio = np.abs(comp_s / comm_s - own_comp_s / own_comm_s) / (own_comp_s / own_comm_s)
    return np.maximum(time, ratio)
