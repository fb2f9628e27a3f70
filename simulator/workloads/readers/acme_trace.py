"""Acme (Shanghai AI Lab): trace_seren.csv and trace_kalos.csv, jobs of LLM development.

Read by its documentation, not tried on the real tables: github InternLM/AcmeTrace, README (CC-BY-4.0). Both have
job_id, user, node_num, gpu_num (0: a CPU job), cpu_num, type (of work on LLMs), state, submit_time, start_time,
end_time (`2023-03-01 00:18:22+08:00`), duration, queue, gpu_time; Kalos also mem_per_pod_GB, shared_mem_per_pod,
fail_time, stop_time. Documented is duration = end - start, but in the rows shown of Kalos it holds the queue too, so
the run time is end - start here. `type` is not read: a workload has no column for it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload
from .log_fields import have_ended, times_s

NAME = "acme"
SUMMARY = "Acme's trace_seren.csv and trace_kalos.csv (by their documentation)"

_READ = ("job_id", "user", "gpu_num", "state", "submit_time", "start_time", "end_time")
_HARMLESS = {
    **dict.fromkeys(("cpu_num", "mem_per_pod_GB", "shared_mem_per_pod"), "no part of a workload"),
    "node_num": "on how many machines it lay there; here the scheduler says",
    **dict.fromkeys(("fail_time", "stop_time"), "end_time once more"),
    **dict.fromkeys(("duration", "queue", "gpu_time"), "what the three times say; in Kalos duration holds the queue"),
}
KNOWN = (*_READ, *_HARMLESS, "type")


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has(*_READ, "gpu_time")


def read(path: str | Path, *, zone: str = "UTC", bad_rows: BadRows = "drop") -> Workload:
    """Read a job table of Acme; `zone` is of times without an offset. Jobs on CPUs, or never started, are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("gpu_num", low=0, high=LARGEST_GANG, whole=True)
    submit_s = times_s(table, "submit_time", zone)
    start_s = times_s(table, "start_time", zone, submit_s)
    end_s = times_s(table, "end_time", zone, start_s)
    table.drop(gpus == 0, "without a GPU")
    table.drop(~have_ended(table, "state"), "that had not ended")
    table.drop(np.isnan(start_s), "never started")
    table.drop(np.isnan(end_s), "without an end")
    table.mark_bad(np.isnan(submit_s), "submit_time", "the time of its submission")
    table.mark_bad(start_s < submit_s, "start_time", "a time not before submit_time")
    table.mark_bad(end_s < start_s, "end_time", "a time not before start_time")
    table.drop(end_s == start_s, "without a run time")
    user = table.text("user", "")
    return table.workload("job_id", submit_s, gpus, end_s - start_s, from_start=True, user=user, start_s=start_s)
