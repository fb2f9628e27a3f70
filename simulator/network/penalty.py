"""A fixed slowdown per model, gang size and tier, from a table (`slowdown_tables.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ..base.errors import InputError
from ..base.names import numbered
from ..base.tiers import TIERS
from ..files.file_marks import path_unless
from ..jobs.workload import name_of_job
from ..profiles.slowdown_tables import MAX_FACTOR, TABLES, Factors, PenaltyTable, load_table
from .isolated import ISOLATED, Duration
from .network_model import Jobs
from .pairs import MOST_GPUS, number_pairs

if TYPE_CHECKING:
    from ..cluster.topology import Topology

MOST_PAIRS = 512  # of a model and a gang size that are kept apart without sorting
MOST_KNOWN, MOST_KNOWN_ROWS = 4096, 512


@dataclass(frozen=True)
class Penalty:
    """The slowdown of `table`; for other models `default`, or an error if that is None; `duration`: see isolated.py."""

    table: PenaltyTable
    default: Factors | None = None
    duration: Duration = ISOLATED
    name: str = "penalty"

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        values = "none" if self.default is None else "/".join(f"{value:.12g}" for value in self.default[1:])
        return f"{self.name}:table={self.table.name},default={values},duration={self.duration}"

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size) pair; see `base.Network`; InputError: an unknown model, and no default."""
        gpus = np.ascontiguousarray(workload.gpus, np.int64)
        if not len(gpus):
            return np.zeros(0, np.int64), np.ones((1, TIERS))
        known = getattr(workload, "model_code", None)
        codes = np.ascontiguousarray(numbered(workload.model.tolist()) if known is None else known, np.int64)
        pairs, first_job, profiles = np.empty(MOST_PAIRS, np.int64), np.empty(MOST_PAIRS, np.int64), np.empty_like(gpus)
        count = number_pairs(codes, gpus, pairs, first_job, profiles)
        if count > MOST_PAIRS:  # seldom, so sorting them will do
            numbers = np.where(gpus == 1, 1, codes * MOST_GPUS + gpus)
            _, first_job, profiles = np.unique(numbers, return_index=True, return_inverse=True)
            return profiles, self._known.rows(self, workload, first_job)
        names = getattr(workload, "model_names", None)
        if names is None:
            return profiles, self._known.rows(self, workload, first_job[:count])
        return profiles, self._known.rows_of(self, workload, first_job[:count], (names, pairs[:count].tobytes()))

    @cached_property
    def _known(self) -> _Known:
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
    """Slowdowns by model and gang size, each looked up once; and those of whole workloads."""

    def __init__(self) -> None:
        self._place_of: dict[tuple[str, int], int] = {}
        self._factors = np.ones((0, TIERS))
        self._rows: dict[Any, np.ndarray] = {}

    def rows_of(self, network: Penalty, workload: Any, jobs: np.ndarray, key: Any) -> np.ndarray:
        """As `rows`, read-only, of workloads that have the same models and gang sizes where they have the same key."""
        found = self._rows.get(key)
        if found is None:
            found = self.rows(network, workload, jobs)
            found.setflags(write=False)
            if len(self._rows) >= MOST_KNOWN_ROWS:
                self._rows.clear()
            self._rows[key] = found
        return found

    def rows(self, network: Penalty, workload: Any, jobs: np.ndarray) -> np.ndarray:
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


def penalty(
    table: Annotated[str, path_unless(TABLES.keys())] = "chronus",
    default: tuple[float, ...] | None = None,
    duration: Duration = ISOLATED,
) -> Penalty:
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
