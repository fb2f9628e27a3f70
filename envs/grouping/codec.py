"""Actions and decisions, one to the other, for Grouping-v0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import Advance, AssignGroup, Decision, Preempt, SetMachines, SetSpill
from ...simulator.base.errors import InvalidDecision
from ...simulator.groups.group_simulator import GroupSimulator
from ..slots import slot_of
from .carry import machines_given, machines_opened, ratio_found

TENTHS = 10.0


def encode(simulator: GroupSimulator, window: np.record, decision: Decision) -> np.ndarray:
    """The action (candidate, machines, spill), int64 (3,), that plays `decision` in the window as it stands.

    Raises:
        InvalidDecision: the window offers no such action: job or group are not shown, the machines are more than can be
            asked for, or the ratio is no tenth.
    """
    w = window
    if isinstance(decision, Advance):
        return np.zeros(3, np.int64)
    machines = spill = 0
    if isinstance(decision, SetMachines):
        candidate = _first_group(w) + _group_slot(w, decision, decision.group)
        machines = _number(w, decision, decision.machines)
    elif isinstance(decision, AssignGroup):
        first, opens = _job_candidates(w, decision)
        if decision.group is None:
            candidate, machines = first + opens, _number(w, decision, decision.machines)
        else:
            candidate = _join_candidate(w, decision, first, opens, decision.group)
        spill = _value(w, decision, float(simulator.state.alpha_asked[decision.job]))
    elif isinstance(decision, SetSpill):
        first = _first_running(w) + _per_running(w) * slot_of(w.running_job, decision)
        candidate = first + 1 + _group_slot(w, decision, int(simulator.state.goal[decision.job]))
        spill = _value(w, decision, -1.0 if decision.ratio is None else decision.ratio)
    elif isinstance(decision, Preempt):
        candidate = _first_running(w) + _per_running(w) * slot_of(w.running_job, decision)
    else:
        raise InvalidDecision(f"{decision!r}: no candidate of this environment stands for it")
    if not w.legal[candidate]:
        raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now")
    return np.array([candidate, machines, spill], np.int64)


def decode(simulator: GroupSimulator, window: np.record, action: Any) -> list[Decision]:
    """What `action` (candidate, machines, spill) stands for in the window as it was last filled: decisions, in order.

    Advance for the candidate 0 and for one that is not legal; numbers that do not apply are the nearest that do.
    """
    candidate, machines, spill = (int(part) for part in action)
    w, s = window, simulator.state
    if not 0 < candidate < _first_group(w) + int(w.group_slots) or not w.legal[candidate]:
        return [Advance()]
    machines = min(machines, int(w.machine_choices))
    rows = simulator.records, w.reshape(1)
    if candidate >= _first_group(w):
        group = int(w.shown_group[candidate - _first_group(w)])
        own = int(s.group_machines[group])
        room = int(w.available) + (own if s.n_goal[group] > 0 else 0)
        taken = _clipped(machines, room) if machines > 0 else int(machines_given(*rows, 0, group))
        return [SetMachines(group, taken)]
    if candidate >= _first_running(w):
        slot, kind = divmod(candidate - _first_running(w), _per_running(w))
        job, opens, pauses = int(w.running_job[slot]), 1 + int(w.group_slots), 0
    else:
        slot, kind = divmod(candidate - 1, 1 + int(w.group_slots))
        job, opens, pauses = int(w.waiting_job[slot]), 0, -1
    if kind == pauses:
        return [Preempt(job)]
    if kind == opens:
        taken = _clipped(machines, int(w.available)) if machines > 0 else int(machines_opened(*rows, 0, job))
        return [AssignGroup(job, None, taken), *_spilt(simulator, rows, job, -1, taken, spill)]
    if kind == opens + 1 and pauses == 0:
        group, other = int(s.goal[job]), int(w.partner[slot])
        ratio = _spilt(simulator, rows, other, group, int(s.group_machines[group]), spill)
        return [AssignGroup(other, group), *ratio, Preempt(job)]
    group = int(w.shown_group[kind - 1])
    if group == s.goal[job]:
        return [_spill(float(ratio_found(*rows, 0, job, group, int(s.group_machines[group]), spill)), job)]
    return [AssignGroup(job, group), *_spilt(simulator, rows, job, group, int(s.group_machines[group]), spill)]


def _spilt(
    simulator: GroupSimulator, rows: tuple[Any, Any], job: int, group: int, machines: int, value: int
) -> list[Decision]:
    """The decision about a job's spill ratio that goes with its place; none where it is as asked already."""
    if not simulator.rule.spills:
        return []
    ratio = float(ratio_found(*rows, 0, job, group, machines, value))
    if ratio == simulator.state.alpha_asked[job]:
        return []
    return [_spill(ratio, job)]


def _spill(ratio: float, job: int) -> SetSpill:
    return SetSpill(job, None if ratio < 0.0 else ratio)


def _first_running(w: np.record) -> int:
    return 1 + (1 + int(w.group_slots)) * int(w.slots)


def _per_running(w: np.record) -> int:
    return 3 + int(w.group_slots)


def _first_group(w: np.record) -> int:
    return _first_running(w) + _per_running(w) * int(w.running_slots)


def _job_candidates(w: np.record, decision: AssignGroup) -> tuple[int, int]:
    """The first candidate of the decision's job, and which of them opens a group."""
    if decision.job in w.waiting_job[: int(w.slots)]:
        return 1 + (1 + int(w.group_slots)) * slot_of(w.waiting_job, decision), 0
    return _first_running(w) + _per_running(w) * slot_of(w.running_job, decision), 1 + int(w.group_slots)


def _join_candidate(w: np.record, decision: AssignGroup, first: int, opens: int, group: int) -> int:
    if decision.machines is not None:
        raise InvalidDecision(f"{decision!r}: the group is there; its machines are for SetMachines")
    return first + 1 + _group_slot(w, decision, group)


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
    """The value of the third part that asks for a spill ratio; negative: for climbing."""
    if ratio < 0.0:
        return 0
    value = round(ratio * TENTHS)
    if value / TENTHS != ratio or value > w.spill_choices - 2:
        known = ", ".join(f"{tenth / TENTHS:g}" for tenth in range(int(w.spill_choices) - 1)) or "by climbing only"
        raise InvalidDecision(f"{decision!r}: this environment has spill ratios {known}")
    return 1 + value


def _clipped(machines: int, most: int) -> int:
    return max(1, min(machines, most))
