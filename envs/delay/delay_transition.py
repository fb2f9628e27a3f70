"""One step of Delay-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe."""

import math

from ...policies.greedy.room import find_room, make_room
from ...policies.passes.starts import start
from ...policies.passes.tier_holds import hold_for_tier
from ...simulator.base.codes import ASK, DECIDE, STALLED
from ...simulator.base.tiers import MACHINE
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle import lifecycle
from ..outcome import IS_ADJUSTED
from ..step import begin_action, end_step, follow, goes_on, is_stopped, used_gpus
from ..window import choice_of
from .ahead import ask_for_jobs, ask_for_lists, ask_for_rows
from .delay_window import HOLD_KIND, PREEMPT_KIND, ROOM_KIND, find_moved, find_target, hold_of, may_act, refresh
from .observation import forget, observe, write_mask


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action (candidate, delay bucket, tier of the hold) in each; see `Stepper`."""
    n_stopped = 0
    rows = chosen.size
    for i in range(rows):
        if i + 2 < rows:
            ask_for_lists(states, windows, chosen[i + 2])
        if i + 1 < rows:
            row = chosen[i + 1]
            ask_for_jobs(states[row], windows[row])
            ask_for_rows(states[row], windows[row], features, masks, row)
        row = chosen[i]
        s, w = states[row], windows[row]
        candidate = begin_action(s, w, references[row], actions[row, 0], outcomes[row])
        if candidate > 0:
            outcomes[row, IS_ADJUSTED] = carry_out(s, w, candidate, actions[row, 1], actions[row, 2])
        follow(s, w, candidate)
        show(s, w)
        while goes_on(s, w):
            show(s, w)
            if w.code == STALLED:
                break
        end_step(s, w, references[row], outcomes[row], used_gpus(s))
        if w.code != ASK:
            observe(s, w, features[row], masks[row])
            write_mask(w, masks[row])
        n_stopped += is_stopped(w, outcomes[row])
    return n_stopped


@entry
def turn(states, windows, row, features, mask):
    """Modify the window in `row`: show the present anew, after its pinned job or placer has changed."""
    w = windows[row]
    refresh(states[row], w)
    forget(w)  # these may be other arrays than those of the last step, and those of the next one
    observe(states[row], w, features, mask)
    forget(w)
    write_mask(w, mask)


@kernel
def show(s, w):
    """Modify window `w`: show the present, unless the step passes over it."""
    if w.code == ASK or (w.code == DECIDE and w.skip_idle and not may_act(s, w)):
        w.can_act = 0
    else:
        refresh(s, w)


@entry
def rehearsed(states, row, windows, candidate, delay, tier):
    """Modify the record in `row`: `carry_out`, as the only one of `windows` shows it."""
    carry_out(states[row], windows[0], candidate, delay, tier)


@kernel
def carry_out(s, w, candidate, delay, tier):
    """Modify `s`: carry out a legal candidate but 0; True if with another delay or tier than asked for."""
    is_waiting, _, job, kind = choice_of(w, candidate)
    if not is_waiting:
        if kind == PREEMPT_KIND:
            lifecycle.preempt(s, job)
        else:
            find_moved(s, w, job, kind)
            lifecycle.migrate(s, job)
    elif kind == HOLD_KIND:
        until_s, worst = hold_of(s, w, job, delay, tier)
        if until_s == math.inf:
            lifecycle.hold(s, job, until_s)
        else:
            hold_for_tier(s, job, until_s, worst)
        return delay < 0 or delay >= w.n_delays or worst != MACHINE + tier
    elif kind == ROOM_KIND:
        find_room(s, job)
        make_room(s, job)
    else:
        find_target(s, w, job, kind)
        start(s, job)
    return False
