"""Iterations of jobs on a network: when the next begins, how long its Down times are, how long it took.

A job with a shift begins its iterations at slots, shift + k x period (paper cassini, Sec. 4.2). An early job waits for
the next slot; a late one begins at once and regains what its period has over its iteration. A job more than a period
late takes the last slot that has begun. With `adjust` (the paper's 5 %, Sec. 5.7) a later job waits for the next slot.
Setting: cassini, Sec. 4.2; Sec. 5.7.
"""

import math

from ..compiler.jit import kernel
from ..numerics.instructions import ceil, floor
from ..numerics.random import seed_of, uniform
from .max_min import trace

SLACK = 1e-9  # of a period: so much after a slot is on time
WHOLE = 1e-6  # of an iteration: so little left is none
STREAM = 1 << 24  # of the random numbers; those below are used elsewhere
SHORTEST_S = 1e-4  # bins of durations: ascending by PER_FOLD bins for each factor e, from here on
PER_FOLD = 111.0  # 0.9 % each, up to 10,000 s


@kernel
def next_start(s, job, ready_s):
    """Modify `s`: the slot of the coming iteration of a job that could begin at `ready_s`; returns when it begins."""
    shift_s = s.shift_s[job]
    slot = s.slot[job]
    if shift_s < 0.0 or (slot > -math.inf and not s.pacing):
        return ready_s
    period_s = s.period_s[job]
    now = (ready_s - shift_s) / period_s
    if slot == -math.inf:
        slot = ceil(now - SLACK)
    else:
        slot = max(slot + 1.0, floor(now))
        if ready_s - (shift_s + slot * period_s) > s.adjust * s.alone_s[job]:
            slot += 1.0
            s.adjustments += 1
    s.slot[job] = slot
    return max(ready_s, shift_s + slot * period_s)


@kernel
def draw_factor(s, job):
    """Modify `s`: the factor on the Down times of the iteration that begins: stretch and jitter.

    Jitter is lognormal with mean 1: sigma^2 = ln(1 + CoV^2), mu = -sigma^2 / 2; Box and Muller's cosine.
    """
    factor = s.stretch[job]
    if s.jitter > 0.0:
        variance = math.log(1.0 + s.jitter * s.jitter)
        radius = math.sqrt(-2.0 * math.log(uniform(seed_of(s), STREAM + job, 2 * s.draws[job])))
        normal = radius * math.cos(2.0 * math.pi * uniform(seed_of(s), STREAM + job, 2 * s.draws[job] + 1))
        factor *= math.exp(math.sqrt(variance) * normal - 0.5 * variance)
    s.draws[job] += 1
    s.down_factor[job] = factor


@kernel
def note_round(s, job):
    """Modify `s`: a whole iteration of a job is over, and its wait for the next slot; part of one does not count."""
    up_s = s.round_up_s[job]
    s.round_up_s[job] = 0.0
    if s.rounds_done[job] < 1.0 or (s.rounds_done[job] == 1.0 and s.first_round[job] > 0.0):
        return
    seconds = s.phase_now_s - s.round_began_s[job]
    s.last_round_s[job] = seconds
    s.job_rounds[job] += 1
    s.job_rounds_s[job] += seconds
    s.job_alone_s[job] += s.alone_s[job]
    s.job_up_s[job] += up_s
    s.iteration_count += 1
    s.iteration_sum_s += seconds
    s.iteration_bins[bin_of(s, seconds)] += 1
    trace(s, job, -1.0, seconds)


@kernel
def bin_of(s, seconds):
    """The bin of a duration."""
    if seconds <= SHORTEST_S:
        return 0
    return min(s.iteration_bins.size - 1, int(PER_FOLD * math.log(seconds / SHORTEST_S)))


@kernel
def is_last_round(s, job):
    """True if the iteration that has just been counted was a job's last; a part of one that is due is run whole."""
    return s.rounds_done[job] >= s.rounds_left[job] + s.first_round[job] - WHOLE
