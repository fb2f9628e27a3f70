"""Means over seeds and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .evaluate import Run

RESAMPLES = 10_000
COVERAGE = 0.95


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over seeds, and its bootstrap interval; equal bounds where there is nothing to resample."""

    mean: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether there is no interval: one seed, or the same value for all."""
        return not self.high > self.low


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Mean and 95 % percentile-bootstrap interval of `values`, one a seed; nan values are left out.

    The resampling is seeded: the same values give the same interval.
    """
    finite = np.array(values, np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Estimate(float("nan"), float("nan"), float("nan"))
    if np.all(finite == finite[0]):
        return Estimate(float(finite[0]), float(finite[0]), float(finite[0]))
    draws = np.random.default_rng(seed).integers(len(finite), size=(RESAMPLES, len(finite)))
    tail = (1.0 - COVERAGE) / 2.0
    low, high = np.quantile(finite[draws].mean(axis=1), (tail, 1.0 - tail))
    return Estimate(float(finite.mean()), float(low), float(high))


def by_policy(runs: Sequence[Run]) -> dict[str, dict[str, Estimate]]:
    """Policy -> metric -> estimate over its seeds, in the order of the runs."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.policy, []).append(run)
    return {
        policy: {name: estimate([run.metrics[name] for run in mine]) for name in mine[0].metrics}
        for policy, mine in grouped.items()
    }
