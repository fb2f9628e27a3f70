"""Evaluations over a log whose blocks are drawn anew: what is printed, stored and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run

# Ten jobs of 100 s on all 8 GPUs, 30 minutes apart: none ever waits, whichever blocks are drawn.
LOG = "job_id,arrival_s,gpus,duration_s\n" + "".join(f"{i},{1800 * i},8,100\n" for i in range(10))


@pytest.fixture
def words(tmp_path: Path, monkeypatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    Path("log.csv").write_text(LOG)
    words = ["evaluate", "Delay", "--workload", "resampled:file=log.csv,block_h=1", "--topology", "flat:machines=1"]
    return [*words, "--network", "none", "--policies", "fifo"]


def test_each_seed_is_another_draw_and_any_seed_is_played(words, capsys):
    """5 h in blocks of 1 h: jobs that come again may meet; the load is 10 x 8 x 100 / (8 x 18,000) = 0.0556."""
    assert run([*words, "--seeds", "0,1,1000", "--logdir", "out"]) == 0
    said = capsys.readouterr().out
    assert "blocks of 1 h of a log, drawn anew for each seed (circular block bootstrap)" in said
    assert "0.0556 of the GPUs" in said
    table = pq.read_table("out/results.parquet")
    assert table["depends_on_seed"].to_pylist() == [True] * 3 and table["jct_mean"].to_pylist() == [100.0] * 3


def test_a_seed_in_the_word_is_one_run(words, capsys):
    words[3] += ",seed=4"
    assert run([*words, "--seeds", "0-2"]) == 0
    said = capsys.readouterr().out
    assert "blocks of 1 h of a log, drawn by seed 4" in said and "nothing depends on the seed" in said


def test_hours_of_day_are_refused_and_other_groups_are_those_of_the_log(words, capsys):
    assert run([*words, "--seeds", "0", "--set", "by=hour"]) == 1
    assert "blocks of 1 h begin at any hour of a day; expected slices of 24 h, or days" in capsys.readouterr().err
    assert run([*words, "--seeds", "0", "--set", "by=gpus", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["metrics"]["jct_mean[gpus=8]"] == 100.0


def test_whatif_plays_ten_draws_and_says_that_replay_is_no_measure(words, capsys):
    rows = "".join(f"{i},{1800 * i},8,100,{1800 * i + 50}\n" for i in range(10))
    Path("log.csv").write_text(f"job_id,arrival_s,gpus,duration_s,start_s\n{rows}")
    asked = ["whatif", words[3], *words[4:6], "--policies", "replay fifo", "--quiet", "--logdir", "what"]
    assert run(asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "which blocks of 1 h do not hold: compare other policies with each other" in said
    assert len(set(pq.read_table("what/results.parquet")["seed"].to_pylist())) == 10
