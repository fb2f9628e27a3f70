"""The grouping problem: cycle time and utilisation of groups of jobs, Eqs. (1) to (4) of the paper.

A job's COMP takes `comp` machine-seconds an iteration, `comp / m` seconds on m machines (Eq. 2); its COMM takes `comm`
seconds whatever the machines. Every job of a group has one iteration a cycle (Eq. 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import GB, GroupConfig
from ...simulator.groups.group_memory import EXPANSION
from ...simulator.groups.group_view import GroupView
from ...simulator.jobs.workload import Workload

BETA = 0.5  # worth of the network's utilisation beside the CPU's; the paper says only that the CPU's counts more
REFERENCE_MACHINES = 16  # degree of parallelism of the paper's job characteristics (Figure 9)


@dataclass(frozen=True)
class Plan:
    """Groups of jobs and their machines."""

    group_of: np.ndarray  # int64 (jobs,), each job's group, -1 = does not run
    machines: np.ndarray  # int64 (groups,), >= 1; no group is empty
    continues: np.ndarray | None = None  # int64 (groups,), the group of the search's start that it continues, -1 = new

    @classmethod
    def empty(cls, jobs: int) -> Plan:
        """No job runs."""
        return cls(np.full(jobs, -1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, jobs: int, groups: list[tuple[tuple[int, ...], int]]) -> Plan:
        """The plan of (members, machines) of each group."""
        plan = cls(np.full(jobs, -1, dtype=np.int64), np.array([machines for _, machines in groups], dtype=np.int64))
        for group, (members, _) in enumerate(groups):
            plan.group_of[list(members)] = group
        return plan

    @property
    def running(self) -> np.ndarray:
        """Jobs that run, int64, ascending."""
        return np.flatnonzero(self.group_of >= 0)

    def members(self, group: int) -> list[int]:
        """Jobs of one group, ascending."""
        return np.flatnonzero(self.group_of == group).tolist()

    def groups(self) -> list[tuple[tuple[int, ...], int]]:
        """(members, machines) of each group."""
        return [(tuple(self.members(group)), int(machines)) for group, machines in enumerate(self.machines)]


@dataclass(frozen=True)
class Problem:
    """Jobs, and machines to share among groups of them. Raises InputError for wrong lengths or values."""

    comp: np.ndarray  # float64 (jobs,), machine-seconds of COMP an iteration, > 0; in the order of Algorithm 1
    comm: np.ndarray  # float64 (jobs,), seconds of COMM an iteration, > 0
    machines: int  # to share, >= 1
    input_bytes: np.ndarray | None = None  # float64 (jobs,), raw bytes of training data; None = 0
    model_bytes: np.ndarray | None = None  # float64 (jobs,), raw bytes of the model; None = 0
    ram_bytes: float = np.inf  # of one machine; `expansion` times the models of a group must fit, inputs may be on disk
    expansion: float = EXPANSION  # bytes in memory for each raw byte, > 0
    beta: float = BETA  # worth of the network's utilisation beside the CPU's, >= 0
    comfort_bytes: float = np.inf  # memory of one machine that is free of cost; a group's bytes beyond are on disk
    spill_s: float = 0.0  # disk machine-seconds of each such byte a cycle, a bound on the cycle; Eq. (1) ignores it
    _models: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("comp", "comm", "input_bytes", "model_bytes"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, _checked(name, values, len(self.comp)))
        if self.machines < 1 or self.machines != int(self.machines):
            raise InputError(
                f"machines={self.machines}: a grouping problem needs a whole number of machines, at least 1"
            )
        for name, value, least in (("beta", self.beta, True), ("expansion", self.expansion, self.expansion > 0.0)):
            if not (value >= 0.0 and least and np.isfinite(value)):
                raise InputError(f"{name}={value}: expected a finite number above 0 (beta: or 0)")
        if not (self.comfort_bytes >= 0.0 and 0.0 <= self.spill_s < np.inf):
            raise InputError(f"comfort_bytes={self.comfort_bytes}, spill_s={self.spill_s}: expected numbers >= 0")
        if not self.ram_bytes > 0.0:
            raise InputError(f"ram_bytes={self.ram_bytes}: expected more than 0 bytes a machine")
        models = np.zeros(self.jobs) if self.model_bytes is None else self.model_bytes
        object.__setattr__(self, "_models", models)

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.comp)

    @property
    def bytes_in_memory(self) -> np.ndarray:
        """Bytes in memory of each job's input and model, float64 (jobs,), if nothing is spilled."""
        return (self._models + (0.0 if self.input_bytes is None else self.input_bytes)) * self.expansion

    @property
    def models_in_memory(self) -> np.ndarray:
        """Bytes in memory of each job's model, which cannot be spilled, float64 (jobs,)."""
        return self._models * self.expansion

    def solo_s(self, machines: float = REFERENCE_MACHINES) -> np.ndarray:
        """T_itr of each job alone on `machines` machines, seconds, float64 (jobs,). Paper: harmony, Eq. 1 and 2."""
        return self.comp / machines + self.comm

    def cycles(self, plan: Plan) -> np.ndarray:
        """Seconds of a cycle of each group, float64 (groups,). Paper: harmony, Eq. 1 and 2."""
        jobs, group_of, groups = plan.running, plan.group_of[plan.running], len(plan.machines)
        comp_s = self.comp[jobs] / plan.machines[group_of]
        longest = np.zeros(groups)
        np.maximum.at(longest, group_of, comp_s + self.comm[jobs])
        sums = [np.bincount(group_of, weights=part, minlength=groups) for part in (comp_s, self.comm[jobs])]
        return np.maximum(longest, np.maximum(*sums))

    def rounds_s(self, plan: Plan) -> np.ndarray:
        """Seconds of a cycle, with disk time, of each group, float64 (groups,)."""
        jobs, group_of = plan.running, plan.group_of[plan.running]
        stored = np.bincount(group_of, weights=self.bytes_in_memory[jobs], minlength=len(plan.machines))
        beyond = np.maximum(stored / plan.machines - self.comfort_bytes, 0.0)
        return np.maximum(self.cycles(plan), beyond * self.spill_s)

    def speeds(self, plan: Plan) -> np.ndarray:
        """Iterations a second of each job, float64 (jobs,); 0 where it does not run."""
        speeds = np.zeros(self.jobs)
        speeds[plan.running] = 1.0 / self.rounds_s(plan)[plan.group_of[plan.running]]
        return speeds

    def rates(self, plan: Plan) -> np.ndarray:
        """Speed of each job over its speed alone on 16 machines, float64 (jobs,)."""
        return self.solo_s() * self.speeds(plan)

    def utilisation(self, plan: Plan) -> tuple[float, float]:
        """(CPU, network) of the whole cluster, each within 0 to 1. Paper: harmony, Eq. 3 and 4."""
        cycles, jobs, group_of = self.cycles(plan), plan.running, plan.group_of[plan.running]
        busy = np.bincount(group_of, weights=self.comp[jobs], minlength=len(cycles))
        sent = np.bincount(group_of, weights=self.comm[jobs], minlength=len(cycles)) * plan.machines
        return float((busy / cycles).sum() / self.machines), float((sent / cycles).sum() / self.machines)

    def score(self, plan: Plan) -> float:
        """CPU utilisation plus beta times the network's."""
        cpu, network = self.utilisation(plan)
        return cpu + self.beta * network

    def is_legal(self, plan: Plan) -> bool:
        """Whether there are enough machines, and each group's models fit into its memory."""
        held = np.bincount(plan.group_of[plan.running], weights=self.models_in_memory[plan.running])
        fits = (held <= self.ram_bytes * plan.machines).all() if len(plan.machines) else True
        return bool(fits) and int(plan.machines.sum()) <= self.machines


def _checked(name: str, values: np.ndarray, jobs: int) -> np.ndarray:
    given = np.ascontiguousarray(values, dtype=np.float64)
    if given.shape != (jobs,):
        raise InputError(f"{name} has shape {given.shape}: expected one value for each of {jobs} jobs")
    is_size = name.endswith("bytes")
    wrong = ~(np.isfinite(given) & ((given >= 0.0) if is_size else (given > 0.0)))
    if wrong.any():
        job = int(wrong.argmax())
        raise InputError(f"{name} of job {job} is {given[job]}: expected {'at least' if is_size else 'more than'} 0")
    return given


def machines_for(config: GroupConfig, raw_bytes: float, occupancy: float = 1.0) -> int:
    """The fewest machines, >= 1, whose memory holds `raw_bytes` filled up to the share `occupancy`, > 0."""
    used = config.expansion * raw_bytes
    machines = max(math.ceil(used / (config.ram_gb * GB * occupancy) * (1.0 - 1e-9)), 1)
    while used / (machines * config.ram_gb * GB) > occupancy:
        machines += 1
    return machines


def never_runs(workload: Workload, config: GroupConfig, machines: int) -> list[int]:
    """Jobs that run out of memory alone on `machines` machines."""
    assert workload.ps is not None
    used = config.expansion * (workload.ps.input_bytes + workload.ps.model_bytes)
    found: list[int] = np.flatnonzero(used / (machines * config.ram_gb * GB) > 1.0).tolist()
    return found


def expect_room(policy: str, view: GroupView) -> None:
    """Raise InputError if a job does not fit into the memory of all machines."""
    machines = view.topology.num_machines
    for job in never_runs(view.workload, view.config, machines):
        needed = machines_for(view.config, view.input_bytes(job) + view.model_bytes(job))
        raise InputError(
            f"policy {policy}: job {view.workload.job_id[job]} needs the memory of {needed} machines, and there are "
            f"{machines}; expected more machines or more ram_gb"
        )
