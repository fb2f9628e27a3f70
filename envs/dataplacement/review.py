"""A review of the tables as kernels: it begins, decisions are noted and followed, and what is legal.

`s`, `w`, `m` are the run, its window, and what is remembered of the review (review_record.py).
"""

from ...simulator.base.codes import DROP, HIGH_LEVELS, LEVELS, MOVE, REPLICATE
from ...simulator.checks.table_refusals import ALLOWED, copied_bytes, is_idle, refusal
from ...simulator.compiler.jit import entry, kernel
from ...simulator.numerics.bitset import next_member
from ...simulator.regions.table_copies import projected_copies, projected_home
from ...simulator.table_placement.climb import survey
from ...simulator.table_placement.cost import move, sum_up, total_cost
from ...simulator.table_placement.ledger import JOBS, REGIONS, TYPES
from ...simulator.table_placement.placement import HALVING
from .review_record import CPU_S, GPU_S, KINDS, KNOWN, MET_BY, NOTES, TOTAL, WAITING

DONE, LEAVE, FIRST_REGION = 0, 1, 2  # candidates; from the third on three a region, in the order of KIND_CODES
KIND_CODES = (MOVE, REPLICATE, DROP)  # of a region's candidates, in this order
WHOLE = KINDS  # a decision that completes a copy is noted here, beside the kinds
NO_TABLE = -1
LEAST_COST = 1e-6  # what changes are measured by is no less


@kernel
def runs(m, which, job, region):
    """Whether a region has a job's tables and hardware."""
    return m.lacks[which, job, region] == 0 and m.has_hardware[which, job, region] != 0


@kernel
def count_readers(m, which, table):
    """Number of readers of a table."""
    return m.first_reader[which, table + 1] - m.first_reader[which, table]


@kernel
def turn_of(s, w, m):
    """The table whose turn it is; NO_TABLE: none is left."""
    return m.turns[w.place] if w.place < s.n_tables else NO_TABLE


@kernel
def begin_review(s, w, m):
    """Modify `w` and `m`: a review begins."""
    place_all(s, m)
    m.threshold[0] = m.met[0]
    for table in range(s.n_tables):
        for region in range(s.n_regions):
            for note in range(NOTES):
                m.decided[table, region, note] = 0
    w.place = w.spent = w.is_weighed = 0
    w.offered = turn_of(s, w, m)
    w.table_cost = total_cost(m)


@kernel
def place_all(s, m):
    """Modify `m`: the ledger and readers of the tables where they will be; Python has told which jobs are known."""
    list_known(s, m)
    _list_waiting(s, m)
    for which in range(2):
        for job in range(m.n_readers[which]):
            for region in range(s.n_regions):
                m.lacks[which, job, region] = 0
    for table in range(s.n_tables):
        m.home[table], bits = projected_home(s, table), projected_copies(s, table)
        for region in range(s.n_regions):
            m.copies[table, region] = 1
        _place(s, m, table, bits)
    _sum_up(m)


@kernel
def list_known(s, m):
    """Modify `m`: the known jobs of the ledger, and as readers; the turns of the tables, by the bytes that are read."""
    total = met = 0
    for gpu in range(m.extent[TYPES]):
        for level in range(LEVELS):
            m.level_weight[gpu, level] = 0.0
    for job in range(m.extent[JOBS]):
        known = m.known[job]
        m.gpu_s[job], m.cpu_s[job] = m.sizes[GPU_S, job] * known, m.sizes[CPU_S, job] * known
        m.total[job], m.met_by[job] = m.sizes[TOTAL, job] * known, m.sizes[MET_BY, job] * known
        m.high_hours_of[job] = m.hours[job] if known and m.training[job] else 0.0
        total += m.total[job]
        met += m.met_by[job]
        for place in range(m.first_type[m.accepts[job]], m.first_type[m.accepts[job] + 1] if known else 0):
            m.level_weight[m.type[place], m.job_level[job]] = HALVING[m.job_level[job]]
    m.term_weight[0] = 1.0 / max(total, 1)
    m.all_read, m.all_met = max(total, 1), max(met, 1)
    user = reader = 0
    for table in range(s.n_tables):
        m.first_user[table], m.first_reader[KNOWN, table] = user, reader
        for place in range(m.first_use[table], m.first_use[table + 1]):
            job = m.use[place]
            if m.known[job]:
                m.user[user] = job
                user += 1
                if m.training[job]:
                    m.reader[KNOWN, reader] = job
                    reader += 1
    m.first_user[s.n_tables], m.first_reader[KNOWN, s.n_tables] = user, reader
    for place in range(s.n_tables):
        _rise(s, m, place)


@kernel
def read_bytes(s, m, table):
    """Bytes that are read of a table."""
    return float((m.first_user[table + 1] - m.first_user[table]) * s.table_size[table])


@kernel
def _rise(s, m, place):
    """Modify the turns: a table moves before those of which less is read, or as much and of higher numbers."""
    table = m.turns[place]
    read = read_bytes(s, m, table)
    while place > 0:
        before = m.turns[place - 1]
        other = read_bytes(s, m, before)
        if other > read or (other == read and before < table):
            break
        m.turns[place] = before
        place -= 1
    m.turns[place] = table


@kernel
def _sum_up(m):
    """Modify `m`: the ledger's sums, from the homes."""
    m.met[0] = m.remote[0] = 0
    for job in range(m.extent[JOBS]):
        for region in range(m.extent[REGIONS]):
            m.tables_at[job, region] = 0
            m.kib_at[job, region] = m.cpu[job, region] = 0  # jobs name no more applications
    for region in range(m.extent[REGIONS]):
        m.stored[region] = 0
        for gpu in range(m.extent[TYPES]):
            for level in range(LEVELS):
                m.demand[region, gpu, level] = m.asked_s[gpu, level] = 0
    sum_up(m)


@kernel
def _list_waiting(s, m):
    """Modify `m`: the waiting workloads as readers."""
    first, place = m.first_reader[WAITING], m.next_place
    for table in range(s.n_tables + 1):
        first[table] = 0
    count, rank = 0, next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank >= 0:
        job = s.job_at_rank[rank]
        for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
            first[s.read_table[use] + 1] += 1
        for region in range(s.n_regions):
            m.has_hardware[WAITING, count, region] = s.job_hosts[job] >> region & 1
        count += 1
        rank = next_member(s.window_low, s.window_mid, s.window_top, rank + 1)
    m.n_readers[WAITING] = count
    for table in range(s.n_tables):
        place[table] = first[table]
        first[table + 1] += first[table]
    count, rank = 0, next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank >= 0:
        job = s.job_at_rank[rank]
        for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
            table = s.read_table[use]
            m.reader[WAITING, place[table]] = count
            place[table] += 1
        count += 1
        rank = next_member(s.window_low, s.window_mid, s.window_top, rank + 1)


@kernel
def _place(s, m, table, bits):
    """Modify `m`: a table will lie in these regions."""
    for region in range(s.n_regions):
        change = m.copies[table, region] - (bits >> region & 1)
        m.copies[table, region] = bits >> region & 1
        for which in range(2 if change != 0 else 0):
            for use in range(m.first_reader[which, table], m.first_reader[which, table + 1]):
                m.lacks[which, m.reader[which, use], region] += change


@kernel
def follow_decision(s, w, m):
    """Modify `w` and `m`: the chosen decision has been carried out."""
    table = w.chosen
    m.decided[table, w.chosen_region, w.chosen_note] = 1
    _place(s, m, table, projected_copies(s, table))
    move(m, table, projected_home(s, table))
    w.chosen, w.is_weighed, w.table_cost = NO_TABLE, 0, total_cost(m)


@kernel
def weigh_tables(s, m):
    """Modify `m`: effects of the places of tables."""
    for which in range(2):
        for job in range(m.n_readers[which]):
            m.able[which, job] = 0
            for region in range(s.n_regions):
                m.able[which, job] |= runs(m, which, job, region)
    survey(m, 0, s.n_tables, m.gains)
    for region in range(s.n_regions):
        supply = high = demand = 0
        for gpu in range(m.extent[TYPES]):
            supply += m.supply[region, gpu]
            for level in range(LEVELS):
                demand += m.demand[region, gpu, level]
                high += m.demand[region, gpu, level] if level < HIGH_LEVELS else 0
        m.load[0, region] = high / max(supply, 1)
        m.load[1, region] = demand / max(supply, 1)


@kernel
def is_whole(s, table, region, kind):
    """Whether a candidate asks for all partitions: of a replica that is there, or on the way."""
    return kind == REPLICATE and s.table_wanted[table] >> region & 1 == 1


@kernel
def may_decide(s, w, m, table, region, at, whole):
    """Whether a decision of that kind can be carried out now, is new, and within the quota."""
    kind = KIND_CODES[at]
    if m.decided[table, region, WHOLE if whole else at] != 0 or is_idle(s, table, region, kind):
        return False
    if refusal(s, table, region, kind, whole) != ALLOWED:
        return False
    return w.spent + copied_bytes(s, table, region, kind, whole) <= m.quota_bytes


@kernel
def list_legal(s, w, m):
    """Modify `w.legal`, and `m.copied`: the candidates of the offered table."""
    for candidate in range(w.candidates):
        w.legal[candidate] = candidate == DONE or (candidate == LEAVE and w.offered != NO_TABLE)
    for region in range(s.n_regions if w.offered != NO_TABLE else 0):
        for at in range(KINDS):
            whole = is_whole(s, w.offered, region, KIND_CODES[at])
            if may_decide(s, w, m, w.offered, region, at, whole):
                w.legal[FIRST_REGION + KINDS * region + at] = 1
                m.copied[region, at] = copied_bytes(s, w.offered, region, KIND_CODES[at], whole)


@entry
def allows(states, row, windows, solvers, table, region, at, whole):
    """`may_decide`, for Python."""
    return may_decide(states[row], windows[0], solvers[0], table, region, at, whole)


@entry
def price_homes(states, row, windows, solvers):
    """Modify `w`: the cost of Figure 4 of the homes that are written; the run is left alone."""
    w, m = windows[0], solvers[0]
    list_known(states[row], m)
    _sum_up(m)
    w.table_cost = w.paid_cost = w.first_table_cost = max(LEAST_COST, total_cost(m))


@entry
def go_on(states, row, solvers):
    """Modify `m`: the ledger and readers of a run that was restored in the middle of a review."""
    place_all(states[row], solvers[0])
