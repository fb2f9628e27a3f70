"""The window of Grouping-v0 on any simulator of job groups."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Advance, AssignGroup, Decision, Preempt, SetMachines, SetSpill
from ...simulator.base.errors import InvalidDecision
from ...simulator.cluster.topology import Topology
from ...simulator.groups.group_config import GroupTerms
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part, Table
from ..registration import ENVIRONMENTS
from ..window import running_candidate, waiting_candidate
from .action_parts import machines_given, machines_opened, ratio_taken
from .columns import CANDIDATES, CLUSTER, GROUP, QUEUE, RUNNING
from .grouping_transition import turn
from .grouping_window import (
    JOIN,
    MAX_GROUP_SLOTS,
    MOST_MACHINES,
    OPEN,
    OPEN_KIND,
    PAUSE,
    PAUSE_KIND,
    SIZE,
    SPILLS,
    SWAP,
    group_candidate,
    group_choice,
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

    def action(self, decision: Decision) -> np.ndarray:
        """The action (candidate, machines, spill), int64 (3,), that plays `decision` in the present window.

        InvalidDecision: job or group are not shown, the machines are too many, or the ratio is no tenth.
        """
        s, w = self.simulator.state, self.window
        if isinstance(decision, Advance):
            return np.zeros(3, np.int64)
        machines = spill = 0
        if isinstance(decision, SetMachines):
            candidate = group_candidate(w, _group_slot(w, decision, decision.group))
            machines = _number(w, decision, decision.machines)
        elif isinstance(decision, AssignGroup):
            first, opens = _job_candidates(w, decision)
            if decision.group is None:
                candidate, machines = first + opens, _number(w, decision, decision.machines)
            elif decision.machines is not None:
                raise InvalidDecision(f"{decision!r}: the group is there; its machines are for SetMachines")
            else:
                candidate = first + 1 + _group_slot(w, decision, decision.group)
            spill = _value(w, decision, float(s.alpha_asked[decision.job]))
        elif isinstance(decision, SetSpill):
            slot = slot_of(w.running_job, decision)
            candidate = running_candidate(w, slot, 1 + _group_slot(w, decision, int(s.goal[decision.job])))
            spill = _value(w, decision, -1.0 if decision.ratio is None else decision.ratio)
        elif isinstance(decision, Preempt):
            candidate = running_candidate(w, slot_of(w.running_job, decision), PAUSE_KIND)
        else:
            raise InvalidDecision(f"{decision!r}: no candidate of this environment stands for it")
        if not w.legal[candidate]:
            raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now")
        return np.array([candidate, machines, spill], np.int64)

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of `action` (candidate, machines, spill), in order; numbers out of range become the nearest."""
        s, w = self.simulator.state, self.window
        candidate, machines, spill = (int(part) for part in action)
        if not 0 < candidate < w.candidates or not w.legal[candidate]:
            return [Advance()]
        what, job, group, other = group_choice(s, w, candidate)
        if what == SIZE:
            return [SetMachines(group, machines_given(s, w, group, machines))]
        if what == PAUSE:
            return [Preempt(job)]
        if what == OPEN:
            taken = machines_opened(s, w, job, machines)
            return [AssignGroup(job, None, taken), *_spilt(s, w, job, group, taken, spill)]
        own = int(s.group_machines[group])
        if what == SWAP:
            return [AssignGroup(other, group), *_spilt(s, w, other, group, own, spill), Preempt(job)]
        if what == JOIN:
            return [AssignGroup(job, group), *_spilt(s, w, job, group, own, spill)]
        return [_spill(ratio_taken(s, w, job, group, own, spill), job)]

    def decision(self, action: Any) -> Decision:
        """The first decision of an action."""
        return self.decisions(action)[0]


def _spilt(s: Any, w: np.record, job: int, group: int, machines: int, value: int) -> list[Decision]:
    if not s.spills:
        return []
    ratio = ratio_taken(s, w, job, group, machines, value)
    return [] if ratio == s.alpha_asked[job] else [_spill(ratio, job)]


def _spill(ratio: float, job: int) -> SetSpill:
    return SetSpill(job, None if ratio < 0.0 else ratio)


def _job_candidates(w: np.record, decision: AssignGroup) -> tuple[int, int]:
    if decision.job in w.waiting_job[: int(w.slots)]:
        return waiting_candidate(w, slot_of(w.waiting_job, decision), 0), OPEN_KIND
    return running_candidate(w, slot_of(w.running_job, decision), 0), open_kind(w)


def _group_slot(w: np.record, decision: Decision, group: int) -> int:
    slots = np.flatnonzero(w.shown_group[: int(w.group_slots)] == group)
    if group < 0 or len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show group {group}; give it more group_slots")
    return int(slots[0])


def _number(w: np.record, decision: Decision, machines: int | None) -> int:
    if machines is None or not 1 <= machines <= w.machine_choices:
        raise InvalidDecision(f"{decision!r}: expected 1 to {w.machine_choices} machines; or give it machine_choices")
    return int(machines)


def _value(w: np.record, decision: Decision, ratio: float) -> int:
    if ratio < 0.0:
        return 0
    value = round(ratio * TENTHS)
    if value / TENTHS != ratio or value > w.spill_choices - 2:
        known = ", ".join(f"{tenth / TENTHS:g}" for tenth in range(int(w.spill_choices) - 1)) or "by climbing only"
        raise InvalidDecision(f"{decision!r}: this environment has spill ratios {known}")
    return 1 + value
