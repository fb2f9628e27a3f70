"""The kernels of DataPlacement-v0: what a candidate does, how time passes between reviews, and what an agent sees.

Passes of MAST place workloads. Python is asked (`w.asks`) which jobs the slow path knows, and, where the scheduler is
another one, for all its decisions of an instant.
"""

from functools import cache

import numpy as np

from ...policies.mast.compiled_passes import play_instant
from ...simulator.base.codes import ASK, DECIDE, MOVE, REPLICATE
from ...simulator.checks.table_refusals import copied_bytes
from ...simulator.compiler.jit import kernel
from ...simulator.record.region_fields import MOST_REGIONS
from ...simulator.regions import wan
from ..step import advance, stepping
from ..window import common_fields
from .observation import observe
from .review import (
    FIRST_REGION,
    KIND_CODES,
    LEAVE,
    NO_TABLE,
    WHOLE,
    begin_review,
    follow_decision,
    is_whole,
    list_legal,
    turn_of,
)
from .review_record import KINDS

NOTHING, KNOWN_JOBS, SCHEDULE = range(3)  # what Python is asked for
NO_INSTANT = -1


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of regions."""
    own = ["asks", "is_compiled"]  # whether the scheduler's passes are kernels
    own += ["seen_instant", "is_weighed"]  # the instant of the last look; whether effects of the decisions are found
    own += ["place", "offered", "spent"]  # tables that are behind; the one on offer, or NO_TABLE; bytes of the quota
    own += ["chosen", "chosen_region", "chosen_note"]  # the decision to follow, if any
    costs = ["table_cost", "paid_cost", "first_table_cost"]  # at the last look, after the last step, at the beginning
    fields = [(name, "i8") for name in own] + [(name, "f8") for name in ["round_s", *costs]]
    return np.dtype(
        [*common_fields(), *fields, ("legal", "i1", (FIRST_REGION + KINDS * (MOST_REGIONS + 1),))], align=True
    )


@kernel
def carry_out(s, w, m, candidate, action):
    """Modify `s` and `w`: decide about the offered table, or turn to the next; False."""
    table = w.offered
    if candidate == LEAVE:
        w.place += table == turn_of(s, w, m)  # one that is offered out of turn keeps its place
        w.offered = turn_of(s, w, m)
        return False
    region, at = (candidate - FIRST_REGION) // KINDS, (candidate - FIRST_REGION) % KINDS
    kind = KIND_CODES[at]
    whole = is_whole(s, table, region, kind)
    w.spent += copied_bytes(s, table, region, kind, whole)
    w.chosen, w.chosen_region, w.chosen_note = table, region, WHOLE if whole else at
    if kind == MOVE:
        wan.move(s, table, region)
    elif kind == REPLICATE:
        wan.replicate(s, table, region, whole)
    else:
        wan.drop(s, table, region)
    return False


@kernel
def leave(s, w, m):
    """Modify `w`: nothing more is decided at this instant."""
    w.offered = NO_TABLE


@kernel
def go(s, w, m):
    """Modify all: place workloads at this instant, and run to the next; or ask Python first."""
    asked = w.asks
    w.asks, w.code = NOTHING, DECIDE
    if asked == KNOWN_JOBS:
        return
    if asked != SCHEDULE and s.next_arrival > 0:
        if not w.is_compiled:
            w.asks, w.code = SCHEDULE, ASK
            return
        play_instant(s, m, w.round_s)
    w.code = advance(s)


@kernel
def _show(s, w, m):
    """Modify `w` and `m`: look at the present; a review begins where tables are due."""
    if w.code != DECIDE:
        w.offered = NO_TABLE
    elif w.seen_instant != s.instants:
        w.offered = w.chosen = NO_TABLE
        if s.tables_due and s.now_s >= m.known_until_s:
            w.asks, w.code = KNOWN_JOBS, ASK
        else:
            w.seen_instant = s.instants
            if s.tables_due:
                begin_review(s, w, m)
    elif w.chosen != NO_TABLE:
        follow_decision(s, w, m)
    w.can_act = w.offered != NO_TABLE
    list_legal(s, w, m)


KERNELS = stepping(carry_out, _show, observe, leave=leave, go=go)
