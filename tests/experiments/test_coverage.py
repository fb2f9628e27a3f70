"""How often intervals hold the truth: 10,000 draws of what the metrics of our environments look like over seeds."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.comparing.intervals import (
    FEWEST_TO_TELL,
    estimate,
    estimates_of,
    mean_error,
    paired_difference,
    paired_ratio,
    ratio_error,
)
from clustergym.experiments.playing.runs import Run
from clustergym.experiments.report.load import Entry

DRAWS = 10_000
SEEDS = (3, 5, 10, 50)
# Coefficients of variation over 100 seeds of the default settings: mean JCT 0.20 to 0.37 with a skewness of 0.4 to 1.3
# (one policy 2.4), makespan and slowdown up to 0.5; JCT over greedy's, workload by workload, 0.05 to 0.25.
SPREADS = (0.2, 0.35, 0.5)
NOISES = (0.05, 0.15, 0.3)


def lognormal(draw: np.random.Generator, sigma: float, count: int) -> np.ndarray:
    """Of mean 1; its skewness is 0.6, 1.1 and 1.8 for sigma 0.2, 0.35 and 0.5."""
    return draw.lognormal(-(sigma**2) / 2, sigma, (DRAWS, count))


def held(low: np.ndarray, truth: float, high: np.ndarray) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("sigma", SPREADS)
def test_intervals_of_means_hold_the_truth(sigma, count):
    values = lognormal(np.random.default_rng(1), sigma, count)
    error, mean = ratio_error(values, np.ones_like(values)), values.mean(-1)
    assert 0.92 <= held(mean * np.exp(-error), 1.0, mean * np.exp(error)) <= 0.97


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("sigma", [0.1, 0.35])
def test_of_means_that_are_skewed_to_the_left_too(sigma, count):
    """As GPU use is: at most 1, on light workloads much less."""
    values = 2.0 - lognormal(np.random.default_rng(2), sigma, count).clip(0.0, 2.0)
    truth = float(values.mean()) if sigma == 0.1 else 1.0
    error, mean = ratio_error(values, np.ones_like(values)), values.mean(-1)
    assert 0.92 <= held(mean * np.exp(-error), truth, mean * np.exp(error)) <= 0.97


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sigma", SPREADS)
def test_intervals_of_ratios_hold_the_truth(sigma, noise, count):
    """The same workloads under two policies, 0.9 to 1: the noise is what the policies make of each."""
    draw = np.random.default_rng(3)
    theirs = lognormal(draw, sigma, count)
    ours = 0.9 * theirs * lognormal(draw, noise, count)
    error, ratio = ratio_error(ours, theirs), ours.mean(-1) / theirs.mean(-1)
    low, high = ratio * np.exp(-error), ratio * np.exp(error)
    assert 0.92 <= held(low, 0.9, high) <= 0.97
    assert np.mean(high < 0.9) <= 0.05  # a false star, of a policy that is no better: 0.025 if nothing were skewed


@pytest.mark.parametrize("count", SEEDS)
def test_of_ratios_of_what_has_nothing_in_common_too(count):
    draw = np.random.default_rng(4)
    theirs, ours = lognormal(draw, 0.35, count), lognormal(draw, 0.35, count)
    error, ratio = ratio_error(ours, theirs), ours.mean(-1) / theirs.mean(-1)
    assert 0.92 <= held(ratio * np.exp(-error), 1.0, ratio * np.exp(error)) <= 0.97


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("sigma", "times"), [(0.2, 2.0), (0.35, 1.5), (0.35, 1.0), (0.5, 0.9)])
def test_intervals_of_differences_hold_the_truth(sigma, times, noise, count):
    draw = np.random.default_rng(5)
    theirs = lognormal(draw, sigma, count)
    off = times * theirs * lognormal(draw, noise, count) - theirs
    error, mean = mean_error(off), off.mean(-1)
    assert 0.92 <= held(mean - error, times - 1.0, mean + error) <= 0.97


def test_what_is_harder_is_held_less_often():
    """What docs/tutorials/evaluating.md says of them: a heavy tail, and a policy that fails on one workload in ten."""
    draw = np.random.default_rng(6)
    found = {}
    for count in (5, 10, 50):
        heavy = lognormal(draw, 1.0, count)
        error, mean = ratio_error(heavy, np.ones_like(heavy)), heavy.mean(-1)
        found["heavy", count] = held(mean * np.exp(-error), 1.0, mean * np.exp(error))
        theirs = lognormal(draw, 0.3, count)
        ours = theirs * lognormal(draw, 0.1, count) * np.where(draw.random((DRAWS, count)) < 0.1, 2.0, 1.0) / 1.1
        error, ratio = ratio_error(ours, theirs), ours.mean(-1) / theirs.mean(-1)
        found["rare", count] = held(ratio * np.exp(-error), 1.0, ratio * np.exp(error))
    assert found == pytest.approx(
        {("heavy", 5): 0.89, ("heavy", 10): 0.885, ("heavy", 50): 0.915}
        | {("rare", 5): 0.77, ("rare", 10): 0.745, ("rare", 50): 0.915},
        abs=0.015,
    )


def test_estimates_are_what_was_simulated():
    """1 and 3: mean 2; s = sqrt 2, so s / (sqrt 2 x 2) = 1/2 in the logarithm, times 12.706, Student's t of 2 runs."""
    found = estimate([1.0, 3.0])
    assert (found.mean, found.runs) == (2.0, 2)
    assert (found.low, found.high) == pytest.approx((2.0 * np.exp(-6.3531), 2.0 * np.exp(6.3531)), rel=1e-4)
    signed = estimate([1.0, 3.0], signed=True)
    assert (signed.low, signed.high) == pytest.approx((2.0 - 12.7062, 2.0 + 12.7062), rel=1e-4)
    assert estimate([-1.0, 3.0]).low == pytest.approx(1.0 - 2.0 * 12.7062, rel=1e-4)  # may be negative, as one is


def test_intervals_of_shares_end_at_one():
    """GPU use of 0.5 and 0.9: mean 0.7, and the interval of two runs would reach far beyond 1; that of JCTs does."""
    metrics = {"gpu_utilisation": (0.5, 0.9), "slo_violation_rate[user=ann]": (0.5, 0.9), "jct_mean": (0.5, 0.9)}
    runs = [
        Run("fifo", seed, {name: both[seed] for name, both in metrics.items()}, 1, np.array([1.0])) for seed in (0, 1)
    ]
    found = estimates_of(runs)
    assert [found[name].high for name in metrics][:2] == [1.0, 1.0] and found["jct_mean"].high > 10.0
    entry = Entry("fifo", "fifo", tuple(runs))
    assert entry.estimate("gpu_utilisation").high == 1.0
    assert all(0.0 < one.low < one.mean == 0.7 for one in found.values())


def test_a_ratio_turned_round_has_its_interval_turned_round():
    draw = np.random.default_rng(7)
    theirs = draw.lognormal(0.0, 0.3, 10)
    ours = 2.0 * theirs * draw.lognormal(0.0, 0.2, 10)
    found, turned = paired_ratio(ours, theirs), paired_ratio(theirs, ours)
    assert turned.mean == pytest.approx(1.0 / found.mean)
    assert (1.0 / turned.high, 1.0 / turned.low) == pytest.approx((found.low, found.high), rel=0.01)


def test_a_baseline_that_is_all_in_one_seed_tells_nothing():
    found = paired_ratio([1.0, 1.0], [0.0, 4.0])
    assert (found.mean, found.low, found.high) == (0.5, 0.0, np.inf)


def test_what_is_the_same_but_for_rounding_has_no_interval():
    theirs = [0.1, 0.7, 0.3, 1.1]
    assert paired_ratio([3.3 * value for value in theirs], theirs).is_sure
    assert estimate([0.1] * 10).mean == 0.1


def test_few_seeds_show_nothing():
    """A tenth less on every workload, to a percent: shown by 5 workloads, not by 4."""
    theirs = [10.0, 20.0, 12.0, 17.0, 15.0]
    ours = [8.9, 18.1, 10.8, 15.2, 13.6]
    assert paired_ratio(ours, theirs).high < 0.92
    assert paired_ratio(ours, theirs).is_below(1.0) and FEWEST_TO_TELL == 5
    assert not paired_ratio(ours[:4], theirs[:4]).is_below(1.0)
    assert paired_ratio(ours[:4], theirs[:4]).high < 1.0
    assert paired_difference(ours, theirs).is_below(0.0)
    assert not paired_ratio(theirs, theirs).is_below(1.1)  # the same: nothing varies, so nothing is shown
