"""Goodput: throughput times statistical efficiency, and the batch that has most of it (Pollux, OSDI'21, Sec. 3).

Progress counts in optimiser steps of the smallest batch. A step of a batch `scale` times as large makes

    gain = (var + sqr) / (var / scale + sqr)

of progress, where var and sqr are the variance and the squared norm of the gradient at the smallest batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

SIZES = 50  # batch sizes that are tried, in geometric steps
CLOSE = 1e-8  # two sizes are the same


class Application(Protocol):
    """What is trained: measured tables, or a fitted profile.

    Attributes:
        name: of the model.
        smallest_batch, largest_batch: over all GPUs; a job starts with the smallest.
        smallest_local, largest_local: samples per GPU and pass.
        progress: float64 (phases,), the progress at which the gradient noise changes; the last one is the job's end.
    """

    name: str
    smallest_local: int
    largest_local: int
    progress: np.ndarray

    @property
    def smallest_batch(self) -> int:
        """The batch size that progress and gain are relative to."""

    @property
    def largest_batch(self) -> int:
        """The largest batch size with which it converges."""

    def times_s(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Seconds of a pass that synchronises on a placement (GPUs of each node), and its exposed synchronisation."""

    def noise(self, batch: int, phase: int) -> tuple[float, float]:
        """Squared norm and variance of the gradient."""

    def steps_of(self, batch: float) -> float:
        """Optimiser steps of a whole training at a batch; at least 1."""


def steps_at(known: Mapping[int, float], batch: float) -> float:
    """Steps of a whole training at a batch, >= 1: log-log between known steps, beyond them as many samples."""
    sizes = np.array(sorted(known), dtype=float)
    inside = float(np.clip(batch, sizes[0], sizes[-1]))
    steps = np.exp(np.interp(np.log(inside), np.log(sizes), np.log([known[int(size)] for size in sizes])))
    return float(max(steps * inside / batch, 1.0))


def gain(noise: tuple[float, float], scale: float | np.ndarray) -> float | np.ndarray:
    """Progress of one optimiser step, in steps of the smallest batch; see the module. Paper: pollux, Sec. 3.1."""
    sqr, var = noise
    return (var + sqr) / (var / scale + sqr)


def split_batch(application: Application, batch: int, gpus: int) -> tuple[int, int]:
    """(samples per GPU and pass, passes before the one that synchronises) of a batch, at most the largest, on GPUs.

    A single GPU accumulates a batch above the smallest: one pass does not show the gradient's variance.
    """
    local = math.ceil(batch / gpus - CLOSE)
    extra = math.ceil(local / application.largest_local - CLOSE) - 1
    if gpus == 1 and batch > application.smallest_batch:
        extra = max(extra, 1)
    return _within(application, math.ceil(local / (extra + 1) - CLOSE), extra, gpus)


def _within(application: Application, local: int, extra: int, gpus: int) -> tuple[int, int]:
    return min(local, int(application.largest_batch / (gpus * (extra + 1)))), extra


class Goodput:
    """The batches that an application could run on 1 to `most` GPUs, and the goodput that each would have.

    Paper: pollux, Sec. 3.
    """

    def __init__(self, application: Application, most: int) -> None:
        self.application = application
        self.gpus = gpus = np.arange(1, most + 1)
        least = np.maximum(application.smallest_batch, application.smallest_local * gpus)
        local = np.geomspace(least, application.largest_batch, SIZES) / gpus
        extra = np.ceil(local / application.largest_local - CLOSE) - 1.0
        alone = (gpus == 1) & (local > application.smallest_batch + CLOSE)
        self.extra = np.where(alone, np.maximum(extra, 1.0), extra)
        self.local = np.ceil(local / (self.extra + 1.0) - CLOSE)
        batch = gpus * self.local * (self.extra + 1.0)
        self.scale = batch / application.smallest_batch
        fits = (application.smallest_local <= self.local) & (self.local <= application.largest_local)
        self.fits = fits.astype(np.float64)

    def table(self, fit: np.ndarray, noise: tuple[float, float], gpus: slice, nodes: Sequence[int]) -> np.ndarray:
        """The best goodput, progress per second, by (nodes, GPUs): (len(nodes), GPUs of the slice).

        Args:
            fit: throughput parameters (`fit_throughput`); only whether there is one node or more makes a difference.
            noise: squared norm and variance of the gradient.
            gpus: numbers of GPUs; slice(0, 4) is 1 to 4.
        """
        return np.array([rates.max(axis=0) for rates in self._rates(fit, noise, gpus, nodes)])

    def best_batch(self, fit: np.ndarray, noise: tuple[float, float], gpus: int, nodes: int) -> tuple[int, int]:
        """(samples per GPU and pass, further passes) of the batch with the best goodput."""
        column = slice(gpus - 1, gpus)
        (rates,) = self._rates(fit, noise, column, (nodes,))
        best = int(rates[:, 0].argmax())
        local, extra = int(self.local[best, gpus - 1]), int(self.extra[best, gpus - 1])
        return _within(self.application, local, extra, gpus)

    def _rates(
        self, fit: np.ndarray, noise: tuple[float, float], gpus: slice, nodes: Sequence[int]
    ) -> list[np.ndarray]:
        """Goodput of every batch size (SIZES, GPUs), by number of nodes; 0 where a pass is out of bounds."""
        a, b, ai, bi, an, bn, d = fit.tolist()
        compute_s = a + b * self.local[:, gpus]
        power = compute_s**d
        before_s = self.extra[:, gpus] * compute_s
        worth = gain(noise, self.scale[:, gpus]) * self.fits[:, gpus]
        number = self.gpus[gpus]
        found = []
        for count in nodes:
            first, more = (an, bn) if count > 1 else (ai, bi)
            sync_s = np.where(number > 1, first + more * np.maximum(number - 2, CLOSE), CLOSE)
            found.append(worth / (before_s + (power + sync_s**d) ** (1.0 / d)))
        return found
