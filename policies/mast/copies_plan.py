"""The kernels of copies_on_demand.py.

Workloads are served in order of arrival. All is planned on the record as it is, with what was decided before it in `p`
(`copies_fields`), and then carried out.
"""

from ...simulator.base.codes import DROP, HELD, MOVE, REPLICATE, WAITING, WORD
from ...simulator.checks.table_refusals import ALLOWED, refusal
from ...simulator.compiler.jit import entry, kernel
from ...simulator.record.field_axes import CALL, Axis, Field
from ...simulator.regions.region_starts import candidate_regions, needs_home
from ...simulator.regions.wan import drop, missing_bytes, move, replicate

STAYS = -1  # as a region to which a home moves
NO_REGION = -1


def copies_fields(jobs: Axis, tables: int, regions: int) -> list[Field]:
    """Tables by size, and a plan: what has become of tables and regions after the decisions so far."""
    most = tables * (2 * regions + 1)  # in every region a copy comes and goes once, a home moves once
    return [
        ("tables_by_size", "i8", (tables,)),  # tables, the largest first
        ("bound_to", "i8", (jobs,)),  # 1 + the only region of a workload; 0: any
        ("n_table_decisions", "i8"),
        ("table_decisions", "i4", (most, 3), CALL),  # kind, table, region
        ("copy_comes", "i8", (tables,), CALL),  # sets of regions: those that get a copy,
        ("copy_goes", "i8", (tables,), CALL),  # and those whose copy goes
        ("home_moves_to", "i8", (tables,), CALL),  # region of the home to be
        ("home_settled", "i1", (tables,), CALL),  # homes that stay: a waiting job that needs fresh data can run there
        ("table_kept", "i1", (tables,), CALL),  # scratch: tables that stay in a region
        ("free_bytes", "i8", (regions,), CALL),  # free bytes
        ("free_then", "i8", (regions,), CALL),  # scratch: with more decisions
        ("bytes_lacked", "i8", (regions,), CALL),  # scratch: bytes that a job lacks; NO_REGION: it cannot go there
        ("busy_share", "f8", (regions,), CALL),  # scratch
    ]


@kernel
def copy_on_demand(s, p):
    """Modify both in place: decide about tables for all jobs that no region can run, and carry it out."""
    _begin_plan(s, p)
    job = next_pending(s, 0)
    while job >= 0:
        if candidate_regions(s, job) == 0:
            _serve(s, p, job)
        job = next_pending(s, job + 1)
    for at in range(p.n_table_decisions):
        kind, table, region = p.table_decisions[at, 0], p.table_decisions[at, 1], p.table_decisions[at, 2]
        if refusal(s, table, region, kind, 0) != ALLOWED:
            continue
        if kind == REPLICATE:
            replicate(s, table, region, 0)
        elif kind == MOVE:
            move(s, table, region)
        else:
            drop(s, table, region)


@entry
def plan_copies(states, row, plans, jobs):
    """Modify the only plan in place: decisions about tables for these jobs, int64 (k,), in this order."""
    s, p = states[row], plans[0]
    _begin_plan(s, p)
    for at in range(jobs.size):
        _serve(s, p, jobs[at])


@kernel
def _begin_plan(s, p):
    p.n_table_decisions = 0
    for table in range(s.n_tables):
        p.copy_goes[table] = p.copy_comes[table] = 0
        p.home_moves_to[table] = STAYS
        transfer = s.table_transfer[table]
        while transfer >= 0:
            p.copy_comes[table] |= 1 << s.transfer_to[transfer]
            transfer = s.transfer_after[transfer]
    for region in range(s.n_regions):
        p.free_bytes[region] = s.storage_bytes[region] - s.stored_bytes[region]
    _settle(s, p)


@kernel
def _settle(s, p):
    """Modify the plan in place: no home of tables of a waiting job moves that needs fresh data, and finds it now."""
    for table in range(s.n_tables):
        p.home_settled[table] = 0
    job = next_pending(s, 0)
    while job >= 0:
        if needs_home(s, job) and _hosts(s, p, job) & candidate_regions(s, job):
            _mark(s, p.home_settled, job)
        job = next_pending(s, job + 1)


@kernel
def next_pending(s, job):
    """The first waiting or held job from this one on, -1: there is none; it skips words of 32 jobs that are done."""
    while job < s.next_arrival:
        if s.status[job] == WAITING or s.status[job] == HELD:
            return job
        job += WORD if s.ended[job // WORD] == WORD else 1
    return -1


@kernel
def _mark(s, marks, job):
    """Modify marks of tables in place: mark those that a job reads."""
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        marks[s.read_table[use]] = 1


@kernel
def _hosts(s, p, job):
    """Set of the regions that may hold a job."""
    return 1 << p.bound_to[job] - 1 if p.bound_to[job] else s.job_hosts[job]


@kernel
def _decide(p, kind, table, region):
    p.table_decisions[p.n_table_decisions, 0] = kind
    p.table_decisions[p.n_table_decisions, 1] = table
    p.table_decisions[p.n_table_decisions, 2] = region
    p.n_table_decisions += 1


@kernel
def _serve(s, p, job):
    """Modify the plan in place: add the decisions for a job."""
    if needs_home(s, job):
        _bring_home(s, p, job)
        return
    lacks_somewhere = True
    for region in range(s.n_regions):
        p.bytes_lacked[region] = NO_REGION
        if (_hosts(s, p, job) & s.up_regions) >> region & 1:
            p.bytes_lacked[region] = _bytes_to_copy(s, p, job, region)
            p.busy_share[region] = _load(s, job, region)
            lacks_somewhere &= p.bytes_lacked[region] == NO_REGION or _lacks_any(s, p, job, region)
    region = _next_region(s, p, NO_REGION)
    while region != NO_REGION:
        if p.bytes_lacked[region] <= p.free_bytes[region]:
            _copy(s, p, job, region)
            return
        region = _next_region(s, p, region)
    if lacks_somewhere:  # else it waits only for copies on the way
        region = _next_region(s, p, NO_REGION)
        while region != NO_REGION:
            if _make_room(s, p, job, region, p.bytes_lacked[region]):
                if p.bytes_lacked[region] <= p.free_bytes[region]:
                    _copy(s, p, job, region)
                return
            region = _next_region(s, p, region)


@kernel
def _next_region(s, p, last):
    """The region after `last` by lacked bytes, load and number; NO_REGION: the first, or there is no more."""
    best = NO_REGION
    for region in range(s.n_regions):
        if p.bytes_lacked[region] != NO_REGION and (last == NO_REGION or _is_before(p, last, region)):
            if best == NO_REGION or _is_before(p, region, best):
                best = region
    return best


@kernel
def _is_before(p, one, other):
    if p.bytes_lacked[one] != p.bytes_lacked[other]:
        return p.bytes_lacked[one] < p.bytes_lacked[other]
    if p.busy_share[one] != p.busy_share[other]:
        return p.busy_share[one] < p.busy_share[other]
    return one < other


@kernel
def _bytes_to_copy(s, p, job, region):
    """Bytes of copies that a job lacks in a region; NO_REGION: one of the tables lies in no region that is up."""
    size = 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if not _is_there(s, p, table, region):
            if s.table_copies[table] & s.up_regions == 0:
                return NO_REGION
            size += _replica_bytes(s, p, table, region)
    return size


@kernel
def _lacks_any(s, p, job, region):
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        if not _is_there(s, p, s.read_table[use], region):
            return True
    return False


@kernel
def _copy(s, p, job, region):
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if not _is_there(s, p, table, region):
            _decide(p, REPLICATE, table, region)
            p.free_bytes[region] -= _replica_bytes(s, p, table, region)
            p.copy_comes[table] |= 1 << region


@kernel
def _is_there(s, p, table, region):
    """Whether a region has a table to stay, or it is on the way, after the decisions so far."""
    return (
        p.copy_comes[table] | (s.table_copies[table] & ~s.table_doomed[table] & ~p.copy_goes[table])
    ) >> region & 1 == 1


@kernel
def _replica_bytes(s, p, table, region):
    """Bytes of a copy; 0 where one lies that is about to be deleted."""
    return 0 if (s.table_copies[table] & ~p.copy_goes[table]) >> region & 1 else s.replica_size[table]


@kernel
def _load(s, job, region):
    """Share of busy units in a region, of the types that a job's first part accepts."""
    free, units = 0, 0
    for cluster in range(s.n_clusters):
        if s.cluster_region[cluster] == region and (s.part_accepts[job, 0] >> s.cluster_type[cluster]) & 1:
            free += s.cluster_free[cluster]
            units += s.cluster_gpus[cluster]
    return 1.0 - free / max(units, 1.0)


@kernel
def _bring_home(s, p, job):
    """Modify the plan in place: homes of all tables of a job move to one region, unless others need them in place."""
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if _moves(s, p, table) or p.home_settled[table]:
            return
    for region in range(s.n_regions):
        p.bytes_lacked[region] = NO_REGION
        if (_hosts(s, p, job) & s.up_regions) >> region & 1:
            p.bytes_lacked[region] = _bytes_to_move(s, p, job, region)
            p.busy_share[region] = _load(s, job, region)
    for makes_room in range(2):
        region = _next_region(s, p, NO_REGION)
        while region != NO_REGION:
            if not _is_doomed_in(s, job, region):
                if makes_room and _make_room(s, p, job, region, p.bytes_lacked[region]):
                    _move_homes(s, p, job, region)
                    return  # if not now, there is room once homes have moved
                if not makes_room and _move_homes(s, p, job, region):
                    return
            region = _next_region(s, p, region)


@kernel
def _bytes_to_move(s, p, job, region):
    size = 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        is_gone = p.copy_goes[table] >> region & 1
        size += s.table_size[table] if is_gone else missing_bytes(s, table, region)
    return size


@kernel
def _is_doomed_in(s, job, region):
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if s.table_home[table] != region and s.table_doomed[table] >> region & 1:
            return True
    return False


@kernel
def _move_homes(s, p, job, region):
    """Modify the plan in place: homes of all tables of a job move to a region; False: there is no room for them."""
    if p.bytes_lacked[region] > p.free_bytes[region]:
        return False
    p.free_bytes[region] -= p.bytes_lacked[region]
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        if s.table_home[table] != region:
            _decide(p, MOVE, table, region)
            p.home_moves_to[table] = region
    _mark(s, p.home_settled, job)
    return True


@kernel
def _make_room(s, p, job, region, needed):
    """Drop and move tables for enough room, now or once the moves are over; False, and no change, if impossible."""
    _keep(s, p, job, region)
    for other in range(s.n_regions):
        p.free_then[other] = p.free_bytes[other]
    begin, short = p.n_table_decisions, needed - p.free_bytes[region]
    for table in range(s.n_tables):
        short -= s.table_size[table] if s.table_home[table] == region and _moves(s, p, table) else 0
    for place in range(s.n_tables):
        table = p.tables_by_size[place]
        if short > 0 and _is_free(s, p, table, region) and _may_go(s, p, table, region):
            _decide(p, DROP, table, region)
            held = s.table_size[table] if s.table_whole[table] >> region & 1 else s.replica_size[table]
            p.free_then[region] += held
            short -= held
    for place in range(s.n_tables):
        table = p.tables_by_size[place]
        if short > 0 and _is_free(s, p, table, region) and _may_move(s, p, table, region):
            target = _refuge(s, p, table, region)
            sent = missing_bytes(s, table, target) if target != NO_REGION else 0
            if target != NO_REGION and sent <= p.free_then[target]:
                _decide(p, MOVE, table, target)
                p.free_then[target] -= sent
                short -= s.table_size[table]
    if short > 0:
        p.n_table_decisions = begin
        return False
    for other in range(s.n_regions):
        p.free_bytes[other] = p.free_then[other]
    for at in range(begin, p.n_table_decisions):
        table = p.table_decisions[at, 1]
        if p.table_decisions[at, 0] == DROP:
            p.copy_goes[table] |= 1 << region
        else:
            p.home_moves_to[table] = p.table_decisions[at, 2]
    return True


@kernel
def _keep(s, p, job, region):
    """Modify the plan in place: tables of the job stay, of those that wait for the region alone, and those in use."""
    for table in range(s.n_tables):
        p.table_kept[table] = 0
        transfer = s.table_transfer[table]
        while transfer >= 0:
            if s.transfer_from[transfer] == region or s.transfer_to[transfer] == region:
                p.table_kept[table] = 1
            transfer = s.transfer_after[transfer]
    _mark(s, p.table_kept, job)
    for place in range(s.running):
        if s.job_region[s.runner[place]] == region:
            _mark(s, p.table_kept, s.runner[place])
    other = next_pending(s, 0)
    while other >= 0:
        if _needs(s, p, other, region):
            _mark(s, p.table_kept, other)
        other = next_pending(s, other + 1)


@kernel
def _needs(s, p, job, region):
    """Whether a waiting job has its tables in a region, or coming, and can run nowhere else now."""
    hosts = _hosts(s, p, job)
    if hosts >> region & 1 == 0 or _lacks_any(s, p, job, region):
        return False
    others, gone = candidate_regions(s, job) & hosts & ~(1 << region), 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        gone |= p.copy_goes[s.read_table[use]]
    return others & ~gone == 0


@kernel
def _is_free(s, p, table, region):
    return s.table_copies[table] >> region & 1 == 1 and not p.table_kept[table]


@kernel
def _moves(s, p, table):
    return s.table_target[table] >= 0 or p.home_moves_to[table] != STAYS


@kernel
def _may_go(s, p, table, region):
    """Whether a region has a replica that can be deleted at once."""
    if region == s.table_home[table] or region == s.table_target[table] or region == p.home_moves_to[table]:
        return False
    others = s.table_copies[table] & ~s.table_doomed[table] & ~(1 << region) & ~p.copy_goes[table] & s.up_regions
    return others != 0 and (s.table_doomed[table] | p.copy_goes[table]) >> region & 1 == 0


@kernel
def _may_move(s, p, table, region):
    return s.table_home[table] == region and not p.home_settled[table] and not _moves(s, p, table)


@kernel
def _refuge(s, p, table, region):
    """Another region with the fewest missing bytes of a table, then with most room; NO_REGION: there is none."""
    best, least = NO_REGION, 0
    for other in range(s.n_regions):
        if other == region or s.up_regions >> other & 1 == 0 or p.copy_goes[table] >> other & 1:
            continue
        sent = missing_bytes(s, table, other)
        if best == NO_REGION or sent < least or (sent == least and p.free_then[other] > p.free_then[best]):
            best, least = other, sent
    return best
