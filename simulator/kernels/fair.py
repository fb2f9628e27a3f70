"""Max-min fair rates of jobs that share links: progressive filling (Bertsekas and Gallager, Data Networks, Sec. 6.5.2).

A job has one rate on all its links and takes flows x rate of each, since the flows of a collective wait for each other.
All rates of a component rise together until a link is full, where its jobs stop, or a job has the rate of its phase.
A component is what is joined by hot links, those to which more is offered than fits; others never bind. Rates are
whole bytes per second, rounded down, at least 1.
"""

import math

import numpy as np

from . import heap
from .jit import kernel


@kernel
def set_end(s, job, end_s):
    """Modify `s`: the present part of a job ends then."""
    s.phase_end_s[job] = end_s
    heap.change(s.phase_key, s.phase_item, s.phase_of, 0, s.phase_count, job, end_s)


@kernel
def trace(s, job, rate, offered):
    """Modify `s`: an entry of the log of rates, where it is kept."""
    if s.trace_s.size > 1 and s.tracing:
        i = s.trace_count
        s.trace_s[i] = s.phase_now_s
        s.trace_job[i] = job
        s.trace_rate[i] = rate
        s.trace_offered[i] = offered
        s.trace_count += 1


@kernel
def top_rate(s, job):
    """The highest rate of the present phase of a job: what its links leave to it if nobody else sends."""
    return min(s.phase_rate[job, s.phase[job]], s.own_rate[job])


@kernel
def fill(s):
    """Modify `s`: new rates for the jobs on dirty links and all that hot links join to them; nothing is dirty then."""
    s.fills += 1
    s.n_fill_jobs = s.n_fill_links = 0
    s.least_top = math.inf
    for i in range(s.n_dirty):
        link = s.dirty_link[i]
        s.is_dirty[link] = 0
        _take_jobs(s, link)
    s.n_dirty = 0
    taken = 0
    while taken < s.n_fill_jobs:
        _take_links(s, s.fill_job[taken])
        taken += 1
    for i in range(s.n_fill_links):
        s.fill_height[i] = s.fill_room[i] / s.fill_flows[i]
    _rise(s)
    for i in range(s.n_fill_jobs):
        job = s.fill_job[i]
        if s.fill_rate[job] != s.send_rate[job]:
            _set_rate(s, job, s.fill_rate[job])


@kernel
def _take_jobs(s, link):
    """Modify `s`: the sending jobs of a link belong to the component."""
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.is_sending[job] and s.job_mark[job] != s.fills:
            top = top_rate(s, job)
            s.job_mark[job] = s.fills
            s.fill_rate[job] = 0.0
            s.fill_job[s.n_fill_jobs] = job
            s.fill_top[s.n_fill_jobs] = top
            s.n_fill_jobs += 1
            s.least_top = min(s.least_top, top)
        use = s.use_next[use]


@kernel
def _take_links(s, job):
    """Modify `s`: the hot links of a job belong to the component, and so do their jobs."""
    use = s.first_binding[job]
    while use >= 0:
        link = s.use_link[use]
        if s.link_mark[link] == s.fills:
            s.fill_flows[s.link_place[link]] += s.use_flows[use]
        elif s.link_offered[link] > s.link_capacity[link]:
            i = s.n_fill_links
            s.n_fill_links += 1
            s.link_mark[link] = s.fills
            s.link_place[link] = i
            s.fill_link[i] = link
            s.fill_room[i] = s.link_capacity[link]
            s.fill_flows[i] = s.use_flows[use]
            _take_jobs(s, link)
        use = s.use_binding[use]


@kernel
def _rise(s):
    """Modify `s`: `fill_rate` of all jobs of the component."""
    rising = s.n_fill_jobs
    while rising > 0:
        level, full = math.inf, -1
        for i in range(s.n_fill_links):
            if s.fill_height[i] < level:
                level, full = s.fill_height[i], i
        if s.least_top <= level:
            rising -= _stop_at_top(s, level)
        else:
            rising -= _stop_at_link(s, s.fill_link[full], max(1.0, np.floor(level)))


@kernel
def _stop_at_top(s, level):
    """Modify `s`: rising jobs that reach their highest rate by `level` have that; returns how many."""
    stopped = 0
    least = math.inf
    for i in range(s.n_fill_jobs):
        job = s.fill_job[i]
        if s.fill_rate[job] == 0.0:
            top = s.fill_top[i]
            if top <= level:
                _stop(s, job, top)
                stopped += 1
            else:
                least = min(least, top)
    s.least_top = least
    return stopped


@kernel
def _stop_at_link(s, link, rate):
    """Modify `s`: the rising jobs of a full link have `rate`; returns how many."""
    stopped = 0
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.is_sending[job] and s.fill_rate[job] == 0.0:
            _stop(s, job, rate)
            stopped += 1
        use = s.use_next[use]
    return stopped


@kernel
def _stop(s, job, rate):
    """Modify `s`: a job rises no higher."""
    s.fill_rate[job] = rate
    use = s.first_binding[job]
    while use >= 0:
        link = s.use_link[use]
        if s.link_mark[link] == s.fills:
            i = s.link_place[link]
            s.fill_room[i] -= s.use_flows[use] * rate
            s.fill_flows[i] -= s.use_flows[use]
            s.fill_height[i] = s.fill_room[i] / s.fill_flows[i] if s.fill_flows[i] > 0.0 else math.inf
        use = s.use_binding[use]


@kernel
def _set_rate(s, job, rate):
    """Modify `s`: a sending job goes on at another rate; the end of its phase moves."""
    sent = s.send_rate[job] * (s.phase_now_s - s.sent_since_s[job])
    s.bytes_left[job] = max(0.0, s.bytes_left[job] - sent)
    s.sent_since_s[job] = s.phase_now_s
    s.send_rate[job] = rate
    set_end(s, job, s.phase_now_s + s.bytes_left[job] / rate)
    trace(s, job, rate, s.phase_rate[job, s.phase[job]])
