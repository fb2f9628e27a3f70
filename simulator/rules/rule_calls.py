"""Placers and run times on a gang as Python calls them, by records and row; see clock_calls.py."""

from ..compiler.jit import entry
from ..running import iteration_time, placers
from ..running.gpu_allocation import tier_of_gang


@entry
def solo_gang_s(states, row, job, sub_batch):
    """`iteration_time.solo_iteration_s`, for the gang that lies in `gang`."""
    s = states[row]
    return iteration_time.solo_iteration_s(s, job, tier_of_gang(s), sub_batch)


@entry
def find_gang(states, row, job, placer):
    return placers.find_gang(states[row], job, placer)


@entry
def find_within(states, row, need, scope):
    return placers.find_within(states[row], need, scope)
