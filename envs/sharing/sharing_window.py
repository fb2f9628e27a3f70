"""The window of Sharing-v0: waiting and running jobs, and the legal decisions about them.

Candidate 0 advances; then every waiting slot has free, best-benefit partners, first-fit partners, partner 1 to K alone,
hold; then every running slot has preempt and resize.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...policies.loop.decision_loop import next_s
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle.resizing import wider_passes
from ...simulator.sharing.exclusive_gpus import single_gpus
from ..window import (
    MAX_SLOTS,
    can_stop,
    common_fields,
    fill_slots,
    forced_fields,
    may_advance,
    running_candidate,
    waiting_candidate,
)
from .columns import OFFER
from .gangs import (
    FIRST_FIT_KIND,
    FREE_KIND,
    can_resize,
    exponents_of,
    find_start,
    most_size_exponent,
    wider_exponents_of,
)
from .sharing_offers import describe_offer

MAX_PARTNERS = 8
MOST_STARTS = 3 + MAX_PARTNERS
PREEMPT_KIND, RESIZE_KIND = 0, 1
PER_RUNNING = 2  # candidates of a running slot
MAX_EXPONENTS = 32
TIMES_WAITING, TIMES_RUNNING = 5, 4  # features of a waiting and of a running job that are times


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    candidates = 1 + (MOST_STARTS + 1 + PER_RUNNING) * MAX_SLOTS
    own = ("partners", "elastic", "n_exponents", "least_exponent", "most_exponent")
    return np.dtype(
        [
            *common_fields(),
            *[(name, "i8") for name in own],
            ("legal", "i1", (candidates,)),
            ("offer", "f4", (MAX_SLOTS, MOST_STARTS, len(OFFER))),  # of the legal starts: their features
            *forced_fields(),
            ("times", "f8", ((TIMES_WAITING + TIMES_RUNNING) * MAX_SLOTS,)),  # scratch of observation.py,
            ("ranked_s", "f8", (MAX_PARTNERS,)),  # and of gangs.py
            ("ranked_place", "i8", (MAX_PARTNERS,)),
        ],
        align=True,
    )


@entry
def starts_of(w):
    """Number of start candidates of a waiting slot; its last candidate is to hold."""
    return w.per_waiting - 1


@kernel
def refresh(s, w):
    """Modify window `w`: show the present jobs and mark their legal candidates."""
    fill_slots(s, w)
    w.can_act = 0
    w.legal[: w.candidates] = 0
    w.legal[0] = may_advance(s, w)
    w.least_exponent, w.most_exponent = MAX_EXPONENTS, 0
    more = next_s(s) < math.inf
    starts = starts_of(w)
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        first = waiting_candidate(w, slot, 0)
        w.legal[first + starts] = more
        if s.gpus[job] <= s.free_gpus + single_gpus(s) or job == w.forced_job:
            for kind in range(starts):
                if find_start(s, w, job, kind):
                    w.legal[first + kind] = 1
                    w.can_act = 1
                    describe_offer(s, w, job, w.offer[slot, kind])
                    least, most = exponents_of(s, job)
                    _admit_exponents(w, least, most)
    _mark_running(s, w)
    if not w.can_act:
        w.can_act = _can_act_beyond(s, w)


@kernel
def _admit_exponents(w, least, most):
    w.least_exponent = min(w.least_exponent, least)
    w.most_exponent = max(w.most_exponent, most)


@kernel
def may_act(s, w):
    """False if nothing can start or change, or grow after a partner has left; single jobs are not looked at."""
    if w.elastic or (w.preemption and s.waiting > 0) or s.n_eased > 0:
        return True
    room = s.free_gpus + single_gpus(s)
    fits = False
    for demand in range(s.n_classes):
        fits |= s.class_count[demand] > 0 and s.class_gpus[demand] <= room
    return fits


@kernel
def _can_act_beyond(s, w):
    """True if a job outside the window could start or be stopped: holding others brings it in.

    All jobs of a class can start, or none: first fit finds partners wherever another candidate does.
    """
    if s.waiting > w.slots:
        for demand in range(s.n_classes):
            if s.class_count[demand] > 0 and s.class_gpus[demand] <= s.free_gpus + single_gpus(s):
                job = s.queue_item[s.class_base[demand]]
                if find_start(s, w, job, FREE_KIND) or find_start(s, w, job, FIRST_FIT_KIND):
                    return True
    if w.preemption and (w.elastic or s.waiting > 0) and s.running > w.running_slots > 0:
        for i in range(s.running):
            if can_stop(s, s.runner[i]):
                return True
    if s.running > w.running_slots > 0:
        for i in range(s.n_eased):
            if _may_widen(s, s.eased[i]):
                return True
    return False


@kernel
def _may_widen(s, job):
    return wider_passes(s, job) > 0 and can_stop(s, job)


@kernel
def _mark_running(s, w):
    """Modify window `w`: jobs can be stopped while others wait, elastic ones and those with larger passes resized."""
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        here = running_candidate(w, slot, 0)
        if w.preemption and (w.elastic or s.waiting > 0) and can_stop(s, job):
            w.legal[here + PREEMPT_KIND] = 1
            w.can_act = 1
        if w.elastic and can_stop(s, job) and can_resize(s, job):
            w.legal[here + RESIZE_KIND] = 1
            w.can_act = 1
            _admit_exponents(w, 0, most_size_exponent(s, job))
        if not w.elastic and _may_widen(s, job):
            w.legal[here + RESIZE_KIND] = 1
            w.can_act |= s.is_eased[job]
            least, most = wider_exponents_of(s, job)
            _admit_exponents(w, least, most)
