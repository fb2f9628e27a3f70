"""Pollux workloads (OSDI'21 artifact, also Sia's): the application, time, GPUs and batch of a job.

Source: github petuum/adaptdl, branch osdi21-artifact, simulator/workloads*/workload-N.csv: name, time (s),
application, num_replicas (GPUs), batch_size (samples over all GPUs).

A duration is derived, for the GPUs and batch of the file, as optimiser steps x time per step:
* Steps: `STEPS[application]`, by batch size, log-log between the sizes. Computed from the artifact's
  validation-B.csv with Pollux's own rule: over the epochs of the application (bert 2, cifar10 100, ncf 10,
  imagenet 90, deepspeech2 80, yolov3 50), progress of the epoch / gain, gain = (var + sqr) / (var / scale +
  sqr), scale = batch / smallest batch.
* Time per step: t = (t_comp^d + t_comm^d)^(1/d) plus t_comp for each accumulation step, t_comp = a + b x
  samples per GPU, t_comm = alpha + beta x max(GPUs - 2, 0), in one machine (ai, bi) or between machines (an,
  bn); fitted to the artifact's placements.csv, T4 GPUs, 4 to a machine (step time error 6-9 % in the mean
  over all rows, P95 20-28 %). One GPU: its own straight line. A local batch above the largest profiled one is
  accumulated.
So this is an estimate for T4 machines; `gpus_per_machine` says how many GPUs share a machine at the best
placement. `duration_s` sets one duration for all instead (then 1 iteration = 1 s).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import InputError
from ..schema import LARGEST_GANG, Workload
from ..table import Table, read_csv
from .head import Head

NAME = "pollux"
SUMMARY = "Pollux and Sia workload csv (durations derived from the T4 profiles)"

# application: {batch: optimiser steps of the whole job}
STEPS: dict[str, dict[int, float]] = {
    "bert": {12: 14774.0, 24: 7439.5, 48: 3748.0, 96: 1893.3, 192: 941.3, 384: 476.0},
    "cifar10": {128: 39062.9, 256: 20383.4, 512: 10632.5, 1024: 5795.9, 2048: 3343.1, 4096: 2142.8},
    "deepspeech2": {20: 28536.0, 40: 14710.5, 80: 7685.4, 160: 4052.3, 320: 2274.9, 640: 1391.0},
    "imagenet": {
        200: 576525.6,
        400: 293094.7,
        800: 150648.2,
        1600: 78668.8,
        3200: 42849.5,
        6400: 25094.3,
        12800: 14803.4,
    },
    "ncf": {
        256: 194174.0,
        512: 97091.8,
        1024: 48680.7,
        2048: 24308.3,
        4096: 12183.4,
        8192: 6203.2,
        16384: 3090.8,
        32768: 1552.0,
    },
    "yolov3": {8: 103444.0, 16: 53464.6, 32: 28483.9, 64: 15970.3, 128: 9713.1, 256: 6586.6, 512: 4975.5},
}
# application: (a, b, ai, bi, an, bn, d) of the T4 fit, all in seconds but d
STEP_TIME: dict[str, tuple[float, ...]] = {
    "bert": (0.1715, 0.05869, 0.268, 0.0441, 1.383, 0.01054, 2.02),
    "cifar10": (0.01679, 7.097e-4, 0.03037, 0.005254, 0.1232, 0.002657, 2.21),
    "deepspeech2": (0.3079, 0.0238, 8e-5, 0.1059, 0.5055, 0.01001, 1.45),
    "imagenet": (0.06336, 0.004503, 0.06662, 0.01791, 0.3067, 0.006662, 2.73),
    "ncf": (0.006929, 6.63e-7, 0.003062, 0.001188, 0.01459, 5.24e-4, 1.0),
    "yolov3": (0.1805, 0.02581, 0.06623, 0.08318, 0.7509, 0.01095, 1.12),
}
# application: (a, b) of the straight line through the 1-GPU rows, seconds
ONE_GPU_TIME = {
    "bert": (0.2267, 0.05783),
    "cifar10": (0.01775, 6.643e-4),
    "deepspeech2": (0.0928, 0.02905),
    "imagenet": (0.0797, 0.004208),
    "ncf": (0.00765, 4.34e-7),
    "yolov3": (0.2189, 0.0243),
}
# application: largest local batch that was profiled on a T4 (the artifact caps yolov3 at 8)
LARGEST_LOCAL = {"bert": 12, "cifar10": 1024, "deepspeech2": 80, "imagenet": 200, "ncf": 32768, "yolov3": 8}


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("application") or head.has("num_replicas", "batch_size")


def read(path: str | Path, *, duration_s: float = 0.0, gpus_per_machine: int = 4) -> Workload:
    """Read a Pollux workload.

    Args:
        path: the csv.
        duration_s: one run time for all jobs, seconds; 0 derives it per job (see the module).
        gpus_per_machine: at most this many GPUs talk without a network, >= 1.

    Raises:
        InputError: naming file, line, column, value and what was expected.
    """
    if not 0 <= duration_s <= 1e15 or gpus_per_machine < 1:
        raise InputError(
            f"format pollux: duration_s={duration_s:g}, gpus_per_machine={gpus_per_machine}; "
            "expected seconds >= 0 and at least 1 GPU"
        )
    table = read_csv(path, keep={"name", "time", "application", "num_replicas", "batch_size"})
    gpus = table.number("num_replicas", low=1, high=LARGEST_GANG, whole=True)
    batch = table.number("batch_size", low=1, high=1e9, whole=True, default=1 if duration_s else None)
    if duration_s:
        seconds = np.full(len(table), duration_s)
        steps = seconds
    else:
        steps, seconds = _derive(table, gpus, batch, gpus_per_machine)
    return table.workload(
        job_id="name",
        arrival_s=table.number("time", low=0),
        gpus=gpus,
        duration_s=seconds,
        iterations=steps,
        model=table.text("application"),
        batch_size=batch,
    )


def _derive(table: Table, gpus: np.ndarray, batch: np.ndarray, gpus_per_machine: int) -> tuple[np.ndarray, np.ndarray]:
    """(steps, seconds) of every row."""
    steps, seconds = np.empty(len(table)), np.empty(len(table))
    for row, application in enumerate(table.text("application")):
        if application not in STEPS:
            raise table.error(row, "application", f"one of {', '.join(STEPS)}, or the option duration_s=SECONDS")
        steps[row] = steps_of(application, int(batch[row]))
        seconds[row] = steps[row] * step_s(application, int(gpus[row]), int(batch[row]), gpus_per_machine)
    return steps, seconds


def steps_of(application: str, batch: int) -> float:
    """Optimiser steps of a job at a batch size; beyond the validated sizes, the nearest one's samples."""
    sizes = STEPS[application]
    known = np.array(sorted(sizes), dtype=float)
    inside = float(np.clip(batch, known[0], known[-1]))
    steps = np.exp(np.interp(np.log(inside), np.log(known), np.log([sizes[int(size)] for size in known])))
    return float(max(steps * inside / batch, 1.0))


def step_s(application: str, gpus: int, batch: int, gpus_per_machine: int = 4) -> float:
    """Seconds of one optimiser step on `gpus` GPUs, packed on as few machines as possible."""
    local = int(np.ceil(batch / gpus))
    passes = int(np.ceil(local / LARGEST_LOCAL[application]))
    samples = int(np.ceil(local / passes))
    if gpus == 1:
        a, b = ONE_GPU_TIME[application]
        return passes * (a + b * samples)
    a, b, ai, bi, an, bn, d = STEP_TIME[application]
    alpha, beta = (ai, bi) if gpus <= gpus_per_machine else (an, bn)
    compute_s, exchange_s = a + b * samples, alpha + beta * (gpus - 2)
    return float((passes - 1) * compute_s + (compute_s**d + exchange_s**d) ** (1 / d))
