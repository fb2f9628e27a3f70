"""A csv of outages with dates, `start,end,what,name` and perhaps `notice_s`, made into that of `outages=`."""

from __future__ import annotations

import io

import numpy as np

from ..base.errors import InputError
from ..events.outage_list import COLUMNS, MOST_ROWS
from ..files.csv_cells import write_csv
from ..jobs.trace_columns import read_csv
from .readers.log_fields import Clock, times_s

READ = ("start", "end", "what", "name", "notice_s")
EXPECTED = f"a csv of outages with dates: {', '.join(READ[:-1])}, and perhaps {READ[-1]}"


def from_dates(path: str, origin: str) -> str:
    """The csv of outages on a workload's clock, whose time 0 is the date `origin`; dates without an offset are UTC.

    What began before time 0 begins there; rows that ended by then are left out, with a warning. InputError: no date, or
    file, line and value of a bad row; `what` and `name` are checked where they are used.
    """
    origin_s, _ = Clock("UTC").read(origin) or (np.nan, np.nan)
    if np.isnan(origin_s):
        raise InputError(
            f"origin {origin!r}: expected a date YYYY-MM-DDTHH:MM:SS, with Z or an offset as +01:00, or UTC"
        )
    table = read_csv(path, keep=READ, most=MOST_ROWS, expected=EXPECTED)
    start_s, end_s = (times_s(table, name) - origin_s for name in READ[:2])
    for name, time_s in zip(READ, (start_s, end_s), strict=False):
        table.mark_bad(np.isnan(time_s), name, "a date YYYY-MM-DD HH:MM:SS")
    table.mark_bad(end_s <= start_s, "end", "a date after start")
    columns = [table.text(name) for name in ("what", "name", *READ[4:][: "notice_s" in table])]
    is_over = end_s <= 0.0
    if is_over.any():
        table.warn(f"{is_over.sum():,} of {len(table):,} outages are left out, as they end before time 0, {origin}")
    start_s = np.maximum(start_s, 0.0)
    rows = zip(start_s.tolist(), (end_s - start_s).tolist(), *columns, strict=True)
    file = io.StringIO()
    header = COLUMNS[: 2 + len(columns)]
    write_csv(file, header, (row for row, gone in zip(rows, is_over.tolist(), strict=True) if not gone))
    return file.getvalue()
