"""All passes of an instant in a kernel: the decisions of `WorkloadPassPolicy` (mast.py), carried out.

It serves schedulers with one global queue that place workloads one at a time. Python decides about tables: where a
workload may need copies the kernel stops before that pass, and goes on with it after `copies_on_demand.on_demand`.
"""

from __future__ import annotations

import numpy as np

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.record.field_axes import CALL, Axis, Field
from ..passes.starts import start
from .auction import LENGTH, auction, units_of, write_queue
from .copies_needed import needs_copies
from .global_scheduler import rank
from .region_units import LEAVES, NONE, begin_scan, write_units

MOST_PASSES = 6  # at one instant
NOT_PLACED = -2
CLOSE_S = 1e-3  # tolerance of a round, as in policies/planning.py
MOST_ROUNDS = 6  # of decisions about tables at one instant
# Of `passes`: those made, and rounds of decisions about tables; whether the next pass needs none, and there is one.
PASSES, ROUNDS, IS_SERVED, IS_MORE = range(4)


def placed_fields(jobs: Axis) -> list[Field]:
    """Workloads placed in a pass, and those that leave for them."""
    return [
        ("first_leaver", "i8", (jobs,), CALL),  # by place in the queue, -1: none; NOT_PLACED
        ("last_leaver", "i8", (jobs,), CALL),
        ("next_leaver", "i8", (jobs,), CALL),  # by workload: the next one that leaves for the same workload, -1
        ("queue_place", "i8", (jobs,), CALL),  # by workload: its place in the queue of the pass that placed it last
        ("passes", "i8", (4,)),  # at this instant, from PASSES on
    ]


@kernel
def play_instant(s, m, round_s, goes_on):
    """Modify both in place: make the passes of this instant, or go on with them. False: it stops before a pass."""
    if not goes_on:
        m.passes[PASSES] = m.passes[ROUNDS] = m.passes[IS_SERVED] = 0
        m.passes[IS_MORE] = s.waiting > 0 and _is_due(s, round_s)
    while m.passes[IS_MORE] and m.passes[PASSES] < MOST_PASSES:
        pending = rank(s, m)
        is_open = m.passes[ROUNDS] < MOST_ROUNDS and not m.passes[IS_SERVED]
        if write_queue(s, m, pending) > 0 and is_open and _lacks_copies(s, m, pending):
            return False
        m.passes[PASSES] += 1
        m.passes[IS_SERVED] = m.passes[IS_MORE] = 0
        if pending > 0:
            write_units(s, m)
            begin_scan(m)
            m.passes[IS_MORE] = _place_all(m, s.now_s)
            _carry_out(s, m)
    return True


def lacking(m: np.void) -> list[int]:
    """The workloads that no region could run when it stopped."""
    jobs = m["queued"][: int(m["option"][LENGTH])]
    found: list[int] = np.sort(jobs[m["bits"][jobs] == 0]).tolist()
    return found


def served(m: np.void, is_any: bool) -> None:
    """Modify `m`: Python has decided about their tables; `is_any`: something."""
    m["passes"][ROUNDS if is_any else IS_SERVED] += 1


@kernel
def _is_due(s, round_s):
    return round_s == 0.0 or abs(s.now_s - np.rint(s.now_s / round_s) * round_s) < CLOSE_S


@kernel
def _lacks_copies(s, m, pending):
    for at in range(pending):
        if m.bits[m.queued[at]] == 0 and needs_copies(s, m.queued[at]):
            return True
    return False


@kernel
def _place_all(m, now_s):
    """Modify `m` in place: place the queue. True if a running workload is stopped."""
    for at in range(m.option[LENGTH]):
        m.first_leaver[at] = NOT_PLACED
    stops = False
    at = auction(m, 0, now_s)
    while at < m.option[LENGTH]:
        m.first_leaver[at] = m.last_leaver[at] = NONE
        m.queue_place[m.queued[at]] = at
        for i in range(m.count[LEAVES]):
            leaver = m.leaving[i]
            earlier = m.queue_place[leaver]
            if earlier < at and m.queued[earlier] == leaver and m.first_leaver[earlier] != NOT_PLACED:
                # One placed in this very pass does not start; workloads that left for it are stopped all the same.
                _append(m, at, m.first_leaver[earlier], m.last_leaver[earlier])
                m.first_leaver[earlier] = NOT_PLACED
            else:
                m.next_leaver[leaver] = NONE
                _append(m, at, leaver, leaver)
        stops |= m.first_leaver[at] != NONE
        at = auction(m, at + 1, now_s)
    return stops


@kernel
def _append(m, at, first, last):
    """Modify `m` in place: append these to the leavers of a place; -1: none."""
    if first == NONE:
        return
    if m.first_leaver[at] == NONE:
        m.first_leaver[at] = first
    else:
        m.next_leaver[m.last_leaver[at]] = first
    m.last_leaver[at] = last


@kernel
def _carry_out(s, m):
    """Modify `s`: start placed workloads, after the stops that each needs."""
    for at in range(m.option[LENGTH]):
        if m.first_leaver[at] == NOT_PLACED:
            continue
        leaver = m.first_leaver[at]
        while leaver != NONE:
            lifecycle.preempt(s, leaver)
            leaver = m.next_leaver[leaver]
        s.gang_size = units_of(m, m.queued[at])
        for i in range(s.gang_size):
            s.gang[i] = m.taken[i]
        start(s, m.queued[at])
