"""Max-min filling by priorities and weights on a full link.

Jobs of a higher priority are filled as if alone, and the others share the rest. Within a priority rates rise in
proportion to weights, whole 2^-20ths, so that sums are exact; with equal weights of 1 and one priority the rates are
those of max_min_sparse.py. Every job has at least 1 byte per second.

A weight may grow with the sent part of an iteration (`grows`), base + slope x that part, as in MLTCP: in steps of equal
parts of the bytes, each at its middle. A job that is held back has an event where its next step begins.
"""

import math

from ..compiler.jit import kernel
from ..numerics.instructions import floor
from .link_use import mark_full
from .max_min_sparse import first_at, gather

PART = 1048576.0  # weights are whole parts of so many: exact in sums
ON_TIME = 1e-9  # of a step: so near to its end is there


@kernel
def fill_weighted(s):
    """Modify `s`: `fill_rate` of the component of the dirty links, and its jobs; returns how many these are."""
    jobs, links = gather(s)
    if s.weight_steps > 0:
        for i in range(jobs):
            s.flow_weight[s.fill_job[i]] = _grown(s, s.fill_job[i])
    left = jobs
    while left > 0:
        left -= _rise(s, jobs, links, _highest(s, jobs))
    for i in range(jobs):
        s.may_join[s.fill_job[i]] = 1
    return jobs


@kernel
def set_importance(s, job, weight, priority):
    """Modify `s`: a job in its links has this weight, > 0, and priority from now on."""
    weight = max(1.0, floor(weight * PART + 0.5)) / PART
    if weight == s.flow_weight[job] and priority == s.flow_priority[job]:
        return
    s.flow_weight[job] = weight
    s.flow_priority[job] = priority
    s.is_weighted = 1
    if s.is_sending[job]:
        mark_full(s, job)


@kernel
def step_end(s, job):
    """Modify `s`: bytes that a sending job whose weight grows has left when it next does, 0 if not in this phase."""
    total, before = 0.0, 0.0
    for phase in range(s.n_phases[job]):
        before += s.phase_bytes[job, phase] if phase < s.phase[job] else 0.0
        total += s.phase_bytes[job, phase]
    sent = before + s.phase_bytes[job, s.phase[job]] - s.bytes_left[job]
    step = floor(sent / total * s.weight_steps + ON_TIME) + 1.0
    return max(0.0, s.bytes_left[job] - (step * total / s.weight_steps - sent))


@kernel
def _grown(s, job):
    total, sent = 0.0, 0.0
    for phase in range(s.n_phases[job]):
        sent += s.phase_bytes[job, phase] if phase <= s.phase[job] else 0.0
        total += s.phase_bytes[job, phase]
    sent -= max(0.0, s.bytes_left[job] - s.send_rate[job] * (s.phase_now_s - s.sent_since_s[job]))
    step = min(floor(sent / total * s.weight_steps + ON_TIME), s.weight_steps - 1.0)
    weight = s.weight_base + s.weight_slope * (step + 0.5) / s.weight_steps
    return max(1.0, floor(weight * PART + 0.5)) / PART


@kernel
def _highest(s, jobs):
    highest = -math.inf
    for i in range(jobs):
        if s.fill_rate[s.fill_job[i]] == 0.0:
            highest = max(highest, float(s.flow_priority[s.fill_job[i]]))
    return highest


@kernel
def _rise(s, jobs, links, priority):
    """Modify `s`: `fill_rate` of a priority's jobs, on what those above it have left; returns how many they are."""
    rising, least_top = _write_flows(s, jobs, links, priority)
    risen = rising
    while rising > 0:
        level = math.inf
        for i in range(links):
            level = min(level, s.fill_height[i])
        if least_top <= level:
            least_top = math.inf
            for i in range(jobs):
                job = s.fill_job[i]
                if s.fill_rate[job] == 0.0 and s.flow_priority[job] == priority:
                    if s.send_top[job] <= level * s.flow_weight[job]:
                        _stop(s, job, s.send_top[job], -1, 0.0)
                        rising -= 1
                    else:
                        least_top = min(least_top, s.send_top[job] / s.flow_weight[job])
        else:
            rising -= _stop_at_link(s, first_at(s, links, level), level, priority)
    return risen


@kernel
def _write_flows(s, jobs, links, priority):
    """Modify `s`: flows x weight of a priority's jobs on each hot link; returns their number and least top / weight."""
    base = s.fills * s.fill_link.size
    for i in range(links):
        s.fill_flows[i] = 0.0
    rising, least_top = 0, math.inf
    for i in range(jobs):
        job = s.fill_job[i]
        if s.fill_rate[job] == 0.0 and s.flow_priority[job] == priority:
            rising += 1
            least_top = min(least_top, s.send_top[job] / s.flow_weight[job])
            use = s.first_binding[job]
            while use >= 0:
                place = s.link_place[s.use_link[use]] - base
                if place >= 0:
                    s.fill_flows[place] += s.use_flows[use] * s.flow_weight[job]
                use = s.use_binding[use]
    for i in range(links):
        _set_height(s, i)
    return rising, least_top


@kernel
def _set_height(s, place):
    flows = s.fill_flows[place]
    s.fill_height[place] = floor(s.fill_room[place] / flows) if flows > 0.0 else math.inf


@kernel
def _stop_at_link(s, link, level, priority):
    stopped = 0
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.fill_rate[job] == 0.0 and s.is_sending[job] and s.flow_priority[job] == priority:
            rate = min(s.send_top[job], max(1.0, floor(level * s.flow_weight[job])))
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
            s.fill_flows[place] -= s.use_flows[use] * s.flow_weight[job]
            s.fill_room[place] -= s.use_flows[use] * rate
            _set_height(s, place)
        use = s.use_binding[use]
