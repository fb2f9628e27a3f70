"""Copying a waiting workload's tables to a region: possible regions, bytes and time.

A workload lacks in a region the tables that it reads, that do not lie there to stay, and that are not on the way there.
They can be copied if the region is up and could hold the workload, if its storage has room for all of them, and if each
has a copy in a region that is up. A workload that needs what only homes have runs at the homes: its tables are not
offered.
"""

import math

from ...simulator.compiler.jit import kernel
from ...simulator.numerics.bitset import next_member
from ...simulator.regions.region_starts import needs_home
from ...simulator.regions.table_copies import readable
from ...simulator.regions.wan import replicate
from .demand import coming, demand_of, staying

MAX_BRINGS = 8
NO_REGION = -1
NOT_POSSIBLE = -1  # bytes


@kernel
def lacks(s, table, region):
    """Whether a region lacks a table: it is neither there to stay nor on the way."""
    return ((staying(s, table) | coming(s, table)) >> region & 1) == 0


@kernel
def weigh_bringing(s, w, job):
    """Modify `bring_bytes` in place: bytes of a waiting workload's tables to copy, by region, or NOT_POSSIBLE."""
    sizes, counts, lacking = w.bring_bytes, w.bring_count, 0
    hosts = 0 if needs_home(s, job) else s.job_hosts[job] & s.up_regions
    for region in range(s.n_regions):
        sizes[region] = counts[region] = 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        there = hosts & ~staying(s, table)
        if there != 0:
            there &= ~coming(s, table)
        if there == 0:
            continue
        if readable(s, table) & s.up_regions == 0:
            hosts &= ~there
            continue
        lacking |= there
        for region in range(s.n_regions):
            if there >> region & 1:
                counts[region] += 1
                if s.table_copies[table] >> region & 1 == 0:  # one that was about to be deleted is spared
                    sizes[region] += s.replica_size[table]
    for region in range(s.n_regions):
        room = s.storage_bytes[region] - s.stored_bytes[region]
        is_full = s.n_transfers + counts[region] > s.transfer_to.size
        if (hosts & lacking) >> region & 1 == 0 or sizes[region] > room or is_full:
            sizes[region] = NOT_POSSIBLE


@kernel
def bring(s, job, region):
    """Modify `s`: copy the tables that a waiting workload lacks in a region."""
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if lacks(s, table, region):
            replicate(s, table, region, 0)


@kernel
def can_bring_any(s, w):
    """Modify `w` in place: whether tables could be copied for a shown workload, where none can start."""
    if w.brings == 0:
        return False
    low, mid, top = s.window_low, s.window_mid, s.window_top
    shown, at = 0, next_member(low, mid, top, 0)
    while at >= 0 and shown < w.slots:
        weigh_bringing(s, w, s.job_at_rank[at])
        for region in range(s.n_regions):
            if w.bring_bytes[region] != NOT_POSSIBLE:
                return True
        shown += 1
        at = next_member(low, mid, top, at + 1)
    return False


@kernel
def seconds_to_bring(s, job, region):
    """Time of copies of the tables that a workload lacks in a region, one after the other over idle links, seconds."""
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
def list_regions(s, w, job, slot):
    """Modify `bring_to` in place: the regions to which a slot's tables may be copied; returns their number.

    By demand over supply of the types that its first part accepts, then by bytes to copy, which `bring_bytes` has.
    """
    targets, count = w.bring_to[slot], 0
    if w.brings > 0:
        weigh_bringing(s, w, job)
    for place in range(w.brings):
        best, least, fewest = NO_REGION, 0.0, 0
        for region in range(s.n_regions):
            size = w.bring_bytes[region]
            if size == NOT_POSSIBLE or _is_listed(targets, place, region):
                continue
            asked, there = demand_of(s, w, region, s.part_accepts[job, 0])
            load = asked / max(1.0, there)
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
