"""One step of Grouping-v0 in one kernel call: carry out the action, advance to the next decision point, observe."""

from ...simulator.base.codes import STALLED
from ...simulator.compiler.jit import entry, kernel
from ...simulator.groups.kernels.group_clock import advance
from ..outcome import IS_ADJUSTED
from ..step import NO_ACTION, begin_action, end_step, is_over, is_stopped
from .action_parts import carry_out
from .grouping_window import may_pass, refresh
from .observation import observe, write_mask


@entry
def step_rows(states, windows, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action (candidate, machines, spill) in each; see `Stepper`."""
    n_stopped = 0
    for i in range(chosen.size):
        row = chosen[i]
        s, w = states[row], windows[row]
        candidate = begin_action(s, w, references[row], actions[row, 0], outcomes[row])
        w.pinned_group = -1
        if candidate > 0:
            outcomes[row, IS_ADJUSTED] = carry_out(s, w, candidate, actions[row, 1], actions[row, 2])
            refresh(s, w)
            w.can_act = 1  # after a first decision only candidate 0 ends the instant
        elif candidate == NO_ACTION or may_pass(s):
            _go(s, w)
        while not is_over(s, w) and w.code != STALLED:
            _go(s, w)
        end_step(s, w, references[row], outcomes[row], s.n_machines - s.free_machines - s.down_machines)
        observe(s, w, features[row])
        write_mask(w, masks[row])
        n_stopped += is_stopped(w, outcomes[row])
    return n_stopped


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
