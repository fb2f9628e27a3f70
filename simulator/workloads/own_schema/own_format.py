"""Our own schema (simulator/jobs/workload.py has it column by column), as csv and as parquet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...files import sealed_parquet
from ...files.regular_files import read_bytes
from ...jobs import ps_jobs, region_columns
from ...jobs.left_out import warn_of_unread
from ...jobs.trace_columns import A_TRACE, Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import COLUMNS, LARGEST_GANG, PARQUET_NAME_KEY, TEXT, Workload, clip
from .ps_reading import has_ps, read_ps
from .region_reading import read_demands

NAME = "csv"
SUMMARY = "our own schema: job_id, arrival_s, gpus, duration_s and optional columns"
KNOWN = (*COLUMNS, *region_columns.COLUMNS, *ps_jobs.COLUMNS)
_POSITIVE: Mapping[str, Any] = {"low": 0, "above": True}
_MAY_BE_BLANK = {"default": np.nan, "blank": np.nan}
_MAY_BE_NEVER = {"high": np.inf, "default": np.inf, "blank": np.inf}
NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "duration_s": _POSITIVE,
    "iterations": {**_POSITIVE, **_MAY_BE_BLANK},
    "iteration_s": {**_POSITIVE, **_MAY_BE_BLANK},
    "arrival_s": {"low": 0},
    "gpus": {"low": 1, "high": LARGEST_GANG, "whole": True},
    "batch_size": {"low": 0, "high": 2**62, "whole": True, "default": 0, "blank": 0},
    "priority": {"low": -(2**63), "high": 2**63, "whole": True, "default": 0, "blank": 0},
    "deadline_s": {**_POSITIVE, **_MAY_BE_NEVER},
    "estimate_s": {**_POSITIVE, **_MAY_BE_NEVER},
    "level": {"low": 0, "high": 2**31, "whole": True, "default": 0, "blank": 0},
    "start_s": {"low": 0, **_MAY_BE_NEVER},
}
PARQUET_SUMMARY = "our own schema, as parquet"


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return not head.is_json and (head.has("arrival_s") or head.has("job_id", "duration_s"))


def recognises_parquet(head: Head) -> bool:
    """Whether it is a parquet file."""
    return head.is_parquet


def read(path: str | Path) -> Workload:
    """A csv in our own schema; the workload's name is the file's stem."""
    return _workload(read_csv(path, is_guarded=True), Path(path).stem)


def read_parquet(path: str | Path) -> Workload:
    """A parquet file in our own schema; its name is the saved one, else the file's stem.

    The seal of `Workload.save`, else the checksums of pages, are verified. InputError: damaged, or as `read`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(path, A_TRACE)
    if sealed_parquet.state(data) == "damaged":
        raise InputError(f"{path}: its checksum is wrong: the file was damaged after it was written")
    try:
        held = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        columns: dict[str, Any] = {name: _plain(held.column(name)) for name in held.column_names if name in KNOWN}
        metadata = held.schema.metadata or {}
        name = metadata.get(PARQUET_NAME_KEY, b"").decode("utf-8", "replace") or Path(path).stem
    except Exception as error:  # pyarrow raises a dozen kinds on a broken file, OSError and KeyError among them
        raise InputError(
            f"{path}: not a readable parquet file ({clip(str(error).splitlines()[0] if str(error) else '')})"
        ) from None
    if not held.num_rows:
        raise InputError(f"{path}: no rows; expected at least one job")
    table = Table(str(path), columns, np.arange(1, held.num_rows + 1), "row", tuple(held.column_names))
    return _workload(table, name)


def _plain(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        return column.to_numpy()
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _workload(table: Table, name: str) -> Workload:
    known = dict.fromkeys((*COLUMNS, *(region_columns.COLUMNS if "parts" in table else ()), *ps_jobs.COLUMNS))
    warn_of_unread(table.path, table.header, known)
    ps = read_ps(table) if has_ps(table) else None
    numbers = table.numbers(NUMBERS)
    duration_s, iterations, iteration_s, arrival_s = (
        numbers[name] for name in ("duration_s", "iterations", "iteration_s", "arrival_s")
    )
    spent_s = duration_s / np.where(np.isnan(iterations), duration_s, iterations)
    rest: dict[str, Any] = {"iteration_s": np.where(np.isnan(iteration_s), spent_s, iteration_s)}
    rest |= {name: numbers[name] for name in ("batch_size", "priority", "deadline_s", "estimate_s", "level", "start_s")}
    rest |= {name: table.text(name, "") for name in TEXT[1:]}
    read = table.workload("job_id", arrival_s, numbers["gpus"], duration_s, iterations=iterations, **rest)
    order = np.argsort(arrival_s, kind="stable")
    geo = read_demands(table, table.path).take(order) if "parts" in table else None
    ps = None if ps is None else ps.take(order)
    return replace(read, name=name, geo=geo, ps=ps)
