"""Fits Equations 3, 4 and 7 of paper sjf-bsbf to measured iteration times, and writes them as a profile file.

Least squares of the logarithms of the iteration time and, where the wait for communication was measured, of the
computation (their difference), with a soft-L1 loss against bad rows, from several starts. Rows of one GPU have a
straight line. A constant or slope that the rows cannot tell is not guessed: with one gang size only in a tier its slope
in GPUs is 0, and a tier without rows stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..base.errors import InputError
from .measurements import Measurements
from .models import MemoryLine, ModelProfile
from .throughput import ThroughputFit

_LEAST_S, _MOST_S = 1e-9, 1e6
_MOST_OVERLAP = 10.0  # beyond it, t_iter is the larger of the two parts
_STARTS = (1.1, 2.0, 5.0)  # values of d
_SOFT = 0.1  # relative errors beyond it count less


@dataclass(frozen=True)
class Fitted:
    """One fit: the model, its GPU type, the measured rows and the fit with its errors."""

    model: str
    gpu: str
    rows: int
    fit: ThroughputFit


def fit_profiles(groups: Sequence[Measurements], source: str) -> tuple[list[Fitted], dict[str, ModelProfile]]:
    """Fit every model on every measured GPU type: the fits in order, and the profiles by model.

    `groups`: of `read_measurements`; `source`: where and how it was measured. InputError: rows that cannot tell a
    model's line, with the model, the GPU type and what is needed.
    """
    fitted = [Fitted(rows.model, rows.gpu, len(rows), fit_throughput(rows, source)) for rows in groups]
    profiles: dict[str, ModelProfile] = {}
    for model in dict.fromkeys(rows.model for rows in groups):
        fits = {one.gpu: one.fit for one in fitted if one.model == model}
        memory = fit_memory([rows for rows in groups if rows.model == model], source)
        profiles[model] = ModelProfile(model, source, fits, memory, math.nan, None)
    return fitted, profiles


def fit_throughput(rows: Measurements, source: str) -> ThroughputFit:
    """The fit of one model on one GPU type, with its errors over all rows; raises as `fit_profiles`."""
    place = f"measurements of model {rows.model!r} on {rows.gpu!r}"
    several = rows.gpus > 1
    a, b, ai, bi, an, bn, d = (math.nan,) * 6 + (1.0,)
    if several.any():
        _check_batches(rows.batch[several], f"{place}, several GPUs")
        a, b, ai, bi, an, bn, d = _fit_gangs(rows, several)
    if (~several).any():
        _check_batches(rows.batch[~several], f"{place}, one GPU")
        one_a, one_b = _line(rows.batch[~several], rows.step_s[~several])
    else:
        one_a, one_b = a, b  # Eq. 3 without communication
    largest = int(rows.batch.max())
    fit = ThroughputFit(a, b, ai, bi, an, bn, d, one_a, one_b, largest, source)
    return ThroughputFit(**{**asdict(fit), "error": errors(fit, rows)})


def errors(fit: ThroughputFit, rows: Measurements) -> dict[str, float]:
    """Errors of the iteration time over rows, percent: mean (MAPE), median and 95th percentile."""
    off = np.abs(fit.iteration_s(rows.gpus, rows.nodes, rows.batch) / rows.step_s - 1.0) * 100.0
    return {"mape": float(off.mean()), "median": float(np.median(off)), "p95": float(np.quantile(off, 0.95))}


def fit_memory(groups: Sequence[Measurements], source: str) -> MemoryLine | None:
    """Line through the measured memory over all GPU types, neither part below 0; None where nothing was measured."""
    batch = np.concatenate([rows.batch for rows in groups])
    memory = np.concatenate([rows.memory_bytes for rows in groups])
    known = np.isfinite(memory)
    if not known.any():
        return None
    _check_batches(batch[known], f"memory of model {groups[0].model!r}")
    base, sample = _line(batch[known], memory[known])
    return MemoryLine(base, sample, source)


def profile_file(profiles: dict[str, ModelProfile]) -> dict[str, Any]:
    """The content of a profile file, as `load_profiles` reads it."""
    return {"models": {name: _entry(profile) for name, profile in profiles.items()}}


def _entry(profile: ModelProfile) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": profile.source, "fits": {gpu: _known(f) for gpu, f in profile.fits.items()}}
    if profile.memory is not None:
        entry["memory"] = asdict(profile.memory)
    if math.isfinite(profile.gradient_bytes):
        entry["gradient_bytes"] = profile.gradient_bytes
    if profile.efficiency is not None:
        entry["efficiency"] = asdict(profile.efficiency)
    return entry


def _known(fit: ThroughputFit) -> dict[str, Any]:
    return {key: value for key, value in asdict(fit).items() if not (isinstance(value, float) and math.isnan(value))}


def _check_batches(batch: np.ndarray, place: str) -> None:
    if len(np.unique(batch)) < 2:
        raise InputError(f"{place}: all rows have the batch {batch[0]:g}; expected at least two, for a line")


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    from scipy.optimize import nnls

    (constant, slope), _ = nnls(np.stack([1.0 / y, x / y], axis=1), np.ones(len(y)))
    return float(constant), float(slope)


def _fit_gangs(rows: Measurements, several: np.ndarray) -> tuple[float, ...]:
    """(a, b, ai, bi, an, bn, d) of the rows of several GPUs; nan for a tier without rows."""
    from scipy.optimize import least_squares

    gpus, nodes, batch, step_s = (column[several] for column in (rows.gpus, rows.nodes, rows.batch, rows.step_s))
    compute_s = step_s - rows.sync_s[several]  # nan where it was not measured
    timed = compute_s > 0
    spread = nodes > 1
    free = np.array([True, True, *_determined(gpus[~spread]), *_determined(gpus[spread]), True])

    def fitted(point: np.ndarray) -> np.ndarray:
        values = np.zeros(7)
        values[free] = point
        values[:6][free[:6]] = np.exp(values[:6][free[:6]])
        return values

    def residuals(point: np.ndarray) -> np.ndarray:
        a, b, ai, bi, an, bn, d = fitted(point)
        fit = ThroughputFit(a, b, ai, bi, an, bn, d, a, b, 1, "")
        off = np.log(fit.iteration_s(gpus, nodes, batch) / step_s)
        return np.concatenate([off, np.log(fit.compute_s(batch[timed]) / compute_s[timed])])

    a, b = _line(batch, np.where(timed, compute_s, step_s * 0.7))
    rest_s = max(float(np.median(step_s)) - a - b * float(np.median(batch)), 0.1 * float(np.median(step_s)))
    guess = np.array([max(a, 1e-3 * rest_s), max(b, 1e-9), rest_s, 0.05 * rest_s, rest_s, 0.05 * rest_s])
    low = np.append(np.full(6, math.log(_LEAST_S)), 1.0)[free]
    high = np.append(np.full(6, math.log(_MOST_S)), _MOST_OVERLAP)[free]
    outcomes = [
        least_squares(residuals, np.append(np.log(guess), d)[free], bounds=(low, high), loss="soft_l1", f_scale=_SOFT)
        for d in _STARTS
    ]
    values = fitted(min(outcomes, key=lambda outcome: float(outcome.cost)).x)
    values[2:4] = values[2:4] if (~spread).any() else math.nan
    values[4:6] = values[4:6] if spread.any() else math.nan
    return tuple(values.tolist())


def _determined(gpus: np.ndarray) -> tuple[bool, bool]:
    return len(gpus) > 0, len(np.unique(np.maximum(gpus, 2))) > 1
