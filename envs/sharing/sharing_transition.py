"""One step of Sharing-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe."""

import math

from ...policies.passes.starts import start
from ...simulator.base.codes import ASK, DECIDE, STALLED
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.lifecycle.resizing import resize, set_passes
from ..outcome import IS_ADJUSTED
from ..step import begin_action, end_step, follow, goes_on, is_stopped, used_gpus
from ..window import choice_of
from .gangs import exponent_taken, find_resized, find_start, wider_exponent_taken
from .observation import observe, write_mask
from .sharing_window import PREEMPT_KIND, may_act, refresh, starts_of


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action (candidate, sub-batch exponent) in each; see `Stepper`."""
    n_stopped = 0
    for i in range(chosen.size):
        row = chosen[i]
        s, w = states[row], windows[row]
        candidate = begin_action(s, w, references[row], actions[row, 0], outcomes[row])
        if candidate > 0:
            outcomes[row, IS_ADJUSTED] = carry_out(s, w, candidate, actions[row, 1])
        follow(s, w, candidate)
        _show(s, w)
        while goes_on(s, w):
            _show(s, w)
            if w.code == STALLED:
                break
        end_step(s, w, references[row], outcomes[row], used_gpus(s))
        if w.code != ASK:
            observe(s, w, features[row])
            write_mask(w, masks[row])
        n_stopped += is_stopped(w, outcomes[row])
    return n_stopped


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
