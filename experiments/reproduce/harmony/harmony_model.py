"""Paper harmony, Sec. V-E: Eq. 1 against what groups do, under several readings of what the executor is.

Eq. 1 is exact where each resource takes one subtask at a time and an iteration has one COMM. The paper has PULL and
PUSH, and a secondary COMM of which it gives no rate; real subtasks do not always take the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....simulator.groups.group_config import GroupConfig
from ....simulator.workloads import Workload
from ...comparing.intervals import estimate
from ..case import Outcome
from ..findings import Findings, Options
from ..rows import Row, printed
from . import harmony_published as published
from .harmony_executor import Group, execute
from .harmony_runs import HARMONY, Cell, jobs_of, play, said

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


IN_RUNS = ("merged", "split", "secondary COMM, busy .83", "jitter .1")


def drawn_group(seed: int) -> tuple[Group, np.ndarray]:
    """A group of 2 to 6 jobs on 8 machines, and when each comes: COMM 1 to 10 s, COMP as long but for a factor."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(2, MOST_JOBS + 1))
    comm_s = rng.uniform(*COMM_S, jobs)
    comp_machine_s = MACHINES * rng.lognormal(0.0, RATIO_SIGMA, jobs) * comm_s
    none = np.zeros(jobs)
    starts_s = np.sort(rng.uniform(0.0, STARTS * comm_s.sum(), jobs))
    return Group(comp_machine_s, comm_s, none, none, MACHINES), starts_s


def executor_config(**words: object) -> GroupConfig:
    """A configuration in which metrics are known and jobs are there at once."""
    return GroupConfig(**{**AT_ONCE, **words})  # type: ignore[arg-type]


def errors(words: Mapping[str, object], groups: Sequence[tuple[Group, np.ndarray | None]]) -> np.ndarray:
    """How much longer an iteration of the slowest job takes than predicted, %, float64 (groups,)."""
    config = executor_config(**words)
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


def groups_of(outcome: Outcome, workload: Workload) -> list[Group]:
    """The groups that were decided on in a run of these jobs."""
    ps = workload.ps
    assert ps is not None
    sizes, members = (outcome[name].astype(np.int64) for name in ("group_size", "group_job"))
    return [
        Group(ps.comp_machine_s[jobs], ps.comm_s[jobs], ps.input_bytes[jobs], ps.model_bytes[jobs], int(machines))
        for jobs, machines in zip(np.split(members, np.cumsum(sizes)[:-1]), outcome["group_machines"], strict=True)
    ]


def model_error(options: Options) -> Findings:
    """Figure 13b: random groups, and all groups of Harmony's runs."""
    rows = random_groups(options)
    cell = Cell()
    runs = play("harmony-model-error", options, [cell], (HARMONY,))
    jobs = jobs_of(options)
    groups = [
        group
        for seed, outcome in zip(options.seeds(10), runs.of(HARMONY, cell), strict=True)
        for group in groups_of(outcome, cell.drawn(seed, jobs))
    ]
    bare = [(group.without_memory(), None) for group in groups]
    for name in IN_RUNS:
        found = errors(EXECUTORS[name], bare)
        rows += error_rows(f"{len(groups)} groups of harmony's runs, {name}", found)
    found = errors({}, [(group, None) for group in groups])
    rows += error_rows("the same, merged, with collector and disks", found)
    notes = [
        said(options),
        "error: an iteration of the group's slowest job over Eq. 1, less 1; all groups that were decided on, each "
        "executed for 300 iterations as predicted; under jitter Eq. 1 is of the moving averages at the beginning",
        "Eq. 1 knows neither the collector nor disks: with them a group that has much on disk takes longer",
    ]
    return Findings(rows, notes)
