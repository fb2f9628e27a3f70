"""Rates of running jobs when an instant is over: what their partners cost them, and what is asked for."""

import math

from ..base.codes import ASKED, RATED, RUNNING
from ..compiler.jit import kernel
from ..flows.sessions import done_in_session, plays
from ..running.rates import keep_unsaved
from ..sharing.berths import ask_rate, slowdown_now
from .lifecycle import book, plan


@kernel
def rate_running_jobs(s):
    """Modify `s`: rate the running jobs whose partners have changed; returns how many are left whose rate is asked."""
    left = 0
    for i in range(s.n_asked):
        job = s.asked[i]
        if s.status[job] != RUNNING:
            s.is_asked[job] = 0
        elif s.is_asked[job] == ASKED:
            s.asked[left] = job
            left += 1
        else:
            if s.is_asked[job] == RATED:
                s.slowdown[job] = slowdown_now(s, job)
            s.is_asked[job] = 0
            _rate(s, job)
    s.n_asked = left
    return left


@kernel
def _rate(s, job):
    if plays(s, job):
        if s.stretch[job] != s.slowdown[job]:
            cut(s, job)
            s.stretch[job] = s.slowdown[job]
        return
    time_s = s.solo_s[job] * s.slowdown[job]
    if time_s != s.iteration_s[job]:
        cut(s, job)
        s.iteration_s[job] = time_s
        plan(s, job)


@kernel
def cut(s, job):
    """Modify `s`: book a running job until now, and take its progress off its iterations; it goes on."""
    keep_unsaved(s, job)
    book(s, job, 1.0)
    done = max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
    s.iterations_left[job] = max(0.0, s.iterations_left[job] - done)
    s.since_s[job] = max(s.now_s, s.since_s[job])
    s.booked_s[job] = s.now_s
    if plays(s, job):
        s.session_done[job] = done_in_session(s, job)


@kernel
def bring_to_date(s):
    """Modify `s`: book the jobs whose rates are asked until now, before their progress is read."""
    for i in range(s.n_asked):
        cut(s, s.asked[i])


@kernel
def set_rate(s, job, solo_s, phase_left):
    """Modify `s`: the answer for a running job: seconds per iteration alone, and what is left when to ask again."""
    s.is_asked[job] = 0
    s.solo_s[job] = solo_s
    s.slowdown[job] = slowdown_now(s, job)
    s.iteration_s[job] = solo_s * s.slowdown[job]
    if plays(s, job):
        s.stretch[job] = s.slowdown[job]
    s.phase_left[job] = phase_left
    plan(s, job)


@kernel
def end_phase(s, job):
    """Modify `s`: a running job has reached the end of its phase; its rate is asked for before time passes."""
    cut(s, job)
    s.iterations_left[job] = s.phase_left[job]
    s.phase_left[job] = 0.0
    s.phase_s[job] = math.inf
    ask_rate(s, job, ASKED)
    plan(s, job)
