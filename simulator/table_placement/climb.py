"""What moving a table would change, found without moving it, and Tetris's two passes (paper mast, Sec. 3.4)."""

from ..base.codes import LEVELS
from ..compiler.jit import entry, kernel
from .cost import (
    FAR,
    NULL,
    balance_of,
    gpu_s_of,
    met_at,
    move,
    region_demand,
    remote_of,
    sigmoid,
    square,
    storage_balance,
)
from .ledger import REGIONS, TYPES

SLIGHT = 1e-12  # a gain below is none


@kernel
def _landing(l, job, home, target):
    """R(job) after one of its tables moves from home to target, another region."""
    if l.training[job]:
        return target if l.tables_at[job, target] == l.reads[job] - 1 else NULL
    best, most = 0, -1
    for region in range(l.extent[REGIONS]):
        tables = int(l.tables_at[job, region])
        if region == home:
            tables -= 1
        if region == target:
            tables += 1
        if tables > most:
            best, most = region, tables
    return best


@kernel
def _weigh_training(l, job):
    """Modify the scratch in place: a training job's changes where it could train at home; returns those elsewhere."""
    now = l.region[job]
    was = remote_of(l, job, now)
    met = met_at(l, job, now)
    begin, end = l.first_type[l.accepts[job]], l.first_type[l.accepts[job] + 1]
    level = l.job_level[job]
    if now != NULL:
        for place in range(begin, end):
            part = gpu_s_of(l, job, now, l.type[place])
            if part > 0:
                l.touched[l.type[place]] = 1
                l.lost[l.type[place], level] += part
    if now == NULL or l.reads[job] == 1:  # else no region has all of its tables but one
        for target in range(l.extent[REGIONS]):
            if l.tables_at[job, target] == l.reads[job] - 1:
                l.remote_change[target] -= l.total[job]
                l.met_change[target] += met_at(l, job, target)
                for place in range(begin, end):
                    part = gpu_s_of(l, job, target, l.type[place])
                    if part > 0:
                        l.touched[l.type[place]] = 1
                        l.gained[target, l.type[place], level] += part
    return l.total[job] - was, -met


@kernel
def _weigh_analytics(l, job, home, size):
    """Modify the scratch in place, likewise; the region of most tables without the one that moves is found once."""
    was = remote_of(l, job, l.region[job])
    best, most = 0, -1
    for region in range(l.extent[REGIONS]):
        tables = int(l.tables_at[job, region])
        if region == home:
            tables -= 1
        if tables > most:
            best, most = region, tables
    for target in range(l.extent[REGIONS]):
        if target == home:
            continue
        more = int(l.tables_at[job, target]) + 1
        if more > most or (more == most and target < best):
            here = l.kib_at[job, target] + size
        else:
            here = l.kib_at[job, best] - (size if best == home else 0)
        l.remote_change[target] += l.total[job] - here - was


@kernel
def weigh(l, table):
    """Modify the scratch in place: what leaves and what comes, for every region that the table could move to."""
    home, size = l.home[table], l.kib[table]
    remote = 0
    met = 0
    for region in range(l.extent[REGIONS]):
        l.remote_change[region] = 0
        l.met_change[region] = 0
    for gpu in range(l.extent[TYPES]):
        if l.touched[gpu]:
            for level in range(LEVELS):
                l.lost[gpu, level] = 0
                for region in range(l.extent[REGIONS]):
                    l.gained[region, gpu, level] = 0
            l.touched[gpu] = 0
    for use in range(l.first_user[table], l.first_user[table + 1]):
        job = l.user[use]
        if l.training[job]:
            more_remote, more_met = _weigh_training(l, job)
            remote += more_remote
            met += more_met
        else:
            _weigh_analytics(l, job, home, size)
    for region in range(l.extent[REGIONS]):
        l.remote_change[region] += remote
        l.met_change[region] += met


@kernel
def _summed_anew(l, home, target, gpu, level, pressed_home, pressed_target, asked):
    """Expressions 7 x 8 over the regions after the move, region by region."""
    total = 0.0
    for region in range(l.extent[REGIONS]):
        demand = l.demand[region, gpu, level]
        pressed = l.pressed[region, gpu]
        if region == home:
            demand -= l.lost[gpu, level]
            pressed = pressed_home
        if region == target:
            demand += l.gained[target, gpu, level]
            pressed = pressed_target
        share = float(demand) / float(asked) if asked > 0 else 0.0
        total += square(share - l.supply_share[region, gpu]) * pressed
    return total


@kernel
def _balance_change(l, home, target, gpu):
    """Change of Expression 2 for a GPU type, weighted by levels."""
    leaves = 0
    comes = 0
    for level in range(LEVELS):
        leaves += l.lost[gpu, level]
        comes += l.gained[target, gpu, level]
    if leaves == 0 and comes == 0:
        return 0.0
    old_home, old_target = l.pressed[home, gpu], l.pressed[target, gpu]
    new_home = sigmoid(l, region_demand(l, home, gpu) - leaves, l.supply[home, gpu])
    new_target = sigmoid(l, region_demand(l, target, gpu) + comes, l.supply[target, gpu])
    share_home, share_target = l.supply_share[home, gpu], l.supply_share[target, gpu]
    bases = l.bases[gpu] + (new_home - old_home) * square(share_home) + (new_target - old_target) * square(share_target)
    change = 0.0
    for level in range(LEVELS):
        if l.level_weight[gpu, level] == 0.0:
            continue
        asked = l.asked_s[gpu, level] - l.lost[gpu, level] + l.gained[target, gpu, level]
        if asked < FAR * l.asked_s[gpu, level]:
            after = _summed_anew(l, home, target, gpu, level, new_home, new_target, asked)
        else:
            at_home, at_target = float(l.demand[home, gpu, level]), float(l.demand[target, gpu, level])
            then_home = at_home - float(l.lost[gpu, level])
            then_target = at_target + float(l.gained[target, gpu, level])
            squares = l.squares[gpu, level] + (new_home * square(then_home) - old_home * square(at_home))
            squares += new_target * square(then_target) - old_target * square(at_target)
            products = l.products[gpu, level] + share_home * (new_home * then_home - old_home * at_home)
            products += share_target * (new_target * then_target - old_target * at_target)
            after = balance_of(squares, products, bases, asked)
        change += l.level_weight[gpu, level] * (after - l.balance[gpu, level])
    return change


@kernel
def change_to(l, table, target, total):
    """Change of the cost if a table that was weighed moves to another region; `total`: KiB of all tables."""
    home, size = l.home[table], l.kib[table]
    change = l.term_weight[0] * float(l.remote_change[target])
    balance = 0.0
    for gpu in range(l.extent[TYPES]):
        if l.touched[gpu]:
            balance += _balance_change(l, home, target, gpu)
    change += l.term_weight[1] * balance
    if l.term_weight[2] != 0.0:
        storage = storage_balance(l, home, l.stored[home] - size, total)
        storage -= storage_balance(l, home, l.stored[home], total)
        storage += storage_balance(l, target, l.stored[target] + size, total)
        storage -= storage_balance(l, target, l.stored[target], total)
        change += l.term_weight[2] * storage
    return change


@kernel
def _note_cpu(l, table, target):
    for use in range(l.first_user[table], l.first_user[table + 1]):
        job = l.user[use]
        if l.app[job] >= 0:
            before, after = l.region[job], _landing(l, job, l.home[table], target)
            if before != NULL:
                l.cpu_change[l.app[job], before] -= l.cpu_s[job]
            if after != NULL:
                l.cpu_change[l.app[job], after] += l.cpu_s[job]


@kernel
def fits_cpu(l, table, target):
    """Expression 5 after the move: no application is above its quota where it computes more than before.

    Paper: tetris, Expression 5.
    """
    _note_cpu(l, table, target)
    fits = True
    for use in range(l.first_user[table], l.first_user[table + 1]):
        app = l.app[l.user[use]]
        if app >= 0:
            for region in range(l.extent[REGIONS]):
                more = l.cpu_change[app, region]
                if more > 0 and l.cpu[app, region] + more > l.app_cpu[app, region]:
                    fits = False
                l.cpu_change[app, region] = 0
    return fits


@kernel
def fits(l, table, target):
    """Expressions 4 to 6 after the move of a table that was weighed; one that is broken before may not get worse.

    Paper: tetris, Expressions 4 to 6.
    """
    if l.stored[target] + l.kib[table] > l.storage[target]:
        return False
    if l.met[0] + l.met_change[target] < min(l.threshold[0], l.met[0]):
        return False
    return fits_cpu(l, table, target)


@kernel
def total_size(l):
    """KiB of all tables."""
    total = 0
    for region in range(l.extent[REGIONS]):
        total += l.stored[region]
    return total


@kernel
def best_home(l, table, total):
    """The region with the least cost where the table may be, the lowest number among equals; `l.gain` has the gain.

    Paper: tetris, Sec. 3.4.
    """
    home = l.home[table]
    best, least = home, -SLIGHT
    weigh(l, table)
    for target in range(l.extent[REGIONS]):
        if target != home:
            change = change_to(l, table, target, total)
            if change < least and fits(l, table, target):
                best, least = target, change
    l.gain[0] = -least if best != home else 0.0
    return best


@entry
def change_of(l, table, target):
    """What moving a table would add to the cost; 0 where it is."""
    if l.home[table] == target:
        return 0.0
    weigh(l, table)
    return change_to(l, table, target, total_size(l))


@entry
def allows(l, table, target):
    """Whether a table may move: whether Expressions 4 to 6 hold then, or are no worse than now."""
    if l.home[table] == target:
        return True
    weigh(l, table)
    return fits(l, table, target)


@entry
def survey(l, begin, end, gains):
    """Modify `gains` in place: the gain of the best move of tables begin to end - 1, 0 where they should stay.

    Paper: tetris, Sec. 3.4.
    """
    total = total_size(l)
    for table in range(begin, end):
        best_home(l, table, total)
        gains[table] = l.gain[0]


@entry
def follow(l, queue, quota, moved, source, target):
    """Modify the ledger, and the log of moves: make the moves of the queue within the quota; returns their number.

    The best region is found again before each move. A table that no longer gains, or copies more than the rest of the
    quota, KiB, is left. Returns the number of moves. Paper: tetris, Sec. 3.4.
    """
    total = total_size(l)
    moves = 0
    for place in range(queue.shape[0]):
        table = queue[place]
        home = l.home[table]
        best = best_home(l, table, total)
        copied = l.missing[table, best] - l.missing[table, home]
        if best == home or copied > quota:
            continue
        move(l, table, best)
        quota -= copied
        moved[moves] = table
        source[moves] = home
        target[moves] = best
        moves += 1
    return moves
