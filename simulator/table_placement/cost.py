"""Where jobs run, given the homes of tables, and what that costs (paper mast, Figure 4): summed up, kept up by moves.

R(job) of a training job is the home of all its tables, or NULL (-1); of an analytics job the region that is home to
most of its tables, the lowest number among equals.
"""

import math

from ..base.codes import LEVELS
from ..compiler.jit import entry, kernel
from .ledger import JOBS, REGIONS, TABLES, TYPES

NULL = -1
SECONDS = 3600.0
FAR = 1e-3  # a demand that shrinks below this share of itself is summed anew: differences would lose its digits


@kernel
def square(number):
    """A product, which rounds alike with and without JIT; a power need not."""
    return number * number


@kernel
def seat(l, job):
    """R(job), from the counts of its tables."""
    if l.training[job]:
        for region in range(l.extent[REGIONS]):
            if l.tables_at[job, region] == l.reads[job]:
                return region
        return NULL
    best = 0
    for region in range(1, l.extent[REGIONS]):
        if l.tables_at[job, region] > l.tables_at[job, best]:
            best = region
    return best


@kernel
def sigmoid(l, demand, supply):
    """Expression 8, in GPU hours as printed; 0.5, its value without overload, where overload does not count.

    Paper: tetris, Expression 8.
    """
    if not l.overload[0] or demand <= supply:
        return 0.5
    return 1.0 / (1.0 + math.exp(-(demand - supply) / SECONDS))


@kernel
def met_at(l, job, region):
    """What a job adds to Expression 6 in a region: something where it trains at home and finds its GPUs.

    Paper: tetris, Expression 6.
    """
    if region == NULL or l.met_by[job] == 0:
        return 0
    return l.met_by[job] if l.has_gpus[l.accepts[job], region] else 0


@kernel
def remote_of(l, job, region):
    """KiB that a job reads across regions: all of them where it has no region (Expression 1).

    Paper: tetris, Expression 1.
    """
    if region == NULL:
        return l.total[job]
    return l.total[job] - l.kib_at[job, region]


@kernel
def gpu_s_of(l, job, region, gpu):
    """Whole GPU-seconds that a job counts as of a type in a region."""
    return int(l.gpu_s[job] * l.type_share[l.accepts[job], region, gpu])


@kernel
def _stir(l, job):
    if l.region[job] != NULL:
        kinds = l.accepts[job]
        for place in range(l.first_type[kinds], l.first_type[kinds + 1]):
            gpu = l.type[place]
            l.stirred[gpu] |= l.type_share[kinds, l.region[job], gpu] > 0.0


@kernel
def book(l, job, region, sign):
    """Modify the sums in place: add (1) or take away (-1) a job at its region."""
    l.remote[0] += sign * remote_of(l, job, region)
    l.met[0] += sign * met_at(l, job, region)
    if region == NULL:
        return
    for place in range(l.first_type[l.accepts[job]], l.first_type[l.accepts[job] + 1]):
        gpu = l.type[place]
        part = gpu_s_of(l, job, region, gpu)
        l.demand[region, gpu, l.job_level[job]] += sign * part
        l.asked_s[gpu, l.job_level[job]] += sign * part
    if l.app[job] >= 0:
        l.cpu[l.app[job], region] += sign * l.cpu_s[job]


@kernel
def region_demand(l, region, gpu):
    """GPU-seconds of all levels."""
    total = 0
    for level in range(LEVELS):
        total += l.demand[region, gpu, level]
    return total


@kernel
def balance_of(squares, products, bases, asked):
    """Expressions 7 x 8 over the regions: sum of (demand / asked - share)^2 x pressed, multiplied out.

    Paper: tetris, Expressions 2, 7 and 8.
    """
    if asked <= 0:
        return bases
    total = float(asked)
    return (squares / total - 2.0 * products) / total + bases


@kernel
def sum_demands(l, gpu):
    """Modify the sums of Expression 2 in place: those of a GPU type, from its demands."""
    regions = l.extent[REGIONS]
    l.bases[gpu] = 0.0
    for region in range(regions):
        l.pressed[region, gpu] = sigmoid(l, region_demand(l, region, gpu), l.supply[region, gpu])
        l.bases[gpu] += square(l.supply_share[region, gpu]) * l.pressed[region, gpu]
    for level in range(LEVELS):
        squares = 0.0
        products = 0.0
        for region in range(regions):
            demand = float(l.demand[region, gpu, level])
            squares += demand * demand * l.pressed[region, gpu]
            products += demand * l.supply_share[region, gpu] * l.pressed[region, gpu]
        l.squares[gpu, level] = squares
        l.products[gpu, level] = products
        l.balance[gpu, level] = balance_of(squares, products, l.bases[gpu], l.asked_s[gpu, level])


@entry
def sum_up(l):
    """Modify the ledger's sums in place, from the homes alone; the sums must be zero."""
    for table in range(l.extent[TABLES]):
        home = l.home[table]
        l.stored[home] += l.kib[table]
        for use in range(l.first_user[table], l.first_user[table + 1]):
            l.tables_at[l.user[use], home] += 1
            l.kib_at[l.user[use], home] += l.kib[table]
    for job in range(l.extent[JOBS]):
        l.region[job] = seat(l, job)
        book(l, job, l.region[job], 1)
    for gpu in range(l.extent[TYPES]):
        sum_demands(l, gpu)


@kernel
def storage_balance(l, region, stored, total):
    """Expression 9 of a region that holds so many KiB of all. Paper: tetris, Expressions 3 and 9."""
    return square(float(stored) / float(total) - l.storage_share[region])


@entry
def total_cost(l):
    """Expressions 1 to 3, weighted, of the ledger's placement. Paper: tetris, Figure 4, Expressions 1 to 3."""
    cost = l.term_weight[0] * float(l.remote[0])
    for gpu in range(l.extent[TYPES]):
        for level in range(LEVELS):
            cost += l.term_weight[1] * l.level_weight[gpu, level] * l.balance[gpu, level]
    total = 0
    for region in range(l.extent[REGIONS]):
        total += l.stored[region]
    for region in range(l.extent[REGIONS]):
        cost += l.term_weight[2] * storage_balance(l, region, l.stored[region], total)
    return cost


@entry
def move(l, table, target):
    """Modify the ledger in place: give a table another home."""
    home = l.home[table]
    if home == target:
        return
    for gpu in range(l.extent[TYPES]):
        l.stirred[gpu] = 0
    l.home[table] = target
    l.stored[home] -= l.kib[table]
    l.stored[target] += l.kib[table]
    for use in range(l.first_user[table], l.first_user[table + 1]):
        job = l.user[use]
        book(l, job, l.region[job], -1)
        _stir(l, job)
        l.tables_at[job, home] -= 1
        l.tables_at[job, target] += 1
        l.kib_at[job, home] -= l.kib[table]
        l.kib_at[job, target] += l.kib[table]
        l.region[job] = seat(l, job)
        book(l, job, l.region[job], 1)
        _stir(l, job)
    for gpu in range(l.extent[TYPES]):
        if l.stirred[gpu]:
            sum_demands(l, gpu)
