"""Network allreduce:calibration=measured,gpu=...,tables=DIR: measured iteration times themselves, by placement.

The tables are those of profiles/measured_tables.py; the fit of the GPU type fills the rest. A slowdown is the time over
that of the whole batch placed best, as in measured.py. Kernels cannot look anything up, so the simulator asks for a
job's rate when it gets GPUs (simulated.py: `RateProvider`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..files.file_marks import A_FOLDER, MARK
from ..profiles.measured_tables import MeasuredTables, read_tables
from .isolated import COMPUTE, Duration
from .measured import Measured, batch_of, factors_by_batch, relative
from .network_model import Jobs
from .simulated import Simulated

if TYPE_CHECKING:
    from ..cluster.topology import Topology

Placement = tuple[int, ...]  # GPUs on each machine


@dataclass(frozen=True, eq=False)
class LookedUp:
    """Tables of measurements, DIR/MODEL/ in `folder`, and the network of fits behind them."""

    fits: Measured
    folder: str = field(metadata={MARK: A_FOLDER})
    name: str = "allreduce"
    elastic: bool = False
    restores_first: bool = False
    _known: dict[tuple[str, Placement, int, int], float] = field(default_factory=dict)

    @property
    def duration(self) -> Duration:
        """What `duration_s` means (isolated.py)."""
        return self.fits.duration

    @property
    def gpu(self) -> str:
        """The type of GPU that was measured."""
        return self.fits.gpu

    @property
    def rate_provider(self) -> LookedUp:
        """What says how fast jobs run."""
        return self

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        return f"{self.fits.describe()},tables={self.folder}"

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size, batch); see `base.Network`; InputError: an unknown model or batch."""
        return factors_by_batch(self, workload, topology, self._factors)

    def rate(self, simulator: Simulated, job: int) -> tuple[float, float]:
        """Seconds per iteration on the present GPUs with the present batch and sub-batch; they hold until it moves."""
        s, workload, topology = simulator.state, simulator.workload, simulator.topology
        machines = Counter(topology.gpu_machine[simulator.view.gpus_of(job)].tolist())
        model, gpus = str(workload.model[job]), int(s.gpus[job])
        if gpus > 1:
            batch_of(self, workload, job)
        batch = int(s.batch[job])
        best = _placements(gpus, int(topology.machine_gpus.max()))
        best_s = min(self.step_s(model, place, batch, batch) for place in best if place is not None)
        step_s = self.step_s(model, tuple(machines.values()), batch, int(s.sub_batch[job]))
        return float(s.base_iteration_s[job]) * max(1.0, step_s / best_s), 0.0

    def step_s(self, model: str, placement: Placement, batch: int, sub_batch: int) -> float:
        """Seconds of a step of `batch` samples a GPU on a placement, in passes of at most `sub_batch`."""
        key = model, placement, batch, sub_batch
        if key not in self._known:
            tables = read_tables(self.folder, model)
            passes = -(-batch // min(sub_batch, tables.largest_local))
            last_s, exposed_s = self._pass_s(tables, placement, -(-batch // passes))
            self._known[key] = last_s + (passes - 1) * (last_s - exposed_s)
        return self._known[key]

    def _pass_s(self, tables: MeasuredTables, placement: Placement, size: int) -> tuple[float, float]:
        """A pass that synchronises, and its synchronisation that is not hidden: measured, or else by the fit."""
        try:
            return tables.times_s(placement, size)
        except InputError:
            fit, gpus = self.fits.profiles.of(tables.name).fit(self.fits.gpu), sum(placement)
            whole_s = float(fit.iteration_s(gpus, len(placement), size))
            return whole_s, whole_s - float(fit.compute_s(size)) if gpus > 1 else 0.0

    def _factors(self, model: str, gpus: int, batch: int, room: int) -> np.ndarray:
        inside, between = _placements(gpus, room)
        between_s = self.step_s(model, between, batch, batch)
        inside_s = between_s if inside is None else self.step_s(model, inside, batch, batch)
        if self.duration != COMPUTE:
            return relative(inside_s, between_s, inside_s)
        tables = read_tables(self.folder, model)
        passes = -(-batch // tables.largest_local)
        whole_s, exposed_s = self._pass_s(tables, inside or between, -(-batch // passes))
        return relative(inside_s, between_s, passes * (whole_s - exposed_s))


def _placements(gpus: int, room: int) -> tuple[Placement | None, Placement]:
    """On one machine of `room` GPUs, None if it is too small; and on as few of several as hold the gang."""
    if gpus > room:
        rest = (gpus % room,) if gpus % room else ()
        return None, (room,) * (gpus // room) + rest
    return (gpus,), (gpus - gpus // 2, gpus // 2) if gpus > 1 else (gpus,)
