"""The ledger of a placement: the slow path's input and the sums that a move changes, as one tuple of arrays.

Demands are whole GPU-seconds and CPU-seconds a day, sizes whole KiB, so that sums are exact in any order. R regions, G
GPU types, K priority levels, T tables, J jobs, A applications.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..base.codes import LEVELS
from ..record.field_axes import Field

TABLES, JOBS, REGIONS, TYPES = range(4)  # of `extent`


class Ledger(NamedTuple):
    """Arrays; the first group never changes, the second follows the placement, the third is scratch."""

    extent: Any  # int64 (4,), how many tables, jobs, regions and types there are: TABLES and the names after it
    kib: Any  # int64 (T,), of each table
    missing: Any  # int64 (T, R), KiB that a move of the table to a region copies: what does not lie there yet
    first_user: Any  # int64 (T + 1,)
    user: Any  # int64 (uses,), jobs by table
    reads: Any  # int64 (J,), tables of each
    training: Any  # int8 (J,), 1 or 0
    accepts: Any  # int64 (J,), the set of types that it accepts: a row of `type_share` and of `has_gpus`
    first_type: Any  # int64 (sets + 1,)
    type: Any  # int64, the types of each set
    type_share: Any  # float64 (sets, R, G), as GPUs of which types a job counts in a region
    has_gpus: Any  # int8 (sets, R), whether a region has GPUs of a set; of the empty one it has
    job_level: Any  # int64 (J,)
    gpu_s: Any  # int64 (J,)
    cpu_s: Any  # int64 (J,)
    app: Any  # int64 (J,), -1: none
    total: Any  # int64 (J,), KiB of all its tables
    met_by: Any  # int64 (J,), what the job adds to the left side of Expression 6 where it trains at home
    supply: Any  # int64 (R, G), GPU-seconds a day
    supply_share: Any  # float64 (R, G), of the type's total
    storage: Any  # int64 (R,), KiB
    storage_share: Any  # float64 (R,)
    app_cpu: Any  # int64 (A, R)
    level_weight: Any  # float64 (G, K), w_Pk; 0 where no job has this type and level
    term_weight: Any  # float64 (3,): w_1 over the bytes that all jobs read, w_2, w_3 (0 in V1)
    overload: Any  # int8 (1,): whether Expression 8 counts; else it is its constant without overload
    threshold: Any  # int64 (1,), the right side of Expression 6

    home: Any  # int64 (T,)
    region: Any  # int64 (J,), R(job), -1: NULL
    tables_at: Any  # int32 (J, R), its tables in each region
    kib_at: Any  # int64 (J, R), KiB of them
    demand: Any  # int64 (R, G, K)
    pressed: Any  # float64 (R, G), Expression 8
    squares: Any  # float64 (G, K), sum over regions of demand^2 x Expression 8
    products: Any  # float64 (G, K), of demand x supply share x Expression 8
    bases: Any  # float64 (G,), of supply share^2 x Expression 8
    asked_s: Any  # int64 (G, K), demand of all regions
    balance: Any  # float64 (G, K), Expressions 7 and 8 summed over the regions
    stored: Any  # int64 (R,), KiB
    cpu: Any  # int64 (A, R)
    met: Any  # int64 (1,), the left side of Expression 6
    remote: Any  # int64 (1,), KiB read across regions

    lost: Any  # int64 (G, K), demand that leaves a table's home if the table does
    gained: Any  # int64 (R, G, K), demand that comes with it
    remote_change: Any  # int64 (R,)
    met_change: Any  # int64 (R,)
    touched: Any  # int8 (G,), types of the jobs of the table that was weighed last
    stirred: Any  # int8 (G,), types of the jobs of the table that moves
    cpu_change: Any  # int64 (A, R), 0 between calls
    gain: Any  # float64 (1,), of the last table that was looked at


def sum_fields(tables: int, jobs: int, regions: int, types: int, apps: int) -> list[Field]:
    """The second and third group, for so many."""
    by_level, there = (types, LEVELS), (regions, types, LEVELS)
    of_jobs: list[Field] = [
        ("region", "i8", (jobs,)),
        ("tables_at", "i4", (jobs, regions)),
        ("kib_at", "i8", (jobs, regions)),
    ]
    return [
        ("home", "i8", (tables,)),
        *of_jobs,
        *[(name, "i8", there) for name in ("demand", "gained")],
        *[(name, "i8", by_level) for name in ("asked_s", "lost")],
        *[(name, "f8", by_level) for name in ("squares", "products", "balance")],
        *[(name, "i8", (regions,)) for name in ("stored", "remote_change", "met_change")],
        *[(name, "i8", (apps, regions)) for name in ("cpu", "cpu_change")],
        *[(name, "i1", (types,)) for name in ("touched", "stirred")],
        ("pressed", "f8", (regions, types)),
        ("bases", "f8", (types,)),
        *[(name, "i8", (1,)) for name in ("met", "remote")],
        ("gain", "f8", (1,)),
    ]
