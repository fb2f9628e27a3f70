"""Features of the present, written by one kernel: the columns of columns.py. `s`, `w`, `m`: see review.py."""

import math

from ...simulator.base.codes import DROP, MOVE
from ...simulator.compiler.jit import kernel
from ...simulator.regions.wan import left_bytes
from ...simulator.table_placement.climb import change_to, fits, total_size, weigh
from ..window import scaled_count
from .columns import CANDIDATES, CLUSTER, QUEUE, REGIONS, RUNNING
from .review import DONE, FIRST_REGION, KIND_CODES, LEAVE, NO_TABLE, count_readers, read_bytes, runs, weigh_tables
from .review_record import KINDS, KNOWN, NOTES, WAITING

COLUMN_OF_KIND = (CANDIDATES.home, CANDIDATES.replica, CANDIDATES.drop)  # in the order of KIND_CODES
QUEUE_COLUMNS, RUNNING_COLUMNS, REGION_COLUMNS = len(QUEUE), len(RUNNING), len(REGIONS)
CANDIDATE_COLUMNS = len(CANDIDATES)
MEGABYTE, LOG_MOST = 1e6, 32.0
SLIGHT_CHANGE = 0.01
FEW = 4.0


@kernel
def observe(s, w, m, features, mask):
    """Modify features, float32 (F,), and mask, int8 (M,): show the present, and the offered table if there is one."""
    features[:] = 0.0
    for candidate in range(w.candidates):
        mask[candidate] = w.legal[candidate]
    queue = len(CLUSTER)
    running = queue + w.slots * QUEUE_COLUMNS
    regions = running + w.running_slots * RUNNING_COLUMNS
    candidates = _first_candidate(w)
    _observe_clock(s, w, features)
    features[candidates + CANDIDATES.legal] = features[candidates + CANDIDATES.done] = 1.0
    if w.offered == NO_TABLE:
        return
    if not w.is_weighed:
        weigh_tables(s, m)
        w.is_weighed = 1
    _observe_tables(s, w, m, features)
    _observe_queue(s, w, m, features, queue)
    _observe_copies(s, w, m, features, running)
    _observe_regions(s, w, m, features, regions)
    _observe_candidates(s, w, m, features, candidates)


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


@kernel
def _observe_clock(s, w, shown):
    shown[CLUSTER.time] = _log_time(w, max(0.0, s.now_s - s.start_s))
    shown[CLUSTER.arrived] = s.next_arrival / s.n_jobs
    shown[CLUSTER.finished] = s.done / s.n_jobs
    shown[CLUSTER.waiting] = scaled_count(s.waiting)
    shown[CLUSTER.running] = scaled_count(s.running)
    shown[CLUSTER.free] = s.free_gpus / s.n_gpus


@kernel
def _observe_tables(s, w, m, shown):
    stranded, hours = 0, 0.0
    for job in range(m.n_readers[WAITING]):
        stranded += m.able[WAITING, job] == 0
    for job in range(m.n_readers[KNOWN]):
        hours += m.high_hours_of[job] if m.able[KNOWN, job] else 0.0
    stored = storage = 0
    load = 0.0
    for region in range(s.n_regions):
        stored += s.stored_bytes[region]
        storage += s.storage_bytes[region]
        load = max(load, m.load[0, region])
    shown[CLUSTER.stranded] = scaled_count(stranded)
    shown[CLUSTER.behind] = w.place / s.n_tables
    shown[CLUSTER.quota_left] = 1.0 - part(w.spent, m.quota_bytes)
    shown[CLUSTER.cost] = w.table_cost / max(w.table_cost + w.first_table_cost, 1e-12)
    shown[CLUSTER.read_across] = part(m.remote[0], m.all_read)
    shown[CLUSTER.at_home] = part(m.met[0], m.all_met)
    shown[CLUSTER.able] = part(hours, m.high_hours)
    shown[CLUSTER.demand] = ratio(load)
    shown[CLUSTER.stored] = part(stored, storage)
    shown[CLUSTER.copies] = scaled_count(s.n_transfers)


@kernel
def _observe_queue(s, w, m, features, row):
    read = 0.0
    for table in range(s.n_tables):
        read += read_bytes(s, m, table)
    _observe_table(s, w, m, w.offered, read, features[row : row + QUEUE_COLUMNS])
    slot, place = 1, w.place
    while slot < w.slots and place < s.n_tables:
        table = m.turns[place]
        place += 1
        if table != w.offered:
            at = row + slot * QUEUE_COLUMNS
            _observe_table(s, w, m, table, read, features[at : at + QUEUE_COLUMNS])
            slot += 1


@kernel
def _observe_table(s, w, m, table, read, shown):
    lies = decided = unable = 0
    hours = 0.0
    for region in range(s.n_regions):
        lies += m.copies[table, region]
        for note in range(NOTES):
            decided += m.decided[table, region, note]
    for use in range(m.first_reader[KNOWN, table], m.first_reader[KNOWN, table + 1]):
        unable += m.able[KNOWN, m.reader[KNOWN, use]] == 0
        hours += m.high_hours_of[m.reader[KNOWN, use]]
    shown[QUEUE.present] = 1.0
    shown[QUEUE.bytes] = scaled_bytes(float(s.table_size[table]))
    shown[QUEUE.bytes_share] = part(m.kib[table], total_size(m))
    shown[QUEUE.readers] = scaled_count(count_readers(m, KNOWN, table))
    shown[QUEUE.bytes_read] = part(read_bytes(s, m, table), read)
    shown[QUEUE.high_hours] = part(hours, m.high_hours)
    shown[QUEUE.copies] = lies / s.n_regions
    shown[QUEUE.moves] = s.table_target[table] >= 0
    shown[QUEUE.gain] = part(m.gains[table], w.first_table_cost)
    shown[QUEUE.stranded_readers] = unable / max(count_readers(m, KNOWN, table), 1)
    shown[QUEUE.waiting_readers] = scaled_count(count_readers(m, WAITING, table))
    shown[QUEUE.decided] = decided / (decided + FEW)


@kernel
def _observe_copies(s, w, m, features, row):
    for place in range(_rank_copies(s, w, m)):
        transfer = m.transfer[place]
        table = s.transfer_table[transfer]
        at = row + place * RUNNING_COLUMNS
        shown = features[at : at + RUNNING_COLUMNS]
        shown[RUNNING.present] = 1.0
        shown[RUNNING.bytes_left] = scaled_bytes(m.left[place])
        shown[RUNNING.moves] = s.table_target[table] == s.transfer_to[transfer]
        shown[RUNNING.waits] = s.transfer_from[transfer] < 0
        shown[RUNNING.readers] = scaled_count(count_readers(m, KNOWN, table))
        shown[RUNNING.waiting_readers] = scaled_count(count_readers(m, WAITING, table))


@kernel
def _rank_copies(s, w, m):
    """Modify the scratch: the copies with the most bytes left, then by table and region; returns their number."""
    rows, count = w.running_slots, 0
    if s.n_transfers == 0 or rows == 0:
        return count
    for table in range(s.n_tables):
        transfer = s.table_transfer[table]
        while transfer >= 0:
            left, place = left_bytes(s, transfer), count
            while place > 0 and _comes_before(s, m, transfer, left, place - 1):
                if place < rows:
                    m.left[place] = m.left[place - 1]
                    m.transfer[place] = m.transfer[place - 1]
                place -= 1
            if place < rows:
                m.left[place] = left
                m.transfer[place] = transfer
                count = min(rows, count + 1)
            transfer = s.transfer_after[transfer]
    return count


@kernel
def _comes_before(s, m, transfer, left, place):
    if left != m.left[place]:
        return left > m.left[place]
    other = m.transfer[place]
    is_same = s.transfer_table[transfer] == s.transfer_table[other]
    return is_same and s.transfer_to[transfer] < s.transfer_to[other]


@kernel
def _observe_regions(s, w, m, features, row):
    table, storage = w.offered, 0
    for region in range(s.n_regions):
        storage += max(s.storage_bytes[region], 1)
    tables, home, readers = max(1, total_size(m)), m.home[table], count_readers(m, KNOWN, table)
    for region in range(s.n_regions):
        at = row + region * REGION_COLUMNS
        shown = features[at : at + REGION_COLUMNS]
        own = max(s.storage_bytes[region], 1)
        shown[REGIONS.present] = 1.0
        shown[REGIONS.up] = s.up_regions >> region & 1
        shown[REGIONS.gpus] = m.gpu_share[region]
        shown[REGIONS.high_demand] = ratio(m.load[0, region])
        shown[REGIONS.demand] = ratio(m.load[1, region])
        shown[REGIONS.storage] = own / storage
        shown[REGIONS.stored] = min(1.0, s.stored_bytes[region] / own)
        shown[REGIONS.homes] = m.stored[region] / tables
        shown[REGIONS.home] = region == home
        shown[REGIONS.holds] = m.copies[table, region]
        shown[REGIONS.incoming] = m.copies[table, region] and not s.table_copies[table] >> region & 1
        fit = able = 0
        for use in range(m.first_reader[KNOWN, table], m.first_reader[KNOWN, table + 1]):
            fit += m.has_hardware[KNOWN, m.reader[KNOWN, use], region]
            able += runs(m, KNOWN, m.reader[KNOWN, use], region)
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
def _observe_candidates(s, w, m, features, row):
    for candidate, column in ((DONE, CANDIDATES.done), (LEAVE, CANDIDATES.leave)):
        at = row + candidate * CANDIDATE_COLUMNS
        features[at + CANDIDATES.legal] = features[at + column] = 1.0
        features[at + CANDIDATES.change] = 0.5
        features[at + CANDIDATES.fits] = 1.0
    table = w.offered
    total = total_size(m)
    weigh(m, table)
    for region in range(s.n_regions):
        for kind in range(KINDS):
            candidate = FIRST_REGION + KINDS * region + kind
            if w.legal[candidate]:
                at = row + candidate * CANDIDATE_COLUMNS
                shown = features[at : at + CANDIDATE_COLUMNS]
                shown[CANDIDATES.legal] = shown[COLUMN_OF_KIND[kind]] = 1.0
                _observe_change(w, m, table, region, kind, total, shown)
                size = m.copied[region, kind]
                shown[CANDIDATES.copied] = part(size, s.storage_bytes[region] - s.stored_bytes[region])
                shown[CANDIDATES.quota_taken] = part(size, m.quota_bytes - w.spent)
                _observe_readers_after(s, m, table, region, KIND_CODES[kind], shown)


@kernel
def _observe_change(w, m, table, region, kind, total, shown):
    shown[CANDIDATES.change] = 0.5
    shown[CANDIDATES.fits] = 1.0
    if KIND_CODES[kind] == MOVE and region != m.home[table]:
        change = change_to(m, table, region, total)
        slight = SLIGHT_CHANGE * w.first_table_cost
        shown[CANDIDATES.change] = 0.5 + 0.5 * change / (abs(change) + slight + 1e-12)
        shown[CANDIDATES.fits] = fits(m, table, region)


@kernel
def _observe_readers_after(s, m, table, region, kind, shown):
    """Write the change of readers' regions by a candidate; a home that moves may leave a replica."""
    comes = kind != DROP and not m.copies[table, region]
    left_home = m.home[table] if kind == MOVE and not s.table_wanted[table] >> m.home[table] & 1 else -1
    came = left = served = 0
    found = lost = 0.0
    for use in range(m.first_reader[KNOWN, table], m.first_reader[KNOWN, table + 1]):
        job = m.reader[KNOWN, use]
        can = False
        for other in range(s.n_regions):
            could = runs(m, KNOWN, job, other)
            then = could
            if other == left_home or (kind == DROP and other == region):
                then = False
            elif comes and other == region:
                then = m.lacks[KNOWN, job, other] == 1 and m.has_hardware[KNOWN, job, other] != 0
            came += then and not could
            left += could and not then
            can = can or then
        if can and not m.able[KNOWN, job]:
            found += m.high_hours_of[job]
        if m.able[KNOWN, job] and not can:
            lost += m.high_hours_of[job]
    if comes:
        for use in range(m.first_reader[WAITING, table], m.first_reader[WAITING, table + 1]):
            job = m.reader[WAITING, use]
            could = m.lacks[WAITING, job, region] == 1 and m.has_hardware[WAITING, job, region] != 0
            served += could and not m.able[WAITING, job]
    shown[CANDIDATES.readers_gained] = scaled_count(came)
    shown[CANDIDATES.hours_gained] = part(found, m.high_hours)
    shown[CANDIDATES.readers_lost] = scaled_count(left)
    shown[CANDIDATES.hours_lost] = part(lost, m.high_hours)
    shown[CANDIDATES.waiting_gained] = scaled_count(served)
