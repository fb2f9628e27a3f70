"""Slices of a log as seeds: which jobs, on which clock, how long, and what is left out.

LOG by the hour (3,600 s): a, b | c, d | nothing | e, f. The last arrival is at 14,400 - 100 s.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import clustergym  # noqa: F401  (registers the environments)
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.files.file_marks import read_by
from clustergym.simulator.workloads import A_WORKLOAD, WorkloadWarning, list_workloads, open_workload, workload_source
from clustergym.simulator.workloads.log_samples import samples_of

HEAD = "job_id,arrival_s,gpus,duration_s,deadline_s,start_s\n"
LOG = f"{HEAD}a,0,1,100,,10\nb,1800,2,600,2500,\nc,3600,4,50,4000,3700\nd,3700,1,50,,\ne,10900,9,10,,\nf,14300,1,10,,\n"


@pytest.fixture
def word(tmp_path: Path) -> str:
    (tmp_path / "log.csv").write_text(LOG)
    return f"slices:file={tmp_path / 'log.csv'},hours=1"


@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_a_seed_is_a_slice_with_the_jobs_that_arrive_in_it(word):
    """Slice 1 begins at 3,600: c arrives at 0, was started at 100 and is due at 400, d arrives at 100.

    The hour from 7,200 has no job, so slice 2 begins at 10,800: e at 100, f at 3,500. Seed 4 is slice 4 modulo 3.
    """
    jobs = [open_workload(word, seed=seed) for seed in range(3)]
    assert [one.job_id.tolist() for one in jobs] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert [one.arrival_s.tolist() for one in jobs] == [[0, 1800], [0, 100], [100, 3500]]
    assert jobs[1].start_s.tolist() == [100, np.inf] and jobs[1].deadline_s.tolist() == [400, np.inf]
    assert open_workload(word, seed=4).job_id.tolist() == ["c", "d"]
    assert open_workload(f"{word},seed=2", seed=0).job_id.tolist() == ["e", "f"]
    assert jobs[1].name == "log, slice 1"


@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_the_load_is_of_the_hours_of_a_slice(word):
    """Slice 0: 1 x 100 + 2 x 600 GPU-seconds in 3,600 s. The log covers 14,300 - 10,800 s of slice 2: 100 there."""
    assert open_workload(word, seed=0).offered_load(1) == pytest.approx(1300 / 3600)
    assert [open_workload(word, seed=seed).window_s for seed in range(3)] == [3600, 3600, 3500]


def test_what_is_left_out_is_counted(word, tmp_path):
    """With g at 15,000 s the log covers 600 s of a fifth hour, less than half of it; all of the fourth."""
    (tmp_path / "log.csv").write_text(LOG + "g,15000,1,10,,\n")
    with pytest.warns(WorkloadWarning, match="1 without a job and 1 at its ends of which it covers less than half"):
        found, _ = samples_of(word)
    assert len(found) == 3 and found.workload(2).window_s == 3600
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert samples_of(word)[0] is found  # once a process, as long as the file stays as it is


def test_a_log_shorter_than_a_slice_is_one(tmp_path):
    """From 3,000 to 4,000 s, hour 0 has 600 s of it and hour 1 400 s: the one of which it covers most stays."""
    path = tmp_path / "log.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s\na,3000,1,5\nb,4000,1,5\n")
    with pytest.warns(WorkloadWarning, match=r"1 at its ends of which it covers less than half \(1 jobs\) are left"):
        assert open_workload(f"slices:file={path},hours=1", seed=7).job_id.tolist() == ["a"]
    whole = open_workload(f"slices:file={path},hours=24")
    assert whole.arrival_s.tolist() == [3000, 4000] and whole.window_s == 1000
    path.write_text("job_id,arrival_s,gpus,duration_s\na,3000,1,5\nb,3000,1,5\n")
    assert open_workload(f"slices:file={path},hours=1").window_s is None  # all at once


@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_jobs_larger_than_the_cluster_are_those_of_the_slice(word):
    """Only e in slice 2 asks more than 8 GPUs; of 2, c alone in slice 1 stays out, and of 0 nothing."""
    assert open_workload(word, seed=1, cluster_gpus=8).gpus.tolist() == [4, 1]
    with pytest.raises(InputError, match="'log, slice 2': job e asks 9 GPUs"):
        open_workload(word, seed=2, cluster_gpus=8)
    assert open_workload(word, seed=2, cluster_gpus=8, oversize="cap").gpus.tolist() == [8, 1]
    assert open_workload(word, seed=2, cluster_gpus=8, oversize="drop").job_id.tolist() == ["f"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hours=1", "parameter 'file' is required"),
        ("file={log},hours=0", "hours=0; expected a number above 0"),
        ("file={log},hours=inf", "hours=inf; expected a number above 0"),
        ("file={log},hours=1e-300", "slices of 1e-300 h are more than 1,000,000,000; expected longer ones"),
        ("file={log},hours=1,skip=2", "unknown parameter 'skip'"),
        ("file={log},hours=1,seed=-1", "seed = -1"),
        ("file={log},hours=1,deadlines=2", "unknown parameter 'deadlines'"),
        ("file={log}.no,hours=1", "there is no such file"),
        ("file={log},hours=1,format=swf", "log.csv"),
    ],
)
def test_a_word_that_is_no_slices_is_refused_before_a_draw(word, tmp_path, given, said):
    with pytest.raises(InputError, match=said):
        workload_source(f"slices:{given.format(log=tmp_path / 'log.csv')}")


def test_the_format_of_the_file_stands_in_the_word(word, tmp_path):
    path = tmp_path / "60_job.csv"
    path.write_text("job_id,submit_time,num_gpu,duration\n1,0,2,60\n2,3599,4,60\n")
    jobs = open_workload(f"slices:file={path},hours=1,format=simple:bad_rows=error")
    assert jobs.gpus.tolist() == [2, 4]
    with pytest.raises(InputError, match="samples of a log name that of their file in their word"):
        open_workload(word, format="csv")


def test_the_file_is_known_by_its_content_wherever_it_lies(word, tmp_path):
    """Renamed it is the same, written anew another; `hours` is of the word."""
    before = read_by(word, A_WORKLOAD, "workload")
    assert before.files[0][1] == tmp_path / "log.csv" and before.text == "slices:file=<file>,hours=1"
    content = before.content
    (tmp_path / "log.csv").rename(tmp_path / "other.csv")
    moved = word.replace("log.csv", "other.csv")
    assert read_by(moved, A_WORKLOAD, "workload").content == content
    (tmp_path / "other.csv").write_text(LOG.replace("a,0,1,100", "a,0,1,101"))
    assert read_by(moved, A_WORKLOAD, "workload").content != content
    with pytest.warns(WorkloadWarning):
        assert open_workload(moved).duration_s[0] == 101


@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_environments_draw_slices(word):
    """Every episode is one of the three slices, each of which comes."""
    env = gymnasium.make("clustergym/Delay-v0", topology="flat:machines=2", workload=word, network="none")
    first = set()
    for seed in range(12):
        env.reset(seed=seed)
        first.add(str(env.unwrapped.simulator.workload.job_id[0]))
    assert first == {"a", "c", "e"}


@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
@pytest.mark.parametrize("kind", ["mast-like:regions=2,gpus=48,jobs=12,longest_h=1,tables=4", "harmony-like:jobs=8"])
def test_jobs_of_regions_and_of_groups_are_sliced_too(tmp_path, kind):
    path = tmp_path / "log.csv"
    log = open_workload(kind)
    log.save(path)
    hours = float(log.arrival_s[-1]) / 7200.0 or 1.0
    jobs = open_workload(f"slices:file={path},hours={hours},seed=0")
    assert (jobs.geo is None, jobs.ps is None) == (log.geo is None, log.ps is None)
    assert 1 <= len(jobs) <= len(log) and set(jobs.job_id) <= set(log.job_id)


def test_slices_are_listed_with_their_parameters():
    row = next(row for row in list_workloads() if row["name"] == "slices")
    assert row["parameters"] == "file=..., hours=24.0, format="
