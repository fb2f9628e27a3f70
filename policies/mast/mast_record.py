"""What MAST remembers of a run, as one record: units of regions, ranking, the queue of a pass, what it placed."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...simulator.record.field_axes import GPU, JOB, Axis, Field, dtype_of
from ...simulator.record.state import Capacity
from ...simulator.record.zeroed import zeroed
from .auction import queue_fields
from .compiled_passes import placed_fields
from .global_scheduler import ranking_fields
from .hardware import Hardware
from .region_units import unit_fields


@cache
def mast_fields(capacity: Capacity) -> tuple[Field, ...]:
    """All fields, beside a state of that capacity."""
    jobs, units = Axis(JOB, capacity.jobs), Axis(GPU, capacity.gpus)
    ranking = ranking_fields(jobs) + queue_fields(jobs) + placed_fields(jobs)
    return (*unit_fields(jobs, units, capacity.regions), *ranking)


@cache
def mast_dtype(capacity: Capacity) -> np.dtype:
    """The whole record."""
    return dtype_of(mast_fields(capacity))


def empty_records(hardware: Hardware, workloads: int) -> np.recarray:
    """An array of one zeroed record, as entries take it, for so many workloads."""
    units, clusters = int(hardware.machine_units.sum()), len(hardware.region)
    return zeroed(1, mast_dtype(Capacity.with_regions(workloads, units, hardware.regions, clusters, 0, 0)))


def by_item(solvers: np.recarray) -> np.void:
    """The only record of an array by item, `m["level"]`: np.record looks every field up in Python."""
    found: np.void = solvers.view(np.ndarray).view(np.dtype((np.void, solvers.dtype)))[0]
    return found
