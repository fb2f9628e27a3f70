"""All passes of an instant in a kernel: the decisions of `WorkloadPassPolicy` (mast.py), carried out.

It serves schedulers with one global queue that place workloads one at a time. Python decides about tables: where a
workload may need copies the kernel stops before that pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..passes.starts import start
from .auction import LENGTH, auction, units_of, write_queue
from .copies_needed import needs_copies
from .global_scheduler import rank
from .region_units import ASKED, FOLLOWS, LEAVES, NONE, SPARED, begin_scan, write_units

MOST_PASSES = 6  # at one instant
NOT_PLACED = -2
CLOSE_S = 1e-3  # tolerance of a round, as in policies/planning.py
PASSES, ALL_ASKED, ALL_SPARED = 0, 1, 2  # of `count`


class Placed(NamedTuple):
    """Arrays, int64; J workloads: those placed in a pass, and those that leave for them."""

    first: Any  # (J,), by place in the queue: first workload that leaves for it, -1: none; NOT_PLACED
    last: Any  # (J,), by place: the last one
    after: Any  # (J,), by workload: the next one that leaves for the same workload, -1
    place: Any  # (J,), by workload: its place in the queue of the pass that placed it last
    count: Any  # (3,): passes at this instant; regions asked, and spared, since the last reading


def empty_placed(workloads: int) -> Placed:
    """Arrays for `workloads` workloads."""
    first, last, after, place = np.zeros((4, workloads), np.int64)
    return Placed(first, last, after, place, np.zeros(3, np.int64))


@kernel
def play_instant(s, r, g, q, p, round_s):
    """Modify all in place: make the passes of this instant. False: tables must be decided before the next pass."""
    p.count[PASSES] = 0
    if not _is_due(s, round_s):
        return True
    again = True
    while again and p.count[PASSES] < MOST_PASSES:
        pending = rank(s, g)
        if write_queue(s, r, g, q, pending) > 0 and _lacks_copies(s, q, pending):
            return False
        p.count[PASSES] += 1
        again = False
        if pending > 0:
            r.count[FOLLOWS] = 0
            write_units(s, r, g.level)
            r.count[FOLLOWS] = 0
            begin_scan(r)
            again = _place_all(r, q, p, s.now_s)
            p.count[ALL_ASKED] += r.count[ASKED]
            p.count[ALL_SPARED] += r.count[SPARED]
            _carry_out(s, r, q, p)
    return True


@kernel
def _is_due(s, round_s):
    return round_s == 0.0 or abs(s.now_s - np.rint(s.now_s / round_s) * round_s) < CLOSE_S


@kernel
def _lacks_copies(s, q, pending):
    for at in range(pending):
        if q.bits[q.job[at]] == 0 and needs_copies(s, q.job[at]):
            return True
    return False


@kernel
def _place_all(r, q, p, now_s):
    """Modify the regions and `p` in place: place the queue. True if a running workload is stopped."""
    for at in range(q.option[LENGTH]):
        p.first[at] = NOT_PLACED
    stops = False
    at = auction(r, q, 0, now_s)
    while at < q.option[LENGTH]:
        p.first[at] = p.last[at] = NONE
        p.place[q.job[at]] = at
        for i in range(r.count[LEAVES]):
            leaver = r.leaving[i]
            earlier = p.place[leaver]
            if earlier < at and q.job[earlier] == leaver and p.first[earlier] != NOT_PLACED:
                # One placed in this very pass does not start; workloads that left for it are stopped all the same.
                _append(p, at, p.first[earlier], p.last[earlier])
                p.first[earlier] = NOT_PLACED
            else:
                p.after[leaver] = NONE
                _append(p, at, leaver, leaver)
        stops |= p.first[at] != NONE
        at = auction(r, q, at + 1, now_s)
    return stops


@kernel
def _append(p, at, first, last):
    """Modify `p` in place: append these to the leavers of a place; -1: none."""
    if first == NONE:
        return
    if p.first[at] == NONE:
        p.first[at] = first
    else:
        p.after[p.last[at]] = first
    p.last[at] = last


@kernel
def _carry_out(s, r, q, p):
    """Modify `s`: start placed workloads, after the stops that each needs."""
    for at in range(q.option[LENGTH]):
        if p.first[at] == NOT_PLACED:
            continue
        leaver = p.first[at]
        while leaver != NONE:
            lifecycle.preempt(s, leaver)
            leaver = p.after[leaver]
        s.gang_size = units_of(r, q.job[at], q.need)
        for i in range(s.gang_size):
            s.gang[i] = r.taken[i]
        start(s, q.job[at])
