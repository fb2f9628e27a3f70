"""One step of Sharing-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe."""

import math

from ...policies.loop.decision_loop import next_s
from ...policies.passes.starts import start
from ...simulator.base.codes import ASK, DECIDE, STALLED
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.lifecycle.resizing import resize, set_passes
from ..outcome import GOES_ON, IS_ADJUSTED, TERMINATED, TRUNCATED
from ..step import advance, begin_step, end_step, is_over, take_candidate, used_gpus
from ..window import NO_JOB, choice_of
from .gangs import exponent_taken, find_resized, find_start, wider_exponent_taken
from .observation import observe, write_mask
from .sharing_window import PREEMPT_KIND, may_act, refresh, starts_of


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action (candidate, sub-batch exponent) in each; see `Stepper`."""
    n_stopped = 0
    for i in range(chosen.size):
        row = chosen[i]
        s = states[row]
        w = windows[row]
        _step(s, w, references[row], actions[row, 0], actions[row, 1], outcomes[row])
        if w.code != ASK:
            observe(s, w, features[row])
            write_mask(w, masks[row])
        n_stopped += outcomes[row, TERMINATED] > 0.0 or outcomes[row, TRUNCATED] > 0.0 or w.code != DECIDE
    return n_stopped


@kernel
def _step(s, w, reference, candidate, exponent, outcome):
    """Modify `s`, window `w` and `outcome`: play one action, and run to the next decision."""
    if w.begins != GOES_ON:
        begin_step(s, w, reference)
        _play(s, w, candidate, exponent, outcome)
    else:
        _go(s, w)
    w.begins = 0
    while not is_over(s, w):
        _go(s, w)
        if w.code == STALLED:
            break
    end_step(s, w, reference, outcome, used_gpus(s))


@kernel
def _play(s, w, candidate, exponent, outcome):
    """Modify `s`, window `w` and `outcome`: the action itself; advance, if it says so."""
    candidate = take_candidate(w, candidate, outcome)
    outcome[IS_ADJUSTED] = 0.0
    if w.begins:
        _go(s, w)
    elif candidate == 0:
        w.decisions += 1
        w.forced_job = NO_JOB
        if next_s(s) < math.inf:
            _go(s, w)
    else:
        w.decisions += 1
        outcome[IS_ADJUSTED] = carry_out(s, w, candidate, exponent)
        w.forced_job = NO_JOB
        if w.code == STALLED and next_s(s) < math.inf:
            w.code = DECIDE
        _show(s, w)


@kernel
def _go(s, w):
    w.code = advance(s)
    _show(s, w)


@kernel
def _show(s, w):
    if w.code == ASK or (w.code == DECIDE and w.skip_idle and not may_act(s, w)):
        w.can_act = 0
    else:
        refresh(s, w)


@entry
def turn(states, windows, row, features, mask):
    """Modify the window in `row`: show the present anew, after its pinned job or placer has changed."""
    refresh(states[row], windows[row])
    observe(states[row], windows[row], features)
    write_mask(windows[row], mask)


@entry
def rehearsed(states, row, windows, candidate, exponent):
    """Modify the record in `row`: `carry_out`, as the only one of `windows` shows it."""
    carry_out(states[row], windows[0], candidate, exponent)


@kernel
def carry_out(s, w, candidate, exponent):
    """Modify `s`: carry out a legal candidate but 0; True if another sub-batch, or size, was taken than asked for."""
    is_waiting, _, job, kind = choice_of(w, candidate)
    if is_waiting and kind == starts_of(w):
        lifecycle.hold(s, job, math.inf)
        return False
    if is_waiting:
        find_start(s, w, job, kind)
        nearest = exponent_taken(s, job, exponent)
        s.gpus[job] = s.gang_size  # another number only of elastic jobs
        s.sub_batch[job] = s.batch[job] >> nearest
        start(s, job)
        return nearest != exponent
    if kind == PREEMPT_KIND:
        lifecycle.preempt(s, job)
        return False
    if not w.elastic:
        nearest = wider_exponent_taken(s, job, exponent)
        set_passes(s, job, s.batch[job] >> nearest)
        return nearest != exponent
    is_asked = find_resized(s, w, job, exponent)
    resize(s, job, -(-s.batch[job] * s.gpus[job] // s.gang_size))
    return not is_asked
