"""Metrics of a window of time: the jobs that arrive in it, and what happened meanwhile."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.metric_registry import GROWTH, METRICS, TIME
from clustergym.simulator.engine.time_window import Window

TRACE = "job_id,arrival_s,gpus,duration_s\na,1000,8,100\nb,1050,8,50\nc,1120,4,30\nd,1200,8,20\n"
SETTINGS = {
    "srtf": described_setting("Delay", "poisson:jobs=60,backlog=20,load=1.3", None, None),
    "greedy": described_setting("Grouping", None, None, None),
    "mast": described_setting("Geo", None, None, None),
}


def four(tmp_path: Path, window: str | None) -> Setting:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return Setting.of("clustergym/Delay-v0", "flat:machines=1", str(path), "none", window=window)


def test_a_window_by_hand(tmp_path):
    """8 GPUs, strict FIFO, seconds after the first arrival: a runs 0-100, b (there at 50) 100-150, c (120) 150-180.

    From 50 to 200 b and c arrive: JCT 100 and 60, no GPUs for 50 and 30 s, the last finish 130 s after b's arrival. Of
    150 s x 8 GPUs a and b use 50 s x 8 each and c 30 s x 4: 920 of 1,200.
    """
    found = play(four(tmp_path, "50/200"), "fifo:head=strict", 0)
    metrics = found.metrics
    assert found.jobs == 2 and found.jct_s.tolist() == [100.0, 60.0]
    assert metrics["jct_mean"] == 80.0 and metrics["queueing_delay_mean"] == 40.0
    assert metrics["makespan"] == 130.0 and metrics["jobs_finished"] == 2
    assert metrics["gpu_utilisation"] == pytest.approx(920 / 1200)
    assert metrics["allocation_rate"] == pytest.approx(920 / 1200)


def test_a_window_that_begins_at_once_or_never_ends(tmp_path):
    """To 60 a and b arrive, and the GPUs are busy; from 120 c and d, which use 30 s x 4 and 20 s x 8 of 100 s x 8."""
    early, late = (play(four(tmp_path, window), "fifo:head=strict", 0).metrics for window in ("0/60", "120/inf"))
    assert early["jct_mean"] == 100.0 and early["gpu_utilisation"] == pytest.approx(1.0)
    assert late["jct_mean"] == 40.0
    assert late["gpu_utilisation"] == pytest.approx((30 * 8 + 30 * 4 + 20 * 8) / (100 * 8))


@pytest.mark.parametrize("word", list(SETTINGS))
def test_the_window_of_all_time_is_the_whole_run(word):
    whole = play(SETTINGS[word], word, 0)
    found = play(SETTINGS[word].copy_with(window="0/inf"), word, 0)
    assert found.metrics.keys() == whole.metrics.keys()
    assert np.array_equal(found.jct_s, whole.jct_s) and found.jobs == whole.jobs
    for name, value in whole.metrics.items():
        assert found.metrics[name] == pytest.approx(value, rel=1e-12, nan_ok=True), name


@pytest.mark.parametrize("word", list(SETTINGS))
def test_two_windows_make_up_the_run(word):
    """Counts add up; shares of time do so weighted by time; each job is in one of them."""
    whole = play(SETTINGS[word], word, 0)
    middle_s = 0.2 * whole.metrics["makespan"]
    windows = f"0/{middle_s!r}", f"{middle_s!r}/inf"
    first, second = (play(SETTINGS[word].copy_with(window=window), word, 0) for window in windows)
    assert np.array_equal(np.concatenate([first.jct_s, second.jct_s]), whole.jct_s)
    for name, value in whole.metrics.items():
        if METRICS[name].window == GROWTH:
            assert first.metrics[name] + second.metrics[name] == pytest.approx(value), name
        elif METRICS[name].window == TIME:
            found = 0.2 * first.metrics[name] + 0.8 * second.metrics[name]
            assert found == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_a_window_is_told_and_refused_in_a_sentence(tmp_path, capsys):
    small = ["evaluate", "Delay", "--workload", "poisson:jobs=12,backlog=4", "--policies", "fifo", "--seeds", "0-1"]
    assert run([*small, "--set", "window=600/7200", "--quiet"]) == 0
    assert "window" in (out := capsys.readouterr().out) and "600/7200 s" in out
    assert run([*small, "--set", "window=600/7200", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["setting"]["window"] == "600/7200"
    for words, said in (
        ("window=1e9/2e9", "window 1000000000/2000000000: no job arrives in it; the last arrives at"),
        ("window=5/2", "window 5/2: expected START/END"),
        ("window=later", "window 'later': expected START/END"),
    ):
        assert run([*small, "--set", words, "--quiet"]) != 0
        assert said in capsys.readouterr().err


def test_windows_are_texts():
    assert Window.load("3600/inf") == Window(3600.0, math.inf)
    assert Window.load(Window(0.5, 1e7).describe()) == Window(0.5, 1e7)
    with pytest.raises(InputError, match="expected START/END"):
        Window.load("nan/3")
