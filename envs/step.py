"""A step of any environment, apart from its candidates: the clock, the ends of episodes, and the reward.

A step of a kernel is `begin_action`, `carry_out` of the environment, `follow`; then the environment shows the present
anew as long as it `goes_on`, and `end_step`. Numba takes no functions as arguments (policies/loop/decision_loop.py), so
each environment writes these lines down with its own kernels.
"""

import math

from ..policies.loop import decision_loop
from ..simulator.base.codes import ASK, DECIDE, ENDLESS, FINISHED, HORIZON, STALLED
from ..simulator.compiler.jit import entry, kernel
from ..simulator.lifecycle import lifecycle
from .outcome import (
    ELAPSED_S,
    FINISHED_JOBS,
    GOES_ON,
    IS_ADJUSTED,
    IS_FORCED,
    IS_INVALID,
    REWARD,
    RUNNING_JOBS,
    TERMINATED,
    TRUNCATED,
    USED_GPUS,
    WAITING_JOBS,
)
from .reward import cut_cost, first_cost, total_cost
from .window import NO_JOB

NO_CANDIDATE = -2  # which no action says
NO_ACTION = -1  # the clock advances first, whatever the action


@kernel
def begin_step(s, w, reference):
    """Modify `w`: a step begins; the first decision is charged for the time before it, the begin earns nothing."""
    if w.begins:
        w.cost = first_cost(s, w)
    elif not w.owes:
        w.cost = total_cost(s, w, reference)
    w.owes = w.begins
    w.began_s = s.now_s
    w.pinned_job = -1


@entry
def candidate_played(legal, count, candidate):
    """The candidate that an action plays, of the first `count` in `legal`: its own if legal, else the first legal one.

    That is 0, which lets time pass, where possible. NO_CANDIDATE: none is legal.
    """
    if 0 <= candidate < count and legal[candidate] != 0:
        return candidate
    for first in range(count):
        if legal[first] != 0:
            return first
    return NO_CANDIDATE


@kernel
def take_candidate(w, candidate, outcome):
    """Modify `outcome`; the candidate that an action plays, 0 where none is legal."""
    played = candidate_played(w.legal, w.candidates, candidate)
    outcome[IS_INVALID] = played != candidate
    outcome[IS_FORCED] = played != candidate and played > 0
    return max(played, 0)


@kernel
def begin_action(s, w, reference, candidate, outcome):
    """Modify `w` and `outcome`: a step begins, or goes on. Returns the candidate to play, or NO_ACTION."""
    if w.begins != GOES_ON:
        begin_step(s, w, reference)
        candidate = take_candidate(w, candidate, outcome)
        outcome[IS_ADJUSTED] = 0.0
    if w.begins:
        w.begins = 0
        return NO_ACTION
    w.decisions += 1
    return candidate


@kernel
def follow(s, w, candidate):
    """Modify `s` and `w`: after the candidate that `begin_action` returned was carried out; for others time passes."""
    w.forced_job = NO_JOB
    if candidate <= 0 and (candidate == NO_ACTION or decision_loop.next_s(s) < math.inf):
        w.code = advance(s)
    elif candidate > 0 and w.code == STALLED and decision_loop.next_s(s) < math.inf:
        w.code = DECIDE


@kernel
def goes_on(s, w):
    """Modify `s` and `w`: advance, unless the step `is_over`; whether it did."""
    if is_over(s, w):
        return False
    w.code = advance(s)
    return True


@kernel
def is_stopped(w, outcome):
    """Whether a row needs a look after a step: the episode has ended, the run has stalled, or it asks for rates."""
    return outcome[TERMINATED] > 0.0 or outcome[TRUNCATED] > 0.0 or w.code != DECIDE


@kernel
def end_step(s, w, reference, outcome, used):
    """Modify `outcome`: the result of the step; truncation charges for the work left. `used`: GPUs of jobs."""
    is_cut = w.code == HORIZON or (w.code != FINISHED and w.code != ASK and w.decisions >= w.max_decisions)
    cost = cut_cost(s, w, reference) if is_cut else total_cost(s, w, reference)
    outcome[REWARD] = -(cost - w.cost) / w.reward_scale
    outcome[ELAPSED_S] = s.now_s - w.began_s
    outcome[TERMINATED] = w.code == FINISHED
    outcome[TRUNCATED] = is_cut
    outcome[WAITING_JOBS] = s.next_arrival - s.done - s.running
    outcome[RUNNING_JOBS] = s.running
    outcome[FINISHED_JOBS] = s.done
    outcome[USED_GPUS] = used


@kernel
def used_gpus(s):
    """GPUs that jobs hold, in regions CPU machines too."""
    return s.n_gpus - s.free_gpus - s.down_gpus


@kernel
def is_over(s, w):
    """True unless the clock advances at once: with `skip_idle`, where only advancing or holding is possible."""
    if w.code == FINISHED or w.code == HORIZON or w.code == ASK or w.code == ENDLESS or w.can_act:
        return True
    return not w.skip_idle and s.waiting > 0


@kernel
def advance(s):
    """Modify `s`: run to the next decision point. If no event is left, jobs held until an offer get it now."""
    code = decision_loop.advance(s)
    if code == STALLED and s.n_offered > 0:
        while s.n_offered > 0:
            lifecycle.unhold(s, s.offered[s.n_offered - 1])
        code = DECIDE
    return code
