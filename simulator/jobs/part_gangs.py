"""The gangs of a workload in regions, as networks see them: each part with GPUs is one.

The parts of a row are MAST's jobs, a trainer and its evaluators, say, with the machines that prepare their data (Sec. 2
and 5.1). A network slows the exchange among the GPUs of one part; a row iterates as its slowest part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..warehouse.demands import Demands


@dataclass(frozen=True, eq=False)
class PartGangs:
    """What a network asks of a workload (`network_model.Jobs`), a row a gang, by job and part.

    A job without GPUs has one row, of one unit, which nothing slows down.

    Attributes:
        job, part: int64 (rows,), the job and the number of its part.
        job_id, model, model_code, model_names: as of `Workload`, by row.
    """

    name: str  # of the workload
    job: np.ndarray
    part: np.ndarray
    gpus: np.ndarray  # int64 (rows,), >= 1
    accepts: np.ndarray  # int64 (rows,), set of the types of `gpu_types` that it accepts; 0 without GPUs
    gpu_types: tuple[str, ...]
    batch_size: np.ndarray  # int64 (rows,), samples of an iteration over its GPUs: those of the job by GPUs; 0: unknown
    job_id: np.ndarray
    model: np.ndarray
    model_code: np.ndarray
    model_names: tuple[str, ...]

    @classmethod
    def of(cls, workload: Any) -> PartGangs:
        """The gangs of a `Workload` with demands."""
        demands: Demands = workload.geo
        is_gang = (demands.part_units > 0) & (demands.part_type != len(demands.gpu_types) - 1)
        shown = is_gang.copy()
        shown[:, 0] |= ~is_gang.any(axis=1)
        job, part = np.nonzero(shown)
        has_gpus = is_gang[job, part]
        gpus = np.where(has_gpus, demands.part_units[job, part], 1)
        batch = -(-workload.batch_size[job] // np.maximum(demands.asked[job, 0], 1)) * gpus
        return cls(
            name=workload.name,
            job=job,
            part=part,
            gpus=gpus,
            accepts=np.where(has_gpus, demands.accepts[job, part], 0),
            gpu_types=demands.gpu_types,
            batch_size=batch,
            job_id=workload.job_id[job],
            model=workload.model[job],
            model_code=workload.model_code[job],
            model_names=workload.model_names,
        )

    def __len__(self) -> int:
        return len(self.job)

    @cached_property
    def by_types(self) -> list[tuple[frozenset[str], np.ndarray]]:
        """The sets of types that gangs accept, each with the rows, int64; those without GPUs are in none."""
        return [
            (
                frozenset(name for code, name in enumerate(self.gpu_types) if accepted >> code & 1),
                np.flatnonzero(self.accepts == accepted),
            )
            for accepted in np.unique(self.accepts[self.accepts > 0]).tolist()
        ]

    @cached_property
    def first(self) -> np.ndarray:
        """The first row of each job, int64 (jobs,)."""
        return np.flatnonzero(np.diff(self.job, prepend=-1))

    def take(self, rows: np.ndarray) -> PartGangs:
        """Some rows."""
        columns = ("job", "part", "gpus", "accepts", "batch_size", "job_id", "model", "model_code")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def by_part(self, profile: np.ndarray, parts: int) -> np.ndarray:
        """Numbers of rows by job and part, int64 (jobs, parts); -1: no gang."""
        found = np.full((len(self.first), parts), -1)
        has_gpus = self.accepts > 0
        found[self.job[has_gpus], self.part[has_gpus]] = profile[has_gpus]
        return found
