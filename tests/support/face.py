"""All that the digests ask of the package: the names that outsiders call, and the only place that imports them.

Where a name moves, it moves here; nothing else in the digests knows modules of the package.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import clustergym
from clustergym.experiments import cli
from clustergym.policies import make as make_policy

BASELINE = "reference"  # the environments' keyword for whom rewards are compared with
OF_DECISIONS = ("time_s", "job_id", "decision", "gpus", "shift_s")  # not `why`: sentences may be put better
OF_INFO = (
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


def evaluated(words: list[str]) -> tuple[dict[str, float], Table]:
    """What `clustergym evaluate` says of one policy on one seed: the metrics, and the rows of the decisions."""
    told = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.csv"
        with redirect_stdout(told):
            status = cli.run(["evaluate", *words, "--json", "--quiet", "--decisions", str(path)])
        if status != 0:
            raise RuntimeError(f"evaluate {' '.join(words)}: exit status {status}")
        with path.open(newline="") as lines:
            rows = [tuple(row.get(name) or "" for name in OF_DECISIONS) for row in csv.DictReader(lines)]
    (run,) = json.loads(told.getvalue())
    return run["metrics"], rows


def environment(name: str, options: Mapping[str, Any], rows: int = 0) -> Any:
    """An environment by its short name; with `rows` as many of them, stepped at once."""
    named = {BASELINE if key == "baseline" else key: value for key, value in options.items()}
    if rows:
        return clustergym.make_vec(f"clustergym/{name}-v0", rows, **named)
    return gymnasium.make(f"clustergym/{name}-v0", **named)


def masks_of(env: Any) -> np.ndarray:
    """Legal actions, bool; a row an environment, also where there is but one."""
    return np.atleast_2d(clustergym.action_masks(env))


def parts_of(env: Any) -> list[int]:
    """How many values each part of an action has."""
    space = getattr(env, "single_action_space", env.action_space)
    return [int(size) for size in getattr(space, "nvec", [getattr(space, "n", 0)])]


def player(word: str) -> Any:
    """A policy by its word; `player.act(env)` is the action that plays its next decision."""
    return make_policy(word)
