"""A step of any environment, but for what its candidates mean: the clock, the ends of episodes, and what is paid.

A step of an environment is `open_step`, what the action does, `close_step`; between them the environment shows the
present anew (`refresh`) until `is_over` says that there is something to decide, or nothing more to come.
"""

from __future__ import annotations

from ..simulator.kernels import events, jobs
from ..simulator.kernels.codes import ASK, DECIDE, FINISHED, HORIZON, STALLED
from ..simulator.kernels.jit import kernel
from .codes import ELAPSED_S, REWARD, TERMINATED, TRUNCATED
from .reward import first_cost, total_cost


@kernel
def open_step(s, w, reference):
    """Modify `w`: a step begins now; the first one is charged for the time before its decision too.

    Nobody is paid for the step that begins an episode.
    """
    if w.begins:
        w.cost = first_cost(s, w)
    elif not w.owes:
        w.cost = total_cost(s, w, reference)
    w.owes = w.begins
    w.began_s = s.now_s
    w.focus = -1


@kernel
def close_step(s, w, reference, outcome):
    """Modify `outcome`: what the step has come to."""
    outcome[REWARD] = -(total_cost(s, w, reference) - w.cost) / w.reward_scale
    outcome[ELAPSED_S] = s.now_s - w.began_s
    outcome[TERMINATED] = w.code == FINISHED
    outcome[TRUNCATED] = w.code == HORIZON or (w.code != FINISHED and w.code != ASK and w.decisions >= w.max_decisions)


@kernel
def is_over(s, w):
    """True unless the clock goes on at once: with `skip_idle`, where only advancing or holding is possible."""
    if w.code == FINISHED or w.code == HORIZON or w.code == ASK or w.can_act:
        return True
    return not w.skip_idle and s.waiting > 0


@kernel
def advance(s):
    """Modify `s`: run to the next decision point. If nothing is to come, jobs held until an offer get it now."""
    code = events.advance(s)
    if code == STALLED and s.n_offered > 0:
        while s.n_offered > 0:
            jobs.unhold(s, s.offered[s.n_offered - 1])
        code = DECIDE
    return code
