"""Common parts of generators: checks, quantile tables, the weekly clock, bursts, and `deadlines=LOW/HIGH`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..jobs.workload import Workload

MOST_JOBS = 10_000_000
WEEK_S = 7 * 86400.0
DEADLINES = (
    0xDEAD  # stream of a seed's random numbers: the generator's own are a different one, so they stay as they are
)


def check_parameters(what: str, **values: float) -> None:
    """`jobs` from 1 to MOST_JOBS, anything else above 0 and finite; InputError naming the generator otherwise."""
    for key, value in values.items():
        if key == "jobs" and not 1 <= value <= MOST_JOBS:
            raise InputError(f"workload {what}: jobs={value}; expected 1 to {MOST_JOBS}")
        if not 0 < value < 1e12:
            raise InputError(f"workload {what}: {key}={value:g}; expected a number above 0, below 1e12")


def shares_of(counts: Mapping[int, int] | tuple[float, ...]) -> np.ndarray:
    """Counts or weights as probabilities, in their order."""
    weights = np.array(list(counts.values()) if isinstance(counts, Mapping) else counts, dtype=np.float64)
    return weights / weights.sum()


def choose_values(rng: np.random.Generator, n: int, values: Sequence[int], shares: np.ndarray) -> np.ndarray:
    """(n,) int64 draws of `values` with probabilities `shares`."""
    return choose_between(rng, n, np.asarray(values, dtype=np.int64), np.cumsum(shares))


def choose_between(rng: np.random.Generator, n: int, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(n,) draws of `values`; `edges` are the sums of their probabilities, of each and those before it."""
    index = edges.searchsorted(rng.random(n) * edges[-1], side="right")
    return values[np.minimum(index, len(values) - 1)]


def from_quantiles(
    rng: np.random.Generator, n: int, probabilities: Sequence[float], quantiles: Sequence[float]
) -> np.ndarray:
    """(n,) draws from a distribution given by its quantiles (> 0), interpolated in the logarithm."""
    return np.exp(np.interp(rng.random(n), probabilities, np.log(quantiles)))


def lognormal_gaps(rng: np.random.Generator, n: int, mean: float, median_over_mean: float) -> np.ndarray:
    """(n,) lognormal gaps; sigma = sqrt(2 ln(mean / median)), so the CV is sqrt((mean / median)^2 - 1)."""
    sigma = np.sqrt(-2 * np.log(median_over_mean))
    return mean * median_over_mean * np.exp(sigma * rng.standard_normal(n))


def weekly_clock(seconds: np.ndarray, hours: Sequence[float], weekdays: Sequence[float]) -> np.ndarray:
    """Ascending times >= 0 at a constant rate as times whose rate follows 24 hours and 7 weekdays; equal means."""
    rate = np.outer(weekdays, hours).ravel()
    work = np.concatenate([[0.0], np.cumsum(rate / rate.mean() * 3600.0)])
    week, inside = np.divmod(seconds, WEEK_S)
    return week * WEEK_S + np.interp(inside, work, np.arange(len(work)) * 3600.0)


def bursts(
    rng: np.random.Generator,
    n: int,
    mean_gap_s: float,
    *,
    burst_share: float,
    burst_jobs: float,
    spacing_s: float,
    clock: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """(n,) ascending arrivals: Poisson submissions on `clock`, a share of which are bursts of geometric size.

    Variance over mean of counts in a window that holds whole bursts is E[size^2] / E[size] of the submissions, with
    E[size] = 1 + q (B - 1) and E[size^2] = 1 + q (2 B^2 - B - 1), for q = burst_share and B = burst_jobs.
    """
    mean_size = 1 + burst_share * (burst_jobs - 1)
    size = np.where(rng.random(n) < burst_share, rng.geometric(1 / burst_jobs, n), 1)
    submitted_s = clock(np.cumsum(rng.exponential(mean_gap_s * mean_size, n)))
    needed = int(np.searchsorted(np.cumsum(size), n)) + 1
    owner = np.repeat(np.arange(needed), size[:needed])[:n]
    within = np.arange(n) - (np.cumsum(size) - size)[owner]
    return np.sort(submitted_s[owner] + spacing_s * np.where(within, within + rng.random(n) - 0.5, 0.0))


def tilted_shares(values: Sequence[int], shares: np.ndarray, exponent: float) -> np.ndarray:
    """`shares` times value^-exponent, normalised."""
    weights = shares * np.asarray(values, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def tilt_to_mean(values: Sequence[int], shares: np.ndarray, mean: float) -> float:
    """The exponent for which `tilted_shares` has this mean, by bisection in [-2, 8]."""
    low, high = -2.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        if tilted_shares(values, shares, middle) @ np.asarray(values) > mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def with_deadlines(name: str, generator: Callable[..., Workload]) -> Callable[..., Workload]:
    """The generator, which also takes `deadlines`: (LOW, HIGH), or one number for both; empty: none.

    A job's deadline is its arrival + isolated run time x a uniform factor from LOW to HIGH, > 0; below 1 it is always
    missed. Nothing else changes. `name`: for messages.
    """
    signature = inspect.signature(generator)

    @functools.wraps(generator)
    def drawn(*args: Any, deadlines: tuple[float, ...] = (), **given: Any) -> Workload:
        if not deadlines:
            return generator(*args, **given)
        low, high = _range(name, deadlines)
        workload = generator(*args, **given)
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        seed = np.random.SeedSequence(bound.arguments["seed"], spawn_key=(DEADLINES,))
        factor = np.random.default_rng(seed).uniform(low, high, len(workload))
        return replace(workload, deadline_s=workload.arrival_s + workload.duration_s * factor)

    added = inspect.Parameter("deadlines", inspect.Parameter.KEYWORD_ONLY, default=(), annotation="tuple[float, ...]")
    drawn.__annotations__ = {**generator.__annotations__, "deadlines": added.annotation}
    parameters = [*signature.parameters.values(), added]
    drawn.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return drawn


def _range(name: str, deadlines: tuple[float, ...]) -> tuple[float, float]:
    low, high = deadlines[0], deadlines[-1]
    if len(deadlines) > 2 or not 0.0 < low <= high < 1e6:
        given = "/".join(f"{value:g}" for value in deadlines)
        raise InputError(
            f"workload {name}: deadlines={given}; expected LOW/HIGH, in isolated run times: 0 < LOW <= HIGH < 1e6"
        )
    return low, high
