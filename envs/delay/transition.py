"""One step of Delay-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe."""

from __future__ import annotations

import math

from ...simulator.kernels import events, jobs
from ...simulator.kernels.codes import ASK, DECIDE, STALLED
from ...simulator.kernels.jit import entry, kernel
from ...simulator.rules.delays import present_timer_s
from ..codes import GOES_ON, IS_ADJUSTED, TERMINATED, TRUNCATED
from ..turns import advance, candidate_played, close_step, is_over, open_step
from .observation import forget, observe, write_mask
from .window import (
    HOLD_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    UNTIL_TIMER,
    candidate_count,
    find_move,
    find_target,
    may_act,
    refresh,
)


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action in each, and write what follows from it.

    Args:
        states, windows: records (n,).
        references: float64 (n, jobs): finish times of the reference's run, ascending.
        chosen: int64 (k,), the rows to step.
        actions: int64 (n, 2): candidate and delay bucket. A row that begins ignores it, and goes to its first decision.
        outcomes: float64 (n, OUTCOMES): reward, elapsed seconds, and flags, see codes.py.
        features: float32 (n, F), masks: int8 (n, M): the present after the step.

    Returns:
        How many of the rows need a look: their episode has ended, their run has stalled, or rates are asked for.
    """
    odd = 0
    for i in range(chosen.size):
        row = chosen[i]
        s = states[row]
        w = windows[row]
        _step(s, w, references[row], actions[row, 0], actions[row, 1], outcomes[row])
        if w.code != ASK:
            observe(s, w, features[row], masks[row])
            write_mask(w, masks[row])
        odd += outcomes[row, TERMINATED] > 0.0 or outcomes[row, TRUNCATED] > 0.0 or w.code != DECIDE
    return odd


@kernel
def _step(s, w, reference, candidate, delay, outcome):
    """Modify `s`, `w` and `outcome`: one action, and on to the next decision."""
    if w.begins == GOES_ON:
        w.begins = 0
        w.code = advance(s)
        show(s, w)
        settle(s, w)
        close_step(s, w, reference, outcome)
        return
    open_step(s, w, reference)
    candidate = candidate_played(w, candidate, candidate_count(w), outcome)
    is_hold = 0 < candidate <= PER_WAITING * w.slots and (candidate - 1) % PER_WAITING == HOLD_KIND
    outcome[IS_ADJUSTED] = is_hold and (delay < 0 or delay >= w.n_delays)
    delay = min(max(delay, 0), w.n_delays - 1)
    if w.begins:
        w.begins = 0
        w.code = advance(s)
        show(s, w)
    elif candidate == 0:
        w.decisions += 1
        if events.next_event_s(s) < math.inf:
            w.code = advance(s)
            show(s, w)
    else:
        w.decisions += 1
        _apply(s, w, candidate - 1, delay)
        if w.code == STALLED and events.next_event_s(s) < math.inf:
            w.code = DECIDE
        show(s, w)
    settle(s, w)
    close_step(s, w, reference, outcome)


@entry
def turn(states, windows, row, features, mask):
    """Modify the window in `row`: show the present anew, after its focus or placer has changed."""
    w = windows[row]
    refresh(states[row], w)
    forget(w)  # these may be other arrays than those of the last step, and those of the next one
    observe(states[row], w, features, mask)
    forget(w)
    write_mask(w, mask)


@kernel
def settle(s, w):
    """Modify `s` and `w`: with `skip_idle`, go on while only advancing or holding is possible."""
    while not is_over(s, w):
        w.code = advance(s)
        show(s, w)
        if w.code == STALLED:
            break


@kernel
def show(s, w):
    """Modify `w`: show the present, unless nobody will see it, since `settle` passes over it."""
    if w.code == ASK or (w.code == DECIDE and w.skip_idle and not may_act(s, w)):
        w.can_act = 0
    else:
        refresh(s, w)


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
