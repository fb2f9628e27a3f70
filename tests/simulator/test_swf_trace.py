"""Standard Workload Format: its fields by hand, against accasim's parser, and played against other FIFO and EASY."""

from __future__ import annotations

import csv
import gzip
import hashlib
import warnings
from pathlib import Path

import numpy as np
import pytest

from clustergym import policies
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload, recognise
from clustergym.simulator.workloads.readers.swf_trace import FIELDS
from clustergym.tests.support import easy_reference, swf_logs
from clustergym.tests.support.paths import DATA, WORKLOADS

ACCASIM = DATA / "accasim"


def job(number: int, submit: float = 0, run: float = 60, allocated: int = 1, **others: object) -> str:
    """A line of a log; other fields by name, "_" for a blank, -1 where not given."""
    fields = {"job number": number, "submit time": submit, "run time": run, "allocated processors": allocated}
    fields |= {name.replace("_", " "): value for name, value in others.items()}
    assert fields.keys() <= set(FIELDS)
    return " ".join(str(fields.get(name, -1)) for name in FIELDS)


def read(path: Path, *lines: str, options: str = "") -> tuple[Workload, list[str]]:
    """The jobs of these lines, and what the reader said, without the file's name."""
    log = path / "log.swf"
    log.write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workload = open_workload(log, format=f"swf:{options}" if options else None)
    return workload, [str(one.message).removeprefix(f"{log}: ") for one in caught]


# ---- fields


def test_a_log_of_a_few_lines_is_read():
    """Job 3 ran 0 s; 4 was swapped out: its own line counts, not its two bursts. 2 asks 16; 1 starts at 0 + 10 s."""
    with pytest.warns(WorkloadWarning) as caught:
        workload = open_workload(WORKLOADS / "synthetic_log.swf")
    assert workload.job_id.tolist() == ["1", "2", "4"]
    assert workload.arrival_s.tolist() == [0.0, 30.0, 90.0]
    assert workload.gpus.tolist() == [8, 16, 4]
    assert workload.duration_s.tolist() == workload.iterations.tolist() == [100.0, 50.0, 90.0]
    assert workload.start_s.tolist() == [10.0, np.inf, 90.0]
    assert workload.estimate_s.tolist() == [200.0, np.inf, 600.0]
    assert (workload.user.tolist(), workload.tenant.tolist()) == (["3", "", "7"], ["1", "", "2"])
    said = " ".join(str(one.message) for one in caught)
    assert "columns 'queue, preceding job, think time' are not read" in said
    partial = "2 partial executions of jobs that have a line of their own"
    assert f"dropped 3 of 6 jobs: {partial}, 1 whose run time is rounded to 0 s" in said


@pytest.mark.parametrize(("allocated", "requested", "gpus"), [(4, 8, 4), (-1, 8, 8), (0, 8, 8), (4, -1, 4)], ids=str)
def test_processors_are_allocated_ones_where_known_else_requested(tmp_path, allocated, requested, gpus):
    workload, _ = read(tmp_path, job(1, allocated=allocated, requested_processors=requested))
    assert workload.gpus.tolist() == [gpus]


def test_a_requested_time_of_zero_is_no_estimate(tmp_path):
    workload, _ = read(tmp_path, job(1, requested_time=0), job(2, requested_time=90))
    assert workload.estimate_s.tolist() == [np.inf, 90.0]


def test_times_may_be_broken_and_the_clock_is_the_logs(tmp_path):
    """The log begins at 5,094.25 s and stays there; the job waits 0.5 s."""
    workload, _ = read(tmp_path, job(1, 5094.25, 1.75, wait_time=0.5))
    assert [workload.arrival_s[0], workload.start_s[0], workload.duration_s[0]] == [5094.25, 5094.75, 1.75]


@pytest.mark.parametrize("status", [1, 0, 5, -1])
def test_a_job_that_ran_counts_whatever_its_end(tmp_path, status):
    assert len(read(tmp_path, job(1, status=status))[0]) == 1


def test_partial_executions_need_no_submit_time(tmp_path):
    """They have the number of their job, and -1 where it was submitted."""
    bursts = [job(1, -1, 20, status=code) for code in (2, 2, 3)]
    workload, said = read(tmp_path, job(1, status=1), *bursts, job(2, 5, status=0), job(2, -1, status=4))
    assert workload.job_id.tolist() == ["1", "2"]
    assert said[0].startswith("dropped 4 of 6 jobs: 4 partial executions of jobs that have a line of their own")


def test_each_dropped_job_has_one_reason(tmp_path):
    """Job 2 has neither processors nor a run time: it counts once. 5 was cancelled before it ran."""
    lines = [job(1), job(2, run=-1, allocated=-1), job(3, allocated=0), job(4, run=0), job(5, run=-1, status=5)]
    workload, said = read(tmp_path, *lines, job(6, -1))
    assert workload.job_id.tolist() == ["1"]
    assert said[0].startswith(
        "dropped 5 of 6 jobs: 1 without a submit time, 2 without processors, 1 without a run time, "
        "1 whose run time is rounded to 0 s"
    )


def test_processors_per_gpu_round_up_and_say_so(tmp_path):
    """8 processors are 2 GPUs, 9 are 2.25, which take 3: for an hour each 4.25 GPU-hours, 5 read."""
    lines = [job(1, run=3600, allocated=8), job(2, run=3600, allocated=9)]
    workload, said = read(tmp_path, *lines, options="procs_per_gpu=4")
    assert workload.gpus.tolist() == [2, 3]
    assert said[0].endswith("4.25 GPU-hours are asked, 5 are read")
    assert read(tmp_path, lines[0], options="procs_per_gpu=4")[1] == []
    with pytest.raises(InputError, match="procs_per_gpu=0; expected a whole number from 1 to 1,000,000"):
        read(tmp_path, *lines, options="procs_per_gpu=0")


# ---- the header


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (["; MaxNodes: 2", "; MaxProcs: 8"], 8),
        ([";MaxNodes: 4"], 4),
        (["; MaxProcs: unknown", "; MaxProcs: 16"], None),
        ([], None),
    ],
    ids=["processors before nodes", "nodes", "large enough", "none"],
)
def test_jobs_larger_than_the_header_says_are_counted(tmp_path, header, size):
    """16 and 12 processors; the third has no run time and does not count."""
    lines = [job(1, allocated=16), job(2, allocated=12), job(3, run=-1, allocated=99)]
    workload, said = read(tmp_path, *header, *lines)
    assert workload.gpus.tolist() == [16, 12]
    about = [one for one in said if "header" in one]
    assert about == ([] if size is None else [
        f"2 jobs hold more than the {size} processors of the header (MaxProcs, else MaxNodes)"
    ])  # fmt: skip


def test_remarks_and_blank_lines_may_stand_anywhere(tmp_path):
    workload, said = read(tmp_path, ";", "; Queue: \tany: thing", "", f"  {job(1)}  ", "  ; Note: later", job(2))
    assert (workload.job_id.tolist(), said) == (["1", "2"], [])


def test_fields_that_differ_between_jobs_and_are_not_read_are_named(tmp_path):
    """The queue is 0 everywhere, which tells nothing; what a job did with its memory changes no run."""
    lines = [job(1, queue=0, partition=1, used_memory=5), job(2, queue=0, partition=2, used_memory=6)]
    said = read(tmp_path, *lines)[1]
    assert len(said) == 1 and said[0].startswith("column 'partition' is not read; those that are: 'job number, submit")


# ---- bad lines and other files


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (job(9, run="x"), "line 2, column 'run time': 'x'; expected a number from -1 to 1e"),
        (job(9, submit=-2), "line 2, column 'submit time': '-2'; expected a number from -1"),
        (job(9, run=-0.5), "line 2, column 'run time': -0.5; expected a number of at least 0, or -1: unknown"),
        (job(9, allocated=1.5), "line 2, column 'allocated processors': '1.5'; expected a whole number from -1"),
        (job(9, status=6), "line 2, column 'status': '6'; expected a whole number from -1 to 5"),
        (job(9, user="ann"), "line 2, column 'user': 'ann'; expected a whole number"),
        (job(1), "line 2, column 'job number': '1'; expected an id of its own (line 1 has it too)"),
        (job(9).rsplit(" ", 1)[0], "line 2: 17 fields; expected 18, between blanks"),
        (job(9) + " 1", "line 2: more than 18 fields; expected 18, between blanks"),
    ],
    ids=["word", "negative", "between", "broken", "status", "name", "twice", "short", "long"],
)
def test_a_bad_line_is_left_out_and_named(tmp_path, line, named):
    workload, said = read(tmp_path, job(1), line, job(2))
    assert workload.job_id.tolist() == ["1", "2"]
    assert said[0].startswith(f"dropped 1 of 3 jobs: 1 bad, the first at {named}")
    with pytest.raises(InputError, match=r"log\.swf, line 2"):
        read(tmp_path, job(1), line, job(2), options="bad_rows=error")


@pytest.mark.parametrize(
    ("text", "is_swf"),
    [
        ("; only a header\n", False),
        (job(1), True),
        (job(1).replace(" ", "\t"), True),
        (f"\n;\n{job(1, 1.5)}\nand so on", True),
        (job(1, run="1.5E+1"), True),
        (job(1)[:-3], False),
        (job(1) + " 1", False),
        (job(1, user="ann"), False),
    ],
    ids=["no job", "spaces", "tabs", "broken seconds", "an exponent", "17", "19", "a word"],
)
def test_a_log_is_recognised_by_eighteen_numbers(tmp_path, text, is_swf):
    path = tmp_path / "log"
    path.write_text(text)
    if is_swf:
        assert recognise(path) == "swf"
    else:
        with pytest.raises(InputError, match="the format is not recognised"):
            recognise(path)


def test_a_file_without_a_job_or_packed_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="a header but no rows; expected at least one job"):
        read(tmp_path, "; MaxProcs: 8", options="procs_per_gpu=1")
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress(job(1).encode()))
    with pytest.raises(InputError, match="a packed file or a spreadsheet; unpack it"):
        open_workload(packed)


# ---- against a plain script and accasim's parser


def by_script(text: str) -> list[tuple]:
    """The jobs of a log by the rules of swf_trace.py, line by line."""
    jobs = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        number, submit, wait, run, allocated, _, _, requested, asked, _, status, user, group, *_ = map(
            float, line.split()
        )
        processors = allocated if allocated > 0 else requested
        if status in (2, 3, 4) or submit < 0 or processors <= 0 or run <= 0:
            continue
        start = submit + wait if wait >= 0 else float("inf")
        names = ["" if one < 0 else str(int(one)) for one in (user, group)]
        estimate = asked if asked > 0 else float("inf")
        jobs.append((str(int(number)), submit, int(processors), run, start, estimate, *names))
    return jobs


def rows_of(workload: Workload) -> list[tuple]:
    names = ("job_id", "arrival_s", "gpus", "duration_s", "start_s", "estimate_s", "user", "tenant")
    return list(zip(*(getattr(workload, name).tolist() for name in names), strict=True))


def accasims(seed: int) -> dict[str, list[int]]:
    lines = gzip.decompress((ACCASIM / "parsed.csv.gz").read_bytes()).decode().splitlines()
    rows = [line.split(",") for line in lines]
    return {column: list(map(int, values)) for of, column, *values in rows if int(of) == seed}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_made_logs_are_read_as_accasim_and_a_plain_script_read_them(tmp_path, seed):
    """Of 1,000 jobs each, field by field. accasim 1.1.3 (tests/data/accasim/README.md) differs in three ways.

    It prefers requested processors (where both are known it has the allocated ones too); it reads partial executions
    as jobs; and it keeps jobs without a run time. -1 is known to it as a user, a group, a wait and a requested time.
    """
    text = swf_logs.archive_log(seed)
    workload, said = read(tmp_path, text)
    assert rows_of(workload) == by_script(text)
    theirs = accasims(seed)
    held = [
        allocated if allocated > 0 else total
        for allocated, total in zip(theirs["allocated_processors"], theirs["total_processors"], strict=True)
    ]
    kept = [
        row
        for row, (status, run) in enumerate(zip(theirs["status"], theirs["duration"], strict=True))
        if status not in (2, 3, 4) and run > 0
    ]
    assert 800 < len(kept) < len(held) < 1200 and "partial executions" in said[-1]
    assert sum(one != other for one, other in zip(held, theirs["total_processors"], strict=True)) > 100
    for values, column in (
        (held, workload.gpus),
        (theirs["job_number"], workload.job_id.astype(int)),
        (theirs["queued_time"], workload.arrival_s),
        (theirs["duration"], workload.duration_s),
        (theirs["wait_time"], _or(workload.start_s - workload.arrival_s)),
        (theirs["requested_time"], _or(workload.estimate_s)),
        (theirs["user_id"], _or(np.array([float(one or "inf") for one in workload.user]))),
        (theirs["group_id"], _or(np.array([float(one or "inf") for one in workload.tenant]))),
    ):
        assert [values[row] for row in kept] == column.tolist()


def _or(values: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(values), -1.0, values)


# sha256 of what accasim 1.1.3 reads from lublin_256.swf, the numbers of a column between commas
LUBLIN = {
    "job_id": "ffc3cbb821dcb3355c794c3dba7248e60a616b08360f8f6d4033d5122fa9f624",
    "arrival_s": "d009e8273460c9f965c154f44ab36a1e3efef1db7d66160c3cab1ad111a1522e",
    "duration_s": "521b656c58ad6635f47c9bf4dee872966bc0e3cb9537e0ff201040d80200ac0d",
    "gpus": "73d20b002d6bbb0e4f34cff5edc608f0c62f109824fd570bc66e425937fd6600",
}


def test_the_lublin_model_is_read_as_accasim_and_a_plain_script_read_it(shared_traces):
    """10,000 jobs of which all is known that is read but waits, requests, users and groups; nothing is said."""
    path = shared_traces / "swf" / "lublin_256.swf"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workload = open_workload(path)
    assert rows_of(workload) == by_script(path.read_text()) and len(workload) == 10_000
    for column, digest in LUBLIN.items():
        numbers = ",".join(str(int(value)) for value in getattr(workload, column).tolist())
        assert hashlib.sha256(numbers.encode()).hexdigest() == digest, column
    for column, unknown in (("start_s", np.inf), ("estimate_s", np.inf), ("user", ""), ("tenant", "")):
        assert (getattr(workload, column) == unknown).all()


# ---- played against others' FIFO and EASY


def starts(workload: Workload, policy: str, **options: object) -> list[float]:
    simulator = Simulator("flat:machines=1,gpus_per_machine=256", rule=policies.make(policy).rule, **options)
    simulator.reset(workload)
    simulator.run()
    return simulator.state.first_start_s[: len(workload)].tolist()


def test_strict_fifo_starts_jobs_when_accasims_does(tmp_path, run_by_python):
    """400 jobs of 1 to 128 processors on 256 at a load of .96 (tests/data/accasim/README.md): most of them wait."""
    workload, _ = read(tmp_path, swf_logs.full_log(1))
    with open(ACCASIM / "fifo_starts.csv") as file:
        theirs = {row["job"]: float(row["start_s"]) for row in csv.DictReader(file)}
    ours = dict(zip(workload.job_id.tolist(), starts(workload, "fifo:head=strict"), strict=True))
    assert ours == theirs and len(ours) == 400
    assert sum(ours[name] > arrival for name, arrival in zip(ours, workload.arrival_s, strict=True)) > 300


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_easy_starts_jobs_when_a_classical_easy_does(tmp_path, seed, run_by_python):
    """400 of 400, with estimates of 1 to 4 times the run time; FIFO starts most of them at another time."""
    workload, _ = read(tmp_path, swf_logs.full_log(seed))
    columns = (workload.arrival_s, workload.gpus, workload.duration_s, workload.estimate_s)
    jobs = list(zip(*(column.tolist() for column in columns), strict=True))
    easy, fifo = easy_reference.easy(jobs, 256), easy_reference.fifo(jobs, 256)
    assert starts(workload, "fifo:head=reserve", estimates="user") == easy
    assert starts(workload, "fifo:head=strict") == fifo
    assert sum(one != other for one, other in zip(easy, fifo, strict=True)) > 300
