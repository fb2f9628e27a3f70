"""Muri csv (SIGCOMM'22): as Tiresias, with batch, stage times and priority; all times in MILLISECONDS.

Source: github Rivendile/Muri, simulator/trace-data and cluster_exp/trace-data (Apache-2.0): job_id, num_gpu,
submit_time (ms), iterations, model_name, batch_size, duration (ms), interval (ms), iteration_time (ms),
resource_time_0..2 (ms: load and preprocess, GPU, network), priority. Stage times are not part of a workload; priority
is kept as it is; 0 iterations are not known.
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, LONGEST_S, Workload

NAME = "muri"
SUMMARY = "Muri csv (times in milliseconds)"

_MS = 1000.0
_READ = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "priority")
_HARMLESS = {
    "interval": "the gap to the job before",
    "iteration_time": "duration / iterations",
    **dict.fromkeys((f"resource_time_{stage}" for stage in range(4)), "no part of a workload"),
}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("num_gpu", "iteration_time") or head.has("num_gpu", "resource_time_0")


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read a Muri csv; jobs without GPUs or run time are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0, high=LONGEST_S) / _MS
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    arrival_s = table.number("submit_time", low=0, high=LONGEST_S) / _MS
    steps, model = table.iterations("iterations"), table.text("model_name", "")
    batch = table.number("batch_size", low=0, high=10**12, whole=True, default=0)
    level = table.number("priority", low=-(10**12), high=10**12, whole=True, default=0)
    return table.workload(
        "job_id", arrival_s, gpus, duration_s, iterations=steps, model=model, batch_size=batch, priority=level
    )
