"""Generators of paper sjf-bsbf's workloads: the models of the Pollux workloads, with their profiles' iteration times.

`batch_size` is over all GPUs of a job. Seconds per iteration are the profile's on that GPU type at the best placement
on machines of 4 GPUs, with a batch per GPU above the largest measured one accumulated (ModelProfile.step_s).

Setting: sjf-bsbf, Sec. VI-A.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..jobs.workload import Workload
from ..profiles.models import ModelProfile, shipped_profiles
from ..profiles.throughput import GPU_TYPES
from . import trace_statistics
from .draws import check_parameters, choose_values

PHILLY_DAY = Path(__file__).resolve().parent / "data" / "philly_day.csv"
BIN_S = 600.0
MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
CLASS_GPU_HOURS = (1.0, 10.0, 100.0)  # the first of each class but the lowest
# GPU-hours under 1, 10, 100, 1,000: the models that the Pollux artifact gives to such jobs, with equal weights.
CLASS_MODELS = (("cifar10", "ncf"), ("deepspeech2", "bert"), ("yolov3",), ("imagenet",))
GANGS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
EFFICIENCY = (0.5, 0.8)  # Pollux, OSDI'21, Sec. 5.2
LARGE = 4  # paper sjf-bsbf: jobs of more GPUs are large
GPUS_PER_MACHINE = 4

Configuration = tuple[int, int]  # GPUs, batch over all of them
_Value = Callable[[ModelProfile, int, int], float]
_Mix = tuple[Sequence[Configuration], Sequence[float]]  # what a job may ask, and the weights


def philly_sample(
    jobs: int = 240,
    gpu: str = "2080ti",
    hours: float = 8.0,
    start: int = 2,
    large_share: float | None = None,
    gangs: Literal["pollux", "philly"] = "pollux",
    mean_hours: tuple[float, ...] = (),
    cluster_gpus: int = 64,
    seed: int = 0,
) -> Workload:
    """Jobs sampled from Philly's busiest hours with Pollux' six models: paper sjf-bsbf's simulations (120 to 480 jobs).

    The paper (Sec. VI-A) follows Pollux, so this is the generator of Pollux' artifact: jobs of at least 60 s and under
    1,000 GPU-hours that Philly received in a window of the day, over all days of the trace; the model by the original
    GPU-hours (under 1 cifar10 or ncf, under 10 deepspeech2 or bert, under 100 yolov3, else imagenet); GPUs and batch
    drawn among the model's configurations of 50 to 80 % scaling efficiency (`configurations`), ncf on one GPU;
    iterations that train the model to its end. Within ten minutes arrivals are uniform. In the artifact's window, 2 to
    10 h, 78.3/15.2/4.6/1.9 % of the jobs are in the four classes.

    Args:
        jobs: how many, all within `hours`.
        gpu: t4, 2080ti (the paper's GPU) or a100: whose fits count.
        hours, start: the window, in hours, and the hour of the day at which it begins; it may pass midnight.
        large_share: at most this share of the jobs asks more than 4 GPUs (Tables III and IV: 12.3 %); None: as many as
            it comes (about half). Large jobs are made small in order of their class, the fewest GPU-hours first, at
            random within it; they take one of the model's configurations with at most 4 GPUs, its largest gang where
            none is of 50 to 80 %.
        gangs: pollux, as above; or philly: gang sizes of all Philly's jobs (1 GPU 93.2 %, 2 and 4 2.2 and 2.3, 8 2.0,
            16 .24, 32 .08), whatever the model, each with the batch with which the job ends first.
        mean_hours: LARGE/SMALL: run times of jobs of more than 4 GPUs, and of the others, scaled to these means, in
            hours, and iterations with them; none: the model's training, to its end.
        cluster_gpus: no configuration asks more.
    """
    what = "philly-sample"
    check_parameters(what, jobs=jobs, cluster_gpus=cluster_gpus)
    choose(gpu, GPU_TYPES, f"gpu of workload {what}:")
    check_window(what, hours, start)
    check_share(what, 1.0 if large_share is None else large_share)
    means = class_means(what, "mean_hours", mean_hours) if mean_hours else None
    rng = np.random.default_rng(seed)
    arrival_s, kind = submissions(rng, jobs, start * 3600.0, hours * 3600.0)
    model, pick = models_by_class(rng, kind), rng.random((2, jobs))
    mix = _philly_gangs if gangs == "philly" else _pollux_gangs
    gpus, batch = _drawn(model, lambda name: mix(name, gpu, cluster_gpus, small=False), pick[0])
    if large_share is not None:
        order = np.lexsort((rng.random(jobs), kind))
        large = order[gpus[order] > LARGE]
        cut = large[: max(len(large) - round(large_share * jobs), 0)]
        gpus[cut], batch[cut] = _drawn(model[cut], lambda name: mix(name, gpu, cluster_gpus, small=True), pick[1, cut])
    jobs_of = partial(job_arrays, what, arrival_s, model, gpus, batch, gpu, hours * 3600.0)
    workload = jobs_of(iterations=_by_group(_steps, model, gpus, batch))
    run_s = None if means is None else scaled_to_means(workload.duration_s, gpus > LARGE, means * 3600.0)
    return workload if run_s is None else jobs_of(run_s=run_s)


def bsbf_physical(jobs: int = 30, gpu: str = "2080ti", span_s: float = 1000.0, seed: int = 0) -> Workload:
    """Jobs like those of paper sjf-bsbf's testbed, 4 machines of 4 GPUs (Sec. VI-A); `bsbf-table2` fits Table II.

    From the paper: 30 jobs, two thirds of them with at most 8 GPUs and a third with 12 or 16, 100 to 5,000 iterations,
    the six models. Ours: 1, 2, 4 or 8 and 12 or 16 GPUs, the models, and a batch per GPU of the largest measured one,
    its half or its quarter, each with equal weights; iterations with the density 1 / x^2, of a total work near the
    published one (48,000 GPU-seconds in the mean); uniform arrivals over `span_s` seconds. `gpu`: t4, 2080ti (the
    paper's) or a100: whose fits count.
    """
    what = "bsbf-physical"
    check_parameters(what, jobs=jobs, span_s=span_s)
    choose(gpu, GPU_TYPES, f"gpu of workload {what}:")
    rng = np.random.default_rng(seed)
    small = rng.permutation(jobs) < round(jobs * 2 / 3)
    gpus = np.where(small, rng.choice([1, 2, 4, 8], jobs), rng.choice([12, 16], jobs)).astype(np.int64)
    model = rng.integers(0, len(MODELS), jobs)
    least, most = 100.0, 5000.0
    steps = np.round(1.0 / (1.0 / least - rng.random(jobs) * (1.0 / least - 1.0 / most)))
    largest = np.array([shipped_profiles().of(name).fit(gpu).largest_batch for name in MODELS], dtype=np.int64)
    local = largest[model] // rng.choice([1, 2, 4], jobs)
    arrival_s = np.sort(rng.random(jobs)) * span_s
    return job_arrays(what, arrival_s - arrival_s[0], model, gpus, local * gpus, gpu, span_s, iterations=steps)


@lru_cache(maxsize=256)
def configurations(model: str, gpu: str, cluster_gpus: int = 64) -> tuple[Configuration, ...]:
    """The (GPUs, batch) of a shipped model that scale with 50 to 80 % efficiency on a GPU type, as Pollux' artifact.

    As Pollux' artifact: for each gang size the batch with which the job ends first; efficiency is the time on one GPU,
    with its best batch, over (GPUs x the time on them). One GPU where none is in the range, and for ncf.
    """
    alone, rest = _best(model, gpu, cluster_gpus)
    low, high = EFFICIENCY
    chosen = [] if model == "ncf" else [one for one, efficiency in rest if low <= efficiency <= high]
    return tuple(chosen) or (alone,)


@lru_cache(maxsize=256)
def small_configurations(model: str, gpu: str, cluster_gpus: int = 64) -> tuple[Configuration, ...]:
    """Those of `configurations` with at most 4 GPUs; where there is none, the best batch on the largest such gang."""
    alone, rest = _best(model, gpu, min(cluster_gpus, LARGE))
    few = tuple(one for one in configurations(model, gpu, cluster_gpus) if one[0] <= LARGE)
    return few or ((rest[-1][0] if rest else alone),)


def _best(model: str, gpu: str, cluster_gpus: int) -> tuple[Configuration, list[tuple[Configuration, float]]]:
    profile = shipped_profiles().of(model)
    assert profile.efficiency is not None  # all shipped ones have it
    steps = profile.efficiency.steps
    timed = []
    for gang in GANGS:
        if gang <= cluster_gpus:
            options = [(steps[batch] * profile.step_s(gpu, gang, batch, GPUS_PER_MACHINE), batch) for batch in steps]
            timed.append((gang, *min(option for option in options if option[1] >= gang)))
    _, alone_s, alone_batch = timed[0]
    return (1, alone_batch), [((gang, batch), alone_s / (gang * seconds)) for gang, seconds, batch in timed[1:]]


def check_share(what: str, large_share: float) -> None:
    """Refuse what is no share."""
    if not 0 <= large_share <= 1:
        raise InputError(f"workload {what}: large_share={large_share:g}; expected a share from 0 to 1")


def check_window(what: str, hours: float, start: int) -> None:
    """Refuse a window that is no part of a day."""
    if not 1 / 6 <= hours <= 24:
        raise InputError(f"workload {what}: hours={hours:g}; expected 1/6 to 24")
    if not 0 <= start <= 23:
        raise InputError(f"workload {what}: start={start}; expected an hour of the day, 0 to 23")


def _drawn(model: np.ndarray, mix: Callable[[str], _Mix], pick: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gpus, batch = np.empty(len(model), dtype=np.int64), np.empty(len(model), dtype=np.int64)
    for i, name in enumerate(MODELS):
        members = np.flatnonzero(model == i)
        options, weights = mix(name)
        edges = np.cumsum(weights) / np.sum(weights)
        index = np.minimum(np.searchsorted(edges, pick[members], side="right"), len(options) - 1)
        chosen = np.array(options)[index]
        gpus[members], batch[members] = chosen[:, 0], chosen[:, 1]
    return gpus, batch


def _pollux_gangs(model: str, gpu: str, cluster_gpus: int, *, small: bool) -> _Mix:
    options = (small_configurations if small else configurations)(model, gpu, cluster_gpus)
    return options, [1.0] * len(options)


def _philly_gangs(model: str, gpu: str, cluster_gpus: int, *, small: bool) -> _Mix:
    alone, rest = _best(model, gpu, min(cluster_gpus, LARGE) if small else cluster_gpus)
    options = [one for one in (alone, *(one for one, _ in rest)) if one[0] in trace_statistics.PHILLY_GPUS]
    return options, [float(trace_statistics.PHILLY_GPUS[gang]) for gang, _ in options]


def scaled_to_means(run_s: np.ndarray, large: np.ndarray, means_s: Sequence[float] | np.ndarray) -> np.ndarray:
    """`run_s`, scaled to the mean means_s[0] for `large` jobs and means_s[1] for the others, whatever the seed."""
    scaled = np.array(run_s, dtype=np.float64)
    for members, mean_s in zip((large, ~large), means_s, strict=True):
        if members.any():
            scaled[members] *= mean_s / scaled[members].mean()
    return scaled


def class_means(what: str, name: str, means: Sequence[float]) -> np.ndarray:
    """The means of large and small jobs; InputError: anything but two numbers above 0."""
    if len(means) != 2 or not all(0 < mean < 1e6 for mean in means):
        raise InputError(f"workload {what}: {name}={listed(means)}; expected LARGE/SMALL, two numbers above 0")
    return np.array(means, dtype=np.float64)


def listed(values: Sequence[float]) -> str:
    """Numbers as a word has them."""
    return "/".join(f"{value:g}" for value in values)


def job_arrays(
    what: str,
    arrival_s: np.ndarray,
    model: np.ndarray,
    gpus: np.ndarray,
    batch: np.ndarray,
    gpu: str,
    window_s: float,
    *,
    iterations: np.ndarray | None = None,
    run_s: np.ndarray | None = None,
    within: tuple[float, float] = (1.0, np.inf),
) -> Workload:
    """The workload `what` of jobs with the profiles' iteration times on a GPU type; `batch` is over all GPUs of a job.

    Args:
        model: index in MODELS.
        window_s: the time within which they are submitted.
        iterations, run_s: one of the two: iterations, or about so many seconds alone, in whole iterations.
        within: least and most iterations with `run_s`.
    """
    step_s = _by_group(lambda profile, n, size: profile.step_s(gpu, n, size, GPUS_PER_MACHINE), model, gpus, batch)
    if run_s is not None:
        iterations = np.clip(np.round(run_s / step_s), *within)
    assert iterations is not None  # one of the two
    named = np.array(MODELS, dtype=object)[model]
    rest = {"iterations": iterations, "iteration_s": step_s, "model": named, "batch_size": batch}
    workload = Workload.from_arrays(what, arrival_s, gpus, iterations * step_s, **rest)
    return replace(workload, window_s=window_s)


def _steps(profile: ModelProfile, _gpus: int, batch: int) -> float:
    assert profile.efficiency is not None  # all shipped ones have it
    return profile.efficiency.steps_of(batch)


def _by_group(value: _Value, model: np.ndarray, gpus: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """value(profile, GPUs, batch) of every job, computed once for all that have the three in common."""
    key = (model << 56) | (gpus << 40) | batch  # a model's index below 2^6, gangs below 2^16, batches below 2^40
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    profiles = shipped_profiles()
    values = [value(profiles.of(MODELS[model[i]]), int(gpus[i]), int(batch[i])) for i in first]
    return np.array(values, dtype=np.float64)[index]


def class_of(gpu_hours: np.ndarray) -> np.ndarray:
    """The class of GPU-hours of every job (see CLASS_MODELS)."""
    return np.searchsorted(CLASS_GPU_HOURS, gpu_hours, side="right")


def models_by_class(rng: np.random.Generator, kind: np.ndarray) -> np.ndarray:
    """The model, an index in MODELS, of every job of a class of GPU-hours (see CLASS_MODELS)."""
    model = np.empty(len(kind), dtype=np.int64)
    for i, names in enumerate(CLASS_MODELS):
        members = np.flatnonzero(kind == i)
        model[members] = np.array([MODELS.index(name) for name in names])[rng.integers(0, len(names), len(members))]
    return model


def submissions(rng: np.random.Generator, jobs: int, start_s: float, length_s: float) -> tuple[np.ndarray, np.ndarray]:
    """(ascending arrival from the window's start, class of GPU-hours) of every job."""
    counts = _philly_day()
    begin_s = (np.arange(len(counts)) * BIN_S - start_s) % 86400.0  # of each bin, after the window's start
    width_s = np.clip(length_s - begin_s, 0.0, BIN_S)
    weights = (counts * (width_s / BIN_S)[:, None]).ravel()
    cell = choose_values(rng, jobs, range(len(weights)), weights / weights.sum())
    row, kind = np.divmod(cell, counts.shape[1])
    arrival_s = begin_s[row] + rng.random(jobs) * width_s[row]
    order = np.argsort(arrival_s, kind="stable")
    return arrival_s[order], kind[order]


@lru_cache(maxsize=1)
def _philly_day() -> np.ndarray:
    """(144, 4) jobs by ten minutes of the day and class of GPU-hours."""
    lines = [line for line in PHILLY_DAY.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    counts = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(lines))[1:]])
    counts.flags.writeable = False
    return counts
