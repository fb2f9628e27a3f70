"""The plain four columns: job_id, submit_time (s), num_gpu, duration (s).

It says nothing of `KNOWN`, so that any other format that recognises a file with these columns reads it.
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "simple"
SUMMARY = "plain csv (job_id, submit_time, num_gpu, duration)"

_READ = ("job_id", "submit_time", "num_gpu", "duration")


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has(*_READ)


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read the plain csv; jobs without GPUs or run time are dropped."""
    table = read_csv(path, keep=_READ, bad_rows=bad_rows)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0)
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    return table.workload("job_id", table.number("submit_time", low=0), gpus, duration_s)
