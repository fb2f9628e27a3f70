"""The ledger of a placement: the slow path's input and the sums that a move changes, as one tuple of arrays.

Demands are whole GPU-seconds and CPU-seconds a day, sizes whole KiB, so that sums are exact in any order. R regions, G
GPU types, K priority levels, T tables, J jobs, A applications.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Ledger(NamedTuple):
    """Arrays; the first group never changes, the second follows the placement, the third is scratch."""

    size: Any  # int64 (T,), KiB
    missing: Any  # int64 (T, R), KiB that a move of the table to a region copies: what does not lie there yet
    first_user: Any  # int64 (T + 1,)
    user: Any  # int64 (uses,), jobs by table
    reads: Any  # int64 (J,), tables of each
    training: Any  # bool (J,)
    accepts: Any  # int64 (J,), the set of types that it accepts: a row of `type_share` and of `has_gpus`
    first_type: Any  # int64 (sets + 1,)
    type: Any  # int64, the types of each set
    type_share: Any  # float64 (sets, R, G), as GPUs of which types a job counts in a region
    has_gpus: Any  # bool (sets, R), whether a region has GPUs of a set; of the empty one it has
    level: Any  # int64 (J,)
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
    weight: Any  # float64 (3,): w_1 over the bytes that all jobs read, w_2, w_3 (0 in V1)
    overload: Any  # bool (1,): whether Expression 8 counts; else it is its constant without overload
    threshold: Any  # int64 (1,), the right side of Expression 6

    home: Any  # int64 (T,)
    region: Any  # int64 (J,), R(job), -1: NULL
    count: Any  # int32 (J, R), its tables in each region
    held: Any  # int64 (J, R), KiB of them
    demand: Any  # int64 (R, G, K)
    pressed: Any  # float64 (R, G), Expression 8
    squares: Any  # float64 (G, K), sum over regions of demand^2 x Expression 8
    products: Any  # float64 (G, K), of demand x supply share x Expression 8
    bases: Any  # float64 (G,), of supply share^2 x Expression 8
    asked: Any  # int64 (G, K), demand of all regions
    balance: Any  # float64 (G, K), Expressions 7 and 8 summed over the regions
    stored: Any  # int64 (R,), KiB
    cpu: Any  # int64 (A, R)
    met: Any  # int64 (1,), the left side of Expression 6
    remote: Any  # int64 (1,), KiB read across regions

    lost: Any  # int64 (G, K), demand that leaves a table's home if the table does
    gained: Any  # int64 (R, G, K), demand that comes with it
    remote_change: Any  # int64 (R,)
    met_change: Any  # int64 (R,)
    touched: Any  # bool (G,), types of the jobs of the table that was weighed last
    stirred: Any  # bool (G,), types of the jobs of the table that moves
    cpu_change: Any  # int64 (A, R), 0 between calls
    gain: Any  # float64 (1,), of the last table that was looked at


def fresh_sums(tables: int, jobs: int, regions: int, types: int, levels: int, apps: int) -> dict[str, np.ndarray]:
    """The second and third group of arrays, all zero, by name."""
    whole = {
        "home": (tables,),
        "region": (jobs,),
        "held": (jobs, regions),
        "demand": (regions, types, levels),
        "asked": (types, levels),
        "stored": (regions,),
        "cpu": (apps, regions),
        "met": (1,),
        "remote": (1,),
        "lost": (types, levels),
        "gained": (regions, types, levels),
        "remote_change": (regions,),
        "met_change": (regions,),
        "cpu_change": (apps, regions),
    }
    real = {
        "pressed": (regions, types),
        "squares": (types, levels),
        "products": (types, levels),
        "bases": (types,),
        "balance": (types, levels),
        "gain": (1,),
    }
    arrays = {name: np.zeros(shape, np.int64) for name, shape in whole.items()}
    arrays |= {name: np.zeros(shape, np.float64) for name, shape in real.items()}
    arrays["count"] = np.zeros((jobs, regions), np.int32)
    arrays |= {name: np.zeros(types, np.bool_) for name in ("touched", "stirred")}
    return arrays
