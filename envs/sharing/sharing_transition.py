"""The kernels of Sharing-v0: what a candidate does, and what an agent sees."""

import math

from ...policies.passes.starts import start
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.lifecycle.resizing import resize, set_passes
from ..step import stepping
from ..window import choice_of, unforce
from .gangs import exponent_taken, find_resized, find_start, wider_exponent_taken
from .observation import observe, write_mask
from .sharing_window import PREEMPT_KIND, may_act, refresh, starts_of


@kernel
def carry_out(s, w, m, action):
    """Modify `s`: carry out a legal candidate but 0; True if another sub-batch, or size, was taken than asked for."""
    is_waiting, _, job, kind = choice_of(w, action[0])
    exponent = action[1]
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


@kernel
def _show(s, w, m):
    refresh(s, w)


@kernel
def _observe(s, w, m, features, mask):
    observe(s, w, features)
    write_mask(w, mask)


KERNELS = stepping(carry_out, _show, _observe, may_act=may_act, forget=unforce)
