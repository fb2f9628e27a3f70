"""All passes of an instant in a kernel: the decisions of `WorkloadPassPolicy` (mast.py), carried out.

It serves schedulers with one global queue that place workloads one at a time.
"""

from __future__ import annotations

import numpy as np

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.record.field_axes import CALL, Axis, Field
from ..passes.starts import start
from .auction import LENGTH, auction, units_of, write_queue
from .copies_needed import needs_copies
from .copies_plan import copy_on_demand
from .global_scheduler import rank
from .region_units import LEAVES, NONE, begin_scan, write_units

MOST_PASSES = 6  # at one instant
NOT_PLACED = -2
CLOSE_S = 1e-3  # tolerance of a round, as in policies/planning.py
MOST_ROUNDS = 6  # of decisions about tables at one instant


def placed_fields(jobs: Axis) -> list[Field]:
    """Workloads placed in a pass, and those that leave for them."""
    return [
        ("first_leaver", "i8", (jobs,), CALL),  # by place in the queue, -1: none; NOT_PLACED
        ("last_leaver", "i8", (jobs,), CALL),
        ("next_leaver", "i8", (jobs,), CALL),  # by workload: the next one that leaves for the same workload, -1
        ("queue_place", "i8", (jobs,), CALL),  # by workload: its place in the queue of the pass that placed it last
    ]


@kernel
def play_instant(s, m, round_s):
    """Modify both in place: make the passes of this instant."""
    passes = rounds = 0
    is_more = s.waiting > 0 and _is_due(s, round_s)
    while is_more and passes < MOST_PASSES:
        pending = rank(s, m)
        if write_queue(s, m, pending) > 0 and rounds < MOST_ROUNDS and _lacks_copies(s, m, pending):
            copy_on_demand(s, m)
            if m.n_table_decisions > 0:
                rounds += 1
                continue
        passes += 1
        is_more = False
        if pending > 0:
            write_units(s, m)
            begin_scan(m)
            is_more = _place_all(m, s.now_s)
            _carry_out(s, m)


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
