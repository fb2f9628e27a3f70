"""The kernels of Delay-v0: what a candidate does, and what an agent sees."""

import math

from ...policies.greedy.room import find_room, make_room
from ...policies.passes.starts import start
from ...policies.passes.tier_holds import hold_for_tier
from ...simulator.base.tiers import MACHINE
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..step import stepping
from ..window import choice_of, unforce
from .ahead import ask_ahead
from .delay_window import HOLD_KIND, PREEMPT_KIND, ROOM_KIND, find_moved, find_target, hold_of, may_act, refresh
from .observation import forget, observe, write_mask


@kernel
def carry_out(s, w, m, action):
    """Modify `s`: carry out a legal candidate but 0; True if with another delay or tier than asked for."""
    is_waiting, _, job, kind = choice_of(w, action[0])
    if not is_waiting:
        if kind == PREEMPT_KIND:
            lifecycle.preempt(s, job)
        else:
            find_moved(s, w, job, kind)
            lifecycle.migrate(s, job)
    elif kind == HOLD_KIND:
        delay, tier = action[1], action[2]
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


@kernel
def _show(s, w, m):
    refresh(s, w)


@kernel
def _observe(s, w, m, features, mask):
    observe(s, w, features, mask)
    write_mask(w, mask)


KERNELS = stepping(
    carry_out, _show, _observe, may_act=may_act, forget=unforce, forget_written=forget, ask_ahead=ask_ahead
)
