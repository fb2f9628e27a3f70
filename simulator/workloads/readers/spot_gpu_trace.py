"""Alibaba spot-gpu (cluster-trace-v2026-spot-gpu): job_info_df.csv, jobs of high priority and spot jobs.

Read by its documentation, not tried on the real table: github alibaba/clusterdata, README there: job_name, organization
(a department), gpu_model, cpu_request, gpu_request, worker_num (instances), submit_time (s since the first job),
duration (s), job_type (HP or Spot). A job is a gang of worker_num x gpu_request GPUs: the README does not say that
gpu_request is of one instance; users of the table take it so (issue 260 there, which finds that the jobs then ask more
A10 than node_info_df.csv has). Shares of a GPU are summed over a job. The level is 0 for HP and 1 for Spot, the tenant
the organization.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...jobs.left_out import BadRows, Share
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "spot-gpu"
SUMMARY = "Alibaba spot-gpu (2026) job_info_df.csv (by its documentation)"

_READ = (
    *("job_name", "organization", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration", "job_type"),
)
_HARMLESS = {"cpu_request": "no part of a workload"}
KNOWN = (*_READ, *_HARMLESS)
_LEVELS = {"HP": 0, "SPOT": 1}
_MOST_WORKERS = 10**6


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("gpu_request", "worker_num", "submit_time", "duration")


def read(path: str | Path, *, share: Share = "whole", bad_rows: BadRows = "drop") -> Workload:
    """Read job_info_df.csv; jobs without GPUs or run time are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    workers = table.number("worker_num", low=0, high=_MOST_WORKERS, whole=True)
    each = table.number("gpu_request", low=0, high=LARGEST_GANG / _MOST_WORKERS, blank=0)
    asked, duration_s = workers * each, table.number("duration", low=0)
    level = np.array([_LEVELS.get(word.strip().upper(), -1) for word in table.text("job_type")])
    table.mark_bad(level < 0, "job_type", "HP or Spot")
    table.drop(asked == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    rest: dict[str, Any] = {
        "tenant": table.text("organization", ""),
        "gpu_type": table.text("gpu_model", ""),
        "level": level,
    }
    how, arrival_s = share if (each % 1 > 0).any() else None, table.number("submit_time", low=0)
    return table.workload("job_name", arrival_s, asked, duration_s, share=how, **rest)
