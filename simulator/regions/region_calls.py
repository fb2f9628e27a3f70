"""The kernels of regions and tables as Python calls them, by array of records and row; see clock_calls.py."""

from ..compiler.jit import entry
from . import region_starts, table_copies, wan


@entry
def replicate(states, row, table, region, whole):
    """`wan.replicate`."""
    wan.replicate(states[row], table, region, whole)


@entry
def move(states, row, table, region):
    """`wan.move`."""
    wan.move(states[row], table, region)


@entry
def drop(states, row, table, region):
    """`wan.drop`."""
    wan.drop(states[row], table, region)


@entry
def missing_bytes(states, row, table, region):
    """`wan.missing_bytes`."""
    return wan.missing_bytes(states[row], table, region)


@entry
def lay_table(states, row, table, numbers):
    """Modify `numbers`, int64 (11 + 2 regions,): `TableState`, its numbers, then `missing` and `room` by region."""
    s = states[row]
    numbers[0], numbers[1] = s.table_home[table], s.table_target[table]
    numbers[2], numbers[3] = s.table_wanted[table], s.table_complete[table]
    numbers[4], numbers[5] = s.table_copies[table], s.table_doomed[table]
    numbers[6], numbers[7] = s.table_size[table], s.replica_size[table]
    numbers[8], numbers[9] = s.up_regions, s.n_transfers
    numbers[10] = s.free_transfer < 0
    for region in range(s.n_regions):
        numbers[11 + region] = wan.missing_bytes(s, table, region)
        numbers[11 + s.n_regions + region] = s.storage_bytes[region] - s.stored_bytes[region]


@entry
def candidate_regions(states, row, job):
    """`region_starts.candidate_regions`."""
    return region_starts.candidate_regions(states[row], job)


@entry
def may_run_in(states, row, job, region):
    """`region_starts.may_run_in`."""
    return region_starts.may_run_in(states[row], job, region)


@entry
def takes_units(states, row, job, units):
    """`region_starts.takes_units`."""
    return region_starts.takes_units(states[row], job, units)


@entry
def left_bytes(states, row, transfer):
    """`wan.left_bytes`."""
    return wan.left_bytes(states[row], transfer)


@entry
def lay_projected(states, row, first, homes, copies):
    """Modify `homes` and `copies`, int64 (n,): where n tables will be, from `first` on; see table_copies.py."""
    s = states[row]
    for i in range(homes.size):
        homes[i] = table_copies.projected_home(s, first + i)
        copies[i] = table_copies.projected_copies(s, first + i)
