"""What every network model offers to the simulator: how much longer an iteration takes because of its place.

A job's rate of progress is 1 / (compute_iteration_s x slowdown); `duration` says what `duration_s` is (isolated.py).

* `none` and `penalty`: the slowdown depends on the model, the gang's size and the innermost tier that holds the gang:
  `tier_factors`, once for a workload.
* `allreduce`: it depends on the shape of the placement (GPUs, slots, machines and racks). `tier_factors` gives the best
  placement of each tier; a second method writes tables for the kernels (`ShapedNetwork`).
* `contention`: it also depends on the jobs that share links, so it changes while a job runs. Its `rate_provider`
  (simulated.py) writes a job's phases into the record when it gets GPUs. `tier_factors` is the value without any
  other job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from ..cluster.topology import Topology


class Jobs(Protocol):
    """What a network needs of a workload: its gangs (`Workload.gangs`); `job_id` is used in errors if there is one."""

    @property
    def model(self) -> np.ndarray:
        """Model names, str objects, (n,)."""

    @property
    def gpus(self) -> np.ndarray:
        """Gang sizes, int64 >= 1, (n,)."""


@runtime_checkable
class Network(Protocol):
    """A network model."""

    @property
    def name(self) -> str:
        """The word that selects it."""

    def describe(self) -> str:
        """Its name with every parameter, in the form `load_network` reads."""

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None) -> tuple[np.ndarray, np.ndarray]:
        """The slowdown of each kind of job on each tier.

        Returns:
            (profile_of_job, factors): int64 (n,) and float64 (P, 4), P profiles. factors[p, t] >= 1 is the duration of
                one iteration when the innermost level that holds the gang is t (slot, machine, rack, network:
                simulator/base/tiers.py), over one without any network. isolated.py derives `duration_s`'s meaning from
                the best placement. Jobs of one GPU are always 1.

        Raises:
            InputError: a job that the network knows nothing about.
        """


@runtime_checkable
class ShapedNetwork(Network, Protocol):
    """A network whose slowdown depends on the shape of the placement."""

    def best_factors(self, workload: Jobs | Any, topology: Topology | None, profile_of_job: np.ndarray) -> np.ndarray:
        """The slowdown of each job on the best placement of the empty cluster (isolated.py), float64 (n,)."""

    def write_into(self, s: np.record, workload: Jobs | Any, profile_of_job: np.ndarray) -> None:
        """Modify `s`, a record: the tables of network/collectives.py; `profile_of_job`: of `tier_factors`."""
