"""Copies of tables: where they lie, their readers, and when one may be deleted (paper mast, Sec. 2 and 3.4).

A table has a home with all of it. Further copies hold the partitions that jobs read (Sec. 3.5). A deletion waits until
no workload in the region and no copy on the way reads it, and until another copy is in an up region.
"""

from ..compiler.jit import kernel
from .copy_log import free_room

OFF = -2  # `reader_prev` of a use that is in no list


@kernel
def readable(s, table):
    """Set of the regions with a readable copy of a table; doomed ones only without another in an up region."""
    copies = s.table_copies[table]
    kept = copies & ~s.table_doomed[table]
    return kept if kept & s.up_regions else copies


@kernel
def bytes_at(s, table, region):
    """What a complete copy of a table takes in a region."""
    return s.table_size[table] if s.table_whole[table] >> region & 1 else s.replica_size[table]


@kernel
def projected_home(s, table):
    """The home of a table once it does not move any more."""
    return s.table_home[table] if s.table_target[table] < 0 else s.table_target[table]


@kernel
def projected_copies(s, table):
    """Set of the regions of a table when all on the way has arrived, without doomed copies and abandoned homes."""
    copies = s.table_copies[table] & ~s.table_doomed[table]
    home = s.table_home[table]
    if s.table_target[table] >= 0 and s.table_wanted[table] >> home & 1 == 0:
        copies &= ~(1 << home)
    transfer = s.table_transfer[table]
    while transfer >= 0:
        copies |= 1 << s.transfer_to[transfer]
        transfer = s.transfer_after[transfer]
    return copies | 1 << projected_home(s, table)


@kernel
def begin_reading(s, job):
    """Modify `s`: a workload is in the lists of the tables that it reads."""
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        table = s.read_table[use]
        head = s.table_reader[table]
        s.reader_next[use] = head
        s.reader_prev[use] = -1
        if head >= 0:
            s.reader_prev[head] = use
        s.table_reader[table] = use


@kernel
def end_reading(s, job):
    """Modify `s`: it is in none of them; a copy that is to be deleted may go when the instant is over."""
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        table = s.read_table[use]
        before, after = s.reader_prev[use], s.reader_next[use]
        if before >= 0:
            s.reader_next[before] = after
        else:
            s.table_reader[table] = after
        if after >= 0:
            s.reader_prev[after] = before
        s.reader_prev[use] = OFF
        if s.table_doomed[table]:
            s.sweep = 1


@kernel
def is_read(s, table, region):
    """True if a workload that runs in a region reads a table, or a copy on the way is read from there."""
    use = s.table_reader[table]
    while use >= 0:
        if s.job_region[s.reader_job[use]] == region:
            return True
        use = s.reader_next[use]
    transfer = s.table_transfer[table]
    while transfer >= 0:
        if s.transfer_from[transfer] == region:
            return True
        transfer = s.transfer_after[transfer]
    return False


@kernel
def doom(s, table, region, now):
    """Modify `s`: a copy is to be deleted once it has no reader: `now`, or not before the instant is over."""
    if s.table_doomed[table] == 0:
        s.doomed_table[s.n_doomed] = table
        s.doomed_place[table] = s.n_doomed
        s.n_doomed += 1
    s.table_doomed[table] |= 1 << region
    if now:
        _delete_if_free(s, table, region)
    else:
        s.sweep = 1


@kernel
def spare(s, table, region):
    """Modify `s`: a copy that was to be deleted stays."""
    s.table_doomed[table] &= ~(1 << region)
    if s.table_doomed[table] == 0:
        s.n_doomed -= 1
        last, place = s.doomed_table[s.n_doomed], s.doomed_place[table]
        s.doomed_table[place] = last
        s.doomed_place[last] = place


@kernel
def shrink(s, table, region):
    """Modify `s`: a whole copy that is not at home, nor to stay whole, has the partitions that are read from now on."""
    less = s.table_size[table] - s.replica_size[table]
    if s.table_complete[table] >> region & 1:
        return
    if less > 0 and region != s.table_home[table] and s.table_whole[table] >> region & 1:
        free_room(s, table, region, less)
        s.table_whole[table] &= ~(1 << region)


@kernel
def _delete_if_free(s, table, region):
    """Modify `s`: delete a doomed copy without readers if its region is up, and that of one that stays."""
    others = s.table_copies[table] & ~s.table_doomed[table] & s.up_regions
    if others == 0 or (s.up_regions >> region & 1) == 0 or is_read(s, table, region):
        return
    free_room(s, table, region, bytes_at(s, table, region))
    s.table_copies[table] &= ~(1 << region)
    s.table_whole[table] &= ~(1 << region)
    spare(s, table, region)


@kernel
def sweep(s):
    """Modify `s`: delete the doomed copies without readers."""
    s.sweep = 0
    for place in range(s.n_doomed - 1, -1, -1):
        table = s.doomed_table[place]
        for region in range(s.n_regions):
            if s.table_doomed[table] >> region & 1:
                _delete_if_free(s, table, region)
