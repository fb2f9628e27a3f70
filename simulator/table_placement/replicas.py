"""Further replicas of tables (paper mast, Sec. 3.5), each written if its region has room and the quota is not used up.

`purse` is int64 (1,), KiB that may still be copied; a copy that lies there already (`old`) costs nothing. `room` is
int64 (regions,), KiB; `copies` and `old` are bool (tables, regions).
"""

from ..compiler.jit import entry, kernel

NOWHERE = -1


@kernel
def _price(old, size, table, region):
    return 0 if old[table, region] else size[table]


@kernel
def _write(copies, old, room, purse, size, table, region):
    purse[0] -= _price(old, size, table, region)
    room[region] -= size[table]
    copies[table, region] = True


@kernel
def _completes(copies, old, old_whole, size, whole, table, region):
    """KiB of room and of traffic that it takes to have all of a table in a region, beyond what is planned there."""
    planned = copies[table, region]
    room = whole[table] - (size[table] if planned else 0)
    if old_whole[table, region]:
        return room, 0
    return room, whole[table] - (size[table] if planned or old[table, region] else 0)


@kernel
def _refuge(copies, old, old_whole, room, purse, size, whole, group, spare, gpu, table, home):
    """The region of a copy for disasters, outside the home's fault group if it can be: whole, planned, spare first."""
    best, most, rank = NOWHERE, 0, 0
    for region in range(group.shape[0]):
        if region == home:
            continue
        takes, price = _completes(copies, old, old_whole, size, whole, table, region)
        if room[region] < takes or purse[0] < price:
            continue
        worth = spare[region, gpu] if gpu >= 0 else room[region]
        ranks = 4 if group[region] != group[home] else 0
        ranks += 2 if old_whole[table, region] else 0
        ranks += 1 if copies[table, region] else 0
        if best == NOWHERE or ranks > rank or (ranks == rank and worth > most):
            best, most, rank = region, worth, ranks
    return best


@entry
def refuges(order, home, size, whole, copies, safe, old, old_whole, room, purse, group, spare, gpu_type, gpu_s):
    """Modify copies, safe, room, purse and spare: a whole copy for disasters of each table of `order`; returns misses.

    `size` and `whole`, int64 (tables,), KiB: of the partitions that jobs read, and of all. `safe`, bool (tables,
    regions), has these copies. `spare`, int64 (regions, types): free GPU-seconds, less the table's `gpu_s` of
    `gpu_type` (-1: none) where its copy goes. Paper: tetris, Sec. 3.5.
    """
    without = 0
    for place in range(order.shape[0]):
        table = order[place]
        gpu = gpu_type[table]
        region = _refuge(copies, old, old_whole, room, purse, size, whole, group, spare, gpu, table, home[table])
        if region == NOWHERE:
            without += 1
            continue
        takes, price = _completes(copies, old, old_whole, size, whole, table, region)
        room[region] -= takes
        purse[0] -= price
        copies[table, region] = True
        safe[table, region] = True
        if gpu >= 0:
            spare[region, gpu] -= gpu_s[table]
    return without


@kernel
def _lies(first, table, copies, job, region):
    for use in range(first[job], first[job + 1]):
        if not copies[table[use], region]:
            return False
    return True


@kernel
def _missing(first, table, copies, size, job, region):
    missing = 0
    for use in range(first[job], first[job + 1]):
        if not copies[table[use], region]:
            missing += size[table[use]]
    return missing


@entry
def runs_in(first, table, accepts, offered, copies, regions):
    """Modify `regions`, bool (jobs, regions): with all tables and GPUs; `accepts`, int64 (jobs,): rows of `offered`."""
    for job in range(accepts.shape[0]):
        for region in range(offered.shape[1]):
            regions[job, region] = offered[accepts[job], region] != 0 and _lies(first, table, copies, job, region)


@kernel
def _runs_somewhere(first, table, offered, copies, job):
    for region in range(offered.shape[0]):
        if offered[region] != 0 and _lies(first, table, copies, job, region):
            return True
    return False


@kernel
def _unpaid(first, table, copies, old, size, job, region):
    unpaid = 0
    for use in range(first[job], first[job + 1]):
        if not copies[table[use], region]:
            unpaid += _price(old, size, table[use], region)
    return unpaid


@kernel
def _host(first, table, offered, copies, old, size, room, purse, job):
    """Where a job's tables are brought together: the highest supply of its GPUs; without GPUs, the least to copy."""
    best, most = NOWHERE, 0
    for region in range(offered.shape[0]):
        if offered[region] == 0:
            continue
        unpaid = _unpaid(first, table, copies, old, size, job, region)
        if unpaid > purse[0] or _missing(first, table, copies, size, job, region) > room[region]:
            continue
        worth = offered[region] if offered[region] > 0 else -unpaid
        if best == NOWHERE or worth > most:
            best, most = region, worth
    return best


@entry
def gather(order, first, table, accepts, offered, copies, old, size, room, purse):
    """Modify copies, room and purse: collect the tables of each job of `order` that runs nowhere; returns the rest.

    `accepts` and `offered` are as of `runs_in`. Paper: tetris, Sec. 3.5.
    """
    stranded = 0
    for place in range(order.shape[0]):
        job = order[place]
        gpus = offered[accepts[job]]
        if _runs_somewhere(first, table, gpus, copies, job):
            continue
        region = _host(first, table, gpus, copies, old, size, room, purse, job)
        if region == NOWHERE:
            stranded += 1
            continue
        for use in range(first[job], first[job + 1]):
            if not copies[table[use], region]:
                _write(copies, old, room, purse, size, table[use], region)
    return stranded


@entry
def demand_by_type(first, table, accepts, share, part, home, demand):
    """Modify `demand`, int64 (tables, types): add `part` of each job, by the `share` of its set at the table's home."""
    for job in range(accepts.shape[0]):
        for use in range(first[job], first[job + 1]):
            for gpu in range(share.shape[2]):
                demand[table[use], gpu] += int(part[job] * share[accepts[job], home[table[use]], gpu])


@entry
def readers_by_type(first, table, accepts, accepted, readers):
    """Modify `readers`, int64 (types, tables): jobs by table and type; `accepted`, bool (sets, types), of a set."""
    for job in range(accepts.shape[0]):
        for gpu in range(accepted.shape[1]):
            if accepted[accepts[job], gpu]:
                for use in range(first[job], first[job + 1]):
                    readers[gpu, table[use]] += 1


@entry
def spread(order, region, quota, copies, old, size, room, purse):
    """Modify copies, room and purse: copy tables of `order` to a region up to its quota, KiB; returns KiB.

    Larger tables than the rest of the quota are passed over. Paper: tetris, Sec. 3.5.
    """
    used = 0
    for place in range(order.shape[0]):
        table = order[place]
        fits = size[table] <= min(room[region], quota - used)
        if copies[table, region] or not fits or purse[0] < _price(old, size, table, region):
            continue
        _write(copies, old, room, purse, size, table, region)
        used += size[table]
    return used
