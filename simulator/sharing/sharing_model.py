"""GPU sharing as a value: how many jobs a GPU takes, how they slow each other down, and the memory that they share.

Source: paper sjf-bsbf, Sec. IV-A3, IV-A4 and Eq. 9 (C = 2 by default). sharing/berths.py has what the record holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..base.arguments import expect_single
from ..base.errors import InputError
from ..base.names import bind, choose, parse_name
from ..files.file_marks import A_FILE, MARK, read_by
from ..files.regular_files import Stamp
from ..jobs.job_kinds import Slowdowns, write_kinds
from ..jobs.workload import Workload, name_of_job
from ..network.network_model import Network
from ..profiles.models import load_profiles
from ..record.sharing_fields import FIT_TERMS, SHARED_MODELS
from ..record.state import BERTH_SIZES
from .interference import AN_INTERFERENCE, Interference
from .mig_slices import Slice
from .sharing_calls import first_without_room, write_best_steps

GIB = 2.0**30
NEEDED: dict[str, Any] = {"needs": ("jobs_per_gpu",)}  # what the other options mean nothing without
MEMORY = {"assumed": 1.0, "middle": 0.5, "measured": 0.0}  # of what is assumed that a sample takes


@dataclass(frozen=True)
class Sharing:
    """Several jobs may hold one GPU.

    Args:
        jobs_per_gpu: C, 1 to 8.
        interference: `measured`, `gavel:gpu=p100,quantile=p90`, `lucid`, `constant:xi=1.5`, `mig:slices=2`, a csv
            (sharing/interference.py), or an object that has `matrix` or `load_matrix` (job_kinds.py).
        memory_gb: memory of a GPU in GiB, of which every job takes what its model's profile says; None: without limit.
            Where GPUs are cut in slices, each job has its slice's share of it for itself.
        gpu: GPU type whose fits say what gradient accumulation costs and how fast elastic jobs are; None: that of the
            network, which must not be another, or 2080ti where it has none.
        profiles: path of profiles beside the shipped ones (profiles/models.py).
        memory: of a sample where it was not measured (`sample_assumed` of a profile): `assumed`, as the profile
            says, which is the most that the measured batches allow; `middle`, half of that; `measured`, nothing.

    Raises:
        InputError: a number out of range or no such word; `slowdowns`, asked for by a simulator: no such
            interference, or slices that are not as many as jobs_per_gpu.
    """

    jobs_per_gpu: int = 2
    interference: str | Slowdowns = field(default="measured", metadata=NEEDED | {MARK: AN_INTERFERENCE})
    memory_gb: float | None = field(default=None, metadata=NEEDED)
    gpu: str | None = field(default=None, metadata=NEEDED)
    profiles: str = field(default="", metadata=NEEDED | {MARK: A_FILE})
    memory: str = field(default="assumed", metadata={"needs": ("memory_gb",)})

    def __post_init__(self) -> None:
        expect_single(vars(self))
        most = BERTH_SIZES[-1]
        if isinstance(self.jobs_per_gpu, bool) or self.jobs_per_gpu not in range(1, most + 1):
            raise InputError(f"sharing: jobs_per_gpu = {self.jobs_per_gpu!r}: expected a whole number from 1 to {most}")
        if self.memory_gb == math.inf:
            object.__setattr__(self, "memory_gb", None)
        if not (self.memory_gb is None or (isinstance(self.memory_gb, int | float) and self.memory_gb > 0.0)):
            raise InputError(f"sharing: memory_gb = {self.memory_gb!r}: expected GiB > 0, or None for no limit")
        if not (isinstance(self.interference, str) or _tells_slowdowns(self.interference)):
            raise InputError(
                f"sharing: interference = {self.interference!r:.100}: expected a word such as 'measured', the path of "
                "a csv file, or an object that has `matrix` or `load_matrix`"
            )
        if not isinstance(self.profiles, str):
            raise InputError(f"sharing: profiles = {self.profiles!r:.100}: expected the path of a file of profiles")
        choose(self.memory, MEMORY, "sharing: memory")

    @cached_property
    def slowdowns(self) -> Slowdowns:
        """The opened `interference`; InputError: there is none, or its slices are not jobs_per_gpu."""
        word = self.interference
        found = (
            word if not isinstance(word, str) else _opened(word, read_by(word, AN_INTERFERENCE, "interference").stamps)
        )
        slice_ = getattr(found, "slice", None)
        if slice_ is not None and slice_.count != self.jobs_per_gpu:
            raise InputError(
                f"sharing: jobs_per_gpu = {self.jobs_per_gpu!r} with GPUs cut in {slice_.count} slices "
                f"({slice_.name}): expected jobs_per_gpu = {slice_.count}"
            )
        return found

    def check(self) -> None:
        """InputError for a word or a path that cannot be opened; both are when they are asked for."""
        _ = self.slowdowns
        known = load_profiles(self.profiles).models.values()
        if self.gpu is not None:
            choose(self.gpu, sorted({gpu for profile in known for gpu in profile.fits}), "sharing: gpu")

    @property
    def slice(self) -> Slice | None:
        """The instances that every GPU is cut in; None: whole GPUs."""
        return getattr(self.slowdowns, "slice", None)

    @classmethod
    def of(cls, jobs_per_gpu: int | None = None, **given: Any) -> Sharing | None:
        """Sharing by so many jobs; None where the number is not given."""
        return None if jobs_per_gpu is None else cls(jobs_per_gpu, **given)

    @classmethod
    def load(cls, source: Sharing | str) -> Sharing:
        """Sharing from its text, e.g. "on:jobs_per_gpu=3,memory_gb=11", or itself; InputError: a bad parameter.

        Interference with several parameters of its own does not fit into that text: hand over a `Sharing` then.
        """
        if isinstance(source, Sharing):
            return source
        name, params = parse_name(source, "sharing")
        if name != "on":
            raise InputError(f"sharing {source!r}: expected on, or on:key=value,...")
        return bind(cls, params, "sharing")


def gpu_type(network: Network, sharing: Sharing | None) -> str:
    """The GPU type of the fits: the network's, the sharing's, or 2080ti; InputError: the two differ."""
    own, asked = getattr(network, "gpu", None), sharing and sharing.gpu
    if own and asked and asked != own:
        raise InputError(
            f"gpu = {asked!r}: network {network.describe()!r} has measurements of {own}; expected gpu={asked} in the "
            "word of the network, or a network without a type of GPU"
        )
    return own or asked or "2080ti"


@lru_cache(maxsize=16)
def _opened(word: str, _stamps: tuple[tuple[str, Stamp], ...]) -> Interference:
    return Interference(word)


def _tells_slowdowns(given: object) -> bool:
    return hasattr(given, "matrix") or hasattr(given, "load_matrix")


def write_sharing(
    records: np.recarray, s: np.void, workload: Workload, network: Network, sharing: Sharing | None
) -> None:
    """Write sharing, its slowdowns and memory, into a record with berths and jobs; `s`: of `records`.

    `network`: a measured one has a GPU type. `sharing`: None: one job a GPU. InputError: too many models, an unknown
    one, or a job that fits no GPU with one sample a pass.
    """
    n = len(workload)
    s["jobs_per_gpu"] = 1 if sharing is None else sharing.jobs_per_gpu
    s["gpu_memory"] = math.inf
    s["xi"][:] = s["slice_slowdown"] = s["memory_shared"] = 1.0
    s["batch"][:n] = s["own_batch"][:n] = np.maximum(1, -(-workload.batch_size // workload.gpus))
    s["net_steps"] = hasattr(network, "fit_rows")
    if sharing is None and not s["net_steps"]:
        s["sub_batch"][:n] = s["batch"][:n]
        return
    number: dict[str, int] = {}
    s["model"][:n] = [number.setdefault(model, len(number)) for model in workload.model.tolist()]
    models = list(number)
    if len(models) > SHARED_MODELS:
        raise InputError(
            f"workload {workload.name!r} has {len(models)} models; GPU sharing tells at most {SHARED_MODELS} apart"
        )
    s["fit"][: len(models)] = _fit_rows(models, network, sharing)
    if sharing is not None:
        write_kinds(s, workload, models, sharing.slowdowns)
        if sharing.memory_gb is not None:
            _write_memory(s, workload, models, sharing)
        if sharing.slice is not None:
            s["slice_slowdown"], s["memory_shared"] = 1.0 / sharing.slice.compute, 0.0
            s["gpu_memory"] *= sharing.slice.memory
    s["sub_batch"][:n] = s["batch"][:n]
    write_best_steps(records, 0)
    job = first_without_room(records, 0)
    if job >= 0:
        raise InputError(
            f"{name_of_job(workload, job)} ({workload.model[job]}): it does not fit the {s['gpu_memory'] / GIB:g} GiB "
            "of a GPU even with one sample a pass; expected sharing with more memory_gb"
        )


def _fit_rows(models: list[str], network: Network, sharing: Sharing | None) -> np.ndarray:
    """(models, FIT_TERMS): what the measured network uses, else what the profiles have; d = 0 where there is none."""
    if hasattr(network, "fit_rows"):
        return network.fit_rows(models)
    assert sharing is not None
    known, gpu = load_profiles(sharing.profiles), gpu_type(network, sharing)
    rows = np.zeros((len(models), FIT_TERMS))
    for i, model in enumerate(models):
        profile = known.get(model)
        if profile is not None and gpu in profile.fits:
            rows[i] = profile.fits[gpu].row()
    rows[np.isnan(rows).any(axis=1)] = 0.0
    return rows


def _write_memory(s: np.void, workload: Workload, models: list[str], sharing: Sharing) -> None:
    known = load_profiles(sharing.profiles)
    assert sharing.memory_gb is not None
    s["gpu_memory"] = sharing.memory_gb * GIB
    for i, model in enumerate(models):
        profile = known.get(model)
        memory = None if profile is None else profile.memory
        if memory is None:
            job = int(np.flatnonzero(workload.model == model)[0])
            raise InputError(
                f"{name_of_job(workload, job)} has the model {model!r}, of whose memory no profile says anything; "
                "add it to profiles=PATH, or let memory have no limit (memory_gb=inf of --set, memory_gb=None)"
            )
        sample_bytes = memory.sample_bytes * (MEMORY[sharing.memory] if memory.sample_assumed else 1.0)
        # Whole bytes: sums of them are exact, in any order.
        s["memory_base"][i], s["memory_sample"][i] = round(memory.base_bytes), round(sample_bytes)
