"""One group of paper harmony in the executor: what Eq. 1 says of its iterations, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....simulator.base.decisions import AssignGroup
from ....simulator.groups.group_config import GroupConfig
from ....simulator.groups.group_simulator import GroupSimulator
from ....simulator.jobs.ps_jobs import PsJobs
from ....simulator.workloads import Workload

WARM, MEASURED = 100.0, 300.0  # iterations, as predicted: until it is looked at, and for how long
ENDLESS = 1e9  # iterations


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
    began = _state(group, config, arrival_s, seed, first_s)
    ended = _state(group, config, arrival_s, seed, first_s + MEASURED * group.predicted_s)
    return Measured(began.predicted_s, (ended.at_s - began.at_s) / (began.left - ended.left))


@dataclass(frozen=True)
class _State:
    predicted_s: float
    at_s: np.ndarray  # when each job's last iteration ended
    left: np.ndarray  # its iterations then


def _state(group: Group, config: GroupConfig, arrival_s: np.ndarray, seed: int, horizon_s: float) -> _State:
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
    return _State(simulator.view.cycle_s(opened), s.part_end_s[:n, last_part].copy(), s.iterations_left[:n].copy())


def _workload(group: Group, arrival_s: np.ndarray) -> Workload:
    n = len(arrival_s)
    ps = PsJobs.of(group.comp_machine_s, group.comm_s, group.input_bytes, group.model_bytes)
    iteration_s = ps.iteration_s(group.machines)
    return Workload.from_arrays(
        "one group",
        arrival_s,
        np.full(n, group.machines),
        ENDLESS * iteration_s,
        iterations=np.full(n, ENDLESS),
        iteration_s=iteration_s,
    ).with_ps(ps)
