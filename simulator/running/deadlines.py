"""Deadlines: a job is late from the instant of its deadline on, unless it has finished by then.

The clock passes them in order; they are no events. Those of the present instant are only counted: a job that ends at
this instant, or later by rounding only (rounding.py), is in time.
"""

from __future__ import annotations

from ..base.codes import DONE
from ..compiler.jit import kernel
from ..numerics.rounding import SAME_INSTANT


@kernel
def pass_deadlines(s, time_s):
    """Modify `s`: the clock goes on to `time_s`: what was due before and has not finished is late, for good."""
    while s.next_due < s.n_due and s.deadline_s[s.due[s.next_due]] * (1.0 + SAME_INSTANT) < time_s:
        s.late += s.status[s.due[s.next_due]] != DONE
        s.next_due += 1


@kernel
def late_now(s):
    """Jobs that did not finish by their deadline, of those that are due by now."""
    late = s.late
    due = s.next_due
    while due < s.n_due and s.deadline_s[s.due[due]] <= s.now_s:
        late += s.status[s.due[due]] != DONE
        due += 1
    return late
