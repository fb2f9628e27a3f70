"""Features of the present, written by one kernel: the columns of columns.py."""

import math

from ...simulator.base.codes import DROP, MOVE
from ...simulator.compiler.jit import entry, kernel
from ...simulator.regions.wan import left_bytes
from ...simulator.table_placement.climb import change_to, fits, total_size, weigh
from ..window import scaled_count
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
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

COLUMN_OF_KIND = (CANDIDATES.home, CANDIDATES.replica, CANDIDATES.drop)  # in the order of KIND_CODES
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
    features[candidates + CANDIDATES.legal] = features[candidates + CANDIDATES.done] = 1.0


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
    for table in range(l.kib.shape[0]):
        read += _read_bytes(s, l, table)
    for table in range(l.kib.shape[0]):
        hours = 0.0
        for use in range(known.first[table], known.first[table + 1]):
            hours += known.hours[known.user[use]]
        look.still[table, QUEUE.present] = 1.0
        look.still[table, QUEUE.bytes] = scaled_bytes(float(s.table_size[table]))
        look.still[table, QUEUE.bytes_share] = part(l.kib[table], size)
        look.still[table, QUEUE.readers] = scaled_count(count_readers(known, table))
        look.still[table, QUEUE.bytes_read] = part(_read_bytes(s, l, table), read)
        look.still[table, QUEUE.high_hours] = part(hours, look.amount[HIGH_HOURS])


@kernel
def _read_bytes(s, l, table):
    return float((l.first_user[table + 1] - l.first_user[table]) * s.table_size[table])


@kernel
def _observe_clock(s, w, shown):
    shown[CLUSTER.time] = _log_time(w, max(0.0, s.now_s - s.start_s))
    shown[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    shown[CLUSTER.finished] = s.done / s.n_jobs
    shown[CLUSTER.waiting] = scaled_count(s.waiting)
    shown[CLUSTER.running] = scaled_count(s.running)
    shown[CLUSTER.free] = s.free_gpus / s.n_gpus


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
    shown[CLUSTER.stranded] = scaled_count(stranded)
    shown[CLUSTER.behind] = place / look.order.shape[0]
    shown[CLUSTER.quota_left] = 1.0 - part(spent, look.amount[QUOTA])
    shown[CLUSTER.cost] = cost / max(cost + look.amount[FIRST_COST], 1e-12)
    shown[CLUSTER.read_across] = part(l.remote[0], look.amount[ALL_READ])
    shown[CLUSTER.at_home] = part(l.met[0], look.amount[ALL_MET])
    shown[CLUSTER.able] = part(hours, look.amount[HIGH_HOURS])
    shown[CLUSTER.demand] = ratio(load)
    shown[CLUSTER.stored] = part(stored, storage)
    shown[CLUSTER.copies] = scaled_count(s.n_transfers)


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
    shown[QUEUE.copies] = lies / s.n_regions
    shown[QUEUE.moves] = s.table_target[table] >= 0
    shown[QUEUE.gain] = part(look.gains[table], look.amount[FIRST_COST])
    shown[QUEUE.stranded_readers] = unable / max(count_readers(known, table), 1)
    shown[QUEUE.waiting_readers] = scaled_count(count_readers(waiting, table))
    shown[QUEUE.decided] = decided / (decided + FEW)


@kernel
def _observe_copies(s, w, look, known, waiting, features, row):
    for place in range(_rank_copies(s, look)):
        transfer = look.transfer[place]
        table = s.transfer_table[transfer]
        at = row + place * RUNNING_COLUMNS
        shown = features[at : at + RUNNING_COLUMNS]
        shown[RUNNING.present] = 1.0
        shown[RUNNING.bytes_left] = scaled_bytes(look.left[place])
        shown[RUNNING.moves] = s.table_target[table] == s.transfer_to[transfer]
        shown[RUNNING.waits] = s.transfer_from[transfer] < 0
        shown[RUNNING.readers] = scaled_count(count_readers(known, table))
        shown[RUNNING.waiting_readers] = scaled_count(count_readers(waiting, table))


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
        at = row + region * REGION_COLUMNS
        shown = features[at : at + REGION_COLUMNS]
        own = max(s.storage_bytes[region], 1)
        shown[REGIONS.present] = 1.0
        shown[REGIONS.up] = s.up_regions >> region & 1
        shown[REGIONS.gpus] = look.gpu_share[region]
        shown[REGIONS.high_demand] = ratio(look.load[0, region])
        shown[REGIONS.demand] = ratio(look.load[1, region])
        shown[REGIONS.storage] = own / storage
        shown[REGIONS.stored] = min(1.0, s.stored_bytes[region] / own)
        shown[REGIONS.homes] = l.stored[region] / tables
        shown[REGIONS.home] = region == home
        shown[REGIONS.holds] = look.copies[table, region]
        shown[REGIONS.incoming] = look.copies[table, region] and not s.table_copies[table] >> region & 1
        fit = able = 0
        for use in range(known.first[table], known.first[table + 1]):
            fit += known.fits[known.user[use], region]
            able += runs(known, known.user[use], region)
        if readers > 0:
            shown[REGIONS.fitting_readers] = fit / readers
            shown[REGIONS.able_readers] = able / readers
        if region != home:
            shown[REGIONS.copy_time] = _log_time(w, s.table_size[table] / s.wan_rate[home, region])
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
    shown[REGIONS.free] = free / max(units, 1)
    shown[REGIONS.running] = scaled_count(running)


@kernel
def _observe_candidates(s, look, known, waiting, l, table, spent, features, row, mask):
    for candidate, column in ((DONE, CANDIDATES.done), (LEAVE, CANDIDATES.leave)):
        at = row + candidate * CANDIDATE_COLUMNS
        mask[candidate] = 1
        features[at + CANDIDATES.legal] = features[at + column] = 1.0
        features[at + CANDIDATES.change] = 0.5
        features[at + CANDIDATES.fits] = 1.0
    total = total_size(l)
    weigh(l, table)
    for region in range(s.n_regions):
        for kind in range(KINDS):
            if look.legal[region, kind]:
                candidate = FIRST_REGION + KINDS * region + kind
                mask[candidate] = 1
                at = row + candidate * CANDIDATE_COLUMNS
                shown = features[at : at + CANDIDATE_COLUMNS]
                shown[CANDIDATES.legal] = shown[COLUMN_OF_KIND[kind]] = 1.0
                _observe_change(look, l, table, region, kind, total, shown)
                size = look.size[region, kind]
                shown[CANDIDATES.copied] = part(size, s.storage_bytes[region] - s.stored_bytes[region])
                shown[CANDIDATES.quota_taken] = part(size, look.amount[QUOTA] - spent)
                _observe_readers_after(s, look, known, waiting, l, table, region, KIND_CODES[kind], shown)


@kernel
def _observe_change(look, l, table, region, kind, total, shown):
    shown[CANDIDATES.change] = 0.5
    shown[CANDIDATES.fits] = 1.0
    if KIND_CODES[kind] == MOVE and region != l.home[table]:
        change = change_to(l, table, region, total)
        slight = SLIGHT_CHANGE * look.amount[FIRST_COST]
        shown[CANDIDATES.change] = 0.5 + 0.5 * change / (abs(change) + slight + 1e-12)
        shown[CANDIDATES.fits] = fits(l, table, region)


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
    shown[CANDIDATES.readers_gained] = scaled_count(came)
    shown[CANDIDATES.hours_gained] = part(found, look.amount[HIGH_HOURS])
    shown[CANDIDATES.readers_lost] = scaled_count(left)
    shown[CANDIDATES.hours_lost] = part(lost, look.amount[HIGH_HOURS])
    shown[CANDIDATES.waiting_gained] = scaled_count(served)
