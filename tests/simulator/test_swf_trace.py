"""Standard Workload Format: its fields, header and bad lines, by hand."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload, recognise
from clustergym.simulator.workloads.readers.swf_trace import FIELDS
from clustergym.tests.support.paths import WORKLOADS


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
        (job(1)[:-3], False),
        (job(1) + " 1", False),
        (job(1, user="ann"), False),
    ],
    ids=["no job", "spaces", "tabs", "broken seconds", "17", "19", "a word"],
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
    with pytest.raises(InputError, match="a binary file, or text that is not UTF-8"):
        open_workload(packed)
