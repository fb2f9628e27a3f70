"""`evaluate --jobs-table`: a row a job, by hand; what it is with other options.

JOBS on 8 GPUs of one machine: a holds all for 100 s from 0; b, 8 GPUs for 60 s, comes at 50; c, 4 GPUs for 30 s, at
300. Under `srtf` b, shorter than what a has left at 20 where BUSY has it come, takes a's place from 20 to 80.
"""

from __future__ import annotations

import csv

import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run

HEAD = "job_id,arrival_s,gpus,duration_s,user,tenant,model\n"
JOBS = f"{HEAD}a,0,8,100,ann,x,VGG\nb,50,8,60,bob,y,VGG\nc,300,4,30,=ann,,BERT\n"
BUSY = f"{HEAD}a,0,8,100,ann,x,VGG\nb,20,8,60,bob,y,VGG\n"
COLUMNS = (
    "policy,seed,job_id,user,tenant,model,gpus,gpu_type,region,arrival_s,first_start_s,end_s,wait_s,jct_s,slowdown,"
    "preemptions,gpu_seconds"
)


@pytest.fixture
def play(tmp_path):
    """Plays a trace, and returns the exit status and the rows of a table."""

    def played(trace: str, policies: str, *more: str, table: str = "jobs.csv") -> list[dict[str, str]]:
        (tmp_path / "jobs.trace.csv").write_text(trace)
        words = ["evaluate", "Delay", "--workload", str(tmp_path / "jobs.trace.csv"), "--network", "none", "--quiet"]
        words += ["--topology", "flat:machines=1", "--policies", policies, "--seeds", "0"]
        assert run([*words, *more, "--jobs-table", str(tmp_path / table)]) == 0
        with open(tmp_path / table, newline="") as file:
            return list(csv.DictReader(file))

    return played


def numbers(row, *names):
    return tuple(float(row[name]) if row[name] else None for name in names)


def test_every_column_of_three_jobs_by_hand(play, tmp_path):
    """b waits 50 s of its 110 s, for 60 s of work: a slowdown of 110 / 60; 8 GPUs x 60 s are 480 GPU-seconds."""
    play(JOBS, "fifo")
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    assert lines == [
        COLUMNS,
        "fifo,0,a,ann,x,VGG,8,,,0.0,0.0,100.0,0.0,100.0,1.0,0,800.0",
        f"fifo,0,b,bob,y,VGG,8,,,50.0,100.0,160.0,50.0,110.0,{110 / 60!r},0,480.0",
        "fifo,0,c,'=ann,,BERT,4,,,300.0,300.0,330.0,0.0,30.0,1.0,0,120.0",
    ]


def test_a_preempted_job_starts_once_and_waits_for_the_rest(play):
    """a holds 8 GPUs from 0 to 20 and from 80 to 160, and waits 60 s between; its 100 s took 160 s."""
    first, other = play(BUSY, "srtf")
    shown = ("first_start_s", "end_s", "wait_s", "jct_s", "slowdown", "preemptions", "gpu_seconds")
    assert numbers(first, *shown) == (0.0, 160.0, 60.0, 160.0, 1.6, 1.0, 800.0)
    assert numbers(other, *shown) == (20.0, 80.0, 0.0, 60.0, 1.0, 0.0, 480.0)


def test_what_has_not_happened_is_empty(play):
    """At 70 s a has run for 70 s, and b has never run."""
    first, other, _ = play(JOBS, "fifo", "--set", "horizon_s=70")
    shown = ("first_start_s", "end_s", "wait_s", "jct_s", "slowdown", "gpu_seconds")
    assert numbers(first, *shown) == (0.0, None, None, None, None, 560.0)
    assert numbers(other, *shown) == (None, None, None, None, None, 0.0)


def test_a_window_counts_some_jobs_and_the_table_has_all(play):
    """`window` is of metrics: of b alone, which arrives in it."""
    assert len(play(JOBS, "fifo", "--set", "window=40/200")) == 3


def test_parquet_holds_the_same_rows_with_numbers(play, tmp_path):
    rows = play(JOBS, "fifo srtf", "--set", "horizon_s=70")
    words = ["evaluate", "Delay", "--workload", str(tmp_path / "jobs.trace.csv"), "--network", "none", "--quiet"]
    words += ["--topology", "flat:machines=1", "--policies", "fifo srtf", "--seeds", "0", "--set", "horizon_s=70"]
    assert run([*words, "--jobs-table", str(tmp_path / "jobs.parquet")]) == 0
    table = pq.read_table(tmp_path / "jobs.parquet")
    assert ",".join(table.column_names) == COLUMNS and str(table.schema.field("jct_s").type) == "double"
    for row, other in zip(rows, table.to_pylist(), strict=True):
        assert {name: cell.removeprefix("'") for name, cell in row.items()} == {
            name: "" if value is None else str(value) for name, value in other.items()
        }


def test_a_folder_gives_the_same_table_without_playing(play, tmp_path):
    words = ("--logdir", str(tmp_path / "out"))
    assert play(BUSY, "srtf", *words) == play(BUSY, "srtf", *words, table="again.csv")


def test_means_of_the_table_are_the_metrics(tmp_path, capsys):
    """Generated jobs on two machines, two seeds: mean JCT, queueing and slowdown, and the number of preemptions."""
    import json

    words = ["evaluate", "Delay", "--topology", "flat:machines=2", "--workload", "poisson:jobs=40", "--network", "none"]
    words += ["--policies", "fifo srtf", "--seeds", "0-1", "--json", "-q", "--jobs-table", str(tmp_path / "t.csv")]
    assert run(words) == 0
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for one in json.loads(capsys.readouterr().out):
        mine = [row for row in rows if (row["policy"], row["seed"]) == (one["policy"], str(one["seed"]))]
        pairs = {"jct_s": "jct_mean", "wait_s": "queueing_delay_mean", "slowdown": "slowdown_mean"}
        for name, metric in pairs.items():
            mean = sum(float(row[name]) for row in mine) / len(mine)
            assert mean == pytest.approx(one["metrics"][metric], rel=1e-12)
        assert sum(int(row["preemptions"]) for row in mine) == one["metrics"]["preemptions"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Delay", "--jobs-table", "x.txt"], "--jobs-table x.txt: expected a name that ends in .csv or .parquet"),
        (["Delay", "--stretches-table", "x.parquet"], "--stretches-table x.parquet: expected a name that ends in .csv"),
        (["Delay", "--jobs-table", "x.csv", "--decisions", "x.csv"], "x.csv: another option writes there too"),
        (["Grouping", "--jobs-table", "x.csv"], "--jobs-table: jobs of clustergym/Grouping-v0 hold no GPUs"),
        (["Grouping", "--stretches-table", "x.csv"], "--stretches-table: jobs of clustergym/Grouping-v0 hold no GPUs"),
        (["Delay", "--sweep", "workload.load=1/2", "--jobs-table", "x.csv"], "--jobs-table goes without --sweep"),
        (["Delay", "--sweep", "workload.load=1/2", "--stretches-table", "x.csv"], "--stretches-table goes without"),
    ],
)
def test_tables_that_cannot_be_are_refused(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["evaluate", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split()) and not list(tmp_path.iterdir())
