"""Links of a network: their users, the rates offered to them, and their congestion.

The offer to a link is the rate of a phase, or what the job's links leave to it without others (`send_top`). Rates and
capacities are whole bytes per second, so that sums are exact in any order.

Congestion is the offered rate above the carried one, integrated over time: bytes that would have to wait, our stand-in
for the ECN marks of paper cassini, Sec. 5. They wait only at the link that decides the job's rate.
"""

import math

from ..compiler.jit import kernel
from .bottlenecks import sieve


@kernel
def clear_links(s, n_links, n_jobs):
    """Modify `s`: a network of so many links at time 0, without jobs; the caller writes capacities and options."""
    s.n_links = n_links
    s.phase_now_s = 0.0
    s.adjustments = s.phase_events = s.iteration_count = s.phase_count = s.n_dirty = s.trace_count = 0
    s.fills = s.sievings = s.filled = s.n_binding = 0
    s.is_weighted = s.weight_steps = 0
    s.is_laid = s.fits_table = s.n_seats = s.n_columns = s.seats_sending = 0
    s.iteration_sum_s = s.stalled_s = 0.0
    s.ended_job = -1
    s.free_use = -1
    s.n_uses = 0
    for link in range(n_links):
        s.link_first[link] = -1
        s.link_offered[link] = s.link_bytes[link] = s.link_congestion[link] = 0.0
        s.is_dirty[link] = s.link_place[link] = s.link_users[link] = 0
        s.is_slack[link] = 1
        s.link_level[link] = math.inf
        s.link_flows[link] = 0.0
        s.recheck_position[link] = -1
        s.column_of[link] = -1
    for job in range(n_jobs):
        s.first_use[job] = s.first_binding[job] = s.phase_position[job] = s.phase[job] = s.seat_of[job] = -1
        s.held_at[job] = s.stop_link[job] = -1
        s.cut_off[job] = s.is_sending[job] = s.may_join[job] = s.draws[job] = s.job_rounds[job] = s.sieve_mark[job] = 0
        s.job_congestion[job] = s.job_rounds_s[job] = s.job_up_s[job] = s.last_round_s[job] = s.send_rate[job] = 0.0
        s.held_flows[job] = s.stop_flows[job] = s.fill_rate[job] = 0.0
        s.job_alone_s[job] = 0.0
        s.shift_s[job] = -1.0
        s.stretch[job] = s.flow_weight[job] = 1.0
        s.flow_priority[job] = 0
        s.rounds_left[job] = math.inf
    for i in range(s.iteration_bins.size):
        s.iteration_bins[i] = 0


@kernel
def add_use(s, job, link, flows):
    """Modify `s`: the collective of a job that is not in the network yet crosses a link; False if the pool is empty."""
    use = s.free_use
    if use >= 0:
        s.free_use = s.use_after[use]
    elif s.n_uses < s.use_after.size:
        use = s.n_uses
        s.n_uses += 1
    else:
        return False
    s.use_job[use] = job
    s.use_link[use] = link
    s.use_flows[use] = flows
    s.use_after[use] = s.first_use[job]
    s.first_use[job] = use
    return True


@kernel
def drop_uses(s, job):
    """Modify `s`: give the uses of a job back to the pool; it is in no list of a link."""
    use = s.first_use[job]
    while use >= 0:
        after = s.use_after[use]
        s.use_after[use] = s.free_use
        s.free_use = use
        use = after
    s.first_use[job] = s.first_binding[job] = -1


@kernel
def enter_links(s, job):
    """Modify `s`: a job whose phases and uses are written is on its links from now on; it has no shift."""
    join_links(s, job)
    s.flow_weight[job] = 1.0
    s.flow_priority[job] = 0
    s.shift_s[job] = -1.0
    s.slot[job] = -math.inf


@kernel
def join_links(s, job):
    """Modify `s`: a job whose phases and uses are written is on these links; what it takes alone is on whole ones."""
    use = s.first_use[job]
    own = math.inf
    while use >= 0:
        link = s.use_link[use]
        head = s.link_first[link]
        s.use_prev[use] = -1
        s.use_next[use] = head
        if head >= 0:
            s.use_prev[head] = use
        s.link_first[link] = use
        s.link_users[link] += 1
        s.link_flows[link] += s.use_flows[use]
        own = min(own, max(1.0, s.link_whole[link] // s.use_flows[use]))
        use = s.use_after[use]
    s.own_rate[job] = own
    s.cut_off[job] = 0
    sieve(s, job)
    alone_s = s.tail_s[job]
    for phase in range(s.n_phases[job]):
        alone_s += s.phase_down_s[job, phase] + alone_up_s(s, job, phase)
    s.alone_s[job] = alone_s


@kernel
def alone_up_s(s, job, phase):
    """Seconds of an Up phase if no other job sends."""
    return s.phase_bytes[job, phase] / min(s.phase_rate[job, phase], s.own_rate[job])


@kernel
def leave_links(s, job):
    """Modify `s`: a job that has left (phases.leave) is on no link any more."""
    use = s.first_use[job]
    while use >= 0:
        before, after = s.use_prev[use], s.use_next[use]
        s.link_users[s.use_link[use]] -= 1
        s.link_flows[s.use_link[use]] -= s.use_flows[use]
        if before >= 0:
            s.use_next[before] = after
        else:
            s.link_first[s.use_link[use]] = after
        if after >= 0:
            s.use_prev[after] = before
        use = s.use_after[use]
    sieve(s, job)
    drop_uses(s, job)


@kernel
def set_capacity(s, link, capacity, carried):
    """Modify `s`: a link's capacity, at most its whole one, and what arrives of it when more is offered than fits."""
    least = min(s.link_capacity[link], capacity)
    s.link_capacity[link] = capacity
    s.link_overload_capacity[link] = carried
    use = s.link_first[link]
    while use >= 0:
        sieve(s, s.use_job[use])
        use = s.use_next[use]
    if s.link_offered[link] > least:
        _make_dirty(s, link)


@kernel
def _make_dirty(s, link):
    if not s.is_dirty[link]:
        s.is_dirty[link] = 1
        s.dirty_link[s.n_dirty] = link
        s.n_dirty += 1


@kernel
def offer(s, link, change):
    """Modify `s`: what is offered to a link changes; the rates of its jobs are due if it was or is more than fits."""
    before = s.link_offered[link]
    capacity = s.link_capacity[link]
    after = before + change
    s.link_offered[link] = after
    if (before > capacity or after > capacity) and not s.is_slack[link]:
        _make_dirty(s, link)


@kernel
def mark_full(s, job):
    """Modify `s`: new rates are due for all that share a link with a job to which more is offered than fits."""
    use = s.first_binding[job]
    while use >= 0:
        link = s.use_link[use]
        if s.link_offered[link] > s.link_capacity[link]:
            _make_dirty(s, link)
        use = s.use_binding[use]


@kernel
def book_waiting(s, job):
    """Modify `s`: what has waited of a sending job since it got its rate, which it is about to lose, is booked."""
    waited = waiting_now(s, job)
    if waited > 0.0:
        s.job_congestion[job] += waited
        s.link_congestion[s.held_at[job]] += waited


@kernel
def waiting_now(s, job):
    """Bytes of a sending job that have waited and are not booked yet."""
    return s.held_flows[job] * (s.send_top[job] - s.send_rate[job]) * (s.phase_now_s - s.sent_since_s[job])


@kernel
def link_congestion_now(s, link):
    """Bytes of congestion on a link until now."""
    total = s.link_congestion[link]
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.is_sending[job] and s.held_at[job] == link:
            total += waiting_now(s, job)
        use = s.use_next[use]
    return total


@kernel
def congestion_now(s):
    """Bytes of congestion of all jobs until now."""
    total = 0.0
    for job in range(s.job_congestion.size):
        total += job_congestion_now(s, job)
    return total


@kernel
def job_congestion_now(s, job):
    """A job's part of the congestion of its links, until now."""
    return s.job_congestion[job] + (waiting_now(s, job) if s.is_sending[job] else 0.0)
