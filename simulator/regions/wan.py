"""Copies of tables on the way between regions (paper mast, Sec. 3.4), and the decisions about tables.

The copies on a link share it from event to event (wan_flow.py). A copy comes from the complete one with the fastest
share of a link; if that region or its own fails, it begins again, from another copy or when there is one. Its room is
taken at the decision. A home moves when all of the table is there, and only then is the old copy deleted.
"""

import math

from ..base.codes import DROP, LANES, MOVE, REPLICATE
from ..compiler.jit import kernel
from ..running.decision_log import log_table, note
from .copy_log import ARRIVED, SENDS, SENT, give_up_room, log_copy, take_room
from .copy_times import BULK, drawn_s, kind_of, note_time
from .region_starts import note_copy
from .table_copies import bytes_at, doom, readable, shrink, spare
from .wan_flow import serve, share_link


@kernel
def left_bytes(s, transfer):
    """Bytes of a transfer that are not there yet."""
    lane, source, target = s.transfer_lane[transfer], s.transfer_from[transfer], s.transfer_to[transfer]
    if source < 0:
        return float(s.transfer_bytes[transfer])
    sent = (s.now_s - s.wan_since_s[lane, source, target]) * s.wan_flow[lane, source, target]
    served = sent / s.wan_weight[lane, source, target]
    left = s.transfer_end[transfer] - s.wan_served[lane, source, target] - served
    return min(max(0.0, left * s.transfer_weight[transfer]), float(s.transfer_bytes[transfer]))


@kernel
def _source(s, table, target, lane):
    """The region from which a table is copied: with the fastest share of a link; -1: there is none now.

    The share counts equal and earlier copies, on the link and of what the region may send. Doomed copies, and partial
    needs of whole ones, come last.
    """
    is_whole = s.table_target[table] == target or s.table_complete[table] >> target & 1
    copies = s.table_whole[table] if is_whole else readable(s, table)
    copies &= s.up_regions
    best, most = -1, 0.0
    if (s.up_regions >> target & 1) == 0:
        return best
    for region in range(s.n_regions):
        if copies >> region & 1 and region != target:
            share = s.wan_rate[region, target] / (_before(s, region, target, lane) + 1)
            if s.egress_rate[region] < math.inf:
                count = 0
                for other in range(s.n_regions):
                    count += _before(s, region, other, lane)
                share = min(share, s.egress_rate[region] / (count + 1))
            if share > most:
                best, most = region, share
    return best


@kernel
def _before(s, source, target, lane):
    count = 0
    for other in range(lane + 1):
        count += s.wan_count[other, source, target]
    return count


@kernel
def _send(s, transfer):
    source = _source(s, s.transfer_table[transfer], s.transfer_to[transfer], s.transfer_lane[transfer])
    if source >= 0:
        size = s.transfer_bytes[transfer]
        log_copy(s, SENDS, s.transfer_table[transfer], source, s.transfer_to[transfer], size)
        _enter(s, transfer, source, float(size))


@kernel
def _enter(s, transfer, source, left):
    """Modify `s`: a transfer of which so many bytes are left is on a link, in its lane."""
    lane, target = s.transfer_lane[transfer], s.transfer_to[transfer]
    serve(s, lane, source, target)
    if s.wan_count[lane, source, target] == 0:
        s.wan_served[lane, source, target] = 0.0
    s.transfer_from[transfer] = source
    end = s.wan_served[lane, source, target] + left / s.transfer_weight[transfer]
    s.transfer_end[transfer] = end
    before, after = -1, s.wan_first[lane, source, target]
    while after >= 0 and s.transfer_end[after] <= end:
        before, after = after, s.transfer_next[after]
    s.transfer_prev[transfer] = before
    s.transfer_next[transfer] = after
    if before >= 0:
        s.transfer_next[before] = transfer
    else:
        s.wan_first[lane, source, target] = transfer
    if after >= 0:
        s.transfer_prev[after] = transfer
    s.wan_count[lane, source, target] += 1
    _weigh(s, lane, source, target)
    share_link(s, source, target)


@kernel
def _leave(s, transfer):
    lane, source, target = s.transfer_lane[transfer], s.transfer_from[transfer], s.transfer_to[transfer]
    serve(s, lane, source, target)
    left = left_bytes(s, transfer)
    before, after = s.transfer_prev[transfer], s.transfer_next[transfer]
    if before >= 0:
        s.transfer_next[before] = after
    else:
        s.wan_first[lane, source, target] = after
    if after >= 0:
        s.transfer_prev[after] = before
    s.wan_count[lane, source, target] -= 1
    s.transfer_from[transfer] = -1
    _weigh(s, lane, source, target)
    share_link(s, source, target)
    return left


@kernel
def _weigh(s, lane, source, target):
    """Modify `s`: the weight of all transfers of a lane, summed anew so that nothing of one that has gone is left."""
    if s.copy_published == 0:
        s.wan_weight[lane, source, target] = s.wan_count[lane, source, target]
        return
    weight, transfer = 0.0, s.wan_first[lane, source, target]
    while transfer >= 0:
        weight += s.transfer_weight[transfer]
        transfer = s.transfer_next[transfer]
    s.wan_weight[lane, source, target] = weight


@kernel
def _halt(s, transfer):
    if s.transfer_from[transfer] < 0:
        return 0.0
    table, source, target = s.transfer_table[transfer], s.transfer_from[transfer], s.transfer_to[transfer]
    sent = s.transfer_bytes[transfer] - _leave(s, transfer)
    log_copy(s, SENT, table, source, target, sent)
    if s.table_doomed[table]:
        s.sweep = 1
    return sent


@kernel
def urge(s, job):
    """Modify `s`: copies on the way of the tables of a workload that waits for data go first from now on."""
    if s.copy_urgent == 0:
        return
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        transfer = s.table_transfer[s.read_table[use]]
        while transfer >= 0:
            if s.transfer_lane[transfer] > 0:
                source = s.transfer_from[transfer]
                left = _leave(s, transfer) if source >= 0 else 0.0
                s.transfer_lane[transfer] = 0
                if source >= 0:
                    _enter(s, transfer, source, left)
            transfer = s.transfer_after[transfer]


@kernel
def _remove(s, transfer):
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
    transfer = s.free_transfer
    s.free_transfer = s.transfer_next[transfer]
    s.n_transfers += 1
    s.transfer_table[transfer] = table
    s.transfer_from[transfer] = -1
    s.transfer_to[transfer] = region
    s.transfer_bytes[transfer] = s.transfer_room[transfer] = size
    kind = kind_of(s, table)
    s.transfer_kind[transfer] = kind
    s.transfer_lane[transfer] = 1 if s.copy_urgent and kind == BULK else 0
    s.transfer_weight[transfer] = size / drawn_s(s, table, region, kind) if s.copy_published else 1.0
    s.transfer_since_s[transfer] = s.now_s
    s.transfer_after[transfer] = s.table_transfer[table]
    s.table_transfer[table] = transfer
    take_room(s, table, region, size)
    _send(s, transfer)


@kernel
def _break_off(s, transfer):
    s.bytes_wasted += _halt(s, transfer)
    give_up_room(s, s.transfer_table[transfer], s.transfer_to[transfer], s.transfer_room[transfer])
    _remove(s, transfer)


@kernel
def _complete(s, transfer):
    table, region = s.transfer_table[transfer], s.transfer_to[transfer]
    s.bytes_moved += s.transfer_bytes[transfer]
    note_time(s, s.transfer_kind[transfer], s.now_s - s.transfer_since_s[transfer])
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
def end_transfers(s, event):
    """Modify `s`: the first transfer of a lane of a link, and those that end with it, are complete."""
    regions = s.stored_bytes.size
    target = event % regions
    lane, source = event // regions // regions, event // regions % regions
    serve(s, lane, source, target)
    first = s.wan_first[lane, source, target]
    s.wan_served[lane, source, target] = s.transfer_end[first]
    while first >= 0 and s.transfer_end[first] <= s.wan_served[lane, source, target]:
        _complete(s, first)
        first = s.wan_first[lane, source, target]


@kernel
def stop_transfers(s, region):
    """Modify `s`: a region has failed: what is on its links begins again, from elsewhere or later."""
    for other in range(s.n_regions):
        _stop_link(s, region, other)
        _stop_link(s, other, region)


@kernel
def _stop_link(s, source, target):
    for lane in range(LANES):
        while s.wan_first[lane, source, target] >= 0:
            transfer = s.wan_first[lane, source, target]
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
        note_copy(s, table)  # jobs that need fresh data may find it now


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
    elif not is_whole and s.transfer_from[transfer_to(s, table, target)] < 0:
        # It waits for a whole copy; a replica has less to wait for.
        _break_off(s, transfer_to(s, table, target))
        _begin(s, table, target, s.replica_size[table])
    if not is_replica and s.table_copies[table] >> target & 1:
        doom(s, table, target, True)
