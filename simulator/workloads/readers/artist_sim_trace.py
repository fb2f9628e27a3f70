"""ArtISt-sim jobs, the simulator of paper dally's authors: the original json and the csv converted from it.

Source: github aakash-sharma/cluster-sim, configuration/jobs/sense_*.json (a list of objects, every value a text):
job_id, user, model, batchsize, max_parallelism (the gang), duration (s, wall clock on its GPUs), total_iterations,
time_per_iteration (s), arrival_time (s; files without it arrive by submit_time, a date). The csv has job_id, arrival_s,
model, gpus, batch_size, total_iterations, time_per_iteration_s, duration_s, submit_time. total_iterations x
time_per_iteration = duration to 3e-7; where a file departs further (the sensetime-1april sets, by up to 0.7 %) the
duration counts.

Jobs come by arrival; of those that arrive together the lower id is first: this is how ties end there.

The authors' simulator departs from its files in two ways, both options here and off by default: `scale=gang` divides
the duration by the gang size (it credits as many iterations per iteration time as there are GPUs). `caps=batch` cuts
two jobs whose iteration count overflows there (399455 to 81,741,978 and 399469 to 126,649,603), only in a set whose
jobs all arrive at one time, as its Poisson sets have them whole; `caps=on` cuts them in any set.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows, LeftOut, warn_of_unread
from ...jobs.trace_columns import Table, cell, read_csv, read_json_list
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import AGREEMENT, LARGEST_GANG, Workload, WorkloadWarning

NAME = "artist-sim"
SUMMARY = "ArtISt-sim (paper dally) jobs, json or the converted csv"

ITERATION_CAPS = {"399455": 81_741_978.0, "399469": 126_649_603.0}

# json field -> csv column
_FIELDS = {
    "job_id": "job_id",
    "arrival_time": "arrival_s",
    "model": "model",
    "max_parallelism": "gpus",
    "batchsize": "batch_size",
    "total_iterations": "total_iterations",
    "time_per_iteration": "time_per_iteration_s",
    "duration": "duration_s",
    "submit_time": "submit_time",
    "user": "user",
}
_OPTIONAL = {"arrival_time", "submit_time", "user", "batchsize", "model"}
_SLOWDOWNS = ("cross_slot_slowdown", "cross_machine_slowdown", "cross_rack_slowdown")
_DATE = ("year", "month", "day", "hour", "minute", "dayofweek")
_HARMLESS = {
    **dict.fromkeys(_SLOWDOWNS, "not read by the schedulers of paper dally"),
    **dict.fromkeys(("loss_function_type", "random_seed", "job_group_id"), "not read by the schedulers of paper dally"),
    **dict.fromkeys(("jobname", "dataset", "amp", "gpu_util", "gmem", "gmem_util", "cpu_num"), "no part of a workload"),
    **dict.fromkeys(("node_num", "nodelist", "state", "start_time", "end_time", "queue"), "what became of it there"),
    **dict.fromkeys(_DATE, "submit_time once more"),
}
KNOWN = (*_FIELDS.values(), *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    if head.is_json:
        return '"max_parallelism"' in head.text
    return head.has("total_iterations", "time_per_iteration_s")


def read(
    path: str | Path,
    *,
    scale: Literal["none", "gang"] = "none",
    caps: Literal["off", "on", "batch"] = "off",
    bad_rows: BadRows = "drop",
) -> Workload:
    """Read an ArtISt-sim job file, json or converted csv.

    Args:
        scale: `gang` divides every duration by the job's GPUs.
        caps: `on` cuts the two overflowing jobs, `batch` where all arrive at one time; iterations and duration shrink.
    """
    if read_head(path).is_json:
        table = _json_table(path, bad_rows)
    else:
        table = read_csv(path, keep=tuple(_FIELDS.values()), harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("gpus", low=1, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration_s", low=0, above=True)
    iterations = table.number("total_iterations", low=0, above=True)
    per_iteration_s = table.number("time_per_iteration_s", low=0, above=True)
    ids = table.text("job_id")
    exact = np.abs(per_iteration_s * iterations - duration_s) <= AGREEMENT * duration_s
    if not exact.all():
        warnings.warn(
            f"{path}: the time per iteration of {int((~exact).sum())} of {len(exact)} jobs disagrees with "
            "duration / total_iterations; the duration counts",
            WorkloadWarning,
            stacklevel=3,
        )
        per_iteration_s = np.where(exact, per_iteration_s, duration_s / iterations)
    dated = "arrival_s" not in table
    arrival_s = table.date_s("submit_time") if dated else table.number("arrival_s", low=0)
    if caps == "on" or (caps == "batch" and len(arrival_s) > 1 and arrival_s.min() == arrival_s.max()):
        limit = np.array([ITERATION_CAPS.get(job_id, np.inf) for job_id in ids])
        capped = iterations > limit
        iterations = np.where(capped, limit, iterations)
        duration_s = np.where(capped, iterations * per_iteration_s, duration_s)
    if scale == "gang":
        duration_s, per_iteration_s = duration_s / gpus, per_iteration_s / gpus
    numbers = [int(job_id) if job_id.isascii() and job_id.isdigit() else 0 for job_id in ids]
    order = np.array(sorted(range(len(ids)), key=lambda row: (arrival_s[row], numbers[row])), np.int64)
    rest: dict[str, Any] = {"order": order, "from_start": dated, "iterations": iterations}
    rest |= {"iteration_s": per_iteration_s, "model": table.text("model", "")}
    rest |= {"batch_size": table.number("batch_size", low=0, whole=True, default=0), "user": table.text("user", "")}
    return table.workload("job_id", arrival_s, gpus, duration_s, **rest)


def _json_table(path: str | Path, bad_rows: BadRows) -> Table:
    jobs = read_json_list(path)
    columns: dict[str, list[str] | np.ndarray] = {}
    for field, column in _FIELDS.items():
        lacking = [i for i, job in enumerate(jobs) if field not in job]
        if not lacking:
            columns[column] = [cell(job[field]) for job in jobs]
        elif len(lacking) < len(jobs):  # a job that must have one is bad without
            columns[column] = [cell(job.get(field)) for job in jobs]
        elif field not in _OPTIONAL:
            raise InputError(f"{path}, job {lacking[0] + 1}: field {field!r} is missing; expected it in every job")
    shown = {column: field for field, column in _FIELDS.items()}
    warn_of_unread(str(path), (name for job in jobs for name in job), tuple(_FIELDS), _HARMLESS)
    left_out = LeftOut(str(path), len(jobs), bad_rows)
    return Table(str(path), columns, np.arange(1, len(jobs) + 1), "job", shown=shown, left_out=left_out)
