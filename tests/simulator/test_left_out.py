"""What readers leave out of a log: rows by true reasons, bad rows, columns; and what they must not make of a job."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from clustergym.experiments.inspecting.workload_report import summary
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.unit_speeds import UnitSpeeds
from clustergym.simulator.costs.electricity import Electricity
from clustergym.simulator.events import outage_list
from clustergym.simulator.events.outage_list import OutageList
from clustergym.simulator.workloads import Workload, WorkloadWarning, open_workload

OWN = "job_id,arrival_s,gpus,duration_s"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
MURI = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,iteration_time,priority\n"
CHRONUS = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,best_effort\n"
ELASTIC = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n"
SIMPLE = "job_id,submit_time,num_gpu,duration\n"
TASKS = (
    "a,w,1.0,Running,5.0,A,65.0,1,1,100.0,T4\n"
    "a,p,1.0,Failed,B,65.0,1,1,100.0,T4\n"
    "b,w,1.0,Failed,5.0,65.0,1,1,100.0,T4\n"
)
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def read(path: Path, text: str, **options) -> tuple[Workload, list[str]]:
    """The workload of a file with this text, and what its reader said, without the file's name."""
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workload = open_workload(path, **options)
    return workload, [str(one.message).removeprefix(f"{path}: ") for one in caught]


def begins(said: list[str], words: str) -> bool:
    return any(one.startswith(words) for one in said)


def jobs(workload: Workload) -> list[tuple]:
    rows = zip(workload.job_id, workload.gpus.tolist(), workload.duration_s.tolist(), strict=True)
    return list(rows)


def philly_job(name: str, *attempts: tuple[str | None, str | None, int]) -> dict:
    """A job of the Philly json, of attempts of (start, end, GPUs) on one day."""
    at = [None if one is None else f"2017-10-01 {one}" for attempt in attempts for one in attempt[:2]]
    held = [[f"gpu{gpu}" for gpu in range(attempt[2])] for attempt in attempts]
    detail = [[{"ip": "m1", "gpus": gpus}] if gpus else [] for gpus in held]
    spans = zip(at[::2], at[1::2], detail, strict=True)
    found = [{"start_time": begin, "end_time": end, "detail": where} for begin, end, where in spans]
    about = {"status": "Pass", "vc": "v", "jobid": name, "user": "u", "submitted_time": "2017-10-01 00:00:00"}
    return {**about, "attempts": found}


# ---- a job without an end is no short job


def test_an_attempt_without_an_end_is_no_short_job(tmp_path):
    """j2 ran 60 s and then until an unknown end; j3 30 min on GPUs that are not listed and 30 min; j4 never.

    j1, j3 and j5 held 2 x 2 + 1 + 1 / 60 GPU-hours.
    """
    log = [
        philly_job("j1", ("00:00:00", "02:00:00", 2)),
        philly_job("j2", ("00:10:00", "00:11:00", 4), ("00:12:00", None, 4)),
        philly_job("j3", ("00:20:00", "00:50:00", 0), ("01:00:00", "01:30:00", 1)),
        philly_job("j4"),
        philly_job("j5", (None, None, 1), ("00:00:00", "00:01:00", 1)),  # the first never began
    ]
    workload, said = read(tmp_path / "log.json", json.dumps(log))
    assert jobs(workload) == [("j1", 2, 7200.0), ("j3", 1, 3600.0), ("j5", 1, 60.0)]
    assert said == [
        "dropped 2 of 5 jobs: 1 that never ran on a GPU, 1 with an attempt that has no end, or no start; "
        "5.01667 GPU-hours are read, 0 dropped",
    ]


def test_a_pod_and_a_task_without_an_end_are_no_short_jobs(tmp_path):
    pods = OPENB + "p0,1,1,1,1000,,LS,Running,0,,5\np1,1,1,1,1000,,LS,Running,0,65,5\n"
    workload, said = read(tmp_path / "pods.csv", pods)
    assert jobs(workload) == [("p1", 1, 60.0)]
    assert begins(said, "dropped 1 of 2 jobs: 1 without an end")
    tasks = TASKS.replace("A,65.0", "").replace("B,", "5.0,")
    workload, said = read(tmp_path / "pai_task_table.csv", tasks)
    assert jobs(workload) == [("b", 1, 60.0)]
    assert begins(said, "dropped 1 of 2 jobs: 1 of which GPU tasks have no end")


# ---- what goes backwards


def test_an_attempt_that_ends_before_it_starts_counts_nothing(tmp_path):
    """j1: 0 + 3,600 s, j2: 600 s on 2 GPUs."""
    log = [
        philly_job("j1", ("00:00:10", "00:00:05", 1), ("00:01:00", "01:01:00", 1)),
        philly_job("j2", ("00:06:00", "00:16:00", 2)),
    ]
    workload, said = read(tmp_path / "neg.json", json.dumps(log))
    assert jobs(workload) == [("j1", 1, 3600.0), ("j2", 2, 600.0)]
    assert said == ["attempts that end before they start: 1; each counts 0 s"]


def test_a_pod_and_a_task_that_end_before_they_start_are_told(tmp_path):
    pods = OPENB + "p0,1,1,1,1000,,LS,Failed,0,4,5\np1,1,1,1,1000,,LS,Failed,0,65,5\n"
    assert begins(read(tmp_path / "pods.csv", pods)[1], "dropped 1 of 2 jobs: 1 that end when they start, or before")
    tasks = "a,w,1.0,Failed,5.0,4.0,1,1,100.0,T4\nb,w,1.0,Failed,5.0,65.0,1,1,100.0,T4\n"
    said = read(tmp_path / "pai_task_table.csv", tasks)[1]
    assert begins(said, "dropped 1 of 2 jobs: 1 that end when they start, or before")


# ---- gangs and shares


def test_tasks_that_never_ran_together_are_no_gang(tmp_path):
    """a: 4 GPUs to 100 s, then 4 from 200 s: no gang of 8; b: from 0 and 50 s to 100 s: 2 GPUs for 100 s."""
    rows = ["a,x,4.0,Terminated,0.0,100.0", "a,y,4.0,Terminated,200.0,300.0"]
    rows += ["b,x,1.0,Terminated,0.0,100.0", "b,y,1.0,Terminated,50.0,100.0"]
    tasks = "".join(f"{row},1,1,100.0,T4\n" for row in rows)
    workload, said = read(tmp_path / "pai_task_table.csv", tasks)
    assert jobs(workload) == [("b", 2, 100.0)]
    assert begins(said, "dropped 1 of 2 jobs: 1 whose GPU tasks never ran together")


def test_shares_of_a_gpu_are_summed_over_the_tasks_of_a_job(tmp_path):
    """jobA: 8 x 25 % = 2 GPUs for an hour; jobB: 4 x 100 % beside a task without; 2 + 4 GPU-hours."""
    tasks = "jobA,worker,8.0,Terminated,1000.0,4600.0,600.0,29.0,25.0,MISC\n"
    tasks += "jobB,ps,2.0,Terminated,2000.0,5600.0,600.0,29.0,,CPU\n"
    tasks += "jobB,worker,4.0,Terminated,2000.0,5600.0,600.0,29.0,100.0,V100\n"
    workload, said = read(tmp_path / "pai_task_table.csv", tasks)
    assert jobs(workload) == [("jobA", 2, 3600.0), ("jobB", 4, 3600.0)]
    assert "summed over a job and rounded up to whole ones: 6 GPU-hours are asked, 6 are read" in said[0]
    assert workload.gpu_type.tolist() == ["MISC", "V100"]  # not CPU: that is of the task without


def test_shares_of_a_gpu_are_told_in_every_format_that_has_them(tmp_path):
    """3 instances of .3 are .9 of a GPU for an hour, which takes a whole one; half a pod's GPU likewise."""
    listed = "job_id,user,num_cpu,num_gpu,num_inst,submit_time,duration\n1,u,6,0.3,3,0,3600\n2,u,6,1,1,0,3600\n"
    workload, said = read(tmp_path / "jobs.csv", listed)
    assert workload.gpus.tolist() == [1, 1]
    assert said[-1].endswith("1.9 GPU-hours are asked, 2 are read")
    pods = OPENB + "p0,1,1,1,500,,LS,Failed,0,3605,5\np1,1,1,2,1000,,LS,Failed,0,3605,5\n"
    assert read(tmp_path / "pods.csv", pods)[1][0].endswith("2.5 GPU-hours are asked, 3 are read")
    whole = pods.replace(",500,", ",1000,")
    assert not [one for one in read(tmp_path / "pods.csv", whole)[1] if "GPU-hours" in one]


LISTED = "job_id,user,num_cpu,num_gpu,num_inst,submit_time,duration\n1,u,6,0.2,2,0,3600\n2,u,6,0.75,2,0,7200\n"
PODS = "".join(
    f"p{number},1,1,1,{milli},,LS,Failed,0,{5 + end},5\n"
    for number, (milli, end) in enumerate([(499, 3600), (500, 3600), (1000, 7200)])
)


@pytest.mark.parametrize(
    ("text", "gpus", "dropped", "hours"),
    [
        (LISTED, [2], "0.4 GPU-hours", "3.4 GPU-hours are asked, 4 are read"),
        (OPENB + PODS, [1, 1], "0.499 GPU-hours", "2.999 GPU-hours are asked, 3 are read"),
    ],
    ids=["pai", "openb"],
)
def test_shares_are_rounded_to_the_nearest_and_jobs_below_half_a_gpu_dropped_with_their_hours(
    tmp_path, text, gpus, dropped, hours
):
    """PAI: .4 of a GPU for 1 h is dropped, 1.5 for 2 h become 2. Pods: .499 is dropped, .5 for 1 h is one GPU."""
    name = "pai" if text is LISTED else "openb"
    workload, said = read(tmp_path / "w.csv", text, format=f"{name}:share=round")
    assert workload.gpus.tolist() == gpus
    assert f"1 below half a GPU ({dropped})" in said[0]
    assert said[1] == f"shares of a GPU are summed over a job and rounded to the nearest whole one: {hours}"
    with pytest.raises(InputError, match="share 'keep'; known: round, whole"):
        open_workload(tmp_path / "w.csv", format=f"{name}:share=keep")


# ---- reasons, one by one


def test_each_dropped_row_has_one_true_reason(tmp_path):
    """p2 was never scheduled, p4 has no end, p5 no GPU; p0, p1 and p3 want 4 GPUs in all."""
    pods = OPENB + (
        "p0,8000,30000,1,1000,,LS,Running,9000000,12900000,9000005\n"
        "p1,8000,30000,1,500,,BE,Succeeded,9000100,9003705,9000105\n"
        "p2,8000,30000,8,1000,V100M32,LS,Pending,9000200,12900000,\n"
        "p3,8000,30000,2,1000,T4,BE,Failed,9000300,9003900,9000300\n"
        "p4,8000,30000,1,1000,,LS,Running,9000400,,9000405\n"
        "p5,8000,30000,0,0,,LS,Running,9000400,,\n"
    )
    workload, said = read(tmp_path / "pods.csv", pods)
    assert workload.gpus.sum() == 4
    assert begins(said, "dropped 3 of 6 jobs: 1 without a GPU, 1 never scheduled, 1 without an end")


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        (SIMPLE, ["a,0,0,5", "b,0,1,0", "c,0,0,0", "d,0,x,5", "e,0,1,5"]),
        (PHILLY, [f"2017-01-01 00:00:00,{rest},v" for rest in ("5,0,0", "0,1,0", "0,0,0", "5,x,0", "5,1,5")]),
        (TIRESIAS, ["a,0,0,1,m,5,0", "b,1,0,1,m,0,0", "c,0,0,1,m,0,0", "d,x,0,1,m,5,0", "e,1,0,1,m,5,0"]),
        ("job_id,gpu_num,submit_time,duration\n", [f"{one},2020-01-01 00:00:00,{run}" for one, run in
            (("a,0", 5), ("b,1", 0), ("c,0", 0), ("d,x", 5), ("e,1", 5))]),
    ],
    ids=["simple", "philly", "tiresias", "helios"],
)  # fmt: skip
def test_reasons_are_counted_one_by_one(tmp_path, header, rows):
    """Two rows ask no GPU, one of them runs no time either: that has one reason; one has no time alone; one is bad."""
    workload, said = read(tmp_path / "w.csv", header + "\n".join(rows))
    assert len(workload) == 1
    first = "1 bad, the first at line 5, column"
    assert said[0].startswith(f"dropped 4 of 5 jobs: 2 without a GPU, 1 without a run time, {first}")


def test_gpu_hours_read_and_dropped_are_said(tmp_path):
    """4 GPUs x 1,800 s are read; 8 x 3,600 s go with a bad time; without GPUs or a run time there are none."""
    rows = ["a,0,4,1800", "b,x,8,3600", "c,0,0,3600", "d,0,8,0"]
    (said,) = read(tmp_path / "w.csv", SIMPLE + "\n".join(rows))[1]
    assert said.endswith("; 2 GPU-hours are read, 8 dropped")
    assert read(tmp_path / "w.csv", SIMPLE + rows[0])[1] == []


# ---- bad rows

LONG = [f"j{number},{number},1,5" for number in range(1000)]
ODD = {
    "word": ("x,5,many,5", r"column 'num_gpu': 'many'; expected a whole number"),
    "negative": ("x,-1,1,5", r"column 'submit_time': '-1'; expected a number from 0"),
    "id twice": ("j0,5,1,5", r"column 'job_id': 'j0'; expected an id of its own \(line 2 has it too\)"),
    "no id": (",5,1,5", r"column 'job_id': ''; expected a job id"),
    "cut": ("x,5", "2 fields; expected 4, as in the header"),
    "text": ("x\u202e,5,1,5", "expected plain text on one line"),
}


@pytest.mark.parametrize(("row", "named"), ODD.values(), ids=ODD)
def test_an_odd_row_is_left_out_and_told_or_refused(tmp_path, row, named):
    rows = [*LONG[:7], row, *LONG[7:]]
    path = tmp_path / "w.csv"
    workload, (said,) = read(path, SIMPLE + "\n".join(rows))
    assert workload.job_id.tolist() == [f"j{number}" for number in range(1000)]
    assert said.startswith("dropped 1 of 1,001 jobs: 1 bad, the first at line 9")
    with pytest.raises(InputError, match=rf"^{path}, line 9.*{named}") as refused:
        open_workload(path, format="simple:bad_rows=error")
    assert str(refused.value).removeprefix(f"{path}, ") in said


def test_odd_rows_are_at_most_ten_or_one_in_a_hundred(tmp_path):
    """10 of 30 are left out; 11 are too many, of 1,099 rows too; of 1,100 they are one in a hundred."""
    for good, bad, reads in ((20, 10, True), (20, 11, False), (1088, 11, False), (1089, 11, True)):
        rows = [f"j{number},{number},1,5" for number in range(good)] + ["x,0,many,5"] * bad
        path = tmp_path / "w.csv"
        if reads:
            assert len(read(path, SIMPLE + "\n".join(rows))[0]) == good
            continue
        with pytest.raises(InputError, match=rf"{bad} of {good + bad:,} rows are bad, the first at line {good + 2}, "):
            read(path, SIMPLE + "\n".join(rows))


def test_where_all_rows_are_odd_the_first_is_told(tmp_path):
    with pytest.raises(InputError, match=r"all 2 jobs are dropped: 2 bad, the first at line 2, column 'duration': 'x'"):
        read(tmp_path / "w.csv", SIMPLE + "a,0,1,x\nb,0,1,y\n")


def test_odd_jobs_of_json_and_lines_of_a_trace_without_header_are_left_out(tmp_path):
    """A field that is no list; a line that was cut; a job type that Gavel has not; a task of a job is the job's."""
    log = [philly_job("a", ("00:00:00", "00:01:00", 1)), philly_job("b") | {"attempts": 7}]
    workload, said = read(tmp_path / "log.json", json.dumps(log))
    assert jobs(workload) == [("a", 1, 60.0)]
    (said,) = said
    assert said.startswith("dropped 1 of 2 jobs: 1 bad, the first at job 2, attempts: 7; expected a list")
    lines = ["A3C\tpython\t-n\t1\t100\t0\t1", "GPT\tpython\t-n\t1\t100\t0\t1", "A3C\tpyth"]
    workload, said = read(tmp_path / "w.trace", "\n".join(lines))
    assert len(workload) == 1
    assert "dropped 2 of 3 jobs: 2 bad, the first at line 2, column 'job_type': 'GPT'" in said[0]
    tasks = TASKS.replace("A,", "").replace("B,", "x,")
    workload, said = read(tmp_path / "pai_task_table.csv", tasks)
    assert jobs(workload) == [("b", 1, 60.0)]
    assert "dropped 1 of 2 jobs: 1 bad, the first at line 2, column 'start_time': 'x'" in said[0]


def test_our_own_schema_refuses_what_does_not_fit(tmp_path):
    """It is written for us: a mistake in it is a mistake, not the wear of a log."""
    with pytest.raises(InputError, match="line 3, column 'gpus': 'x'"):
        read(tmp_path / "w.csv", f"{OWN}\na,0,1,5\nb,0,x,5\n")


# ---- columns that are not read


def test_columns_that_are_not_read_are_told_once_but_for_harmless_ones(tmp_path):
    """Of openb's columns none would change something; `gpu_time` is num_gpus x duration."""
    pods = OPENB + "p0,1,1,1,1000,,Guaranteed,Failed,0,65,5\n"
    assert read(tmp_path / "pods.csv", pods)[1] == []
    assert read(tmp_path / "philly.csv", PHILLY + "2017-01-01 00:00:00,5,1,5,v\n")[1] == []
    (said,) = read(tmp_path / "simple.csv", "job_id,submit_time,num_gpu,duration,nodes,why\na,0,1,5,2,x\n")[1]
    assert said.startswith("columns 'nodes, why' are not read")
    log = [philly_job("a", ("00:00:00", "00:01:00", 1)) | {"cluster": "x"}]
    (said,) = read(tmp_path / "log.json", json.dumps(log))[1]
    assert said.startswith("column 'cluster' is not read")


def test_columns_that_are_not_read_are_told_of_outages_speeds_and_prices(tmp_path):
    """A notice that is called otherwise would make a failure of a maintenance."""
    path = tmp_path / "list.csv"
    path.write_text("start_s,duration_s,what,name,notice\n0,5,machine,0,60\n")
    with pytest.warns(WorkloadWarning, match="column 'notice' is not read; those that are: 'start_s, .*notice_s'"):
        assert not OutageList.load(str(path), "", Topology.load("flat:machines=2"), False).gives_notice
    path.write_text("model,type,speed,batch\n*,A100,2,8\n")
    topology = Topology.load("mast:regions=2,gpus=64")
    kind = topology.cluster_gpu_type[0]
    path.write_text(path.read_text().replace("A100", kind))
    with pytest.warns(WorkloadWarning, match="column 'batch' is not read"):
        UnitSpeeds.load(str(path), topology)
    rows = "".join(f"{region},{hour},50,100,x\n" for region in topology.region_names for hour in range(24))
    path.write_text(f"region,hour,price_per_mwh,carbon_g_per_kwh,currency\n{rows}")
    with pytest.warns(WorkloadWarning, match="column 'currency' is not read"):
        Electricity.load(str(path), topology.region_names)


# ---- deadlines


def test_the_deadline_of_elasticflow_is_read(tmp_path):
    """`ddl` is on the clock of submit_time; best-effort jobs have none; a deadline before the arrival is bad."""
    text = ELASTIC.replace("duration\n", "duration,best_effort\n")
    text += "0,3715485,2011,cifar10,3719996,4096,1,5644,0\n1,3717550,1548,ncf,3717583,32768,8,66,1\n"
    text += "2,3721209,14577,yolov3,3721208,64,1,33276,0\n"
    workload, said = read(tmp_path / "w.csv", text)
    assert workload.deadline_s.tolist() == [3719996.0, np.inf]
    assert (workload.iterations.tolist(), workload.batch_size.tolist()) == ([2011.0, 1548.0], [4096, 32768])
    assert workload.duration_s.tolist() == [5644.0, 66.0] and workload.arrival_s[0] == 3715485.0
    assert said[0].startswith("dropped 1 of 3 jobs: 1 bad, the first at line 4, column 'deadline_s': 3721208.0")


def test_a_deadline_before_the_arrival_is_refused(tmp_path):
    path = tmp_path / "rel.csv"
    text = f"{OWN},deadline_s\na,1000,8,100,500\nb,1100,8,100,500\n"
    with pytest.raises(InputError, match=r"line 2, column 'deadline_s': 500.* as deadlines are absolute"):
        read(path, text)
    at = Workload.from_arrays("w", [1000.0], [8], [100.0], deadline_s=[1000.0])  # which it will miss
    at.save(tmp_path / "w.parquet")
    assert open_workload(tmp_path / "w.parquet").deadline_s.tolist() == [1000.0]
    with pytest.raises(InputError, match=r"job '0' .* deadlines are absolute"):
        Workload.from_arrays("w", [1000.0], [8], [100.0], deadline_s=[999.0])


# ---- iterations, separators, what is busy, what is capped


@pytest.mark.parametrize(
    "text",
    [
        TIRESIAS + "0,1,0,0,vgg19,30,0\n1,4,5,6,alexnet,12,0\n",
        MURI + "0,1,0,0,vgg19,8,30000,0,1\n1,4,5000,6,alexnet,8,12000,0,1\n",
        CHRONUS + "0,u,1,0,0,vgg19,0.5,0,5,0\n1,u,4,1,6,alexnet,0.2,0,5,0\n",
        ELASTIC + "0,0,0,vgg19,50,8,1,30\n1,5,6,alexnet,50,8,4,12\n",
    ],
    ids=["tiresias", "muri", "chronus", "elasticflow"],
)
def test_no_iterations_are_not_known_ones(tmp_path, text):
    """A second stands for an iteration then, as where there is no column."""
    workload, _ = read(tmp_path / "jobs.csv", text)
    assert workload.iterations.tolist() == [30.0, 6.0]
    assert not workload.iterations_known


@pytest.mark.parametrize("mark", ["\t", ";", "|"])
def test_columns_may_stand_between_tabs_semicolons_or_bars(tmp_path, mark):
    """Ours, with seven columns as a Gavel trace has and with five; and those of others."""
    seven = f"{OWN},model,user,tenant\nj1,0,8,3600,BERT,u,t\nj2,60,4,600,BERT,u,t\n"
    for name, text in {"own7.tsv": seven, "own.csv": f"{OWN},note\nj1,0,8,3600,x\nj2,60,4,600,y\n"}.items():
        workload, _ = read(tmp_path / name, text.replace(",", mark))
        assert jobs(workload) == [("j1", 8, 3600.0), ("j2", 4, 600.0)]
    workload, _ = read(tmp_path / "w.csv", f"{PHILLY}2017-01-01 00:00:00,5,1,5,v\n".replace(",", mark))
    assert jobs(workload) == [("0", 1, 5.0)]
    with pytest.raises(InputError, match="line 2, column 'duration_s': '5,5'"):
        read(tmp_path / "w.csv", f"{OWN}\na,0,1,5!5\n".replace(",", ";").replace("!", ","))


def test_busy_is_work_over_the_time_in_which_it_could_be_done(tmp_path):
    """Two jobs of 8 GPUs for 100 s, one after the other: 8 GPUs busy, not 16; 50,400 GPU-s until 4,800 s: 10.5."""
    for rows, busy in (
        ("a,0,8,100\nb,100,8,100\n", 8.0),
        ("a,0,8,3600\nb,600,4,1800\nc,1200,4,3600\n", 10.5),
        ("a,0,8,100\nb,0,8,50\n", 12.0),
    ):
        assert summary(read(tmp_path / "busy.csv", f"{OWN}\n{rows}")[0])["busy_gpus"] == busy


def test_oversize_says_the_gpu_hours_that_are_gone(tmp_path):
    """16 GPUs for an hour on 8: 8 of 16.67 GPU-hours; left out: 16 of them."""
    path = tmp_path / "big.csv"
    path.write_text(f"{OWN}\na,0,16,3600\nb,10,4,600\n")
    with pytest.warns(WorkloadWarning, match=r"capped 1 of 2 jobs .* 8 GPUs: 8 of 16.67 GPU-hours are gone"):
        assert open_workload(path, oversize="cap", cluster_gpus=8).gpus.tolist() == [8, 4]
    with pytest.warns(WorkloadWarning, match=r"dropped 1 of 2 jobs .* 8 GPUs: 16 of 16.67 GPU-hours are gone"):
        open_workload(path, oversize="drop", cluster_gpus=8)
    ps = open_workload("harmony-like:jobs=8")  # whose COMP is the same on fewer machines
    with pytest.warns(WorkloadWarning, match="capped 8 of 8 jobs that ask more than 4 GPUs$"):
        ps.oversize(4, "cap")


# ---- long and empty lists


@pytest.mark.parametrize("what", ["outages", "fault groups"])
def test_lists_are_bounded_while_they_are_read(tmp_path, monkeypatch, what):
    monkeypatch.setattr(outage_list, "MOST_ROWS", 3)
    path = tmp_path / "list.csv"
    header, row, *places = {
        "outages": ("start_s,duration_s,what,name", "0,5,machine,0", str(path), ""),
        "fault groups": ("group,what,name", "a,machine,0", "", str(path)),
    }[what]
    path.write_text("\n".join([header, *[row] * 3]))
    assert len(OutageList.load(*places, Topology.load("flat:machines=2"), True).groups) == 1
    path.write_text("\n".join([header, *[row] * 4, "cut"]))
    with pytest.raises(InputError, match=r"list\.csv, line 5: one row too many; expected at most 3"):
        OutageList.load(*places, Topology.load("flat:machines=2"), True)


def test_a_list_of_no_outages_is_told(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("start_s,duration_s,what,name\n")
    with pytest.warns(WorkloadWarning, match="a header but no rows: there are no outages"):
        assert len(OutageList.load(str(path), "", Topology.load("flat:machines=2"), False).time_s) == 0


# ---- Philly's dates are Pacific


def test_an_attempt_over_the_hour_that_clocks_repeat_ends_after_it_began(tmp_path):
    """5 November 2017: from 1:50 to 1:10 of the second pass are 20 min; j2 from 0:30 to 3:30 ran four hours."""
    day = json.dumps([philly_job("j1", ("01:50:00", "01:10:00", 1)), philly_job("j2", ("00:30:00", "03:30:00", 1))])
    workload, said = read(tmp_path / "log.json", day.replace("2017-10-01 0", "2017-11-05 0"))
    assert jobs(workload) == [("j1", 1, 1200.0), ("j2", 1, 14400.0)]
    assert said == []
    assert jobs(read(tmp_path / "log.json", day, format="philly-json:zone=UTC")[0]) == [("j2", 1, 10800.0)]


def test_dates_of_the_philly_csv_are_in_a_zone(tmp_path):
    """Two jobs at 0:30 and 3:30 of the night in which clocks go back an hour: four hours apart, in UTC three."""
    text = PHILLY + "2017-11-05 00:30:00,5,1,5,v\n2017-11-05 03:30:00,5,1,5,v\n"
    assert read(tmp_path / "w.csv", text)[0].arrival_s.tolist() == [0.0, 14400.0]
    assert read(tmp_path / "w.csv", text, format="philly:zone=UTC")[0].arrival_s.tolist() == [0.0, 10800.0]
    with pytest.raises(
        InputError, match="zone 'Pacific' is not known; expected one such as America/Los_Angeles or UTC"
    ):
        read(tmp_path / "w.csv", text, format="philly:zone=Pacific")
