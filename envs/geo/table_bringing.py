"""Bringing a waiting workload's tables to a region: where that is possible, and what it takes.

What a workload lacks in a region are the tables that it reads, that do not lie there to stay, and that are not on the
way there. They can be brought where the region is up and could hold the workload, where its storage has room for all
of them, and where each has a copy in a region that is up. A workload that needs fresh data runs where the homes are,
whatever is copied: its tables are not offered.
"""

from __future__ import annotations

import math

from ...simulator.compiler.jit import kernel
from ...simulator.numerics.bitset import next_member
from ...simulator.regions.table_copies import readable
from ...simulator.regions.wan import replicate

MAX_BRINGS = 8
NO_REGION = -1
NOT_POSSIBLE = -1  # bytes


@kernel
def is_there(s, table, region):
    """Whether a copy of a table lies in a region to stay."""
    return (s.table_copies[table] & ~s.table_doomed[table]) >> region & 1


@kernel
def is_coming(s, table, region):
    """Whether a copy of a table is on the way to a region."""
    transfer = s.table_transfer[table]
    while transfer >= 0:
        if s.transfer_to[transfer] == region:
            return True
        transfer = s.transfer_after[transfer]
    return False


@kernel
def lacks(s, table, region):
    """Whether a region would have to be sent a table: it is neither there to stay nor on the way."""
    return not is_there(s, table, region) and not is_coming(s, table, region)


@kernel
def bytes_to_bring(s, job, region):
    """Bytes that bringing a waiting workload's tables takes in a region.

    NOT_POSSIBLE: it lacks nothing there, or they cannot be brought.
    """
    if s.job_fresh[job] or (s.job_hosts[job] & s.up_regions) >> region & 1 == 0:
        return NOT_POSSIBLE
    size, count = 0, 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if not lacks(s, table, region):
            continue
        if readable(s, table) & s.up_regions == 0:
            return NOT_POSSIBLE
        count += 1
        if s.table_copies[table] >> region & 1 == 0:  # one that was about to be deleted is spared
            size += s.replica_size[table]
    room = s.storage_bytes[region] - s.stored_bytes[region]
    if count == 0 or size > room or s.n_transfers + count > s.transfer_to.size:
        return NOT_POSSIBLE
    return size


@kernel
def bring(s, job, region):
    """Modify `s`: what a waiting workload lacks in a region is copied there."""
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if lacks(s, table, region):
            replicate(s, table, region, 0)


@kernel
def can_bring_any(s, w):
    """Whether tables could be brought for one of the waiting workloads that are shown where none can start."""
    if w.brings == 0:
        return False
    low, mid, top = s.window_low, s.window_mid, s.window_top
    shown, at = 0, next_member(low, mid, top, 0)
    while at >= 0 and shown < w.slots:
        for region in range(s.n_regions):
            if bytes_to_bring(s, s.job_at_rank[at], region) != NOT_POSSIBLE:
                return True
        shown += 1
        at = next_member(low, mid, top, at + 1)
    return False


@kernel
def seconds_to_bring(s, job, region):
    """How long copies of what a workload lacks in a region take, one after the other over idle links."""
    taken_s = 0.0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if not lacks(s, table, region) or s.table_copies[table] >> region & 1:
            continue
        rate, sources = 0.0, readable(s, table) & s.up_regions
        for source in range(s.n_regions):
            if sources >> source & 1:
                rate = max(rate, s.wan_rate[source, region])
        taken_s += s.replica_size[table] / rate if rate > 0.0 else math.inf
    return taken_s


@kernel
def regions_to_come(s, job):
    """The set of regions that could hold a workload and will have all its tables, and have not: some are on the way."""
    found, hosts = 0, s.job_hosts[job] & s.up_regions
    for region in range(s.n_regions):
        if hosts >> region & 1 == 0:
            continue
        coming, lacking = 0, 0
        for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
            if not is_there(s, s.read_table[use], region):
                coming += 1
                lacking += not is_coming(s, s.read_table[use], region)
        if coming > 0 and lacking == 0:
            found |= 1 << region
    return found


@kernel
def list_regions(s, w, job, slot):
    """Modify `bring_to` in place: the regions to which a slot's tables may be brought; returns how many.

    Those come first that have the least demand for the type of its first part over their supply, then the fewest bytes
    to copy.
    """
    targets, kind, count = w.bring_to[slot], s.part_type[job, 0], 0
    for place in range(w.brings):
        best, least, fewest = NO_REGION, 0.0, 0
        for region in range(s.n_regions):
            size = NOT_POSSIBLE
            if not _is_listed(targets, place, region):
                size = bytes_to_bring(s, job, region)
            if size == NOT_POSSIBLE:
                continue
            load = w.demand[region, kind] / max(1.0, w.supply[region, kind])
            if best == NO_REGION or load < least or (load == least and size < fewest):
                best, least, fewest = region, load, size
        targets[place] = best
        count += best != NO_REGION
    return count


@kernel
def _is_listed(targets, count, region):
    found = False
    for place in range(count):
        found |= targets[place] == region
    return found
