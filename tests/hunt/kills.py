"""Kills `train` and `evaluate` at random moments and goes on: what they end with is that of a run left alone.

`python tests/hunt/kills.py 20` sends each of them so many SIGKILLs and as many SIGINTs (`make hunt-kills`); a
second argument is the seed of the moments, a third the command, `train` or `evaluate`. Compared
are all that `--json` prints, and of a training the bytes of the tensors of its last checkpoint and of its best agent.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGKILL, signal.SIGINT)
MOST_S = 600.0
IN_A_ROW = 3
WORD = "poisson:jobs=12,backlog=6,load=1.2,median_s=600"
VALUES = (
    "validation_seeds=2 num_envs=8 n_steps=16 batch_size=64 n_epochs=2 evaluations=8 variance=reference imitate=null"
)
TENSORS = ("checkpoint/tensors.safetensors", "best/weights.safetensors")


@dataclass(frozen=True)
class Victim:
    """A command: how it begins in a folder, how it goes on there, and what it is to end with."""

    name: str
    begin: tuple[str, ...]
    resume: tuple[str, ...]
    begun: str  # what the folder holds once it can be gone on with
    files: tuple[str, ...] = ()

    def command(self, folder: Path) -> list[str]:
        words = self.resume if (folder / self.begun).exists() else self.begin
        return [sys.executable, "-m", "clustergym", *words, "--json", "--logdir", str(folder)]

    def outcome(self, folder: Path, printed: str) -> tuple[Any, ...]:
        """What must not differ: the numbers, and bytes of files."""
        document = json.loads(printed)
        if isinstance(document, dict):
            document.pop("agent", None)  # the path of the folder
        return document, *((folder / name).read_bytes() for name in self.files)


def evaluate(seeds: int = 40) -> Victim:
    words = "evaluate Delay --topology dally:racks=2,machines=4 --workload poisson:jobs=40,backlog=20"
    line = (*words.split(), "--policies", "fifo random greedy", "--seeds", f"0-{seeds - 1}")
    return Victim("evaluate", line, line, "runs")


def train(timesteps: int = 4096) -> Victim:
    words = "train Delay --topology dally:racks=1,machines=2 --network none --seed 3"
    values = (f"--set={value}" for value in f"{VALUES} timesteps={timesteps}".split())
    return Victim(
        "train", (*words.split(), "--workload", WORD, *values), ("train", "Delay", "--resume"), "config.json", TENSORS
    )


def kill(victim: Victim, what: signal.Signals, count: int, seed: int = 0) -> Counter[str]:
    """Send `count` signals, up to three in a row to one folder's work, which then comes to its end undisturbed.

    Raises:
        AssertionError: it ended with anything else than an undisturbed run, or said nothing on Ctrl-C.
    """
    draw, found = random.Random(f"{victim.name} {what} {seed}"), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        whole, began_s = Path(name) / "whole", time.monotonic()
        right = victim.outcome(whole, _ended(victim, whole))
        whole_s = time.monotonic() - began_s
        sent = chain = 0
        while sent < count:
            folder, chain = Path(name) / str(chain), chain + 1
            for _ in range(min(IN_A_ROW, count - sent)):
                outcome = _struck(victim, folder, what, draw.uniform(0.05, 0.8) * whole_s)
                found[outcome] += 1
                sent += outcome != "had ended"
                if outcome == "had ended":
                    break
            assert victim.outcome(folder, _ended(victim, folder)) == right, f"{folder.name}: another outcome"
            found["outcomes equal"] += 1
    return found


def _ended(victim: Victim, folder: Path) -> str:
    """What it prints undisturbed."""
    done = subprocess.run(victim.command(folder), capture_output=True, text=True, check=False, timeout=MOST_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _struck(victim: Victim, folder: Path, what: signal.Signals, after_s: float) -> str:
    """Start it, send the signal so much later, and see how it ends."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process: subprocess.Popen[str] = subprocess.Popen(victim.command(folder), **pipes)  # type: ignore[call-overload]
    try:
        _, complaint = process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(what)
        sent_s = time.monotonic()
        _, complaint = process.communicate(timeout=MOST_S)
        if process.returncode == -signal.SIGKILL:
            return "killed"
        if process.returncode == 130:
            assert "Traceback" not in complaint, complaint[-3000:]
            slow = time.monotonic() - sent_s > 5.0
            return "interrupted, after more than 5 s" if slow else "interrupted"
        if process.returncode == -signal.SIGINT or "KeyboardInterrupt" in complaint:
            return "interrupted while Python was starting"
    assert process.returncode == 0, (process.returncode, complaint[-3000:])
    return "had ended"


if __name__ == "__main__":
    times = int(sys.argv[1])
    for victim in (evaluate(), train()) if not sys.argv[3:] else (globals()[sys.argv[3]](),):
        for what in SIGNALS:
            found = kill(victim, what, times, int((sys.argv[2:] or ["0"])[0]))
            print(f"{what.name} of {victim.name}: {dict(found)}", flush=True)
