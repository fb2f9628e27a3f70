"""Max-min filling that follows a change: only the links and jobs that it reaches are looked at again.

The rates are those of max_min_sparse.py, which fills a whole component and stops jobs in the order of (rate, link); a
job at its highest rate stops at link -1. So each stop is a key, and the keys of a link's jobs say where it is full.
Here the keys of the last filling hold until a changed link has its turn, in the order of keys. A link that is full
earlier stops its jobs there. One that would be full later lets its stopped jobs go on, until it is full or they have
their highest rate. Either way the jobs' other links have changed, and may have a later turn. A link on which all jobs
have room for their rates and a byte more has none.

Keys, `fill_rate` and `stop_link`, are of all jobs once everything was filled (`doubt_all`); of idle jobs 0 and -1.
"""

import math

from ..compiler.jit import kernel
from ..numerics import heap
from ..numerics.instructions import floor

LEAST = 2.0  # bytes per second: below, jobs get more than there is, and the order of keys is lost


@kernel
def doubt_all(s):
    """Modify `s`: rates of all jobs are due, since a job has come or gone: links may decide that did not before."""
    for i in range(s.phase_count):
        s.stop_link[s.phase_item[i]] = -1
    for link in range(s.n_links):
        s.link_level[link] = math.inf
        if s.link_offered[link] > s.link_capacity[link] and not s.is_slack[link] and not s.is_dirty[link]:
            s.is_dirty[link] = 1
            s.dirty_link[s.n_dirty] = link
            s.n_dirty += 1


@kernel
def fill_changes(s):
    """Modify `s`: `fill_rate` of the jobs that get another key; returns how many they are, -1: fill the component."""
    jobs = s.n_rechecks = 0
    for i in range(s.n_dirty):
        _look_at(s, s.dirty_link[i])
    while s.n_rechecks > 0:
        level, link = s.recheck_level[0], s.recheck_link[0]
        if level < LEAST:
            _give_up(s, jobs)
            return -1
        was = s.link_level[link]
        found = _full_at(s, link, level, was if was > level else math.inf)
        if found > level and was > level:
            _set_recheck(s, link, found)
            continue
        s.link_level[link] = found
        _set_recheck(s, link, found if found > level else math.inf)
        jobs = _move_jobs(s, link, level, found, jobs)
    for i in range(s.n_dirty):
        s.is_dirty[s.dirty_link[i]] = 0
    s.n_dirty = 0
    for i in range(jobs):
        s.may_join[s.fill_job[i]] = 1
    return jobs


@kernel
def _give_up(s, jobs):
    for i in range(s.n_rechecks):
        s.recheck_position[s.recheck_link[i]] = -1
    s.n_rechecks = 0
    for i in range(jobs):
        s.may_join[s.fill_job[i]] = 1


@kernel
def _look_at(s, link):
    load = 0.0
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        load += s.use_flows[use] * s.fill_rate[job]
        use = s.use_next[use]
    s.link_load[link] = load
    if s.link_level[link] < math.inf or _may_fill(s, link):
        _set_recheck(s, link, _full_at(s, link, 0.0, s.link_level[link]))


@kernel
def _may_fill(s, link):
    """False if all jobs of a link have room for their rates and a byte more: then none stops there."""
    return s.link_load[link] + s.link_flows[link] > s.link_overload_capacity[link]


@kernel
def _set_recheck(s, link, level):
    if s.recheck_position[link] >= 0:
        if level < math.inf:
            heap.change(s.recheck_level, s.recheck_link, s.recheck_position, 0, s.n_rechecks, link, level)
        else:
            heap.remove(s.recheck_level, s.recheck_link, s.recheck_position, 0, s.n_rechecks, link)
            s.n_rechecks -= 1
    elif level < math.inf:
        heap.push(s.recheck_level, s.recheck_link, s.recheck_position, 0, s.n_rechecks, level, link)
        s.n_rechecks += 1


@kernel
def _full_at(s, link, level, most):
    """Where a link is full, at `level` or above, if all jobs stop at other links where their keys say; or `most`."""
    if s.link_offered[link] <= s.link_capacity[link]:
        return most
    carried = s.link_overload_capacity[link]
    while level < most:
        room, rising = carried, 0.0
        use = s.link_first[link]
        while use >= 0:
            job, flows = s.use_job[use], s.use_flows[use]
            rate, at = s.fill_rate[job], s.stop_link[job]
            rate = s.send_top[job] if at == link else rate
            # Whether a job stops before is a coin toss: selecting is cheaper than branching.
            stops = (rate < level) | ((rate == level) & (at < link))
            room -= flows * rate if stops else 0.0
            rising += 0.0 if stops else flows
            use = s.use_next[use]
        if rising == 0.0:
            return most
        height = floor(room / rising)
        if height <= level:
            return height
        level = height
    return most


@kernel
def _move_jobs(s, link, level, found, jobs):
    """Modify `s`: a link with its turn at `level` is full at `found`: new keys; returns how many jobs have any.

    Jobs without a key stop there if it is now; if it is later, those that had stopped at it go on.
    """
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        rate, at = s.fill_rate[job], s.stop_link[job]
        rises = at == link if found > level else rate > level or (rate == level and at >= link)
        if rises:
            top = s.send_top[job]
            new_rate, new_at = (top, -1) if top <= found else (found, link)
            if new_rate != rate or new_at != at:
                s.stop_flows[job] = s.use_flows[use]
                jobs = _note(s, job, jobs)
                _move(s, job, new_rate, new_at, link, level)
        use = s.use_next[use]
    return jobs


@kernel
def _note(s, job, jobs):
    if s.may_join[job]:
        s.may_join[job] = 0
        s.fill_job[jobs] = job
        jobs += 1
    return jobs


@kernel
def _move(s, job, rate, at, mover, level):
    """Modify `s`: a job has another key, at the turn of link `mover` at `level`: its other links may have a turn."""
    before, before_at = s.fill_rate[job], s.stop_link[job]
    s.fill_rate[job] = rate
    s.stop_link[job] = at
    is_earlier = rate < before or (rate == before and at < before_at)
    use = s.first_binding[job]
    while use >= 0:
        link = s.use_link[use]
        s.link_load[link] += s.use_flows[use] * (rate - before)
        if link != mover:
            if is_earlier:  # the link is full no earlier than it was
                if s.recheck_position[link] < 0 and s.link_level[link] < math.inf:
                    _set_recheck(s, link, s.link_level[link])
            elif s.recheck_position[link] >= 0 or s.link_level[link] < math.inf or _may_fill(s, link):
                _set_recheck(s, link, _full_at(s, link, level, s.link_level[link]))
        use = s.use_binding[use]
