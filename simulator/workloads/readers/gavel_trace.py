"""Gavel traces (OSDI'20): tab separated, no header; a job is a model, a batch, a number of steps and GPUs.

Source: github stanford-futuredata/gavel, scheduler/traces (MIT). 7 columns: job type, command, num_steps_arg,
needs_data_dir, total steps, arrival (s), GPUs. 9 or 10 columns: job type, command, [working directory,] num_steps_arg,
needs_data_dir, total steps, GPUs, priority weight, SLO (multiple of the run time, -1: none), arrival (s).

Steps are iterations. The duration is steps / isolated V100 steps per second (consolidated), `V100_STEPS_PER_S`, from
scheduler/simulation_throughputs.json of that repository. It has 1, 2, 4 and 8 GPUs; another gang takes the largest
measured one below it times the ratio of GPUs (ideal scaling, so an optimistic duration). The deadline is arrival + SLO
x duration. By these rates the Recommendation jobs of traces/msr, 19 % of all, run 535 s in the median, other models
10,636 to 20,413 s. A warning says so; `without=Recommendation` leaves them out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...base.names import choose
from ...files.regular_files import read_text
from ...jobs.left_out import BadRows, LeftOut
from ...jobs.trace_columns import A_TRACE, Table
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "gavel"
SUMMARY = "Gavel trace, tab separated, 7, 9 or 10 columns (durations from V100 steps per second)"

# (job type, batch): {GPUs: steps per second}; batch 0 where the job type has none
V100_STEPS_PER_S: dict[tuple[str, int], dict[int, float]] = {
    ("ResNet-18", 16): {1: 32.3534, 2: 100.142, 4: 123.854, 8: 382.597},
    ("ResNet-18", 32): {1: 29.9472, 2: 94.2489, 4: 114.733, 8: 340.038},
    ("ResNet-18", 64): {1: 24.0932, 2: 74.1359, 4: 95.5881, 8: 255.829},
    ("ResNet-18", 128): {1: 17.9949, 2: 23.9854, 4: 69.9505, 8: 162.092},
    ("ResNet-18", 256): {1: 10.3003, 2: 15.8828, 4: 27.7821, 8: 81.5066},
    ("ResNet-50", 16): {1: 11.3961, 2: 13.8598, 4: 23.1956, 8: 27.7991},
    ("ResNet-50", 32): {1: 7.78726, 2: 10.8346, 4: 13.7632, 8: 24.0674},
    ("ResNet-50", 64): {1: 4.39477, 2: 7.92205, 4: 9.45195, 8: 17.3032},
    ("ResNet-50", 128): {1: 2.49677, 2: 4.22301, 4: 7.02929, 8: 10.2932},
    ("Transformer", 16): {1: 11.0641, 2: 14.1538, 4: 20.085, 8: 71.6517},
    ("Transformer", 32): {1: 10.6209, 2: 13.328, 4: 22.8225, 8: 63.9777},
    ("Transformer", 64): {1: 8.61776, 2: 15.8765, 4: 19.6596, 8: 49.6507},
    ("Transformer", 128): {1: 5.44611, 2: 10.0692, 4: 14.1745, 8: 30.8835},
    ("Transformer", 256): {1: 1.59514, 2: 2.88524, 4: 4.76305, 8: 9.71702},
    ("A3C", 0): {1: 7.17577},
    ("LM", 5): {1: 109.167, 2: 185.724, 4: 126.716, 8: 698.773},
    ("LM", 10): {1: 81.6516, 2: 163.129, 4: 121.478, 8: 615.093},
    ("LM", 20): {1: 64.7425, 2: 132.174, 4: 110.997, 8: 497.295},
    ("LM", 40): {1: 45.2374, 2: 91.5927, 4: 96.0312, 8: 359.307},
    ("LM", 80): {1: 28.24, 2: 58.0915, 4: 74.8073, 8: 231.176},
    ("Recommendation", 512): {1: 23.3176},
    ("Recommendation", 1024): {1: 13.2826},
    ("Recommendation", 2048): {1: 7.46963},
    ("Recommendation", 4096): {1: 3.90605},
    ("Recommendation", 8192): {1: 2.84151},
    ("CycleGAN", 0): {1: 4.42609},
}

_SEVEN = ("job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_s", "gpus")
_NINE = (*_SEVEN[:5], "gpus", "priority", "slo", "arrival_s")
_TEN = (*_NINE[:2], "working_directory", *_NINE[2:])
_SHORT = "Recommendation"
_LAYOUTS = {7: _SEVEN, 9: _NINE, 10: _TEN}
_JOB_TYPE = re.compile(r"(.+?)(?: \(batch size (\d{1,9})\))?")


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    first = next((line for line in head.text.splitlines() if line.strip()), "")
    return not head.is_json and first.count("\t") + 1 in _LAYOUTS and first.rstrip()[-1:].isdigit()


def read(
    path: str | Path, *, steps_per_s: float = 0.0, without: tuple[str, ...] = (), bad_rows: BadRows = "drop"
) -> Workload:
    """Read a Gavel trace at `steps_per_s` (0: the V100 table), `without` jobs of these models."""
    if not 0 <= steps_per_s <= 1e9:
        raise InputError(f"format gavel: steps_per_s={steps_per_s:g}; expected a number from 0 to 1e9")
    table = _table(path, bad_rows)
    _expect_in_place(table)
    gpus = table.number("gpus", low=1, high=LARGEST_GANG, whole=True)
    steps = table.number("total_steps", low=0, above=True)
    arrival_s = table.number("arrival_s", low=0)
    kinds = [_JOB_TYPE.fullmatch(job_type) for job_type in table.text("job_type")]
    models = ["" if kind is None else kind[1] for kind in kinds]
    batches = [0 if kind is None else int(kind[2] or 0) for kind in kinds]
    rates = np.array([steps_per_s or v100_steps_per_s(*job) for job in zip(models, batches, gpus, strict=True)])
    expected = "a job type of Gavel such as 'ResNet-18 (batch size 64)', or the option steps_per_s=RATE"
    table.mark_bad(rates == 0, "job_type", expected)
    slo = table.number("slo", low=-1e9, default=-1)
    duration_s = steps / np.where(rates > 0, rates, 1.0)
    for model in without:
        table.drop(np.array(models) == choose(model, models, "model of the trace"), f"of {model}")
    if not steps_per_s:
        _warn_of_short(table, np.array(models), duration_s)
    ids = [str(i) for i in range(len(table))]
    rest: dict[str, Any] = {"iterations": steps, "model": models, "batch_size": np.array(batches, dtype=np.int64)}
    rest["priority"] = np.rint(table.number("priority", low=-1e9, high=1e9, default=0)).astype(np.int64)
    rest["deadline_s"] = np.where(slo > 0, arrival_s + np.maximum(slo, 0) * duration_s, np.inf)
    return table.workload(ids, arrival_s, gpus, duration_s, **rest)


def _expect_in_place(table: Table) -> None:
    wrong = np.array([not word.strip().startswith("-") for word in table.text("num_steps_arg")])
    table.mark_bad(wrong, "num_steps_arg", "an option of the command such as -n: a column seems to be missing")
    table.number("needs_data_dir", low=0, high=1, whole=True)


def _warn_of_short(table: Table, models: np.ndarray, duration_s: np.ndarray) -> None:
    there = ~table.left_out.gone if table.left_out is not None else np.ones(len(models), bool)
    medians = {str(name): float(np.median(duration_s[there & (models == name)])) for name in np.unique(models[there])}
    short_s = medians.pop(_SHORT, None)
    if short_s is not None and medians and short_s < min(medians.values()):
        share = float((models[there] == _SHORT).mean())
        others = f"{min(medians.values()):,.0f} to {max(medians.values()):,.0f}"
        table.warn(
            f"by Gavel's own rates the {_SHORT} jobs ({share:.0%}) run {short_s:,.0f} s in the median, those of other "
            f"models {others} s; --format gavel:without={_SHORT} leaves them out"
        )


def v100_steps_per_s(model: str, batch: int, gpus: int) -> float:
    """Isolated steps per second on V100s, ideal scaling beyond the measured; 0 for an unknown job type."""
    measured = V100_STEPS_PER_S.get((model, batch))
    if measured is None:
        return 0.0
    base = max(scale for scale in measured if scale <= gpus)
    return measured[base] * gpus / base


def _table(path: str | Path, bad_rows: BadRows) -> Table:
    rows, lines, lost, columns = [], [], [], None
    for number, line in enumerate(re.split(r"\r\n|\n|\r", read_text(path, A_TRACE)), start=1):
        if not line.strip():
            continue
        row = line.split("\t")
        if columns is None:
            columns = _LAYOUTS.get(len(row))
            if columns is None:
                raise InputError(f"{path}, line {number}: {len(row)} tab-separated fields; expected 7, 9 or 10")
        if len(row) != len(columns):
            lost.append((number, f"{len(row)} tab-separated fields; expected {len(columns)}, as before"))
            continue
        rows.append(row)
        lines.append(number)
    if columns is None:
        raise InputError(f"{path}: no rows; expected at least one job")
    kept = {name: [row[i] for row in rows] for i, name in enumerate(columns) if name != "command"}
    left_out = LeftOut(str(path), len(rows), bad_rows, lost)
    return Table(str(path), kept, np.asarray(lines), "line", columns, left_out=left_out)
