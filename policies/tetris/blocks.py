"""`milp` as a search of a day's moves: the optimum where that is not too much, else blocks of tables in turn.

The columns of the program grow with the power of the jobs (exact.py). Where they are too many, a climb with kicks comes
first; then blocks of tables that share readers are placed best in turn, all others staying where they are, until no
block gains: never worse than the climb, but no optimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.table_placement.placement import KIB, Move, Placement
from .exact import optimum
from .search import Bounds, moves_from, send_home, wander

EXACT_WAYS, EXACT_TABLES = 5000, 16  # of the whole: ways of seating the jobs of a GPU type, and tables
BLOCK_WAYS, BLOCK_TABLES = 1000, 8
MOST_ROUNDS = 3
KICKS = 300
SLIGHT = 1e-9


def best_homes(placement: Placement, quota_bytes: float) -> list[Move]:
    """Move the tables of a placement to the best homes that are found; one move a table, see `moves_from`.

    An instance that HiGHS cannot solve, as nothing within the quota satisfies Expressions 4 to 6 or as it has too many
    columns, is climbed as a larger one.
    """
    start, gains, bounds = placement.home, placement.best_moves(), Bounds(placement, quota_bytes)
    everything = np.ones(len(start), bool)
    is_small = len(start) <= EXACT_TABLES and _ways(placement, everything) <= EXACT_WAYS
    if not (is_small and _solve(placement, bounds, everything, EXACT_WAYS)):
        wander(placement, quota_bytes, KICKS, np.random.default_rng(0))
        for _ in range(MOST_ROUNDS):
            before = placement.cost
            for free in list(_blocks(placement)):
                _solve(placement, bounds, free, BLOCK_WAYS)
            if placement.cost > before - SLIGHT:
                break
    return moves_from(placement, start, gains)


def _solve(placement: Placement, bounds: Bounds, free: np.ndarray, ways: int) -> bool:
    """Modify the placement: the optimum of the free tables, where there is one that costs less.

    HiGHS satisfies constraints up to a tolerance; what breaks one by so little is not taken. Returns whether the
    placement has the best homes of these tables now.
    """
    before = placement.home
    try:
        home, cost = optimum(placement, KIB * bounds.quota_kib, free, ways)
    except InputError:
        return False
    if cost < placement.cost - SLIGHT:
        send_home(placement, home)
        if not bounds.hold():
            send_home(placement, before)
            return False
    return True


def _ways(placement: Placement, free: np.ndarray) -> float:
    """In how many ways the jobs of a GPU type can be seated, or the tables of each analytics job lie: the larger."""
    ledger, regions = placement.ledger, len(placement.warehouse.world)
    by_type = np.zeros(len(ledger.bases))
    lie = 0.0
    for job, reads in enumerate(ledger.reads.tolist()):
        loose = int(free[placement.tables_of(job)].sum())
        if not ledger.training[job]:
            lie += float(regions) ** loose if loose and reads > 1 else 0.0
        elif loose and ledger.gpu_type[job] >= 0:
            choices = regions + (reads > 1) if loose == reads else 2
            by_type[ledger.gpu_type[job]] += math.log(choices)
    return max(lie, math.exp(by_type.max(initial=0.0)))


def _blocks(placement: Placement) -> Iterator[np.ndarray]:
    """Sets of tables, bool (tables,), that are all tables together: those that share readers are put into one."""
    ledger = placement.ledger
    left = dict.fromkeys(np.argsort(-ledger.size, kind="stable").tolist())
    while left:
        free = np.zeros(len(ledger.size), bool)
        reach = [next(iter(left))]
        while reach and free.sum() < BLOCK_TABLES:
            table = reach.pop(0)
            if table not in left:
                continue
            free[table] = True
            if free.sum() > 1 and _ways(placement, free) > BLOCK_WAYS:
                free[table] = False
                continue
            del left[table]
            readers = ledger.user[ledger.first_user[table] : ledger.first_user[table + 1]].tolist()
            reach += [int(one) for job in readers for one in placement.tables_of(job)]
            if not reach:
                reach = [next(iter(left))] if left else []
        yield free
