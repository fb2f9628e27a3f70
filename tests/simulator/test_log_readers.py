"""Readers of logs by their documentation: every row here is made up; and what is said of what they read."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload, recognise
from clustergym.tests.support.paths import DATA, WORKLOADS

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


# ---- which format a file is in


SIMPLE = "job_id,submit_time,num_gpu,duration"


@pytest.mark.parametrize(
    ("header", "row", "name"),
    [
        (SIMPLE, "a,0,1,10", "simple"),
        (f"{SIMPLE},model_name", "a,0,1,10,vgg", "tiresias"),
        (f"{SIMPLE},creation_time", "a,0,1,10,0", "openb"),  # it names what another format asks for
        (f"{OWN},gpu_num", "a,0,1,10,1", "csv"),  # Helios knows two of its columns, our own schema four
        (f"{OWN};x".replace(",", ";"), "a;0;1;10;x", "csv"),
        (f"{OWN},x,y,z".replace(",", "\t"), "a\t0\t1\t10\tx\ty\t2", "csv"),  # of as many columns as Gavel's
    ],
)
def test_the_format_that_knows_most_columns_of_a_file_reads_it(tmp_path, header, row, name):
    (tmp_path / "w.csv").write_text(f"{header}\n{row}\n")
    assert recognise(tmp_path / "w.csv") == name


def test_no_other_file_of_the_tests_is_taken_for_a_trace():
    """Of workloads test_workloads_readers.py has the formats by name; outages, prices, links and hosts are none."""
    others = [path for path in DATA.rglob("*.*") if WORKLOADS not in path.parents]
    assert len(others) >= 7
    for path in others:
        with pytest.raises(InputError, match="not recognised"):
            recognise(path)


@pytest.mark.parametrize("column", SIMPLE.split(","))
def test_simple_asks_for_all_its_four_columns(tmp_path, column):
    (tmp_path / "w.csv").write_text(",".join(one for one in SIMPLE.split(",") if one != column) + "\n1,2,3\n")
    with pytest.raises(InputError, match="the format is not recognised"):
        recognise(tmp_path / "w.csv")


def test_two_formats_that_know_as_many_columns_are_refused_by_name(tmp_path):
    """Pollux and Philly know one column each of these."""
    (tmp_path / "w.csv").write_text("application,timestamp,gpu_time\na,b,c\n")
    (tmp_path / "v.csv").write_text("application,timestamp,name,num_gpus\na,b,c,d\n")
    assert recognise(tmp_path / "w.csv") == "philly"
    with pytest.raises(InputError, match=r"v.csv: it may be philly or pollux alike; say which with --format$"):
        recognise(tmp_path / "v.csv")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            "job_id;arrival;gpus;duration",
            "did you mean arrival_s for 'arrival', duration_s for 'duration'? one of your",
        ),
        ("Job_ID\tarrival_time\tgpus\ttime", "did you mean job_id for 'Job_ID', arrival_s for 'arrival_time'? one of"),
        ("id,when,how,what", "(its columns are 'id, when, how, what'); one of your own begins with the line"),
        ("job_id/arrival_s/gpus/duration_s", "commas, semicolons, tabs or bars separate columns"),
    ],
)
def test_an_unknown_file_is_answered_with_what_was_looked_for(tmp_path, header, said):
    (tmp_path / "w.txt").write_text(f"{header}\n")
    with pytest.raises(InputError) as caught:
        recognise(tmp_path / "w.txt")
    assert said in str(caught.value)


def test_a_column_of_another_name_is_asked_after(tmp_path):
    (tmp_path / "w.csv").write_text("job_id,arrival,gpus,duration_s\na,0,1,10\n")
    with pytest.raises(InputError, match=r"column 'arrival_s' is missing; did you mean 'arrival'[?] it has: "):
        open_workload(tmp_path / "w.csv")
