"""Every trace format: synthetic files with worked numbers, and real ones where ../shared/traces has them."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.jobs.workload import COLUMNS
from clustergym.simulator.profiles.models import profile_of
from clustergym.simulator.workloads import (
    FORMATS,
    Workload,
    WorkloadWarning,
    list_workloads,
    open_workload,
    recognise,
)
from clustergym.simulator.workloads.readers import gavel_trace
from clustergym.tests.support.paths import TRACES, WORKLOADS

needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="real traces are not at ../shared/traces")


def quiet(source, **options) -> Workload:
    """Open without the warnings that a real trace earns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)
        return open_workload(source, **options)


def columns(workload: Workload, *names: str) -> list[list]:
    return [getattr(workload, name).tolist() for name in names]


FILES = {
    "synthetic_own.csv": "csv",
    "synthetic_artist_sim.json": "artist-sim",
    "synthetic_artist_sim.csv": "artist-sim",
    "synthetic_philly.csv": "philly",
    "synthetic_philly_cluster_job_log.json": "philly-json",
    "synthetic_helios_cluster_log.csv": "helios",
    "synthetic_helios_slice.csv": "helios",
    "synthetic_pai_jobs.csv": "pai",
    "synthetic_pai/pai_task_table.csv": "pai",
    "synthetic_openb_pods.csv": "openb",
    "synthetic_pollux.csv": "pollux",
    "synthetic_gavel7.trace": "gavel",
    "synthetic_gavel10.trace": "gavel",
    "synthetic_tiresias.csv": "tiresias",
    "synthetic_muri.csv": "muri",
    "synthetic_chronus.csv": "chronus",
    "synthetic_simple.csv": "simple",
    "synthetic_log.swf": "swf",
    "synthetic_acme_seren.csv": "acme",
    "synthetic_acme_kalos.csv": "acme",
    "synthetic_spot_gpu.csv": "spot-gpu",
    "synthetic_supercloud.csv": "supercloud",
    "synthetic_sacct.csv": "sacct",
    "synthetic_sacct.json": "sacct",
}


@pytest.mark.parametrize(("file", "name"), FILES.items())
def test_every_format_is_recognised_and_read(file, name):
    assert recognise(WORKLOADS / file) == name
    assert len(quiet(WORKLOADS / file)) == len(quiet(WORKLOADS / file, format=name)) >= 2


def test_every_format_has_a_synthetic_file():
    assert set(FILES.values()) | {"parquet", "gpu-v2026"} == set(FORMATS)  # these two are written by their tests


def test_own_csv_fills_what_is_absent():
    workload = open_workload(WORKLOADS / "synthetic_own.csv")
    assert workload.name == "synthetic_own"
    assert columns(workload, "job_id", "arrival_s", "gpus") == [["a", "b"], [0.0, 5.25], [1, 8]]
    assert columns(workload, "duration_s", "iterations") == [[10.5, 20.0], [10.5, 400.0]]
    assert columns(workload, "priority", "deadline_s", "tenant") == [[0, 2], [np.inf, 100.0], ["vc1", ""]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_own_schema_keeps_every_bit(tmp_path, ending):
    rng = np.random.default_rng(1)
    n = 500
    before = Workload.from_arrays(
        'odd names, and "quotes"',
        np.sort(rng.exponential(1e5, n)),
        rng.integers(1, 10**9, n),
        rng.lognormal(0, 9, n),
        job_id=[f'job "{i}", of é漢' for i in range(n)],
        iterations=rng.lognormal(5, 3, n),
        model=["", "a,b", "#x", " pad "] * 125,
        batch_size=rng.integers(0, 2**62, n),
        user=["u"] * n,
        tenant=["nan"] * n,
        priority=rng.integers(-(2**62), 2**62, n),
        deadline_s=np.where(rng.random(n) < 0.5, np.inf, 1e9 + rng.exponential(1e3, n)),
        estimate_s=np.where(rng.random(n) < 0.5, np.inf, rng.exponential(1e3, n)),
    )
    before.save(tmp_path / f"saved.{ending}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*priority is read, but no policy here heeds it")
        after = open_workload(tmp_path / f"saved.{ending}")
    for column in COLUMNS:
        assert np.array_equal(getattr(before, column), getattr(after, column)), column
    assert after.name == (before.name if ending == "parquet" else "saved")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_iteration_s_is_saved_where_it_says_more(tmp_path, ending):
    """1/3 x 3 is 1 in binary, so 3 iterations of 1 s need no column; 0.3333333333 s do, and keep every bit."""
    derived = Workload.from_arrays("w", [0.0], [1], [1.0], iterations=[3.0])
    assert derived.iteration_s.tolist() == [1 / 3]
    told = Workload.from_arrays("w", [0.0], [1], [1.0], iterations=[3.0], iteration_s=[0.3333333333])
    headers = []
    for workload in (derived, told):
        path = tmp_path / f"w{len(headers)}.{ending}"
        workload.save(path)
        headers.append(b"iteration_s" in path.read_bytes())
        assert open_workload(path).iteration_s.tolist() == workload.iteration_s.tolist()
        assert workload.take([0]).iteration_s.tolist() == workload.iteration_s.tolist()
    assert headers == [False, True]


def test_own_csv_takes_iteration_s_row_by_row(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s,iterations,iteration_s\na,0,1,10,100,0.10000001\nb,0,1,10,100,\n")
    assert open_workload(path).iteration_s.tolist() == [0.10000001, 0.1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("rows", "known", "written"),
    [
        (["iterations", "100", "20"], True, True),
        (["iterations", "100", ""], False, True),
        (["iterations", "", ""], False, False),
        (["user", "a", "b"], False, False),
    ],
    ids=["all", "some", "none", "no column"],
)
def test_whether_iterations_are_known_is_kept(tmp_path, ending, rows, known, written):
    """Through our own files, subsets, caps and orders: seconds that stand for iterations are not written as such."""
    path, again = tmp_path / "jobs.csv", tmp_path / f"again.{ending}"
    path.write_text(f"job_id,arrival_s,gpus,duration_s,{rows[0]}\nx,5,8,10,{rows[1]}\ny,0,1,20,{rows[2]}\n")
    before = quiet(path)
    before.save(again)
    after = quiet(again)
    assert before.iterations_known is after.iterations_known is known
    assert (b"iterations" in again.read_bytes()) is written
    assert after.iterations.tolist() == before.iterations.tolist()
    with pytest.warns(WorkloadWarning, match="capped"):
        assert after.take([0, 1]).oversize(4, "cap").iterations_known is known


@pytest.mark.parametrize(
    ("word", "known"), [("poisson:jobs=5", False), ("batch:jobs=5", False), ("dally-like:jobs=5", True)]
)
def test_generators_know_iterations_or_do_not(word, known):
    assert open_workload(word).iterations_known is known


def test_own_csv_ignores_other_columns_with_a_warning(tmp_path):
    path = tmp_path / "more.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s,colour\n1,0,1,5,red\n")
    with pytest.warns(WorkloadWarning, match="colour"):
        assert len(open_workload(path)) == 1


@pytest.mark.parametrize("file", ["synthetic_artist_sim.json", "synthetic_artist_sim.csv"])
def test_artist_sim_options(file):
    """399455: 163,483,956 iterations of 50 us are 8,174.2 s; capped, half of it; by gang of 4, a quarter."""
    plain = quiet(WORKLOADS / file)
    assert columns(plain, "job_id", "arrival_s", "gpus") == [["2", "399455"], [0.0, 10.0], [1, 4]]
    assert columns(plain, "duration_s", "batch_size") == [[100.0, 8174.1979], [64, 32]]
    capped = quiet(WORKLOADS / file, format="artist-sim:caps=on")
    assert capped.iterations.tolist() == [200.0, 81_741_978.0]
    assert capped.duration_s[1] == pytest.approx(8174.1979 / 2, rel=1e-6)
    both = quiet(WORKLOADS / file, format="artist-sim:scale=gang,caps=on")
    assert both.duration_s.tolist() == pytest.approx([100.0, 8174.1979 / 8], rel=1e-6)


def test_artist_sim_caps_the_batch_set_and_no_other(tmp_path):
    """Jobs at 0 and 10 s are none; all at 10 s, wherever that is, are one: 399455 is cut to 81,741,978 iterations."""
    assert quiet(WORKLOADS / "synthetic_artist_sim.csv", format="artist-sim:caps=batch").iterations[1] == 163_483_956
    path = tmp_path / "batch.csv"
    path.write_text((WORKLOADS / "synthetic_artist_sim.csv").read_text().replace("\n2,0,", "\n2,10,"))
    assert open_workload(path, format="artist-sim:caps=batch").iterations.tolist() == [200.0, 81_741_978.0]
    assert open_workload(path).iterations.tolist() == [200.0, 163_483_956.0]


@pytest.mark.parametrize("file", ["synthetic_artist_sim.json", "synthetic_artist_sim.csv"])
def test_artist_sim_keeps_the_time_per_iteration_exactly(file):
    """0.5 s x 200 = 100 s, and 50 us, which the rounded duration does not give back; a gang of 4: a quarter each."""
    plain = quiet(WORKLOADS / file)
    assert plain.iteration_s.tolist() == [0.5, 5e-05]
    assert plain.iteration_s[1] != plain.duration_s[1] / plain.iterations[1]
    assert quiet(WORKLOADS / file, format="artist-sim:scale=gang,caps=on").iteration_s.tolist() == [0.5, 5e-05 / 4]


def test_artist_sim_durations_count_where_the_file_disagrees_with_itself(tmp_path):
    path = tmp_path / "rough.csv"
    path.write_text(
        "job_id,arrival_s,model,gpus,batch_size,total_iterations,time_per_iteration_s,duration_s,submit_time\n"
        "1,0,VGG,1,32,1000,0.1,100.0,2020-04-01 00:00:00\n"
        "2,0,VGG,1,32,1000,0.1,100.5,2020-04-01 00:00:00\n"
    )
    with pytest.warns(WorkloadWarning, match="1 of 2 jobs disagrees"):
        workload = open_workload(path)
    assert workload.iteration_s.tolist() == [0.1, 0.1005]


def test_artist_sim_jobs_that_arrive_together_come_by_id(tmp_path):
    """Ties go to the lower id in its authors' simulator, whatever the order of the file; 9 is below 10."""
    head, *rows = (WORKLOADS / "synthetic_artist_sim.csv").read_text().splitlines()
    first = rows[0].split(",")
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([head, *(",".join([number, "0", *first[2:]]) for number in ("10", "9", "11"))]))
    assert open_workload(path, format="artist-sim").job_id.tolist() == ["9", "10", "11"]


def test_artist_sim_without_arrival_time_arrives_by_date(tmp_path):
    text = (WORKLOADS / "synthetic_artist_sim.json").read_text()
    path = tmp_path / "dated.json"
    path.write_text(text.replace('"arrival_time": "10", ', "").replace('"arrival_time": "0", ', ""))
    assert open_workload(path).arrival_s.tolist() == [0.0, 1.0]


def test_philly_csv_subtracts_the_first_date_and_drops_what_never_ran():
    with pytest.warns(WorkloadWarning, match="dropped 1 of 3") as caught:
        workload = open_workload(WORKLOADS / "synthetic_philly.csv")
    assert len(caught) == 2  # and one about the order
    assert columns(workload, "job_id", "arrival_s", "gpus", "tenant") == [
        ["1", "0"],
        [0.0, 3660.0],
        [8, 1],
        ["vc-b", "vc-a"],
    ]
    assert workload.iterations.tolist() == workload.duration_s.tolist() == [100.0, 66.0]


def test_philly_json_sums_complete_attempts():
    """application_1: 60 s + 600 s on 3 GPUs; _2 never ran; _3's second attempt has no end; _4: 45 s, after 3 h."""
    workload = quiet(WORKLOADS / "synthetic_philly_cluster_job_log.json")
    assert columns(workload, "job_id", "gpus") == [["application_1", "application_4"], [3, 1]]
    assert columns(workload, "duration_s", "arrival_s") == [[660.0, 45.0], [0.0, 10800.0]]


def test_helios_drops_cpu_jobs():
    workload = quiet(WORKLOADS / "synthetic_helios_cluster_log.csv")
    assert columns(workload, "job_id", "gpus", "duration_s") == [["11", "13"], [1, 16], [100.0, 30.0]]
    assert columns(workload, "arrival_s", "tenant", "user") == [[0.0, 60.0], ["vcA", "vcB"], ["u1", "u2"]]


def test_helios_slice_is_in_microseconds():
    workload = open_workload(WORKLOADS / "synthetic_helios_slice.csv")
    assert columns(workload, "arrival_s", "gpus") == [[5835.0, 5842.5], [128, 16]]


def test_pai_jobs_take_whole_gpus():
    """Half a GPU: 1; 3 instances of 2: 6; none: dropped; 2 instances of 1.5: 3."""
    workload = quiet(WORKLOADS / "synthetic_pai_jobs.csv")
    assert columns(workload, "job_id", "gpus", "arrival_s") == [
        ["2", "4", "1"],
        [6, 3, 1],
        [50.0, 70.0, 100.0],
    ]


def test_pai_tasks_are_summed_and_joined_with_the_job_table(tmp_path):
    """job1: 2 x .5 + 1 x 2 = 3 GPUs from 1005 to 1510, without its CPU task; job2 has no end."""
    workload = quiet(WORKLOADS / "synthetic_pai" / "pai_task_table.csv")
    assert columns(workload, "job_id", "gpus", "duration_s") == [["job3", "job1"], [1, 3], [30.0, 505.0]]
    assert columns(workload, "arrival_s", "user") == [[890.0, 990.0], ["u3", "u1"]]
    alone = tmp_path / "pai_task_table.csv"
    header = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    alone.write_text(header + (WORKLOADS / "synthetic_pai" / "pai_task_table.csv").read_text())
    assert columns(quiet(alone), "arrival_s", "user") == [[900.0, 1005.0], ["", ""]]


def test_pai_types_are_those_of_gpu_tasks_and_a_start_is_known_with_the_job_table(tmp_path):
    """job1 has a CPU task beside two of MISC; with two types among them none is read. It starts at 1,005 of 990."""
    workload = quiet(WORKLOADS / "synthetic_pai" / "pai_task_table.csv")
    assert columns(workload, "gpu_type", "start_s") == [["T4", "MISC"], [900.0, 1005.0]]
    alone = tmp_path / "pai_task_table.csv"
    text = (WORKLOADS / "synthetic_pai" / "pai_task_table.csv").read_text()
    alone.write_text(text.replace("200.0,MISC", "200.0,V100"))
    with pytest.warns(WorkloadWarning) as caught:
        workload = open_workload(alone)
    assert "got several types of GPU: 1; the type of none is read" in str(caught[0].message)
    assert columns(workload, "gpu_type", "start_s") == [["T4", ""], [np.inf, np.inf]]
    assert quiet(WORKLOADS / "synthetic_pai_jobs.csv").gpu_type.tolist() == ["V100", "P100", "T4"]


def test_many_pai_tasks_are_read_in_time_in_proportion(tmp_path):
    """20,000 jobs of two tasks take about .3 CPU s; a pass over all names for each job took a hundred times that."""
    rows = [f"j{i // 2},t{i % 2},1.0,Terminated,{i // 2}.0,{i // 2 + 60}.0,1,1,50.0,T4\n" for i in range(40_000)]
    (tmp_path / "pai_task_table.csv").write_text("".join(rows))
    begin_s = time.process_time()
    assert len(quiet(tmp_path / "pai_task_table.csv")) == 20_000
    assert time.process_time() - begin_s < 5.0


def test_openb_counts_from_scheduling_to_deletion():
    workload = quiet(WORKLOADS / "synthetic_openb_pods.csv")
    assert columns(workload, "job_id", "gpus", "duration_s") == [["pod-0", "pod-1"], [1, 8], [990.0, 290.0]]


def test_openb_keeps_starts_types_and_classes_as_levels(tmp_path):
    """Guaranteed 0, LS 1, Burstable 2, BE 3; a class of another name is bad."""
    workload = quiet(WORKLOADS / "synthetic_openb_pods.csv")
    assert columns(workload, "start_s", "level", "gpu_type") == [[10.0, 30.0], [1, 3], ["", "V100M32"]]
    head, row, *_ = (WORKLOADS / "synthetic_openb_pods.csv").read_text().splitlines()
    words = ("Guaranteed", "Burstable", "LSR")
    rows = [row.replace("pod-0", f"p{i}").replace("LS", word) for i, word in enumerate(words)]
    rows[0] = rows[0].replace(",460,,", ",460,V100M16|V100M32,")
    path = tmp_path / "pods.csv"
    path.write_text("\n".join([head, *rows]))
    with pytest.warns(WorkloadWarning) as caught:
        workload = open_workload(path)
    assert columns(workload, "level", "gpu_type") == [[0, 2], ["V100M16|V100M32", ""]]
    said = " ".join(str(one.message) for one in caught)
    assert "1 bad, the first at line 4, column 'qos': 'LSR'; expected one of Guaranteed, LS" in said
    assert "gpu_type, level are read, but nothing outside regions heeds them yet" in said
    path.write_text("\n".join([head.replace("qos", "class"), *rows]))
    assert quiet(path).level.tolist() == [0, 0, 0]


@needs_traces
def test_openb_prints_gpu_hours_by_share_and_counts_apart_what_was_never_scheduled():
    """Of 8,152 pods 1,088 ask no GPU, 861 of the rest were never scheduled; 1,205 of the others ask less than half."""
    path = TRACES / "alibaba/cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the traces here")
    for share, jobs, told in (
        ("whole", 6203, "51,470.7 GPU-hours are asked, 59,612.2 are read"),
        ("round", 4998, "51,470.7 GPU-hours are asked, 45,620.9 are read"),
    ):
        with pytest.warns(WorkloadWarning) as caught:
            workload = open_workload(path, format=f"openb:share={share}")
        said = " ".join(str(one.message) for one in caught)
        assert len(workload) == jobs and "1,088 without a GPU, 861 never scheduled" in said and told in said
        assert workload.work_s().sum() / 3600 == pytest.approx(59612.2 if share == "whole" else 45620.9, abs=0.05)
    assert "1,205 below half a GPU (6,118.2 GPU-hours); 45,620.9 GPU-hours are read, 6,118.2 dropped" in said


def test_pollux_durations_come_from_the_profiles():
    """ncf, 1 GPU, batch 32,768: 1,552 steps of .00765 + 4.34e-7 x 32,768 s = 33.9 s (10 epochs); parameters rounded."""
    workload = open_workload(WORKLOADS / "synthetic_pollux.csv")
    assert workload.model.tolist() == ["cifar10", "ncf", "bert"]
    assert workload.iterations[1] == pytest.approx(1552.0)
    assert workload.duration_s[1] == pytest.approx(1552.0 * (0.00765 + 4.34e-7 * 32768), rel=1e-3)
    # bert on one machine: 96 / 4 = 24 samples, two passes of 12
    compute, exchange = 0.1715 + 0.05869 * 12, 0.268 + 0.0441 * 2
    step = compute + (compute**2.02 + exchange**2.02) ** (1 / 2.02)
    assert workload.duration_s[2] == pytest.approx(1893.3 * step, rel=1e-3)
    fixed = open_workload(WORKLOADS / "synthetic_pollux.csv", format="pollux:duration_s=60")
    assert fixed.duration_s.tolist() == fixed.iterations.tolist() == [60.0] * 3


def test_gavel_durations_come_from_v100_rates():
    """2,409 steps at 24.0932/s; 16 GPUs at twice the rate of 8 (231.176/s); A3C on 2 at twice that of one."""
    workload = open_workload(WORKLOADS / "synthetic_gavel7.trace")
    assert workload.duration_s.tolist() == pytest.approx([2409 / 24.0932, 3736 / 462.352, 1435 / 14.35154], rel=1e-5)
    assert columns(workload, "gpus", "batch_size", "model") == [
        [1, 16, 2],
        [64, 80, 0],
        ["ResNet-18", "LM", "A3C"],
    ]
    ten = open_workload(WORKLOADS / "synthetic_gavel10.trace")
    assert columns(ten, "priority", "arrival_s", "iterations") == [[5, 1], [0.0, 10.0], [4395.0, 14154.0]]
    assert ten.deadline_s[0] == np.inf
    assert ten.deadline_s[1] == pytest.approx(10 + 1.5 * 14154 / 14.1538)


def test_gavel_tells_how_short_its_recommendation_jobs_are_and_leaves_models_out(tmp_path):
    """LM: 28,240 steps at 28.24/s are 1,000 s; Recommendation: 284.151 at 2.84151/s are 100 s, a third of the jobs."""
    rows = [f"{kind}\tpython3 main.py\t-n\t1\t{steps}\t{number}\t1" for number, (kind, steps) in enumerate(GAVEL)]
    path = tmp_path / "w.trace"
    path.write_text("\n".join(rows))
    with pytest.warns(WorkloadWarning, match=r"jobs \(33%\) run 100 s in the median, .* 1,000 to 2,000 s"):
        assert open_workload(path).duration_s.tolist() == pytest.approx([1000.0, 100.0, 2000.0])
    with pytest.warns(WorkloadWarning) as caught:
        left = open_workload(path, format="gavel:without=Recommendation")
    assert left.duration_s.tolist() == pytest.approx([1000.0, 2000.0])
    assert ["dropped 1 of 3 jobs: 1 of Recommendation" in str(one.message) for one in caught] == [True]
    with pytest.raises(InputError, match="did you mean 'Recommendation'"):
        open_workload(path, format="gavel:without=Recommendations")


GAVEL = (("LM (batch size 80)", 28_240), ("Recommendation (batch size 8192)", 284.151), ("A3C", 14_351.54))


def test_tiresias_muri_and_simple():
    tiresias = open_workload(WORKLOADS / "synthetic_tiresias.csv")
    assert columns(tiresias, "iterations", "duration_s", "arrival_s") == [[606, 133], [164, 147], [0, 30]]
    muri = open_workload(WORKLOADS / "synthetic_muri.csv")
    assert columns(muri, "arrival_s", "duration_s", "priority") == [[0.0, 1.5], [490.0, 42.8], [1, 0]]
    simple = open_workload(WORKLOADS / "synthetic_simple.csv")
    assert columns(simple, "arrival_s", "gpus", "duration_s") == [[0, 35], [2, 8], [15467, 374]]


def test_chronus_deadlines_are_relative_and_best_effort_has_none():
    workload = quiet(WORKLOADS / "synthetic_chronus.csv")
    assert columns(workload, "arrival_s", "duration_s") == [[600.0, 1200.0, 1800.0], [420.0, 540.0, 1800.0]]
    assert workload.deadline_s.tolist() == [1500.0, 2280.0, np.inf]
    last = quiet(WORKLOADS / "synthetic_chronus.csv", format="chronus:slot_s=1,deadline=last")
    assert last.deadline_s.tolist() == [25.0, 60.0, np.inf]


def test_oversize_names_the_job_drops_or_caps():
    path = WORKLOADS / "synthetic_simple.csv"
    with pytest.raises(InputError, match=r"job 1 asks 8 GPUs but the cluster has 4.*--oversize drop"):
        open_workload(path, cluster_gpus=4)
    with pytest.warns(WorkloadWarning, match="dropped 1 of 2"):
        assert open_workload(path, cluster_gpus=4, oversize="drop").job_id.tolist() == ["0"]
    with pytest.warns(WorkloadWarning, match="capped 1 of 2"):
        assert open_workload(path, cluster_gpus=4, oversize="cap").gpus.tolist() == [2, 4]
    assert open_workload(path, cluster_gpus=8).gpus.tolist() == [2, 8]


def test_take_keeps_the_order_of_arrival():
    workload = open_workload("poisson:jobs=10")
    assert workload.take([7, 2]).job_id.tolist() == ["2", "7"]
    assert len(workload.take(workload.gpus >= 1)) == 10
    assert open_workload(workload) is workload
    with pytest.raises(ValueError, match="read-only"):
        workload.gpus[0] = 3


def test_the_list_names_every_generator_and_format():
    rows = {row["name"]: row for row in list_workloads()}
    assert {row["kind"] for row in rows.values()} == {"generator", "format"}
    assert rows["artist-sim"]["parameters"] == "scale=none, caps=off, bad_rows=drop"
    assert all(row["summary"] for row in rows.values())


# Real files

# file under ../shared/traces: (format, jobs, sum of GPUs, sum of duration_s)
REAL = {
    "adaptdl/simulator/traces/philly.csv": ("philly", 82247, 107235, 1080390950.0),
    "helios_venus_slice/helios_venus_2vc_sept.csv": ("helios", 1867, 87757, 10549988.0),
    "dally/batch_500.csv": ("artist-sim", 500, 2544, 46993968.0),
    "swf/lublin_256.swf": ("swf", 10000, 221010, 48627667.0),
    "oracle/common_160.csv": ("simple", 160, 504, 420205.0),
    "oracle/common_480.csv": ("simple", 480, 1446, 1571948.0),
    "tiresias/simulator/60_job.csv": ("tiresias", 60, 170, 10705.0),
    "muri/simulator/trace-data/trace3.csv": ("muri", 992, 9346, 46489935.0),
    "chronus/code/data/exp/trace_job_Philly_MIX1.csv": ("chronus", 30756, 42947, 481546140.0),
    "chronus/code/data/exp/trace_job_Philly_MIX2.csv": ("chronus", 30746, 43061, 486116520.0),
    "alibaba/cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv": ("openb", 6203, 6571, 191369677.0),
    "gavel/scheduler/traces/msr/seed=0/0e4a51.trace": ("gavel", 1181, 3236, None),
    "gavel/scheduler/traces/physical_cluster/artifact_evaluation.trace": ("gavel", 15, 18, None),
    "adaptdl/simulator/workloads/workload-6.csv": ("pollux", 160, 1134, None),
    "sia/sia-simulator/workloads/newtrace/workload-1.csv": ("pollux", 960, 9020, None),
    "dally_cluster_sim/configuration/jobs/sense_500jobs_0start-withBert.json": (
        "artist-sim",
        500,
        2544,
        46993968.0,
    ),
}


@needs_traces
@pytest.mark.parametrize("file", REAL)
def test_real_files_have_the_published_counts(file):
    name, jobs, gpus, duration_s = REAL[file]
    path = TRACES / file
    if not path.is_file():
        pytest.skip(f"{file} is not among the traces here")
    assert recognise(path) == name
    workload = quiet(path)
    assert (len(workload), workload.gpus.sum()) == (jobs, gpus)
    assert duration_s is None or workload.duration_s.sum() == pytest.approx(duration_s, rel=1e-12)


@needs_traces
def test_every_other_real_trace_opens():
    folders = [
        "adaptdl/simulator/workloads*",
        "sia/sia-simulator/workloads/*",
        "sia/sia-simulator/workloads/scale/*",
        "muri/*/trace-data",
        "gavel/scheduler/traces/*",
        "gavel/scheduler/traces/msr/*",
        "dally_cluster_sim/configuration/jobs",
    ]
    paths = [
        path for folder in folders for path in TRACES.glob(f"{folder}/*") if path.suffix in (".csv", ".trace", ".json")
    ]
    assert len(paths) > 50
    for path in paths:
        assert len(quiet(path)) > 0


@needs_traces
def test_the_whole_philly_list_is_read():
    workload = quiet(TRACES / "adaptdl/simulator/traces/philly.csv")
    assert workload.arrival_s[0] == 0
    assert np.all(np.diff(workload.arrival_s) >= 0)


@needs_traces
def test_artist_sim_json_and_converted_csv_agree():
    csv_ = quiet(TRACES / "dally/batch_500.csv", format="artist-sim:scale=gang,caps=batch")
    json_ = quiet(
        TRACES / "dally_cluster_sim/configuration/jobs/sense_500jobs_0start0arrival-withBert.json",
        format="artist-sim:scale=gang,caps=batch",
    )
    a, b = (np.argsort(workload.job_id) for workload in (csv_, json_))  # the files list the jobs in other orders
    for column in ("job_id", "arrival_s", "gpus", "duration_s", "iterations", "model", "batch_size"):
        assert np.array_equal(getattr(csv_, column)[a], getattr(json_, column)[b]), column


@needs_traces
def test_gavel_rates_are_those_of_the_repository():
    import json

    path = TRACES / "gavel/scheduler/simulation_throughputs.json"
    if not path.is_file():
        pytest.skip("the Gavel throughput file is not among the traces here")
    rates = json.loads(path.read_text())["v100"]
    for (model, batch), by_gpus in gavel_trace.V100_STEPS_PER_S.items():
        for gpus, rate in by_gpus.items():
            name = f"{model} (batch size {batch})" if batch else model
            assert rates[f"('{name}', {gpus})"]["null"] == pytest.approx(rate, rel=1e-5)


@needs_traces
@pytest.mark.parametrize(
    ("application", "epochs"),
    [("bert", 2), ("cifar10", 100), ("deepspeech2", 80), ("imagenet", 90), ("ncf", 10), ("yolov3", 50)],
)
def test_pollux_steps_follow_from_the_validation_files(application, epochs):
    import pandas as pd

    steps = profile_of(application).efficiency.steps
    sizes = sorted(steps)
    files = {size: TRACES / f"adaptdl/simulator/traces/{application}/validation-{size}.csv" for size in sizes}
    if not all(path.is_file() for path in files.values()):
        pytest.skip("the Pollux validation files are not among the traces here")
    tables = {size: pd.read_csv(path).iloc[:epochs] for size, path in files.items()}
    ends = np.min([table.progress.to_numpy() for table in tables.values()], axis=0)
    for size, table in tables.items():
        gain = (table.grad_var + table.grad_sqr) / (table.grad_var / (size / sizes[0]) + table.grad_sqr)
        assert np.sum(np.diff(ends, prepend=0) / gain) == pytest.approx(steps[size], rel=1e-3)
