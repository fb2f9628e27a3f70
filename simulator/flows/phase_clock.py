"""Jobs on a network, phase by phase: each iteration is Down and Up in turn, and Up phases share links.

The network has its own clock, `phase_now_s`, which only `play` moves. Events of one instant go in the order of the
jobs, then rates are computed. Nothing is updated between calls, so the cuts between calls do not change a bit.
"""

import math

from ..compiler.jit import kernel
from ..numerics import heap
from .iterations import draw_factor, is_last_round, next_start, note_round
from .link_use import add_use, alone_up_s, book_waiting, join_links, leave_links, mark_full, offer
from .max_min import fill, set_end, trace
from .max_min_dense import note_sending


@kernel
def begin(s, job, begin_s, at):
    """Modify `s`: a job on its links iterates from `begin_s` on, not before now; later with a shift.

    `at`, in [0, 1), is the part of its first iteration done before, by time alone; see `position`. With a shift, the
    rest ends where a whole one from a slot would. Set `rounds_left` and the shift before.
    """
    s.rounds_done[job] = 0.0
    s.first_round[job] = at
    s.phase[job] = -1
    s.is_sending[job] = 0
    s.send_rate[job] = 0.0
    s.round_began_s[job] = begin_s
    s.round_up_s[job] = 0.0
    s.slot[job] = -math.inf
    heap.push(s.phase_key, s.phase_item, s.phase_position, 0, s.phase_count, math.inf, job)
    s.phase_count += 1
    set_end(s, job, _await(s, job, max(begin_s, s.phase_now_s)))


@kernel
def leave(s, job):
    """Modify `s`: a job iterates no more; it may be on its links still."""
    if s.phase_position[job] < 0:
        return
    if s.is_sending[job]:
        _stop_sending(s, job, bytes_left_now(s, job))
    elif s.phase[job] < 0:
        note_round(s, job)
    _take_out(s, job)


@kernel
def _take_out(s, job):
    heap.remove(s.phase_key, s.phase_item, s.phase_position, 0, s.phase_count, job)
    s.phase_count -= 1
    s.phase[job] = -1


@kernel
def set_shift(s, job, seconds, period_s):
    """Modify `s`: from its next iteration on a job begins at `seconds` modulo `period_s`; seconds < 0: at any time."""
    s.shift_s[job] = seconds
    s.period_s[job] = period_s
    s.slot[job] = -math.inf
    if s.phase_position[job] >= 0 and s.phase[job] < 0:
        set_end(s, job, _await(s, job, max(s.ready_s[job], s.phase_now_s)))


@kernel
def play(s, until_s):
    """Modify `s`: let time pass until `until_s`, or until a job's last iteration ends; returns the time.

    `ended_job` is that job, or -1. Others may end at the same instant: call again. It may also return with -1 when the
    log of rates is full.
    """
    s.ended_job = -1
    while True:
        if s.phase_count == 0 or s.phase_key[0] > s.phase_now_s:
            if s.n_dirty > 0:
                fill(s)
                continue
            if s.phase_count == 0 or s.phase_key[0] > until_s or s.phase_key[0] == math.inf:
                break
            s.phase_now_s = s.phase_key[0]
        if s.trace_s.size > 1 and s.trace_count + s.phase_position.size + 4 > s.trace_s.size:
            return s.phase_now_s
        _step(s, s.phase_item[0])
        if s.ended_job >= 0:
            return s.phase_now_s
    if until_s < math.inf:
        s.phase_now_s = max(s.phase_now_s, until_s)
    return until_s


@kernel
def _step(s, job):
    if s.phase[job] < 0:
        _begin_round(s, job)
        if s.rounds_done[job] == 0.0 and s.first_round[job] > 0.0:
            _begin_within(s, job, s.first_round[job] * s.alone_s[job])
        else:
            _go_on(s, job)
    elif s.is_sending[job] and s.step_left[job] > 0.0:
        _step_weight(s, job)
    elif s.is_sending[job]:
        _stop_sending(s, job, 0.0)
        s.phase[job] += 1
        _go_on(s, job)
    elif s.phase[job] < s.n_phases[job]:
        _start_sending(s, job, s.phase_bytes[job, s.phase[job]])
    elif _goes_round(s, job):
        _go_on(s, job)


@kernel
def _go_on(s, job):
    """Modify `s`: a job does what is before its phase, or the tail; or the next iteration where there is none."""
    while True:
        phase = s.phase[job]
        if phase < s.n_phases[job]:
            if s.phase_down_s[job, phase] > 0.0:
                set_end(s, job, s.phase_now_s + s.phase_down_s[job, phase] * s.down_factor[job])
            else:
                _start_sending(s, job, s.phase_bytes[job, phase])
            return
        if s.tail_s[job] > 0.0:
            set_end(s, job, s.phase_now_s + s.tail_s[job] * s.down_factor[job])
            return
        if not _goes_round(s, job):
            return


@kernel
def _goes_round(s, job):
    s.rounds_done[job] += 1.0
    if is_last_round(s, job):
        note_round(s, job)
        _take_out(s, job)
        s.ended_job = job
        return False
    start_s = _await(s, job, s.phase_now_s)
    if start_s > s.phase_now_s:
        set_end(s, job, start_s)
        return False
    _begin_round(s, job)
    return True


@kernel
def _await(s, job, ready_s):
    """Modify `s`: a job waits for its next iteration, for which it is ready at `ready_s`; returns when that begins."""
    s.phase[job] = -1
    s.ready_s[job] = ready_s
    lead_s = s.first_round[job] * s.alone_s[job] if s.rounds_done[job] == 0.0 else 0.0
    return max(ready_s, next_start(s, job, ready_s - lead_s) + lead_s)


@kernel
def _begin_round(s, job):
    note_round(s, job)
    draw_factor(s, job)
    s.round_began_s[job] = s.phase_now_s
    s.phase[job] = 0


@kernel
def _begin_within(s, job, done_s):
    """Modify `s`: a job is where it would be alone after `done_s` of its iteration."""
    for phase in range(s.n_phases[job]):
        s.phase[job] = phase
        down_s = s.phase_down_s[job, phase]
        if done_s < down_s:
            set_end(s, job, s.phase_now_s + (down_s - done_s) * s.down_factor[job])
            return
        done_s -= down_s
        up_s = alone_up_s(s, job, phase)
        if done_s < up_s:
            _start_sending(s, job, s.phase_bytes[job, phase] * (1.0 - done_s / up_s))
            return
        done_s -= up_s
    s.phase[job] = s.n_phases[job]
    set_end(s, job, s.phase_now_s + max(0.0, s.tail_s[job] - done_s) * s.down_factor[job])


@kernel
def _start_sending(s, job, amount):
    s.phase_events += 1
    s.bytes_due[job] = s.bytes_left[job] = amount
    s.up_began_s[job] = s.phase_now_s
    _send(s, job)


@kernel
def _send(s, job):
    """Modify `s`: a job sends what is left of its phase, at the highest rate until `fill`; cut off, it waits."""
    s.is_sending[job] = 1
    s.step_left[job] = 0.0
    s.sent_since_s[job] = s.phase_now_s
    if s.cut_off[job]:
        s.send_rate[job] = s.send_top[job] = s.fill_rate[job] = s.held_flows[job] = 0.0
        s.held_at[job] = s.stop_link[job] = -1
        set_end(s, job, math.inf)
        trace(s, job, 0.0, s.phase_rate[job, s.phase[job]])
        return
    offered = s.phase_rate[job, s.phase[job]]
    rate = min(offered, s.own_rate[job])
    use = s.first_use[job]
    while use >= 0:
        link = s.use_link[use]
        offer(s, link, s.use_flows[use] * rate)
        use = s.use_after[use]
    s.may_join[job] = 1
    s.send_rate[job] = s.send_top[job] = s.fill_rate[job] = rate
    s.stop_link[job] = -1
    note_sending(s, job, 1.0)
    set_end(s, job, s.phase_now_s + s.bytes_left[job] / rate)
    trace(s, job, rate, offered)


@kernel
def reroute(s, job, used, flows):
    """Modify `s`: a job's links, int64 (k,), and flows, float64 (k,); none: cut off. Sent bytes stay; False: full."""
    sends = s.phase_position[job] >= 0 and s.is_sending[job]
    if sends:
        s.bytes_left[job] = bytes_left_now(s, job)
        _withdraw(s, job, s.bytes_due[job] - s.bytes_left[job])
        s.bytes_due[job] = s.bytes_left[job]
    leave_links(s, job)
    for i in range(used.size):
        if not add_use(s, job, used[i], flows[i]):
            return False
    if used.size > 0:
        join_links(s, job)
    else:
        s.cut_off[job] = 1
    if sends:
        _send(s, job)
    return True


@kernel
def is_on(s, job, used, flows):
    """True if a job is on these links with these flows, as they were written; on none: if it is cut off."""
    use = s.first_use[job]
    for i in range(used.size - 1, -1, -1):
        if use < 0 or s.use_link[use] != used[i] or s.use_flows[use] != flows[i]:
            return False
        use = s.use_after[use]
    return use < 0


@kernel
def _withdraw(s, job, sent):
    """Modify `s`: a sending job offers nothing to its links any more; so many bytes of a flow have crossed them."""
    book_waiting(s, job)
    s.stalled_s += stalled_now(s, job)
    use = s.first_use[job]
    while use >= 0:
        link = s.use_link[use]
        offer(s, link, -s.use_flows[use] * s.send_top[job])
        s.link_bytes[link] += s.use_flows[use] * sent
        use = s.use_after[use]
    if not s.cut_off[job]:
        note_sending(s, job, -1.0)
    s.is_sending[job] = s.may_join[job] = 0
    s.send_rate[job] = s.fill_rate[job] = 0.0
    s.stop_link[job] = -1


@kernel
def stalled_now(s, job):
    """Seconds that a sending job has been without a way, and that are not booked yet."""
    return s.phase_now_s - s.sent_since_s[job] if s.cut_off[job] else 0.0


@kernel
def _step_weight(s, job):
    book_waiting(s, job)
    s.bytes_left[job] = s.step_left[job]
    s.sent_since_s[job] = s.phase_now_s
    s.step_left[job] = 0.0
    set_end(s, job, s.phase_now_s + s.bytes_left[job] / s.send_rate[job])
    mark_full(s, job)


@kernel
def _stop_sending(s, job, left):
    s.phase_events += 1
    _withdraw(s, job, s.bytes_due[job] - left)
    s.bytes_left[job] = left
    s.round_up_s[job] += s.phase_now_s - s.up_began_s[job]
    trace(s, job, 0.0, 0.0)


@kernel
def bytes_left_now(s, job):
    """Bytes that a flow of a sending job has left of its phase."""
    return max(0.0, s.bytes_left[job] - s.send_rate[job] * (s.phase_now_s - s.sent_since_s[job]))


@kernel
def link_bytes_now(s, link):
    """Bytes that have crossed a link until now."""
    total = s.link_bytes[link]
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        if s.is_sending[job]:
            total += s.use_flows[use] * (s.bytes_due[job] - bytes_left_now(s, job))
        use = s.use_next[use]
    return total


@kernel
def position(s, job):
    """The part of its iteration, or of a pending one, that a job has done by now, in [0, 1), by time alone."""
    if s.phase_position[job] < 0 or s.phase[job] < 0:
        return s.first_round[job] if s.rounds_done[job] == 0.0 else 0.0
    now = s.phase[job]
    done_s = 0.0
    for phase in range(min(now + 1, s.n_phases[job])):
        done_s += s.phase_down_s[job, phase]
        if phase < now:
            done_s += alone_up_s(s, job, phase)
    if s.is_sending[job]:
        done_s += alone_up_s(s, job, now) * (1.0 - bytes_left_now(s, job) / s.phase_bytes[job, now])
    else:
        left_s = (s.phase_end_s[job] - s.phase_now_s) / s.down_factor[job]
        whole_s = s.phase_down_s[job, now] if now < s.n_phases[job] else s.tail_s[job]
        done_s += (whole_s if now == s.n_phases[job] else 0.0) - left_s
    return min(max(0.0, done_s / s.alone_s[job]), 1.0 - 1e-12)
