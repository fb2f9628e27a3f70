"""The window of TimeShift-v0 beside a run: the stages of an instant, and what Python has to answer; compiled."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...simulator.base.codes import ASK, ENDLESS, FINISHED, HORIZON, STALLED
from ...simulator.compiler.jit import kernel
from ..window import NO_JOB, common_fields, fill_slots, may_advance
from .joined_jobs import is_known, know
from .timeshift_record import PLACED, PLACING, SHIFTING, THROUGH
from .unified_circles import has_shift

SHIFT, LEAVE, FREE_RUN = 1, 2, 3  # candidates of the second stage
MOST_CANDIDATES = 64
RATES, PLANS, PLACES, CHECKS, SHIFTS = range(5)  # what a run that asks waits for


@cache
def window_dtype() -> np.dtype:
    """The record of the window."""
    own = [
        (
            "asks",
            "i8",
        ),  # RATES: the simulator asks; PLANS: offers of this instant; PLACES: where jobs meet now; CHECKS:
        # decisions of an offer; SHIFTS: those that CASSINI makes
        ("is_answered", "i8"),  # the answer is there: the present is to be shown
        ("turns", "i8"),  # CASSINI shifts jobs at the end of an instant
        ("legal", "i8", (1 + MOST_CANDIDATES,)),
    ]
    return np.dtype([*common_fields(), *own], align=True)


@kernel
def ask(w, what):
    """Modify `w`: Python has to answer before the present can be shown."""
    w.code, w.asks, w.can_act = ASK, what, 0


@kernel
def show(s, w, m):
    """Modify `w` and `m`: the present of the run, and its stage."""
    w.is_answered = 0
    if w.code == FINISHED or w.code == HORIZON or w.code == STALLED or w.code == ENDLESS:
        end_instant(m)
    elif m.looked != s.instants:
        ask(w, PLANS)
        return
    elif m.stage == PLACED and m.left_to_python >= 0:
        ask(w, CHECKS)
        return
    elif m.stage == PLACED and m.has_moved:
        ask(w, PLACES)
        return
    elif m.stage == PLACED:
        begin_shifting(s, w, m)
    elif m.stage == SHIFTING and m.n_turning == 0:
        end_instant(m)
    w.pinned_job = m.turning[0] if m.n_turning > 0 else NO_JOB
    fill_slots(s, w)
    w.can_act = m.stage != THROUGH
    _mark(s, w, m)


@kernel
def _mark(s, w, m):
    """Modify `w.legal`. A job on the network has no event of its own, but it ends."""
    w.legal[:] = 0
    w.legal[0] = s.running > 0 or may_advance(s, w)
    if m.stage == PLACING:
        for offer in range(m.n_offers):
            w.legal[1 + offer] = 1
    elif m.stage == SHIFTING:
        w.legal[SHIFT] = w.legal[LEAVE] = 1
        w.legal[FREE_RUN] = has_shift(s, m.turning[0])


@kernel
def begin_shifting(s, w, m):
    """Modify `m`: the second stage: jobs of components that are new since the last instant, lone ones with a shift."""
    if w.turns:
        end_instant(m)
        return
    m.stage, m.turned, m.n_turning, m.n_offers, m.is_expert_only = SHIFTING, 0, 0, 0, 0
    for i in range(m.n_placed):
        component = m.component[i]
        is_new = has_shift(s, m.job[i]) if component < 0 else not is_known(m, component)
        if is_new or _is_second(m, m.job[i]):
            m.turning[m.n_turning] = m.job[i]
            m.n_turning += 1
    if m.n_turning == 0:
        end_instant(m)


@kernel
def _is_second(m, job):
    found = 0
    for i in range(m.n_seconds):
        found += int(m.second_job[i] == job)
    return found > 0


@kernel
def end_instant(m):
    """Modify `m`: nothing is left to decide at this instant."""
    know(m)
    m.stage, m.n_offers, m.n_turning = THROUGH, 0, 0
