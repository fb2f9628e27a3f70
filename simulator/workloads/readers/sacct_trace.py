"""Slurm's accounting: `sacct -P` (or -p, with any columns in any order) and `sacct --json`.

Source: the manual page sacct(1); what JSON holds, by the schema slurmdb of Slurm 21.08 to 25.11. Our mapping:

* A job arrives at Submit, started at Start on the machines of NodeList, and ran for Elapsed, which leaves out time
  suspended; End - Start where Elapsed is not given. User is the user, Account the tenant, Timelimit the estimate.
* Its GPUs are those of AllocTRES, else of ReqTRES: totals of a job, in which `gres/gpu` and `gres/gpu:a100` count the
  same GPUs; else of AllocGRES or ReqGRES of old versions, GPUs of one machine, times NNodes. The type is that of GPUs
  allocated, as the run time belongs to it. Shards and MPS (`gres/shard=2`) are no GPUs.
* Steps (`123.batch`, `123.0`) are no jobs. Dropped are jobs without a GPU, without an end (pending, running) or a run
  time, and what nothing started of: ranges of an array (`123_[1-4%2]`). A job that failed, was cancelled or preempted
  held its GPUs as well.
* With --duplicates a requeued job has a row for each stretch, with a Submit of its own ("if a job is requeued, the
  submit time is reset"): each is a job, the later ones named `123#2`. A row with the JobID, Submit and Start of another
  below, as where exports overlap, is dropped. Each part `123+0` of a heterogeneous job is a job.
* Times are local to a `zone` where sacct does not write an offset. Its JSON has seconds since 1970.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows, LeftOut, warn_of_unread
from ...jobs.trace_columns import Table, cell, json_errors, read_csv
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import Workload, clip
from .log_fields import MOST_HOSTS, durations_s, gpus, have_ended, hosts_of, times_s

NAME = "sacct"
SUMMARY = "Slurm: sacct -P with columns JobID, Submit, Start, End, Elapsed, State, AllocTRES, ..., or sacct --json"

_READ = (
    *("JobID", "User", "Account", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw"),
    *("State", "AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES", "NNodes", "NodeList"),
)
_RAW_ID = "JobIDRaw"  # in place of JobID: tasks of arrays have numbers of their own
_HARMLESS = {
    "": "behind the last bar of sacct -p",
    **dict.fromkeys(("JobName", "Cluster", "UID", "GID", "Group", "WorkDir", "AssocID"), "names"),
    **dict.fromkeys(("ExitCode", "DerivedExitCode", "Reason"), "a job that failed held its GPUs as well"),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "ReqMem", "NTasks", "AllocNodes"), "no part of a workload"),
    **dict.fromkeys(("Suspended", "Eligible", "Planned", "Reserved"), "what became of it there"),
    **dict.fromkeys(("CPUTime", "CPUTimeRAW", "TotalCPU", "UserCPU", "SystemCPU", "MaxRSS"), "what it used"),
}
KNOWN = (*_READ, _RAW_ID, *_HARMLESS)
_OF_JSON = ("job_id", "array", "het", "user", "account", "association", "time", "state", "tres", "nodes")
_POLICY_OF_JSON = {"partition", "qos", "reservation", "priority", "constraints"}  # which this reader does not read
_JOBS = re.compile(r'"jobs"\s{0,9}:\s{0,9}\[')
_GAP = re.compile(r"[\s,]*")
_CHUNK, _LONGEST = 2**22, 32  # characters that are read at once, and of a match of _JOBS


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    if head.is_json:
        return bool(_JOBS.search(head.text)) and '"submission"' in head.text
    if head.is_parquet:
        return False
    columns = {*head.columns, *_between_blanks(head)}
    return bool({"JobID", _RAW_ID} & columns) and bool({"Submit", "State", "Elapsed", "AllocTRES"} & columns)


def _between_blanks(head: Head) -> list[str]:
    """The columns of sacct without -P; none where something else separates them."""
    return head.columns[0].split() if len(head.columns) == 1 else []


def read(path: str | Path, *, zone: str = "UTC", bad_rows: BadRows = "drop") -> Workload:
    """Read the output of sacct, its dates in a `zone`; jobs without GPUs, an end or a run time are dropped."""
    head = read_head(path)
    if {"JobID", _RAW_ID} & {*(blanks := _between_blanks(head))} and len(blanks) > 1:
        raise InputError(
            f"{path}: blanks separate the columns, in which sacct cuts long cells off; print it with sacct -P"
        )
    table = _of_json(path, bad_rows) if head.is_json else _of_text(path, bad_rows)
    submit_s = times_s(table, "Submit", zone)
    start_s, end_s = (_times_s(table, name, zone, submit_s) for name in ("Start", "End"))
    run_s = _run_s(table, start_s, end_s)
    held, types = _gpus(table)
    ids = table.text("JobID")
    table.mark_bad(np.array([not one for one in ids], bool), "JobID", "a job id")
    table.drop(np.array(["[" in one for one in ids], bool), "ranges of an array of which nothing started")
    table.drop(~_ended(table, end_s), "without an end")
    table.drop(held == 0, "without a GPU")
    table.drop(np.isnan(submit_s), "without a time of submission")
    table.drop(~(run_s > 0), "without a run time")
    return table.workload(
        _ids_of_stretches(table, ids, submit_s, start_s),
        submit_s,
        held,
        run_s,
        from_start=True,
        user=table.text("User", ""),
        tenant=table.text("Account", ""),
        estimate_s=_estimates_s(table),
        gpu_type=types,
        start_s=_observed_s(table, start_s, submit_s),
        hosts=_hosts(table),
    )


def _times_s(table: Table, name: str, zone: str, after_s: np.ndarray) -> np.ndarray:
    return times_s(table, name, zone, after_s) if name in table else np.full(len(table), np.nan)


def _ended(table: Table, end_s: np.ndarray) -> np.ndarray:
    return have_ended(table, "State") if "State" in table or "End" not in table else ~np.isnan(end_s)


def _run_s(table: Table, start_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
    """Run times, seconds (n,), nan: unknown; the first of Elapsed, ElapsedRaw and End - Start that a row has."""
    found = np.full(len(table), np.nan)
    for name in ("Elapsed", "ElapsedRaw"):
        found = np.where(np.isnan(found), durations_s(table, name), found) if name in table else found
    if "End" not in table and "ElapsedRaw" not in table:
        table.column("Elapsed")
    return np.where(np.isnan(found), end_s - start_s, found)


def _gpus(table: Table) -> tuple[np.ndarray, list[str]]:
    """GPUs int64 (n,) and their types, of the first column that has some: totals, then those of each machine."""
    held, types = np.zeros(len(table), np.int64), [""] * len(table)
    there = [name for name in ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES") if name in table]
    for name in there or ["AllocTRES"]:
        count, kinds = gpus(table, name, held == 0)
        if name.endswith("GRES") and count.any():
            count = count * table.number("NNodes", low=0, high=MOST_HOSTS, whole=True, blank=0)
        held += count
        types = [one or other for one, other in zip(types, kinds, strict=True)]
    return held, types


def _ids_of_stretches(table: Table, ids: list[str], *times_s: np.ndarray) -> list[str]:
    """Ids that differ: the second stretch of job 12 is `12#2`; rows of the same id and times as others are dropped."""
    assert table.left_out is not None
    ids, stretch, there = [*ids], Counter[str](), ~table.left_out.gone
    keys = zip(ids, *(np.nan_to_num(one_s).tolist() for one_s in times_s), strict=True)
    last = {key: row for row, key in enumerate(keys) if there[row]}
    rows = sorted(last.values())
    there[rows] = False
    table.drop(there, "given again below")
    for row in rows:
        stretch[ids[row]] += 1
        ids[row] += f"#{stretch[ids[row]]}" if stretch[ids[row]] > 1 else ""
    if later := stretch.total() - len(stretch):
        table.warn(f"later stretches of requeued jobs: {later:,}; each is a job with a submission of its own")
    if parts := sum("+" in ids[row] for row in rows):
        table.warn(f"parts of heterogeneous jobs: {parts:,}; each is a job of its own")
    return ids


def _estimates_s(table: Table) -> np.ndarray:
    found = np.full(len(table), np.inf)
    for name, unit_s in (("TimelimitRaw", 60.0), ("Timelimit", 1.0)):
        limit_s = durations_s(table, name) * unit_s if name in table else found
        found = np.where(limit_s > 0, limit_s, found)
    return found


def _observed_s(table: Table, start_s: np.ndarray, submit_s: np.ndarray) -> np.ndarray:
    """When jobs started, inf: unknown, as is a start before the submission."""
    assert table.left_out is not None
    if early := int(((start_s < submit_s) & ~table.left_out.gone).sum()):
        table.warn(f"jobs that start before their submission: {early:,}; their start counts as unknown")
    return np.where(start_s >= submit_s, start_s, np.inf)


def _hosts(table: Table) -> list[str]:
    texts = table.text("NodeList", "")
    found = {text: hosts_of(text) for text in set(texts)}
    bad = np.array([found[text] is None for text in texts], bool)
    table.mark_bad(bad, "NodeList", f"hosts such as gn[01-03,07], at most {MOST_HOSTS:,}", texts)
    return [found[text] or "" for text in texts]


def _of_text(path: str | Path, bad_rows: BadRows) -> Table:
    table = read_csv(path, keep=(*_READ, _RAW_ID), harmless=_HARMLESS, bad_rows=bad_rows)
    if "JobID" not in table and _RAW_ID in table:
        table = replace(table, columns={**table.columns, "JobID": table.column(_RAW_ID)}, shown={"JobID": _RAW_ID})
    steps = np.array(["." in one for one in table.text("JobID")], bool)
    if len(steps) and steps.all():
        raise InputError(f"{path}: {len(table):,} steps and no job; expected jobs, as sacct -X prints them")
    if steps.any():
        table.warn(f"steps of jobs, which are not read: {int(steps.sum()):,}")
    return table.only(~steps) if steps.any() else table


# ---- JSON


def _of_json(path: str | Path, bad_rows: BadRows) -> Table:
    rows: list[tuple[str, ...]] = []
    mistakes: list[tuple[int, str]] = []
    names: set[str] = set()
    for number, job in enumerate(_jobs(path), start=1):
        try:
            fields = _of_kind(job, dict, "the job")
            rows.append(_cells(fields))
            names |= _POLICY_OF_JSON & fields.keys()
        except InputError as error:
            rows.append(("",) * len(_CELLS))
            mistakes.append((number, str(error)))
    if not rows:
        raise InputError(f'{path}: no job in a list "jobs"; expected at least one')
    warn_of_unread(str(path), sorted(names), _OF_JSON)
    left_out = LeftOut(str(path), len(rows), bad_rows)
    for number, said in mistakes:
        left_out.mark_bad(np.array([number - 1]), number, f"job {number}, {said}")
    columns = dict(zip(_CELLS, map(list, zip(*rows, strict=True)), strict=True))
    return Table(str(path), columns, np.arange(1, len(rows) + 1), "job", left_out=left_out)


def _jobs(path: str | Path) -> Iterator[Any]:
    """The jobs of each list "jobs" of a file, one by one: whole, JSON is ten times as large in memory."""
    decoder, text, at, lines, is_within, mistake = json.JSONDecoder(), "", 0, 0, False, None
    with json_errors(path), open(path, encoding="utf-8-sig") as file:
        while more := file.read(max(_CHUNK, len(text) - at)):
            lines, text, at = lines + text.count("\n", 0, at), text[at:] + more, 0
            try:
                while True:
                    if not is_within:
                        if (found := _JOBS.search(text, at)) is None:
                            at = max(at, len(text) - _LONGEST)  # half of a match may stand at the end
                            break
                        at = found.end()
                    at = _GAP.match(text, at).end()  # type: ignore[union-attr]
                    if is_within := text[at : at + 1] != "]":
                        job, at = decoder.raw_decode(text, at)
                        yield job
            except json.JSONDecodeError as error:  # perhaps because the rest follows
                error.lineno += lines
                mistake = error
        if mistake is not None and is_within:
            raise mistake


def _cells(job: Any) -> tuple[str, ...]:
    """What `_CELLS` names of a job; InputError: a field of another kind."""
    time, state = _of_kind(job.get("time"), dict, "time"), _of_kind(job.get("state"), dict, "state")
    tres, owner = _of_kind(job.get("tres"), dict, "tres"), _of_kind(job.get("association"), dict, "association")
    current = state.get("current")
    return (
        _job_id(job),
        cell(job.get("user") or owner.get("user")),
        cell(job.get("account") or owner.get("account")),
        *["" if (text := _number(time.get(name))) == "0" else text for name in ("submission", "start", "end")],
        _number(time.get("elapsed")),
        _number(time.get("limit")),
        cell(current[0] if isinstance(current, list) and current else current),
        _resources(tres.get("allocated"), "allocated") or _resources(tres.get("requested"), "requested"),
        cell(job.get("nodes")),
    )


_CELLS = (
    *("JobID", "User", "Account", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw", "State"),
    *("AllocTRES", "NodeList"),
)


def _job_id(job: dict[str, Any]) -> str:
    array, het = _of_kind(job.get("array"), dict, "array"), _of_kind(job.get("het"), dict, "het")
    if (task := _number(array.get("task_id"))) and array.get("job_id"):
        return f"{cell(array['job_id'])}_{task}"
    if (tasks := array.get("task")) and array.get("job_id"):
        return f"{cell(array['job_id'])}_[{cell(tasks)}]"
    part = _number(het.get("job_offset"))
    return f"{cell(het['job_id'])}+{part}" if part and het.get("job_id") else cell(job.get("job_id"))


def _number(value: Any) -> str:
    """A number, or Slurm's {set, infinite, number} since 23.02, as text; "": not set."""
    if not isinstance(value, dict):
        return str(value) if type(value) is int else cell(value)
    return "UNLIMITED" if value.get("infinite") else cell(value.get("number")) if value.get("set", True) else ""


def _resources(value: Any, name: str) -> str:
    """Tracked resources other than processors and memory as sacct -P writes them: gres/gpu:a100=8."""
    found = []
    for one in _of_kind(value, list, name):
        if _of_kind(one, dict, name).get("type") == "gres":
            found.append(f"gres/{cell(one.get('name'))}={_number(one.get('count'))}")
    return ",".join(found)


def _of_kind(value: Any, kind: type, name: str) -> Any:
    if isinstance(value, kind):
        return value
    if value is None:
        return kind()
    raise InputError(f"{name}: {clip(value)}; expected {'a list' if kind is list else 'an object'}")
