"""The kernels as Python calls them: by array of records and row.

Handing numba one large record costs some 15 us a call, since numpy then describes every field to the buffer protocol;
an array of records costs less than 1 us.
"""

from .kernels import events, jobs
from .kernels.jit import kernel
from .rules import adopt as adoption
from .rules import delays, passes, placers


@kernel
def advance(states, row):
    """`events.advance`."""
    return events.advance(states[row])


@kernel
def run(states, row, max_events):
    """`events.run`."""
    return events.run(states[row], max_events)


@kernel
def schedule(states, row):
    """`passes.schedule`."""
    return passes.schedule(states[row])


@kernel
def adopt(states, row):
    """`adopt.adopt`."""
    adoption.adopt(states[row])


@kernel
def lay_failures(states, row):
    """`events.lay_failures`."""
    events.lay_failures(states[row])


@kernel
def start(states, row, job):
    """`jobs.start`."""
    jobs.start(states[row], job)


@kernel
def preempt(states, row, job):
    """`jobs.preempt`."""
    jobs.preempt(states[row], job)


@kernel
def migrate(states, row, job):
    """`jobs.migrate`."""
    jobs.migrate(states[row], job)


@kernel
def hold(states, row, job, until_s):
    """`jobs.hold`."""
    jobs.hold(states[row], job, until_s)


@kernel
def find_gang(states, row, job, placer):
    """`placers.find_gang`."""
    return placers.find_gang(states[row], job, placer)


@kernel
def find_within(states, row, need, scope):
    """`placers.find_within`."""
    return placers.find_within(states[row], need, scope)


@kernel
def present_timer_s(states, row, job):
    """`delays.present_timer_s`."""
    return delays.present_timer_s(states[row], job)
