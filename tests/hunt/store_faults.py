"""Keeps runs while something goes wrong: full disks, killed writers, two at once. Nothing false may be read.

`python tests/hunt/store_faults.py 30` does each so often; `make hunt` runs it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

from clustergym.experiments.cli import run
from clustergym.experiments.storing import store

ARGUMENTS = ("evaluate", "Delay", "--policies", "fifo random", "--topology", "dally:racks=2,machines=4", "--json")
ARGUMENTS += ("--workload", "poisson:jobs=40,backlog=20", "--quiet")
SEEDS = 12


def full_disks(count: int, seed: int = 0) -> Counter[str]:
    """No file may grow beyond a random size: one sentence that names a file, and whole runs or none; then all is there.

    A limit of the size of files stands for a full disk: both end a write in the middle.
    """
    draw, found = random.Random(seed), Counter[str]()
    right = _numbers(0)
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            most = int(10 ** draw.uniform(1.0, 5.3))
            ended = _evaluate(Path(name), limit=most)
            said = ended.stderr.strip()
            assert "Traceback" not in said and ended.returncode in (0, 1), said
            if ended.returncode:
                assert "\n" not in said and "File too large" in said and name in said, said
            found["refused" if ended.returncode else "enough room"] += 1
            _expect_whole(Path(name))
            assert _numbers(Path(name)) == right
    return found


def killed_writers(count: int, seed: int = 0) -> Counter[str]:
    """SIGKILL at a random time, three in a row; then what is printed is as if nothing had been."""
    draw, found = random.Random(seed), Counter[str]()
    right = _numbers(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began_s = time.monotonic()
        _evaluate(folder / "whole")
        whole_s = time.monotonic() - began_s
        for number in range(count):
            at = folder / str(number // 3)  # three in a row go on from each other
            process = subprocess.Popen(_command(at), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.3, 1.0) * whole_s)
            process.send_signal(signal.SIGKILL)
            found["killed" if process.wait() == -signal.SIGKILL else "had ended"] += 1
            _expect_whole(at)
            if number % 3 == 2 or number == count - 1:
                assert _numbers(at) == right
    return found


def two_writers(count: int, seed: int = 0) -> Counter[str]:
    """Two commands fill one folder at once: both print what one alone prints, and so does what they leave."""
    del seed
    found, right = Counter[str](), _numbers(0)
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            both = [subprocess.Popen(_command(Path(name)), stdout=subprocess.PIPE, text=True) for _ in range(2)]
            printed = [process.communicate()[0] for process in both]
            assert [process.returncode for process in both] == [0, 0]
            assert [json.loads(text) for text in printed] == [right, right]
            _expect_whole(Path(name))
            assert _numbers(Path(name)) == right
            found["pairs"] += 1
    return found


def _command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "clustergym", *ARGUMENTS, "--seeds", f"0-{SEEDS - 1}", "--logdir", str(folder)]


def _evaluate(folder: Path, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    def small() -> None:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    # the kernel cache is warm already; a cache that cannot grow is another matter
    return subprocess.run(_command(folder), preexec_fn=small, capture_output=True, text=True, check=False)


def _numbers(folder: Path | int) -> object:
    """What the command prints, with what is in `folder`; 0: with nothing."""
    out = io.StringIO()
    logdir = () if isinstance(folder, int) else ("--logdir", str(folder))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run([*ARGUMENTS, "--seeds", f"0-{SEEDS - 1}", *logdir]) == 0
    return json.loads(out.getvalue())


def _expect_whole(folder: Path) -> None:
    """Every file that has a run's name is a whole run."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if (folder / store.SUMMARY).exists():
            store.read(folder)
    left = [name for name in os.listdir(folder) if name.startswith(".")] if folder.exists() else []
    assert len(left) <= 1, left


if __name__ == "__main__":
    times = int(sys.argv[1])
    for what in (full_disks, killed_writers, two_writers):
        print(f"{what.__name__}: {dict(what(times))}: every run whole, all numbers right", flush=True)
