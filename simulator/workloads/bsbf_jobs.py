"""Jobs with which paper sjf-bsbf's tables can be compared: `bsbf-tables` (III and IV) and `bsbf-table2` (II).

The paper's own jobs are not published. What it says of them is fixed here; the rest are parameters. data/bsbf_fits.json
has five sets of them, best first (`fit=1` to `fit=5`), with which the published rows of the policies that share no GPU
(FIFO, SJF, Tiresias) come out nearest (`clustergym reproduce bsbf-calibration`). No other row was looked at.

Setting: sjf-bsbf, Tables II, III and IV.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..jobs.workload import Workload
from ..numerics.float_sums import sum_in_order
from ..profiles.models import shipped_profiles
from ..profiles.throughput import GPU_TYPES
from .draws import check_parameters, choose_values
from .sharing_jobs import (
    MODELS,
    check_share,
    check_window,
    class_means,
    class_of,
    job_arrays,
    listed,
    models_by_class,
    scaled_to_means,
    submissions,
)

FITS = Path(__file__).resolve().parent / "data" / "bsbf_fits.json"
LARGE_GANGS, SMALL_GANGS = (8, 12, 16, 24, 32), (1, 2, 4)
TESTBED_LARGE, TESTBED_SMALL = (12, 16), (1, 2, 4, 8)
MODELS_BY = ("gpu-hours", "submission")
ITERATIONS = (100.0, 5000.0)  # of a job of the testbed
MOST_SIGMA = 3.0
HOUR_S = 3600.0


def bsbf_tables(
    jobs: int = 240,
    gpu: str = "2080ti",
    fit: int = 1,
    hours: float = 8.0,
    start: int = 2,
    large_share: float | None = None,
    large_gangs: tuple[float, ...] = (),
    small_gangs: tuple[float, ...] = (),
    mean_hours: tuple[float, ...] = (),
    sigma: float | None = None,
    models: str = "gpu-hours",
    batches: tuple[int, ...] = (1, 2),
    seed: int = 0,
) -> Workload:
    """Jobs with which Tables III (240) and IV (480 jobs) of paper sjf-bsbf can be compared, on 64 GPUs.

    Arrivals are those of `philly-sample`. A job is large (more than 4 GPUs) or small; its gang and its isolated run
    time, lognormal, are drawn for its class, independently. Its GPU-hours say the model, as in Pollux' artifact.
    Iterations are the run time over theirs, rounded.

    Args:
        jobs: all within `hours`; hours, start: see `philly_sample`.
        gpu: t4, 2080ti (the paper's GPU) or a100: whose iteration times.
        fit: 1 (the best) to 5: source of the parameters below that are not given.
        large_share: of the jobs, 0 to 1, rounded.
        large_gangs: weights of 8, 12, 16, 24 and 32 GPUs. small_gangs: of 1, 2 and 4.
        mean_hours: LARGE/SMALL, mean isolated run time of each class, hours; sigma: of their logarithm, 0 to 3.
        models: by the job's own `gpu-hours`, or by those of the `submission` in Philly, whatever the job has here.
        batches: the batch per GPU is the largest measured one over one of these whole numbers, equal weights. No fit
            depends on batches or models; what fits a GPU beside another job does.
    """
    what = "bsbf-tables"
    check_parameters(what, jobs=jobs)
    choose(gpu, GPU_TYPES, f"gpu of workload {what}:")
    check_window(what, hours, start)
    best = fitted(what, fit)
    share = best["large_share"] if large_share is None else large_share
    check_share(what, share)
    mean, spread = _run_times(what, "mean_hours", mean_hours, sigma, best)
    large_weights = _weights(what, "large_gangs", large_gangs or best["large_gangs"], LARGE_GANGS)
    small_weights = _weights(what, "small_gangs", small_gangs or best["small_gangs"], SMALL_GANGS)
    parts = _parts(what, batches)
    rng = np.random.default_rng(seed)
    arrival_s, kind = submissions(rng, jobs, start * HOUR_S, hours * HOUR_S)
    model = models_by_class(rng, kind)
    large = rng.permutation(jobs) < round(share * jobs)
    sizes = (LARGE_GANGS, large_weights), (SMALL_GANGS, small_weights)
    gpus = np.where(large, *(choose_values(rng, jobs, *each) for each in sizes))
    run_s = scaled_to_means(np.exp(spread * rng.standard_normal(jobs)), large, mean * HOUR_S)
    part = rng.choice(parts, jobs)
    if choose(models, MODELS_BY, f"models of workload {what}:") == "gpu-hours":  # the last draw: all else is the same
        model = models_by_class(rng, class_of(gpus * run_s / HOUR_S))
    batch = gpus * np.maximum(_largest_batches(gpu)[model] // part, 1)
    return job_arrays(what, arrival_s, model, gpus, batch, gpu, hours * HOUR_S, run_s=run_s)


def bsbf_table2(
    jobs: int = 30,
    gpu: str = "2080ti",
    fit: int = 1,
    span_s: float | None = None,
    large_gangs: tuple[float, ...] = (),
    small_gangs: tuple[float, ...] = (),
    mean_s: tuple[float, ...] = (),
    sigma: float | None = None,
    batches: tuple[int, ...] = (),
    seed: int = 0,
) -> Workload:
    """Jobs with which Table II of paper sjf-bsbf, its testbed of 4 machines of 4 GPUs, can be compared.

    From the paper: 30 jobs, two thirds of them with at most 8 GPUs and a third with 12 or 16, 100 to 5,000 iterations,
    the six models, here equally often. The rest are parameters. So few jobs differ much from draw to draw: every sample
    has gangs and models as often as their weights say, to whole jobs.

    Args:
        gpu: t4, 2080ti (the paper's GPU) or a100: whose iteration times.
        fit: 1 (the best) to 5: source of the parameters below that are not given.
        span_s: arrivals are uniform within so many seconds.
        large_gangs: weights of 12 and 16 GPUs. small_gangs: of 1, 2, 4 and 8.
        mean_s: LARGE/SMALL, mean isolated run time of each class, seconds, before the bounds of the iterations.
        sigma: of the run times' logarithm, in both classes, 0 to 3.
        batches: the batch per GPU is the largest measured one divided by one of these whole numbers, equal weights.
    """
    what = "bsbf-table2"
    best = fitted(what, fit)
    span = best["span_s"] if span_s is None else span_s
    check_parameters(what, jobs=jobs, span_s=span)
    choose(gpu, GPU_TYPES, f"gpu of workload {what}:")
    mean, spread = _run_times(what, "mean_s", mean_s, sigma, best)
    parts = _parts(what, batches or best["batches"])
    large_weights = _weights(what, "large_gangs", large_gangs or best["large_gangs"], TESTBED_LARGE)
    small_weights = _weights(what, "small_gangs", small_gangs or best["small_gangs"], TESTBED_SMALL)
    rng = np.random.default_rng(seed)
    large = rng.permutation(jobs) >= round(jobs * 2 / 3)
    gpus = np.empty(jobs, dtype=np.int64)
    for some, gangs, weights in ((large, TESTBED_LARGE, large_weights), (~large, TESTBED_SMALL, small_weights)):
        gpus[some] = dealt(rng, int(some.sum()), gangs, weights)
    model = dealt(rng, jobs, range(len(MODELS)), np.ones(len(MODELS)))
    run_s = scaled_to_means(np.exp(spread * rng.standard_normal(jobs)), large, mean)
    batch = gpus * np.maximum(_largest_batches(gpu)[model] // rng.choice(parts, jobs), 1)
    arrival_s = np.sort(rng.random(jobs)) * span
    return job_arrays(what, arrival_s, model, gpus, batch, gpu, span, run_s=run_s, within=ITERATIONS)


def dealt(rng: np.random.Generator, count: int, values: Sequence[int], weights: np.ndarray) -> np.ndarray:
    """`count` of the values in random order, each as often as its weight says: whole parts, then largest remainders."""
    exact = count * weights / weights.sum()
    times = np.floor(exact).astype(np.int64)
    rest = np.argsort(times - exact, kind="stable")[: count - int(times.sum())]
    times[rest] += 1
    return rng.permutation(np.repeat(np.asarray(values, dtype=np.int64), times))


def fitted(what: str, fit: int) -> Mapping[str, Any]:
    """The parameters of a generator's fit, 1 (the best) to 5; InputError: there is no such fit."""
    fits = shipped_fits()[what]
    if not 1 <= fit <= len(fits):
        raise InputError(f"workload {what}: fit={fit}; expected 1 (the best) to {len(fits)}")
    return fits[fit - 1]


@lru_cache(maxsize=1)
def shipped_fits() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """By generator, its sets of parameters, best first."""
    return json.loads(FITS.read_text(encoding="utf-8"))["fits"]


def _run_times(
    what: str, name: str, means: Sequence[float], given: float | None, best: Mapping[str, Any]
) -> tuple[np.ndarray, float]:
    sigma = best["sigma"] if given is None else given
    if not 0 <= sigma <= MOST_SIGMA:
        raise InputError(f"workload {what}: sigma={sigma:g}; expected 0 to {MOST_SIGMA:g}")
    return class_means(what, name, means or best[name]), sigma


def _parts(what: str, batches: Sequence[int]) -> tuple[int, ...]:
    if not batches or not all(1 <= part <= 64 for part in batches):
        raise InputError(f"workload {what}: batches={listed(batches)}; expected whole numbers from 1 to 64")
    return tuple(batches)


def _weights(what: str, name: str, weights: Sequence[float], gangs: Sequence[int]) -> np.ndarray:
    if len(weights) != len(gangs) or not all(0 <= weight < np.inf for weight in weights) or not sum(weights) > 0:
        raise InputError(
            f"workload {what}: {name}={listed(weights)}; expected {len(gangs)} weights >= 0, of {listed(gangs)} GPUs"
        )
    return np.asarray(weights, dtype=np.float64) / sum_in_order(weights)


def _largest_batches(gpu: str) -> np.ndarray:
    return np.array([shipped_profiles().of(name).fit(gpu).largest_batch for name in MODELS], dtype=np.int64)
