"""The kernels of TimeShift-v0: what a candidate does, and how a step goes on."""

from ...policies.cassini.compatibility import BUCKETS
from ...simulator.base.codes import ASK, DECIDE, FINISHED, HORIZON
from ...simulator.compiler.jit import entry, kernel
from ...simulator.events.network_clock import shift
from ..step import advance, stepping
from .joined_jobs import place_of
from .observation import observe
from .timeshift_offers import carry_out_offer
from .timeshift_record import PLACED, PLACING, SHIFTING
from .timeshift_window import FREE_RUN, LEAVE, RATES, SHIFTS, ask, begin_shifting, end_instant, show
from .unified_circles import period_s

RUNS_FREE = -1.0  # as a shift


@kernel
def carry_out(s, w, m, candidate, action):
    """Modify `s`: carry out a legal candidate but 0; True if a job is shifted otherwise than asked."""
    m.taken, m.left_to_python = candidate, -1
    if m.stage == PLACING:
        carry_out_offer(s, m, candidate - 1)
        return False
    job = m.turning[0]
    if candidate == LEAVE:
        return False
    around_s = period_s(m, place_of(m, job))
    if candidate == FREE_RUN:
        shift(s, job, RUNS_FREE, around_s)
        return False
    bucket = min(max(action[1], 0), BUCKETS - 1)
    shift(s, job, bucket * around_s / BUCKETS, around_s)
    return bucket != action[1]


@kernel
def follow(s, w, m):
    """Modify `w` and `m`: the stage after a candidate was carried out."""
    w.code = DECIDE
    m.has_acted = 1
    if m.stage == PLACING:
        m.stage, m.n_turning, m.has_moved = PLACED, 0, m.taken > 0
        if m.taken != m.expert_offer:
            m.n_seconds = 0  # they belong to other placements
    elif m.stage == SHIFTING:
        m.turned += 1
        m.n_turning -= 1
        for i in range(m.n_turning):
            m.turning[i] = m.turning[i + 1]


@kernel
def leave(s, w, m):
    """Modify `w` and `m`: candidate 0: no placement, or no further shifts; nothing where it is not legal."""
    if w.code == FINISHED or w.code == HORIZON:
        return
    w.code = DECIDE
    if w.legal[0] == 0:
        return
    m.has_acted = 1
    m.taken, m.left_to_python = 0, -1
    if m.stage == PLACING:
        follow(s, w, m)
    else:
        end_instant(m)


@kernel
def go(s, w, m):
    """Modify `s` and `w`: run to the next decision point, after CASSINI's shifts; not where Python has answered."""
    if w.is_answered:
        return
    if w.turns and not m.has_left and not m.is_new_run:
        ask(w, SHIFTS)
        return
    w.has_acted, w.asks = 0, RATES
    w.code = advance(s)
    m.has_left = w.code == ASK


@kernel
def is_over(s, w):
    """True unless the clock advances at once."""
    return w.code != DECIDE or w.can_act


@entry
def shift_at_once(states, row, windows, solvers):
    """Modify window and record: nothing is offered at this instant, its second stage begins."""
    begin_shifting(states[row], windows[0], solvers[0])


@entry
def pass_on(states, row, windows, solvers, candidate):
    """Modify window and record: a candidate is played, whose decisions are carried out elsewhere."""
    s, w, m = states[row], windows[0], solvers[0]
    m.taken, m.left_to_python = candidate, -1
    if candidate > 0:
        follow(s, w, m)
    else:
        leave(s, w, m)


KERNELS = stepping(carry_out, show, observe, leave=leave, follow=follow, go=go, is_over=is_over)
