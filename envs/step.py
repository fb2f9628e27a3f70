"""The step of every environment: `stepping` makes it from the environment's own kernels.

It is a closure that calls them, so what an environment lacks is not part of its step. The rest is the same everywhere:
the clock, the ends of episodes, and the reward.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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

NO_CANDIDATE = -2  # which no action says
NO_ACTION = -1  # the clock advances first, whatever the action


class Kernels(NamedTuple):
    """The kernels of an environment that Python calls.

    Attributes:
        step_rows: (records, windows, solvers, references, chosen, actions, outcomes, features, masks) plays one action
            in each of the rows `chosen`, see `Stepper`.
        turn: (records, windows, solvers, row, features, mask) shows the present of a row anew, after its pinned job or
            its placer has changed.
        rehearsed: (records, row, windows, solvers, action) carries out an action, int64 (parts,), on the record in
            `row`, as the only one of `windows` and `solvers` shows it.
    """

    step_rows: Callable[..., Any]
    turn: Callable[..., Any]
    rehearsed: Callable[..., Any]


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


@kernel
def go(s, w, m):
    """Modify `s` and `w`: run to the next decision point."""
    w.has_acted = 0
    w.code = advance(s)


@kernel
def leave(s, w, m):
    """Modify `s` and `w`: time passes, if an event is to come."""
    if decision_loop.next_s(s) < math.inf:
        go(s, w, m)


@kernel
def follow(s, w, m):
    """Modify `w`: a candidate was carried out; a run that was stalled may go on."""
    if w.code == STALLED and decision_loop.next_s(s) < math.inf:
        w.code = DECIDE


@kernel
def always(s, w):
    """True: nothing says that an agent cannot act but a look at single jobs."""
    return True


@kernel
def forget_nothing(w):
    """Nothing is remembered."""


@kernel
def ask_for_nothing(states, windows, features, masks, chosen, i):
    """The rows to come are left to the processor."""


def stepping(
    carry_out: Callable[..., Any],
    show: Callable[..., Any],
    observe: Callable[..., Any],
    *,
    may_act: Callable[..., Any] = always,
    leave: Callable[..., Any] = leave,
    follow: Callable[..., Any] = follow,
    go: Callable[..., Any] = go,
    is_over: Callable[..., Any] = is_over,
    forget: Callable[..., Any] = forget_nothing,
    used: Callable[..., Any] = used_gpus,
    forget_written: Callable[..., Any] = forget_nothing,
    ask_ahead: Callable[..., Any] = ask_for_nothing,
) -> Kernels:
    """The kernels of an environment, from its own; `s`, `w`, `m` are a record, its window, what its solver remembers.

    Args:
        carry_out: (s, w, m, candidate, action) carries out a legal candidate but 0 with the other parts of an action,
            int64 (parts,), whose own candidate may be illegal; True if with other parts than asked for.
        show: (s, w, m) shows the present and marks what is legal; `w.can_act`: whether an agent decides here.
        observe: (s, w, m, features, mask) writes what an agent sees, as last shown.
        may_act: (s, w) False where `can_act` would be 0, without a look at single jobs.
        leave: (s, w, m) carries out candidate 0.
        follow: (s, w, m) ends an action that was carried out.
        go: (s, w, m) runs to the next decision point.
        is_over: (s, w) True unless the clock advances at once.
        forget: (w) forgets what a policy has named beside its action.
        used: (s) GPUs that jobs hold.
        forget_written: (w) forgets what `observe` relies on, since other arrays than a step's are written.
        ask_ahead: (states, windows, features, masks, chosen, i) asks for memory of the rows after the i-th chosen one.
    """
    look, act = _looking(show, may_act), _acting(carry_out, follow, leave, go, forget)
    step_rows = _stepping_rows(act, look, go, is_over, observe, used, ask_ahead)
    return Kernels(step_rows, _turning(show, observe, forget_written), _rehearsing(carry_out))


def _looking(show: Callable[..., Any], may_act: Callable[..., Any]) -> Callable[..., Any]:
    """Shows the present, unless the step passes over it."""

    @kernel
    def look(s, w, m):
        if w.code == ASK or (w.code == DECIDE and w.skip_idle and not may_act(s, w)):
            w.can_act = 0
        else:
            show(s, w, m)

    return look


def _acting(carry_out: Any, follow: Any, leave: Any, go: Any, forget: Any) -> Callable[..., Any]:
    """Begins a step, or goes on with it: carries out the action, or lets time pass."""

    @kernel
    def act(s, w, m, reference, action, outcome):
        candidate = begin_action(s, w, reference, action[0], outcome)
        if candidate > 0:
            outcome[IS_ADJUSTED] = carry_out(s, w, m, candidate, action)
            w.has_acted = 1
            follow(s, w, m)
        elif candidate == 0:
            leave(s, w, m)
        else:
            go(s, w, m)
        forget(w)

    return act


def _stepping_rows(
    act: Any, look: Any, go: Any, is_over: Any, observe: Any, used: Any, ask_ahead: Any
) -> Callable[..., Any]:
    @entry
    def step_rows(states, windows, solvers, references, chosen, actions, outcomes, features, masks):
        n_stopped = 0
        for i in range(chosen.size):
            ask_ahead(states, windows, features, masks, chosen, i)
            row = chosen[i]
            s, w, m, outcome = states[row], windows[row], solvers[row], outcomes[row]
            act(s, w, m, references[row], actions[row], outcome)
            look(s, w, m)
            while not is_over(s, w) and w.code != STALLED:
                go(s, w, m)
                look(s, w, m)
            end_step(s, w, references[row], outcome, used(s))
            if w.code != ASK:
                observe(s, w, m, features[row], masks[row])
            n_stopped += is_stopped(w, outcome)
        return n_stopped

    return step_rows


def _turning(show: Any, observe: Any, forget_written: Any) -> Callable[..., Any]:
    @entry
    def turn(states, windows, solvers, row, features, mask):
        s, w, m = states[row], windows[row], solvers[row]
        show(s, w, m)
        forget_written(w)
        observe(s, w, m, features, mask)
        forget_written(w)

    return turn


def _rehearsing(carry_out: Any) -> Callable[..., Any]:
    @entry
    def rehearsed(states, row, windows, solvers, action):
        carry_out(states[row], windows[0], solvers[0], action[0], action)

    return rehearsed
