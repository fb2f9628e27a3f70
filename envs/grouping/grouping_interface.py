"""The window of Grouping-v0 on any simulator of job groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import AssignGroup, Decision, SetMachines, SetSpill
from ...simulator.cluster.topology import Topology
from ...simulator.groups.group_config import GroupTerms
from ..agent_interface import AgentInterface
from ..families import group_table as groups
from ..families.composing import composed, window_of
from ..families.group_enter import Joining, Moving, MovingOut, Opening
from ..families.group_leave import Pausing, Swapping
from ..families.group_numbers import MOST_MACHINES, SPILLS, write_parts
from ..families.group_size import Sizing
from ..families.group_table import FIELDS, MAX_GROUP_SLOTS
from ..observation_layout import Part, Table
from ..registration import ENVIRONMENTS
from .columns import CANDIDATES, CLUSTER, GROUP, QUEUE, RUNNING
from .observation import FIELDS as TIMES_FIELDS
from .observation import TABLES, observe_cluster

SLOTS, RUNNING_SLOTS, GROUP_SLOTS = 12, 16, 6
FAMILIES = (Opening, Joining, Pausing, Moving, MovingOut, Swapping, Sizing)
KERNELS = composed(
    FAMILIES,
    TABLES,
    CANDIDATES,
    look=groups.look,
    cluster=observe_cluster,
    cluster_columns=len(CLUSTER),
    parts=write_parts,
    may_advance=groups.may_advance,
    leave=groups.leave,
    follow=groups.follow,
    go=groups.go,
    forget=groups.forget,
    used=groups.used_machines,
)


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    return window_of(FAMILIES, (*FIELDS, *TIMES_FIELDS), kinds=len(FAMILIES) + 2 * (MAX_GROUP_SLOTS - 1))


class GroupingInterface(AgentInterface):
    """The window of Grouping-v0; the arguments are those of `GroupingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "groups": GROUP, "candidates": CANDIDATES}
    )
    kernels = KERNELS
    orders = ("arrival", "shortest")

    def __init__(
        self,
        *,
        topology: Topology | str | dict[str, Any] = ENVIRONMENTS["clustergym/Grouping-v0"].defaults["topology"],
        group_slots: int = GROUP_SLOTS,
        machine_choices: int | None = None,
        spill_choices: int = SPILLS,
        slots: int = SLOTS,
        running_slots: int = RUNNING_SLOTS,
        **window: Any,
    ) -> None:
        check_range("group_slots", group_slots, 1, MAX_GROUP_SLOTS)
        if machine_choices is None:
            machine_choices = min(Topology.load(topology).num_machines, MOST_MACHINES)
        check_range("machine_choices", machine_choices, 0, MOST_MACHINES)
        check_range("spill_choices", spill_choices, 1, SPILLS)
        joins = Joining(group_slots), Pausing(), Moving(group_slots)
        window |= {"families": (Opening(), *joins, MovingOut(), Swapping(), Sizing())}
        window |= {"more": {"groups": Table(group_slots, len(GROUP), 1)}, "slots": slots}
        others = Part(1 + machine_choices, CANDIDATES.takes_second), Part(spill_choices, CANDIDATES.takes_third)
        super().__init__(others=others, running_slots=running_slots, **window)
        w = self.window
        w.group_slots, w.machine_choices, w.spill_choices = group_slots, machine_choices, spill_choices

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Any:
        """The terms that hold for every policy: the simulator's defaults."""
        return GroupTerms()

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: show the group of a policy's next decision first."""
        group = -1
        if isinstance(decision, AssignGroup | SetMachines) and decision.group is not None:
            group = decision.group
        elif isinstance(decision, SetSpill):
            group = int(self.simulator.state.goal[decision.job])
        self.raw["pinned_group"] = group
