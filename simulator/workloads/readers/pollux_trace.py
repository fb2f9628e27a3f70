"""Pollux workloads (OSDI'21 artifact, also Sia's): the application, time, GPUs and batch of a job.

Source: github petuum/adaptdl, branch osdi21-artifact, simulator/workloads*/workload-N.csv: name, time (s), application,
num_replicas (GPUs), batch_size (samples over all GPUs).

A duration is derived, for the GPUs and batch of the file, as optimiser steps x time per step, both from the model's
profile (../../profiles/models.py): its steps by batch size, log-log between the sizes of the artifact's
validation-B.csv; and its fit for T4 GPUs, 4 to a machine (step time error 6-9 % in the mean over all rows, P95 20-28
%), with a local batch above the largest measured one accumulated. `duration_s` sets one duration for all (then 1
iteration = 1 s).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload
from ...profiles.models import shipped_profiles

NAME = "pollux"
SUMMARY = "Pollux and Sia workload csv (durations derived from the T4 profiles)"

_READ = ("name", "time", "application", "num_replicas", "batch_size")
KNOWN = _READ


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("application") or head.has("num_replicas", "batch_size")


def read(
    path: str | Path, *, duration_s: float = 0.0, gpus_per_machine: int = 4, bad_rows: BadRows = "drop"
) -> Workload:
    """Read a Pollux workload.

    `duration_s`: one run time for all, seconds; 0 derives it per job. `gpus_per_machine`: >= 1 GPUs without a network.
    """
    if not 0 <= duration_s <= 1e15 or gpus_per_machine < 1:
        raise InputError(
            f"format pollux: duration_s={duration_s:g}, gpus_per_machine={gpus_per_machine}; "
            "expected seconds >= 0 and at least 1 GPU"
        )
    table = read_csv(path, keep=_READ, bad_rows=bad_rows)
    gpus = table.number("num_replicas", low=1, high=LARGEST_GANG, whole=True)
    batch = table.number("batch_size", low=1, high=1e9, whole=True, default=1 if duration_s else None)
    if duration_s:
        steps = seconds = np.full(len(table), duration_s)
    else:
        steps, seconds = _derive(table, gpus, batch, gpus_per_machine)
    arrival_s, model = table.number("time", low=0), table.text("application")
    return table.workload("name", arrival_s, gpus, seconds, iterations=steps, model=model, batch_size=batch)


def _derive(table: Table, gpus: np.ndarray, batch: np.ndarray, gpus_per_machine: int) -> tuple[np.ndarray, np.ndarray]:
    profiles = shipped_profiles()
    steps, seconds = np.ones((2, len(table)))
    unknown = np.zeros(len(table), bool)
    for row, application in enumerate(table.text("application")):
        profile = profiles.models.get(application)
        unknown[row] = profile is None or profile.efficiency is None
        if profile is None or profile.efficiency is None:
            continue
        steps[row] = profile.efficiency.steps_of(int(batch[row]))
        seconds[row] = steps[row] * profile.step_s("t4", int(gpus[row]), int(batch[row]), gpus_per_machine)
    table.mark_bad(unknown, "application", f"one of {', '.join(profiles.names)}, or the option duration_s=SECONDS")
    return steps, seconds
