"""Bad traces: always one sentence that names file, place, value and what was expected; never a traceback."""

from __future__ import annotations

import csv
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clustergym.experiments.playing.runs import Run
from clustergym.experiments.storing import results
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import FORMATS, Workload, WorkloadWarning, open_workload, recognise
from clustergym.tests.support.paths import WORKLOADS

OWN = "job_id,arrival_s,gpus,duration_s"
ARTIST = json.loads((WORKLOADS / "synthetic_artist_sim.json").read_text())
PHILLY = json.loads((WORKLOADS / "synthetic_philly_cluster_job_log.json").read_text())


def read_data(name: str) -> str:
    return (WORKLOADS / name).read_text()


def artist(**fields) -> str:
    return json.dumps([ARTIST[1], ARTIST[0] | fields])


def attempt(**fields) -> str:
    first = PHILLY[0]["attempts"][0]
    return json.dumps([PHILLY[0] | {"attempts": [first | fields]}])


LONG = 10 * 1024 * 1024

# name of the file: (its content, what the message says)
BAD: dict[str, tuple[str | bytes, str]] = {
    # files that are no text
    "empty.csv": ("", "file is empty"),
    "blank.json": (" \n\n", "file is empty"),
    "binary.csv": (bytes(range(256)) * 9, "a binary file"),
    "book.xlsx": (b"PK\x03\x04\x14\0", "a packed file or a spreadsheet; unpack it, or save it as csv"),
    "nul.csv": (f"{OWN}\na,0,1\0,5\n", "line 2: a NUL byte"),
    "latin1.csv": (f"{OWN}\na,0,1,5\ncaf\xe9,0,1,5\n".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8"),
    "utf16.csv": (f"{OWN}\na,0,1,5\n".encode("utf-16"), "not UTF-8"),
    "noise.csv": ("hello\nworld\n", "format is not recognised"),
    "no-schema.csv": (
        "job_id,arrival,gpus,duration\na,0,1,5\n",
        "begins with the line job_id,arrival_s,gpus,duration_s;",
    ),
    "two-columns.csv": (
        f"{OWN}\na,0,1,5\nb,x,1,5\nc,0,0,-3\n",
        "line 3, column 'arrival_s': 'x'; expected a number from 0 to 1e.15, in seconds; "
        "also wrong: line 4, 'duration_s'; line 4, 'gpus'",
    ),
    "columns.csv": ("a,b,c\n1,2,3\n", "its columns are 'a, b, c'"),
    "comments.csv": ("# only\n# comments\n", "not recognised"),
    # our own csv
    "header.csv": (OWN + "\n", "no rows"),
    "no-gpus.csv": ("job_id,arrival_s,duration_s\na,0,1\n", "column 'gpus' is missing"),
    "twice.csv": (f"{OWN},gpus\na,0,1,5,2\n", "'gpus' is given twice in the header"),
    "short-row.csv": (f"{OWN}\na,0,1,5\nb,0,1\n", "line 3: 3 fields; expected 4"),
    "long-row.csv": (f"{OWN}\na,0,1,5,6\n", "line 2: 5 fields"),
    "cut.csv": (f'{OWN}\na,0,1,5\n"b,0,', "line 3: not readable as csv"),
    "word.csv": (f"{OWN}\na,soon,1,5\n", "line 2, column 'arrival_s': 'soon'; expected a number from 0"),
    "comma.csv": (f'{OWN}\na,0,1,"5,5"\n', "column 'duration_s': '5,5'"),
    "underscore.csv": (f"{OWN}\na,0,1,1_000\n", "'1_000'"),
    "hex.csv": (f"{OWN}\na,0,0x10,5\n", "'0x10'"),
    "negative-time.csv": (f"{OWN}\na,0,1,5\nb,-3,1,5\n", "line 3, column 'arrival_s': '-3'"),
    "zero-duration.csv": (f"{OWN}\na,0,1,0\n", "column 'duration_s': '0'; expected a number above 0"),
    "nan.csv": (f"{OWN}\na,0,1,nan\n", "'nan'"),
    "inf.csv": (f"{OWN}\na,inf,1,5\n", "'inf'"),
    "huge.csv": (f"{OWN}\na,1e300,1,5\n", "'1e300'"),
    "zero-gpus.csv": (f"{OWN}\na,0,0,5\n", "expected a whole number from 1"),
    "half-gpu.csv": (f"{OWN}\na,0,1.5,5\n", "'1.5'; expected a whole number"),
    "many-gpus.csv": (f"{OWN}\na,0,{10**30},5\n", "expected a whole number from 1 to 1e\\+09"),
    "no-value.csv": (f"{OWN}\na,,1,5\n", "column 'arrival_s': ''"),
    "no-id.csv": (f"{OWN}\n,0,1,5\n", "column 'job_id': ''; expected a job id"),
    "same-id.csv": (f"{OWN}\na,0,1,5\nb,0,1,5\na,1,1,5\n", "line 4, column 'job_id': 'a'.*line 2"),
    "bad-optional.csv": (f"{OWN},priority\na,0,1,5,high\n", "column 'priority': 'high'"),
    "bad-deadline.csv": (f"{OWN},deadline_s\na,0,1,5,-1\n", "column 'deadline_s': '-1'"),
    "tab-in-text.csv": (f'{OWN},model\na,0,1,5,"x\ty"\n', "plain text on one line"),
    "after-blank-lines.csv": (f"# c\n\n{OWN}\n\na,0,1,5\n\nb,x,1,5\n", "line 7, column 'arrival_s'"),
    # ten megabytes in one line
    "long-cell.csv": (f"{OWN}\na,0,1,{'9' * 2**18}\n", "line 2: not readable as csv"),
    "long-header.csv": ("x" * LONG + "\n1\n", "not recognised"),
    "long-list.csv": (f"{OWN}\n{',' * LONG}\n", "line 2: 10,485,761 characters; expected at most"),
    "long-line.trace": (f"{'x' * LONG}\ta\tb\tc\td\te\tf\n", "not recognised|not a number|expected"),
    "long-text.json": ('[{"max_parallelism": "' + "1" * LONG + '"}]', "job 1: field 'job_id' is missing"),
    "long-number.json": (artist(duration="9" * LONG), "job 2, field 'duration': '9+"),
    "deep.json": ('[{"max_parallelism": ' + "[" * 200_000, "nested too deeply|not valid JSON"),
    # json
    "cut.json": (read_data("synthetic_artist_sim.json")[:400], "line .*, column .*: not valid JSON"),
    "object.json": ('{"max_parallelism": 1}', "a JSON object at the top; expected a list of jobs"),
    "no-jobs.json": ('[] "max_parallelism"', "not valid JSON"),
    "numbers.json": ('[1, 2, "max_parallelism"]', "job 1: 1 is not an object"),
    "missing-field.json": (
        json.dumps([{k: v for k, v in ARTIST[0].items() if k != "duration"}]),
        "field 'duration' is missing",
    ),
    "null.json": (artist(total_iterations=None), "field 'total_iterations': ''"),
    "list.json": (artist(max_parallelism=[4]), r"field 'max_parallelism': '\[4\]'"),
    "true.json": (artist(max_parallelism=True), "field 'max_parallelism': 'true'"),
    "NaN.json": (artist(duration=float("nan")), "field 'duration': 'nan'"),
    "zero.json": (artist(duration="0"), "job 2, field 'duration': '0'"),
    "surrogate.json": (artist(model="\ud800"), "plain text"),
    "same.json": (artist(job_id="2"), "job 2, field 'job_id': '2'.*job 1"),
    "philly-date.json": (attempt(start_time="yesterday"), "job 1, start_time: 'yesterday'; expected a date"),
    "philly-list.json": (json.dumps([PHILLY[0] | {"attempts": "none"}]), "attempts: 'none'; expected a list"),
    "philly-machine.json": (attempt(detail=["m1"]), "detail: 'm1'; expected objects"),
    "philly-never.json": (json.dumps([PHILLY[1]]), "all 1 jobs are dropped"),
    # the other csv formats
    "philly-day.csv": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-13-45 00:00:00,1,1,1,c\n",
        "2017-13-45.*expected a date",
    ),
    "philly-zone.csv": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55 PST,1,1,1,c\n",
        "expected a date",
    ),
    "philly-minus.csv": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,-1,1,1,c\n",
        "column 'duration': '-1'",
    ),
    "helios-cpu.csv": (
        "job_id,gpu_num,submit_time,duration\n1,0,2020-06-09 18:41:01,5\n",
        "all 1 jobs are dropped",
    ),
    "pai-share.csv": (read_data("synthetic_pai_jobs.csv").replace("0.5", "half"), "column 'num_gpu': 'half'"),
    "pai_task.csv": ("j,t,1.0,Terminated,x,1500.0,600.0,29.3,50.0,T4\n", "column 'start_time': 'x'"),
    "openb-milli.csv": (
        read_data("synthetic_openb_pods.csv").replace(",20,320", ",x,320"),
        "column 'creation_time': 'x'",
    ),
    "openb-early.csv": (
        read_data("synthetic_openb_pods.csv").replace(",20,320", ",40,320"),
        "column 'scheduled_time': '30'; expected a time not before creation_time",
    ),
    "pollux-app.csv": (
        read_data("synthetic_pollux.csv").replace("ncf,1", "gpt9,1"),
        "line 3, column 'application': 'gpt9'",
    ),
    "pollux-batch.csv": (read_data("synthetic_pollux.csv").replace("32768", "0"), "column 'batch_size': '0'"),
    "gavel-fields.trace": (
        read_data("synthetic_gavel7.trace") + "a\tb\n",
        "line 4: 2 tab-separated fields; expected 7",
    ),
    "gavel-type.trace": (
        read_data("synthetic_gavel7.trace").replace("LM (", "GPT ("),
        "line 2, column 'job_type'",
    ),
    "gavel-gpus.trace": (
        read_data("synthetic_gavel7.trace").replace("\t16\n", "\tx\n"),
        "line 2, column 'gpus': 'x'",
    ),
    "tiresias-gpus.csv": (
        read_data("synthetic_tiresias.csv").replace("1,8", "1,-8"),
        "column 'num_gpu': '-8'",
    ),
    "muri-ms.csv": (read_data("synthetic_muri.csv").replace("42800", "42.8s"), "column 'duration': '42.8s'"),
    "chronus-list.csv": (
        read_data("synthetic_chronus.csv").replace("18-25-40", "18-x"),
        "column 'expect_time_list': '18-x'",
    ),
    "simple-time.csv": (
        read_data("synthetic_simple.csv").replace("35", "nan"),
        "column 'submit_time': 'nan'",
    ),
    "simple-column.csv": ("job_id,submit_time,duration\n1,2,3\n", "not recognised"),
    # parquet
    "not.parquet": (b"PAR1 and nothing else", "not a readable parquet file"),
    "text.parquet": ("hello", "not recognised"),
}


def expect_one_sentence(path: Path, said: str, **options) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)
        with pytest.raises(InputError, match=said) as caught:
            open_workload(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 600 + len(str(path))


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_one_sentence(name, tmp_path):
    content, said = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    expect_one_sentence(tmp_path / name, said, format=refusing(tmp_path / name))


def refusing(path: Path) -> str | None:
    """The format of a file of others with the option that refuses bad rows; None of any other file."""
    try:
        name = recognise(path)
    except InputError:
        return None
    return None if name in ("csv", "parquet") else f"{name}:bad_rows=error"


def test_there_are_enough_of_them():
    assert len(BAD) >= 60


def test_missing_directory_unreadable(tmp_path):
    expect_one_sentence(tmp_path / "nowhere.csv", "no such file")
    expect_one_sentence(tmp_path, "is a folder")
    expect_one_sentence(tmp_path / ("x" * 5000 + ".csv"), "cannot be read")
    with pytest.raises(InputError, match="cannot be read"):
        open_workload("nul\0.csv")
    secret = tmp_path / "secret.csv"
    secret.write_text("x")
    secret.chmod(0)
    if not os.access(secret, os.R_OK):
        expect_one_sentence(secret, "cannot be read")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("artist", "did you mean 'artist-sim'"),
        ("artist-sim:scal=gang", "did you mean 'scale'. known: scale, caps, bad_rows$"),
        ("artist-sim:scale=gang8", "unknown value of"),
        ("artist-sim:caps=maybe", "known: batch, off, on$"),
        ("artist-sim:path=x", "unknown parameter 'path'"),
        ("chronus:slot_s=0", "slot_s=0"),
        ("gavel:steps_per_s=-1", "steps_per_s=-1"),
        ("pollux:gpus_per_machine=0", "gpus_per_machine=0"),
        ("simple:x=1", "unknown parameter 'x'"),
    ],
)
def test_bad_format_words(word, said):
    with pytest.raises(InputError, match=said):
        open_workload(WORKLOADS / "synthetic_simple.csv", format=word)


@pytest.mark.parametrize(
    ("file", "format", "reads"),
    [
        ("synthetic_philly_cluster_job_log.json", "philly:bad_rows=error", "philly-json"),
        ("synthetic_philly_cluster_job_log.json", "csv", "philly-json"),
        ("synthetic_simple.csv", "philly-json", "simple"),
        ("synthetic_simple.csv", "parquet", "simple"),
    ],
)
def test_a_format_that_does_not_fit_is_told_with_the_one_that_does(file, format, reads):
    with pytest.raises(InputError, match=f"{file}.*; the file looks as --format {reads} reads it$"):
        open_workload(WORKLOADS / file, format=format)


def test_bad_sources():
    for source in (None, 3, b"x.csv"):
        with pytest.raises(InputError, match="expected a path, a generator"):
            open_workload(source)
    with pytest.raises(InputError, match="value of oversize"):
        open_workload("poisson", oversize="shrink")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arrival_s": [0.0, -1.0]}, r"job '1' \(number 2\), arrival_s: -1.0"),
        ({"arrival_s": [0.0, np.nan]}, "arrival_s: nan"),
        ({"arrival_s": [0.0]}, "2 values; expected 1"),
        ({"arrival_s": []}, "no jobs"),
        ({"arrival_s": ["a", "b"]}, "flat list of numbers"),
        ({"arrival_s": [[0.0, 1.0]]}, "flat list of numbers"),
        ({"gpus": [1, 0]}, "gpus: 0"),
        ({"gpus": [1.5, 2]}, "flat list of whole numbers"),
        ({"gpus": [True, False]}, "flat list of whole numbers"),
        ({"duration_s": [1, np.inf]}, "duration_s: inf"),
        ({"job_id": ["a", "a"]}, "'a' is given twice"),
        ({"job_id": ["a", ""]}, "empty job_id"),
        ({"model": ["a", "b\nc"]}, "control character"),
        ({"deadline_s": [1.0, 0.0]}, "deadline_s: 0.0"),
        ({"deadline_s": [1.0, 0.5]}, r"job '1' \(number 2\), deadline_s: 0.5 .* deadlines are absolute"),
        ({"iteration_s": [1.0, 1.00001]}, r"job '1' \(number 2\), iteration_s: 1.00001 does not agree with duration_s"),
        ({"iteration_s": [1.0, 0.0]}, "iteration_s: 0.0"),
        ({"iteration_s": [1.0, np.nan]}, "iteration_s: nan"),
        ({"modle": ["a", "b"]}, "did you mean 'model'"),
    ],
)
def test_from_arrays_says_which_job(change, said):
    arrays = {"arrival_s": [0.0, 1.0], "gpus": [1, 2], "duration_s": [1.0, 2.0]} | change
    with pytest.raises(InputError, match=said):
        Workload.from_arrays("w", **arrays)


def test_unsorted_arrivals_are_sorted_with_one_warning(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(f"{OWN}\nlate,9,1,5\nfirst,2,1,5\nsecond,2,1,5\n")
    with pytest.warns(WorkloadWarning) as caught:
        workload = open_workload(path)
    assert len(caught) == 1
    assert workload.job_id.tolist() == ["first", "second", "late"]


def test_windows_line_ends_a_byte_order_mark_and_spaces_are_fine(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + f"{OWN}\r\na, 0 ,1,5\r\n\r\nb,1,2.0,5e1\r\n".encode())
    workload = open_workload(path)
    assert workload.gpus.tolist() == [1, 2]
    assert workload.duration_s.tolist() == [5.0, 50.0]


def test_cut_parquet_and_wrong_columns(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = tmp_path / "whole.parquet"
    open_workload("poisson:jobs=20").save(whole)
    data = whole.read_bytes()
    for size in (4, 100, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.parquet").write_bytes(data[:size])
        expect_one_sentence(tmp_path / "cut.parquet", "not a readable parquet file|its checksum is wrong")
    rows = {"job_id": ["a", "b"], "arrival_s": [0.0, 1.0], "gpus": [1, 2], "duration_s": [1.0, 2.0]}
    changes = {
        "gpus": ([1, None], "row 2, column 'gpus': ''"),
        "duration_s": ([1.0, float("nan")], "row 2, column 'duration_s': nan"),
        "arrival_s": (["x", "y"], "row 1, column 'arrival_s': 'x'"),
        "job_id": ([7, 7], "row 2, column 'job_id': 7.*row 1"),
    }
    for column, (values, said) in changes.items():
        pq.write_table(pa.table(rows | {column: values}), whole)
        expect_one_sentence(whole, said)
    pq.write_table(pa.table({key: values for key, values in rows.items() if key != "gpus"}), whole)
    expect_one_sentence(whole, "column 'gpus' is missing")
    pq.write_table(pa.table({key: values[:0] for key, values in rows.items()}), whole)
    expect_one_sentence(whole, "no rows")


def test_saving_where_one_cannot_is_one_sentence(tmp_path):
    workload = open_workload("poisson:jobs=3")
    for path in (tmp_path / "none" / "w.csv", tmp_path / "none" / "w.parquet"):
        with pytest.raises(InputError, match="cannot be written"):
            workload.save(path)
    for path in (tmp_path / "w.xlsx", tmp_path / "w"):
        with pytest.raises(InputError, match=r"expected \.csv or \.parquet"):
            workload.save(path)


def survives(path: Path, data: bytes, format: str | None) -> None:
    """Opening gives a Workload or an InputError of one line, nothing else."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)
        try:
            workload = open_workload(path, format=format)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert len(workload) > 0
            assert np.all(np.isfinite(workload.arrival_s)) and np.all(workload.duration_s > 0)


relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(data=st.binary(max_size=300), format=st.sampled_from([None, *FORMATS]))
@example(data=b"PAR1", format=None)
@example(data=b"[" * 3000, format="philly-json")
def test_any_bytes_in_any_format(tmp_path, data, format):
    survives(tmp_path / "any.bin", data, format)


SOURCES = [path for path in sorted(WORKLOADS.rglob("*")) if path.suffix in (".csv", ".json", ".trace")]


@relaxed
@given(draw=st.data(), source=st.sampled_from(SOURCES))
def test_any_mutation_of_a_trace(tmp_path, draw, source):
    """Replace a slice of a good file by something that numbers, dates and quotes stumble over."""
    data = source.read_bytes()
    begin = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(begin, min(len(data), begin + 12)))
    odd = [
        b"",
        b"nan",
        b"-1",
        b"1e999",
        b'"',
        b",",
        b"\n",
        b"\r",
        b"\t",
        b"\xff",
        b"\0",
        b"0",
        b"[",
        b"{}",
        b"null",
        b"9" * 400,
    ]
    middle = draw.draw(st.sampled_from(odd) | st.binary(max_size=8))
    survives(tmp_path / "mutant.csv", data[:begin] + middle + data[end:], None)


@relaxed
@given(draw=st.data())
def test_any_mutation_of_a_parquet_file(tmp_path, draw):
    path = tmp_path / "good.parquet"
    if not path.exists():
        open_workload("poisson:jobs=20").save(path)
    data = bytearray(path.read_bytes())
    for position in draw.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=4)):
        data[position] = draw.draw(st.integers(0, 255))
    survives(tmp_path / "mutant.parquet", bytes(data), None)


cells = st.one_of(
    st.text(max_size=8),
    st.floats().map(str),
    st.integers(-3, 40).map(str),
    st.sampled_from(["", "2017-10-09 07:01:55", "1-2-3"]),
)


@relaxed
@given(
    rows=st.lists(st.lists(cells, min_size=4, max_size=4), min_size=1, max_size=4),
    source=st.sampled_from(SOURCES),
)
def test_any_cells_under_any_header(tmp_path, rows, source):
    header = next(line for line in source.read_text().splitlines() if not line.startswith("#"))
    width = header.count(",") + 1
    lines = [",".join((row * width)[:width]) for row in rows]
    survives(tmp_path / "cells.csv", "\n".join([header, *lines]).encode("utf-8", "surrogatepass"), None)


# ---- what a spreadsheet or a terminal would run

NAMES = [
    "=cmd|'/c calc'!A1",
    "+1+1",
    "@SUM(A1)",
    "-x",
    "'=x",
    "''+x",
    " led",
    "trailing ",
    "-5",
    '"q"',
    "a,b",
    "'plain",
]


def test_names_that_a_spreadsheet_would_run_are_escaped_and_come_back(tmp_path):
    """A formula gets an apostrophe before it; a number (-5) is none; what began so already gets one more."""
    workload = Workload.from_arrays("w", range(12), [1] * 12, [5.0] * 12, job_id=NAMES, model=NAMES, user=NAMES)
    path = tmp_path / "w.csv"
    workload.save(path)
    cells = [row[0] for row in csv.reader(path.read_text().splitlines()[1:])]
    assert not [cell for cell in cells if cell[0] in "=+@" or (cell[0] == "-" and cell != "-5")]
    after = open_workload(path)
    assert after.job_id.tolist() == after.model.tolist() == after.user.tolist() == NAMES


def test_decisions_are_escaped(tmp_path):
    run = Run("fifo", 0, {}, 1, np.zeros(1), (("0.0", "=cmd|'x'", "start", "0 1", "", ""),), None, "no")
    results.write_decisions([run], tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text().splitlines()[1] == "fifo,0,0.0,'=cmd|'x',start,0 1,"


@pytest.mark.parametrize("bad", ["a\u202eb", "a\u2066b", "a\u009bb", "a\u2028b"])
def test_names_that_turn_a_terminal_are_refused(tmp_path, bad):
    path = tmp_path / "w.csv"
    path.write_text(f"{OWN}\na,0,1,5\n{bad},0,1,5\n")
    expect_one_sentence(path, "line 3, column 'job_id': .*; expected plain text on one line")


def test_spaces_after_commas_are_not_read(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text(f'{OWN}, model\na, 0, 1, 5, vgg16\nb, 0, 1, 5, " vgg"\n')
    assert open_workload(path).model.tolist() == ["vgg16", " vgg"]


def test_comments_may_be_longer_than_a_head(tmp_path):
    path = tmp_path / "w.csv"
    for comment in ("# " + "x" * 70000 + "\n", "# x\n" * 50000, "\n" * 70000 + "# y\n"):
        path.write_text(f"{comment}{OWN}\na,0,1,5\n")
        assert len(open_workload(path)) == 1


def test_a_line_of_commas_is_refused_at_once(tmp_path):
    (tmp_path / "w.csv").write_text(f"{OWN}\n" + "," * 5_000_000)
    expect_one_sentence(tmp_path / "w.csv", "line 2: 5,000,000 characters; expected at most 4,194,304")


@pytest.mark.parametrize("gone", range(10))
def test_a_gavel_trace_without_a_column_is_not_read_as_one_with_fewer(tmp_path, gone):
    """Ten columns without one are nine, a layout too; only the working directory can go, as it is not in that one."""
    path = tmp_path / "w.trace"
    rows = [line.split("\t") for line in (WORKLOADS / "synthetic_gavel10.trace").read_text().splitlines()]
    path.write_text("\n".join("\t".join(row[:gone] + row[gone + 1 :]) for row in rows))
    if gone in (1, 2):  # the command is not used, and either may stand for the other
        assert open_workload(path).gpus.tolist() == open_workload(WORKLOADS / "synthetic_gavel10.trace").gpus.tolist()
    else:
        expect_one_sentence(path, "line 1, column '(job_type|num_steps_arg)'")


def test_a_folder_is_told_once(tmp_path):
    folder = tmp_path / "dir.csv"
    folder.mkdir()
    with pytest.raises(InputError) as refusal:
        open_workload(folder)
    assert str(refusal.value) == f"{folder}: is a folder; expected a trace file"
