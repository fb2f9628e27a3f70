"""What the policies that know subtasks' times have in common: new jobs are profiled first (paper harmony, Sec. IV-B1).

A new job is executed in a group until its metrics are known; it rides along, and is not counted when groups are
planned. It is sent to a group that profiles another one already, else to that with the fewest machines (`profile`). The
paper does not say what happens while there is no group. Here groups of 16 machines are opened for new jobs (of all, if
there are fewer), as many as fit and are needed, and the jobs are dealt out evenly. The first plan then waits until all
are profiled that came before the first was. Where nothing is spilled, only jobs that fit are sent anywhere. Where
metrics are known on arrival (`profile_iterations=0`) none of this
happens.

Machines that fail: a group goes on with what it has left. A plan is made for the machines that are up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...simulator.base.decisions import Decision
from ...simulator.groups.group_config import GB, MB
from ...simulator.groups.group_view import GroupView
from .carry_out import Wanted, present
from .memory_need import machines_for
from .planned import GroupPolicy
from .problem import BETA, REFERENCE_MACHINES, Plan, Problem

ALPHA = 0.34  # the paper's mean share of inputs on disk (Sec. V-G)


@dataclass(frozen=True)
class Present:
    """The jobs at an instant, by what is known of them. Lists of jobs are in order of arrival.

    Attributes:
        machines: that are up.
        groups: the settled jobs and the machines of the groups that have some.
        settled: jobs that are in a group for good.
        fresh: jobs that have just been profiled, in whatever group they were.
        waiting: profiled and paused jobs that are in no group, fresh ones not among them.
        riding: jobs that are being profiled.
        new: jobs that are still to be.
    """

    machines: int
    groups: list[Wanted]
    settled: list[int]
    fresh: list[int]
    waiting: list[int]
    riding: list[int]
    new: list[int]

    @property
    def free(self) -> int:
        """Machines of no group that has settled jobs."""
        return self.machines - sum(group.machines for group in self.groups)


class ProfiledPolicy(GroupPolicy):
    """Plans for the jobs whose metrics are known. Write `plan`."""

    def begin(self, view: GroupView) -> None:
        """Nobody has been seen."""
        self._rode: frozenset[int] = frozenset()
        self._rides: frozenset[int] = frozenset()
        self._first: frozenset[int] = frozenset()
        self._awaited: frozenset[int] = frozenset()

    def look(self, view: GroupView) -> None:
        """Who rode along when the last instant ended is fresh, if its metrics are known now."""
        self._rode, self._first = self._rides, self._awaited

    def plan(self, view: GroupView, now: Present) -> list[Wanted]:
        """The groups of jobs that are settled, fresh or waiting, of at most `now.machines` machines."""
        raise TypeError(f"{type(self).__name__} does not say how it groups jobs: define plan(self, view, now)")

    def wanted(self, view: GroupView) -> list[Wanted]:
        """The plan, with the jobs that are profiled."""
        now = self._present(view)
        self._rides = frozenset((*now.riding, *now.new))
        self._awaited = frozenset()
        if not now.machines:
            return []
        if not now.settled and ((not now.fresh and not now.waiting) or self._first & {*now.riding}):
            groups = present(view)
            self._awaited = self._first if now.fresh else self._rides
            self._rides |= {*now.fresh}
        else:
            groups = _with_riders(view, self.plan(view, now), now.riding)
        riding = {*now.riding}
        left = now.machines - sum(group.machines for group in groups)
        lost = [job for job in now.riding if not any(job in group.members for group in groups)]
        return _with_new(view, groups, sorted(lost + now.new), riding, left, self.profiles_in)

    def why(self, view: GroupView, decision: Decision) -> str:
        """As of any policy that wants groups, and how well the cluster is used in these, by Eqs. (3) and (4)."""
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

    def profiles_in(self, group: Wanted) -> int:
        """Groups are asked to profile in ascending order of this."""
        return group.machines

    def _present(self, view: GroupView) -> Present:
        queue, running = view.queue.tolist(), view.running.tolist()
        riding = [job for job in running if not view.is_profiled(job)]
        fresh = [job for job in queue + running if job in self._rode and view.is_profiled(job)]
        settled = sorted({*running} - {*riding} - {*fresh})
        inside = {*settled}
        groups = [
            replace(group, members=tuple(job for job in group.members if job in inside)) for group in present(view)
        ]
        profiled = [job for job in queue if view.is_profiled(job)]
        return Present(
            machines=view.machines,
            groups=[group for group in groups if group.members],
            settled=settled,
            fresh=sorted(fresh),
            waiting=[job for job in profiled if job not in {*fresh}],
            riding=riding,
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

    Args:
        view: the present.
        jobs: which.
        machines: to share among them.
        beta: worth of the network's utilisation beside the CPU's.
        counts_disk: a cycle is at least as long as the disks need for what is above the collector's threshold.
        alpha: share of the inputs that may be on disk, 0 to 1: a group is legal if the rest, and all models, fit into
            its memory; below the collector's threshold where alpha is below 1. Where nothing is spilled it is 0.
    """
    s, config = view.simulator.plain.record, view.config
    alpha = alpha if view.simulator.rule.spills else 0.0
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


def alone(view: GroupView, now: Present) -> list[Wanted]:
    """What is wanted where no grouping is legal: one job, the first that runs or waits, on all machines.

    Its model is on disk too, as far as it must.
    """
    return [Wanted((min(now.settled or now.fresh or now.waiting),), now.machines)]


def _with_riders(view: GroupView, planned: list[Wanted], riding: Sequence[int]) -> list[Wanted]:
    """Whoever is being profiled goes on beside most of those that it is with now."""
    group_of = view.group_of_jobs
    groups = list(planned)
    for job in riding:
        mates = [sum(group_of[mate] == group_of[job] for mate in group.members) for group in planned]
        if mates and max(mates) > 0:
            place = mates.index(max(mates))
            groups[place] = replace(groups[place], members=(*groups[place].members, job))
    return groups


def _with_new(
    view: GroupView,
    groups: list[Wanted],
    new: Sequence[int],
    riding: set[int],
    free: int,
    order: Callable[[Wanted], int],
) -> list[Wanted]:
    """New jobs are sent to groups to be profiled: where nothing is spilled those that fit, and the others wait."""
    if not new:
        return groups
    if not groups:
        return _first_groups(view, new, free)
    found = list(groups)
    profiling = [place for place, group in enumerate(groups) if riding.intersection(group.members)]
    place = min(profiling or range(len(groups)), key=lambda place: (order(groups[place]), place))
    for job in new:
        grown = replace(found[place], members=(*found[place].members, job))
        if _fits(view, grown):
            found[place] = grown
    return found


def _first_groups(view: GroupView, new: Sequence[int], free: int) -> list[Wanted]:
    """Groups to profile in while there are none, with new jobs dealt out evenly; one of the first job if none fits."""
    size = min(REFERENCE_MACHINES, free)
    count = min(len(new), free // size) if size else 0
    groups = [Wanted((), size)] * count
    for job in new:
        for place in sorted(range(count), key=lambda place: (len(groups[place].members), place)):
            grown = replace(groups[place], members=(*groups[place].members, job))
            if _fits(view, grown):
                groups[place] = grown
                break
    groups = [group for group in groups if group.members]
    return groups or ([Wanted((new[0],), free)] if free else [])


def _fits(view: GroupView, group: Wanted) -> bool:
    """Whether a group has the memory for its jobs, where nothing is spilled."""
    if view.simulator.rule.spills:
        return True
    raw_bytes = sum(view.input_bytes(job) + view.model_bytes(job) for job in group.members)
    return machines_for(view.config, raw_bytes) <= group.machines
