"""A simulator as its own parts see it, so that they can be written below it; and the source of the jobs' rates."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..cluster.topology import Topology
from ..jobs.workload import Workload
from ..record.raw_record import RawRecord
from ..record.state import Capacity
from .network_model import Network


class JobsInView(Protocol):
    """What the parts of a simulator ask of its view (view.py), where the same is meant."""

    @property
    def running(self) -> np.ndarray:
        """Running jobs in order of arrival, int64."""

    @property
    def jobs_per_gpu(self) -> int:
        """How many jobs may hold one GPU."""

    def gpus(self, job: int) -> int:
        """Gang size of a job."""

    def gpus_of(self, job: int) -> list[int]:
        """The GPUs that a running job holds; empty if it does not run."""

    def jobs_on(self, gpu: int) -> list[int]:
        """The jobs that hold a GPU, ascending."""

    def batch(self, job: int) -> int:
        """Samples of an iteration on each GPU of a job; 0 where GPUs are not shared."""

    def shift_s(self, job: int) -> float | None:
        """The shift of a running job as last decided, seconds; None: it has none."""

    def shift_period_s(self, job: int) -> float | None:
        """The period of the shift that a running job has; None: it has none."""

    def tables_of(self, job: int) -> np.ndarray:
        """The tables that a job reads, int64."""


class Simulated(Protocol):
    """One cluster with one workload, as `Simulator` (engine/simulator.py), which says what its attributes are."""

    runs: int
    config: Any
    topology: Topology
    workload: Workload
    network: Network
    rate_provider: RateProvider | None
    capacity: Capacity
    records: np.recarray
    state: Any
    raw: RawRecord

    @property
    def view(self) -> JobsInView:
        """What may be seen of it."""

    @property
    def ended(self) -> bool:
        """Nothing more can be decided."""


class RateProvider(Protocol):
    """How fast jobs run, where no table in the record says it: measured look-ups, elastic jobs, shared links.

    An optional `changed_rates(simulator)` is called after `rate`: an iterable of (job, seconds per iteration) of
    running jobs with a new rate. An `elastic` one with other jobs too has `may_resize(simulator, job)`.

    Attributes:
        elastic: jobs may run on other numbers of GPUs than they ask (`Start` and `Resize`), and a decision is due
            whenever a job is there.
        restores_first: the first start of a job costs a restore too.
    """

    elastic: bool
    restores_first: bool

    def rate(self, simulator: Simulated, job: int) -> tuple[float, float]:
        """The rate of a running job that has just got its present GPUs, or reached the end of a phase.

        Called before time passes, once per such job, in their order; iterations left are up to date. Returns seconds
        per iteration alone on its GPUs, > 0; and how many iterations are left at the next call, fewer than now; 0: not
        before it moves.
        """


def may_resize(simulator: Simulated, job: int) -> bool:
    """Whether a job may run on another number of GPUs than it asks."""
    rate_provider = simulator.rate_provider
    if rate_provider is None or not rate_provider.elastic:
        return False
    return bool(rate_provider.may_resize(simulator, job)) if hasattr(rate_provider, "may_resize") else True
