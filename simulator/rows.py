"""The clock as Python calls it: by array of records and row, as all entries to compiled code.

Handing numba one large record costs some 15 us a call, since numpy then describes every field to the buffer protocol;
an array of records costs less than 1 us.
"""

from .kernels import contention, events, outages
from .kernels.jit import entry


@entry
def advance(states, row):
    """`events.advance`."""
    return events.advance(states[row])


@entry
def run(states, row, max_events):
    """`events.run`."""
    return events.run(states[row], max_events)


@entry
def lay_failures(states, row):
    """`outages.lay_failures`."""
    outages.lay_failures(states[row])


@entry
def shift(states, row, job, seconds, period_s):
    """`contention.shift`."""
    contention.shift(states[row], job, seconds, period_s)
