"""A fixed slowdown per model, gang size and tier, from a table (`tables.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..tiers import TIERS
from .base import Jobs, name_of_job
from .tables import MAX_FACTOR, Factors, PenaltyTable, load_table

if TYPE_CHECKING:
    from ..topology import Topology


@dataclass(frozen=True)
class Penalty:
    """The slowdown of `table`; for models that it does not list `default`, or an error if that is None."""

    table: PenaltyTable
    default: Factors | None = None
    name: str = "penalty"

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        values = "none" if self.default is None else "/".join(f"{value:.12g}" for value in self.default[1:])
        return f"{self.name}:table={self.table.name},default={values}"

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size) pair; see `base.Network`. The topology does not matter here.

        Raises:
            InputError: a job of several GPUs whose model the table does not list, and there is no default.
        """
        models = workload.model
        gpus = np.asarray(workload.gpus, dtype=np.int64)
        if not len(gpus):
            return np.zeros(0, np.int64), np.ones((1, TIERS))
        code_of: dict[str, int] = {}
        codes = np.array([code_of.setdefault(model, len(code_of)) for model in models.tolist()], np.int64)
        codes[gpus == 1] = 0  # all jobs of one GPU are one profile
        pairs = (codes * (int(gpus.max()) + 1) + gpus).tolist()
        first_job = dict(zip(reversed(pairs), range(len(pairs) - 1, -1, -1), strict=True))
        profiles = {pair: profile for profile, pair in enumerate(sorted(first_job))}
        factors = np.ones((len(profiles), TIERS))
        for pair, profile in profiles.items():
            if gpus[first_job[pair]] > 1:
                factors[profile] = self._factors(workload, first_job[pair])
        return np.array([profiles[pair] for pair in pairs], np.int64), factors

    def _factors(self, workload: Any, job: int) -> Factors:
        model, gpus = str(workload.model[job]), int(workload.gpus[job])
        found = self.table.factors(model, gpus) or self.default
        if found is not None:
            return found
        raise InputError(
            f"{name_of_job(workload, job)} ({gpus} GPUs) has the model {model!r}, which penalty table "
            f"{self.table.name!r} does not list ({', '.join(self.table.models())}); choose another table=, or give "
            "default=MACHINE/RACK/NETWORK for such models, e.g. default=1/1.2/1.5"
        )


def penalty(table: str = "chronus", default: tuple[float, ...] | None = None) -> Penalty:
    """A fixed slowdown per model, gang size and tier, from a table.

    Args:
        table: chronus, gavel, dally-table1, or the path of a csv file (see `tables.load_table`).
        default: slowdowns on machine, rack and network of models that the table does not list, from 1 to 1e6.

    Raises:
        InputError: an unknown or malformed table, or a default that is not three slowdowns.
    """
    if default is None:
        return Penalty(load_table(table))
    if len(default) != 3 or not all(1.0 <= value <= MAX_FACTOR for value in default):
        given = "/".join(f"{value:g}" for value in default)
        raise InputError(
            f"network penalty: default = {given!r}, expected MACHINE/RACK/NETWORK, three slowdowns from 1 to "
            f"{MAX_FACTOR:g} such as 1/1.2/1.5"
        )
    machine, rack, network = (float(value) for value in default)
    return Penalty(load_table(table), (machine, machine, rack, network))
