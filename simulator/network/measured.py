"""Network allreduce:calibration=measured,gpu=...: the slowdown of a placement by fits of measured iteration times.

The fits are those of the profiles (profiles/models.py): Eq. 3, 4 and 7 of paper sjf-bsbf, per model and GPU type. An
iteration takes the workload's own time, which is that of the whole batch placed best, times

    t(GPUs, machines, batch, sub-batch) / t(GPUs, best machines, batch, batch)

It matters whether there is one machine or several; the best is one, if large enough. With `duration=compute` the
workload's own time is t_comp of the whole batch instead.

Where the user wrote a topology's bandwidth or oversubscription, communication takes the fit's time x the bandwidth of
the measured cluster over the written one x the oversubscription: of tier machine inside a machine, of tier rack between
machines. Bandwidths act with the GPU of calibration `measured` alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..base.tiers import MACHINE, RACK, TIERS
from ..files.file_marks import A_FILE, MARK
from ..jobs.workload import name_of_job
from ..profiles.models import Profiles, load_profiles
from .isolated import COMPUTE, ISOLATED, Duration
from .network_model import Jobs, Network
from .step_time import A, B, step_time_s
from .tiers_and_layers import CALIBRATIONS, Link, load_fabric
from .written import Used

if TYPE_CHECKING:
    from ..cluster.topology import Tier, Topology

IN_MACHINE, BETWEEN = slice(2, 4), slice(4, 6)  # terms of a fit


@dataclass(frozen=True, eq=False)
class Measured:
    """Fits of one GPU type.

    Attributes:
        gpu: the type, a key of the profiles' fits.
        path: of profiles beside the shipped ones; "": none.
        duration: what `duration_s` means (isolated.py).
        longer: how many times longer communication takes inside a machine and between machines than the fits say.
    """

    gpu: str
    path: str = field(default="", metadata={MARK: A_FILE})
    duration: Duration = ISOLATED
    name: str = "allreduce"
    longer: tuple[float, float] = (1.0, 1.0)

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        own = f",profiles={self.path}" if self.path else ""
        return f"{self.name}:calibration=measured,gpu={self.gpu}{own},duration={self.duration}"

    def on(self, tiers: tuple[Tier, ...]) -> tuple[Measured, Used]:
        """The fits on links with these numbers; see `written.TieredNetwork`."""
        longer, used = [], set()
        links = self._links()
        for place in (MACHINE, RACK):
            tier, factor = tiers[place], 1.0
            nominal = links[place].nominal_gbps if links else None
            if nominal is not None and not math.isnan(tier.bandwidth_gbps):
                factor *= nominal / tier.bandwidth_gbps
                used.add((tier.name, "bandwidth_gbps"))
            if not math.isnan(tier.oversubscription):
                factor *= tier.oversubscription
                used.add((tier.name, "oversubscription"))
            longer.append(factor)
        inside, between = longer
        return replace(self, longer=(inside, between)), frozenset(used)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a topology's numbers changed."""
        places = zip(("in a machine", "between machines"), self.longer, strict=True)
        return tuple(f"communication {place} takes {x:.4g} times as long" for place, x in places if x != 1.0)

    def _links(self) -> tuple[Link, ...]:
        """The tiers that the fits of this GPU were measured on; empty where that is unknown."""
        fabric, _ = load_fabric(str(CALIBRATIONS["measured"]))
        return fabric.tiers if fabric.measured_on.lower() == self.gpu.lower() else ()

    @cached_property
    def profiles(self) -> Profiles:
        """What is known of the models."""
        return load_profiles(self.path)

    def fit_rows(self, models: Sequence[str]) -> np.ndarray:
        """The terms of Eq. 3, 4, 7 by model, float64 (models, 9); a missing tier has the other's; or InputError."""
        try:
            rows = np.array([self.profiles.of(model).fit(self.gpu).row() for model in models])
        except InputError as error:
            raise InputError(f"{error}; profiles=FILE adds some, and any model plays on network none") from None
        for part, other in ((IN_MACHINE, BETWEEN), (BETWEEN, IN_MACHINE)):
            missing = np.isnan(rows[:, part]).any(axis=1)
            rows[missing, part] = rows[missing, other]
        rows[:, IN_MACHINE] *= self.longer[0]
        rows[:, BETWEEN] *= self.longer[1]
        return rows

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size, batch); see `base.Network`; InputError: an unknown model or batch."""
        return factors_by_batch(self, workload, topology, self._factors)

    def _factors(self, model: str, gpus: int, batch: int, largest_machine: int) -> np.ndarray:
        (row,) = self.fit_rows([model])
        if np.isnan(row).any():
            raise InputError(
                f"model {model!r} was measured on one {self.gpu} GPU only; expected measurements on several, for jobs "
                f"of {gpus} GPUs"
            )
        between_s = float(step_time_s(row, gpus, 2, batch, batch))
        inside_s = between_s if gpus > largest_machine else float(step_time_s(row, gpus, 1, batch, batch))
        computed_s = float(row[A] + row[B] * batch) if self.duration == COMPUTE else inside_s
        return relative(inside_s, between_s, computed_s)


def relative(inside_s: float, between_s: float, unit_s: float) -> np.ndarray:
    """Slowdowns by tier, (TIERS,), on the fewest machines and on several, never quicker, in a unit of its time."""
    spread_s = max(inside_s, between_s)
    return np.array([(spread_s if tier >= RACK else inside_s) / unit_s for tier in range(TIERS)])


def factors_by_batch(
    network: Network,
    workload: Any,
    topology: Topology | None,
    factors_of: Callable[[str, int, int, int], np.ndarray],
    silent: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The profile of each job, (n,), and the slowdowns of each profile, (profiles, TIERS): see `base.Network`.

    Args:
        topology: None: any gang fits a machine.
        factors_of: (TIERS,), by model, GPUs, samples a GPU, and GPUs of the largest machine.
        silent: bool (n,), jobs that send nothing, of the profile of one-GPU jobs, without slowdown; None: none.
    """
    gpus = np.asarray(workload.gpus, dtype=np.int64)
    largest = 2**40 if topology is None else int(topology.machine_gpus.max())
    profiles: dict[tuple[str, int, int], int] = {("", 1, 1): 0}
    factors = [np.ones(TIERS)]
    profile_of_job = np.zeros(len(gpus), np.int64)
    sending = gpus > 1 if silent is None else (gpus > 1) & ~silent
    for job in np.flatnonzero(sending).tolist():
        key = str(workload.model[job]), int(gpus[job]), batch_of(network, workload, job)
        if key not in profiles:
            profiles[key] = len(factors)
            factors.append(factors_of(*key, largest))
        profile_of_job[job] = profiles[key]
    return profile_of_job, np.array(factors)


def batch_of(network: Network, workload: Any, job: int) -> int:
    """Samples a GPU of a job; InputError where its batch is not known."""
    batch, gpus = int(workload.batch_size[job]), int(workload.gpus[job])
    if batch == 0:
        raise InputError(
            f"{name_of_job(workload, job)} ({gpus} GPUs) has no batch_size; network {network.describe()!r} needs it "
            f"to tell computation from communication; add columns model and batch_size, or play on network "
            f"{'contention:default=silent' if network.name == 'contention' else 'none'}, where such jobs send nothing"
        )
    return -(-batch // gpus)


def measured(gpu: str, profiles: str = "", duration: Duration = ISOLATED) -> Measured:
    """The fits of a GPU type.

    Args:
        gpu: t4, 2080ti, a100, or a type of the user's profiles; else InputError.
        profiles: path of profiles beside the shipped ones (profiles/models.py).
        duration: isolated or compute: what `duration_s` means (isolated.py).
    """
    network = Measured(gpu, profiles, duration)
    known = {name for profile in network.profiles.models.values() for name in profile.fits}
    choose(gpu, known, "GPU type")
    return network
