"""One step of Delay-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe."""

from __future__ import annotations

import math

from ...simulator.kernels import events, jobs
from ...simulator.kernels.codes import DECIDE, FINISHED, HORIZON, STALLED
from ...simulator.kernels.jit import entry, kernel
from ...simulator.rules.delays import present_timer_s
from .observation import observe, write_mask
from .reward import total_cost
from .window import (
    HOLD_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    UNTIL_TIMER,
    candidate_count,
    find_move,
    find_target,
    refresh,
)

INVALID, BEGIN = -1, -2


@entry
def step(states, windows, row, candidate, delay, outcome, features, mask):
    """Modify the records in `row`: play one action and write the next observation and mask; returns `w.code`.

    `outcome` gets reward, elapsed seconds, whether the action was invalid, whether its delay was adjusted, and the
    number of decisions so far. The candidate BEGIN plays nothing: it goes to the first decision of an episode.
    """
    s = states[row]
    w = windows[row]
    cost = total_cost(s, w.reward_kind)
    began_s = s.now_s
    invalid = candidate < 0 or candidate >= candidate_count(w) or w.legal[candidate] == 0
    outcome[2] = invalid
    is_hold = not invalid and 0 < candidate <= PER_WAITING * w.slots and (candidate - 1) % PER_WAITING == HOLD_KIND
    outcome[3] = is_hold and (delay < 0 or delay >= w.n_delays)
    delay = min(max(delay, 0), w.n_delays - 1)
    w.focus = -1
    if candidate == BEGIN:
        w.code = advance(s)
        refresh(s, w)
    elif invalid or candidate == 0:
        w.decisions += 1
        if events.next_event_s(s) < math.inf:
            w.code = advance(s)
            refresh(s, w)
    else:
        w.decisions += 1
        _apply(s, w, candidate - 1, delay)
        if w.code == STALLED and events.next_event_s(s) < math.inf:
            w.code = DECIDE
        refresh(s, w)
    settle(s, w)
    outcome[0] = -(total_cost(s, w.reward_kind) - cost) / w.reward_scale
    outcome[1] = s.now_s - began_s
    outcome[4] = w.decisions
    observe(s, w, features)
    write_mask(w, mask)
    return w.code


@entry
def turn(states, windows, row, features, mask):
    """Modify the window in `row`: show the present anew, after its focus or placer has changed."""
    refresh(states[row], windows[row])
    observe(states[row], windows[row], features)
    write_mask(windows[row], mask)


@kernel
def settle(s, w):
    """Modify `s` and `w`: with `skip_idle`, go on while only advancing or holding is possible."""
    while w.code != FINISHED and w.code != HORIZON and not w.can_act and (w.skip_idle or s.waiting == 0):
        w.code = advance(s)
        refresh(s, w)
        if w.code == STALLED:
            break


@kernel
def advance(s):
    """Modify `s`: run to the next decision point. If nothing is to come, jobs held until an offer get it now."""
    code = events.advance(s)
    if code == STALLED and s.n_offered > 0:
        while s.n_offered > 0:
            jobs.unhold(s, s.offered[s.n_offered - 1])
        code = DECIDE
    return code


@kernel
def _apply(s, w, index, delay):
    """Modify `s`: carry out the legal candidate `index` + 1."""
    if index < PER_WAITING * w.slots:
        job = w.waiting_job[index // PER_WAITING]
        kind = index % PER_WAITING
        if kind == HOLD_KIND:
            jobs.hold(s, job, present_timer_s(s, job) if delay == UNTIL_TIMER else s.now_s + w.delay_s[delay])
        else:
            find_target(s, w, job, kind)
            jobs.start(s, job)
        return
    index -= PER_WAITING * w.slots
    job = w.running_job[index // PER_RUNNING]
    if index % PER_RUNNING == PREEMPT_KIND:
        jobs.preempt(s, job)
    else:
        find_move(s, w, job)
        jobs.migrate(s, job)
