"""A review of T tables in R regions, with J jobs, as arrays for kernels: readers, effects of decisions, legal ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...simulator.base.codes import DROP, HIGH_LEVELS, MOVE, REPLICATE
from ...simulator.checks.table_refusals import ALLOWED, copied_bytes, is_idle, refusal
from ...simulator.compiler.jit import entry, kernel
from ...simulator.regions.table_copies import projected_copies, projected_home
from ...simulator.table_placement.climb import survey
from ...simulator.table_placement.cost import move
from .columns import QUEUE

DONE, LEAVE, FIRST_REGION = 0, 1, 2  # candidates; from the third on three a region, in the order of KIND_CODES
STILL_COLUMNS = QUEUE.copies  # of a table's row in the observation: those before it, which no decision changes
KIND_CODES = (MOVE, REPLICATE, DROP)  # of a region's candidates, in this order
WHOLE = len(KIND_CODES)  # a decision that completes a copy is noted here, beside the kinds
NOTES = WHOLE + 1  # of a region


class Readers(NamedTuple):
    """Jobs that read tables, and where they could run."""

    first: Any  # int64 (T + 1,)
    user: Any  # int64 (uses,), jobs by table
    fits: Any  # bool (J, R), whether a region has its hardware
    hours: Any  # float64 (J,), GPU-hours that count as high priority
    lacks: Any  # int64 (J, R), tables that it lacks there
    able: Any  # bool (J,), whether some region has its tables and hardware


class ReviewArrays(NamedTuple):
    """Places of the tables at a review, the decisions made, and their effects."""

    order: Any  # int64 (T,), the tables by turn
    still: Any  # float64 (T, STILL_COLUMNS), the first features of each
    gpu_share: Any  # float64 (R,), GPUs, of all
    amount: Any  # float64 (5,), by the names below
    copies: Any  # bool (T, R), where the tables will lie
    decided: Any  # bool (T, R, NOTES), the decisions about each
    gains: Any  # float64 (T,), decrease of the cost by the best move of each alone
    load: Any  # float64 (2, R), demand over supply of GPU-hours, those of high priority and all
    legal: Any  # bool (R, kinds), legal decisions about the offered table
    size: Any  # int64 (R, kinds), bytes that they copy, 0 where illegal
    left: Any  # float64 (rows,), scratch: bytes left of copies on the way
    transfer: Any  # int64 (rows,), and their numbers


# Of `amount`: bytes, the cost at the beginning, GPU-hours, the maxima of Expression 1, KiB, and of Expression 6.
QUOTA, FIRST_COST, HIGH_HOURS, ALL_READ, ALL_MET = range(5)


@kernel
def runs(k, job, region):
    """Whether a region has a job's tables and hardware."""
    return k.lacks[job, region] == 0 and k.fits[job, region]


@kernel
def count_readers(k, table):
    """Number of readers of a table."""
    return k.first[table + 1] - k.first[table]


@entry
def write_lacks(k, copies):
    """Modify `k.lacks`, all zero: the number of tables of each job that each region lacks."""
    for table in range(copies.shape[0]):
        for region in range(copies.shape[1]):
            if not copies[table, region]:
                for use in range(k.first[table], k.first[table + 1]):
                    k.lacks[k.user[use], region] += 1


@kernel
def _follow(k, look, table, bits):
    for region in range(look.copies.shape[1]):
        change = int(look.copies[table, region]) - (bits >> region & 1)
        if change != 0:
            for use in range(k.first[table], k.first[table + 1]):
                k.lacks[k.user[use], region] += change


@entry
def follow_decision(states, row, look, known, waiting, l, table):
    """Modify the look and the ledger: a decision about a table has been carried out."""
    s = states[row]
    bits = projected_copies(s, table)
    _follow(known, look, table, bits)
    _follow(waiting, look, table, bits)
    for region in range(look.copies.shape[1]):
        look.copies[table, region] = bits >> region & 1
    move(l, table, projected_home(s, table))


@kernel
def _weigh_readers(k):
    for job in range(k.able.shape[0]):
        k.able[job] = False
        for region in range(k.lacks.shape[1]):
            if runs(k, job, region):
                k.able[job] = True


@entry
def weigh_tables(look, known, waiting, l):
    """Modify the look: effects of the places of tables."""
    _weigh_readers(known)
    _weigh_readers(waiting)
    survey(l, 0, look.gains.shape[0], look.gains)
    for region in range(l.supply.shape[0]):
        supply = high = demand = 0
        for gpu in range(l.supply.shape[1]):
            supply += l.supply[region, gpu]
            for level in range(l.demand.shape[2]):
                demand += l.demand[region, gpu, level]
                high += l.demand[region, gpu, level] if level < HIGH_LEVELS else 0
        look.load[0, region] = high / max(supply, 1)
        look.load[1, region] = demand / max(supply, 1)


@kernel
def is_whole(s, table, region, kind):
    """Whether a candidate asks for all partitions: of a replica that is there, or on the way."""
    return kind == REPLICATE and s.table_wanted[table] >> region & 1 == 1


@kernel
def may_decide(s, look, table, region, at, whole, spent):
    """Whether a decision of that kind can be carried out now, is new, and within the quota."""
    kind = KIND_CODES[at]
    if look.decided[table, region, WHOLE if whole else at] or is_idle(s, table, region, kind):
        return False
    if refusal(s, table, region, kind, whole) != ALLOWED:
        return False
    return spent + copied_bytes(s, table, region, kind, whole) <= look.amount[QUOTA]


@kernel
def list_legal(s, look, table, spent):
    """Modify `legal` and `size` of the look, for a table."""
    for region in range(look.legal.shape[0]):
        for at in range(look.legal.shape[1]):
            whole = is_whole(s, table, region, KIND_CODES[at])
            is_legal = may_decide(s, look, table, region, at, whole, spent)
            look.legal[region, at] = is_legal
            look.size[region, at] = copied_bytes(s, table, region, KIND_CODES[at], whole) if is_legal else 0


@entry
def write_legal(states, row, look, table, spent):
    """`list_legal`, for Python."""
    list_legal(states[row], look, table, spent)


@entry
def allows(states, row, look, table, region, at, whole, spent):
    """`may_decide`, for Python."""
    return may_decide(states[row], look, table, region, at, whole, spent)
