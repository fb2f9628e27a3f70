"""Reads what ps_jobs.py describes: the columns of parameter-server jobs in a workload's file, into PsJobs."""

from __future__ import annotations

import numpy as np

from ...base.errors import InputError
from ...jobs.ps_jobs import AGREEMENT, COLUMNS, GIGABYTE, LARGEST_BYTES, LONGEST_S, MOST_ITERATIONS, PsJobs
from ...jobs.trace_columns import Table
from ...jobs.workload import LARGEST_GANG

_MOST_GB = LARGEST_BYTES / GIGABYTE


def has_ps(table: Table) -> bool:
    """Whether a file is one of parameter-server jobs: it has one of their columns."""
    return any(column in table for column in COLUMNS)


def read_ps(table: Table) -> PsJobs:
    """The columns of parameter-server jobs, in the order of the rows; InputError: a bad cell, with its place."""
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        there = next(column for column in COLUMNS if column in table)
        raise InputError(
            f"{table.path}: column {missing[0]!r} is missing beside {there!r}; "
            f"expected all of {', '.join(COLUMNS)}, or none"
        )
    if "parts" in table:
        raise InputError(f"{table.path}: columns 'parts' and 'comm_s': expected one, as PS jobs have no regions")
    sizes = {column: table.number(column, low=0, high=_MOST_GB) * GIGABYTE for column in ("input_gb", "model_gb")}
    ps = PsJobs.of(
        table.number("comp_machine_s", low=0, above=True, high=LONGEST_S),
        table.number("comm_s", low=0, above=True, high=LONGEST_S),
        sizes["input_gb"],
        sizes["model_gb"],
        table.number("epoch_iterations", low=1, high=MOST_ITERATIONS, whole=True),
    )
    iterations = table.number("iterations", low=1, high=MOST_ITERATIONS, whole=True)
    expected_s = iterations * ps.iteration_s(table.number("gpus", low=1, high=LARGEST_GANG, whole=True))
    duration_s = table.number("duration_s", low=0, above=True)
    apart = ~(np.abs(duration_s - expected_s) <= AGREEMENT * expected_s)
    if apart.any():
        row = int(np.argmax(apart))
        expected = f"{expected_s[row]} to a millionth, which is iterations x (comp_machine_s / gpus + comm_s)"
        raise table.error(row, "duration_s", expected)
    return ps
