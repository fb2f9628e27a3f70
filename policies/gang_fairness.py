"""Finish-time fairness of jobs, as policies/themis.py has it: compiled."""

from ..simulator.base.codes import RUNNING
from ..simulator.compiler.jit import entry, kernel
from ..simulator.jobs.remaining_time import isolated_whole_s, known_of


@entry
def write_fairness(states, row, jobs, asked, gpus, rho):
    """Modify `rho`, float64 (n,): finish-time fairness of each of `jobs`, int64 (n,).

    `asked`: int64 (n,), the GPUs that they ask. `gpus`: of the cluster.
    """
    s = states[row]
    for i in range(jobs.size):
        job = jobs[i]
        share = gpus / max(1.0, _active_mean(s, job))
        alone_s = isolated_whole_s(s, job) * max(1.0, asked[i] / share)
        rho[i] = (s.now_s - s.arrival_s[job] + _left_s(s, job)) / alone_s


@kernel
def _active_mean(s, job):
    age_s = s.now_s - s.arrival_s[job]
    if age_s > 0.0:
        return (s.active_integral - s.active_at_arrival[job]) / age_s
    return float(s.waiting + s.held + s.running)


@kernel
def _left_s(s, job):
    left = s.iterations_left[job]
    if s.status[job] == RUNNING:
        left -= max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
    return known_of(s, job, max(0.0, left)) * s.base_iteration_s[job]
