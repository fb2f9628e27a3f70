"""`random` where jobs run in groups: legal decisions drawn from the seed.

Every job that waits, in a random order, joins one of the groups or opens one, each with the same chance. A new group
has any number of the free machines with the same chance, or, where none is free, of those of a group drawn at random,
which keeps at least one. What is left then goes to any group. Nobody pauses or moves.
"""

from __future__ import annotations

from dataclasses import replace

from ...simulator.base.decisions import Decision
from ...simulator.groups.group_view import GroupView
from .carry_out import Wanted, present
from .planned import GroupPolicy


class AnyGroup(GroupPolicy):
    """Random groups."""

    def __init__(self) -> None:
        super().__init__("random")

    def why(self, view: GroupView, decision: Decision) -> str:
        """Chance."""
        return "drawn at random"

    def wanted(self, view: GroupView) -> list[Wanted]:
        """Whoever runs where it runs, and the queue anywhere."""
        rng = self.rng(view)
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
                groups.append(Wanted((job,), machines))
                free -= machines
            else:
                donor = donors[int(rng.integers(len(donors)))]
                machines = int(rng.integers(1, groups[donor].machines))
                groups[donor] = replace(groups[donor], machines=groups[donor].machines - machines)
                groups.append(Wanted((job,), machines))
        if groups and free:
            place = int(rng.integers(len(groups)))
            groups[place] = replace(groups[place], machines=groups[place].machines + free)
        return groups
