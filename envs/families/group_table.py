"""Groups of jobs in a window, and what decisions about them share: who may decide what at this instant, and the clock.

At one instant a job changes its place at most once, as a group its machines and a job its spill ratio, so every instant
ends. A policy's next decision (`pinned_job`, `pinned_group`) is exempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...simulator.base.codes import FINISHED, HORIZON
from ...simulator.base.decisions import SetSpill
from ...simulator.base.errors import InvalidDecision
from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.decide import available_machines
from ...simulator.groups.kernels.group_clock import advance
from ..step import always
from ..window import fill_slots
from .family import Family
from .group_numbers import TENTHS
from .group_offers import OWN
from .group_sums import SUMS, sum_groups
from .job_rows import Rows, leave_nothing

MAX_GROUP_SLOTS = 32
OPTIONS = ("group_slots", "machine_choices", "spill_choices")
PRESENT = ("pinned_group", "expert_job", "groups_shown", "available", "most_machines", "may_spill")
FIELDS: list[tuple[Any, ...]] = [(name, "i8") for name in OPTIONS + PRESENT]
FIELDS += [("shown_group", "i8", (MAX_GROUP_SLOTS,)), ("own", "f8", (len(OWN),)), *SUMS]


@kernel
def look(s, w, m):
    """Modify window `w`: show jobs and groups, with the sums of each group."""
    fill_slots(s, w)
    w.expert_job = w.pinned_job  # the job of a policy's next decision
    sum_groups(s, w)
    _fill_groups(s, w)
    w.available = available_machines(s)
    w.most_machines = w.may_spill = 0  # of the legal candidates
    w.can_act = w.has_acted  # after a first decision only candidate 0 ends the instant


@kernel
def _fill_groups(s, w):
    """Modify `w`: show the groups that have jobs; the pinned one before all others, even without jobs."""
    slot = 0
    pinned = w.pinned_group
    if 0 <= pinned < s.is_group.size and s.is_group[pinned]:
        w.shown_group[0] = pinned
        slot = 1
    for group in range(s.group_end):
        if slot == w.group_slots:
            break
        if s.is_group[group] and s.n_goal[group] > 0 and group != pinned:
            w.shown_group[slot] = group
            slot += 1
    w.groups_shown = slot
    for empty in range(slot, w.group_slots):
        w.shown_group[empty] = NONE


@kernel
def may_move(s, w, job):
    """Whether a job may change its place: it has not at this instant."""
    return s.is_dirty_job[job] == 0 or job == w.pinned_job


@kernel
def mark_going(s, w, candidate):
    """Modify `w`: a job can go to a group, with a spill ratio if there are any."""
    w.legal[candidate] = 1
    w.may_spill |= s.spills
    w.can_act = 1


@kernel
def may_pass(s):
    """True if time can pass: a job has a group, or a job or a machine is to come."""
    return s.running > 0 or s.next_arrival < s.n_jobs or s.down_machines > 0


@kernel
def may_advance(s, w):
    """True if candidate 0 is legal: time can pass, or the episode has ended, where it does nothing."""
    return may_pass(s) or w.code == FINISHED or w.code == HORIZON


@kernel
def go(s, w, m):
    """Modify `s` and `w`: run to the next decision point."""
    w.has_acted = 0
    w.code = advance(s)


@kernel
def leave(s, w, m):
    """Modify `s` and `w`: time passes, if it can."""
    if may_pass(s):
        go(s, w, m)


@kernel
def follow(s, w, m):
    """The code of the last stop stays."""


@kernel
def forget(w):
    """Modify the window: no policy names a group."""
    w.pinned_group = NONE


@kernel
def used_machines(s):
    """Machines of groups."""
    return s.n_machines - s.free_machines - s.down_machines


@kernel
def _slots(w):
    return w.group_slots


@kernel
def _shown(w):
    return w.groups_shown


@kernel
def _one(w):
    return 1


@kernel
def _group(w, slot):
    return w.shown_group[slot]


def group_rows(columns: Any, write: Callable[..., Any]) -> Rows:
    """The table `groups`, of the groups in the window: a candidate each."""
    return Rows("groups", columns, _slots, _shown, _one, _group, write, leave_nothing)


class GroupFamily(Family):
    """A decision about jobs in groups."""

    may_act = staticmethod(always)

    def hint(self, window: Any, decision: Any, likely: list[Any] | None) -> str:
        """Which spill ratios, or numbers of machines, there are."""
        w = window.window
        if not likely:
            return ""
        if isinstance(likely[-1], SetSpill):
            known = ", ".join(f"{tenth / TENTHS:g}" for tenth in range(int(w.spill_choices) - 1)) or "by climbing only"
            return f"; it has spill ratios {known}"
        return f"; expected 1 to {w.machine_choices} machines, as many as are free; or give it machine_choices"


def machines_of(window: Any, decision: Any) -> int:
    """The second part of an action for a decision: its machines, at most as many as the action can say."""
    return min(decision.machines or 0, int(window.window.machine_choices))


def group_slot(window: Any, decision: Any, group: int) -> int:
    """The slot that shows the group of a decision; InvalidDecision if none does."""
    w = window.window
    slots = np.flatnonzero(w.shown_group[: int(w.group_slots)] == group)
    if group < 0 or len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show group {group}; give it more group_slots")
    return int(slots[0])
