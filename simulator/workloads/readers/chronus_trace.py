"""Chronus csv (SoCC'21): Philly jobs with deadlines; times in scheduler slots.

Source: github S-Lab-System-Group/ChronusArtifact, code/data/exp/trace_job_Philly_*.csv (MIT): job_id, user (a virtual
cluster), num_gpu, submit_time, iterations, model_name, duration, interval, expect_time_list, expect_value_list,
best_effort, job_type (strict, soft, best). A slot is about 60 s (inferred from the Philly trace; `slot_s`).

expect_time_list holds deadlines relative to submission (1.1-5 times the duration whatever the submission), several for
soft jobs ("202-252-292-332", of falling value): the first, of full value, is the deadline, or with `deadline=last` the
last. Best-effort jobs have none (their entry repeats submit_time). 0 iterations are not known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from ...base.errors import InputError
from ...jobs.left_out import BadRows
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "chronus"
SUMMARY = "Chronus csv with deadlines (times in slots of slot_s seconds)"

_READ = (
    *("job_id", "user", "num_gpu", "submit_time", "iterations"),
    *("model_name", "duration", "expect_time_list", "best_effort"),
)
_HARMLESS = {
    "interval": "the gap to the job before",
    "expect_value_list": "what a deadline is worth; the first is worth most",
    "job_type": "strict, soft or best: as many deadlines as it has",
}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("expect_time_list") or (head.has("num_gpu", "best_effort") and not head.has("ddl"))


def read(
    path: str | Path, *, slot_s: float = 60.0, deadline: Literal["first", "last"] = "first", bad_rows: BadRows = "drop"
) -> Workload:
    """Read a Chronus csv without jobs of no GPUs or time; `slot_s`: seconds of a slot; `deadline`: of several."""
    if not 0 < slot_s <= 1e6:
        raise InputError(f"format chronus: slot_s={slot_s:g}; expected seconds above 0, up to 1e6")
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration", low=0, high=1e9) * slot_s
    arrival_s = table.number("submit_time", low=0, high=1e9) * slot_s
    best_effort = table.number("best_effort", low=0, high=1, whole=True, default=0) == 1
    deadline_s = np.where(best_effort, np.inf, arrival_s + _relative_deadline(table, deadline, best_effort) * slot_s)
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    steps, model, user = table.iterations("iterations"), table.text("model_name", ""), table.text("user", "")
    return table.workload(
        "job_id", arrival_s, gpus, duration_s, iterations=steps, model=model, tenant=user, deadline_s=deadline_s
    )


def _relative_deadline(table: Table, which: str, best_effort: np.ndarray) -> np.ndarray:
    """Slots from submission to the first or last deadline of every row, whatever of best effort."""
    if "expect_time_list" not in table:
        return np.full(len(table), np.inf)
    texts = table.text("expect_time_list")
    values = np.array([_slots(text, which) for text in texts])
    table.mark_bad(
        np.isnan(values) & ~best_effort, "expect_time_list", "deadlines in slots above 0, as 202 or 202-252-292"
    )
    return np.where(np.isnan(values), np.inf, values)


def _slots(text: str, which: str) -> float:
    try:
        slots = [float(part) for part in text.split("-")]
    except ValueError:
        return np.nan
    return (slots[0] if which == "first" else slots[-1]) if all(0 < value < 1e9 for value in slots) else np.nan
