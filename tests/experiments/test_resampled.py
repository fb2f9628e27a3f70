"""Evaluations over a log whose blocks are drawn anew: what is printed, stored and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.comparing.intervals import estimate, paired_ratio

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


def test_the_interval_is_that_of_one_more_draw():
    """1 and 3: of the mean 6.3531 in the logarithm (t of 2 runs is 12.706, s / (sqrt 2 x 2) = 1/2); sqrt 3 times here.

    Many draws of one log: values around 1 with s = 0.1 have 1.96 x 0.1 about them, and not 0.1 x 1.96 / sqrt n.
    """
    found, wide = (estimate([1.0, 3.0], resampled=resampled) for resampled in (False, True))
    assert np.log(wide.high / 2.0) == pytest.approx(np.sqrt(3.0) * np.log(found.high / 2.0)) and wide.mean == 2.0
    values = np.random.default_rng(1).normal(1.0, 0.1, 4000).tolist()
    assert estimate(values, resampled=True).high == pytest.approx(np.exp(0.196), abs=0.01)
    ratio, plain_ratio = (paired_ratio([2.0, 3.0, 4.0], [1.0, 2.0, 4.0], resampled) for resampled in (True, False))
    assert np.log(ratio.high / ratio.mean) == pytest.approx(2.0 * np.log(plain_ratio.high / plain_ratio.mean))
    signed = estimate([-1.0, 3.0], signed=True, resampled=True)
    assert signed.high - 1.0 == pytest.approx(np.sqrt(3.0) * 2.0 * 12.7062, rel=1e-4)


def test_intervals_of_draws_are_those_of_their_kind_where_they_are_stored_too(words, capsys):
    """Jobs of 2 h, one an hour or less on one machine: JCTs differ. Three draws: twice as long."""
    rows = [f"{i},{1800 * i * i},8,7200" for i in range(10)]
    Path("log.csv").write_text("job_id,arrival_s,gpus,duration_s\n" + "\n".join(rows) + "\n")
    words[3] = "resampled:file=log.csv,block_h=6"
    assert run([*words, "--seeds", "0-2", "--logdir", "out", "--set", "by=gpus"]) == 0
    assert "95 % interval of logs like this one" in capsys.readouterr().out
    assert run(["compare", "out", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["settings"][0]["policies"][0]["metrics"]
    values = pq.read_table("out/results.parquet")["jct_mean"].to_pylist()[:3]
    expected = estimate(values, resampled=True)
    assert metrics["jct_mean"]["high"] == pytest.approx(expected.high) and expected.high > estimate(values).high
    assert metrics["jct_mean[gpus=8]"]["high"] == pytest.approx(expected.high)
    assert metrics["gpu_utilisation"]["high"] <= 1.0


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
