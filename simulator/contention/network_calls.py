"""The kernels of a network as Python calls them, by array of records and row; see clock_calls.py."""

from __future__ import annotations

from ..compiler.jit import entry
from ..flows import cable_failures, link_use, max_min_weighted, phase_clock, sessions
from ..numerics.heap import schedule_event


@entry
def clear_links(states, row, n_links, n_jobs):
    link_use.clear_links(states[row], n_links, n_jobs)


@entry
def enter_links(states, row, job, used, flows):
    """Modify the record: a job enters links, int64 (k,), with flows, float64 (k,); False, nothing changed: no room."""
    s = states[row]
    for i in range(used.size):
        if not link_use.add_use(s, job, used[i], flows[i]):
            link_use.drop_uses(s, job)
            return False
    link_use.enter_links(s, job)
    return True


@entry
def is_on(states, row, job, used, flows):
    return phase_clock.is_on(states[row], job, used, flows)


@entry
def reroute(states, row, job, used, flows):
    return phase_clock.reroute(states[row], job, used, flows)


@entry
def draw_cable_failures(states, row, first):
    """`cable_failures.draw_cable_failure` of all cables, by their first links, int64 (cables,)."""
    for i in range(first.size):
        cable_failures.draw_cable_failure(states[row], first[i])


@entry
def schedule_change(states, row, time_s):
    """Modify the record: capacities change at that time, an event; infinity: not any more."""
    s = states[row]
    schedule_event(s, s.first_cable_event + s.n_links, time_s)


@entry
def set_capacity(states, row, link, capacity, carried):
    link_use.set_capacity(states[row], link, capacity, carried)


@entry
def leave_links(states, row, job):
    """`phase_clock.leave` and `link_use.leave_links`."""
    phase_clock.leave(states[row], job)
    link_use.leave_links(states[row], job)


@entry
def begin(states, row, job, begin_s, at):
    phase_clock.begin(states[row], job, begin_s, at)


@entry
def set_shift(states, row, job, seconds, period_s):
    phase_clock.set_shift(states[row], job, seconds, period_s)


@entry
def set_importance(states, row, job, weight, priority):
    max_min_weighted.set_importance(states[row], job, weight, priority)


@entry
def play(states, row, until_s):
    return phase_clock.play(states[row], until_s)


@entry
def position(states, row, job):
    return phase_clock.position(states[row], job)


@entry
def congestion_now(states, row):
    return link_use.congestion_now(states[row])


@entry
def job_congestion_now(states, row, job):
    return link_use.job_congestion_now(states[row], job)


@entry
def link_totals(states, row, sent, congestion):
    """Modify `sent` and `congestion`, float64 (L,): bytes that crossed each link, and of its congestion, until now."""
    for link in range(sent.size):
        sent[link] = phase_clock.link_bytes_now(states[row], link)
        congestion[link] = link_use.link_congestion_now(states[row], link)


@entry
def enter_session(states, row, job, offset_s):
    sessions.enter_session(states[row], job, offset_s)
