"""Philly, the original json: cluster_job_log.

Schema published at github msr-fiddle/philly-traces (README): a list of objects with jobid, vc, user, status,
submitted_time and attempts, each attempt with start_time, end_time (dates, or None where the log has none)
and detail, a list of {ip, gpus: [...]}. Our mapping: GPUs are those of the first attempt that lists any (as
in the authors' notebook); the run time is the sum over attempts that have both times (all of them ran on the
job's GPUs); jobs without any such attempt are dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...jobs.trace_columns import Table, cell, dates_to_s, read_json_list
from ...jobs.trace_head import Head
from ...jobs.workload import LONGEST_S, Workload, clip

NAME = "philly-json"
SUMMARY = "Philly, original json (cluster_job_log of msr-fiddle/philly-traces)"


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.is_json and ('"attempts"' in head.text or '"submitted_time"' in head.text)


def read(path: str | Path) -> Workload:
    """Read cluster_job_log; jobs that never ran on a GPU are dropped with one warning.

    Raises:
        InputError: naming file, job, field, value and what was expected.
    """
    jobs = read_json_list(path)
    columns: dict[str, list[str] | np.ndarray] = {}
    for field in ("jobid", "submitted_time"):
        for i, job in enumerate(jobs):
            if field not in job:
                raise InputError(f"{path}, job {i + 1}: field {field!r} is missing; expected it in every job")
        columns[field] = [cell(job[field]) for job in jobs]
    columns["user"] = [cell(job.get("user")) for job in jobs]
    columns["vc"] = [cell(job.get("vc")) for job in jobs]
    ran = [_gpus_and_run_s(job, f"{path}, job {i + 1}") for i, job in enumerate(jobs)]
    gpus = np.array([gpus for gpus, _ in ran], dtype=np.int64)
    duration_s = np.array([run_s for _, run_s in ran])
    table = Table(str(path), columns, np.arange(1, len(jobs) + 1), "job")
    return table.workload(
        job_id="jobid",
        arrival_s=table.date_s("submitted_time"),
        gpus=gpus,
        duration_s=duration_s,
        kept=table.where((gpus > 0) & (duration_s > 0), "no complete attempt on a GPU"),
        from_start=True,
        user=table.text("user"),
        tenant=table.text("vc"),
    )


def _gpus_and_run_s(job: dict[str, Any], place: str) -> tuple[int, float]:
    """(GPUs of the first attempt that has some, seconds over all complete attempts)."""
    gpus, run_s = 0, 0.0
    for attempt in _list(job.get("attempts"), place, "attempts"):
        if not isinstance(attempt, dict):
            raise InputError(f"{place}, attempts: {clip(attempt)}; expected objects with start_time, end_time, detail")
        held = 0
        for machine in _list(attempt.get("detail"), place, "detail"):
            if not isinstance(machine, dict):
                raise InputError(f"{place}, detail: {clip(machine)}; expected objects with ip and gpus")
            held += len(_list(machine.get("gpus"), place, "gpus"))
        gpus = gpus or held
        start_s, end_s = (_time_s(attempt.get(field), place, field) for field in ("start_time", "end_time"))
        if end_s < start_s:
            raise InputError(
                f"{place}, end_time: {clip(attempt['end_time'])} is before start_time "
                f"{clip(attempt['start_time'])}; expected a later time"
            )
        if not np.isnan(end_s - start_s):
            run_s += end_s - start_s
    return gpus, min(run_s, LONGEST_S)


def _list(value: Any, place: str, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{place}, {field}: {clip(value)}; expected a list")
    return value


def _time_s(value: Any, place: str, field: str) -> float:
    try:
        return float(dates_to_s([cell(value)], blanks=True)[0])
    except ValueError:
        raise InputError(f"{place}, {field}: {clip(value)}; expected a date YYYY-MM-DD HH:MM:SS or None") from None
