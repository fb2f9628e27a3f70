"""The kernels as Python calls them: by array of records and row.

Handing numba one large record costs some 15 us a call, since numpy then describes every field to the buffer protocol;
an array of records costs less than 1 us.
"""

from .kernels import events, jobs
from .kernels.jit import entry
from .rules import adopt as adoption
from .rules import delays, passes, placers


@entry
def advance(states, row):
    """`events.advance`."""
    return events.advance(states[row])


@entry
def run(states, row, max_events):
    """`events.run`."""
    return events.run(states[row], max_events)


@entry
def schedule(states, row):
    """`passes.schedule`."""
    return passes.schedule(states[row])


@entry
def adopt(states, row):
    """`adopt.adopt`."""
    adoption.adopt(states[row])


@entry
def lay_failures(states, row):
    """`events.lay_failures`."""
    events.lay_failures(states[row])


@entry
def start(states, row, job):
    """`jobs.start`."""
    jobs.start(states[row], job)


@entry
def preempt(states, row, job):
    """`jobs.preempt`."""
    jobs.preempt(states[row], job)


@entry
def migrate(states, row, job):
    """`jobs.migrate`."""
    jobs.migrate(states[row], job)


@entry
def hold(states, row, job, until_s):
    """`jobs.hold`."""
    jobs.hold(states[row], job, until_s)


@entry
def find_gang(states, row, job, placer):
    """`placers.find_gang`."""
    return placers.find_gang(states[row], job, placer)


@entry
def find_within(states, row, need, scope):
    """`placers.find_within`."""
    return placers.find_within(states[row], need, scope)


@entry
def present_timer_s(states, row, job):
    """`delays.present_timer_s`."""
    return delays.present_timer_s(states[row], job)
