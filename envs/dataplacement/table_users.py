"""Who reads tables, and where they could run: the jobs that the slow path knows, and the workloads that wait."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...simulator.cluster.region_hardware import NO_GPU, World
from ...simulator.engine.view import ClusterView
from ...simulator.warehouse.warehouse import Jobs


@dataclass(frozen=True)
class TableUsers:
    """TableUsers, one row each.

    Attributes:
        first: int64 (readers + 1,); table: int64 (uses,): row j reads `table[first[j] : first[j + 1]]`.
        fits: bool (readers, regions), where the hardware is that it needs.
        hours: float64 (readers,), GPU-hours that count as high priority.
    """

    first: np.ndarray
    table: np.ndarray
    fits: np.ndarray
    hours: np.ndarray

    @classmethod
    def known(cls, jobs: Jobs, world: World) -> TableUsers:
        """The training jobs that the slow path knows."""
        jobs = jobs.only(jobs.training)
        fits = np.where(jobs.gpu_type[:, None] == NO_GPU, True, world.gpus.T[jobs.gpu_type] > 0)
        return cls(jobs.first, jobs.table, fits, jobs.gpu_hours * jobs.high)

    @classmethod
    def waiting(cls, view: ClusterView) -> TableUsers:
        """The workloads in the queue."""
        queue, regions = view.queue, int(view.record["n_regions"])
        reads = [view.tables_of(job) for job in queue.tolist()]
        first = np.concatenate([[0], np.cumsum([len(tables) for tables in reads])]).astype(np.int64)
        hosts = view.record["job_hosts"][queue]
        fits = (hosts[:, None] >> np.arange(regions) & 1).astype(bool)
        table = np.concatenate([np.zeros(0, np.int64), *reads]).astype(np.int64)
        return cls(first, table, fits, np.zeros(len(queue)))

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def owner(self) -> np.ndarray:
        """The reader of each use, int64 (uses,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def of(self, table: int) -> np.ndarray:
        """The readers of a table, int64 (n,)."""
        return self.owner[self.table == table]

    def missing(self, copies: np.ndarray) -> np.ndarray:
        """How many tables of each are not in each region, int64 (readers, regions)."""
        found = np.zeros(self.fits.shape, np.int64)
        np.add.at(found, self.owner, ~copies[self.table])
        return found
