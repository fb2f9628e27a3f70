"""The clock for Python, by array of records and row: numba takes 15 us for one large record, 1 us for an array."""

from ..compiler.jit import entry
from ..lifecycle import fault_groups, outages
from . import network_clock


@entry
def lay_failures(states, row):
    """`outages.lay_failures`, and `fault_groups.lay_outages`."""
    outages.lay_failures(states[row])
    fault_groups.lay_outages(states[row])


@entry
def shift(states, row, job, seconds, period_s):
    network_clock.shift(states[row], job, seconds, period_s)
