"""Muri csv (SIGCOMM'22): as Tiresias, with batch, stage times and priority; all times in MILLISECONDS.

Source: github Rivendile/Muri, simulator/trace-data and cluster_exp/trace-data (Apache-2.0): job_id, num_gpu,
submit_time (ms),
iterations, model_name, batch_size, duration (ms), interval (ms), iteration_time (ms), resource_time_0..2 (ms:
load and preprocess, GPU, network), priority. Stage times are not part of a workload; priority is kept as it
is.
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, LONGEST_S, Workload

NAME = "muri"
SUMMARY = "Muri csv (times in milliseconds)"

_MS = 1000.0
_KEEP = {"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "priority"}


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("num_gpu", "iteration_time") or head.has("num_gpu", "resource_time_0")


def read(path: str | Path) -> Workload:
    """Read a Muri csv; jobs without GPUs or run time are dropped with one warning.

    Raises:
        InputError: naming file, line, column, value and what was expected.
    """
    table = read_csv(path, keep=_KEEP)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0, high=LONGEST_S) / _MS
    return table.workload(
        job_id="job_id",
        arrival_s=table.number("submit_time", low=0, high=LONGEST_S) / _MS,
        gpus=gpus,
        duration_s=duration_s,
        kept=table.where((gpus > 0) & (duration_s > 0), "no GPU or no run time"),
        iterations=table.number("iterations", low=0, above=True),
        model=table.text("model_name", ""),
        batch_size=table.number("batch_size", low=0, high=10**12, whole=True, default=0),
        priority=table.number("priority", low=-(10**12), high=10**12, whole=True, default=0),
    )
