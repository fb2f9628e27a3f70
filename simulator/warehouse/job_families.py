"""Families of workloads: those that read the same tables and need the same hardware, one of them recurring.

Paper mast, Sec. 3.1: "multiple one-time experimental jobs are often submitted to fine-tune a parameter of a production
recurring job", they "share input tables and require the same types of hardware". Fitted: how many workloads of a day
read a table (Figure 3), 30 % of which recur. Assumed: a family has a geometric number of workloads, 1 / 0.3 in the
mean, and reads a geometric number of tables of one team.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import mast_statistics
from .mast_data import TEAM_TABLES, each_once

MOST_SHARED = 1e5
LOOK_BACK = 3  # tables of a family before the last, among which it is looked for again


@dataclass(frozen=True)
class Families:
    """Who reads what in a day.

    Attributes:
        team: int64 (tables,), the team of each table, ascending.
        owner: int64 (families,), the team of each family.
        size: int64 (families,), its workloads, >= 1.
        recurring: bool (families,): its first workload recurs; else all come for the first time.
        first: int64 (families + 1,); table: int64 (uses,), what each reads, each table once.
    """

    team: np.ndarray
    owner: np.ndarray
    size: np.ndarray
    recurring: np.ndarray
    first: np.ndarray
    table: np.ndarray

    def __len__(self) -> int:
        return len(self.size)


def draw_families(rng: np.random.Generator, tables: int, least_teams: int, reads: float) -> Families:
    """Families over `tables` tables of about 25 a team, `least_teams` teams at least; `reads`: tables of one, mean."""
    team = np.sort(rng.integers(0, max(tables // TEAM_TABLES, least_teams), tables))
    shared = mast_statistics.through(mast_statistics.SHARING, rng.standard_normal(tables))
    readers = np.rint(np.clip(shared, 1.0, MOST_SHARED)).astype(np.int64)
    # Each reader of a table begins another family by chance; so their sizes are geometric and add up to the readers.
    row = np.repeat(np.arange(tables), readers)
    begins = rng.random(len(row)) < mast_statistics.RECURRING_SHARE
    begins[np.cumsum(readers) - readers] = True
    stub, size = row[begins], np.diff([*np.flatnonzero(begins), len(row)])
    # Neighbours become one family that reads several tables: of a team, and of about the same size.
    order = np.lexsort((rng.random(len(stub)), -size, team[stub]))
    stub, size = stub[order], size[order]
    cut = rng.random(len(stub)) < 1.0 / reads
    cut[1:] |= team[stub[1:]] != team[stub[:-1]]
    for back in range(1, min(LOOK_BACK, len(stub) - 1) + 1):
        cut[back:] |= stub[back:] == stub[:-back]
    cut[0] = True
    starts = np.flatnonzero(cut)
    first = np.append(starts, len(stub))
    mean = np.add.reduceat(size, starts) / np.diff(first)
    sizes = np.maximum(np.rint(mean), 1).astype(np.int64)
    owner = team[stub[starts]]
    first, table = each_once(first, stub, tables)
    recurring = rng.permutation(len(sizes)) < round(mast_statistics.RECURRING_SHARE * sizes.sum())
    return Families(team, owner, sizes, recurring, first, table)
