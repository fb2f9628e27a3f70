"""Alibaba gpu-v2026 (ASI): jobs rebuilt from asi_opensource_pod_hourly, which has a row a pod and hour.

Read by its documentation, not tried on the real table: github alibaba/clusterdata, cluster-trace-gpu-v2026/docs. It is
parquet in folders day=D/hour=HH; their parent is read, or one file with columns day and hour: pod_id, workload_id,
state_public, gpu_spec_public, priority_class (HP, LP, Other: levels 0 to 2), job_type_public, gpu_request (GPUs, shares
included), schedule_delay_sec (from submission to scheduling, where known). No time of submission, start or end is
published (issue 257 there), so

* a pod starts in the first hour in which it is seen and not pending, and ends in the last. `arrival=first` takes the
  begin of the one and the end of the other, so k hours of presence are a run time of k; `arrival=last` the end of the
  one and the begin of the other, k - 2 hours, at least a minute. Every start and end is within an hour of the true one,
  and the true GPU-hours lie between those of both;
* it arrives schedule_delay_sec before its start, which then is `start_s`; where that is not known, at its start;
* training pods of one workload_id with the same first and last hour are a gang. Any other pod is a job of its own.

The table has 350 GB, 184 days: make a folder of a few.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows, LeftOut, Share, warn_of_unread
from ...jobs.trace_columns import Table
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import LARGEST_GANG, LONGEST_S, Workload, clip

NAME = "gpu-v2026"
SUMMARY = "Alibaba gpu-v2026 asi_opensource_pod_hourly: arrivals to the hour (by its documentation)"

_TEXTS = ("pod_id", "workload_id", "state_public", "gpu_spec_public", "priority_class", "job_type_public")
_NUMBERS = ("day", "hour", "gpu_request", "schedule_delay_sec")
_HARMLESS = {
    **dict.fromkeys(("server_id", "cluster_id", "server_gpu_count", "server_cpu_capacity_cores"), "where it lay there"),
    **dict.fromkeys(("model_type_public", "is_genai_request"), "kinds of models, none by name"),
    **dict.fromkeys(("gpu_mem_request", "cpu_request_cores", "used_gpu_hours", "avg_gpu_sm_util"), "no part of a job"),
    **dict.fromkeys(("avg_gpu_mem_gib", "avg_cpu_request_util", "avg_memory_util"), "no part of a job"),
    **dict.fromkeys(("ready_status", "ready_delay_sec"), "from its start on it holds its GPUs"),
}
_READ = (*_TEXTS, *_NUMBERS)
KNOWN = (*_READ, *_HARMLESS)
_LEVELS = {"HP": 0, "LP": 1, "Other": 2}
_HOUR_S, _LEAST_S = 3600.0, 60.0


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.is_parquet and {"pod_id", "gpu_request", "priority_class"} <= set(head.columns)


def read(
    path: str | Path,
    *,
    arrival: Literal["first", "last"] = "first",
    share: Share = "whole",
    bad_rows: BadRows = "drop",
) -> Workload:
    """Read hours of pods as jobs from the begin of their first hour to the end of their last, or (`last`) between."""
    columns = _jobs(_rows(path))
    places = np.arange(1, len(columns["pod_id"]) + 1)
    table = Table(str(path), columns, places, "job", left_out=LeftOut(str(path), len(places), bad_rows))
    first, last, seen = (np.nan_to_num(table.columns[name]) for name in ("first", "last", "seen"))  # hours
    asked = table.number("gpu_request", low=0, high=LARGEST_GANG, blank=0)
    delay_s = table.number("schedule_delay_sec", low=0, high=LONGEST_S, blank=np.nan)
    level = np.array([_LEVELS.get(word, -1) for word in table.text("priority_class")])
    table.mark_bad(level < 0, "priority_class", ", ".join(_LEVELS))
    table.drop(asked == 0, "without a GPU")
    table.drop(seen == 0, "only seen pending")
    assert table.left_out is not None
    edges = (first == first[seen > 0].min(initial=np.inf), last == last.max(), last - first >= seen)
    open_before, open_after, broken = (int((one & ~table.left_out.gone).sum()) for one in edges)
    bounds, other = ("most", "last") if arrival == "first" else ("least", "first")
    table.warn(
        f"starts and ends are known to the hour: jobs run the {bounds} that fits the hours in which they were seen, "
        f"--format {NAME}:arrival={other} gives the other bound. Hours in between do not count of {broken:,} jobs; "
        f"those in the first hour of the table ({open_before:,}) or its last ({open_after:,}) ran longer than is read"
    )
    run_s, start_s = seen * _HOUR_S, first * _HOUR_S
    if arrival == "last":
        run_s = np.maximum(run_s - 2 * _HOUR_S, _LEAST_S)
        start_s += _HOUR_S - _LEAST_S * (seen <= 2)
    rest: dict[str, Any] = {"level": level, "gpu_type": table.text("gpu_spec_public"), "from_start": True}
    rest |= {"start_s": np.where(np.isnan(delay_s), np.inf, start_s)}
    rest |= {"share": share if (asked % 1 > 0).any() else None}
    arrival_s = start_s - np.nan_to_num(delay_s)
    jobs = table.workload("pod_id", arrival_s, asked, run_s, order=np.argsort(arrival_s, kind="stable"), **rest)
    return replace(jobs, origin_s=None)  # hours of the table are no dates


def _jobs(rows: dict[str, Any]) -> dict[str, Any]:
    """Columns of jobs: those of their first pod, GPUs of all, first and last hour of presence, how many were seen."""
    import pyarrow as pa
    import pyarrow.compute as pc

    of_pods = ("workload_id", "job_type_public", "gpu_spec_public", "priority_class", "schedule_delay_sec")
    gathered = [("at", "min"), ("at", "max"), ("at", "count_distinct"), ("gpu_request", "max")]
    pods = pa.table(rows).group_by("pod_id", use_threads=False)
    pods = pods.aggregate(gathered + [(name, "first") for name in of_pods])
    pods = pods.rename_columns(["pod_id", "first", "last", "seen", "gpu_request", *of_pods])
    is_gang = pc.fill_null(pc.equal(pods["job_type_public"], "training"), False)
    gang = pc.if_else(is_gang, pc.coalesce(pods["workload_id"], pods["pod_id"]), pods["pod_id"])
    of_jobs = ("pod_id", "seen", *of_pods[2:])
    jobs = pods.append_column("gang", gang).group_by(["gang", "first", "last"], use_threads=False)
    jobs = jobs.aggregate([("gpu_request", "sum"), *((name, "first") for name in of_jobs)])
    jobs = jobs.rename_columns(["gang", "first", "last", "gpu_request", *of_jobs]).drop_columns("gang")
    is_text = {name: pa.types.is_string(jobs[name].type) for name in jobs.column_names}
    return {name: jobs[name].fill_null("").to_pylist() if is_text[name] else jobs[name].to_numpy() for name in is_text}


def _rows(path: str | Path) -> dict[str, Any]:
    """Columns of the table as arrow has them, texts and float64, with `at`: hours since day 0, none while pending."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    read_head(path)  # a file, or a folder of parquet files
    try:
        dataset = pq.ParquetDataset(str(path), partitioning="hive")
        names = tuple(dataset.schema.names)
        if missing := [name for name in _READ[:-1] if name not in names]:
            where = " (of folders day=D/hour=HH their parent is read)" if missing[0] in ("day", "hour") else ""
            raise InputError(f"{path}: column {missing[0]!r} is missing{where}; it has: {clip(', '.join(names), 200)}")
        held = dataset.read([name for name in _READ if name in names])
        rows = {name: held[name].cast(pa.string()) for name in held.column_names}
        rows |= {name: rows[name].cast(pa.float64()) for name in _NUMBERS if name in rows}
    except InputError:
        raise
    except Exception as error:  # pyarrow raises a dozen kinds on a broken file, OSError and KeyError among them
        raise InputError(f"{path}: not readable as parquet ({clip(str(error).split(chr(10))[0])})") from None
    warn_of_unread(str(path), names, _READ, _HARMLESS)
    day, hour = rows.pop("day"), rows.pop("hour")
    for name, values, most in (("day", day, 10**5), ("hour", hour, 23)):
        low, high = pc.min_max(values).as_py().values()
        if values.null_count or low is None or not 0 <= low <= high <= most:
            raise InputError(f"{path}: column {name!r} goes from {low} to {high}; expected numbers from 0 to {most}")
    rows.setdefault("schedule_delay_sec", pa.nulls(len(hour), pa.float64()))
    pending = pc.equal(pc.fill_null(rows.pop("state_public"), ""), "Pending")
    return rows | {"at": pc.if_else(pending, None, pc.add(pc.multiply(day, 24.0), hour))}
