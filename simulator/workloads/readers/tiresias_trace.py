"""Tiresias csv (NSDI'19): job_id, num_gpu, submit_time, iterations, model_name, duration, interval (seconds).

Source: github SymbioticLab/Tiresias, simulator/60_job.csv (Apache-2.0). `interval` (gap to the job before) is
not needed; iterations
may be absent (tf_job.csv).
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "tiresias"
SUMMARY = "Tiresias csv (job_id, num_gpu, submit_time, iterations, model_name, duration, interval)"


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("num_gpu", "model_name") or head.has("num_gpu", "interval")


def read(path: str | Path) -> Workload:
    """Read a Tiresias csv; jobs without GPUs or run time are dropped with one warning.

    Raises:
        InputError: naming file, line, column, value and what was expected.
    """
    table = read_csv(path)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0)
    iterations = table.number("iterations", low=0, above=True) if "iterations" in table else None
    return table.workload(
        job_id="job_id",
        arrival_s=table.number("submit_time", low=0),
        gpus=gpus,
        duration_s=duration_s,
        kept=table.where((gpus > 0) & (duration_s > 0), "no GPU or no run time"),
        iterations=iterations,
        model=table.text("model_name", ""),
    )
