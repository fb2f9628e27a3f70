"""Means over seeds, their ratios and differences, and their 95 % intervals.

An interval is Student's t with the jackknife's standard error, which leaves out one seed at a time. For quantities that
cannot be negative, and ratios of such, it is made for the logarithm: workloads are skewed to the right, so the interval
is longer upwards, never reaches below 0, and that of A over B is nearly the reciprocal of that of B over A.
tests/experiments/test_coverage.py measures how often intervals hold the truth; docs/tutorials/evaluating.md shows it.

Runs on one log whose blocks are drawn anew (`resampled:`) are no independent workloads: their mean comes to that of the
log, not to the truth, however many there are. There the interval is of another such log: the spread of one draw, that
is Student's t with the standard error of the mean times sqrt(runs + 1). Source: Efron, Bootstrap methods: another look
at the jackknife, Annals of Statistics 7(1), 1979: the spread of resamples is that of the estimate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...simulator.engine.metric_registry import METRICS
from ..playing.runs import Run, distinct, grouped, is_one

COVERAGE = 0.95
ROUNDING = 1e-12  # relative: values that differ by no more are the same
FEWEST_TO_TELL = 5  # runs; intervals of fewer are right on average, but hang on each single workload


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over seeds, or a ratio of two such means, and its 95 % interval.

    Attributes:
        mean: nan: there was nothing to average.
        low, high: the interval; equal to `mean` where there is none: one run, or the same value in all.
        runs: number of runs, or of pairs of runs.
    """

    mean: float
    low: float
    high: float
    runs: int = field(default=0, compare=False)

    @property
    def is_sure(self) -> bool:
        """Whether there is no interval: one run, or the same value in all."""
        return not self.high > self.low

    def is_below(self, bound: float) -> bool:
        """Whether the whole interval is below, and there are FEWEST_TO_TELL runs or more."""
        return self.runs >= FEWEST_TO_TELL and not self.is_sure and self.high < bound


UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"))


def estimate(
    values: Sequence[float], signed: bool = False, resampled: bool = False, most: float = math.inf
) -> Estimate:
    """Mean and 95 % interval of `values` of independent runs, one a seed; nan values are left out.

    The interval is symmetric where a value is negative, and with `signed`: values could be negative (differences). It
    ends at `most`, the largest value that there can be: 1 of shares. `resampled`: the runs are draws of one log.
    """
    finite = np.array(values, np.float64)
    finite = finite[np.isfinite(finite)]
    if not signed:
        found = paired_ratio(finite.tolist(), np.ones(len(finite)).tolist(), resampled)
        return replace(found, high=max(found.mean, min(found.high, most)))
    if not len(finite):
        return UNKNOWN
    mean = float(_mean(finite))
    if len(finite) == 1 or np.all(finite == finite[0]):
        return Estimate(mean, mean, mean, len(finite))
    half = float(mean_error(finite)) * _widening(len(finite), resampled)
    return Estimate(mean, mean - half, mean + half, len(finite))


def paired_ratio(values: Sequence[float], baseline: Sequence[float], resampled: bool = False) -> Estimate:
    """mean(values) / mean(baseline) and its 95 % interval: element i of both is one workload.

    It is the ratio of means, not the mean of ratios: a policy is judged on its total cost, and a workload on which the
    baseline happens to do well must not weigh more. Variation that both share is in no interval. Pairs with a nan are
    left out. `resampled`: the runs are draws of one log.
    """
    ours, theirs = _pairs(values, baseline)
    if not len(ours):
        return UNKNOWN
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = float(_mean(ours) / _mean(theirs))  # a baseline of zero has no ratio: inf or nan
        half = 0.0
        if len(ours) > 1 and np.isfinite(ratio) and ratio != 0.0:
            half = float(ratio_error(ours, theirs)) * _widening(len(ours), resampled)
        if half < ROUNDING:
            low, high = ratio, ratio
        elif min(ours.min(), theirs.min()) >= 0.0:
            low, high = float(ratio * np.exp(-half)), float(ratio * np.exp(half))
        else:
            low, high = ratio - abs(ratio) * half, ratio + abs(ratio) * half
    return Estimate(ratio, low, high, len(ours))


def paired_difference(values: Sequence[float], baseline: Sequence[float], resampled: bool = False) -> Estimate:
    """Mean of `values[i] - baseline[i]` and its 95 % interval; pairs with a nan are left out."""
    ours, theirs = _pairs(values, baseline)
    return estimate((ours - theirs).tolist(), signed=True, resampled=resampled)


def mean_error(values: np.ndarray) -> np.ndarray:
    """Half the 95 % interval of the mean of float64 (..., n), n > 1; float64 (...)."""
    count = values.shape[-1]
    return _quantile(count) * values.std(-1, ddof=1) / math.sqrt(count)


def ratio_error(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Half the 95 % interval of the logarithm of mean(ours) / mean(theirs), float64 (...), of float64 (..., n), n > 1.

    Without pair i the ratio is (1 - u_i) / (1 - v_i) times as large, u_i and v_i the pair's shares of the two sums (not
    0): the jackknife takes the standard error from these. With `theirs` all 1 it is that of a mean. It is inf where all
    of `theirs` is in one pair.
    """
    count = ours.shape[-1]
    share = theirs / theirs.sum(-1, keepdims=True)
    change = (ours / ours.sum(-1, keepdims=True) - share) / (1.0 - share)
    found = _quantile(count) * np.sqrt((count - 1) / count * np.sum(change**2, -1))
    return np.where(np.isfinite(found), found, np.inf)


def _pairs(values: Sequence[float], baseline: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = np.array(values, np.float64), np.array(baseline, np.float64)
    if ours.shape != theirs.shape:
        raise ValueError(f"{len(ours)} values and {len(theirs)} of the baseline: expected pairs")
    both = np.isfinite(ours) & np.isfinite(theirs)
    return ours[both], theirs[both]


def _mean(values: np.ndarray) -> np.float64:
    """Equal values have this mean to the last bit, which sum / number need not give."""
    return np.float64(values[0]) if np.all(values == values[0]) else np.float64(values.mean())


def _widening(count: int, resampled: bool) -> float:
    """Of the interval of a mean: to that of one more draw, with the error of the mean in it."""
    return math.sqrt(count + 1) if resampled else 1.0


@functools.cache
def _quantile(count: int) -> float:
    """Of Student's t: half the interval in standard errors, of so many runs."""
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, (1.0 + COVERAGE) / 2.0))


@dataclass(frozen=True)
class Comparison:
    """A metric of a policy against that of the baseline, on the seeds that both were played on.

    Attributes:
        ratio: mean over mean; see `paired_ratio`.
        difference: mean of the differences, in the metric's unit.
        lower: number of pairs of runs in which the policy's value is lower.
        seeds: number of pairs: seeds on which both have a value; 1 where all seeds give the same runs.
    """

    ratio: Estimate
    difference: Estimate
    lower: int
    seeds: int


def pairs(mine: Sequence[Run], base: Sequence[Run], metric: str = "jct_mean") -> tuple[np.ndarray, np.ndarray]:
    """A metric of two policies on the seeds that both were played on, float64 (pairs,) each.

    Pairs in which one has no value are left out. Where neither policy depends on the seed, there is one pair.
    """
    theirs = {run.seed: run.metrics.get(metric, math.nan) for run in base}
    found = [(run.metrics.get(metric, math.nan), theirs[run.seed]) for run in mine if run.seed in theirs]
    if found and is_one(mine) and is_one(base):
        del found[1:]
    values = np.array(found, np.float64).reshape(-1, 2)
    return _pairs(values[:, 0].tolist(), values[:, 1].tolist())


def against(runs: Sequence[Run], baseline: str, metric: str = "jct_mean") -> dict[str, Comparison]:
    """Policies compared with one of them, on the same workloads.

    Args:
        runs: of `evaluate` or `read_evaluation`, the same seeds of every policy.
        baseline: the name of the policy that the others are compared with.
        metric: the name of a metric of the runs.

    Returns:
        Policy -> comparison with `baseline`, itself included, in the order of the runs.
    """
    by_word = grouped(runs)
    base = by_word[baseline]
    return {name: compared(*pairs(mine, base, metric), is_resampled(mine)) for name, mine in by_word.items()}


def compared(values: np.ndarray, baseline: np.ndarray, resampled: bool = False) -> Comparison:
    """The comparison of pairs."""
    ours, theirs = values.tolist(), baseline.tolist()
    ratio, difference = (one(ours, theirs, resampled) for one in (paired_ratio, paired_difference))
    return Comparison(ratio, difference, int(np.sum(values < baseline)), len(values))


def by_policy(runs: Sequence[Run]) -> dict[str, dict[str, Estimate]]:
    """Policy -> metric -> estimate over its seeds, in the order of the runs; one run where all seeds give the same."""
    return {policy: estimates_of(mine) for policy, mine in grouped(runs).items()}


def estimates_of(runs: Sequence[Run]) -> dict[str, Estimate]:
    """Metric -> estimate over the seeds of one policy."""
    different = distinct(runs)
    return {name: estimate_of(different, name) for name in runs[0].metrics}


def estimate_of(runs: Sequence[Run], metric: str) -> Estimate:
    """Of a metric over runs that are not equal; also of a group of jobs, `gpu_utilisation[user=ann]`."""
    known = METRICS.get(metric.partition("[")[0])
    most = 1.0 if known is not None and known.unit == "share" else math.inf
    return estimate([run.metrics.get(metric, math.nan) for run in runs], resampled=is_resampled(runs), most=most)


def is_resampled(runs: Sequence[Run]) -> bool:
    """Whether the runs are draws of one log."""
    return any(run.is_resampled for run in runs)
