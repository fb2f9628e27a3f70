"""Copies of tables on the way between regions (paper mast, Sec. 3.4), and the decisions about tables.

A link from a region to another is shared equally by the copies on it, from event to event. A copy comes from the
complete one with the fastest share of a link; if that region or its own fails, it begins again, from another copy or
when there is one. Its room is taken when it is decided. A home moves when all of the table is there, and only then is
the old home's copy deleted: a home is never empty.
"""

import math

from ..base.codes import DROP, MOVE, REPLICATE
from ..compiler.jit import kernel
from ..numerics.heap import schedule_event
from ..running.decision_log import log_table, note
from .copy_log import ARRIVED, SENDS, SENT, give_up_room, log_copy, take_room
from .region_starts import note_copy
from .table_copies import bytes_at, doom, readable, shrink, spare


@kernel
def _serve(s, source, target):
    """Modify `s`: bring what a link has sent to date."""
    elapsed = s.now_s - s.wan_since_s[source, target]
    s.wan_since_s[source, target] = s.now_s
    count = s.wan_count[source, target]
    if count > 0 and elapsed > 0.0:
        sent = elapsed * s.wan_rate[source, target]
        s.wan_bytes[source, target] += sent
        s.wan_served[source, target] += sent / count


@kernel
def _plan_link(s, source, target):
    """Modify `s`: the next event of a link is the end of its first transfer."""
    first = s.wan_first[source, target]
    time_s = math.inf
    if first >= 0:
        left = max(0.0, s.transfer_end[first] - s.wan_served[source, target])
        time_s = s.now_s + left * s.wan_count[source, target] / s.wan_rate[source, target]
    schedule_event(s, s.first_link_event + source * s.stored_bytes.size + target, time_s)


@kernel
def left_bytes(s, transfer):
    """Bytes of a transfer that are not there yet."""
    source, target = s.transfer_from[transfer], s.transfer_to[transfer]
    if source < 0:
        return float(s.transfer_bytes[transfer])
    count = s.wan_count[source, target]
    sent = (s.now_s - s.wan_since_s[source, target]) * s.wan_rate[source, target] / count
    left = s.transfer_end[transfer] - s.wan_served[source, target] - sent
    return min(max(0.0, left), float(s.transfer_bytes[transfer]))


@kernel
def _source(s, table, target):
    """The region from which a table is copied: with the fastest share of a link; -1 = there is none now.

    Where all of the table is wanted, or of copies that are to be deleted, only if there is no other way.
    """
    is_whole = s.table_target[table] == target or s.table_complete[table] >> target & 1
    copies = s.table_whole[table] if is_whole else readable(s, table)
    copies &= s.up_regions
    best, most = -1, 0.0
    if (s.up_regions >> target & 1) == 0:
        return best
    for region in range(s.n_regions):
        if copies >> region & 1 and region != target:
            share = s.wan_rate[region, target] / (s.wan_count[region, target] + 1)
            if share > most:
                best, most = region, share
    return best


@kernel
def _send(s, transfer):
    """Modify `s`: a transfer that waits begins, if there is a source."""
    table, target = s.transfer_table[transfer], s.transfer_to[transfer]
    source = _source(s, table, target)
    if source < 0:
        return
    _serve(s, source, target)
    if s.wan_count[source, target] == 0:
        s.wan_served[source, target] = 0.0
    s.transfer_from[transfer] = source
    log_copy(s, SENDS, table, source, target, s.transfer_bytes[transfer])
    end = s.wan_served[source, target] + s.transfer_bytes[transfer]
    s.transfer_end[transfer] = end
    before, after = -1, s.wan_first[source, target]
    while after >= 0 and s.transfer_end[after] <= end:
        before, after = after, s.transfer_next[after]
    s.transfer_prev[transfer] = before
    s.transfer_next[transfer] = after
    if before >= 0:
        s.transfer_next[before] = transfer
    else:
        s.wan_first[source, target] = transfer
    if after >= 0:
        s.transfer_prev[after] = transfer
    s.wan_count[source, target] += 1
    _plan_link(s, source, target)


@kernel
def _halt(s, transfer):
    """Modify `s`: a transfer is on no link any more, and waits; returns the bytes that it had sent."""
    source, target = s.transfer_from[transfer], s.transfer_to[transfer]
    if source < 0:
        return 0.0
    _serve(s, source, target)
    sent = s.transfer_bytes[transfer] - left_bytes(s, transfer)
    log_copy(s, SENT, s.transfer_table[transfer], source, target, sent)
    before, after = s.transfer_prev[transfer], s.transfer_next[transfer]
    if before >= 0:
        s.transfer_next[before] = after
    else:
        s.wan_first[source, target] = after
    if after >= 0:
        s.transfer_prev[after] = before
    s.wan_count[source, target] -= 1
    s.transfer_from[transfer] = -1
    _plan_link(s, source, target)
    if s.table_doomed[s.transfer_table[transfer]]:
        s.sweep = 1
    return sent


@kernel
def _remove(s, transfer):
    """Modify `s`: a transfer that is on no link is gone."""
    table = s.transfer_table[transfer]
    before, here = -1, s.table_transfer[table]
    while here != transfer:
        before, here = here, s.transfer_after[here]
    if before >= 0:
        s.transfer_after[before] = s.transfer_after[transfer]
    else:
        s.table_transfer[table] = s.transfer_after[transfer]
    s.transfer_next[transfer] = s.free_transfer
    s.free_transfer = transfer
    s.n_transfers -= 1


@kernel
def transfer_to(s, table, region):
    """The transfer of a table to a region; -1 = there is none."""
    transfer = s.table_transfer[table]
    while transfer >= 0 and s.transfer_to[transfer] != region:
        transfer = s.transfer_after[transfer]
    return transfer


@kernel
def _begin(s, table, region, size):
    """Modify `s`: so many bytes of a table are on the way to a region, where they take room from now on."""
    transfer = s.free_transfer
    s.free_transfer = s.transfer_next[transfer]
    s.n_transfers += 1
    s.transfer_table[transfer] = table
    s.transfer_from[transfer] = -1
    s.transfer_to[transfer] = region
    s.transfer_bytes[transfer] = s.transfer_room[transfer] = size
    s.transfer_after[transfer] = s.table_transfer[table]
    s.table_transfer[table] = transfer
    take_room(s, table, region, size)
    _send(s, transfer)


@kernel
def _break_off(s, transfer):
    """Modify `s`: a transfer is given up, and its room with it."""
    s.bytes_wasted += _halt(s, transfer)
    give_up_room(s, s.transfer_table[transfer], s.transfer_to[transfer], s.transfer_room[transfer])
    _remove(s, transfer)


@kernel
def _complete(s, transfer):
    """Modify `s`: all bytes of a transfer are there."""
    table, region = s.transfer_table[transfer], s.transfer_to[transfer]
    s.bytes_moved += s.transfer_bytes[transfer]
    _halt(s, transfer)
    log_copy(s, ARRIVED, table, -1, region, s.transfer_bytes[transfer])
    held = s.replica_size[table] if s.table_copies[table] >> region & 1 else 0
    held += s.transfer_room[transfer]
    _remove(s, transfer)
    s.table_copies[table] |= 1 << region
    if held == s.table_size[table]:
        s.table_whole[table] |= 1 << region
    if s.table_target[table] == region:
        _move_home(s, table, True)
    else:
        shrink(s, table, region)
    _go_on(s, table)
    note_copy(s, table)


@kernel
def _move_home(s, table, now):
    """Modify `s`: all of a table lies where its home moves to; the old one goes `now`, or when the instant is over."""
    old = s.table_home[table]
    s.table_home[table] = s.table_target[table]
    s.table_target[table] = -1
    if s.table_wanted[table] >> old & 1:
        shrink(s, table, old)
    else:
        doom(s, table, old, now)


@kernel
def _go_on(s, table):
    """Modify `s`: a table can be copied from one more region: what waits for that begins."""
    transfer = s.table_transfer[table]
    while transfer >= 0:
        if s.transfer_from[transfer] < 0:
            _send(s, transfer)
        transfer = s.transfer_after[transfer]


@kernel
def end_transfers(s, link):
    """Modify `s`: the first transfer of a link, and who ends with it, are complete."""
    source, target = link // s.stored_bytes.size, link % s.stored_bytes.size
    _serve(s, source, target)
    first = s.wan_first[source, target]
    s.wan_served[source, target] = s.transfer_end[first]
    while first >= 0 and s.transfer_end[first] <= s.wan_served[source, target]:
        _complete(s, first)
        first = s.wan_first[source, target]


@kernel
def stop_transfers(s, region):
    """Modify `s`: a region has failed: what is on its links begins again, from elsewhere or later."""
    for other in range(s.n_regions):
        _stop_link(s, region, other)
        _stop_link(s, other, region)


@kernel
def _stop_link(s, source, target):
    while s.wan_first[source, target] >= 0:
        transfer = s.wan_first[source, target]
        s.bytes_wasted += _halt(s, transfer)
        _send(s, transfer)


@kernel
def resume_transfers(s):
    """Modify `s`: a region is up again: transfers that wait for it begin."""
    for table in range(s.n_tables):
        _go_on(s, table)


@kernel
def missing_bytes(s, table, region):
    """Bytes of a table that are neither in a region nor on the way to it."""
    missing = s.table_size[table]
    if s.table_copies[table] >> region & 1:
        missing -= bytes_at(s, table, region)
    transfer = transfer_to(s, table, region)
    return missing if transfer < 0 else missing - s.transfer_room[transfer]


@kernel
def _complete_to(s, table, region):
    """Modify `s`: all of a table that is not in a region yet is on the way there, in place of a part of it perhaps."""
    if missing_bytes(s, table, region) > 0:
        transfer = transfer_to(s, table, region)
        if transfer >= 0:
            _break_off(s, transfer)
        _begin(s, table, region, missing_bytes(s, table, region))


@kernel
def replicate(s, table, region, whole):
    """Modify `s`: a decision: a region gets a copy of a table; one that is there or on the way stays."""
    note(s, REPLICATE, table)
    log_table(s, REPLICATE, table, region, whole)
    s.table_wanted[table] |= 1 << region
    if whole:
        s.table_complete[table] |= 1 << region
    if s.table_doomed[table] >> region & 1:
        spare(s, table, region)
        shrink(s, table, region)
        note_copy(s, table)
    elif (s.table_copies[table] >> region & 1) == 0 and transfer_to(s, table, region) < 0:
        _begin(s, table, region, s.table_size[table] if whole else s.replica_size[table])
    if whole:
        _complete_to(s, table, region)


@kernel
def drop(s, table, region):
    """Modify `s`: a decision: a region needs no copy of a table beside its home."""
    note(s, DROP, table)
    log_table(s, DROP, table, region, 0)
    s.table_wanted[table] &= ~(1 << region)
    s.table_complete[table] &= ~(1 << region)
    if region == s.table_home[table] or region == s.table_target[table]:
        return
    transfer = transfer_to(s, table, region)
    if transfer >= 0:
        _break_off(s, transfer)
    if s.table_copies[table] >> region & 1:
        doom(s, table, region, True)


@kernel
def move(s, table, region):
    """Modify `s`: a decision: a table gets another home, once all of it is there; its own: it stays."""
    note(s, MOVE, table)
    log_table(s, MOVE, table, region, 0)
    _stay(s, table)
    if region == s.table_home[table]:
        return
    if s.table_doomed[table] >> region & 1:
        spare(s, table, region)
        note_copy(s, table)
    s.table_target[table] = region
    if missing_bytes(s, table, region) > 0:
        _complete_to(s, table, region)
    elif transfer_to(s, table, region) < 0:
        _move_home(s, table, s.tables_due == 0)  # at a look a replica may still be asked for where it was
        note_copy(s, table)  # those who need fresh data may find it now


@kernel
def _stay(s, table):
    """Modify `s`: a home does not move any more; what is on the way, or there, stays if it is to be a replica."""
    target = s.table_target[table]
    s.table_target[table] = -1
    if target < 0:
        return
    is_replica = s.table_wanted[table] >> target & 1
    is_whole = s.table_complete[table] >> target & 1
    if not is_whole and (not is_replica or s.table_copies[table] >> target & 1):
        _break_off(s, transfer_to(s, table, target))
    if not is_replica and s.table_copies[table] >> target & 1:
        doom(s, table, target, True)
