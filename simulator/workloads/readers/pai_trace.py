"""Alibaba PAI (cluster-trace-gpu-v2020): the task table, or the job csv of its simulator.

Two published forms (github alibaba/clusterdata, cluster-trace-gpu-v2020/README.md and simulator/utils.py):
* pai_task_table.csv, without a header line: job_name, task_name, inst_num, status, start_time, end_time, plan_cpu,
  plan_mem, plan_gpu (percent of one GPU, per instance), gpu_type. A job is the sum of its tasks: GPUs are the sum of
  inst_num x plan_gpu / 100, its run time goes from the first start to the last end of its GPU tasks. Dropped are jobs
  with a GPU task that lacks start or end, and jobs whose GPU tasks never ran together, as they are no gang. If
  pai_job_table.csv (job_name, inst_id, user, status, start_time, end_time) lies in the same directory, user and
  submission (its start_time) come from there, and a job's start from its first GPU task; else it arrives at that start.
* simulator/traces/pai/pai_job_*_estimate_100K.csv: job_id, num_gpu (GPUs per instance, may be a fraction), num_inst (1
  where the column is missing, as the authors' simulator has it), submit_time (s), duration (s), user, ...
`gpu_type` is the type that a job got, which says less than what it would have accepted; of a job whose GPU tasks got
several none is read, and a warning counts these. Shares of a GPU are summed over the job: `share=whole` rounds up,
`share=round` to the nearest. CPU jobs and jobs without run time are dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...base.names import numbered
from ...jobs.left_out import BadRows, Share
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "pai"
SUMMARY = "Alibaba PAI 2020: pai_task_table.csv, or the job csv of its simulator"

_TIMES = ("status", "start_time", "end_time")
TASK_COLUMNS = ("job_name", "task_name", "inst_num", *_TIMES, "plan_cpu", "plan_mem", "plan_gpu", "gpu_type")
JOB_COLUMNS = ("job_name", "inst_id", "user", *_TIMES)
_READ = ("job_id", "num_gpu", "num_inst", "submit_time", "duration", "user", "gpu_type")
_TASK_READ = ("job_name", "inst_num", "start_time", "end_time", "plan_gpu", "gpu_type")
_JOB_READ = ("job_name", "user", "start_time")
_HARMLESS = {
    **dict.fromkeys(("task_name", "inst_id"), "names"),
    **dict.fromkeys(("plan_cpu", "plan_mem", "num_cpu"), "no part of a workload"),
    "status": "a task that failed held its GPUs as well",
    "wait_time": "what became of it there",
}
KNOWN = (*_READ, *_HARMLESS)
_STATUSES = {"Terminated", "Failed", "Running", "Waiting"}
_MOST_INSTANCES = 10**6


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    if head.has("plan_gpu") or _headerless(head.columns):
        return True
    extra = {"num_inst", "num_cpu", "num_pod", "group_gpu_dur"} & set(head.columns)
    return head.has("submit_time", "num_gpu") and bool(extra)


def _headerless(columns: tuple[str, ...]) -> bool:
    return len(columns) == len(TASK_COLUMNS) and columns[3] in _STATUSES


def read(path: str | Path, *, share: Share = "whole", bad_rows: BadRows = "drop") -> Workload:
    """Read a PAI trace in either form; what is no GPU job is dropped."""
    columns = read_head(path).columns
    if _headerless(columns) or "plan_gpu" in columns or ("job_name" in columns and "job_id" not in columns):
        header = TASK_COLUMNS if _headerless(columns) else None
        table = read_csv(path, header=header, keep=_TASK_READ, harmless=_HARMLESS, bad_rows=bad_rows)
        return _from_tasks(table, share, bad_rows)
    return _from_jobs(read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows), share)


def _from_jobs(table: Table, share: Share) -> Workload:
    instances = table.number("num_inst", low=0, high=_MOST_INSTANCES, whole=True, default=1, blank=1)
    each = table.number("num_gpu", low=0, high=LARGEST_GANG, blank=0)
    asked = each * instances
    duration_s = table.number("duration", low=0, blank=0)
    table.drop(asked == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    arrival_s, user, types = table.number("submit_time", low=0), table.text("user", ""), table.text("gpu_type", "")
    how = share if (each % 1 > 0).any() else None
    return table.workload("job_id", arrival_s, asked, duration_s, share=how, user=user, gpu_type=types)


def _from_tasks(table: Table, share: Share, bad_rows: BadRows) -> Workload:
    percent = table.number("plan_gpu", low=0, high=1e9, blank=0)
    asked = percent / 100.0 * table.number("inst_num", low=0, high=_MOST_INSTANCES, whole=True, blank=0)
    start_s, end_s = (table.number(name, low=0, blank=np.nan) for name in ("start_time", "end_time"))
    ids, given = table.text("job_name"), table.text("gpu_type", "")
    job = numbered(ids)  # in the order of the file
    _, first_row = np.unique(job, return_index=True)
    names = [ids[row] for row in first_row.tolist()]
    assert table.left_out is not None
    left_out = table.left_out.of_groups(job, len(names))
    jobs = Table(table.path, {"job_name": names}, table.places[first_row], table.unit, left_out=left_out)
    users, submitted_s = _job_table(Path(table.path).with_name("pai_job_table.csv"), names, bad_rows)
    on_gpu = np.flatnonzero(asked > 0)
    job, start_s, end_s = job[on_gpu], start_s[on_gpu], end_s[on_gpu]
    asked = np.bincount(job, weights=asked[on_gpu], minlength=len(names))
    jobs.drop(asked == 0, "without a GPU")
    for what, some in (("did not start", np.isnan(start_s)), ("have no end", np.isnan(end_s))):
        jobs.drop(np.bincount(job, weights=some, minlength=len(names)) > 0, f"of which GPU tasks {what}")
    over = ~np.isnan(end_s - start_s)
    begin_s, last_begin_s, first_end_s, finish_s = _spans(job[over], start_s[over], end_s[over], len(names))
    jobs.drop(finish_s <= begin_s, "that end when they start, or before")
    jobs.drop(first_end_s <= last_begin_s, "whose GPU tasks never ran together")
    arrival_s = np.where(np.isnan(submitted_s), begin_s, submitted_s)
    return jobs.workload(
        "job_name",
        arrival_s,
        asked,
        finish_s - begin_s,
        share=share if (percent % 100 > 0).any() else None,
        user=users,
        gpu_type=_types(jobs, job, [given[row] for row in on_gpu.tolist()]),
        start_s=np.where(begin_s >= submitted_s, begin_s, np.inf),
    )


def _types(jobs: Table, job: np.ndarray, given: list[str]) -> list[str]:
    """The type of GPU of each job, of the jobs and types of GPU tasks; "" where these got several, with a warning."""
    found: list[set[str]] = [set() for _ in range(len(jobs))]
    for row, kind in zip(job.tolist(), given, strict=True):
        found[row].add(kind)
    assert jobs.left_out is not None
    if several := sum(len(found[row]) > 1 for row in np.flatnonzero(~jobs.left_out.gone).tolist()):
        jobs.warn(f"jobs whose GPU tasks got several types of GPU: {several:,}; the type of none is read")
    return [kinds.pop() if len(kinds) == 1 else "" for kinds in found]


def _spans(job: np.ndarray, start_s: np.ndarray, end_s: np.ndarray, jobs: int) -> tuple[np.ndarray, ...]:
    """First and last start, first and last end of the tasks of each job, float64 (jobs,); 0 for none."""
    found = []
    for times_s in (start_s, end_s):
        for least, begin in ((np.minimum, np.inf), (np.maximum, -np.inf)):
            one = np.full(jobs, begin)
            least.at(one, job, times_s)
            found.append(np.where(np.isfinite(one), one, 0.0))
    return tuple(found)


def _job_table(path: Path, names: list[str], bad_rows: BadRows) -> tuple[list[str], np.ndarray]:
    """(user, submission in seconds or nan) of each job, from the job table at `path` if it is there."""
    if not path.is_file():
        return [""] * len(names), np.full(len(names), np.nan)
    header = None if read_head(path).has("job_name") else JOB_COLUMNS
    table = read_csv(path, header=header, keep=_JOB_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    submitted_s = table.number("start_time", low=0, blank=np.nan)
    ids, users = table.text("job_name"), table.text("user", "")
    assert table.left_out is not None
    row = {ids[i]: i for i in table.left_out.kept_rows().tolist()}
    found = [row.get(name) for name in names]
    if all(i is None for i in found):
        raise InputError(f"{path}: names no job of the task table beside it; expected the job table of the same trace")
    known_s = np.array([np.nan if i is None else submitted_s[i] for i in found])
    return ["" if i is None else users[i] for i in found], known_s
