"""What elastic jobs train (goodput.py: Application), by the name of the model: from measured tables, or from fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.errors import InputError
from ..profiles.goodput import Application
from ..profiles.measured_tables import read_tables
from ..profiles.models import Efficiency, ModelProfile, Profiles, shipped_profiles
from ..profiles.throughput import ThroughputFit


class FittedApplication:
    """An application by its fitted times and its gradient noise scale, in equal parts of the progress (models.py).

    `smallest_local` is 1; of a noise scale, sqr is 1 and var the scale.
    """

    smallest_local = 1

    def __init__(self, name: str, fit: ThroughputFit, efficiency: Efficiency) -> None:
        self.name = name
        self.largest_local = fit.largest_batch
        parts = len(efficiency.noise_scale)
        self.progress = efficiency.progress * np.arange(1, parts + 1) / parts
        self._fit, self._efficiency = fit, efficiency

    @property
    def smallest_batch(self) -> int:
        """The batch size that progress and gain are relative to."""
        return self._efficiency.initial_batch

    @property
    def largest_batch(self) -> int:
        """The largest batch size that was validated."""
        return self._efficiency.largest_batch

    def times_s(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Seconds of a pass that synchronises on a placement (GPUs of each node), and its exposed synchronisation."""
        gpus = sum(placement)
        step_s = float(self._fit.iteration_s(gpus, len(placement), local))
        return step_s, 0.0 if gpus == 1 else step_s - float(self._fit.compute_s(local))

    def noise(self, batch: int, phase: int) -> tuple[float, float]:
        """Squared norm and variance of the gradient, up to a common factor."""
        return 1.0, float(self._efficiency.noise_scale[phase])

    def steps_of(self, batch: float) -> float:
        """Optimiser steps of a whole training at a batch; at least 1."""
        return self._efficiency.steps_of(batch)


def measured_applications(folder: str) -> Callable[[str], Application]:
    """Model name -> its measured tables, FOLDER/MODEL/ (measured_tables.py)."""
    return lambda model: read_tables(folder, model)


def fitted_applications(gpu: str, profiles: Profiles | None = None) -> Callable[[str], Application]:
    """Model -> its fits on a GPU type; a call raises InputError: an unknown model, without a fit or noise scale."""
    known = profiles or shipped_profiles()
    made: dict[str, Application] = {}

    def application_of(model: str) -> Application:
        profile = known.of(model)
        if profile.name not in made:
            made[profile.name] = _fitted(profile, gpu)
        return made[profile.name]

    return application_of


def _fitted(profile: ModelProfile, gpu: str) -> Application:
    if profile.efficiency is None:
        raise InputError(
            f"model {profile.name}: no efficiency in its profile; elastic jobs need a gradient noise scale"
        )
    return FittedApplication(profile.name, profile.fit(gpu), profile.efficiency)
