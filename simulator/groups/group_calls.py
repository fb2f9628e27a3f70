"""The kernels of job groups as Python calls them: by array of records and row (see simulator/events/clock_calls.py)."""

from ..compiler.jit import entry
from .kernels import decide, group_clock


@entry
def advance(states, row):
    return group_clock.advance(states[row])


@entry
def draw_failures(states, row):
    group_clock.draw_failures(states[row])


@entry
def join(states, row, job, group):
    decide.join(states[row], job, group)


@entry
def open_for(states, row, job, machines):
    return decide.open_for(states[row], job, machines)


@entry
def pause(states, row, job):
    decide.pause(states[row], job)


@entry
def set_machines(states, row, group, machines):
    decide.set_machines(states[row], group, machines)


@entry
def set_spill(states, row, job, ratio):
    decide.set_spill(states[row], job, ratio)


@entry
def available_machines(states, row):
    return decide.available_machines(states[row])


@entry
def look_ahead(states, row, group, until_s):
    group_clock.look_ahead(states[row], group, until_s)
