"""Generators of workloads: any size, vectorised, seeded (the same parameters and seed give the same arrays).

Keyword parameters are those of the word `poisson:jobs=200,load=0.9`; all but `mast-like` also take `deadlines=LOW/HIGH`
(draws.py). trace_statistics.py has the fitted statistics and their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..jobs.workload import LARGEST_GANG, LONGEST_S, Workload, bad_texts
from . import trace_statistics as traces
from .bsbf_jobs import bsbf_table2, bsbf_tables
from .cassini_jobs import cassini_dynamic, cassini_dynamic_mp, cassini_multigpu, cassini_poisson, cassini_snapshot
from .draws import (
    bursts,
    check_parameters,
    choose_between,
    choose_values,
    from_quantiles,
    lognormal_gaps,
    shares_of,
    tilt_to_mean,
    tilted_shares,
    weekly_clock,
    with_deadlines,
)
from .harmony_jobs import harmony_like
from .mast_jobs import mast_like
from .sharing_jobs import bsbf_physical, philly_sample


def poisson(
    jobs: int = 128,
    load: float = 1.1,
    cluster_gpus: int = 64,
    backlog: int = 0,
    rate: float | None = None,
    gpus: tuple[int, ...] = (1, 2, 4, 8, 16),
    gpu_shares: tuple[float, ...] = (),
    median_s: float = 1800.0,
    sigma: float = 1.2,
    models: tuple[str, ...] = traces.CHRONUS_MODELS,
    seed: int = 0,
) -> Workload:
    """Poisson arrivals at a load, lognormal durations, independent of the gang and the model.

    Args:
        jobs: how many, 1 to 10 million.
        load: offered GPU-seconds per second / cluster_gpus, in the mean of the distributions, > 0; `duration_s` is the
            isolated run time, so it is the same on every network.
        cluster_gpus: the cluster that `load` refers to.
        backlog: the first so many jobs are there at time 0, the others arrive from then on.
        rate: jobs per hour, in place of `load`.
        gpus, gpu_shares: gang sizes and their weights (none: equal).
        median_s, sigma: of the duration; its mean is median_s x exp(sigma^2 / 2). Durations are at least 1 s.
        models: drawn with equal weights; the default are the five of the default network table.
    """
    check_parameters("poisson", jobs=jobs, load=load, cluster_gpus=cluster_gpus, median_s=median_s)
    if not 0 <= backlog <= jobs:
        raise InputError(f"workload poisson: backlog={backlog}; expected 0 to jobs={jobs}")
    rng = np.random.default_rng(seed)
    sizes, duration_s, code = _lognormal_jobs("poisson", rng, jobs, gpus, gpu_shares, median_s, sigma, models)
    if rate is None:
        rate = 3600.0 * load * cluster_gpus / (_mean_gpus(gpus, gpu_shares) * median_s * np.exp(sigma**2 / 2))
    check_parameters("poisson", rate=rate)
    gaps_s = rng.exponential(3600.0 / rate, jobs)
    gaps_s[:backlog] = 0.0
    arrival_s = gaps_s.cumsum()
    if arrival_s[-1] <= LONGEST_S and _are_sound(gpus, models):
        return Workload.drawn("poisson", arrival_s, sizes, duration_s, tuple(models) or ("",), code)
    return Workload.from_arrays("poisson", arrival_s, sizes, duration_s, model=_options(tuple(models))[code])


def batch(
    jobs: int = 128,
    gpus: tuple[int, ...] = (1, 2, 4, 8, 16),
    gpu_shares: tuple[float, ...] = (),
    median_s: float = 1800.0,
    sigma: float = 1.2,
    models: tuple[str, ...] = traces.CHRONUS_MODELS,
    seed: int = 0,
) -> Workload:
    """The jobs of `poisson` with the same parameters and seed, all there at time 0."""
    check_parameters("batch", jobs=jobs, median_s=median_s)
    rng = np.random.default_rng(seed)
    sizes, duration_s, code = _lognormal_jobs("batch", rng, jobs, gpus, gpu_shares, median_s, sigma, models)
    return Workload.from_arrays("batch", np.zeros(jobs), sizes, duration_s, model=_options(tuple(models))[code])


def dally_like(
    jobs: int = 500,
    arrivals: Literal["batch", "poisson"] = "batch",
    jobs_per_day: float = 100.0,
    models: tuple[str, ...] = (),
    scale: Literal["none", "gang"] = "none",
    seed: int = 0,
) -> Workload:
    """Jobs like the 500-job set of paper dally's authors.

    Fitted to: GPUs 1 54 %, 2 2.6, 4 10.4, 8 21.8, 16 8.4, 32 2.2, 40/48/56 0.2 each; duration quantiles by gang (1,
    2-4, 8, above), over all P50 55,975 s, P90 203,004 s, mean 93,988 s; model shares by gang, over all MobileNetV3,
    BERT and ResNet50 25 % each, AlexNet 10.6, ResNet18 7.6, VGG 6.8. Iterations are the duration over the model's
    median time per iteration, 32 samples a batch. The trace's durations were measured on the job's GPUs, so they are
    isolated run times; the authors' simulator takes them for computing alone (`duration=compute`).

    Args:
        arrivals: all at time 0, or Poisson.
        jobs_per_day: mean of the Poisson arrivals (the paper's sets go from 10 to 100).
        models: only these of the six, in the proportions that they have to each other (equal ones where the set
            has none of them among gangs of a size).
        scale: `gang` divides every duration by the job's GPUs, as the authors' simulator does.

    Setting: dally, Sec. V-A.
    """
    check_parameters("dally-like", jobs=jobs, jobs_per_day=jobs_per_day)
    for name in models:
        choose(name, traces.DALLY_MODELS, "model of workload dally-like:")
    choose(scale, ("none", "gang"), "scale of workload dally-like:")
    chosen = np.array([not models or name in models for name in traces.DALLY_MODELS])
    rng = np.random.default_rng(seed)
    sizes = choose_values(rng, jobs, list(traces.DALLY_GPUS), shares_of(traces.DALLY_GPUS))
    duration_s = _durations_by_gang(rng, sizes, traces.DALLY_PROBABILITIES, traces.DALLY_DURATION_S)
    model = np.zeros(jobs, dtype=np.int64)
    for members, counts in _classes(sizes, traces.DALLY_MODEL_JOBS):
        options = range(len(traces.DALLY_MODELS))
        weights = tuple((np.array(counts) * chosen).tolist())
        weights = weights if any(weights) else tuple(chosen.astype(float).tolist())
        model[members] = choose_values(rng, len(members), list(options), shares_of(weights))
    arrival_s = np.zeros(jobs) if arrivals == "batch" else np.cumsum(rng.exponential(86400.0 / jobs_per_day, jobs))
    iterations = duration_s / np.array(traces.DALLY_ITERATION_S)[model]
    if scale == "gang":
        duration_s = duration_s / sizes
    return Workload.from_arrays(
        "dally-like",
        arrival_s,
        sizes,
        duration_s,
        iterations=iterations,
        model=np.array(traces.DALLY_MODELS, dtype=object)[model],
        batch_size=np.full(jobs, 32),
    )


def philly_like(
    jobs: int = 1000,
    jobs_per_day: float = traces.PHILLY_JOBS_PER_DAY,
    models: tuple[str, ...] = traces.CHRONUS_MODELS,
    seed: int = 0,
) -> Workload:
    """Jobs like Microsoft's Philly cluster in autumn 2017.

    Fitted to: GPUs 1 93.2 %, 2 2.2, 4 2.3, 8 2.0, 16 .24, 32 .08; duration quantiles by gang (1, 2, 3-4, 5-8, above),
    over all P50 1,144 s, P90 11,265 s, 8-GPU jobs about half of the GPU time; arrivals by hour (.64 at 14 h to 2.09 at
    7 h of the mean) and weekday (Friday 1.44, weekend .60), gaps of mean 114.4 s, median 8 s and CV 15 (lognormal on
    the weekly clock); shares of the 15 virtual clusters. The trace has no models: they are drawn with equal weights (an
    assumption). Time 0 is a Monday, 0 h.

    Args:
        jobs_per_day: mean over a long time; burstiness stays.
        models: drawn with equal weights.
    """
    check_parameters("philly-like", jobs=jobs, jobs_per_day=jobs_per_day)
    rng = np.random.default_rng(seed)
    sizes = choose_values(rng, jobs, list(traces.PHILLY_GPUS), shares_of(traces.PHILLY_GPUS))
    duration_s = _durations_by_gang(rng, sizes, traces.PHILLY_PROBABILITIES, traces.PHILLY_DURATION_S)
    tenants = np.array(list(traces.PHILLY_TENANTS), dtype=object)
    tenant = choose_values(rng, jobs, list(range(len(tenants))), shares_of(tuple(traces.PHILLY_TENANTS.values())))
    names = _models(rng, jobs, models)
    steps_s = lognormal_gaps(rng, jobs, 86400.0 / jobs_per_day, traces.PHILLY_GAP_MEDIAN_S / traces.PHILLY_GAP_MEAN_S)
    arrival_s = weekly_clock(np.cumsum(steps_s) - steps_s[0], traces.PHILLY_HOURS, traces.PHILLY_WEEKDAYS)
    return Workload.from_arrays("philly-like", arrival_s, sizes, duration_s, model=names, tenant=tenants[tenant])


def helios_like(
    jobs: int = 1000,
    jobs_per_day: float = traces.VENUS_GPU_JOBS_PER_DAY,
    mean_gpus: float = traces.VENUS_MEAN_GPUS,
    models: tuple[str, ...] = traces.CHRONUS_MODELS,
    seed: int = 0,
) -> Workload:
    """GPU jobs like SenseTime's Helios cluster Venus in 2020.

    Fitted to: 28.82 GPU jobs an hour, by hour (.19 at 6 h to 1.73 at 16 h) and weekday (weekend .68 and .77), variance
    / mean of the counts per 10 minutes 15.4 (one submission in 200 is a burst of 40 jobs in the mean, geometric, a
    second apart: our shape for the measured number); mean of 6.73 GPUs a job; duration P50 93 s, P90 2,528 s, mean
    5,651 s. The whole log is not to be had: durations are those of a slice of two virtual clusters, and the gangs are
    that slice's, whose very large jobs are damped by a power of the size so that the mean is the cluster's. Models:
    equal weights (an assumption). Time 0 is a Monday, 0 h.

    Args:
        jobs_per_day: mean over a long time; burstiness stays.
        mean_gpus: the mean gang that the damping aims at, 1.5 to 45.
        models: drawn with equal weights.
    """
    check_parameters("helios-like", jobs=jobs, jobs_per_day=jobs_per_day)
    if not 1.5 <= mean_gpus <= 45:
        raise InputError(f"workload helios-like: mean_gpus={mean_gpus:g}; expected 1.5 to 45")
    rng = np.random.default_rng(seed)
    gangs = list(traces.VENUS_SLICE_GPUS)
    slice_shares = shares_of(traces.VENUS_SLICE_GPUS)
    sizes = choose_values(
        rng, jobs, gangs, tilted_shares(gangs, slice_shares, tilt_to_mean(gangs, slice_shares, mean_gpus))
    )
    duration_s = from_quantiles(rng, jobs, traces.VENUS_PROBABILITIES, traces.VENUS_SLICE_DURATION_S)
    names = _models(rng, jobs, models)
    arrival_s = bursts(
        rng,
        jobs,
        86400.0 / jobs_per_day,
        burst_share=0.005,
        burst_jobs=40.0,
        spacing_s=1.0,
        clock=lambda seconds: weekly_clock(seconds, traces.VENUS_HOURS, traces.VENUS_WEEKDAYS),
    )
    return Workload.from_arrays("helios-like", arrival_s - arrival_s[0], sizes, duration_s, model=names)


@lru_cache(maxsize=64)
def _mean_gpus(gpus: tuple[int, ...], gpu_shares: tuple[float, ...]) -> float:
    weights = np.ones(len(gpus)) if not gpu_shares else np.array(gpu_shares)
    return float(np.average(gpus, weights=weights))


@lru_cache(maxsize=64)
def _are_sound(gpus: tuple[int, ...], models: tuple[str, ...]) -> bool:
    return max(gpus) <= LARGEST_GANG and not len(bad_texts(models))


_OWN: Mapping[str, Callable[..., Workload]] = {
    "poisson": poisson,
    "batch": batch,
    "dally-like": dally_like,
    "philly-like": philly_like,
    "helios-like": helios_like,
    "philly-sample": philly_sample,
    "bsbf-tables": bsbf_tables,
    "bsbf-table2": bsbf_table2,
    "bsbf-physical": bsbf_physical,
    "cassini-poisson": cassini_poisson,
    "cassini-dynamic": cassini_dynamic,
    "cassini-dynamic-mp": cassini_dynamic_mp,
    "cassini-multigpu": cassini_multigpu,
    "cassini-snapshot": cassini_snapshot,
    "harmony-like": harmony_like,
}
# In regions a level limits how late a job may start, whenever it ends.
GENERATORS: Mapping[str, Callable[..., Workload]] = {
    **{name: with_deadlines(name, generator) for name, generator in _OWN.items()},
    "mast-like": mast_like,
}


def _lognormal_jobs(
    what: str,
    rng: np.random.Generator,
    jobs: int,
    gpus: tuple[int, ...],
    gpu_shares: tuple[float, ...],
    median_s: float,
    sigma: float,
    models: tuple[str, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(gpus, duration_s, index of the model) of every job; drawn in this order, so `batch` and `poisson` agree."""
    values, edges = _sizes(what, tuple(gpus), tuple(gpu_shares))
    if not 0 <= sigma <= 5:
        raise InputError(f"workload {what}: sigma={sigma:g}; expected 0 to 5")
    sizes = choose_between(rng, jobs, values, edges)
    duration_s = np.minimum(np.maximum(median_s * np.exp(sigma * rng.standard_normal(jobs)), 1.0), LONGEST_S)
    return sizes, duration_s, rng.integers(0, max(1, len(models)), jobs)


@lru_cache(maxsize=64)
def _sizes(what: str, gpus: tuple[int, ...], gpu_shares: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Gang sizes, and where their probabilities end."""
    if not gpus or min(gpus) < 1:
        raise InputError(f"workload {what}: gpus={'/'.join(map(str, gpus))}; expected gang sizes of at least 1")
    shares = gpu_shares or (1.0,) * len(gpus)
    if len(shares) != len(gpus) or not all(0 <= share < np.inf for share in shares) or not sum(shares) > 0:
        raise InputError(
            f"workload {what}: gpu_shares={'/'.join(f'{share:g}' for share in shares)}; "
            f"expected {len(gpus)} weights >= 0, one for each of gpus"
        )
    return np.asarray(gpus, dtype=np.int64), shares_of(tuple(shares)).cumsum()


def _models(rng: np.random.Generator, jobs: int, models: tuple[str, ...]) -> np.ndarray:
    return _options(tuple(models))[rng.integers(0, max(1, len(models)), jobs)]


@lru_cache(maxsize=64)
def _options(models: tuple[str, ...]) -> np.ndarray:
    return np.array(models or ("",), dtype=object)


def _classes(sizes: np.ndarray, table: Mapping[int, tuple[float, ...]]) -> list[tuple[np.ndarray, tuple[float, ...]]]:
    """(indices of the jobs, row) for every class of gangs; a class goes from its key to the next."""
    code = np.searchsorted(list(table), sizes, side="right") - 1
    return [(np.flatnonzero(code == i), row) for i, row in enumerate(table.values())]


def _durations_by_gang(
    rng: np.random.Generator, sizes: np.ndarray, shares: tuple[float, ...], table: Mapping[int, tuple[float, ...]]
) -> np.ndarray:
    duration_s = np.empty(len(sizes))
    for members, quantiles_s in _classes(sizes, table):
        duration_s[members] = from_quantiles(rng, len(members), shares, quantiles_s)
    return duration_s
