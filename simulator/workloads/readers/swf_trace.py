"""Standard Workload Format (Parallel Workloads Archive): a job a line, 18 numbers between blanks; -1 is unknown.

Source: D. G. Feitelson, cs.huji.ac.il/labs/parallel/workload/swf.html, version 2.2. Times are whole or broken seconds;
submit times count from the beginning of the log and stay as they are. Read are

* allocated processors, where above 0, else requested ones. A processor is a GPU, or `procs_per_gpu` of them are one;
* wait time as `start_s` (submit time + wait time), requested time as `estimate_s` (wall clock, as most logs mean it);
* user as `user`, group as `tenant`;
* status 1 (completed), 0 (failed), 5 (cancelled) and -1 (unknown): all held their processors for their run time. 2, 3
  and 4 are partial executions of a job with checkpoints, whose own line, of status 0 or 1, sums them: left out;
* of the header, lines that begin with ";", MaxProcs, else MaxNodes: jobs that hold more are counted in a warning. Its
  other lines (UnixStartTime, TimeZoneString, Queue ...) and remarks between jobs may say anything.

Jobs without submit time, processors or run time are dropped. A run time of 0 stands for less than half a second. A
warning names requested memory, queue, partition, preceding job and think time where they differ between jobs.
"""

from __future__ import annotations

import re
from operator import itemgetter
from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...files.regular_files import read_text
from ...jobs.left_out import BadRows, LeftOut, warn_of_unread
from ...jobs.trace_columns import A_TRACE, Table
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, LONGEST_S, Workload

NAME = "swf"
SUMMARY = "Standard Workload Format: 18 numbers a line (processors as GPUs)"

FIELDS = (
    *("job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time"),
    *("used memory", "requested processors", "requested time", "requested memory", "status", "user", "group"),
    *("executable", "queue", "partition", "preceding job", "think time"),
)
_HARMLESS = {
    **dict.fromkeys(("average CPU time", "used memory"), "what it did with its processors, which it held all the time"),
    "executable": "a number that names no model",
}
_UNREAD = ("requested memory", "queue", "partition", "preceding job", "think time")
_READ = tuple(name for name in FIELDS if name not in _UNREAD and name not in _HARMLESS)
_pick = itemgetter(*map(FIELDS.index, _READ))
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(e[-+]?\d+)?", re.I)
_SIZE = re.compile(r"^;\s*(MaxProcs|MaxNodes):\s*([1-9]\d{0,8})\b", re.M)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    row = next((row for line in head.text.split("\n") if (row := line.split()) and line.lstrip()[0] != ";"), [])
    return len(row) == len(FIELDS) and all(map(_NUMBER.fullmatch, row))


def read(path: str | Path, *, procs_per_gpu: int = 1, bad_rows: BadRows = "drop") -> Workload:
    """Read a log or model; `procs_per_gpu` processors, 1 to 10^6, are a GPU (rounded up over a job)."""
    if not 1 <= procs_per_gpu <= 10**6:
        raise InputError(f"format swf: procs_per_gpu={procs_per_gpu}; expected a whole number from 1 to 1,000,000")
    table, header = _table(path, bad_rows)
    status = table.number("status", low=-1, high=5, whole=True)
    is_partial = (status >= 2) & (status <= 4)
    table.drop(is_partial, "partial executions of jobs that have a line of their own")
    table.number("job number", low=0, whole=True)
    submit_s, wait_s, run_s, asked_s = (_known(table, f"{one} time") for one in ("submit", "wait", "run", "requested"))
    allocated, requested = (_known(table, f"{one} processors", whole=True) for one in ("allocated", "requested"))
    user, group = (_known(table, name, whole=True) for name in ("user", "group"))
    processors = np.maximum(np.where(allocated > 0, allocated, requested), 0)
    run_s[is_partial] = 0.0  # these seconds are in their job's own line
    table.drop(submit_s < 0, "without a submit time")
    table.drop(processors == 0, "without processors")
    table.drop(run_s < 0, "without a run time")
    table.drop(run_s == 0, "whose run time is rounded to 0 s")
    _warn_of_larger(table, header, processors)
    is_shared = bool((processors % procs_per_gpu).any())
    return table.workload(
        "job number",
        submit_s,
        processors / procs_per_gpu if is_shared else processors // procs_per_gpu,
        run_s,
        share="whole" if is_shared else None,
        start_s=np.where(wait_s < 0, np.inf, submit_s + wait_s),
        estimate_s=np.where(asked_s > 0, asked_s, np.inf),
        user=_names(user),
        tenant=_names(group),
    )


def _known(table: Table, name: str, *, whole: bool = False) -> np.ndarray:
    """A field, -1 where it is unknown; float64, int64 with `whole`."""
    values = table.number(name, low=-1, high=LARGEST_GANG if whole else LONGEST_S, whole=whole)
    table.mark_bad((values > -1) & (values < 0), name, "a number of at least 0, or -1: unknown", values)
    return values


def _names(numbers: np.ndarray) -> list[str]:
    return ["" if number < 0 else str(number) for number in numbers.tolist()]


def _warn_of_larger(table: Table, header: str, processors: np.ndarray) -> None:
    """Say how many jobs hold more processors than the header says that there are."""
    sizes = dict(_SIZE.findall(header))
    size = int(sizes.get("MaxProcs") or sizes.get("MaxNodes") or LARGEST_GANG)
    assert table.left_out is not None
    larger = int(((processors > size) & ~table.left_out.gone).sum())
    if larger:
        table.warn(f"{larger:,} jobs hold more than the {size:,} processors of the header (MaxProcs, else MaxNodes)")


def _table(path: str | Path, bad_rows: BadRows) -> tuple[Table, str]:
    """The rows, of the fields that are read, and the header."""
    header, rows, lines, lost = [], [], [], []
    same = list(map(FIELDS.index, _UNREAD))  # those that have one value in all rows
    first: list[str] = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", read_text(path, A_TRACE)), start=1):
        row = line.split(None, len(FIELDS))  # one more than there should be
        if not row or row[0][0] == ";":
            header.append(line)
        elif len(row) != len(FIELDS):
            many = len(row) if len(row) < len(FIELDS) else f"more than {len(FIELDS)}"
            lost.append((number, f"{many} fields; expected {len(FIELDS)}, between blanks"))
        else:
            rows.append(_pick(row))
            lines.append(number)
            first = first or row
            if any(row[place] != first[place] for place in same):
                same = [place for place in same if row[place] == first[place]]
    if not (rows or lost):
        raise InputError(f"{path}: a header but no rows; expected at least one job")
    warn_of_unread(str(path), [name for name in _UNREAD if FIELDS.index(name) not in same], _READ)
    left_out = LeftOut(str(path), len(rows), bad_rows, lost)
    columns = dict(zip(_READ, map(list, zip(*rows, strict=True)) if rows else ([] for _ in _READ), strict=True))
    return Table(str(path), columns, np.asarray(lines, np.int64), "line", FIELDS, left_out=left_out), "\n".join(header)
