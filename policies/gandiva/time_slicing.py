"""Time slicing: while jobs wait, running ones make way in turns (round robin over the whole cluster).

Our choice: slices end together, `slicing_s` seconds after a job began to wait while others ran, and every `slicing_s`
from then on while a job waits. Waiting jobs then get GPUs in the order in which they began to wait (order TURNS). A job
that finds too few stops running ones, the longest on its GPUs first; jobs not needed keep their GPUs (eviction.py). A
stopped job waits behind all others and pays `preemption_cost`. So the n-th to wait runs within n slices, whatever its
gang; a gang that finds no place even so is passed over.

Paper: gandiva, time-slicing, as in paper sjf-bsbf, Sec. I.
"""

import math

from ...simulator.compiler.jit import kernel
from ...simulator.numerics.heap import schedule_event
from ..passes.eviction import push_pick


@kernel
def plan_turn(s):
    """Modify `s`, at the end of an instant: the end of the present slices; never while no job waits or none runs."""
    if s.waiting == 0 or s.running == 0:
        s.turn_s = math.inf
    elif s.turn_s <= s.now_s or s.turn_s == math.inf:
        s.turn_s = s.now_s + s.slicing_s
    schedule_event(s, s.round_event, s.turn_s)


@kernel
def turn_is_over(s):
    """True if slices end at this instant."""
    return s.slicing_s > 0.0 and s.turn_s <= s.now_s


@kernel
def pick_turns_over(s):
    """Modify `s.pick_*`: a heap of running jobs, longest on its GPUs first, with keys behind those of waiting jobs."""
    for i in range(s.running):
        job = s.runner[i]
        if s.started_s[job] < s.now_s:
            push_pick(s, s.now_s + (s.now_s - s.started_s[job]), job)


@kernel
def may_stop(s, job):
    """True if a waiting job may stop running ones; with slices a job just stopped may not."""
    return s.slicing_s <= 0.0 or s.stopped_s[job] < s.now_s
