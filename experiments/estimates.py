"""Means over seeds, their ratios and differences, and how sure they are: the one home of intervals."""

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


UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"))


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Mean and 95 % percentile-bootstrap interval of `values`, one a seed; nan values are left out.

    The resampling is seeded: the same values give the same interval.
    """
    finite = np.array(values, np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return UNKNOWN
    if np.all(finite == finite[0]):
        return Estimate(float(finite[0]), float(finite[0]), float(finite[0]))
    return _interval(float(finite.mean()), _resampled(finite, _draws(len(finite), seed)))


def paired_ratio(values: Sequence[float], baseline: Sequence[float], seed: int = 0) -> Estimate:
    """mean(values) / mean(baseline) and its 95 % interval by a paired bootstrap: element i of both is one workload.

    The ratio of means, not the mean of ratios: a policy is judged on what it costs in all, and a workload on which the
    baseline happens to do well must not weigh more. Workloads are drawn again, each with both its values, so what they
    have in common is in no interval. Pairs with a nan are left out.
    """
    ours, theirs = _pairs(values, baseline)
    if not len(ours):
        return UNKNOWN
    with np.errstate(divide="ignore", invalid="ignore"):  # a baseline of zero has no ratio: inf or nan
        ratio = float(ours.mean() / theirs.mean())
        if len(ours) < 2 or np.array_equal(ours, theirs):
            return Estimate(ratio, ratio, ratio)
        draws = _draws(len(ours), seed)
        return _interval(ratio, _resampled(ours, draws) / _resampled(theirs, draws))


def paired_difference(values: Sequence[float], baseline: Sequence[float], seed: int = 0) -> Estimate:
    """Mean of `values[i] - baseline[i]` and its 95 % bootstrap interval; pairs with a nan are left out."""
    ours, theirs = _pairs(values, baseline)
    return estimate((ours - theirs).tolist(), seed)


def _pairs(values: Sequence[float], baseline: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = np.array(values, np.float64), np.array(baseline, np.float64)
    if ours.shape != theirs.shape:
        raise ValueError(f"{len(ours)} values and {len(theirs)} of the baseline: expected pairs")
    both = np.isfinite(ours) & np.isfinite(theirs)
    return ours[both], theirs[both]


def _draws(count: int, seed: int) -> np.ndarray:
    """Which values each resample takes, (RESAMPLES, count)."""
    return np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))


def _resampled(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    return values[draws].mean(axis=1)


def _interval(value: float, resampled: np.ndarray) -> Estimate:
    tail = (1.0 - COVERAGE) / 2.0
    low, high = np.quantile(resampled, (tail, 1.0 - tail))
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True)
class Comparison:
    """A metric of a policy against that of the baseline, on the seeds that both were played on.

    Attributes:
        ratio: mean over mean; see `paired_ratio`.
        difference: mean of the differences, in the metric's unit.
        lower: on how many seeds the policy's value is lower.
        seeds: how many seeds both have a value on.
    """

    ratio: Estimate
    difference: Estimate
    lower: int
    seeds: int


def against(runs: Sequence[Run], baseline: str, metric: str = "jct_mean") -> dict[str, Comparison]:
    """Policy -> comparison with the policy `baseline`, itself included, in the order of the runs."""
    values: dict[str, dict[int, float]] = {}
    for run in runs:
        values.setdefault(run.policy, {})[run.seed] = run.metrics[metric]
    base = values[baseline]
    found = {}
    for policy, mine in values.items():
        shared = [seed for seed in mine if seed in base]
        ours, theirs = _pairs([mine[seed] for seed in shared], [base[seed] for seed in shared])
        found[policy] = Comparison(
            paired_ratio(ours.tolist(), theirs.tolist()),
            paired_difference(ours.tolist(), theirs.tolist()),
            int(np.sum(ours < theirs)),
            len(ours),
        )
    return found


def by_policy(runs: Sequence[Run]) -> dict[str, dict[str, Estimate]]:
    """Policy -> metric -> estimate over its seeds, in the order of the runs."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.policy, []).append(run)
    return {
        policy: {name: estimate([run.metrics[name] for run in mine]) for name in mine[0].metrics}
        for policy, mine in grouped.items()
    }
