"""Generators of paper cassini's traces: the 13 models of Table 3 on a cluster of servers with one or two GPUs.

The paper gives (Sec. 5.1, Table 3): all models equally likely, 200 to 1,000 iterations, 1 to 12 workers asked, a range
of batches per GPU for each model. Assumed: all of these are uniform and independent. Hyper-parameters stay as drawn
(the paper's Themis tunes workers).

`model` is `NAME`, `NAME/STRATEGY` or `NAME/STRATEGY/HIDDEN`: how a GPT model is parallelised, and its hidden size where
it is not the listed one (profiles/cassini_models.py). `batch_size` is over all workers. Seconds per iteration are those
of the model's phases alone on its links; a gang on one server does not need the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..jobs.workload import Workload
from ..profiles.cassini_models import HYBRID_SERVERS, cassini_models, phases_of
from .draws import check_parameters

ITERATIONS = (200, 1000)  # Sec. 5.1
MOST_WORKERS = 12  # Sec. 5.1
MOST_GANG = 4096
MOST_DRAWN = 1_000_000  # jobs of one trace; `hours` may ask for more
MODEL_PARALLEL = ("GPT1", "GPT2", "GPT3", "DLRM")  # Table 3
SPLITS = ("pipeline", "tensor", "hybrid")
GPT2_HIDDEN = ("", "/1184")  # Sec. 5.2: GPT2-A has 1536, which is the listed one, GPT2-B 1184
BATCHES = 16  # of a range, evenly spread: for the mean that a load refers to
# Table 2: model and batch per GPU.
SNAPSHOTS = {
    1: (("WideResNet101", 800), ("VGG16", 1400)),
    2: (("VGG19", 1400), ("VGG16", 1700), ("ResNet50", 1600)),
    3: (("VGG19", 1024), ("VGG16", 1200)),
    4: (("RoBERTa", 12), ("RoBERTa", 12)),
    5: (("BERT", 8), ("VGG19", 1400), ("WideResNet101", 800)),
}
Parallel = Literal["data", "model"]
Jobs = tuple[Sequence[str], np.ndarray, np.ndarray]  # model, workers and batch per GPU of each


def cassini_poisson(
    load: float = 0.8,
    cluster_gpus: int = 24,
    jobs: int = 100,
    hours: float | None = None,
    parallel: Parallel = "data",
    models: tuple[str, ...] = (),
    workers: tuple[int, ...] = (1, MOST_WORKERS),
    gangs: tuple[int, ...] = (),
    gpus_per_machine: int = 1,
    gbps: float | None = None,
    iteration_s: float | None = None,
    spread: float = 0.0,
    seed: int = 0,
) -> Workload:
    """Poisson arrivals of paper cassini's 13 models at a load.

    Sec. 5.1: the load is "the average fraction of GPUs that are serving active jobs", 80 to 100 % in the paper. Here it
    is what is offered: arrivals per second x mean GPU-seconds of a job alone / cluster_gpus; contention adds to it.

    Args:
        load: see above, > 0.
        cluster_gpus: the cluster that it refers to; no job asks more workers than it has.
        hours: as many as arrive in so many hours instead of `jobs`, the first at 0.
        parallel: `data`: GPTs are data parallel, DLRM has its own pattern (Figure 11). `model`: GPT1, GPT2, GPT3 and
            DLRM only, GPTs split (Figure 12): pipeline, tensor, or, with a multiple of 4 workers, hybrid, and GPT2 of
            one of the two hidden sizes of Sec. 5.2, each equally likely.
        models: only these of them, each equally likely; none: all.
        workers: LOW/HIGH: the fewest and the most that are asked, 1 to 12.
        gangs: the numbers of workers that are asked instead, each equally likely, up to 4096; none: `workers`.
        gpus_per_machine: of the cluster; a gang that one machine holds does not send.
        gbps: top rate of what a worker sends, as `gbps` of network contention; None: 45.
        iteration_s: every job's iteration takes so long alone, computing and sending in proportion; None: as the model,
            batch and workers say. The paper takes periods with a small common multiple for granted (Sec. 3).
        spread: each iteration is drawn evenly up to this share shorter or longer than `iteration_s`, 0 to below 1.

    Setting: cassini, Sec. 5.1.
    """
    what = "cassini-poisson"
    check_parameters(what, load=load, cluster_gpus=cluster_gpus, jobs=jobs, hours=1.0 if hours is None else hours)
    check_parameters(what, gpus_per_machine=gpus_per_machine, gbps=1.0 if gbps is None else gbps)
    asked = _asked(what, workers, gangs, cluster_gpus)
    known = np.array(_names(parallel, models), dtype=object)
    rng, on = np.random.default_rng(seed), (gpus_per_machine, gbps)
    gap_s = mean_gpu_s(parallel, asked, tuple(known.tolist()), iteration_s, *on) / (load * cluster_gpus)
    arrival_s = _arrivals(what, rng, gap_s, jobs, hours)
    jobs = len(arrival_s)
    names = known[rng.integers(0, len(known), jobs)].tolist()
    drawn = _drawn(rng, names, parallel, np.array(asked)[rng.integers(0, len(asked), jobs)])
    return _with_periods(_workload(what, rng, arrival_s, drawn, *on), rng, iteration_s, spread)


def cassini_dynamic(cluster_gpus: int = 24, arrive_s: float = 5.0, seed: int = 0) -> Workload:
    """DLRM and ResNet50 come to a cluster that is busy with other jobs (paper cassini, Sec. 5.3, Figure 13).

    Assumed: the newcomers ask 2 workers or more, together at most half of the cluster; jobs of all 13 models (GPTs data
    parallel) are there at time 0 and hold the rest of it exactly; the last of them asks what is left.

    Args:
        cluster_gpus: at least 8.
        arrive_s: when both newcomers arrive, seconds; the shortest jobs last about so long.

    Setting: cassini, Sec. 5.3, Figure 13.
    """
    return _dynamic("cassini-dynamic", cluster_gpus, arrive_s, ("DLRM", "ResNet50"), "data", seed)


def cassini_dynamic_mp(cluster_gpus: int = 24, arrive_s: float = 5.0, seed: int = 0) -> Workload:
    """GPT1, GPT2, GPT3 and DLRM come to a cluster busy with such jobs, all model parallel (Sec. 5.4, Figure 14).

    "multiple GPT and DLRM models" in the text: one of each. The rest as in `cassini-dynamic` and in `cassini-poisson`
    with `parallel=model`. `cluster_gpus`: at least 16. `arrive_s`: of all newcomers, seconds.

    Setting: cassini, Sec. 5.4, Figure 14.
    """
    return _dynamic("cassini-dynamic-mp", cluster_gpus, arrive_s, MODEL_PARALLEL, "model", seed)


def cassini_multigpu(arrive_s: float = 5.0, seed: int = 0) -> Workload:
    """XLM, ResNet50 and others on 6 servers of two GPUs, then DLRM at `arrive_s`: paper cassini, Sec. 5.6, Figure 16.

    From the text: XLM, ResNet50 and the newcomer DLRM ask three GPUs each, "a mix of data parallel and model parallel
    jobs", and the scheduler chooses DLRM's partner on a server. So four of the 12 GPUs are free when it comes: two more
    are held by a job of one of the 13 models, GPTs data parallel or split, each equally likely.

    Setting: cassini, Sec. 5.6, Figure 16.
    """
    what = "cassini-multigpu"
    check_parameters(what, arrive_s=arrive_s)
    rng = np.random.default_rng(seed)
    names = _names("any")
    there = [("XLM", 3), ("ResNet50", 3), (names[rng.integers(len(names))], 2)]
    return _arriving(what, rng, there, [("DLRM", 3)], arrive_s, "any", gpus_per_machine=2)


def cassini_snapshot(id: int = 1, workers: int = 4, seed: int = 0) -> Workload:
    """The competing jobs of one snapshot of paper cassini, Table 2, all there at time 0; `seed`: of iterations.

    `id`: 1 to 5. `workers`: of every job, 2 to 12; the table does not say how many. InputError: out of range.

    Setting: cassini, Table 2.
    """
    what = "cassini-snapshot"
    if id not in SNAPSHOTS:
        raise InputError(f"workload {what}: id={id}; expected 1 to {len(SNAPSHOTS)}")
    if not 2 <= workers <= MOST_WORKERS:
        raise InputError(f"workload {what}: workers={workers}; expected 2 to {MOST_WORKERS}")
    names, batch = zip(*SNAPSHOTS[id], strict=True)
    drawn = names, np.full(len(names), workers), np.array(batch)
    return _workload(what, np.random.default_rng(seed), np.zeros(len(names)), drawn)


@lru_cache(maxsize=64)
def mean_gpu_s(
    parallel: Parallel,
    asked: tuple[int, ...] = tuple(range(1, MOST_WORKERS + 1)),
    models: tuple[str, ...] = (),
    iteration_s: float | None = None,
    gpus_per_machine: int = 1,
    gbps: float | None = None,
) -> float:
    """Mean GPU-seconds of a job of `cassini-poisson`, alone, over all that is drawn; 16 evenly spread batches."""
    if iteration_s is not None:
        return sum(asked) / len(asked) * iteration_s * sum(ITERATIONS) / 2
    per_iteration = []
    for name in _names(parallel, models):
        low, high = cassini_models()[name].batch
        batches = np.unique(np.rint(np.linspace(low, high, 2 * BATCHES + 1)[1::2]).astype(int)).tolist()
        for workers in asked:
            options = _variants(name, parallel, workers)
            seconds = [
                _iteration_s(kind, workers, size, gpus_per_machine, gbps) for kind in options for size in batches
            ]
            per_iteration.append(workers * float(np.mean(seconds)))
    return float(np.mean(per_iteration)) * sum(ITERATIONS) / 2


def _dynamic(
    what: str, cluster_gpus: int, arrive_s: float, newcomers: Sequence[str], parallel: str, seed: int
) -> Workload:
    check_parameters(what, arrive_s=arrive_s)
    if not 4 * len(newcomers) <= cluster_gpus <= MOST_DRAWN:
        expected = f"expected {4 * len(newcomers)} to {MOST_DRAWN}"
        raise InputError(f"workload {what}: cluster_gpus={cluster_gpus}; {expected}")
    rng = np.random.default_rng(seed)
    most = min(cluster_gpus // 2 // len(newcomers), MOST_WORKERS)
    new = [(name, int(rng.integers(2, most + 1))) for name in newcomers]
    there = _filling(rng, parallel, cluster_gpus - sum(workers for _, workers in new))
    return _arriving(what, rng, there, new, arrive_s, parallel)


def _arriving(
    what: str,
    rng: np.random.Generator,
    there: Sequence[tuple[str, int]],
    new: Sequence[tuple[str, int]],
    arrive_s: float,
    parallel: str,
    gpus_per_machine: int = 1,
) -> Workload:
    names, workers = zip(*there, *new, strict=True)
    arrival_s = np.repeat([0.0, arrive_s], [len(there), len(new)])
    drawn = _drawn(rng, names, parallel, np.array(workers, dtype=np.int64))
    return _workload(what, rng, arrival_s, drawn, gpus_per_machine)


def _filling(rng: np.random.Generator, parallel: str, gpus: int) -> list[tuple[str, int]]:
    names = _names(parallel)
    jobs: list[tuple[str, int]] = []
    while gpus > 0:
        workers = min(int(rng.integers(1, MOST_WORKERS + 1)), gpus)
        jobs.append((names[rng.integers(len(names))], workers))
        gpus -= workers
    return jobs


def _arrivals(what: str, rng: np.random.Generator, gap_s: float, jobs: int, hours: float | None) -> np.ndarray:
    """A Poisson process of so many jobs, or of so many hours, seconds; the first comes at 0."""
    if hours is None:
        return np.concatenate([[0.0], rng.exponential(gap_s, jobs - 1).cumsum()])
    jobs = 1 + int(rng.poisson(hours * 3600.0 / gap_s))
    if jobs > MOST_DRAWN:
        raise InputError(f"workload {what}: hours={hours:g} are {jobs} jobs; expected at most {MOST_DRAWN}")
    return np.concatenate([[0.0], np.sort(rng.random(jobs - 1)) * hours * 3600.0])


def _with_periods(workload: Workload, rng: np.random.Generator, iteration_s: float | None, spread: float) -> Workload:
    """The same jobs, with iterations of so many seconds, drawn evenly up to a part `spread` of it away."""
    if not 0 <= spread < 1 or (spread and iteration_s is None):
        raise InputError(f"workload {workload.name}: spread={spread:g}; expected 0, or below 1 beside iteration_s")
    if iteration_s is None:
        return workload
    check_parameters(workload.name, iteration_s=iteration_s)
    seconds = iteration_s * (1.0 + spread * rng.uniform(-1.0, 1.0, len(workload)))
    return replace(workload, iteration_s=seconds, duration_s=workload.iterations * seconds)


def _asked(what: str, workers: tuple[int, ...], gangs: tuple[int, ...], cluster_gpus: int) -> tuple[int, ...]:
    if gangs:
        most = min(cluster_gpus, MOST_GANG)
        if min(gangs) < 1 or max(gangs) > most or len(set(gangs)) < len(gangs):
            raise InputError(
                f"workload {what}: gangs={'/'.join(map(str, gangs))}; expected numbers from 1 to {most}, each once"
            )
        return gangs
    if len(workers) != 2 or not 1 <= workers[0] <= workers[1] <= MOST_WORKERS or workers[0] > cluster_gpus:
        most = min(cluster_gpus, MOST_WORKERS)
        raise InputError(f"workload {what}: workers={'/'.join(map(str, workers))}; expected LOW/HIGH, 1/1 to 1/{most}")
    return tuple(range(workers[0], min(cluster_gpus, workers[1]) + 1))


def _names(parallel: str, models: tuple[str, ...] = ()) -> tuple[str, ...]:
    known = MODEL_PARALLEL if parallel == "model" else tuple(cassini_models())
    return tuple(choose(name, known, "model of workload cassini-poisson:") for name in models) or known


@lru_cache(maxsize=1024)
def _variants(name: str, parallel: str, workers: int) -> tuple[str, ...]:
    model = cassini_models()[name]
    if model.kind != "decoder":
        return (name,)
    splits = tuple(split for split in SPLITS if split != "hybrid" or workers % HYBRID_SERVERS == 0)
    strategies = {"data": ("data",), "model": splits, "any": ("data", *splits)}[parallel]
    hidden = GPT2_HIDDEN if name == "GPT2" and parallel == "model" else ("",)
    return tuple(f"{name}/{strategy}{size}" for strategy in strategies for size in hidden)


def _drawn(rng: np.random.Generator, names: Sequence[str], parallel: str, workers: np.ndarray) -> Jobs:
    options = [_variants(name, parallel, count) for name, count in zip(names, workers.tolist(), strict=True)]
    number = np.array([len(words) for words in options])
    which = (rng.random(len(names)) * number).astype(np.int64).tolist()
    words = [words[index] for words, index in zip(options, which, strict=True)]
    ranges = np.array([cassini_models()[name].batch for name in names])
    return words, workers, rng.integers(ranges[:, 0], ranges[:, 1] + 1)


@lru_cache(maxsize=1 << 18)
def _iteration_s(word: str, workers: int, batch: int, gpus_per_machine: int = 1, gbps: float | None = None) -> float:
    name, _, rest = word.partition("/")
    strategy, _, hidden = rest.partition("/")
    phases = phases_of(name, workers, batch, strategy or None, int(hidden) if hidden else None, gbps)
    return phases.iteration_s if workers > gpus_per_machine else phases.iteration_s - phases.up_s


def _workload(
    what: str,
    rng: np.random.Generator,
    arrival_s: np.ndarray,
    jobs: Jobs,
    gpus_per_machine: int = 1,
    gbps: float | None = None,
) -> Workload:
    words, workers, batch = jobs
    iterations = rng.integers(ITERATIONS[0], ITERATIONS[1] + 1, len(words)).astype(np.float64)
    each = zip(words, workers.tolist(), batch.tolist(), strict=True)
    iteration_s = np.array([_iteration_s(*job, gpus_per_machine, gbps) for job in each])
    return Workload.from_arrays(
        what,
        arrival_s,
        workers,
        iterations * iteration_s,
        iterations=iterations,
        iteration_s=iteration_s,
        model=np.array(words, dtype=object),
        batch_size=workers * batch,
    )
