"""Max-min fair rates of jobs that share links: progressive filling (Bertsekas and Gallager, Data Networks, Sec. 6.5.2).

A job has one rate on all its links and takes flows x rate of each. All rates of a component rise together until a link
is full, where its jobs stop, or a job has the rate of its phase. A component is joined by hot links, those to which
more is offered than fits; they may carry less than their capacity (`link_overload_capacity`). Rates are whole bytes per
second, rounded down, at least 1; of links full at the same rate the lowest number is first. So the rates of a component
depend only on its senders. Weights, priorities: max_min_weighted.py.
"""

from ..compiler.jit import kernel
from ..numerics import heap
from .link_use import book_waiting
from .max_min_changes import doubt_all, fill_changes
from .max_min_dense import fill_table, has_table
from .max_min_sparse import fill_lists
from .max_min_weighted import fill_weighted, step_end


@kernel
def set_end(s, job, end_s):
    """Modify `s`: the present part of a job ends then."""
    s.phase_end_s[job] = end_s
    heap.change(s.phase_key, s.phase_item, s.phase_position, 0, s.phase_count, job, end_s)


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
def fill(s):
    """Modify `s`: new rates for the jobs on dirty links and all that hot links join to them; nothing is dirty then."""
    s.fills += 1
    if s.is_weighted:
        jobs = fill_weighted(s)
    else:
        jobs = _fill_equal(s)
    s.filled += jobs
    for i in range(jobs):
        job = s.fill_job[i]
        if s.fill_rate[job] != s.send_rate[job] or s.weight_steps > 0 or _is_held_elsewhere(s, job):
            _set_rate(s, job, s.fill_rate[job])


@kernel
def _is_held_elsewhere(s, job):
    """True if a job that waits is held back by another link than before, at the same rate."""
    return s.stop_link[job] != s.held_at[job] and s.fill_rate[job] < s.send_top[job]


@kernel
def _fill_equal(s):
    """Modify `s`: `fill_rate` of jobs with equal weights; returns how many may have another than before."""
    is_new = not s.is_laid
    if has_table(s):
        return fill_table(s)
    jobs = -1
    if not is_new:
        jobs = fill_changes(s)
    elif not s.fits_table:
        doubt_all(s)
    return jobs if jobs >= 0 else fill_lists(s)


@kernel
def _set_rate(s, job, rate):
    """Modify `s`: a sending job has another rate or bottleneck; the end of its phase or weight step moves."""
    book_waiting(s, job)
    s.held_at[job] = s.stop_link[job]
    s.held_flows[job] = s.stop_flows[job]
    sent = s.send_rate[job] * (s.phase_now_s - s.sent_since_s[job])
    s.bytes_left[job] = max(0.0, s.bytes_left[job] - sent)
    s.sent_since_s[job] = s.phase_now_s
    s.send_rate[job] = rate
    s.step_left[job] = step_end(s, job) if s.weight_steps > 0 and rate < s.send_top[job] else 0.0
    set_end(s, job, s.phase_now_s + (s.bytes_left[job] - s.step_left[job]) / rate)
    trace(s, job, rate, s.phase_rate[job, s.phase[job]])
