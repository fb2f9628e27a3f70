"""What a policy may see of job groups: the cluster now, read-only, its arrays too; jobs and groups are indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..base.codes import DONE, PENDING, RUNNING, WAITING
from ..engine.base_simulator import BaseSimulator
from ..jobs.run_view import RunView
from ..record.record_view import sealed
from .group_calls import available_machines
from .group_codes import LOADING, OUT

if TYPE_CHECKING:
    from ..rules.semantics import Semantics
    from .group_config import GroupConfig, GroupTerms


class GroupView(RunView):
    """Groups, jobs and machines at a decision point, as the decisions made so far at this instant leave them."""

    _simulator: BaseSimulator

    @property
    def config(self) -> GroupConfig:
        """Machines, memory and moves."""
        found: GroupConfig = self._simulator.config.groups
        return found

    @property
    def semantics(self) -> Semantics:
        """That of events."""
        return self._simulator.semantics

    @property
    def rule(self) -> GroupTerms:
        """How groups execute, and whether data is spilled."""
        found: GroupTerms = self._simulator.rule
        return found

    @property
    def machines(self) -> int:
        """All machines that are up."""
        return int(self._s["n_machines"] - self._s["down_machines"])

    @property
    def free_machines(self) -> int:
        """Machines that a group can be given: free ones, and those of groups that no job is to be in."""
        return int(available_machines(self._simulator.records, 0))

    @property
    def queue(self) -> np.ndarray:
        """Waiting and paused jobs in order of arrival, int64."""
        return sealed(np.flatnonzero(self._s["status"][: self._s["next_arrival"]] == WAITING))

    @property
    def running(self) -> np.ndarray:
        """Jobs that are to be in a group, in order of arrival, int64."""
        return sealed(np.flatnonzero(self._s["status"][: self._s["next_arrival"]] == RUNNING))

    @property
    def groups(self) -> np.ndarray:
        """Groups that some job is to be in, ascending, int64."""
        s = self._s
        return sealed(np.flatnonzero((s["is_group"] == 1) & (s["n_goal"] > 0)))

    @property
    def group_of_jobs(self) -> np.ndarray:
        """The group that each job is to be in, int64 (jobs,); -1: none."""
        return sealed(self._s["goal"][: self._s["n_jobs"]].copy())

    def members(self, group: int) -> list[int]:
        """The jobs that are to be in a group, ascending."""
        return np.flatnonzero(self._s["goal"][: self._s["next_arrival"]] == group).tolist()

    def machines_of(self, group: int) -> int:
        """Machines of a group."""
        return int(self._s["group_machines"][group])

    def group_of(self, job: int) -> int:
        """The group that a job is to be in; -1: none."""
        return int(self._s["goal"][job])

    def stage(self, job: int) -> str:
        """`pending`, `waiting` (never ran), `profiling`, `profiled` or `paused` (it waits), `running`, `done`."""
        s = self._s
        status = int(s["status"][job])
        if status in (PENDING, DONE):
            return "pending" if status == PENDING else "done"
        if s["profile_left"][job] > 0:
            return "profiling" if status == RUNNING else "waiting"
        if status == RUNNING:
            return "running"
        done = s["iterations"][job] - s["iterations_left"][job]
        return "paused" if done > s["profile_iterations"] else "profiled"

    def is_loading(self, job: int) -> bool:
        """Whether a job loads its input and model, and so does not move."""
        return bool(self._s["place"][job] == LOADING)

    def is_executed(self, job: int) -> bool:
        """Whether subtasks of a job are executed or queue."""
        return bool(self._s["place"][job] not in (OUT, LOADING))

    def is_profiled(self, job: int) -> bool:
        """Whether the times of a job's subtasks are known."""
        return bool(self._s["profile_left"][job] <= 0)

    def comp_machine_s(self, job: int) -> float:
        """COMP of an iteration as measured, machine-seconds; nan before it is profiled."""
        return float(self._s["seen_comp"][job]) if self.is_profiled(job) else float("nan")

    def comm_s(self, job: int) -> float:
        """COMM of an iteration as measured, seconds; nan before it is profiled."""
        return float(self._s["seen_comm"][job]) if self.is_profiled(job) else float("nan")

    def input_bytes(self, job: int) -> float:
        """Bytes of a job's input over all machines."""
        return float(self._s["input_bytes"][job])

    def model_bytes(self, job: int) -> float:
        """Bytes of a job's model over all machines."""
        return float(self._s["model_bytes"][job])

    def spill(self, job: int) -> float:
        """Share of its input that a job has on disk."""
        return float(self._s["alpha"][job])

    def gc(self, group: int) -> float:
        """How many times longer COMP takes in a group, for collecting garbage."""
        return float(self._s["group_gc"][group])

    def cycle_s(self, group: int) -> float:
        """Group iteration time as predicted from what is measured (paper harmony, Eq. 1), seconds; nan: unknown."""
        jobs = np.array(self.members(group), np.int64)
        s = self._s
        if not len(jobs) or (s["profile_left"][jobs] > 0).any():
            return float("nan")
        comp = s["seen_comp"][jobs] / s["group_machines"][group]
        comm = s["seen_comm"][jobs]
        return float(max(comp.sum(), comm.sum(), (comp + comm).max()))

    def attained_iterations(self, job: int) -> float:
        """Iterations that a job has done."""
        return float(self._s["iterations"][job]) - self._left(job)

    def failed_together(self) -> list[frozenset[int]]:
        """Sets of jobs that ran out of memory together, the last ones that are remembered."""
        s = self._s
        count = int(s["n_crowds"])
        numbers, jobs = s["crowd"][:count], s["crowd_job"][:count]
        return [frozenset(jobs[numbers == number].tolist()) for number in np.unique(numbers)]

    @property
    def _s(self) -> np.void:
        found: np.void = self._simulator.raw.record
        return found
