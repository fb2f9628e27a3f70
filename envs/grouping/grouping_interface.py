"""The window of Grouping-v0 on any simulator of job groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import AssignGroup, Decision, Preempt, SetMachines, SetSpill
from ...simulator.base.errors import InvalidDecision
from ...simulator.cluster.topology import Topology
from ...simulator.groups.group_config import GroupTerms
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part, Table
from ..registration import ENVIRONMENTS
from ..window import running_candidate, waiting_candidate
from .columns import CANDIDATES, CLUSTER, GROUP, QUEUE, RUNNING
from .grouping_transition import KERNELS
from .grouping_window import (
    MAX_GROUP_SLOTS,
    MOST_MACHINES,
    OPEN_KIND,
    PAUSE_KIND,
    SPILLS,
    group_candidate,
    open_kind,
    window_dtype,
)

SLOTS, RUNNING_SLOTS, GROUP_SLOTS = 12, 16, 6

TENTHS = 10.0


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
        others = Part(1 + machine_choices, CANDIDATES.takes_second), Part(spill_choices, CANDIDATES.takes_third)
        window |= {"more": {"groups": Table(group_slots, len(GROUP), 1)}, "slots": slots}
        kinds = 1 + group_slots, 3 + group_slots
        super().__init__(kinds=kinds, others=others, running_slots=running_slots, **window)
        w = self.window
        w.group_slots, w.machine_choices, w.spill_choices = group_slots, machine_choices, spill_choices

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Any:
        """The terms that hold for every policy: the simulator's defaults."""
        return GroupTerms()

    def attach(self, simulator: Any) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        super().attach(simulator)
        self.raw["pinned_group"] = -1

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: show the group of a policy's next decision first."""
        group = -1
        if isinstance(decision, AssignGroup | SetMachines) and decision.group is not None:
            group = decision.group
        elif isinstance(decision, SetSpill):
            group = int(self.simulator.state.goal[decision.job])
        self.raw["pinned_group"] = group

    def actions_for(self, decision: Any) -> Iterator[tuple[int, ...]]:
        """The actions (candidate, machines, spill) that may play `decision`."""
        s, w = self.simulator.state, self.window
        machines = min(getattr(decision, "machines", None) or 0, int(w.machine_choices))
        if isinstance(decision, SetMachines):
            yield group_candidate(w, _group_slot(w, decision, decision.group)), machines, 0
        elif isinstance(decision, AssignGroup):
            if decision.job in w.waiting_job[: int(w.slots)]:
                first, opens = waiting_candidate(w, slot_of(w.waiting_job, decision), 0), OPEN_KIND
            else:
                first, opens = running_candidate(w, slot_of(w.running_job, decision), 0), open_kind(w)
            kind = opens if decision.group is None else 1 + _group_slot(w, decision, decision.group)
            yield first + kind, machines, _value(float(s.alpha_asked[decision.job]))
        elif isinstance(decision, SetSpill):
            slot, group = slot_of(w.running_job, decision), int(s.goal[decision.job])
            candidate = running_candidate(w, slot, 1 + _group_slot(w, decision, group))
            yield candidate, 0, _value(-1.0 if decision.ratio is None else decision.ratio)
        elif isinstance(decision, Preempt):
            yield running_candidate(w, slot_of(w.running_job, decision), PAUSE_KIND), 0, 0

    def hint(self, decision: Any, likely: list[Any] | None) -> str:
        """What to do where no action plays `decision`."""
        w = self.window
        if not likely:
            return ""
        if isinstance(likely[-1], SetSpill):
            known = ", ".join(f"{tenth / TENTHS:g}" for tenth in range(int(w.spill_choices) - 1)) or "by climbing only"
            return f"; it has spill ratios {known}"
        return f"; expected 1 to {w.machine_choices} machines, as many as are free; or give it machine_choices"


def _group_slot(w: np.record, decision: Decision, group: int) -> int:
    slots = np.flatnonzero(w.shown_group[: int(w.group_slots)] == group)
    if group < 0 or len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show group {group}; give it more group_slots")
    return int(slots[0])


def _value(ratio: float) -> int:
    """The value of the third part that is nearest to a spill ratio."""
    return 0 if ratio < 0.0 else 1 + round(ratio * TENTHS)
