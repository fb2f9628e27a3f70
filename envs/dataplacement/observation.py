"""Features of the present: what `DataPlacement-v0` shows to an agent.

Counts n read n / (n + 32), ratios x x / (1 + x), times t log1p(t) / log1p(horizon), bytes b log2(1 + b / 1 MB) / 32;
all are cut at 1. A change c of the cost reads 1/2 + c / (2 (|c| + 0.01 c0)), c0 being the cost at the beginning: below
1/2 it gains. Tables lie where they will once everything that is on the way has arrived. Users of tables are the
training jobs that the slow path knows; one that counts as high priority does so with its GPU-hours a day. Everything
lies in [0, 1]; rows without a table, copy or region, and candidates that are not legal, are zero.
"""

import math

from ...simulator.base.codes import DROP, MOVE
from ...simulator.compiler.jit import entry, kernel
from ...simulator.regions.wan import left_bytes
from ...simulator.table_placement.climb import change_to, fits, total_size, weigh
from ..window import scaled_count
from .review_arrays import (
    ALL_MET,
    ALL_READ,
    DONE,
    FIRST_COST,
    FIRST_REGION,
    HIGH_HOURS,
    KIND_CODES,
    LEAVE,
    QUOTA,
    STILL_COLUMNS,
    count_readers,
    list_legal,
    runs,
)

CLUSTER = (
    "time since the first arrival",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "waiting jobs",
    "running jobs",
    "waiting jobs that no region can run for want of tables",
    "units that are free, of all",
    "tables that are behind, of all",
    "quota that is left, of the quota",
    "cost of Figure 4 c: c / (c + cost at the beginning)",
    "Expression 1: bytes read across regions, of all that are read",
    "Expression 6: high-priority GPU-hours that train at home, of all",
    "high-priority GPU-hours that some region has tables and GPUs for, of all",
    "highest demand over supply of a region, high priority",
    "storage that is taken, of all",
    "copies on the way",
)
QUEUE = (
    "1: a table stands here",
    "its bytes",
    "its bytes, of all tables",
    "readers",
    "bytes that are read of it, of all that are read",
    "high-priority GPU-hours of its readers, of all",
    "copies, of the regions",
    "1: its home is on the move",
    "what its best move by itself gains, of the cost at the beginning",
    "readers that no region can run, of its readers",
    "waiting jobs that read it",
    "decisions about it at this instant: n / (n + 4)",
)
RUNNING = (
    "1: a copy on the way stands here",
    "bytes left",
    "1: its table moves home with it",
    "1: it waits for a source",
    "readers of its table",
    "waiting jobs that read its table",
)
REGIONS = (
    "1: a region stands here",
    "1: it is up",
    "its GPUs, of all",
    "its units that are free, of its own",
    "demand over supply of high-priority GPU-hours",
    "demand over supply of all GPU-hours",
    "its storage, of all",
    "storage that is taken, of its own",
    "bytes that have their home here, of all tables",
    "jobs that run here",
    "1: home of the offered table",
    "1: the offered table lies here, or is on the way",
    "1: it is on the way",
    "readers of the offered table whose hardware is here, of its readers",
    "readers of the offered table that could run here, of its readers",
    "time to copy the offered table here from its home, over an idle link",
)
CANDIDATES = (
    "1: legal",
    "1: done for now",
    "1: home to the region",
    "1: drop the replica",
    "1: on to the next table",
    "1: replica to the region",
    "change of the cost",
    "1: Expressions 4 to 6 stay as they are, or get better",
    "bytes to copy, of the room in the region",
    "bytes to copy, of the quota that is left",
    "readers that can run in the region then, and could not",
    "high-priority GPU-hours of those that could run nowhere, of all",
    "readers that cannot run in the region then, and could",
    "high-priority GPU-hours of those that can run nowhere then, of all",
    "waiting jobs that can run in the region then, and in none now",
)
LEGAL, IS_DONE, IS_HOME, IS_DROP, IS_LEAVE, IS_REPLICA = range(6)
COLUMN_OF_KIND = (IS_HOME, IS_REPLICA, IS_DROP)  # in the order of KIND_CODES
CHANGE = 6  # the first column of what a candidate comes to
QUEUE_COLUMNS, RUNNING_COLUMNS, REGION_COLUMNS = len(QUEUE), len(RUNNING), len(REGIONS)
CANDIDATE_COLUMNS, KINDS = len(CANDIDATES), len(KIND_CODES)
MEGABYTE, LOG_MOST = 1e6, 32.0
SLIGHT_CHANGE = 0.01
FEW = 4.0


@entry
def observe(states, row, windows, look, known, waiting, l, offered, place, spent, cost, features, mask):
    """Modify features, float32 (F,), and mask, int8 (M,): show the present while tables are offered.

    The review's arrays are those of review_arrays.py and the ledger `l`; then the table, the number of those behind,
    the bytes of the quota, and the cost of Figure 4.
    """
    s, w = states[row], windows[0]
    list_legal(s, look, offered, spent)
    features[:] = 0.0
    mask[:] = 0
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    regions = running + w.running_slots * RUNNING_COLUMNS
    candidates = _first_candidate(w)
    _observe_clock(s, w, features)
    _observe_tables(s, look, known, waiting, l, place, spent, cost, features)
    _observe_queue(s, w, look, known, waiting, l, offered, place, features, queue)
    _observe_copies(s, w, look, known, waiting, features, running)
    _observe_regions(s, w, look, known, l, offered, features, regions)
    _observe_candidates(s, look, known, waiting, l, offered, spent, features, candidates, mask)


@entry
def observe_nothing(states, row, windows, features, mask):
    """Modify features and mask, likewise: show the present when there is nothing to decide."""
    s, w = states[row], windows[0]
    features[:] = 0.0
    mask[:] = 0
    mask[DONE] = 1
    _observe_clock(s, w, features)
    candidates = _first_candidate(w)
    features[candidates + LEGAL] = features[candidates + IS_DONE] = 1.0


@kernel
def _first_candidate(w):
    regions = (w.candidates - FIRST_REGION) // KINDS
    return len(CLUSTER) + w.slots * QUEUE_COLUMNS + w.running_slots * RUNNING_COLUMNS + regions * REGION_COLUMNS


@kernel
def ratio(value):
    """A ratio from 0 up as a feature."""
    return value / (1.0 + value)


@kernel
def scaled_bytes(size):
    """Bytes as a feature."""
    return min(1.0, math.log2(1.0 + size / MEGABYTE) / LOG_MOST)


@kernel
def part(value, whole):
    """A share, cut at 1; of nothing, 1 for something."""
    if whole > 0:
        return min(1.0, float(value) / float(whole))
    return 1.0 if value > 0 else 0.0


@kernel
def _log_time(w, value_s):
    return min(1.0, math.log1p(value_s) / w.log_horizon)


@entry
def write_still(states, row, look, known, l):
    """Modify `look.still`: the first features of all tables, which no decision changes."""
    s = states[row]
    size, read = total_size(l), 0.0
    for table in range(l.size.shape[0]):
        read += _read_bytes(s, l, table)
    for table in range(l.size.shape[0]):
        hours = 0.0
        for use in range(known.first[table], known.first[table + 1]):
            hours += known.hours[known.user[use]]
        look.still[table, 0] = 1.0
        look.still[table, 1] = scaled_bytes(float(s.table_size[table]))
        look.still[table, 2] = part(l.size[table], size)
        look.still[table, 3] = scaled_count(count_readers(known, table))
        look.still[table, 4] = part(_read_bytes(s, l, table), read)
        look.still[table, 5] = part(hours, look.amount[HIGH_HOURS])


@kernel
def _read_bytes(s, l, table):
    return float((l.first_user[table + 1] - l.first_user[table]) * s.table_size[table])


@kernel
def _observe_clock(s, w, shown):
    shown[0] = _log_time(w, max(0.0, s.now_s - s.start_s))
    shown[1] = s.next_arrival / s.n_jobs
    shown[2] = s.done / s.n_jobs
    shown[3] = scaled_count(s.waiting)
    shown[4] = scaled_count(s.running)
    shown[6] = s.free_gpus / s.n_gpus


@kernel
def _observe_tables(s, look, known, waiting, l, place, spent, cost, shown):
    stranded, hours = 0, 0.0
    for job in range(waiting.able.shape[0]):
        stranded += not waiting.able[job]
    for job in range(known.able.shape[0]):
        hours += known.hours[job] if known.able[job] else 0.0
    stored = storage = 0
    load = 0.0
    for region in range(s.n_regions):
        stored += s.stored_bytes[region]
        storage += s.storage_bytes[region]
        load = max(load, look.load[0, region])
    shown[5] = scaled_count(stranded)
    shown[7] = place / look.order.shape[0]
    shown[8] = 1.0 - part(spent, look.amount[QUOTA])
    shown[9] = cost / max(cost + look.amount[FIRST_COST], 1e-12)
    shown[10] = part(l.remote[0], look.amount[ALL_READ])
    shown[11] = part(l.met[0], look.amount[ALL_MET])
    shown[12] = part(hours, look.amount[HIGH_HOURS])
    shown[13] = ratio(load)
    shown[14] = part(stored, storage)
    shown[15] = scaled_count(s.n_transfers)


@kernel
def _observe_queue(s, w, look, known, waiting, l, offered, place, features, row):
    _observe_table(s, look, known, waiting, l, offered, features[row : row + QUEUE_COLUMNS])
    slot = 1
    while slot < w.slots and place < look.order.shape[0]:
        table = look.order[place]
        place += 1
        if table != offered:
            at = row + slot * QUEUE_COLUMNS
            _observe_table(s, look, known, waiting, l, table, features[at : at + QUEUE_COLUMNS])
            slot += 1


@kernel
def _observe_table(s, look, known, waiting, l, table, shown):
    for column in range(STILL_COLUMNS):
        shown[column] = look.still[table, column]
    lies = decided = unable = 0
    for region in range(s.n_regions):
        lies += look.copies[table, region]
        for note in range(look.decided.shape[2]):
            decided += look.decided[table, region, note]
    for use in range(known.first[table], known.first[table + 1]):
        unable += not known.able[known.user[use]]
    shown[6] = lies / s.n_regions
    shown[7] = s.table_target[table] >= 0
    shown[8] = part(look.gains[table], look.amount[FIRST_COST])
    shown[9] = unable / max(count_readers(known, table), 1)
    shown[10] = scaled_count(count_readers(waiting, table))
    shown[11] = decided / (decided + FEW)


@kernel
def _observe_copies(s, w, look, known, waiting, features, row):
    for place in range(_rank_copies(s, look)):
        transfer = look.transfer[place]
        table = s.transfer_table[transfer]
        shown = features[row + place * RUNNING_COLUMNS : row + (place + 1) * RUNNING_COLUMNS]
        shown[0] = 1.0
        shown[1] = scaled_bytes(look.left[place])
        shown[2] = s.table_target[table] == s.transfer_to[transfer]
        shown[3] = s.transfer_from[transfer] < 0
        shown[4] = scaled_count(count_readers(known, table))
        shown[5] = scaled_count(count_readers(waiting, table))


@kernel
def _rank_copies(s, look):
    """Modify the scratch: the copies with the most bytes left, then by table and region; returns their number."""
    rows, count = look.left.shape[0], 0
    if s.n_transfers == 0 or rows == 0:
        return count
    for table in range(s.n_tables):
        transfer = s.table_transfer[table]
        while transfer >= 0:
            left, place = left_bytes(s, transfer), count
            while place > 0 and _comes_before(s, look, transfer, left, place - 1):
                if place < rows:
                    look.left[place] = look.left[place - 1]
                    look.transfer[place] = look.transfer[place - 1]
                place -= 1
            if place < rows:
                look.left[place] = left
                look.transfer[place] = transfer
                count = min(rows, count + 1)
            transfer = s.transfer_after[transfer]
    return count


@kernel
def _comes_before(s, look, transfer, left, place):
    if left != look.left[place]:
        return left > look.left[place]
    other = look.transfer[place]
    is_same = s.transfer_table[transfer] == s.transfer_table[other]
    return is_same and s.transfer_to[transfer] < s.transfer_to[other]


@kernel
def _observe_regions(s, w, look, known, l, table, features, row):
    storage = 0
    for region in range(s.n_regions):
        storage += max(s.storage_bytes[region], 1)
    tables, home, readers = max(1, total_size(l)), l.home[table], count_readers(known, table)
    for region in range(s.n_regions):
        shown = features[row + region * REGION_COLUMNS : row + (region + 1) * REGION_COLUMNS]
        own = max(s.storage_bytes[region], 1)
        shown[0] = 1.0
        shown[1] = s.up_regions >> region & 1
        shown[2] = look.gpu_share[region]
        shown[4] = ratio(look.load[0, region])
        shown[5] = ratio(look.load[1, region])
        shown[6] = own / storage
        shown[7] = min(1.0, s.stored_bytes[region] / own)
        shown[8] = l.stored[region] / tables
        shown[10] = region == home
        shown[11] = look.copies[table, region]
        shown[12] = look.copies[table, region] and not s.table_copies[table] >> region & 1
        fit = able = 0
        for use in range(known.first[table], known.first[table + 1]):
            fit += known.fits[known.user[use], region]
            able += runs(known, known.user[use], region)
        if readers > 0:
            shown[13] = fit / readers
            shown[14] = able / readers
        if region != home:
            shown[15] = _log_time(w, s.table_size[table] / s.wan_rate[home, region])
        _observe_work(s, region, shown)


@kernel
def _observe_work(s, region, shown):
    free = units = running = 0
    for cluster in range(s.n_clusters):
        if s.cluster_region[cluster] == region:
            free += s.cluster_free[cluster]
            units += s.cluster_gpus[cluster]
    for place in range(s.running):
        running += s.job_region[s.runner[place]] == region
    shown[3] = free / max(units, 1)
    shown[9] = scaled_count(running)


@kernel
def _observe_candidates(s, look, known, waiting, l, table, spent, features, row, mask):
    for candidate, column in ((DONE, IS_DONE), (LEAVE, IS_LEAVE)):
        at = row + candidate * CANDIDATE_COLUMNS
        mask[candidate] = 1
        features[at + LEGAL] = features[at + column] = 1.0
        features[at + CHANGE] = 0.5
        features[at + CHANGE + 1] = 1.0
    total = total_size(l)
    weigh(l, table)
    for region in range(s.n_regions):
        for kind in range(KINDS):
            if look.legal[region, kind]:
                candidate = FIRST_REGION + KINDS * region + kind
                mask[candidate] = 1
                at = row + candidate * CANDIDATE_COLUMNS
                shown = features[at : at + CANDIDATE_COLUMNS]
                shown[LEGAL] = shown[COLUMN_OF_KIND[kind]] = 1.0
                _observe_change(look, l, table, region, kind, total, shown)
                size = look.size[region, kind]
                shown[8] = part(size, s.storage_bytes[region] - s.stored_bytes[region])
                shown[9] = part(size, look.amount[QUOTA] - spent)
                _observe_readers_after(s, look, known, waiting, l, table, region, KIND_CODES[kind], shown)


@kernel
def _observe_change(look, l, table, region, kind, total, shown):
    shown[CHANGE] = 0.5
    shown[CHANGE + 1] = 1.0
    if KIND_CODES[kind] == MOVE and region != l.home[table]:
        change = change_to(l, table, region, total)
        slight = SLIGHT_CHANGE * look.amount[FIRST_COST]
        shown[CHANGE] = 0.5 + 0.5 * change / (abs(change) + slight + 1e-12)
        shown[CHANGE + 1] = fits(l, table, region)


@kernel
def _observe_readers_after(s, look, known, waiting, l, table, region, kind, shown):
    """Write the change of readers' regions by a candidate; a home that moves may leave a replica."""
    comes = kind != DROP and not look.copies[table, region]
    left_home = l.home[table] if kind == MOVE and not s.table_wanted[table] >> l.home[table] & 1 else -1
    came = left = served = 0
    found = lost = 0.0
    for use in range(known.first[table], known.first[table + 1]):
        job = known.user[use]
        can = False
        for other in range(s.n_regions):
            could = runs(known, job, other)
            then = could
            if other == left_home or (kind == DROP and other == region):
                then = False
            elif comes and other == region:
                then = known.lacks[job, other] == 1 and known.fits[job, other]
            came += then and not could
            left += could and not then
            can = can or then
        if can and not known.able[job]:
            found += known.hours[job]
        if known.able[job] and not can:
            lost += known.hours[job]
    if comes:
        for use in range(waiting.first[table], waiting.first[table + 1]):
            job = waiting.user[use]
            served += waiting.lacks[job, region] == 1 and waiting.fits[job, region] and not waiting.able[job]
    shown[10] = scaled_count(came)
    shown[11] = part(found, look.amount[HIGH_HOURS])
    shown[12] = scaled_count(left)
    shown[13] = part(lost, look.amount[HIGH_HOURS])
    shown[14] = scaled_count(served)
