"""ModelProfile: what is known of a deep network, every number with its source; the shipped ones, and a user's own.

A profile file is JSON (or YAML); `clustergym workload fit-profile` writes one from measurements:

    {"models": {
      "bert": {
        "source": "what the model is",
        "gradient_bytes": 437928960,                          # optional; what is all-reduced
        "memory": {"base_bytes": 3.7e9, "sample_bytes": 5.7e8, "source": "...",         # optional
                   "sample_assumed": true},                                             # false if left out
        "fits": {
          "t4": {"a": 0.17, "b": 0.059, "ai": 0.27, "bi": 0.044, "an": 1.38, "bn": 0.011, "d": 2.0,
                 "one_a": 0.23, "one_b": 0.058, "largest_batch": 12, "source": "...",
                 "error": {"mape": 6.3, "median": 3.7, "p95": 26.2}}                    # error optional
        },
        "efficiency": {"initial_batch": 12, "largest_batch": 384, "epochs": 2,          # optional, for goodput
                       "steps": {"12": 14774, "24": 7439.5}, "noise_scale": [35, ...], "source": "..."}
      }}}

The parameters of a fit are those of throughput.py; null (or left out) stands for a tier that was not measured.
GPU types are free words; t4, 2080ti and a100 are those of the shipped profiles.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base.names import choose
from ..files.yaml_files import load_mapping
from .goodput import steps_at
from .model_names import plain
from .profile_schema import checked_models
from .throughput import ThroughputFit

SHIPPED = Path(__file__).resolve().parent / "data" / "pollux.json"


@dataclass(frozen=True)
class MemoryLine:
    """Bytes of a job on any GPU: base_bytes + sample_bytes (`sample_assumed`: not measured) x samples of one pass."""

    base_bytes: float
    sample_bytes: float
    source: str
    sample_assumed: bool = False

    def bytes(self, sub_batch: ArrayLike) -> np.ndarray:
        """Bytes on each GPU with `sub_batch` samples a pass."""
        return self.base_bytes + self.sample_bytes * np.asarray(sub_batch, dtype=np.float64)


@dataclass(frozen=True)
class Efficiency:
    """How far an optimiser step of a larger batch carries: Pollux' statistical efficiency (OSDI'21, Sec. 3.1).

    Attributes:
        initial_batch, largest_batch: smallest and largest batch (over all GPUs) that was validated.
        noise_scale: gradient noise scale var / sqr at the initial batch, in equal parts of the job's progress.
    """

    initial_batch: int
    largest_batch: int
    epochs: int  # of the whole job
    steps: Mapping[int, float]  # batch -> optimiser steps of the whole job
    noise_scale: tuple[float, ...]
    source: str  # where the numbers are from

    @property
    def progress(self) -> float:
        """The job's whole progress: its optimiser steps at the initial batch."""
        return float(self.steps[self.initial_batch])

    def gain(self, batch: ArrayLike, done: ArrayLike) -> np.ndarray:
        """Progress of a step of `batch` samples at the part `done`: (phi + 1) / (phi / scale + 1), at most scale."""
        part = np.asarray(done, dtype=np.float64) * len(self.noise_scale)
        index = np.clip(part.astype(np.int64), 0, len(self.noise_scale) - 1)
        phi = np.asarray(self.noise_scale, dtype=np.float64)[index]
        scale = np.asarray(batch, dtype=np.float64) / self.initial_batch
        return (phi + 1.0) / (phi / scale + 1.0)

    def steps_of(self, batch: float) -> float:
        """Steps of a whole job at a batch, >= 1: log-log between validated ones, beyond them as many samples."""
        return steps_at(self.steps, batch)


@dataclass(frozen=True)
class ModelProfile:
    """What is known of a model."""

    name: str  # as the file spells it
    source: str  # what the model is
    fits: Mapping[str, ThroughputFit]  # GPU type -> fit of its iteration time
    memory: MemoryLine | None  # its memory on a GPU; None: unknown
    gradient_bytes: float  # what is all-reduced in an iteration; nan: unknown
    efficiency: Efficiency | None  # for elastic schedulers; None: unknown

    def fit(self, gpu: str) -> ThroughputFit:
        """The fit on a GPU type; InputError, naming the model and what it has, where there is none."""
        return self.fits[choose(gpu, self.fits, f"GPU type of model {self.name}:")]

    def step_s(self, gpu: str, gpus: int, batch: int, gpus_per_machine: int = 4) -> float:
        """Seconds of one step of `batch` samples over all of `gpus`, on as few machines as hold them.

        A batch per GPU above the largest measured one is accumulated, in equal whole passes, as in Pollux' simulator.
        """
        fit = self.fit(gpu)
        local = math.ceil(batch / gpus)
        passes = math.ceil(local / fit.largest_batch)
        samples = math.ceil(local / passes)
        return float(fit.iteration_s(gpus, math.ceil(gpus / gpus_per_machine), passes * samples, samples))


@dataclass(frozen=True)
class Profiles:
    """Profiles by name; any spelling of a name finds them (model_names.plain)."""

    models: Mapping[str, ModelProfile]

    @property
    def names(self) -> list[str]:
        """As the files spell them."""
        return list(self.models)

    def get(self, model: str) -> ModelProfile | None:
        """The profile of a model, or None."""
        return self._by_plain.get(plain(model))

    def of(self, model: str) -> ModelProfile:
        """The profile of a model; InputError, with a suggestion, where there is none."""
        found = self.get(model)
        return found if found is not None else self.models[choose(model, self.models, "model (it has no profile):")]

    @functools.cached_property
    def _by_plain(self) -> dict[str, ModelProfile]:
        return {plain(name): profile for name, profile in self.models.items()}


@functools.cache
def shipped_profiles() -> Profiles:
    """The six models of the Pollux workloads (bert cifar10 deepspeech2 imagenet ncf yolov3) on t4, 2080ti and a100."""
    return Profiles(_read(SHIPPED))


def load_profiles(path: str | os.PathLike[str] = "") -> Profiles:
    """The shipped profiles and those of a file, which replace shipped ones of the same name, in any spelling.

    Args:
        path: a profile file, JSON; "" for none.

    Returns:
        The profiles by name of model: `load_profiles().of("bert").fit("t4")`.

    Raises:
        InputError: the file cannot be read, or one sentence with the place in it, the value and what was expected.
    """
    if not os.fspath(path):
        return shipped_profiles()
    own = _read(path)
    taken = {plain(name) for name in own}
    rest = {name: profile for name, profile in shipped_profiles().models.items() if plain(name) not in taken}
    return Profiles({**own, **rest})


def profile_of(model: str, profiles: Profiles | None = None) -> ModelProfile:
    """The profile of a model in any spelling, among the shipped ones or `profiles`; InputError where there is none."""
    return (profiles if profiles is not None else shipped_profiles()).of(model)


def _read(path: str | os.PathLike[str]) -> dict[str, ModelProfile]:
    entries = checked_models(load_mapping(path, "profiles"), f"profiles {os.fspath(path)!r}")
    return {name: _profile(name, entry) for name, entry in entries.items()}


def _profile(name: str, entry: Any) -> ModelProfile:
    fits = {}
    for gpu, fit in entry.fits.items():
        values = fit.model_dump()
        known: dict[str, Any] = {key: math.nan if value is None else value for key, value in values.items()}
        fits[gpu] = ThroughputFit(**known)
    efficiency = None
    if entry.efficiency is not None:
        values = entry.efficiency.model_dump()
        efficiency = Efficiency(**{**values, "noise_scale": tuple(values["noise_scale"])})
    memory = None if entry.memory is None else MemoryLine(**entry.memory.model_dump())
    gradient_bytes = math.nan if entry.gradient_bytes is None else entry.gradient_bytes
    return ModelProfile(name, entry.source, fits, memory, gradient_bytes, efficiency)
