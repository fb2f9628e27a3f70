"""Ctrl-C is answered within a second: what there is is kept, and how to go on is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustergym.experiments import cli
from clustergym.experiments.console import interrupt

PATIENCE_S = 10.0  # of these tests; machines may be loaded


def test_only_the_outermost_says_how_to_go_on(capsys):
    kept = []
    with (
        pytest.raises(KeyboardInterrupt),
        interrupt.leaving("go on so", lambda: kept.append("outer")),
        interrupt.leaving("never said", lambda: kept.append("inner")),
    ):
        raise KeyboardInterrupt
    assert kept == ["outer"]
    assert capsys.readouterr().err == "clustergym: go on so\n"


def test_what_cannot_be_kept_is_said(capsys):
    def full() -> None:
        raise OSError(28, "No space left on device", "/full")

    with pytest.raises(KeyboardInterrupt), interrupt.leaving("go on so", full):
        raise KeyboardInterrupt
    assert "not kept" in (said := capsys.readouterr().err) and "/full" in said


def test_a_command_that_is_interrupted_has_status_130_and_a_word(monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.listing, "print_json", interrupted)
    interrupt._answered.clear()
    assert cli.run(["envs", "--json"]) == 130
    assert "clustergym: interrupted" in capsys.readouterr().err


SWALLOWS = """
import hashlib, sys, time
from clustergym.experiments.console import interrupt
interrupt.watch()
with interrupt.leaving("go on so", lambda: open(sys.argv[1], "w").write("kept")):
    print("ready", flush=True)
    while True:
        try:
            {busy}
        except KeyboardInterrupt:
            pass
"""
BUSY = {"swallowed": "time.sleep(0.02)", "one long call": "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 20_000_000)"}


@pytest.mark.parametrize("busy", BUSY)
def test_a_process_that_does_not_listen_is_ended_by_another_thread(busy: str, tmp_path):
    """A library that swallows the exception; code of another language that lets other threads run, as compilers do."""
    line = [sys.executable, "-c", SWALLOWS.format(busy=BUSY[busy]), str(tmp_path / "kept")]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"clustergym: go on so\n")
    assert time.monotonic() - began < PATIENCE_S
    assert (tmp_path / "kept").read_text() == "kept"


WORKS_ELSEWHERE = """
import os, sys, time
from clustergym.experiments.console import interrupt
from clustergym.experiments.playing.executors import Processes

def work(item):
    time.sleep(0.005)
    return os.getpid()

interrupt.watch()
try:
    with interrupt.leaving("go on so"):
        for process in Processes(2).each(work, range(100_000)):
            print(process, flush=True)
            time.sleep(0.02)  # so results wait for us
except KeyboardInterrupt:
    sys.exit(130)
"""


def working_elsewhere() -> tuple[subprocess.Popen[str], set[int]]:
    """A process in a group of its own that has work done in two others, and these."""
    line = [sys.executable, "-c", WORKS_ELSEWHERE]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process: subprocess.Popen[str] = subprocess.Popen(line, start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert process.stdout is not None
    others: set[int] = set()
    while len(others) < 2:
        others.add(int(process.stdout.readline()))
    return process, others


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def expect_ended(processes: set[int]) -> None:
    began = time.monotonic()
    while any(map(lives, processes)):
        assert time.monotonic() - began < PATIENCE_S, "they live on"
        time.sleep(0.05)


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@on_linux
@pytest.mark.parametrize("is_of_all", [True, False], ids=["of a terminal", "of one process"])
def test_ctrl_c_ends_the_processes_that_work_too_and_one_sentence_is_said(is_of_all: bool):
    """A terminal sends the signal to all processes that the command has begun."""
    process, others = working_elsewhere()
    (os.killpg if is_of_all else os.kill)(process.pid, signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "clustergym: go on so\n")
    assert time.monotonic() - began < PATIENCE_S
    expect_ended(others)


@on_linux
def test_processes_do_not_outlive_the_one_that_began_them():
    """SIGKILL leaves it no time to end them."""
    process, others = working_elsewhere()
    process.kill()
    process.communicate(timeout=60)
    expect_ended(others)


@pytest.mark.slow
def test_an_evaluation_that_is_interrupted_goes_on_where_it_stopped(tmp_path):
    words = ["evaluate", "Delay", "--policies", "greedy dally", "--seeds", "0-39", "--json", "-q", "--logdir"]

    def started(folder: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        line = [sys.executable, "-m", "clustergym", *words, str(folder)]
        return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    whole = started(tmp_path / "whole").communicate(timeout=600)[0]
    process = started(tmp_path / "parts")
    runs = tmp_path / "parts" / "runs"
    while not runs.is_dir() or len(list(runs.glob("*.parquet"))) < 7:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - began < PATIENCE_S
    assert b"Go on with: clustergym evaluate Delay" in err or b"Go on with: " in err
    assert 7 <= len(list(runs.glob("*.parquet"))) < 80
    again = started(tmp_path / "parts").communicate(timeout=600)[0]
    assert json.loads(again) == json.loads(whole)
