"""Philly, the 5-column csv: one row a job with its GPUs and run time.

Source: github petuum/adaptdl, branch osdi21-artifact, simulator/traces/philly.csv, derived from
msr-fiddle/philly-traces (CC-BY-4.0), whose times are Pacific: timestamp (local date of submission), duration (s),
num_gpus, gpu_time (GPU-s, not needed), cluster (hash of the virtual cluster). It has no ids: the job id is the row's
number from 0.
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload
from .log_fields import times_s

NAME = "philly"
SUMMARY = "Philly, 5-column csv (timestamp, duration, num_gpus, gpu_time, cluster)"

_READ = ("timestamp", "duration", "num_gpus", "cluster")
_HARMLESS = {"gpu_time": "num_gpus x duration"}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("timestamp", "num_gpus") or head.has("timestamp", "gpu_time")


def read(path: str | Path, *, zone: str = "America/Los_Angeles", bad_rows: BadRows = "drop") -> Workload:
    """Read the Philly csv, its dates in a `zone`; jobs without GPUs or run time are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("num_gpus", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0)
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    ids, arrival_s = [str(i) for i in range(len(table))], times_s(table, "timestamp", zone)
    return table.workload(ids, arrival_s, gpus, duration_s, from_start=True, tenant=table.text("cluster", ""))
