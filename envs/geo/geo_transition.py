"""One step of Geo-v0 in one kernel call: decode the action, apply it, advance to the next decision, observe.

Where a decision about tables is due, the kernel stops in the middle of a step, and continues after it.
"""

import math

from ...policies.mast.global_scheduler import AVERAGES, RUNNERS
from ...policies.passes.starts import start
from ...simulator.base.codes import ASK, DECIDE, FINISHED, HORIZON
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle import lifecycle
from ..outcome import GOES_ON, IS_ADJUSTED, IS_FORCED, IS_INVALID, TERMINATED, TRUNCATED
from ..step import advance, begin_step, candidate_played, end_step, used_gpus
from ..window import NO_JOB
from .geo_window import BRING, NO_CLUSTER, begin_instant, begin_run, is_startable, look_around, plan_start, start_of
from .observation import show
from .table_bringing import bring, can_bring_any


@entry
def step_rows(states, windows, solvers, references, chosen, actions, outcomes, features, masks):
    """Modify the chosen rows: play one action in each; see `Stepper`. `solvers`: what MAST remembers.

    A row with `code = ASK` wants decisions about tables first. Then nothing is written yet; the step goes on once its
    window has `begins = GOES_ON`.
    """
    n_stopped = 0
    for row in chosen:
        s, w, m, outcome = states[row], windows[row], solvers[row], outcomes[row]
        _step(s, w, m, references[row], actions[row, 0], outcome, masks[row])
        if w.code != ASK:
            end_step(s, w, references[row], outcome, used_gpus(s))
            show(s, w, m, features[row], masks[row])
            n_stopped += outcome[TERMINATED] > 0.0 or outcome[TRUNCATED] > 0.0 or w.code != DECIDE
    return n_stopped


@kernel
def _step(s, w, m, reference, candidate, outcome, mask):
    """Modify `s`, `w`, `m` and `outcome`: play one action, and run to the next decision, an agent's or about tables."""
    goes_on = w.begins == GOES_ON
    if not goes_on:
        begin_step(s, w, reference)
        goes_on = w.begins == 1
        if goes_on:
            outcome[IS_INVALID] = outcome[IS_FORCED] = outcome[IS_ADJUSTED] = 0.0
            begin_run(w, m)
        elif w.code != FINISHED and w.code != HORIZON:
            _take(s, w, m, candidate, outcome, mask)
    if goes_on:
        _go(s, w, m, w.begins == 1)
        w.begins = 0
    w.expert_job, w.expert_cluster = NO_JOB, NO_CLUSTER
    if w.code != DECIDE or not w.agent_done:  # else there is nothing new to see
        look_around(s, w, m)
    while w.code == DECIDE and not _is_offered(s, w, m):
        if (w.looks and s.tables_due) or w.lacks:
            w.code = ASK
            return
        _go(s, w, m, False)
        look_around(s, w, m)


@kernel
def _take(s, w, m, candidate, outcome, mask):
    """Modify `s`, window `w` and `outcome`: carry out the action; the mask holds the legal ones."""
    w.decisions += 1
    w.code = DECIDE
    played = candidate_played(mask, w.candidates, candidate)
    outcome[IS_INVALID] = played != candidate
    outcome[IS_FORCED] = played != candidate and played > 0
    outcome[IS_ADJUSTED] = 0.0
    if played < 0:
        return
    w.is_first = 0
    if played == 0:
        w.agent_done = 1
        return
    job, cluster, way = start_of(w, played)
    if way == BRING:
        bring(s, job, cluster)
        w.data_valid = w.starts_valid = 0
        return
    if cluster == NO_CLUSTER:
        lifecycle.hold(s, job, math.inf)
        return
    leavers = plan_start(s, m, job, cluster, way)
    w.data_valid = w.starts_valid = m.valid[RUNNERS] = 0
    for i in range(leavers):
        m.valid[AVERAGES] = 0
        lifecycle.preempt(s, m.leaving[i])
    if leavers >= 0:
        s.gang_size = s.gpus[job]
        for i in range(s.gang_size):
            s.gang[i] = m.taken[i]
        start(s, job)


@kernel
def _go(s, w, m, is_first):
    w.code = advance(s)
    begin_instant(w, m)
    w.is_first = is_first and w.code == DECIDE
    w.agent_done = w.code != DECIDE


@kernel
def _is_offered(s, w, m):
    if w.agent_done:
        return False
    if w.is_first or (not w.skip_idle and s.waiting > 0):
        return True
    return is_startable(s, m) or can_bring_any(s, w)
