"""The clock as Python calls it: by array of records and row, as all entries to compiled code.

Handing numba one large record costs some 15 us a call (buffer protocol), an array of records less than 1 us.
"""

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
