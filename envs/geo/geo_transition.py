"""The kernels of Geo-v0: what a candidate does, where an agent is asked, and what it sees.

In the middle of a step Python may be asked (`code = ASK`; `asks` says what): for what a policy decides about due
tables, or does that is played (geo_interface.py). Then `go` goes on as the answer in `asks` says.
"""

import math

from ...policies.mast.copies_plan import copy_on_demand
from ...policies.mast.global_scheduler import AVERAGES, RUNNERS
from ...policies.passes.starts import start
from ...simulator.base.codes import ASK, DECIDE, FINISHED, HORIZON, STALLED
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..step import advance, stepping
from ..window import NO_JOB
from .geo_window import (
    ASKS_ACTION,
    ASKS_LEAVING,
    ASKS_PLAN,
    BRING,
    LEAVE,
    NO_CLUSTER,
    NOTHING,
    PLAY,
    SHOW,
    begin_instant,
    candidate_of,
    forget_present,
    is_startable,
    look_around,
    plan_start,
    start_of,
)
from .observation import write
from .table_bringing import bring, can_bring_any


@kernel
def carry_out(s, w, m, candidate, action):
    """Modify `s` and caches: carry out a legal candidate but 0; where a policy was played so far, Python knows how."""
    if w.code == FINISHED or w.code == HORIZON:
        return False
    if w.has_policy:
        _ask(w, ASKS_ACTION, candidate)
    else:
        _act(s, w, m, candidate)
    return False


@kernel
def _act(s, w, m, candidate):
    job, cluster, way = start_of(w, candidate)
    if way == BRING:
        bring(s, job, cluster)
        w.data_valid = w.starts_valid = 0
        return
    if cluster == NO_CLUSTER:
        lifecycle.hold(s, job, math.inf)
        return
    leavers = plan_start(s, m, job, cluster, way)
    w.data_valid = w.starts_valid = m.valid[RUNNERS] = 0
    for i in range(leavers):
        m.valid[AVERAGES] = 0
        lifecycle.preempt(s, m.leaving[i])
    if leavers >= 0:
        s.gang_size = s.gpus[job]
        for i in range(s.gang_size):
            s.gang[i] = m.taken[i]
        start(s, job)


@kernel
def _leave(s, w, m):
    if w.code == FINISHED or w.code == HORIZON:
        return
    if w.has_policy:
        _ask(w, ASKS_ACTION, 0)
    else:
        _go(s, w, m)


@kernel
def _ask(w, what, candidate):
    w.code, w.asks, w.asked_for = ASK, what, candidate


@kernel
def _follow(s, w, m):
    if w.code == STALLED:
        w.code = DECIDE


@kernel
def _go(s, w, m):
    """Modify all in place: after the decisions about tables run to the next decision point; or go on as answered."""
    answer, w.asks = w.asks, NOTHING
    if answer != NOTHING:
        w.code = DECIDE
    if answer == SHOW:
        forget_present(w, m)
    elif answer == PLAY and w.asked_for > 0:
        _act(s, w, m, w.asked_for)
    elif answer != LEAVE and (w.has_rest if w.has_policy else w.looks and s.tables_due):
        _ask(w, ASKS_LEAVING, 0)
    else:
        if not w.has_policy and (w.lacks or (answer == LEAVE and w.n_unplaceable > 0)):
            copy_on_demand(s, m)
        w.code = advance(s)
        begin_instant(w, m)


@kernel
def _show(s, w, m):
    """Modify `w` and `m` in place: look at the present; `can_act`: whether an agent, or the played policy, decides."""
    w.can_act = 0
    if w.has_policy and w.code == DECIDE and not w.is_asked:
        _ask(w, ASKS_PLAN, 0)
        return
    look_around(s, w, m)
    if w.code == DECIDE:
        w.can_act = _is_asked(s, w, m)


@kernel
def _is_asked(s, w, m):
    if w.decisions == 0 or w.turn_job != NO_JOB or (not w.skip_idle and s.waiting > 0):
        return True
    return (not w.has_policy or w.is_lesson) and (is_startable(s, m) or can_bring_any(s, w))


@kernel
def _observe(s, w, m, features, mask):
    """Modify `w`, features and mask; the window turns to a played policy's workload if no candidate stands for it."""
    w.is_turned = 0
    if not w.has_policy:
        write(s, w, m, features, mask)
        return
    w.pinned_job = NO_JOB
    found = _write_anew(s, w, m, features, mask)
    if w.turn_job != NO_JOB and (found == 0 or not w.legal[found]):
        w.pinned_job, w.is_turned = w.turn_job, 1
        _write_anew(s, w, m, features, mask)


@kernel
def _write_anew(s, w, m, features, mask):
    """Write the present, of which nothing is known; returns the candidate of the played policy's turn, 0: none.

    A hold that ends by itself is legal also where nothing else is to come.
    """
    forget_present(w, m)
    look_around(s, w, m)
    write(s, w, m, features, mask)
    forget_present(w, m)
    found = candidate_of(w, w.turn_job, w.turn_cluster, w.turn_way) if w.turn_job != NO_JOB else 0
    if found and w.turn_ends:
        w.legal[found] = mask[found] = 1
    return found


@kernel
def _forget_written(w):
    w.starts_valid = 0


KERNELS = stepping(carry_out, _show, _observe, leave=_leave, follow=_follow, go=_go, forget_written=_forget_written)
