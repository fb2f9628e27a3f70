"""Paper harmony, Sec. V-E: Eq. 1 against what groups do, under several readings of what the executor is.

Eq. 1 is exact where each resource takes one subtask at a time and an iteration has one COMM. The paper has PULL and
PUSH, and a secondary COMM of which it gives no rate; real subtasks do not always take the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...simulator.groups.group_config import GroupConfig
from ..estimates import estimate
from . import harmony_published as published
from .harmony_executor import Group, execute
from .registry import Options
from .rows import Row, printed

GROUPS, QUICK_GROUPS = 300, 30
MACHINES = 8
RATIO_SIGMA = 0.6
MOST_JOBS = 6
COMM_S = (1.0, 10.0)
STARTS = 3.0  # random starts, over so many of the group's summed COMM
EXACT = 1e-9  # relative
AT_ONCE = {"profile_iterations": 0, "move_s": 0.0}
EXECUTORS: Mapping[str, Mapping[str, object]] = {
    "merged": {},
    "split": {"comm": "split"},
    "secondary COMM, busy .9": {"busy": 0.9},
    "secondary COMM, busy .83": {"busy": 0.83},
    "split, secondary, busy .83": {"comm": "split", "busy": 0.83},
    "jitter .05": {"jitter": 0.05},
    "jitter .1": {"jitter": 0.1},
    "jitter .2": {"jitter": 0.2},
    "jitter .3": {"jitter": 0.3},
}


def drawn_group(seed: int) -> tuple[Group, np.ndarray]:
    """A group of 2 to 6 jobs on 8 machines, and when each comes: COMM 1 to 10 s, COMP as long but for a factor."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(2, MOST_JOBS + 1))
    comm_s = rng.uniform(*COMM_S, jobs)
    comp_machine_s = MACHINES * rng.lognormal(0.0, RATIO_SIGMA, jobs) * comm_s
    none = np.zeros(jobs)
    starts_s = np.sort(rng.uniform(0.0, STARTS * comm_s.sum(), jobs))
    return Group(comp_machine_s, comm_s, none, none, MACHINES), starts_s


def executor(**words: object) -> GroupConfig:
    """A configuration in which metrics are known and jobs are there at once."""
    return GroupConfig(**{**AT_ONCE, **words})  # type: ignore[arg-type]


def errors(words: Mapping[str, object], groups: Sequence[tuple[Group, np.ndarray | None]]) -> np.ndarray:
    """How much longer an iteration of the slowest job takes than predicted, %, float64 (groups,)."""
    config = executor(**words)
    return 100.0 * np.array(
        [execute(group, config, starts_s, seed).error for seed, (group, starts_s) in enumerate(groups)]
    )


def error_rows(what: str, found: np.ndarray) -> list[Row]:
    """Mean, extremes, and how often the published bound is passed."""
    beyond = 100.0 * (np.abs(found) > published.MODEL_ERROR)
    return [
        printed(f"{what}: mean error", estimate(found.tolist(), signed=True), "%"),
        printed(f"{what}: largest, either way", float(np.abs(found).max()), "%"),
        printed(f"{what}: groups beyond 5 %", estimate(beyond.tolist()), "%"),
    ]


def random_groups(options: Options) -> list[Row]:
    """Groups drawn at random, under every executor."""
    first = 10_000 * options.seed
    count = QUICK_GROUPS if options.quick else GROUPS
    groups = [drawn_group(seed) for seed in range(first, first + count)]
    rows: list[Row] = []
    for name, words in EXECUTORS.items():
        found = errors(words, groups)
        what = f"{count} random groups, {name}"
        if name == "merged":
            largest = float(np.abs(found).max())
            rows.append(Row(f"{what}: largest error", "below 5 %", largest, (0.0, 100.0 * EXACT), unit="%"))
        else:
            rows += error_rows(what, found)
    return rows
