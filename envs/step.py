"""A step of any environment, apart from its candidates: the clock, the ends of episodes, and the reward.

A step is `begin_step`, the action, `end_step`; between them the environment shows the present anew (`refresh`) until
`is_over` says that there is something to decide, or nothing more to come.
"""

from ..policies.loop import decision_loop
from ..simulator.base.codes import ASK, DECIDE, ENDLESS, FINISHED, HORIZON, STALLED
from ..simulator.compiler.jit import entry, kernel
from ..simulator.lifecycle import lifecycle
from .outcome import (
    ELAPSED_S,
    FINISHED_JOBS,
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

NO_CANDIDATE = -2  # which no action says


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
