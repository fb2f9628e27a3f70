"""A log whose blocks are drawn anew: which jobs, on which clock, under which names, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.files.file_marks import read_by
from clustergym.simulator.workloads import A_WORKLOAD, list_workloads, open_workload, workload_source
from clustergym.simulator.workloads.log_samples import samples_of

# One job every half hour from 1,800 s on: 20 of them span 9.5 h, and with one mean gap the circle is 10 h long.
ROWS = [f"j{i},{1800 * (i + 1)},{i % 4 + 1},{60 + i},{1800 * (i + 1) + 500},{1800 * (i + 1) + 7}" for i in range(20)]
LOG = "job_id,arrival_s,gpus,duration_s,deadline_s,start_s\n" + "\n".join(ROWS) + "\n"
WAYS = ["mast-like:regions=2,gpus=48,jobs=12,longest_h=1,tables=4", "harmony-like:jobs=8,gap_min=30"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path / "log.csv"


def test_jobs_of_a_block_are_neighbours_with_their_gaps(path):
    """Blocks of 2 h hold 4 jobs, and 5 blocks are the log's 10 h: jobs i, i + 1, i + 2, i + 3 modulo 20, 1,800 s apart.

    A block begins anywhere, so its first job comes within 1,800 s, and the load is the log's in any resample.
    """
    jobs = open_workload(f"resampled:file={path},block_h=2", seed=3)
    assert len(jobs) == 20 and jobs.window_s == pytest.approx(36_000.0)
    row = np.array([int(one[1:].partition("#")[0]) for one in jobs.job_id]).reshape(5, 4)
    assert (row == (row[:, :1] + np.arange(4)) % 20).all()
    arrival_s = jobs.arrival_s.reshape(5, 4) - 7200.0 * np.arange(5)[:, None]
    assert (arrival_s[:, 0] >= 0).all() and (arrival_s[:, 0] < 1800).all()
    assert np.diff(arrival_s, axis=1) == pytest.approx(1800.0)
    assert jobs.duration_s.tolist() == (60 + row.ravel()).tolist()
    assert jobs.gpus.tolist() == (row.ravel() % 4 + 1).tolist()


def test_times_of_a_job_move_with_its_arrival(path):
    jobs = open_workload(f"resampled:file={path},block_h=2", seed=1)
    assert jobs.deadline_s - jobs.arrival_s == pytest.approx(500.0)
    assert jobs.start_s - jobs.arrival_s == pytest.approx(7.0)


def test_a_job_that_comes_again_has_a_number(path):
    """Of 5 blocks in 20 jobs some overlap; ids are unique, and a log that has a # itself gets two."""
    jobs = open_workload(f"resampled:file={path},block_h=2", seed=0)
    assert len(set(jobs.job_id)) == 20 and any(one.endswith("#2") for one in jobs.job_id)
    path.write_text(LOG.replace("j3,", "j2#2,"))
    again = open_workload(f"resampled:file={path},block_h=2", seed=0).job_id
    assert len(set(again)) == 20 and any(one.endswith("##2") for one in again)


def test_every_job_comes_once_on_average(path):
    """On a circle no job is at an edge: over 4,000 seeds of 20 jobs each comes 4,000 times, give or take 4 errors.

    A job comes within each of 3 blocks of 4 h (the last of 2 h) with probability .4, .4, .2: variance .64, error 51.
    """
    found, _ = samples_of(f"resampled:file={path},block_h=4")
    times = np.bincount(np.concatenate([found._draw(np.random.default_rng(seed))[0] for seed in range(4000)]))
    assert np.abs(times - 4000).max() < 4 * 51


def test_a_seed_fixes_the_draw_and_may_stand_in_the_word(path):
    word = f"resampled:file={path},block_h=2"
    one, same, other = (open_workload(word, seed=seed) for seed in (5, 5, 6))
    assert one.job_id.tolist() == same.job_id.tolist() != other.job_id.tolist()
    assert open_workload(f"{word},seed=5", seed=0).arrival_s.tolist() == one.arrival_s.tolist()
    assert one.name == "log, resample 5"


def test_blocks_without_jobs_are_drawn_again(path):
    """Two bursts in 100 h with blocks of 1 h: most draws of a block are empty, and a workload never is."""
    path.write_text("job_id,arrival_s,gpus,duration_s\na,0,1,5\nb,180000,1,5\n")
    assert all(len(open_workload(f"resampled:file={path},block_h=40", seed=seed)) >= 1 for seed in range(50))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("block_h=1", "parameter 'file' is required"),
        ("file={log},block_h=0", "block_h=0; expected a number above 0"),
        ("file={log},block_h=10", "block_h=10, but jobs of log arrive within 10 h; expected blocks that are shorter"),
        ("file={log},hours=1", "unknown parameter 'hours'"),
        ("file={log},block_h=1,seed=-1", "seed = -1"),
        ("file={log}.no,block_h=1", "there is no such file"),
        ("file={log},block_h=1,format=swf", "log.csv"),
    ],
)
def test_a_word_that_cannot_be_resampled_is_refused_before_a_draw(path, given, said):
    with pytest.raises(InputError, match=said):
        workload_source(f"resampled:{given.format(log=path)}")


def test_a_log_whose_jobs_arrive_at_once_has_no_blocks(path):
    path.write_text("job_id,arrival_s,gpus,duration_s\na,50,1,5\nb,50,1,5\n")
    with pytest.raises(InputError, match="arrive within 0 h"):
        open_workload(f"resampled:file={path}")


def test_the_format_of_the_file_stands_in_the_word(path):
    with pytest.raises(InputError, match="samples of a log name that of their file in their word"):
        open_workload(f"resampled:file={path}", format="csv")
    assert len(open_workload(f"resampled:file={path},block_h=2,format=csv")) == 20


def test_the_file_is_known_by_its_content(path):
    word = f"resampled:file={path},block_h=2"
    before = read_by(word, A_WORKLOAD, "workload").content
    path.write_text(LOG.replace("j0,1800,1,60", "j0,1800,1,61"))
    assert read_by(word, A_WORKLOAD, "workload").content != before


@pytest.mark.parametrize("kind", WAYS)
def test_jobs_of_regions_and_of_groups_are_resampled_too(tmp_path, kind):
    """Each job has the run time, tables and COMP of the one that it is drawn from."""
    log = open_workload(kind)
    if not np.ptp(log.arrival_s):
        pytest.skip("all jobs of this generator arrive at once")
    log.save(tmp_path / "log.csv")
    hours = float(np.ptp(log.arrival_s)) / 3600.0 / 3.0
    jobs = open_workload(f"resampled:file={tmp_path / 'log.csv'},block_h={hours}", seed=2)
    assert (jobs.geo is None, jobs.ps is None) == (log.geo is None, log.ps is None)
    known = dict(zip(log.job_id, log.duration_s, strict=True))
    assert [known[one.partition("#")[0]] for one in jobs.job_id] == pytest.approx(jobs.duration_s.tolist())
    if jobs.geo is not None:
        rows = [log.job_id.tolist().index(one.partition("#")[0]) for one in jobs.job_id]
        tables = [log.geo.take(np.array([row])).table.tolist() for row in rows]
        assert [table for one in tables for table in one] == jobs.geo.table.tolist()


def test_it_is_listed_with_its_parameters():
    row = next(row for row in list_workloads() if row["name"] == "resampled")
    assert row["parameters"] == "file=..., block_h=3.0, format="
