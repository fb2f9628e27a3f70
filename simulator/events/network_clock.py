"""The clock of the simulator and that of the network: jobs play from event to event, and their ends are events."""

from ..base.codes import SHIFT
from ..compiler.jit import kernel
from ..flows.phase_clock import play
from ..flows.sessions import keep_up, set_mean, shift_session
from ..numerics.heap import schedule_event
from ..running.decision_log import log, note


@kernel
def play_on(s, time_s):
    """Modify `s`: jobs on the network play until `time_s`, or until some end before, all at once; returns the time."""
    if s.phase_count == 0:
        return time_s
    end_s = play(s, min(time_s, s.horizon_s))
    while s.ended_job >= 0:
        _end(s, s.ended_job)
        time_s = end_s
        end_s = play(s, time_s)
    for i in range(s.phase_count):
        keep_up(s, s.phase_item[i])
    return time_s


@kernel
def _end(s, job):
    set_mean(s, job, (s.phase_now_s - s.since_s[job]) / s.iterations_left[job])
    s.planned_finish_s[job] = s.phase_now_s
    schedule_event(s, job, s.phase_now_s)


@kernel
def shift(s, job, seconds, period_s):
    """Modify `s`: iterations of a job begin at `seconds` modulo `period_s`, < 0: any time (cassini, Sec. 4.2)."""
    note(s, SHIFT, job)
    shift_session(s, job, seconds, period_s)
    log(s, SHIFT, job)
    if s.log_on and not s.log_overflow:
        s.log_seconds[s.log_count - 1] = seconds
