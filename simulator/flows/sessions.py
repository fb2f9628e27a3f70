"""Running jobs on the network: their entry, progress and leaving.

A job is there for one stretch on its GPUs: it enters when its rate is asked (codes.ASK, network/entering.py) and leaves
before time passes. A job that is back on its GPUs at the end of an instant has not left.

Its progress is in `since_s` and `iteration_s`, the mean since then, brought to date whenever the clock stops
(`keep_up`). An iteration's time beyond computing and partners on the GPUs counts as communication, waits for slots too.
A checkpoint is taken as written at mean progress.

With free numbers of workers, an iteration of n workers, of a job that asks m, is n / m of the workload's:
`iterations_left` and `iteration_s` count these; links, phases and slots those on the network. With `averages` jobs have
a rate as elsewhere, computed anew when the jobs have changed.
"""

from ..base.codes import BACK, GONE
from ..compiler.jit import kernel
from ..numerics.instructions import ceil, floor
from ..record.feature_groups import has_links
from .iterations import WHOLE, bin_of
from .link_use import leave_links
from .phase_clock import begin, leave, position, set_shift

NEVER_S = 1e30  # seconds per iteration of a job that has made no progress
LEAST_S = 1e-6  # what is left of one that has not ended, at least


@kernel
def stays(s, job):
    """True if the present stretch of a job is on the network, or was until it ended."""
    return has_links(s) and s.stays[job] != 0


@kernel
def plays(s, job):
    """True if a job iterates on the network now: when it will end is unknown."""
    return stays(s, job) and s.phase_position[job] >= 0


@kernel
def size_ratio(s, job):
    """Workers that a job has over those that it asks: so many of the workload's iterations are one on the network."""
    return s.gpus[job] / s.own_gpus[job]


@kernel
def computing_s(s, job, iterations):
    """Seconds of computing of a job in so many of the workload's iterations, on as many GPUs as it has."""
    seconds = iterations * s.compute_iteration_s[job]
    return seconds / size_ratio(s, job) if has_links(s) else seconds


@kernel
def enter_session(s, job, offset_s):
    """Modify `s`: a job on its links iterates after its restore, where it was stopped; unshifted `offset_s` later."""
    seconds = s.asked_shift_s[job]
    set_shift(s, job, seconds, s.asked_period_s[job])
    s.asked_shift_s[job] = -1.0
    left = s.iterations_left[job] / size_ratio(s, job)
    s.rounds_left[job] = left
    s.stays[job] = 1
    s.session_done[job] = 0.0
    if s.averages:
        return
    begin_s = s.since_s[job] + (offset_s if seconds < 0.0 else 0.0)
    begin(s, job, begin_s, max(0.0, max(1.0, ceil(left - WHOLE)) - left))


@kernel
def go(s, job):
    """Modify `s`: a job loses its GPUs; unless it is back when the instant ends, it has left the network."""
    if has_links(s):
        s.asked_shift_s[job] = -1.0
        if s.stays[job]:
            if s.is_leaver[job] == 0:
                s.leaver[s.n_leavers] = job
                s.n_leavers += 1
            s.is_leaver[job] = GONE


@kernel
def come_back(s, job):
    """Modify `s`: a job is on the GPUs that it held when the instant began."""
    if has_links(s) and s.is_leaver[job]:
        s.is_leaver[job] = BACK


@kernel
def let_go(s):
    """Modify `s`: the instant is over: jobs that left are on no link any more."""
    for i in range(s.n_leavers):
        job = s.leaver[i]
        if s.is_leaver[job] == GONE:
            leave(s, job)
            leave_links(s, job)
            s.stays[job] = 0
            s.shift_s[job] = -1.0
            s.net_changed = s.asks_changes
        s.is_leaver[job] = 0
    s.n_leavers = 0
    if s.phase_count == 0:
        s.phase_now_s = max(s.phase_now_s, s.now_s)


@kernel
def shift_session(s, job, seconds, period_s):
    """Modify `s`: a running job has a shift from its next iteration on (seconds < 0: none), or will begin with it."""
    if stays(s, job) and s.is_leaver[job] != GONE:
        set_shift(s, job, seconds, period_s)
        s.net_changed = s.asks_changes
    else:
        s.asked_shift_s[job] = seconds
        s.asked_period_s[job] = period_s


@kernel
def done_in_session(s, job):
    """Iterations of a job, as its workload counts them, since it began on the network."""
    return (s.rounds_done[job] + position(s, job) - s.first_round[job]) * size_ratio(s, job)


@kernel
def keep_up(s, job):
    """Modify `s`: the mean iteration of a job on the network until the network's clock, and when it may end."""
    elapsed = s.phase_now_s - s.since_s[job]
    if elapsed <= 0.0:
        return
    done = done_in_session(s, job) - s.session_done[job]
    set_mean(s, job, elapsed / done if done * NEVER_S > elapsed else NEVER_S)
    pace_s = s.iteration_s[job] if done >= 1.0 else s.alone_s[job] / size_ratio(s, job)
    left_s = (s.iterations_left[job] - done) * pace_s
    s.planned_finish_s[job] = s.phase_now_s + max(left_s, LEAST_S)


@kernel
def set_mean(s, job, iteration_s):
    """Modify `s`: the mean iteration of a job on the network; without its partners on the GPUs it had been shorter."""
    s.iteration_s[job] = iteration_s
    s.solo_s[job] = iteration_s
    if s.stretch[job] != 1.0:
        hindered_s = (s.stretch[job] - 1.0) * down_s(s, job) / size_ratio(s, job)
        s.solo_s[job] = min(iteration_s, max(s.base_iteration_s[job], iteration_s - hindered_s))


@kernel
def down_s(s, job):
    """Seconds of an iteration in which a job does not send."""
    total = s.tail_s[job]
    for phase in range(s.n_phases[job]):
        total += s.phase_down_s[job, phase]
    return total


@kernel
def note_local(s, job, ran_s, sign):
    """Modify `s`: whole iterations of a job that is not played join those of others (`sign` = 1), or leave (-1)."""
    if s.stays[job] == 0 or s.averages:
        seconds = s.iteration_s[job] * size_ratio(s, job)
        rounds = int(sign * floor(ran_s / seconds + LEAST_S))
        s.iteration_count += rounds
        s.iteration_sum_s += rounds * seconds
        s.iteration_bins[bin_of(s, seconds)] += rounds
