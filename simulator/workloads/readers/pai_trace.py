"""Alibaba PAI (cluster-trace-gpu-v2020): the task table, or the job csv of its simulator.

Two published forms (github alibaba/clusterdata, cluster-trace-gpu-v2020/README.md and simulator/utils.py):
* pai_task_table.csv, without a header line: job_name, task_name, inst_num, status, start_time, end_time,
  plan_cpu, plan_mem, plan_gpu (percent of one GPU, per instance), gpu_type. A job is the sum of its tasks:
  GPUs are the sum of inst_num x ceil(plan_gpu / 100), its run time goes from the first start to the last end
  of its GPU tasks. If pai_job_table.csv (job_name, inst_id, user, status, start_time, end_time) lies in the
  same directory, user and submission (its start_time) come from there, else a job arrives when its first GPU
  task starts. Jobs with a GPU task that lacks start or end are dropped.
* simulator/traces/pai/pai_job_*_estimate_100K.csv: job_id, num_gpu (GPUs per instance, may be a fraction),
  num_inst (1 where the column is missing, as the authors' simulator has it), submit_time (s), duration (s),
  user, ...
A fraction of a GPU takes a whole one. CPU jobs and jobs without run time are dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "pai"
SUMMARY = "Alibaba PAI 2020: pai_task_table.csv, or the job csv of its simulator"

TASK_COLUMNS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
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


def read(path: str | Path) -> Workload:
    """Read a PAI trace in either form; what is no GPU job is dropped with one warning.

    Raises:
        InputError: naming file, line, column, value and what was expected.
    """
    from ...jobs.trace_head import read_head

    columns = read_head(path).columns
    if _headerless(columns):
        return _from_tasks(read_csv(path, header=TASK_COLUMNS))
    if "plan_gpu" in columns or ("job_name" in columns and "job_id" not in columns):
        return _from_tasks(read_csv(path))
    return _from_jobs(read_csv(path, keep={"job_id", "num_gpu", "num_inst", "submit_time", "duration", "user"}))


def _from_jobs(table: Table) -> Workload:
    share = table.number("num_gpu", low=0, high=LARGEST_GANG, blank=0)
    instances = table.number("num_inst", low=0, high=_MOST_INSTANCES, whole=True, default=1, blank=1)
    gpus = np.ceil(share).astype(np.int64) * instances
    duration_s = table.number("duration", low=0, blank=0)
    return table.workload(
        job_id="job_id",
        arrival_s=table.number("submit_time", low=0),
        gpus=gpus,
        duration_s=duration_s,
        kept=table.where((gpus > 0) & (duration_s > 0), "CPU jobs, or no run time"),
        user=table.text("user", ""),
    )


def _from_tasks(table: Table) -> Workload:
    percent = table.number("plan_gpu", low=0, high=1e9, blank=0)
    instances = table.number("inst_num", low=0, high=_MOST_INSTANCES, whole=True, blank=0)
    start_s = table.number("start_time", low=0, blank=np.nan)
    end_s = table.number("end_time", low=0, blank=np.nan)
    task_gpus = np.ceil(percent / 100).astype(np.int64) * instances
    code: dict[str, int] = {}
    job = np.array([code.setdefault(name, len(code)) for name in table.text("job_name")])
    names = list(code)  # in the order of the file
    first_row = np.unique(job, return_index=True)[1]
    on_gpu = task_gpus > 0
    gpus = np.bincount(job, weights=task_gpus, minlength=len(names)).astype(np.int64)
    begin_s, finish_s = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    with np.errstate(invalid="ignore"):  # nan wins in both, so a job with an open task stays nan
        np.minimum.at(begin_s, job[on_gpu], start_s[on_gpu])
        np.maximum.at(finish_s, job[on_gpu], end_s[on_gpu])
    jobs = Table(table.path, {"job_name": names}, table.places[first_row], table.unit)
    users, submitted_s = _job_table(Path(table.path).with_name("pai_job_table.csv"), jobs.text("job_name"))
    with np.errstate(invalid="ignore"):  # CPU jobs have -inf - inf; they are dropped
        run_s = finish_s - begin_s
    return jobs.workload(
        job_id="job_name",
        arrival_s=np.where(np.isnan(submitted_s), begin_s, submitted_s),
        gpus=gpus,
        duration_s=run_s,
        kept=jobs.where((gpus > 0) & (run_s > 0), "CPU jobs, or no start or end"),
        user=users,
    )


def _job_table(path: Path, names: list[str]) -> tuple[list[str], np.ndarray]:
    """(user, submission in seconds or nan) of each job, from the job table at `path` if it is there."""
    if not path.is_file():
        return [""] * len(names), np.full(len(names), np.nan)
    table = read_csv(path)
    if "job_name" not in table:
        table = read_csv(path, header=JOB_COLUMNS)
    submitted_s = table.number("start_time", low=0, blank=np.nan)
    row = {name: i for i, name in enumerate(table.text("job_name"))}
    users = table.text("user", "")
    found = [row.get(name) for name in names]
    if all(i is None for i in found):
        raise InputError(f"{path}: names no job of the task table beside it; expected the job table of the same trace")
    return (
        ["" if i is None else users[i] for i in found],
        np.array([np.nan if i is None else submitted_s[i] for i in found]),
    )
