"""One step of Grouping-v0 in one kernel call: carry out the action, advance to the next decision point, observe."""

from ...simulator.base.codes import DECIDE, STALLED
from ...simulator.compiler.jit import entry, kernel
from ...simulator.groups.kernels.group_clock import advance
from ..outcome import IS_ADJUSTED, TERMINATED, TRUNCATED
from ..step import begin_step, end_step, is_over, take_candidate
from .action_parts import carry_out
from .grouping_window import may_pass, refresh
from .observation import observe, write_mask


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action (candidate, machines, spill) in each; see `Stepper`."""
    n_stopped = 0
    for i in range(chosen.size):
        row = chosen[i]
        s = states[row]
        w = windows[row]
        _step(s, w, references[row], actions[row], outcomes[row])
        observe(s, w, features[row])
        write_mask(w, masks[row])
        n_stopped += outcomes[row, TERMINATED] > 0.0 or outcomes[row, TRUNCATED] > 0.0 or w.code != DECIDE
    return n_stopped


@kernel
def _step(s, w, reference, action, outcome):
    """Modify `s`, window `w` and `outcome`: play one action, and run to the next decision."""
    begin_step(s, w, reference)
    w.pinned_group = -1
    _play(s, w, action, outcome)
    w.begins = 0
    while not is_over(s, w) and w.code != STALLED:
        _go(s, w)
    end_step(s, w, reference, outcome, s.n_machines - s.free_machines - s.down_machines)


@kernel
def _play(s, w, action, outcome):
    """Modify `s`, window `w` and `outcome`: the action itself; advance, if it says so."""
    candidate = take_candidate(w, action[0], outcome)
    outcome[IS_ADJUSTED] = 0.0
    if w.begins:
        _go(s, w)
        return
    w.decisions += 1
    if candidate > 0:
        outcome[IS_ADJUSTED] = carry_out(s, w, candidate, action[1], action[2])
        refresh(s, w)
        w.can_act = 1  # after a first decision only candidate 0 ends the instant
    elif may_pass(s):
        _go(s, w)


@kernel
def _go(s, w):
    w.code = advance(s)
    refresh(s, w)


@entry
def rehearsed(states, row, windows, candidate, machines, spill):
    """Modify the record in `row`: `carry_out`, as the only one of `windows` shows it."""
    carry_out(states[row], windows[0], candidate, machines, spill)


@entry
def turn(states, windows, row, features, mask):
    """Modify the window in `row`: show the present anew, after its pinned job has changed."""
    refresh(states[row], windows[row])
    observe(states[row], windows[row], features)
    write_mask(windows[row], mask)
