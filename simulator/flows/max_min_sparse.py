"""Max-min filling of a component of any size, by the lists of a link's jobs and of a job's links."""

import math

from ..compiler.jit import kernel
from ..numerics.instructions import floor
from ..numerics.rounding import GRAIN


@kernel
def fill_lists(s):
    """Modify `s`: `fill_rate` of the component of the dirty links, and its jobs; returns how many these are."""
    jobs, links = gather(s)
    _rise(s, jobs, links)
    for i in range(jobs):
        s.may_join[s.fill_job[i]] = 1
    for i in range(links):
        s.link_load[s.fill_link[i]] = s.link_overload_capacity[s.fill_link[i]] - s.fill_room[i]
    return jobs


@kernel
def gather(s):
    """Modify `s`: the component of the dirty links; returns how many jobs and hot links it has."""
    base = s.fills * s.fill_link.size
    jobs = links = 0
    for i in range(s.n_dirty):
        s.is_dirty[s.dirty_link[i]] = 0
        s.link_level[s.dirty_link[i]] = math.inf
        jobs = _take_jobs(s, s.dirty_link[i], jobs)
    s.n_dirty = 0
    seen = 0
    while seen < jobs:
        job = s.fill_job[seen]
        s.fill_rate[job] = 0.0
        seen += 1
        use = s.first_binding[job]
        while use >= 0:
            link = s.use_link[use]
            place = s.link_place[link] - base
            if place >= 0:
                s.fill_flows[place] += s.use_flows[use]
            elif s.link_offered[link] > s.link_capacity[link]:
                s.link_place[link] = base + links
                s.link_level[link] = math.inf
                s.fill_link[links] = link
                s.fill_room[links] = s.link_overload_capacity[link]
                s.fill_flows[links] = s.use_flows[use]
                links += 1
                jobs = _take_jobs(s, link, jobs)
            use = s.use_binding[use]
    return jobs, links


@kernel
def _take_jobs(s, link, jobs):
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
        s.fill_height[i] = floor(s.fill_room[i] / s.fill_flows[i])
    least_top = math.inf
    for i in range(jobs):
        least_top = min(least_top, s.send_top[s.fill_job[i]])
    rising = jobs
    while rising > 0:
        level = math.inf
        for i in range(links):
            level = min(level, s.fill_height[i])
        if least_top <= level:
            least_top = math.inf
            for i in range(jobs):
                top = s.send_top[s.fill_job[i]]
                if s.fill_rate[s.fill_job[i]] == 0.0:
                    if top <= level:
                        _stop(s, s.fill_job[i], top, -1, 0.0)
                        rising -= 1
                    else:
                        least_top = min(least_top, top)
        else:
            rising -= _stop_at_link(s, first_at(s, links, level), max(1.0, level))


@kernel
def first_at(s, links, level):
    """Of the links that are full at a level that with the lowest number."""
    first = s.n_links
    for i in range(links):
        if s.fill_height[i] == level and s.fill_link[i] < first:
            first = s.fill_link[i]
    return first


@kernel
def _stop_at_link(s, link, rate):
    stopped = 0
    s.link_level[link] = rate
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.fill_rate[job] == 0.0 and s.is_sending[job]:
            _stop(s, job, rate, link, s.use_flows[use])
            stopped += 1
        use = s.use_next[use]
    return stopped


@kernel
def _stop(s, job, rate, link, flows):
    """Modify `s`: a job rises no higher, because of a link, across which it has so many flows, or of none, -1."""
    s.fill_rate[job] = rate
    s.stop_link[job] = link
    s.stop_flows[job] = flows
    base = s.fills * s.fill_link.size
    use = s.first_binding[job]
    while use >= 0:
        place = s.link_place[s.use_link[use]] - base
        if place >= 0:
            flows = s.fill_flows[place] - s.use_flows[use]
            room = s.fill_room[place] - s.use_flows[use] * rate
            s.fill_flows[place] = flows
            s.fill_room[place] = room
            s.fill_height[place] = floor((room if flows > 0.0 else math.inf) / max(flows, GRAIN))
        use = s.use_binding[use]
