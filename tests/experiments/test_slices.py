"""Evaluations over the slices of a log: seeds, what is printed, stored and refused, and other options beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.errors import InputError

# Two hours on 8 GPUs, in order of arrival: b waits 50 s for a, d 100 s for c.
LOG = "job_id,arrival_s,gpus,duration_s\na,0,8,100\nb,50,8,60\nc,3600,8,200\nd,3700,8,40\ne,7199,1,10\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path / "log.csv"


def setting(log: Path, more: str = "", **options) -> Setting:
    word = f"slices:file={log},hours=1{more}"
    return Setting.of("Delay", "flat:machines=1", word, "none", **options)


def means(setting: Setting, seeds: list[int]) -> list[float]:
    return [one.metrics["jct_mean"] for one in evaluate(setting, ["fifo:head=strict"], seeds)]


def command(log: Path, *more: str) -> list[str]:
    words = ["evaluate", "Delay", "--workload", f"slices:file={log},hours=1", "--topology", "flat:machines=1"]
    return [*words, "--network", "none", "--policies", "fifo:head=strict", *more]


def test_each_seed_is_a_slice_and_jobs_run_beyond_its_end(log):
    """Slice 0: a 100 s, b 50 + 60. Slice 1: c 200, d 100 + 40, e 10, though the hour ends after 1 of them."""
    runs = evaluate(setting(log), ["fifo:head=strict"], [0, 1])
    assert [one.metrics["jct_mean"] for one in runs] == pytest.approx([105.0, 350 / 3])
    assert [one.metrics["jobs_finished"] for one in runs] == [2, 3] and all(one.is_drawn for one in runs)
    assert runs[1].metrics["makespan"] == 3609.0


def test_a_seed_beyond_the_slices_is_refused(log, capsys):
    with pytest.raises(InputError, match="seed 2: log has 2 slices of 1 h, and one that is played again tells nothing"):
        evaluate(setting(log), ["fifo"], [1, 2])
    assert run(command(log)) == 1  # seeds 0-9
    assert "expected --seeds 0-1" in capsys.readouterr().err
    assert means(setting(log, ",seed=1"), [0, 5]) == pytest.approx([350 / 3] * 2)  # one slice, whatever the seed


def test_the_head_of_the_table_says_how_a_slice_begins_and_ends(log, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert run(command(log, "--seeds", "0-1")) == 0
    said = capsys.readouterr().out
    assert "2 slices of 1 h, one a seed; a slice begins on an empty cluster, and its jobs run to their ends" in said


def test_a_window_counts_from_the_first_arrival_of_a_slice(log):
    """From 60 s on: no job of slice 0 arrives then; of slice 1 d (JCT 140) and e (10)."""
    assert means(setting(log, window="60/inf"), [1]) == [75.0]
    with pytest.raises(InputError, match="no job arrives in it"):
        means(setting(log, window="60/inf"), [0])


def test_outages_count_from_the_beginning_of_each_slice(log, tmp_path):
    """The machine is down from 20 to 30 s: a and c, which run then, lose 20 s and wait 10, and so do b and d."""
    (tmp_path / "down.csv").write_text("start_s,duration_s,what,name\n20,10,machine,0\n")
    found = means(setting(log, outages=str(tmp_path / "down.csv")), [0, 1])
    assert found == pytest.approx([(130 + 140) / 2, (230 + 170 + 10) / 3])


def test_a_horizon_cuts_a_slice_as_any_run(log):
    """Of slice 1 c alone has finished 220 s after its beginning."""
    assert means(setting(log, horizon_s=220.0), [1]) == [200.0]


def test_jobs_larger_than_the_cluster_are_refused_or_dropped(log):
    log.write_text(LOG.replace("d,3700,8", "d,3700,16"))
    with pytest.raises(InputError, match="'log, slice 1': job d asks 16 GPUs"):
        means(setting(log), [0, 1])
    with pytest.warns(UserWarning, match="log, slice 1: dropped 1 of 3 jobs"):
        assert means(setting(log, oversize="drop"), [0, 1]) == pytest.approx([105.0, 105.0])


def test_stored_runs_of_slices_stay_while_the_content_of_the_log_does(log, tmp_path, capsys):
    """As any file: with other content the runs are played again, and another number of hours is another setting."""
    out = str(tmp_path / "out")
    assert run(command(log, "--seeds", "0-1", "--logdir", out)) == 0
    table = pq.read_table(tmp_path / "out" / "results.parquet")
    assert table["jct_mean"].to_pylist() == pytest.approx([105.0, 350 / 3])
    assert table["depends_on_seed"].to_pylist() == [True, True]
    capsys.readouterr()
    log.write_text(LOG.replace("a,0,8,100", "a,0,8,200"))
    assert run(command(log, "--seeds", "0-1", "--logdir", out)) == 0
    assert "the workload has changed" in capsys.readouterr().err
    hours = [word.replace("hours=1", "hours=2") for word in command(log, "--seeds", "0", "--logdir", out)]
    assert run(hours) == 2
    shutil.rmtree(out)


def test_rows_say_whether_they_depend_on_the_seed(log, tmp_path, capsys):
    """A file and FIFO draw nothing, so one run stands for both seeds; `random` draws its order."""
    words = ["evaluate", "Delay", "--workload", str(log), "--topology", "flat:machines=1", "--network", "none"]
    words += ["--policies", "fifo random", "--seeds", "0-1", "--logdir", str(tmp_path / "out")]
    assert run([*words, "--json"]) == 0
    wanted = {"fifo": False, "random": True}
    assert all(row["depends_on_seed"] is wanted[row["policy"]] for row in json.loads(capsys.readouterr().out))
    for row in pq.read_table(tmp_path / "out" / "results.parquet").to_pylist():
        assert row["depends_on_seed"] is wanted[row["policy"]]


def test_slices_without_models_are_assumed_to_be_as_a_trace_without(log, capsys):
    words = command(log, "--seeds", "0", "--json")
    words[1] = "Sharing"
    del words[words.index("--network") : words.index("--network") + 2]
    assert run(words) == 0
    captured = capsys.readouterr()
    assert "names no models, so this is assumed: jobs send nothing over the network" in captured.err
    assert json.loads(captured.out)[0]["setting"]["interference"] == "constant:xi=1.47"


def test_options_about_the_file_stand_in_the_word(log, capsys):
    assert run(command(log, "--seeds", "0", "--format", "csv")) == 2
    assert "samples of a log name that of their file in their word" in capsys.readouterr().err
    assert run(command(log, "--seeds", "0", "--set", "semantics=artist-sim")) == 2
    assert "samples of a log name how jobs are read" in capsys.readouterr().err


def test_a_slice_can_be_swept_and_saved(log, tmp_path, capsys):
    """The sum of run times is 410 s in both hours together; in the second alone 250 s."""
    assert run(command(log, "--seeds", "0", "--sweep", "hours=1/2", "--json")) == 0
    assert [row["metrics"]["jobs_finished"] for row in json.loads(capsys.readouterr().out)] == [2, 5]
    word = f"slices:file={log},hours=1"
    assert run(["workload", "generate", word, "--seed", "1", "--to", str(tmp_path / "one.csv"), "-q"]) == 0
    saved = (tmp_path / "one.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in saved[1:]] == [["c", "0.0"], ["d", "100.0"], ["e", "3599.0"]]


def test_replay_starts_jobs_when_the_log_did_on_the_clock_of_a_slice(log):
    """c waited 50 s and d 300 s in the log: JCT 250 and 340 in slice 1, e 10 at once."""
    rows = ["a,0,8,100,0", "b,50,8,60,100", "c,3600,8,200,3650", "d,3700,8,40,4000", "e,7199,1,10,7199"]
    log.write_text("job_id,arrival_s,gpus,duration_s,start_s\n" + "\n".join(rows) + "\n")
    (found,) = evaluate(setting(log), ["replay"], [1])
    assert found.jct_s.tolist() == [250.0, 340.0, 10.0]
