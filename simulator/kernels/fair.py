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
    jobs, links = _gather(s)
    s.filled += jobs
    _rise(s, jobs, links)
    for i in range(jobs):
        job = s.fill_job[i]
        s.may_join[job] = 1
        if s.fill_rate[job] != s.send_rate[job]:
            _set_rate(s, job, s.fill_rate[job])


@kernel
def _gather(s):
    """Modify `s`: the component of the dirty links; returns how many jobs and hot links it has."""
    base = s.fills * s.fill_link.size
    jobs = links = 0
    for i in range(s.n_dirty):
        s.is_dirty[s.dirty_link[i]] = 0
        jobs = _take_jobs(s, s.dirty_link[i], jobs)
    s.n_dirty = 0
    seen = 0
    while seen < jobs:
        job = s.fill_job[seen]
        s.fill_rate[job] = 0.0
        s.fill_top[seen] = top_rate(s, job)
        seen += 1
        use = s.first_binding[job]
        while use >= 0:
            link = s.use_link[use]
            place = s.link_place[link] - base
            if place >= 0:
                s.fill_flows[place] += s.use_flows[use]
            elif s.link_offered[link] > s.link_capacity[link]:
                s.link_place[link] = base + links
                s.fill_link[links] = link
                s.fill_room[links] = s.link_capacity[link]
                s.fill_flows[links] = s.use_flows[use]
                links += 1
                jobs = _take_jobs(s, link, jobs)
            use = s.use_binding[use]
    return jobs, links


@kernel
def _take_jobs(s, link, jobs):
    """Modify `s`: the sending jobs of a link join the component's `jobs`; returns how many these are then."""
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.may_join[job]:
            s.may_join[job] = 0
            s.fill_job[jobs] = job
            jobs += 1
        use = s.use_next[use]
    return jobs


@kernel
def _rise(s, jobs, links):
    """Modify `s`: `fill_rate` of all jobs of the component, which are 0 before; then none is."""
    for i in range(links):
        s.fill_height[i] = s.fill_room[i] / s.fill_flows[i]
    least_top = math.inf
    for i in range(jobs):
        least_top = min(least_top, s.fill_top[i])
    rising = jobs
    while rising > 0:
        level, full = math.inf, 0
        for i in range(links):
            height = s.fill_height[i]
            full = i if height < level else full
            level = min(level, height)
        if least_top <= level:
            least_top = math.inf
            for i in range(jobs):
                top = s.fill_top[i]
                if s.fill_rate[s.fill_job[i]] == 0.0:
                    if top <= level:
                        _stop(s, s.fill_job[i], top)
                        rising -= 1
                    else:
                        least_top = min(least_top, top)
        else:
            rising -= _stop_at_link(s, s.fill_link[full], max(1.0, np.floor(level)))


@kernel
def _stop_at_link(s, link, rate):
    """Modify `s`: the rising jobs of a full link have `rate`; returns how many."""
    stopped = 0
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.fill_rate[job] == 0.0:
            _stop(s, job, rate)
            stopped += 1
        use = s.use_next[use]
    return stopped


@kernel
def _stop(s, job, rate):
    """Modify `s`: a job rises no higher."""
    s.fill_rate[job] = rate
    base = s.fills * s.fill_link.size
    use = s.first_binding[job]
    while use >= 0:
        place = s.link_place[s.use_link[use]] - base
        if place >= 0:
            flows = s.fill_flows[place] - s.use_flows[use]
            room = s.fill_room[place] - s.use_flows[use] * rate
            s.fill_flows[place] = flows
            s.fill_room[place] = room
            s.fill_height[place] = (room if flows > 0.0 else math.inf) / max(flows, 1.0)
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
