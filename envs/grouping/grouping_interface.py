"""The window of Grouping-v0 on any simulator of job groups: what an agent would see and may do there now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import AssignGroup, Decision, SetMachines, SetSpill
from ...simulator.cluster.topology import Topology
from ...simulator.groups.group_config import GroupTerms
from ..agent_interface import AgentInterface
from ..observation_layout import Part, Table
from ..registration import ENVIRONMENTS
from .codec import decode, encode
from .grouping_transition import turn
from .grouping_window import MAX_GROUP_SLOTS, MOST_MACHINES, SPILLS, window_dtype
from .observation import CANDIDATES, CLUSTER, GROUP_COLUMNS, QUEUE, RUNNING, SECOND_COLUMN, THIRD_COLUMN

SLOTS, RUNNING_SLOTS, GROUP_SLOTS = 12, 16, 6


class GroupingInterface(AgentInterface):
    """The window of Grouping-v0; the arguments are those of `GroupingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = (CLUSTER, QUEUE, RUNNING, CANDIDATES)
    turn = staticmethod(turn)
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
        super().__init__(
            kinds=(1 + group_slots, 3 + group_slots),
            others=(Part(1 + machine_choices, SECOND_COLUMN), Part(spill_choices, THIRD_COLUMN)),
            more={"groups": Table(group_slots, GROUP_COLUMNS, 1)},
            slots=slots,
            running_slots=running_slots,
            **window,
        )
        w = self.window
        w.group_slots, w.machine_choices, w.spill_choices = group_slots, machine_choices, spill_choices

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Any:
        """What holds, whoever decides: what the simulator has unless told otherwise."""
        return GroupTerms()

    def lay(self, simulator: Any) -> None:
        """Start looking at a run, whatever its state; its window is put into this one's order."""
        super().lay(simulator)
        self.plain["focus_group"] = -1

    def dictate(self, decision: Decision | None) -> None:
        """Modify the window: the group that a policy is about to decide about comes first."""
        group = -1
        if isinstance(decision, AssignGroup | SetMachines) and decision.group is not None:
            group = decision.group
        elif isinstance(decision, SetSpill):
            group = int(self.simulator.state.goal[decision.job])
        self.plain["focus_group"] = group

    def action(self, decision: Decision) -> np.ndarray:
        """The action (candidate, machines, spill), int64 (3,), that plays `decision`; see `codec.encode`."""
        return encode(self.simulator, self.window, decision)  # type: ignore[arg-type]

    def decisions(self, action: Any) -> list[Decision]:
        """What an action stands for now, in order; see `codec.decode`."""
        return decode(self.simulator, self.window, action)  # type: ignore[arg-type]

    def decision(self, action: Any) -> Decision:
        """The first decision that an action stands for now."""
        return self.decisions(action)[0]
