"""Readers of logs by their documentation: every row here is made up; and what is said of what they read."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload, recognise
from clustergym.tests.support.paths import DATA, WORKLOADS
from clustergym.tests.support.pod_hours import PODS, pod_hours, write_pod_folders, write_pod_hours

OWN = "job_id,arrival_s,gpus,duration_s"
UNHEEDED = (
    "{} read, but nothing outside regions heeds {} yet: there the column parts gives types, as A100:16 "
    "(docs/concepts/workloads.md)"
)


def read(path: Path, text: str, **options) -> tuple[Workload, list[str]]:
    """The workload of a file with this text, and what its reader said, without the file's name."""
    path.write_text(text)
    return said_of(path, **options)


def table(workload: Workload, *columns: str) -> list[tuple]:
    """The rows of a workload, of its job ids and these columns."""
    return list(zip(workload.job_id, *(getattr(workload, name).tolist() for name in columns), strict=True))


def said_of(path: Path, **options) -> tuple[Workload, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorkloadWarning)
        workload = open_workload(path, **options)
    return workload, [str(one.message).removeprefix(f"{path}: ") for one in caught]


@pytest.mark.parametrize(
    ("more", "cells", "said"),
    [
        (",gpu_type", ",A100", [("gpu_type is", "it")]),
        (",gpu_type", ",", []),
        (",level,tenant", ",1,x", [("level, tenant are", "them")]),
        (",level,tenant", ",0,x", []),  # all are of the highest level, as are those of a file without levels
        (",tenant", ",x", []),
    ],
)
def test_types_and_levels_outside_regions_are_answered_with_where_they_live(tmp_path, more, cells, said):
    _, heard = read(tmp_path / "w.csv", f"{OWN}{more}\na,0,1,10{cells}\n")
    assert heard == [UNHEEDED.format(*which) for which in said]


def test_priorities_are_said_to_be_heeded_by_no_policy(tmp_path):
    for priority, said in (
        (2, ["priority is read, but no policy here heeds it; in regions the column level counts"]),
        (0, []),
    ):
        _, heard = read(tmp_path / "w.csv", f"{OWN},priority\na,0,1,10,{priority}\n")
        assert [one.removesuffix(" (docs/concepts/workloads.md)") for one in heard] == said


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
    others = [path for path in DATA.rglob("*.*") if WORKLOADS not in path.parents and path.suffix != ".gz"]
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
        ("; MaxProcs: 8\n1 0 5", "(it begins with '; MaxProcs: 8"),
        ("; MaxProcs: 8\n1 0 5", "after lines with ';' --format swf looks for 18 numbers between blanks; one of"),
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


# ---- acme


def test_acme_takes_start_and_end_and_offsets(tmp_path):
    """Kalos: 11:00:00 to 11:00:10 to 11:00:20, so 10 s of run time, not the 20 s that it publishes with the queue."""
    seren, said = said_of(WORKLOADS / "synthetic_acme_seren.csv")
    wanted = ("arrival_s", "gpus", "duration_s", "start_s", "user")
    assert table(seren, *wanted) == [("101", 0, 8, 120, 30, "u1"), ("103", 600, 32, 7200, 4200, "u1")]
    assert said[0].startswith("column 'type' is not read")
    assert said[1].startswith("dropped 2 of 4 jobs: 1 without a GPU, 1 never started")
    kalos, said = said_of(WORKLOADS / "synthetic_acme_kalos.csv")
    assert table(kalos, *wanted) == [("dlca", 0, 64, 10, 10, "ua"), ("dlcb", 1800, 8, 600, 1860, "ua")]
    assert said[1].startswith("dropped 1 of 3 jobs: 1 that had not ended")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("2023-03-01 00:10:30+08:00", "2023-03-01 00:10:30+09:00", "column 'start_time': '2023-03-01 00:10:30+09:00'"),
        ("2023-03-01 00:12:30+08:00", "2023-03-01 00:10:00+08:00", "column 'end_time': '2023-03-01 00:10:00+08:00'; e"),
        ("2023-03-01 00:10:00+08:00", "", "column 'submit_time': ''; expected the time of its submission"),
        ("FAILED", "DONE", "column 'state': 'DONE'; expected a state of Slurm"),
    ],
)
def test_acme_refuses_clocks_that_go_back(tmp_path, was, now, said):
    text = (WORKLOADS / "synthetic_acme_seren.csv").read_text()
    path = tmp_path / "seren.csv"
    path.write_text(text.replace(was, now))
    with pytest.raises(InputError) as caught:
        said_of(path, format="acme:bad_rows=error")
    assert f"{path}, line 2, {said}" in str(caught.value)


# ---- spot-gpu


@pytest.mark.parametrize("share", ["whole", "round"])
def test_spot_gpu_keeps_class_type_and_organization(share):
    """Job 12 asks 3 x 0.5 GPUs for an hour and gets 2: 2 + 1.5 + 16 / 2 = 11.5 GPU-hours are asked, 12 are read."""
    workload, said = said_of(WORKLOADS / "synthetic_spot_gpu.csv", format=f"spot-gpu:share={share}")
    assert table(workload, "arrival_s", "gpus", "duration_s", "level", "tenant", "gpu_type") == [
        ("11", 0, 1, 7200, 0, "3", "A10"),
        ("12", 60, 2, 3600, 1, "3", "A10"),
        ("13", 120, 16, 1800, 1, "7", "A100-SXM4-80GB"),
    ]
    assert said[0].startswith("dropped 2 of 5 jobs: 1 without a GPU, 1 without a run time")
    assert said[1].endswith("11.5 GPU-hours are asked, 12 are read")
    assert said[2:] == [UNHEEDED.format("gpu_type, level, tenant are", "them")]


def test_spot_gpu_knows_two_classes(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text((WORKLOADS / "synthetic_spot_gpu.csv").read_text().replace(",Spot", ",Best"))
    with pytest.raises(InputError, match=r"line 3, column 'job_type': 'Best'; expected HP or Spot$"):
        said_of(path, format="spot-gpu:bad_rows=error")


# ---- supercloud


def test_supercloud_counts_gpus_by_the_numbers_of_resources():
    """Of 7001 four GPUs of resource 1002; a limit of 60 min is 3,600 s, 2^32 - 1 none; 7001 waits 600 s."""
    workload, said = said_of(WORKLOADS / "synthetic_supercloud.csv")
    wanted = ("arrival_s", "gpus", "duration_s", "start_s", "estimate_s", "gpu_type", "user", "hosts")
    assert table(workload, *wanted) == [
        ("7001", 0, 4, 3600, 600, 3600, "volta", "90001", "r1-n1 r2-n2"),
        ("7003", 100, 1, 7200, 100, 7200, "tesla", "90002", "r3-n3"),
        ("7006", 400, 1, 100, 400, float("inf"), "volta", "90001", "r3-n3"),
    ]
    assert said[0].startswith("dropped 3 of 6 jobs: 1 without a GPU, 1 that had not ended, 1 that never ran")
    assert said[1:] == [UNHEEDED.format("gpu_type is", "it")]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("1611004200", "1611000500", "column 'time_end': '1611000500'; expected a time not before time_start"),
        ("5=40,1002=4", "5=40,1002=x", "column 'tres_alloc': "),
        ("1000,3,60", "1000,COMPLETED,60", "column 'state': 'COMPLETED'; expected a whole number"),
    ],
)
def test_supercloud_names_bad_cells(tmp_path, was, now, said):
    path = tmp_path / "slurm-log.csv"
    path.write_text((WORKLOADS / "synthetic_supercloud.csv").read_text().replace(was, now))
    with pytest.raises(InputError) as caught:
        said_of(path, format="supercloud:bad_rows=error")
    assert f"{path}, line 2, {said}" in str(caught.value)


# ---- gpu-v2026


HOUR_S = 3600
EARLIEST = [  # from 20:30 on, when p4 was submitted: half an hour before the first hour in which it was seen
    ("p4", 0, 1, 4 * HOUR_S, 0.5 * HOUR_S, 1),
    ("p1", 0.5 * HOUR_S, 16, 3 * HOUR_S, float("inf"), 0),  # with p2
    ("p3", 1.5 * HOUR_S, 8, 1 * HOUR_S, float("inf"), 1),
    ("p7", 1.5 * HOUR_S, 1, 2 * HOUR_S, float("inf"), 2),
]
LATEST = [  # from 21:30 on
    ("p4", 0, 1, 2 * HOUR_S, 0.5 * HOUR_S, 1),
    ("p1", 0.5 * HOUR_S, 16, 1 * HOUR_S, float("inf"), 0),
    ("p3", 1.5 * HOUR_S - 60, 8, 60, float("inf"), 1),
    ("p7", 1.5 * HOUR_S - 60, 1, 60, float("inf"), 2),
]


@pytest.mark.parametrize("write", [write_pod_folders, write_pod_hours])
@pytest.mark.parametrize(("word", "expected"), [("first", EARLIEST), ("last", LATEST)])
def test_hours_of_pods_become_jobs_within_an_hour(tmp_path, write, word, expected):
    """p1 and p2 are a gang seen in hours 21, 22, 23: from 21:00 to 24:00 at most, from 22:00 to 23:00 at least.

    p3, of the same workload, was seen in other hours; p7 in 22 and 24, pending in 21; p6 pending only; p5 has no GPU.
    """
    path = write(tmp_path / "pods.parquet")
    assert recognise(path) == "gpu-v2026"
    workload, said = said_of(path, format=f"gpu-v2026:arrival={word}")
    wanted = ("arrival_s", "gpus", "duration_s", "start_s", "level")
    assert sorted(table(workload, *wanted)) == sorted(expected)
    assert set(workload.gpu_type) == {"H20"}
    other = {"first": "last", "last": "first"}[word]
    assert (
        f"--format gpu-v2026:arrival={other} gives the other bound. Hours in between do not count of 1 jobs;" in said[0]
    )
    assert said[0].endswith("in the first hour of the table (2) or its last (2) ran longer than is read")
    assert said[1].startswith("dropped 2 of 6 jobs: 1 without a GPU, 1 only seen pending")


def test_hours_of_pods_enclose_what_was_true(tmp_path):
    """A job that ran from 21:40 to 23:10 on 8 GPUs: 12 GPU-hours, read as 24 at most and 8 at least."""
    path = write_pod_hours(tmp_path / "pods.parquet", pod_hours(PODS[:1]))
    most, least = (said_of(path, format=f"gpu-v2026:arrival={word}")[0] for word in ("first", "last"))
    assert [one.work_s().sum() / HOUR_S for one in (most, least)] == [24.0, 8.0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"day": None}, "column 'day' is missing (of folders day=D/hour=HH their parent is read); it has: 'pod_id,"),
        ({"gpu_request": None}, "column 'gpu_request' is missing; it has: "),
        ({"hour": ["24"] * 20}, "column 'hour' goes from 24.0 to 24.0; expected numbers from 0 to 23"),
        ({"day": ["soon"] * 20}, "not readable as parquet (\"Failed to parse string: 'soon'"),
        ({"priority_class": ["P0"] * 20}, "job 1, field 'priority_class': 'P0'; expected HP, LP, Other"),
        ({"gpu_request": [-1.0] * 20}, "job 1, field 'gpu_request': -2.0; expected a number from 0 to 1e+09"),
    ],
)
def test_a_bad_table_of_pods_is_one_sentence(tmp_path, columns, said):
    held = {name: values for name, values in (pod_hours() | columns).items() if values is not None}
    path = write_pod_hours(tmp_path / "pods.parquet", held)
    with pytest.raises(InputError) as caught:
        said_of(path, format="gpu-v2026:bad_rows=error")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_parquet_is_refused(tmp_path):
    for word in (None, "gpu-v2026"):
        with pytest.raises(InputError, match="is a folder; expected a trace file"):
            said_of(tmp_path, format=word)
