"""All that the digests ask of the package: the names that outsiders call, and the only place that calls them.

These are the ids of Gymnasium, masks, policies by their words and the command line. Nothing here may lean on modules
of the package: older and newer checkouts are asked by the same lines.
"""

from __future__ import annotations

import csv
import io
import json
import runpy
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import clustergym

OF_DECISIONS = ("time_s", "job_id", "decision", "gpus", "shift_s")  # not `why`: sentences may be put better
OF_INFO = (  # beside the mask and the metrics, which are digested by themselves
    "elapsed_s",
    "invalid_action",
    "forced_action",
    "adjusted_action",
    "active_jobs",
    "waiting_jobs",
    "running_jobs",
    "finished_jobs",
    "used_gpus",
    "max_decisions",
)

Table = list[tuple[str, ...]]


def command(*words: str) -> Any:
    """What `python -m clustergym WORDS --json` prints, by JSON.

    Raises:
        RuntimeError: with what it says in place of that.
    """
    told, said, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["clustergym", *words, "--json", "--quiet"]
    # Where Ctrl-C is not Python's, the command leaves it alone: each would begin a thread that waits for it.
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    status: Any = 0
    try:
        with redirect_stdout(told), redirect_stderr(said):
            runpy.run_module("clustergym", run_name="__main__")
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = before
        signal.signal(signal.SIGINT, on_interrupt)
    if status:
        raise RuntimeError(f"exit status {status}: {said.getvalue().strip()}")
    return json.loads(told.getvalue())


@cache
def listed() -> dict[str, list[str]]:
    """Short names of the environments -> words of all policies and shipped agents that play there."""
    found: dict[str, list[str]] = {}
    for row in command("policies"):
        for env_id in row["environments"]:
            found.setdefault(env_id.removeprefix("clustergym/").removesuffix("-v0"), []).append(row["name"])
    return found


def evaluated(words: Sequence[str]) -> tuple[dict[str, float], Table]:
    """What `clustergym evaluate` says of one policy on one seed: the metrics, and the rows of the decisions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.csv"
        (run,) = command("evaluate", *words, "--decisions", str(path))
        with path.open(newline="") as lines:
            rows = [tuple(row.get(name) or "" for name in OF_DECISIONS) for row in csv.DictReader(lines)]
    return run["metrics"], rows


def environment(name: str, options: Mapping[str, Any], rows: int = 0) -> Any:
    """An environment by its short name; with `rows` as many of them, stepped at once."""
    if rows:
        return clustergym.make_vec(f"clustergym/{name}-v0", rows, **options)
    return gymnasium.make(f"clustergym/{name}-v0", **options)


def masks_of(env: Any) -> np.ndarray:
    """Legal actions, bool; a row an environment, also where there is but one."""
    return np.atleast_2d(clustergym.action_masks(env))


def parts_of(env: Any) -> list[int]:
    """How many values each part of an action has."""
    space = getattr(env, "single_action_space", env.action_space)
    return [int(size) for size in getattr(space, "nvec", [getattr(space, "n", 0)])]


def player(word: str) -> Any:
    """A policy by its word; `player.act(env)` is the action that plays its next decision."""
    return clustergym.policies.make(word)
