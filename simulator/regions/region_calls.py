"""The kernels of regions and tables as Python calls them, by array of records and row; see clock_calls.py."""

from ..compiler.jit import entry
from . import region_starts, table_copies, wan


@entry
def replicate(states, row, table, region, whole):
    wan.replicate(states[row], table, region, whole)


@entry
def move(states, row, table, region):
    wan.move(states[row], table, region)


@entry
def drop(states, row, table, region):
    wan.drop(states[row], table, region)


@entry
def missing_bytes(states, row, table, region):
    return wan.missing_bytes(states[row], table, region)


@entry
def candidate_regions(states, row, job):
    return region_starts.candidate_regions(states[row], job)


@entry
def may_run_in(states, row, job, region):
    return region_starts.may_run_in(states[row], job, region)


@entry
def takes_units(states, row, job, units):
    return region_starts.takes_units(states[row], job, units)


@entry
def left_bytes(states, row, transfer):
    return wan.left_bytes(states[row], transfer)


@entry
def write_projected(states, row, first, homes, copies):
    """Modify `homes` and `copies`, int64 (n,): where n tables will be, from `first` on; see table_copies.py."""
    s = states[row]
    for i in range(homes.size):
        homes[i] = table_copies.projected_home(s, first + i)
        copies[i] = table_copies.projected_copies(s, first + i)
