"""Policies among groups beside Harmony: one job a group, jobs in equal partitions, and random groups.

`isolated`: every job has its own machines (paper harmony, Sec. V-A), first come, first served: max(`dop`, what its
memory needs); the paper gives no degree of parallelism, 5 was calibrated (`reproduce harmony-calibration`).
* `memory=gc`: memory is filled up to the threshold of the garbage collector; `limit`: up to its size. A job that needs
  more than there is has all machines. Nothing is spilled.
* `head=strict`: no job overtakes; `skip`: jobs behind one that does not fit may start.
* A job that has lost machines to failures gets as many back as are free.

`naive-colocation`: jobs share machines without a plan (Sec. V-A). The machines are cut into equal partitions, as in the
authors' code; the rest stays idle. Each holds up to `jobs` jobs, first come, first served, in the emptiest one;
subtasks meet as they come (`execution=subtasks`: one COMP and one COMM at a time). Nothing is spilled: jobs that
together need more memory than their partition fail, wait again, and are not put together again. A job that needs more
memory than a partition is refused (`never_runs`). `partitions=None`: as many as leave every job alone below the
collector's threshold.

`random`: every waiting job, in a random order, joins a group or opens one, each with the same chance; a new group has
any number of the free machines, or, where none is free, of those of a random group, which keeps at least one. The rest
then goes to any group. No job pauses or moves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ...simulator.base.decisions import Decision
from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GroupTerms
from ...simulator.groups.group_view import GroupView
from ..planning import rng_of
from .group_policy import GroupPlan, GroupPolicy, present
from .problem import expect_room, machines_for, never_runs

DOP = 5


class Isolated(GroupPolicy):
    """One job a group. Setting: harmony, Sec. V-A.

    Args:
        dop: machines of a job that needs no more, >= 1.
        head: whether a job that does not fit blocks later ones.
        memory: how far memory may be filled.
    """

    def __init__(
        self, dop: int = DOP, head: Literal["strict", "skip"] = "strict", memory: Literal["gc", "limit"] = "gc"
    ) -> None:
        super().__init__("isolated", GroupTerms(spills=False))
        if dop < 1:
            raise InputError(f"policy isolated: dop = {dop}: expected at least 1 machine")
        self.dop, self.head, self.memory = dop, head, memory

    def begin(self, view: GroupView) -> None:
        """Raise InputError if a job fits nowhere."""
        expect_room(self.name, view)

    def needs(self, view: GroupView, job: int) -> int:
        """Machines of a job."""
        occupancy = view.config.gc_threshold if self.memory == "gc" and view.config.gc_threshold > 0.0 else 1.0
        memory = machines_for(view.config, view.input_bytes(job) + view.model_bytes(job), occupancy)
        return min(max(self.dop, memory), view.topology.num_machines)

    def wanted(self, view: GroupView) -> list[GroupPlan]:
        """Present groups, and queued jobs with room."""
        free = view.free_machines
        found = []
        for group in present(view):
            more = min(max(self.needs(view, group.members[0]) - group.machines, 0), free)
            free -= more
            found.append(GroupPlan(group.members, group.machines + more))
        for job in view.queue.tolist():
            machines = self.needs(view, job)
            if machines <= free:
                free -= machines
                found.append(GroupPlan((job,), machines))
            elif self.head == "strict":
                break
        return found


class Naive(GroupPolicy):
    """Equal partitions, several jobs each. Setting: harmony, Sec. V-A.

    Args:
        partitions: of the machines, >= 1; None: see the module.
        jobs: at most, in a partition, >= 1.
        execution: how subtasks meet.
    """

    def __init__(
        self, partitions: int | None = None, jobs: int = 2, execution: Literal["naive", "subtasks"] = "naive"
    ) -> None:
        super().__init__("naive-colocation", GroupTerms(execution=execution, spills=False))
        if jobs < 1 or (partitions is not None and partitions < 1):
            raise InputError(
                f"policy naive-colocation: partitions={partitions}, jobs={jobs}: expected at least 1 of each"
            )
        self.partitions, self.jobs = partitions, jobs

    def begin(self, view: GroupView) -> None:
        """Cut the machines into partitions."""
        machines = view.topology.num_machines
        ps = view.workload.ps
        assert ps is not None
        most_bytes, threshold = float((ps.input_bytes + ps.model_bytes).max()), view.config.gc_threshold or 1.0
        at_ease, largest = (machines_for(view.config, most_bytes, share) for share in (threshold, 1.0))
        self._count = self.partitions if self.partitions is not None else max(machines // at_ease, 1)
        self._size = machines // self._count
        if self._size < 1:
            raise InputError(
                f"policy naive-colocation: partitions = {self._count}: expected from 1 to {machines}, as there are "
                "machines"
            )
        for job in never_runs(view.workload, view.config, self._size):
            raise InputError(
                f"policy naive-colocation: job {view.workload.job_id[job]} can never run: it needs the memory of "
                f"{largest} machines, and partitions={self._count} leaves {self._size} each; expected fewer, more "
                "machines or more ram_gb"
            )
        self._failed: set[frozenset[int]] = set()
        self._times = 0

    def look(self, view: GroupView) -> None:
        """Remember jobs that ran out of memory together; the record does not keep them all."""
        self._failed.update(crowd for crowd in view.failed_together() if len(crowd) > 1)
        times = int(view.record["out_of_memory"])
        if times > self._times:
            waiting = set(view.queue.tolist())
            for group in self.before:
                left = frozenset(job for job in group.members if view.stage(job) != "done")
                if len(left) > 1 and left <= waiting:
                    self._failed.add(left)
        self._times = times

    def wanted(self, view: GroupView) -> list[GroupPlan]:
        """Present groups, and queued jobs with room."""
        free = view.free_machines
        found = []
        for group in present(view):
            more = min(max(self._size - group.machines, 0), free)
            free -= more
            found.append(GroupPlan(group.members, group.machines + more))
        for job in view.queue.tolist():
            if len(found) < self._count and free >= self._size:
                free -= self._size
                found.append(GroupPlan((job,), self._size))
                continue
            rooms = [place for place, group in enumerate(found) if self._admits(group, job)]
            if rooms:
                place = min(rooms, key=lambda place: (len(found[place].members), place))
                found[place] = GroupPlan((*found[place].members, job), found[place].machines)
            elif all(len(group.members) >= self.jobs for group in found):
                break
        return found

    def _admits(self, group: GroupPlan, job: int) -> bool:
        together = {*group.members, job}
        return len(together) <= self.jobs and not any(crowd <= together for crowd in self._failed)


class AnyGroup(GroupPolicy):
    """Random groups."""

    def __init__(self) -> None:
        super().__init__("random")

    def why(self, view: GroupView, decision: Decision) -> str:
        """The same for each decision."""
        return "drawn at random"

    def wanted(self, view: GroupView) -> list[GroupPlan]:
        """Present groups, and the queue anywhere."""
        rng = rng_of(view)
        groups, free = present(view), view.free_machines
        for job in rng.permutation(view.queue).tolist():
            donors = [place for place, group in enumerate(groups) if group.machines > 1]
            options = len(groups) + (free > 0 or len(donors) > 0)
            if not options:
                break
            place = int(rng.integers(options))
            if place < len(groups):
                groups[place] = replace(groups[place], members=(*groups[place].members, job))
            elif free:
                machines = int(rng.integers(1, free + 1))
                groups.append(GroupPlan((job,), machines))
                free -= machines
            else:
                donor = donors[int(rng.integers(len(donors)))]
                machines = int(rng.integers(1, groups[donor].machines))
                groups[donor] = replace(groups[donor], machines=groups[donor].machines - machines)
                groups.append(GroupPlan((job,), machines))
        if groups and free:
            place = int(rng.integers(len(groups)))
            groups[place] = replace(groups[place], machines=groups[place].machines + free)
        return groups
