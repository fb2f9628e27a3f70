"""`isolated`: every job has machines of its own, as the paper's first baseline (Sec. V-A), first come, first served.

The paper maximises the CPU's utilisation by a low degree of parallelism, and does not say which: here a job has
max(`dop`, what its memory needs) machines. 5 was calibrated on the
utilisation that the paper's numbers imply (.583) for `harmony-like` (`reproduce harmony-calibration`).

* `memory=gc`: memory is filled up to the threshold of the garbage collector; `limit`: as long as it does not run out.
  A job that needs more than there are has all machines. Nothing is spilled.
* `head=strict`: nobody overtakes; `skip`: whoever fits starts.
* A job that has lost machines to failures gets as many back as are free.
"""

from __future__ import annotations

from typing import Literal

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GroupTerms
from ...simulator.groups.group_view import GroupView
from .carry_out import Wanted, present
from .memory_need import expect_room, machines_for
from .planned import GroupPolicy

DOP = 5


class Isolated(GroupPolicy):
    """One job a group.

    Args:
        dop: machines of a job that needs no more, >= 1.
        head: whether one that does not fit holds up those behind it.
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
        """Every job must fit somewhere."""
        expect_room(self.name, view)

    def needs(self, view: GroupView, job: int) -> int:
        """Machines that a job is to have."""
        occupancy = view.config.gc_threshold if self.memory == "gc" and view.config.gc_threshold > 0.0 else 1.0
        memory = machines_for(view.config, view.input_bytes(job) + view.model_bytes(job), occupancy)
        return min(max(self.dop, memory), view.topology.num_machines)

    def wanted(self, view: GroupView) -> list[Wanted]:
        """Whoever runs, and those of the queue for whom there is room."""
        free = view.free_machines
        found = []
        for group in present(view):
            more = min(max(self.needs(view, group.members[0]) - group.machines, 0), free)
            free -= more
            found.append(Wanted(group.members, group.machines + more))
        for job in view.queue.tolist():
            machines = self.needs(view, job)
            if machines <= free:
                free -= machines
                found.append(Wanted((job,), machines))
            elif self.head == "strict":
                break
        return found
