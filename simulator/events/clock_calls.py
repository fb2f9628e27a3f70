"""The clock for Python, by array of records and row: numba takes 15 us for one large record, 1 us for an array."""

from ..compiler.jit import entry
from ..lifecycle import fault_groups, outages
from . import network_clock


@entry
def draw_failures(states, row):
    """`outages.draw_failures`, and `fault_groups.draw_outages`."""
    outages.draw_failures(states[row])
    fault_groups.draw_outages(states[row])


@entry
def shift(states, row, job, seconds, period_s):
    network_clock.shift(states[row], job, seconds, period_s)
