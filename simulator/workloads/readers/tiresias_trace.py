"""Tiresias csv (NSDI'19), and ElasticFlow's (ASPLOS'23), whose simulator was made from it; times in seconds.

Source: github SymbioticLab/Tiresias, simulator/60_job.csv (Apache-2.0): job_id, num_gpu, submit_time, iterations,
model_name, duration, interval (the gap to the job before). Iterations may be absent (tf_job.csv), or 0: unknown.

github pkusys/ElasticFlow, ElasticFlow/traces_for_ElasticFlow: job_id, submit_time, iteration, model_name, ddl,
batch_size, num_gpu, duration, and perhaps best_effort. `ddl` is the deadline on the clock of submit_time
(scheduler/trace_generator writes submit_time + a factor x duration); where best_effort is 1 there is none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "tiresias"
SUMMARY = (
    "Tiresias csv (job_id, num_gpu, submit_time, iterations, model_name, duration, interval), or ElasticFlow (ddl)"
)

_READ = (
    *("job_id", "num_gpu", "submit_time", "iterations", "iteration"),
    *("model_name", "duration", "ddl", "best_effort", "batch_size"),
)
_HARMLESS = {"interval": "the gap to the job before"}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("num_gpu", "model_name") or head.has("num_gpu", "interval") or head.has("num_gpu", "ddl")


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read a Tiresias or ElasticFlow csv; jobs without GPUs or run time are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0)
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    arrival_s, steps = table.number("submit_time", low=0), table.iterations("iterations", "iteration")
    model, batch = table.text("model_name", ""), table.number("batch_size", low=0, high=10**12, whole=True, default=0)
    best_effort = table.number("best_effort", low=0, high=1, whole=True, default=0) == 1
    ends_s = np.where(best_effort, np.inf, table.number("ddl", low=0, default=np.inf))
    return table.workload(
        "job_id", arrival_s, gpus, duration_s, iterations=steps, model=model, batch_size=batch, deadline_s=ends_s
    )
