"""What MAST remembers of a run, as one record: units of regions, ranking, the queue of a pass, placed ones, copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.record.field_axes import GPU, JOB, Axis, Field
from ...simulator.record.solver_records import SolverFields, SolverRecord
from ...simulator.record.state import Capacity
from .auction import queue_fields
from .compiled_passes import placed_fields
from .copies_plan import copies_fields
from .global_scheduler import ranking_fields
from .hardware import Hardware
from .region_units import PARTS, SLOT, unit_fields


def _fields(capacity: Capacity) -> list[Field]:
    jobs, units = Axis(JOB, capacity.jobs), Axis(GPU, capacity.gpus)
    regions = max(1, capacity.regions)  # beside a workload that asks nothing of regions, which is refused then
    fields = unit_fields(jobs, units, regions) + ranking_fields(jobs) + queue_fields(jobs) + placed_fields(jobs)
    return fields + copies_fields(jobs, max(1, capacity.tables), regions)


def _used(extent: Any) -> dict[str, int]:
    return {JOB: extent.jobs, GPU: extent.gpus, SLOT: PARTS * extent.jobs}


MAST = SolverFields(_fields, _used)


def empty_record(hardware: Hardware, workloads: int) -> tuple[np.recarray, np.void]:
    """An array of one zeroed record for so many workloads, as entries take it; and the record by item, `m["level"]`."""
    units, clusters = int(hardware.machine_units.sum()), len(hardware.region)
    capacity = Capacity.with_regions(workloads, units, hardware.regions, clusters, 0, 0)
    solvers = MAST.empty(capacity)
    return solvers, SolverRecord(MAST, solvers, capacity).record
