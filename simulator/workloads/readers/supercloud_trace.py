"""MIT SuperCloud: slurm-log.csv, the job table of Slurm's accounting database.

Read by its documentation, not tried on the real table: github MIT-AI-Accelerator/MIT-Supercloud-Dataset, README, and
Slurm's own job table: id_job, id_user (hashed), state (a number: 0 pending, 1 running, 2 suspended, from 3 on ended),
time_submit, time_start, time_end (s since 1970; 0: not yet), timelimit (minutes; 2^32 - 2 and 2^32 - 1: none),
tres_alloc (`1=20,2=170000,1002=2`: how much of each resource), nodelist (`['r91-n91', ...]`, renamed). By the README
resource 1001 are GPUs of type tesla, 1002 of type volta; one job in five has some.

A job's run time is end - start, its user the hashed one, its estimate the time limit, its hosts the nodes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import Workload
from .log_fields import gpus

NAME = "supercloud"
SUMMARY = "MIT SuperCloud's slurm-log.csv, a job table of Slurm's database (by its documentation)"

GPU_RESOURCES = {"1001": "gres/gpu:tesla", "1002": "gres/gpu:volta"}

_READ = (
    *("id_job", "id_user", "state", "time_submit", "time_start", "time_end"),
    *("timelimit", "tres_alloc", "nodelist"),
)
_HARMLESS = {
    **dict.fromkeys(("job_db_inx", "mod_time", "deleted", "id_array_job", "id_array_task", "array_task_str"), "names"),
    **dict.fromkeys(("array_max_tasks", "array_task_pending", "job_name", "job_type", "id_assoc", "id_group"), "names"),
    **dict.fromkeys(("cpus_req", "mem_req", "gres_req", "gres_alloc", "gres_used", "tres_req"), "tres_alloc says"),
    **dict.fromkeys(
        ("exit_code", "derived_ec", "derived_es", "kill_requid"), "a job that failed held its GPUs as well"
    ),
    **dict.fromkeys(("nodes_alloc", "node_inx"), "nodelist says"),
    **dict.fromkeys(("time_eligible", "time_suspended", "track_steps"), "a job that is suspended keeps its GPUs"),
    **dict.fromkeys(("partition", "priority", "id_qos", "id_resv", "id_wckey", "id_block", "wckey"), "not modelled"),
    **dict.fromkeys(("constraints", "flags", "account", "admin_comment"), "not modelled"),
}
KNOWN = (*_READ, *_HARMLESS)
_FIRST_ENDED = 3  # of Slurm's states
_NO_LIMIT = 2**32 - 2  # minutes: NO_VAL, then INFINITE


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("id_job", "time_submit", "time_start", "time_end", "tres_alloc")


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read slurm-log.csv; jobs on CPUs, and those that never ran or had not ended, are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    submit_s, start_s, end_s = (_time_s(table, f"time_{name}") for name in ("submit", "start", "end"))
    limit_min = table.number("timelimit", low=0, high=2**32, default=0, blank=0)
    named = [re.sub(r"\b100[12](?==)", lambda at: GPU_RESOURCES[at[0]], text) for text in table.text("tres_alloc")]
    count, types = gpus(replace(table, columns={**table.columns, "tres_alloc": named}), "tres_alloc")
    table.drop(count == 0, "without a GPU")
    table.drop(table.number("state", low=0, high=2**32, whole=True) % 256 < _FIRST_ENDED, "that had not ended")
    table.drop(np.isnan(end_s - start_s) | (start_s == end_s), "that never ran")
    table.mark_bad(np.isnan(submit_s), "time_submit", "the time of its submission")
    table.mark_bad(start_s < submit_s, "time_start", "a time not before time_submit")
    table.mark_bad(end_s < start_s, "time_end", "a time not before time_start")
    estimate_s = np.where((limit_min == 0) | (limit_min >= _NO_LIMIT), np.inf, limit_min * 60.0)
    hosts = [" ".join(re.findall(r"[^\s,'\"\[\]]+", text)) for text in table.text("nodelist", "")]
    rest: dict[str, Any] = {
        "user": table.text("id_user", ""),
        "estimate_s": estimate_s,
        "gpu_type": types,
        "hosts": hosts,
    }
    return table.workload("id_job", submit_s, count, end_s - start_s, from_start=True, start_s=start_s, **rest)


def _time_s(table: Table, name: str) -> np.ndarray:
    found = table.number(name, low=0, blank=0)
    return np.where(found > 0, found, np.nan)
