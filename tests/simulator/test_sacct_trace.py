"""Slurm's accounting as sacct writes it, in columns and as JSON.

The rows of tests/data/workloads/synthetic_sacct.csv are made up; their forms are those of public sources:
* the manual page sacct(1), slurm.schedmd.com/sacct.html and of Slurm 2.3 ("if a job is requeued the submit time is
  reset"): job states, arrays, heterogeneous jobs, INVALID, Partition_Limit, None and Unknown;
* github lazyslurm, tests of its efficiency report, a capture of sacct --parsable2: typed and untyped GPUs of one job,
  MM:SS, steps (1001, 1026);
* github TACC/HPCPerfStats, README: lists of hosts with several brackets, limits of days (1002);
* the test of Oxford's records in SAFE of EPCC, sacct -p of 2017: a last bar, AllocGRES, D-HH:MM:SS (1003, 1023, 1024);
* rows of ub-hpc at github ubccr-slurm-simulator: resources without GPUs (1004);
* github neilmunday/slurm-mail, issue 142: parts of a GPU as types, gres/cpu (1005);
* tests of a client of Slurm at Bridges-2: a preempted and a pending row of one JobID, less time elapsed than from start
  to end, CANCELLED by UID, UNLIMITED (1006, 1008);
* github mila-iqia/SARC and mila-iqia/clockwork, tests: sacct --json of Slurm 21.08 and with {set, infinite, number}.
"""

from __future__ import annotations

import json
import math
import warnings
from datetime import datetime
from pathlib import Path

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support.paths import WORKLOADS

ROWS = (WORKLOADS / "synthetic_sacct.csv").read_text().splitlines()
OLD = {"gpu:2": "gres/gpu=4", "gpu:tesla:1": "gres/gpu:tesla=3", "gpu:a100:4(IDX:0-3)": "gres/gpu:a100=4"}  # x NNodes
HOSTS_OF_1002 = "c420-024 c420-073 c421-051 c421-052 c421-063 c421-064 c421-092 c421-093"
# id, user, arrival and start in minutes, GPUs, their type, run time and estimate in seconds, hosts
JOBS = [
    ("1001", "ann", 0, 1, 1, "a100", 1022, 43200, "n1"),
    ("1002", "bob", 1, 5, 8, "", 62760, 86400, HOSTS_OF_1002),
    ("1003", "ann", 2, 2, 4, "", 289444, 360000, "m1 m2"),
    ("1005", "bob", 4, 4, 1, "a100_3g.20gb", 3600, 7200, "n2"),
    ("1006", "bob", 5, 10, 1, "", 9609, 86400, "trace07"),
    ("1007", "ann", 6, 6, 2, "", 600, 3600, "n3"),
    ("1008_4", "dan", 7, 7, 1, "v100-32", 1000, math.inf, "v001"),
    ("1010+0", "ann", 9, 9, 4, "", 600, 3600, "n5"),
    ("1011", "eve", 10, 11, 1, "", 60, math.inf, "r001"),
    ("1012", "eve", 11, 11, 16, "", 3600, 172800, "n09 n10"),
    ("1013", "eve", 12, 12, 3, "a100|a40", 600, 1800, "n7"),
    ("1016", "fay", 15, 16, 1, "", 3631, 3600, "n1"),
    ("1007#2", "ann", 16, 20, 2, "", 1800, 3600, "n4"),
    ("1018", "fay", 17, 18, 1, "", 1200, 3600, "n1"),
    ("1019", "gus", 18, 20, 1, "", 3600, 5400, "n1"),  # suspended for an hour
    ("1020", "gus", 19, 19, 1, "", 600, 3600, "n2"),
    ("1021", "gus", 20, 20, 6, "", 600, 3600, "n2"),
    ("1022", "gus", 21, 21, 8, "", 600, 3600, "n2 n3"),
    ("1023", "hal", 22, 22, 3, "tesla", 600, 3600, "n2 n3 n4"),
    ("1024", "hal", 23, 23, 4, "a100", 600, 3600, "n2"),
    ("1025", "hal", 24, 24, 1, "", 600, 3600, "n2"),
    ("1026", "hal", 25, 25, 1, "", 330, 600, "n2"),
    ("1027", "", 26, 26, 1, "", 600, math.inf, "n2"),
    ("1028", "ida", 28, math.inf, 1, "", 600, 3600, "n2"),
    ("1029", "ida", 29, 30, 1, "", 600, 3600, ""),
]
REASONS = (
    "2 ranges of an array of which nothing started, 4 without an end, 3 without a GPU, 2 without a run time, "
    "1 given again below"
)


def wrapped(number: int | None, is_new: bool):
    return {"set": number is not None, "infinite": False, "number": number or 0} if is_new else number


def as_json(rows: list[str], is_new: bool = True) -> str:
    """Rows behind the header as sacct --json writes them since Slurm 23.02, or did before; without steps."""
    names = ROWS[0].split("|")
    cells = [dict(zip(names, row.split("|"), strict=True)) for row in rows]
    entries = [entry(one, is_new) for one in cells if "." not in one["JobID"]]
    return json.dumps({"meta": {}, "errors": [], "jobs": entries}, indent=1)


def entry(row: dict[str, str], is_new: bool) -> dict:
    job, _, task = row["JobID"].partition("_")
    job, _, part = job.partition("+")
    known = {name: (run, limit) for name, *_, run, limit, _ in JOBS}
    run_s, limit_s = known.get(job + ("#2" if row["Elapsed"] == "00:30:00" else ""), known.get(row["JobID"], (0, 60)))
    limit = wrapped(None if limit_s == math.inf else limit_s // 60, is_new)
    if is_new and row["Timelimit"] == "UNLIMITED":
        limit = {"set": False, "infinite": True, "number": 0}
    submission, start, end = (since_1970(row[name]) for name in ("Submit", "Start", "End"))
    elapsed = None if row["Elapsed"] == "INVALID" else run_s
    state = row["State"].split()[0]
    return {
        "job_id": int(job) + (100 if task else 0),
        "array": {
            "job_id": int(job) if task else 0,
            "task_id": wrapped(int(task) if task.isdecimal() else None, is_new),
            "task": task.strip("[]") if "[" in task else "",
        },
        "het": {"job_id": int(job) if part else 0, "job_offset": wrapped(int(part) if part else None, is_new)},
        **{"user": row["User"], "account": "", "association": {"account": row["Account"]}, "partition": "gpu"},
        "time": {"submission": submission, "start": start, "end": end, "elapsed": elapsed, "limit": limit},
        "state": {"current": [state] if is_new else state, "reason": "None"},
        "tres": {"allocated": tracked(row, "Alloc"), "requested": tracked(row, "Req")},
        **{"nodes": row["NodeList"], "allocation_nodes": int(row["NNodes"]), "steps": [{"time": {"submission": 7}}]},
    }


def since_1970(text: str) -> int:
    return int(datetime.fromisoformat(text + "+00:00").timestamp()) if text[:1] == "2" else 0


def tracked(row: dict[str, str], which: str) -> list[dict]:
    text = row[f"{which}TRES"] or OLD.get(row[f"{which}GRES"], "")
    pairs = [one.split("=") for one in text.split(",") if one]
    numbers = [int(count) if count.isdecimal() else 1024 for _, count in pairs]
    kinds = [kind.partition("/") for kind, _ in pairs]
    return [{"type": kind, "name": name or None, "id": 1, "count": number}
            for (kind, _, name), number in zip(kinds, numbers, strict=True)]  # fmt: skip


def read(path: Path, text: str, **options) -> tuple[Workload, list[str]]:
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workload = open_workload(path, **options)
    return workload, [str(one.message).removeprefix(f"{path}: ") for one in caught]


def jobs(workload: Workload) -> list[tuple]:
    numbers = [(getattr(workload, name) / unit).tolist() for name, unit in
               (("arrival_s", 60), ("start_s", 60), ("gpus", 1), ("duration_s", 1), ("estimate_s", 1))]  # fmt: skip
    texts = [getattr(workload, name).tolist() for name in ("job_id", "user", "gpu_type", "hosts")]
    rows = zip(*texts[:2], *numbers[:3], texts[2], *numbers[3:], texts[3], strict=True)
    return list(rows)


def test_forty_rows_of_many_forms_are_read_as_worked_by_hand(tmp_path):
    """25 jobs; 3 of 40 rows are steps, 12 are dropped for five reasons.

    GPU-seconds read: 1,022 + 502,080 + 1,157,776 + 3,600 + 9,609 + 1,200 + 1,000 + 2,400 + 60 + 57,600 + 1,800 + 3,631
    + 3,600 + 1,200 + 3,600 + 600 + 3,600 + 4,800 + 1,800 + 2,400 + 600 + 330 + 600 + 600 + 600, that is 490.586 hours;
    dropped: three days of 1014, 300 s of 1020, 3,600 of 1021, 600 of 1030, that is 73.25 hours.
    """
    assert len(ROWS) == 1 + 40
    workload, said = read(tmp_path / "log.txt", "\n".join(ROWS))
    assert jobs(workload) == JOBS
    assert set(workload.tenant) == {"lab"}
    hours = "490.586 GPU-hours are read, 73.25 dropped"
    assert said[:5] == [
        "steps of jobs, which are not read: 3",
        "later stretches of requeued jobs: 1; each is a job with a submission of its own",
        "parts of heterogeneous jobs: 1; each is a job of its own",
        "jobs that start before their submission: 1; their start counts as unknown",
        f"dropped 12 of 37 jobs: {REASONS}; {hours}",
    ]


@pytest.mark.parametrize("is_new", [True, False], ids=["23.02", "21.08"])
def test_the_same_rows_as_json_are_the_same_jobs(tmp_path, is_new):
    """Before Slurm 23.02 numbers were plain and a state no list. Jobs that go on have no elapsed time here."""
    workload, said = read(tmp_path / "log.json", as_json(ROWS[1:], is_new))
    assert jobs(workload) == JOBS
    assert said[0].startswith("column 'partition' is not read")
    assert any(one.startswith(f"dropped 12 of 37 jobs: {REASONS}") for one in said)


def test_steps_alone_are_refused(tmp_path):
    with pytest.raises(InputError, match="3 steps and no job; expected jobs, as sacct -X prints them"):
        read(tmp_path / "log.txt", "\n".join(ROWS[:1] + ROWS[2:5]))


@pytest.mark.parametrize("format", [None, "sacct"])
def test_columns_between_blanks_are_answered_with_the_option_that_prints_bars(tmp_path, format):
    """The default of sacct: cells end in + where they are longer than the column is wide."""
    path = tmp_path / "log.txt"
    path.write_text(
        "JobID           JobName      State  AllocTRES \n------------ ---------- ---------- ---------- \n"
        "1234         train.sh    COMPLETED billing=8+ \n"
    )
    with pytest.raises(InputError, match="print it with sacct -P"):
        open_workload(path, format=format)


def test_any_order_and_choice_of_columns_is_read(tmp_path):
    """Run time from End - Start or ElapsedRaw, limit in minutes, no state: what has no end goes on."""
    rows = ["u1|2024-03-01T00:10:00|7|gres/gpu=2|2024-03-01T00:00:00|2024-03-01T00:05:00|90",
            "u2|Unknown|8|gres/gpu=2|2024-03-01T00:00:00|2024-03-01T00:05:00|90"]  # fmt: skip
    text = "User|End|JobID|AllocTRES|Submit|Start|TimelimitRaw\n" + "\n".join(rows)
    workload, _ = read(tmp_path / "log.txt", text)
    assert jobs(workload) == [("7", "u1", 0, 5, 2, "", 300, 5400, "")]
    raw = "ElapsedRaw|State|JobIDRaw|AllocTRES|Submit\n90|COMPLETED|7|gres/gpu=2|2024-03-01T00:00:00\n"
    assert jobs(read(tmp_path / "raw.txt", raw)[0]) == [("7", "", 0, math.inf, 2, "", 90, math.inf, "")]


def test_times_are_those_of_a_zone(tmp_path):
    """On 10 March clocks go from 2 to 3: 1:30 to 3:30 is an hour; on 3 November back at 2: 1:50 to 1:10 is 20 min."""
    rows = "1|gres/gpu=1|COMPLETED|2024-03-10T01:30:00|2024-03-10T03:30:00|2024-03-10T04:00:00\n"
    rows += "2|gres/gpu=1|COMPLETED|2024-11-03T01:50:00|2024-11-03T01:50:00|2024-11-03T01:10:00\n"
    text = "JobID|AllocTRES|State|Submit|Start|End\n" + rows
    workload, said = read(tmp_path / "log.txt", text, format="sacct:zone=America/Los_Angeles")
    assert workload.duration_s.tolist() == [1800.0, 1200.0]
    assert (workload.start_s - workload.arrival_s).tolist() == [3600.0, 0.0]
    assert said[0].startswith("column 'Submit': 1 times lie in an hour that the clocks of America/Los_Angeles repeat")
    said = read(tmp_path / "log.txt", text)[1]
    assert any(one.startswith("dropped 1 of 2 jobs: 1 without a run time") for one in said)


def test_quotes_in_names_are_characters_and_unread_columns_are_named(tmp_path):
    rest = "gpu|low|gres/gpu=1|COMPLETED|2024-03-10T01:30:00|00:10:00"
    rows = f'1|"a" b|{rest}\n2|"|{rest}\n'
    workload, said = read(tmp_path / "log.txt", "JobID|JobName|Partition|QOS|AllocTRES|State|Submit|Elapsed\n" + rows)
    assert len(workload) == 2
    assert said[0].startswith("columns 'Partition, QOS' are not read; those that are: 'JobID, User, Account")


def test_json_may_be_several_outputs_one_behind_the_other(tmp_path):
    first, second = as_json(ROWS[1:2]), as_json(ROWS[5:6])
    assert [job[0] for job in jobs(read(tmp_path / "log.json", first + second)[0])] == ["1001", "1002"]


BAD = {
    "time": ("1|gres/gpu=1|COMPLETED|yesterday|00:10:00", "line 2, column 'Submit': 'yesterday'; expected a date"),
    "run time": ("1|gres/gpu=1|COMPLETED|2024-03-10T01:30:00|10 min", "'Elapsed': '10 min'; expected a duration"),
    "state": ("1|gres/gpu=1|DONE|2024-03-10T01:30:00|00:10:00", "'State': 'DONE'; expected a state of Slurm"),
    "GPUs": ("1|gres/gpu=many|FAILED|2024-03-10T01:30:00|00:10:00", "'gres/gpu=many'; expected resources such as"),
    "id": ("|gres/gpu=1|FAILED|2024-03-10T01:30:00|00:10:00", "'JobID': ''; expected a job id"),
}


@pytest.mark.parametrize(("row", "named"), BAD.values(), ids=BAD)
def test_a_bad_cell_is_named(tmp_path, row, named):
    (tmp_path / "log.txt").write_text(f"JobID|AllocTRES|State|Submit|Elapsed\n{row}\n")
    with pytest.raises(InputError) as refused:
        open_workload(tmp_path / "log.txt", format="sacct:bad_rows=error")
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("JobID|State|Submit|Elapsed", "column 'AllocTRES' is missing"),
        ("JobID|State|Elapsed|AllocTRES", "column 'Submit' is missing"),
        ("JobID|State|Submit|AllocTRES", "column 'Elapsed' is missing"),
        ("JobID|Elapsed|Submit|AllocTRES", "column 'State' is missing"),
        ("JobID|Elapsed|Submit|State|AllocGRES", "column 'NNodes' is missing"),
    ],
)
def test_what_is_needed_is_named(tmp_path, columns, missing):
    cells = {"JobID": "1", "State": "COMPLETED", "Submit": "2024-03-10T01:30:00", "Elapsed": "00:10:00"}
    row = "|".join(cells.get(name, "gres/gpu:1") for name in columns.split("|"))
    (tmp_path / "log.txt").write_text(f"{columns}\n{row}\n")
    with pytest.raises(InputError, match=missing):
        open_workload(tmp_path / "log.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"jobs": [7, {"time": {"submission": 5}}, {"time": 3}]}', "job 1, the job: 7; expected an object"),
        ('{"jobs": [null, {"time": {"submission": 5}}]}', "job 1, field 'JobID': ''; expected a job id"),
        ('{"jobs": [\n{"time": {"submission": 5}},\n{"time": ]}', "line 3, column 10: not valid JSON"),
        ('{"jobs": [\n{"time": {"submission": 5}}', "not valid JSON"),
        ('{"jobs": [], "x": {"submission": 5}}', 'no job in a list "jobs"; expected at least one'),
    ],
)
def test_bad_json_is_one_sentence(tmp_path, text, said):
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(InputError) as refused:
        open_workload(tmp_path / "log.json", format="sacct:bad_rows=error")
    assert said in str(refused.value)
