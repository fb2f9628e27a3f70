"""What a review of the tables rests on, as fields beside those of MAST: a ledger, readers, what is noted.

T tables, R regions, J jobs. The ledger (simulator/table_placement/ledger.py) has the jobs that recur; those that the
slow path does not know now have no size and read nothing. Readers are its training jobs, and the queue. Most fields are
written when a review begins, or a run is restored: they follow from the run. Python writes what depends on the workload
alone, and which jobs are known (`History`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...policies.mast.mast_record import MAST
from ...simulator.base.codes import LEVELS
from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.record.field_axes import CALL, Field, shape_of
from ...simulator.record.region_fields import MOST_TYPES
from ...simulator.record.solver_records import SolverFields
from ...simulator.record.state import Capacity
from ...simulator.table_placement.ledger import sum_fields
from ...simulator.table_placement.placement import Objective, fixed_terms
from ...simulator.warehouse.demands import Demands
from ...simulator.warehouse.warehouse import NO_APP
from ..window import MAX_SLOTS

KNOWN, WAITING = 0, 1  # readers
GPU_S, CPU_S, TOTAL, MET_BY = range(4)  # of `sizes`
KINDS, NOTES = 3, 4  # candidates of a region; decisions that are noted: those, and one that completes a copy
MOST_SETS = 64  # of GPU types that jobs accept


def _ledger_fields(capacity: Capacity) -> list[Field]:
    tables, jobs, regions, uses = capacity.tables, capacity.jobs, capacity.regions, capacity.uses
    of_jobs = ("reads", "accepts", "job_level", "gpu_s", "cpu_s", "app", "total", "met_by")
    return [
        ("extent", "i8", (4,)),
        ("kib", "i8", (tables,)),
        ("first_user", "i8", (tables + 1,)),
        ("user", "i8", (uses,)),
        ("training", "i1", (jobs,)),
        *[(name, "i8", (jobs,)) for name in of_jobs],
        ("first_type", "i8", (MOST_SETS + 1,)),
        ("type", "i8", (MOST_SETS * MOST_TYPES,)),
        ("type_share", "f8", (MOST_SETS, regions, MOST_TYPES)),
        ("has_gpus", "i1", (MOST_SETS, regions)),
        ("supply", "i8", (regions, MOST_TYPES)),
        ("supply_share", "f8", (regions, MOST_TYPES)),
        ("storage", "i8", (regions,)),
        ("storage_share", "f8", (regions,)),
        ("app_cpu", "i8", (jobs, regions)),
        ("level_weight", "f8", (MOST_TYPES, LEVELS)),
        ("term_weight", "f8", (3,)),
        ("overload", "i1", (1,)),
        *sum_fields(tables, jobs, regions, MOST_TYPES, jobs),
    ]


def _fields(capacity: Capacity) -> list[Field]:
    tables, jobs, regions, uses = capacity.tables, capacity.jobs, capacity.regions, capacity.uses
    history: list[Field] = [
        ("known", "i1", (jobs,)),
        ("sizes", "i8", (4, jobs)),  # of all jobs, by the names above
        ("hours", "f8", (jobs,)),  # GPU-hours that count as high priority
        ("first_use", "i8", (tables + 1,)),
        ("use", "i8", (uses,)),  # jobs by table
    ]
    readers: list[Field] = [
        ("n_readers", "i8", (2,)),
        ("first_reader", "i8", (2, tables + 1)),
        ("reader", "i8", (2, uses)),  # jobs by table
        ("has_hardware", "i1", (2, jobs, regions)),  # whether a region has it
        ("lacks", "i4", (2, jobs, regions)),  # tables that a job lacks there
        ("able", "i1", (2, jobs)),  # whether some region has its tables and hardware
        ("high_hours_of", "f8", (jobs,)),  # `hours` of known ones, else 0
    ]
    look: list[Field] = [
        ("turns", "i8", (tables,)),  # the tables in the order in which they are offered
        ("gpu_share", "f8", (regions,)),  # GPUs, of all
        ("copies", "i1", (tables, regions)),  # where the tables will lie
        ("gains", "f8", (tables,)),  # decrease of the cost by the best move of each alone
        ("load", "f8", (2, regions)),  # demand over supply of GPU-hours, those of high priority and all
        ("copied", "i8", (regions, KINDS)),  # bytes that legal decisions about the offered table copy
        ("next_place", "i8", (tables,)),  # scratch
        ("left", "f8", (MAX_SLOTS,)),  # scratch: bytes left of copies on the way
        ("transfer", "i8", (MAX_SLOTS,)),  # and their numbers
    ]
    amounts = (
        "quota_bytes",
        "high_hours",
        "all_read",
        "all_met",
    )  # the last: most that Expressions 1 and 6 can come to
    kept: list[Field] = [
        ("decided", "i1", (tables, regions, NOTES)),  # the decisions about each table at this instant
        ("threshold", "i8", (1,)),  # of the ledger: the right side of Expression 6 when the review began
        ("known_until_s", "f8"),  # when the slow path knows other jobs
        *[(name, "f8") for name in amounts],
    ]
    passing = [*_ledger_fields(capacity), *history, *readers, *look]
    return [*MAST.of(capacity), *kept, *[(field[0], field[1], shape_of(field), CALL) for field in passing]]


REVIEW = SolverFields(_fields, MAST.used)


class History:
    """The jobs that the slow path may know during a run, as they are written into the record.

    Args:
        demands: of the workload. topology: that of the run.
        quota: share of the bytes of all tables that may be copied at one review.
    """

    def __init__(self, demands: Demands, topology: Topology, quota: float) -> None:
        recurs = demands.history.recurring
        self._known_s = demands.known_s[recurs] if len(demands.known_s) else np.array([[-np.inf, np.inf]])
        warehouse = replace(demands.warehouse(topology), jobs=demands.history.only(recurs))
        jobs, size_bytes, gpus = warehouse.jobs, warehouse.tables.size_bytes, warehouse.world.gpus.sum(axis=1)
        if len(jobs.type_sets.bits) > MOST_SETS:
            sets = f"the jobs of its history accept {len(jobs.type_sets.bits)} different sets of unit types"
            raise InputError(f"workload: {sets}; DataPlacement-v0 has room for {MOST_SETS}")
        found: dict[str, Any] = fixed_terms(warehouse, Objective(), jobs)
        apps, app = np.unique(jobs.app, return_inverse=True)  # no more than jobs
        quotas = found["app_cpu"] if len(found["app_cpu"]) else np.zeros((1, len(gpus)), np.int64)
        self._hours, self._training = jobs.gpu_hours * jobs.high, jobs.training
        own = {
            "app": np.where(jobs.app >= 0, app, NO_APP),
            "app_cpu": quotas[apps],
            "sizes": np.array([found.pop(name) for name in ("gpu_s", "cpu_s", "total", "met_by")]),
            "hours": np.asarray(self._hours, np.float64),
            "first_use": found.pop("first_user"),
            "use": found.pop("user"),
            "n_readers": np.array([len(jobs)]),
            "has_hardware": found["has_gpus"][found["accepts"]][None],
            "gpu_share": gpus / max(1, int(gpus.sum())),
            "turns": np.arange(len(size_bytes)),
            "home": warehouse.tables.home,
        }
        self._quota_bytes, self._terms = quota * float(size_bytes.sum()), found | own

    def write(self, m: np.void) -> None:
        """Modify `m`: the jobs, and the tables at their first homes."""
        m["quota_bytes"] = self._quota_bytes
        for name, value in self._terms.items():
            m[name][tuple(slice(length) for length in value.shape)] = value

    def tell(self, m: np.void, now_s: float) -> None:
        """Modify `m`: which of them are known at a time."""
        from_s, until_s = self._known_s.T
        known = (from_s <= now_s) & (now_s < until_s)
        changes_s = self._known_s[self._known_s > now_s]
        m["known"][: len(self._hours)] = known
        m["high_hours"] = max(float(self._hours[known & self._training].sum()), 1e-9)
        m["known_until_s"] = changes_s.min(initial=np.inf)
