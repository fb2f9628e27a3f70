"""Philly, the original json: cluster_job_log.

Schema published at github msr-fiddle/philly-traces (README): a list of objects with jobid, vc, user, status,
submitted_time and attempts, each attempt with start_time, end_time (dates in Pacific time, or None where the log has
none) and detail, a list of {ip, gpus: [...]}. Our mapping: GPUs are those of the first attempt that lists any (as in
the authors' notebook); the run time is the sum over its attempts, of which one that ends before it starts counts 0.
Jobs that never ran are dropped, and those with an attempt that has a start or an end alone: their run time is not
known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows, LeftOut, warn_of_unread
from ...jobs.trace_columns import Table, cell, read_json_list
from ...jobs.trace_head import Head
from ...jobs.workload import LONGEST_S, Workload, clip
from .log_fields import Clock, times_s

NAME = "philly-json"
SUMMARY = "Philly, original json (cluster_job_log of msr-fiddle/philly-traces)"

_TIMES = ("start_time", "end_time")
_HARMLESS = {"status": "a job that failed or was killed held its GPUs as well"}


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.is_json and ('"attempts"' in head.text or '"submitted_time"' in head.text)


def read(path: str | Path, *, zone: str = "America/Los_Angeles", bad_rows: BadRows = "drop") -> Workload:
    """Read cluster_job_log, its dates in a `zone`; jobs without GPUs or a known run time are dropped."""
    jobs = read_json_list(path)
    fields = ("jobid", "submitted_time", "user", "vc")
    columns: dict[str, list[str] | np.ndarray] = {field: [cell(job.get(field)) for job in jobs] for field in fields}
    left_out = LeftOut(str(path), len(jobs), bad_rows)
    warn_of_unread(str(path), (name for job in jobs for name in job), (*fields, "attempts"), _HARMLESS)
    table = Table(str(path), columns, np.arange(1, len(jobs) + 1), "job", left_out=left_out)
    ran, clock = [_Run() for _ in jobs], Clock(zone)
    for row, job in enumerate(jobs):
        try:
            ran[row] = _run(job, clock)
        except InputError as error:
            left_out.mark_bad(np.array([row]), row + 1, f"job {row + 1}, {error}")
    gpus, run_s = np.array([one.gpus for one in ran], np.int64), np.array([one.run_s for one in ran])
    table.drop((gpus == 0) | np.array([not one.ran for one in ran]), "that never ran on a GPU")
    table.drop(np.isnan(run_s), "with an attempt that has no end, or no start")
    table.drop(run_s == 0, "without a run time")
    if backwards := sum(one.backwards for one in ran):
        table.warn(f"attempts that end before they start: {backwards:,}; each counts 0 s")
    arrival_s, user, tenant = times_s(table, "submitted_time", zone), table.text("user"), table.text("vc")
    return table.workload("jobid", arrival_s, gpus, run_s, from_start=True, user=user, tenant=tenant)


class _Run(NamedTuple):
    """The sum of a job's attempts: `gpus` of the first with some, `run_s` (nan: unknown), `backwards` ones."""

    gpus: int = 0
    run_s: float = 0.0
    ran: bool = False
    backwards: int = 0


def _run(job: dict[str, Any], clock: Clock) -> _Run:
    gpus, run_s, ran, backwards = 0, 0.0, False, 0
    for attempt in _list(job.get("attempts"), "attempts"):
        if not isinstance(attempt, dict):
            raise InputError(f"attempts: {clip(attempt)}; expected objects with start_time, end_time, detail")
        held = 0
        for machine in _list(attempt.get("detail"), "detail"):
            if not isinstance(machine, dict):
                raise InputError(f"detail: {clip(machine)}; expected objects with ip and gpus")
            held += len(_list(machine.get("gpus"), "gpus"))
        gpus = gpus or held
        (start_s, _), (end_s, later_s) = (_time_s(attempt.get(field), field, clock) for field in _TIMES)
        end_s = later_s if end_s < start_s else end_s  # clocks were set back meanwhile
        if np.isnan(start_s) and np.isnan(end_s):
            continue  # it never ran
        ran, backwards = True, backwards + (end_s < start_s)
        run_s += float(np.maximum(end_s - start_s, 0.0))  # nan stays nan
    return _Run(gpus, min(run_s, LONGEST_S), ran, backwards)


def _list(value: Any, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{field}: {clip(value)}; expected a list")
    return value


def _time_s(value: Any, field: str, clock: Clock) -> tuple[float, float]:
    if (found := clock.read(cell(value))) is None:
        raise InputError(f"{field}: {clip(value)}; expected a date YYYY-MM-DD HH:MM:SS or None")
    return found
