"""Readers of logs by their documentation: every row here is made up; and what is said of what they read."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload

OWN = "job_id,arrival_s,gpus,duration_s"
UNHEEDED = (
    "{} read, but nothing outside regions heeds them yet: there the column parts gives types, as A100:16 "
    "(docs/concepts/workloads.md)"
)


def read(path: Path, text: str, **options) -> tuple[Workload, list[str]]:
    """The workload of a file with this text, and what its reader said, without the file's name."""
    path.write_text(text)
    return said_of(path, **options)


def said_of(path: Path, **options) -> tuple[Workload, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorkloadWarning)
        workload = open_workload(path, **options)
    return workload, [str(one.message).removeprefix(f"{path}: ") for one in caught]


@pytest.mark.parametrize(
    ("more", "cells", "said"),
    [
        (",gpu_type", ",A100", ["gpu_type is"]),
        (",gpu_type", ",", []),
        (",level,tenant", ",1,x", ["level, tenant are"]),
        (",level,tenant", ",0,x", []),  # all are of the highest level, as are those of a file without levels
        (",tenant", ",x", []),
    ],
)
def test_types_and_levels_outside_regions_are_answered_with_where_they_live(tmp_path, more, cells, said):
    _, heard = read(tmp_path / "w.csv", f"{OWN}{more}\na,0,1,10{cells}\n")
    assert heard == [UNHEEDED.format(which) for which in said]


def test_types_of_regions_are_heeded(tmp_path):
    (tmp_path / "w.tables.csv").write_text("table,size_tb,home\n")
    _, heard = read(tmp_path / "w.csv", f"{OWN},parts,level\na,0,1,10,A100:1,3\n")
    assert not any("heeds" in one for one in heard)
