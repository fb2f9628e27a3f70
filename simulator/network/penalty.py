"""A fixed slowdown per model, gang size and tier, from a table (`slowdown_tables.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..base.names import numbered
from ..base.tiers import TIERS
from ..jobs.workload import name_of_job
from ..profiles.slowdown_tables import MAX_FACTOR, Factors, PenaltyTable, load_table
from .isolated import ISOLATED, Duration
from .network_model import Jobs

if TYPE_CHECKING:
    from ..cluster.topology import Topology

MOST_MARKS = 4096
MOST_KNOWN = 4096


@dataclass(frozen=True)
class Penalty:
    """The slowdown of `table`; for models that it does not list `default`, or an error if that is None.

    `duration`: what `duration_s` means (isolated.py).
    """

    table: PenaltyTable
    default: Factors | None = None
    duration: Duration = ISOLATED
    name: str = "penalty"

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        values = "none" if self.default is None else "/".join(f"{value:.12g}" for value in self.default[1:])
        return f"{self.name}:table={self.table.name},default={values},duration={self.duration}"

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size) pair; see `base.Network`. The topology does not matter.

        Raises:
            InputError: a job of several GPUs whose model the table does not list, and there is no default.
        """
        gpus = np.asarray(workload.gpus, dtype=np.int64)
        if not len(gpus):
            return np.zeros(0, np.int64), np.ones((1, TIERS))
        known = getattr(workload, "model_code", None)
        codes = numbered(workload.model.tolist()) if known is None else known
        # All jobs of one GPU are one profile.
        pairs = np.where(gpus == 1, 1, codes * (int(gpus.max()) + 1) + gpus)
        first_job, profiles = _distinct(pairs)
        return profiles, self._known.rows(self, workload, first_job)

    @cached_property
    def _known(self) -> _Known:
        """Slowdowns that were looked up already: most workloads of a generator have the same."""
        return _Known()

    def _factors(self, workload: Any, job: int) -> Factors:
        model, gpus = str(workload.model[job]), int(workload.gpus[job])
        if gpus == 1:
            return 1.0, 1.0, 1.0, 1.0
        found = self.table.factors(model, gpus) or self.default
        if found is not None:
            return found
        raise InputError(
            f"{name_of_job(workload, job)} ({gpus} GPUs) has the model {model!r}, which penalty table "
            f"{self.table.name!r} does not list ({', '.join(self.table.models())}); choose another table=, give "
            "default=MACHINE/RACK/NETWORK for such models, e.g. default=1/1.2/1.5, or take the network 'none'"
        )


class _Known:
    """Slowdowns by model and gang size, each looked up once."""

    def __init__(self) -> None:
        self._place_of: dict[tuple[str, int], int] = {}
        self._factors = np.ones((0, TIERS))

    def rows(self, network: Penalty, workload: Any, jobs: np.ndarray) -> np.ndarray:
        """Slowdowns of `jobs`, float64 (jobs, TIERS)."""
        kinds = list(zip(workload.model[jobs].tolist(), workload.gpus[jobs].tolist(), strict=True))
        place_of = self._place_of
        if len(place_of) > MOST_KNOWN:
            place_of.clear()
        new = [place for place, kind in enumerate(kinds) if kind not in place_of]
        if new:
            found = np.array([network._factors(workload, job) for job in jobs[new].tolist()])
            self._factors = np.concatenate([self._factors[: len(place_of)], found])
            place_of.update((kinds[place], len(place_of)) for place in new)
        return self._factors[[place_of[kind] for kind in kinds]]


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each value >= 0 comes first, in their order, and for each place (n,) the number of its value."""
    n, most = len(values), int(values.max())
    if most > MOST_MARKS:
        _, first, number = np.unique(values, return_index=True, return_inverse=True)
        return first, number
    first_of = np.full(most + 1, n)  # as np.unique, without sorting
    first_of[values[::-1]] = np.arange(n - 1, -1, -1)
    found = (first_of < n).nonzero()[0]
    number_of = np.empty(most + 1, np.int64)
    number_of[found] = np.arange(len(found))
    return first_of[found], number_of[values]


def penalty(table: str = "chronus", default: tuple[float, ...] | None = None, duration: Duration = ISOLATED) -> Penalty:
    """A fixed slowdown per model, gang size and tier, from a table.

    Args:
        table: chronus, gavel, dally-table1, or the path of a csv file (see `tables.load_table`).
        default: slowdowns on machine, rack and network of models that the table does not list, from 1 to 1e6.
        duration: isolated or compute: what `duration_s` means (isolated.py).

    Raises:
        InputError: an unknown or malformed table, or a default that is not three slowdowns.
    """
    if default is None:
        return Penalty(load_table(table), None, duration)
    if len(default) != 3 or not all(1.0 <= value <= MAX_FACTOR for value in default):
        given = "/".join(f"{value:g}" for value in default)
        raise InputError(
            f"network penalty: default = {given!r}, expected MACHINE/RACK/NETWORK, three slowdowns from 1 to "
            f"{MAX_FACTOR:g} such as 1/1.2/1.5"
        )
    machine, rack, network = (float(value) for value in default)
    return Penalty(load_table(table), (machine, machine, rack, network), duration)
