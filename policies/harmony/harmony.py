"""`harmony`: the paper's scheduler: Algorithm 1, and its rules of regrouping (Sec. IV-B4).

Algorithm 1 (Sec. IV-B3) grows the set of jobs, groups each prefix and keeps the best use of the cluster (grouping.py).
Departures and readings:

* As printed the loop never takes the last job, and returns the grouping that failed the test: `stop="printed"`. The
  default tries all prefixes and keeps the best; beyond 200 jobs each prefix is 5 % longer than the last.
* "Utilisation" of line 10 is a vector; we compare u_cpu + beta u_net, over all machines that are up, Eqs. (3), (4).
* Line 6 balances each job by itself; `balance="group"` balances their sums, in closed form.
* Jobs are sorted by iteration time with equal shares of the machines. A group takes the longest job left, then, up to
  its size, of the next few (as many as its size) the one that balances it most.
* Swaps are between the most imbalanced group and the one most opposite to it, until none of their swaps helps.
* The machine goes to the group whose COMP is longest beside its COMM.
* A grouping in which a group's models exceed its memory is not taken.

New jobs are profiled first (`ProfiledPolicy`, Sec. IV-B1): a new job rides along in a group, not counted in plans,
until its metrics are known: in a group that profiles already, else in that with the fewest machines
(`profile=smallest`) or the most (`largest`). Without groups, groups of 16 machines (or all) are opened for new jobs,
jobs dealt out evenly, and the first plan waits for the jobs that came before the first was profiled. Where nothing is
spilled, only jobs that fit are sent.

The rules:

* A profiled job is considered only if no other one waits: it joins the group where the cluster is used best, if that is
  better than without it; else it waits. Jobs profiled at one instant come one after another; from the first that does
  not help on all wait.
* When a job ends, the most similar waiting one takes its place: iteration time and COMP:COMM ratio, on the machines of
  its group, within 5 % (the larger difference counts); else two or three of the first 60 that together are as similar.
  Else Algorithm 1 plans for the jobs of its group, of the group with the fewest jobs, and all that wait; then for one
  more group at a time. A larger set is preferred only for a 5 % better use, and nothing is done for less than 5 %.
* If no job runs, Algorithm 1 plans for all; `regroup=always` does at every event.
* Machines of a group whose last job has ended, or that were repaired, are free: replacements open a group on the first,
  and regrouped jobs share them. If some are left at an instant without an end, Algorithm 1 plans for all if that is
  worth 5 %; else they stay free.
* Memory, which Algorithm 1 ignores: a grouping is legal where the memory of its groups, below the collector's
  threshold, holds all models and the inputs but for a share `alpha` (.34: the paper's mean, Sec. V-G; 1: only models
  count). If none is legal one job has all machines, with as much of it on disk as necessary.
* `order` of jobs in Algorithm 1: running, paused and profiled ones, each by arrival (`stages`); all by arrival
  (`arrival`); by their iteration time on 16 machines, shortest first (`short`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from ...simulator.base.decisions import Decision
from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GB, MB, GroupTerms
from ...simulator.groups.group_view import GroupView
from .group_policy import GroupPlan, GroupPolicy, planned_groups_of, present
from .grouping import BY_GROUP, BY_JOB, schedule
from .problem import BETA, REFERENCE_MACHINES, Plan, Problem, expect_room, machines_for

ALPHA = 0.34  # the paper's mean share of inputs on disk (Sec. V-G)
BALANCES = {"job": BY_JOB, "group": BY_GROUP}
STOPS = ("all", "printed")


@dataclass(frozen=True)
class JobStages:
    """The jobs at an instant by stage, in order of arrival."""

    machines: int  # that are up
    groups: list[GroupPlan]  # the settled jobs and machines of groups that have some
    settled: list[int]  # jobs that are in a group for good
    fresh: list[int]  # jobs that have just been profiled, in any group
    waiting: list[int]  # profiled and paused jobs in no group, without fresh ones
    in_profiling: list[int]  # jobs that are being profiled
    new: list[int]  # jobs that are to be profiled

    @property
    def free(self) -> int:
        """Machines of no group that has settled jobs."""
        return self.machines - sum(group.machines for group in self.groups)


class ProfiledPolicy(GroupPolicy):
    """Plans for the jobs whose metrics are known. Write `grouped`. Paper: harmony, Sec. IV-B1."""

    def begin(self, view: GroupView) -> None:
        """Forget all jobs."""
        self._profiled_before: frozenset[int] = frozenset()
        self._profiled_now: frozenset[int] = frozenset()
        self._first: frozenset[int] = frozenset()
        self._awaited: frozenset[int] = frozenset()

    def look(self, view: GroupView) -> None:
        """Jobs that rode along at the end of the last instant are fresh, if their metrics are known now."""
        self._profiled_before, self._first = self._profiled_now, self._awaited

    def grouped(self, view: GroupView, now: JobStages) -> list[GroupPlan]:
        """The groups of settled, fresh and waiting jobs, of at most `now.machines` machines."""
        raise TypeError(f"{type(self).__name__} does not say how it groups jobs: define grouped(self, view, now)")

    def wanted(self, view: GroupView) -> list[GroupPlan]:
        """The plan, and the jobs that are profiled."""
        now = self._present(view)
        self._profiled_now = frozenset((*now.in_profiling, *now.new))
        self._awaited = frozenset()
        if not now.machines:
            return []
        if not now.settled and ((not now.fresh and not now.waiting) or self._first & {*now.in_profiling}):
            groups = present(view)
            self._awaited = self._first if now.fresh else self._profiled_now
            self._profiled_now |= {*now.fresh}
        else:
            groups = _with_profiled(view, self.grouped(view, now), now.in_profiling)
        in_profiling = {*now.in_profiling}
        left = now.machines - sum(group.machines for group in groups)
        lost = [job for job in now.in_profiling if not any(job in group.members for group in groups)]
        return _with_new(view, groups, sorted(lost + now.new), in_profiling, left, self.profiles_in)

    def why(self, view: GroupView, decision: Decision) -> str:
        """The group in the plan, and how well the plan uses the cluster, by Eqs. (3) and (4)."""
        words = super().why(view, decision)
        job = getattr(decision, "job", None)
        if job is not None and not view.is_profiled(job):
            return f"{words}, to be profiled" if words else ""
        groups = [
            replace(one, members=tuple(job for job in one.members if view.is_profiled(job))) for one in self._after
        ]
        groups = [one for one in groups if one.members]
        jobs = [job for one in groups for job in one.members]
        if not words or not jobs:
            return words
        place = {job: i for i, job in enumerate(jobs)}
        plan = Plan.of(len(jobs), [(tuple(place[job] for job in one.members), one.machines) for one in groups])
        cpu, network = problem_of(view, jobs, view.machines).utilisation(plan)
        return f"{words}; then CPUs are busy for {100 * cpu:.0f} %, the network for {100 * network:.0f} %"

    def profiles_in(self, group: GroupPlan) -> int:
        """Key of the groups, ascending, that profile new jobs."""
        return group.machines

    def _present(self, view: GroupView) -> JobStages:
        queue, running = view.queue.tolist(), view.running.tolist()
        in_profiling = [job for job in running if not view.is_profiled(job)]
        fresh = [job for job in queue + running if job in self._profiled_before and view.is_profiled(job)]
        settled = sorted({*running} - {*in_profiling} - {*fresh})
        inside = {*settled}
        groups = [
            replace(group, members=tuple(job for job in group.members if job in inside)) for group in present(view)
        ]
        profiled = [job for job in queue if view.is_profiled(job)]
        return JobStages(
            machines=view.machines,
            groups=[group for group in groups if group.members],
            settled=settled,
            fresh=sorted(fresh),
            waiting=[job for job in profiled if job not in {*fresh}],
            in_profiling=in_profiling,
            new=[job for job in queue if not view.is_profiled(job)],
        )


def problem_of(
    view: GroupView,
    jobs: Sequence[int],
    machines: int,
    beta: float = BETA,
    counts_disk: bool = False,
    alpha: float = 1.0,
) -> Problem:
    """The grouping problem of these jobs, as measured, in this order.

    `counts_disk`: a cycle is at least the disk time of the bytes above the collector's threshold. `alpha`: share of the
    inputs that may be on disk, 0 to 1: the rest, and all models, must fit into memory; below the collector's threshold
    where alpha is below 1. Where nothing is spilled it is 0.
    """
    s, config = view.record, view.config
    alpha = alpha if view.rule.spills else 0.0
    at = list(jobs)
    ram_bytes = config.ram_gb * GB
    comfort_bytes = (config.gc_threshold or 1.0) * ram_bytes
    return Problem(
        comp=s["seen_comp"][at],
        comm=s["seen_comm"][at],
        machines=machines,
        input_bytes=alpha * s["input_bytes"][at],
        model_bytes=s["model_bytes"][at] + (1.0 - alpha) * s["input_bytes"][at],
        ram_bytes=ram_bytes if alpha == 1.0 else comfort_bytes,
        expansion=config.expansion,
        beta=beta,
        comfort_bytes=comfort_bytes if counts_disk else np.inf,
        spill_s=config.pass_fraction / (config.expansion * config.disk_mb_s * MB),
    )


def alone(view: GroupView, now: JobStages) -> list[GroupPlan]:
    """The groups if no grouping is legal: the first job that runs or waits, on all machines, partly on disk."""
    return [GroupPlan((min(now.settled or now.fresh or now.waiting),), now.machines)]


def _with_profiled(view: GroupView, planned: list[GroupPlan], in_profiling: Sequence[int]) -> list[GroupPlan]:
    """Jobs that are being profiled stay beside most of their present mates."""
    group_of = view.group_of_jobs
    groups = list(planned)
    for job in in_profiling:
        mates = [sum(group_of[mate] == group_of[job] for mate in group.members) for group in planned]
        if mates and max(mates) > 0:
            place = mates.index(max(mates))
            groups[place] = replace(groups[place], members=(*groups[place].members, job))
    return groups


def _with_new(
    view: GroupView,
    groups: list[GroupPlan],
    new: Sequence[int],
    in_profiling: set[int],
    free: int,
    order: Callable[[GroupPlan], int],
) -> list[GroupPlan]:
    """Send new jobs to groups to be profiled; where nothing is spilled only those that fit."""
    if not new:
        return groups
    if not groups:
        return _first_groups(view, new, free)
    found = list(groups)
    profiling = [place for place, group in enumerate(groups) if in_profiling.intersection(group.members)]
    place = min(profiling or range(len(groups)), key=lambda place: (order(groups[place]), place))
    for job in new:
        grown = replace(found[place], members=(*found[place].members, job))
        if _fits(view, grown):
            found[place] = grown
    return found


def _first_groups(view: GroupView, new: Sequence[int], free: int) -> list[GroupPlan]:
    """Groups to profile in while there are none, jobs dealt out evenly; a group of the first job if none fits."""
    size = min(REFERENCE_MACHINES, free)
    count = min(len(new), free // size) if size else 0
    groups = [GroupPlan((), size)] * count
    for job in new:
        for place in sorted(range(count), key=lambda place: (len(groups[place].members), place)):
            grown = replace(groups[place], members=(*groups[place].members, job))
            if _fits(view, grown):
                groups[place] = grown
                break
    groups = [group for group in groups if group.members]
    return groups or ([GroupPlan((new[0],), free)] if free else [])


def _fits(view: GroupView, group: GroupPlan) -> bool:
    if view.rule.spills:
        return True
    raw_bytes = sum(view.input_bytes(job) + view.model_bytes(job) for job in group.members)
    return machines_for(view.config, raw_bytes) <= group.machines


class Scheduled(NamedTuple):
    """The plan of Algorithm 1, and its effort."""

    plan: Plan
    prefixes: int
    swaps: int


def algorithm1(
    problem: Problem, stop: Literal["all", "printed"] = "all", balance: Literal["job", "group"] = "job"
) -> Plan:
    """The grouping that Algorithm 1 finds, groups in the order of filling; empty if no grouping is legal.

    Args:
        problem: jobs in the order in which they are taken: running, paused, profiled, each by submission.
        stop: `all` tries every prefix and keeps the best; `printed` stops at the first that is no better than the one
            before, returns it, and never takes the last of several jobs.
        balance: what the number of groups balances: `job`, the COMP and COMM of every job; `group`, their sums.

    Paper: harmony, Algorithm 1; Sec. IV-B3.
    """
    return counted(problem, stop, balance).plan


def counted(problem: Problem, stop: str = "all", balance: str = "job") -> Scheduled:
    """As `algorithm1`, with the prefixes tried and the swaps made."""
    if stop not in STOPS:
        raise InputError(f"stop={stop}: expected one of {', '.join(STOPS)}")
    if balance not in BALANCES:
        raise InputError(f"balance={balance}: expected one of {', '.join(BALANCES)}")
    jobs = problem.jobs
    group_of, machines, counts = (np.zeros(size, dtype=np.int64) for size in (jobs, jobs, 2))
    ints, floats = np.zeros((10, jobs + 1), dtype=np.int64), np.zeros((7, jobs + 1))
    sizes = problem.comp, problem.comm, problem.models_in_memory, int(problem.machines)
    terms = float(problem.beta), float(problem.ram_bytes), stop == "printed", BALANCES[balance]
    groups = schedule(*sizes, *terms, ints, floats, group_of, machines, counts)
    return Scheduled(Plan(group_of, machines[:groups].copy()), int(counts[0]), int(counts[1]))


SIMILAR = 0.05
WORTH = 0.05
BUNCHED, LARGEST_BUNCH = 60, 3
BETTER = 1.0 + 1e-12


class Ended(NamedTuple):
    """A job that has ended, the machines of its group, and its other members."""

    job: int
    machines: int
    mates: tuple[int, ...]


class Harmony(ProfiledPolicy):
    """The paper's scheduler. Paper: harmony, Sec. IV-B4.

    Args:
        stop, balance: of Algorithm 1, see `algorithm1`.
        beta: worth of the network's utilisation beside the CPU's, >= 0.
        regroup, order, profile: see the module.
        alpha: share of the inputs that a grouping may need to have on disk, 0 to 1.
        spills: whether data goes to disk where memory is short (the paper's third technique); without it a job that
            needs more memory than there is raises InputError.
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

    def profiles_in(self, group: GroupPlan) -> int:
        """By machines, ascending or descending."""
        return group.machines if self.profile == "smallest" else -group.machines

    def grouped(self, view: GroupView, now: JobStages) -> list[GroupPlan]:
        """The groups by the rules."""
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
        """Forget all jobs; raise InputError if a job fits nowhere and nothing is spilled."""
        super().begin(view)
        if not self.clock.spills:
            expect_room(self.name, view)
        self._seen = self._seeing = frozenset[int]()

    def look(self, view: GroupView) -> None:
        """Jobs of the last instant have been considered."""
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
        self, view: GroupView, now: JobStages, groups: list[GroupPlan], idle: list[int], ended: Ended
    ) -> list[GroupPlan]:
        """A job has ended: another takes its place, or groups are made anew. Paper: harmony, Sec. IV-B4."""
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
            return [*groups, GroupPlan(instead, min(machines, free))]
        fewest = sorted(range(len(groups)), key=lambda place: (place != own, len(groups[place].members), place))
        return self._regroup(view, now, groups, fewest, 2 if own >= 0 else 1)

    def _similar(self, view: GroupView, job: int, machines: int, idle: Sequence[int]) -> tuple[int, ...]:
        """Waiting jobs that are like the job, alone or together; may be empty. Paper: harmony, Sec. IV-B4."""
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
        self, view: GroupView, now: JobStages, groups: list[GroupPlan], fewest: list[int], least: int
    ) -> list[GroupPlan]:
        """Algorithm 1 for `least` groups or more, `fewest` first, if worth it. Paper: harmony, Sec. IV-B4."""
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

    def _add(self, view: GroupView, now: JobStages, groups: list[GroupPlan], fresh: Sequence[int]) -> list[GroupPlan]:
        """Jobs join one by one where each helps most, up to one that does not. Paper: harmony, Sec. IV-B4."""
        for job in fresh:
            worth = self._score(view, now, groups)
            best: list[GroupPlan] = []
            free = now.machines - sum(group.machines for group in groups)
            options = [
                [*groups[:place], replace(group, members=(*group.members, job)), *groups[place + 1 :]]
                for place, group in enumerate(groups)
            ] + ([[*groups, GroupPlan((job,), free)]] if free > 0 else [])
            for option in options:
                score = self._score(view, now, option)
                if score > worth * BETTER:
                    best, worth = option, score
            if not best:
                break
            groups = best
        return groups

    def _schedule(
        self, view: GroupView, now: JobStages, running: Sequence[int], machines: int, out: set[int] | None = None
    ) -> list[GroupPlan]:
        """Algorithm 1 for these running jobs and all others that are not in `out`."""
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
        return planned_groups_of(algorithm1(problem, self.stop, self.balance), jobs)

    def _problem(self, view: GroupView, now: JobStages, groups: Sequence[GroupPlan]) -> tuple[Problem, Plan]:
        jobs = [job for group in groups for job in group.members]
        place = {job: i for i, job in enumerate(jobs)}
        plan = Plan.of(len(jobs), [(tuple(place[job] for job in group.members), group.machines) for group in groups])
        return problem_of(view, jobs, now.machines, self.beta, alpha=self.alpha), plan

    def _score(self, view: GroupView, now: JobStages, groups: Sequence[GroupPlan]) -> float:
        """Use of the cluster; minus infinity if the grouping is not legal. Paper: harmony, Eq. 3 and 4."""
        if not groups:
            return 0.0
        problem, plan = self._problem(view, now, groups)
        return problem.score(plan) if problem.is_legal(plan) else -np.inf


def difference(comp_s: np.ndarray, comm_s: np.ndarray, own_comp_s: float, own_comm_s: float) -> np.ndarray:
    """The larger relative difference of iteration time and COMP:COMM ratio. Paper: harmony, Sec. IV-B4."""
    time = np.abs(comp_s + comm_s - own_comp_s - own_comm_s) / (own_comp_s + own_comm_s)
    ratio = np.abs(comp_s / comm_s - own_comp_s / own_comm_s) / (own_comp_s / own_comm_s)
    return np.maximum(time, ratio)
