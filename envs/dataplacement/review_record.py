"""What a review of the tables rests on, as fields of one record beside those of MAST: a ledger, readers, what is noted.

T tables, R regions, J jobs. The ledger (simulator/table_placement/ledger.py) has the jobs that the slow path knows, the
readers are its training jobs, and the queue. Most fields are written when a review begins, or a run is restored: they
follow from the run. Python writes those of known jobs, which change a few times in an episode (`Known`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...policies.mast.mast_record import MAST
from ...simulator.base.codes import LEVELS
from ...simulator.base.errors import InputError
from ...simulator.record.field_axes import CALL, Field
from ...simulator.record.region_fields import MOST_TYPES
from ...simulator.record.solver_records import SolverFields
from ...simulator.record.state import Capacity
from ...simulator.table_placement.ledger import sum_fields
from ...simulator.table_placement.placement import Objective, fixed_terms
from ...simulator.warehouse.demands import Demands
from ..window import MAX_SLOTS

KNOWN, WAITING = 0, 1  # readers
KINDS, NOTES = 3, 4  # candidates of a region; decisions that are noted: those, and one that completes a copy
MOST_SETS = 64  # of GPU types that jobs accept


def _fields(capacity: Capacity) -> list[Field]:
    tables, jobs, regions, uses = capacity.tables, capacity.jobs, capacity.regions, capacity.uses
    of_jobs = ("reads", "accepts", "job_level", "gpu_s", "cpu_s", "app", "total", "met_by")
    ledger: list[Field] = [
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
    readers: list[Field] = [
        ("n_readers", "i8", (2,)),
        ("first_reader", "i8", (2, tables + 1)),
        ("reader", "i8", (2, uses)),  # jobs by table
        ("has_hardware", "i1", (2, jobs, regions)),  # whether a region has it
        ("lacks", "i4", (2, jobs, regions)),  # tables that a job lacks there
        ("able", "i1", (2, jobs)),  # whether some region has its tables and hardware
        ("high_hours_of", "f8", (jobs,)),  # of known ones, GPU-hours that count as high priority
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
    kept: list[Field] = [
        ("decided", "i1", (tables, regions, NOTES)),  # the decisions about each table at this instant
        ("threshold", "i8", (1,)),  # of the ledger: the right side of Expression 6 when the review began
        ("known_until_s", "f8"),  # when the slow path knows other jobs
        *[
            (name, "f8") for name in ("quota_bytes", "high_hours", "all_read", "all_met")
        ],  # the last: of Expressions 1, 6
    ]
    passing: list[Field] = [(name, kind, shape, CALL) for name, kind, shape in [*ledger, *readers, *look]]  # type: ignore[misc]
    return [*MAST.of(capacity), *passing, *kept]


REVIEW = SolverFields(_fields, MAST.used)


class Known:
    """The jobs that the slow path knows during a run, as they are written into the record.

    Args:
        demands: of the workload. topology: that of the run.
        quota: share of the bytes of all tables that may be copied at one review.
    """

    def __init__(self, demands: Demands, topology: Any, quota: float) -> None:
        self._demands, self._topology, self._quota = demands, topology, quota
        self._changes_s = np.unique(demands.known_s)
        self._found: dict[int, dict[str, Any]] = {}

    def write(self, m: np.void, now_s: float) -> None:
        """Modify `m`: the jobs that are known at a time."""
        number = int(np.searchsorted(self._changes_s, now_s, "right"))
        if number not in self._found:
            self._found[number] = self._terms(now_s)
            until_s = self._changes_s[number] if number < len(self._changes_s) else np.inf
            self._found[number]["known_until_s"] = float(until_s)
        for name, value in self._found[number].items():
            if isinstance(value, float):
                m[name] = value
            else:
                m[name][tuple(slice(length) for length in value.shape)] = value

    def _terms(self, now_s: float) -> dict[str, Any]:
        warehouse = self._demands.warehouse(self._topology, now_s=now_s)
        known, size_bytes = warehouse.known, warehouse.tables.size_bytes
        if len(known.type_sets.bits) > MOST_SETS:
            sets = f"the jobs of its history accept {len(known.type_sets.bits)} different sets of unit types"
            raise InputError(f"workload: {sets}; DataPlacement-v0 has room for {MOST_SETS}")
        found: dict[str, Any] = fixed_terms(warehouse, Objective(), known)
        apps, app = np.unique(known.app, return_inverse=True)  # no more than jobs
        found["app"] = np.where(known.app >= 0, app, -1)
        found["app_cpu"] = (
            found["app_cpu"][apps] if len(found["app_cpu"]) else np.zeros((len(apps), len(warehouse.world)))
        )
        jobs = known.only(known.training)
        uses, hours = np.bincount(jobs.table, minlength=len(size_bytes)), jobs.gpu_hours * jobs.high
        read = (np.diff(found["first_user"]) * size_bytes).astype(np.float64)
        gpus = warehouse.world.gpus.sum(axis=1)
        return found | {
            "n_readers": np.array([len(jobs)]),
            "first_reader": np.concatenate([[0], np.cumsum(uses)])[None],
            "reader": jobs.owner[np.argsort(jobs.table, kind="stable")][None],
            "has_hardware": (warehouse.offered(jobs.type_sets) != 0)[jobs.type_sets.row][None],
            "high_hours_of": np.asarray(hours, np.float64),
            "turns": np.argsort(-read, kind="stable"),
            "gpu_share": gpus / max(1, int(gpus.sum())),
            "quota_bytes": self._quota * float(size_bytes.sum()),
            "high_hours": max(float(hours.sum()), 1e-9),
            "all_read": float(max(1, int(found["total"].sum()))),
            "all_met": float(max(1, int(found["met_by"].sum()))),
        }
