"""Paper harmony, Sec. V-E: Eq. 1 against what groups do, under several readings of what the executor is.

Eq. 1 is exact where each resource takes one subtask at a time and an iteration has one COMM. The paper has PULL and
PUSH, and a secondary COMM of which it gives no rate; real subtasks do not always take the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....simulator.base.decisions import AssignGroup
from ....simulator.groups.group_config import GroupConfig
from ....simulator.groups.group_simulator import GroupSimulator
from ....simulator.jobs.ps_jobs import PsJobs
from ....simulator.workloads import Workload
from ...comparing.intervals import estimate
from ..case import Outcome
from ..engine import Play, RowContext
from ..rows import Row, printed
from ..schema import Line

WARM, MEASURED = 100.0, 300.0  # iterations, as predicted: until it is looked at, and for how long
ENDLESS = 1e9  # iterations
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
MODEL_ERROR = 5.0  # %, at all times


@dataclass(frozen=True)
class Group:
    """Jobs of a group, float64 (n,) each, and its machines.

    Attributes:
        comp_machine_s, comm_s, input_bytes, model_bytes: as of `PsJobs`.
        machines: at least 1.
    """

    comp_machine_s: np.ndarray
    comm_s: np.ndarray
    input_bytes: np.ndarray
    model_bytes: np.ndarray
    machines: int

    @property
    def predicted_s(self) -> float:
        """Eq. 1, from the true times, seconds."""
        comp_s = self.comp_machine_s / self.machines
        return float(max(comp_s.sum(), self.comm_s.sum(), (comp_s + self.comm_s).max()))

    def without_memory(self) -> Group:
        """The same with nothing to hold in memory."""
        none = np.zeros(len(self.comm_s))
        return Group(self.comp_machine_s, self.comm_s, none, none, self.machines)


@dataclass(frozen=True)
class Measured:
    """What a group did.

    Attributes:
        predicted_s: Eq. 1 of the times as they had been measured when it was looked at first, seconds.
        period_s: float64 (n,), mean time of an iteration of each job from then on, seconds.
    """

    predicted_s: float
    period_s: np.ndarray

    @property
    def error(self) -> float:
        """How much longer an iteration of the slowest job takes than predicted, relative."""
        return float(self.period_s.max()) / self.predicted_s - 1.0


def execute(group: Group, config: GroupConfig, starts_s: np.ndarray | None = None, seed: int = 0) -> Measured:
    """Execute a group for some hundred iterations.

    Args:
        group: what runs.
        config: how; profiling and moves take no time.
        starts_s: float64 (n,), when each job comes, ascending; None: all at once, in their order.
        seed: of the durations of subtasks, with `jitter`.
    """
    arrival_s = np.zeros(len(group.comm_s)) if starts_s is None else np.asarray(starts_s, np.float64)
    first_s = float(arrival_s[-1] - arrival_s[0]) + WARM * group.predicted_s
    predicted_s, began_s, before = _state(group, config, arrival_s, seed, first_s)
    _, ended_s, after = _state(group, config, arrival_s, seed, first_s + MEASURED * group.predicted_s)
    return Measured(predicted_s, (ended_s - began_s) / (before - after))


def _state(
    group: Group, config: GroupConfig, arrival_s: np.ndarray, seed: int, horizon_s: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Eq. 1, when each job's last iteration ended, and its iterations left then."""
    simulator = GroupSimulator(f"harmony:machines={group.machines}", config, horizon_s=horizon_s)
    simulator.reset(_workload(group, arrival_s), seed)
    opened = -1
    while not simulator.ended:
        for job in simulator.view.queue.tolist():
            if opened < 0:
                simulator.apply(AssignGroup(job, machines=group.machines))
                opened = simulator.view.group_of(job)
            else:
                simulator.apply(AssignGroup(job, opened))
        simulator.advance()
    s, n = simulator.state, len(arrival_s)
    last_part = 1 + int(s.comm)  # of an iteration: COMM, or PUSH
    return simulator.view.cycle_s(opened), s.part_end_s[:n, last_part].copy(), s.iterations_left[:n].copy()


def _workload(group: Group, arrival_s: np.ndarray) -> Workload:
    n = len(arrival_s)
    ps = PsJobs.of(group.comp_machine_s, group.comm_s, group.input_bytes, group.model_bytes)
    iteration_s = ps.iteration_s(group.machines)
    endless = {"iterations": np.full(n, ENDLESS), "iteration_s": iteration_s}
    gangs = np.full(n, group.machines)
    return Workload.from_arrays("one group", arrival_s, gangs, ENDLESS * iteration_s, **endless).with_ps(ps)


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


def error_rows(what: str, found: np.ndarray) -> Iterator[Row]:
    """Mean, extremes, and how often the published bound is passed."""
    beyond = 100.0 * (np.abs(found) > MODEL_ERROR)
    yield printed(f"{what}: mean error", estimate(found.tolist(), signed=True), "%")
    yield printed(f"{what}: largest, either way", float(np.abs(found).max()), "%")
    yield printed(f"{what}: groups beyond 5 %", estimate(beyond.tolist(), most=100.0), "%")


def groups_of(outcome: Outcome, workload: Workload) -> list[Group]:
    """The groups that were decided on in a run of these jobs."""
    ps = workload.ps
    assert ps is not None
    sizes, members = (outcome[name].astype(np.int64) for name in ("group_size", "group_job"))
    return [
        Group(ps.comp_machine_s[jobs], ps.comm_s[jobs], ps.input_bytes[jobs], ps.model_bytes[jobs], int(machines))
        for jobs, machines in zip(np.split(members, np.cumsum(sizes)[:-1]), outcome["group_machines"], strict=True)
    ]


def model_error(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Figure 13b: groups drawn at random under every executor, and all groups of Harmony's runs."""
    first, count = 10_000 * play.options.seed, QUICK_GROUPS if play.options.quick else GROUPS
    drawn = [drawn_group(seed) for seed in range(first, first + count)]
    for name, words in EXECUTORS.items():
        found, what = errors(words, drawn), f"{count} random groups, {name}"
        if name == "merged":
            largest = float(np.abs(found).max())
            yield Row(f"{what}: largest error", "below 5 %", largest, (0.0, 100.0 * EXACT), unit="%")
        else:
            yield from error_rows(what, found)
    (at,) = play.group(play.entry.at)
    runs = zip(play.cases("harmony", at), play.runs.of("harmony", at), strict=True)
    groups = [group for case, outcome in runs for group in groups_of(outcome, case.workload)]
    bare = [(group.without_memory(), None) for group in groups]
    for name in IN_RUNS:
        yield from error_rows(f"{len(groups)} groups of harmony's runs, {name}", errors(EXECUTORS[name], bare))
    yield from error_rows("the same, merged, with collector and disks", errors({}, [(one, None) for one in groups]))
