"""The simulator of job groups: equal machines, jobs on parameter servers, a clock, and decisions at decision points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..base import codes
from ..base.decisions import Advance, AssignGroup, Decision, Preempt, SetMachines, SetSpill
from ..base.errors import InputError, InvalidDecision, Stalled
from ..cluster.topology import Topology
from ..compiler.compile_messages import about
from ..configuration.network_choice import NoNetwork, on_topology
from ..engine.base_simulator import BaseSimulator
from ..jobs.workload import Workload
from ..network.simulated import RateProvider
from . import group_calls
from .group_codes import CLIMBS, KINDS
from .group_config import GroupClusterConfig, GroupConfig, GroupTerms
from .group_fields import GroupCapacity, RawGroupRecord
from .group_journal import logged
from .group_metrics import group_job_table, group_totals
from .group_view import GroupView
from .initialise_groups import copy_record, write_group_jobs, write_machines
from .use import UseMeter


class GroupSimulator(BaseSimulator):
    """A cluster of equal machines on which parameter-server jobs run in groups, simulated subtask by subtask.

    It offers the same as `Simulator`: `reset`, `view`, `apply`, `advance`, `run`, `metrics`, `jobs`.

    Args:
        config: the cluster: a `GroupClusterConfig`; or its topology, with its groups and other options beside it.
        groups: beside a topology: a `GroupConfig`, its arguments, or `key=value,...`.
        rule: the terms until a policy brings other ones; by default `GroupTerms()`.
        options: beside a topology: those of `GroupClusterConfig`, and its fields.

    A group that loses a machine begins again from the checkpoints of its jobs: one at each epoch, one whenever a job
    stopped. Run times are known by estimates; metrics of subtasks once profiled.

    Attributes:
        config: what is simulated, its topology opened.
        rule: the `GroupTerms` that hold; `use` replaces them.
        records, state, raw: the record (group_fields.py). Do not write to it.
        view: the read-only `GroupView` of the present.
        meter: how busy CPU and network were since `reset`, as far as `advance` played.
        room: None, or what is asked before each reset to `move_to` records of at least a capacity (batches).
        done, at_horizon, ended: as of `Simulator`.
        runs: how often `reset` or `restore` has replaced the state.
    """

    PLAIN = RawGroupRecord
    _copy_record = staticmethod(copy_record)
    _logged = staticmethod(logged)
    raw: RawGroupRecord
    rate_provider: RateProvider | None = None
    sharing = None

    def __init__(
        self,
        config: GroupClusterConfig | Topology | str | dict[str, Any],
        groups: GroupConfig | dict[str, Any] | str | None = None,
        *,
        rule: GroupTerms | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(config, GroupClusterConfig):
            config = GroupClusterConfig.of(config, groups=GroupConfig.load(groups), **options)
        self.topology = Topology.load(config.topology)
        self.config = replace(config, topology=self.topology)
        self.config.check()
        self.estimates, self.semantics = config.estimates, config.semantics
        self.network = on_topology(NoNetwork(), self.topology)
        self.rule = rule or GroupTerms()
        self.view = GroupView(self)
        self.meter = UseMeter(self)
        self.capacity = GroupCapacity(0, 0)

    def reset(self, workload: Workload, seed: int = 0, *, begin: bool = True) -> None:
        """Write `workload` into the record and run to the first decision point.

        Args:
            workload: jobs on parameter servers (`workload.ps`), each alone on no more machines than there are.
            seed: draws failures, the durations of subtasks, and errors of estimates and of metrics.
            begin: False leaves the clock before the first arrival, for kernels that find the first decision themselves.
        """
        self._expect_both(workload, seed)
        if workload.ps is None:
            raise InputError(
                f"workload {workload.name!r}: its jobs are no parameter-server jobs; expected harmony-like, or a file "
                "with the columns comp_machine_s, comm_s, input_gb, model_gb and epoch_iterations"
            )
        machines = self.topology.num_machines
        self._take(workload)
        self.runs += 1
        self._forget()
        capacity = GroupCapacity.fitting(len(workload), machines)
        self._make_room(capacity)
        self.raw.clear()
        s = self.raw.record
        write_machines(s, machines)
        self.config.groups.write_into(s)
        self.rule.write_into(s)
        write_group_jobs(s, self.workload, self.config.groups, seed)
        self.estimates.write_into(s, self.workload)
        s["horizon_s"] = s["start_s"] + self.config.horizon_s
        self._code = codes.DECIDE
        if self.config.failures is not None:
            self.config.failures.write_into(s)
        if begin or self.config.failures is not None:
            with about(f"job groups for up to {capacity.words}"):
                group_calls.draw_failures(self.records, 0)
                if begin:
                    self._stop(group_calls.advance(self.records, 0))

    def _take(self, workload: Workload) -> None:
        self.workload = workload.oversize(self.topology.num_machines)

    def _forget(self) -> None:
        self.meter.clear()

    def python_state(self) -> tuple[Any, ...]:
        """See `BaseSimulator`."""
        return *super().python_state(), self.meter.seen()

    def take_python_state(self, python_state: tuple[Any, ...]) -> None:
        """See `BaseSimulator`."""
        super().take_python_state(python_state)
        self.meter.take_over(*python_state[3])

    def use(self, rule: GroupTerms) -> None:
        """Let other terms hold, now and after resets; InputError: no terms, or another execution while groups run."""
        if rule == self.rule:
            return
        if not isinstance(rule, GroupTerms):
            raise InputError(
                "a rule for jobs on GPUs cannot play job groups; expected GroupTerms, or a policy that says them"
            )
        if self.capacity.jobs > 0:
            s = self.raw.record
            if s["n_executed"] > 0 and rule.execution != self.rule.execution:
                raise InputError(
                    f"jobs are executed as {self.rule.execution} already; a policy that plays as {rule.execution} must "
                    "play from the start"
                )
            rule.write_into(s)
        self.rule = rule

    def _close_instant(self) -> None:
        self._stop(group_calls.advance(self.records, 0))

    def _stop(self, code: int) -> None:
        self._code = int(code)
        self.expect_end()
        if self._code == codes.STALLED:
            s = self.state
            raise Stalled(
                f"{s.waiting} jobs wait at {s.now_s:g} s, nothing runs and no event is left to come; start one of them"
            )
        self.meter.look()

    def serve_holds(self) -> None:
        """Nothing: no job of a group is held."""

    def _rule_player(self) -> Callable[[], None]:
        raise InputError("no compiled rule plays job groups; expected a policy, as harmony")

    def apply(self, decision: Decision) -> None:
        """Carry out one decision at this instant; InvalidDecision: it is illegal, and the state is as before."""
        if isinstance(decision, Advance):
            self.advance()
        elif self.ended:
            raise InvalidDecision(f"{decision!r}: the run has ended; call reset() first")
        elif isinstance(decision, AssignGroup):
            self._assign(decision)
        elif isinstance(decision, Preempt):
            job = self._job(decision)
            if self.state.goal[job] < 0:
                raise InvalidDecision(f"{decision!r}: the job is in no group")
            group_calls.pause(self.records, 0, job)
        elif isinstance(decision, SetMachines):
            self._set_machines(decision)
        elif isinstance(decision, SetSpill):
            self._set_spill(decision)
        else:
            raise InvalidDecision(f"{decision!r}: expected AssignGroup, Preempt, SetMachines, SetSpill or Advance")

    def _assign(self, decision: AssignGroup) -> None:
        job, group, machines = self._job(decision), decision.group, decision.machines
        if group is None:
            available = int(group_calls.available_machines(self.records, 0))
            if not is_whole(machines) or not 1 <= machines <= available:
                raise InvalidDecision(f"{decision!r}: expected from 1 to {available} machines, those that are free")
            group_calls.open_for(self.records, 0, job, machines)
            return
        self._expect_group(decision, group)
        if machines is not None:
            raise InvalidDecision(f"{decision!r}: the group is there; its machines are for SetMachines")
        if self.state.goal[job] == group:
            raise InvalidDecision(f"{decision!r}: the job is in that group already")
        group_calls.join(self.records, 0, job, group)

    def _set_machines(self, decision: SetMachines) -> None:
        group, machines = decision.group, decision.machines
        self._expect_group(decision, group)
        s = self.state
        own = int(s.group_machines[group])
        free = int(group_calls.available_machines(self.records, 0)) - (own if s.n_goal[group] == 0 else 0)
        if not is_whole(machines) or not 1 <= machines <= own + free:
            raise InvalidDecision(f"{decision!r}: expected from 1 to {own + free} machines, its own and the free ones")
        group_calls.set_machines(self.records, 0, group, machines)

    def _set_spill(self, decision: SetSpill) -> None:
        job, ratio = self._job(decision), decision.ratio
        if ratio is not None and (isinstance(ratio, bool | str) or not 0.0 <= ratio <= 1.0):
            raise InvalidDecision(f"{decision!r}: expected a share from 0 to 1, or None")
        if self.state.goal[job] < 0:
            raise InvalidDecision(f"{decision!r}: the job is in no group")
        if not self.rule.spills:
            raise InvalidDecision(f"{decision!r}: nothing is spilled under the present terms")
        group_calls.set_spill(self.records, 0, job, CLIMBS if ratio is None else float(ratio))

    def _job(self, decision: Any) -> int:
        job = decision.job
        if not is_whole(job) or not 0 <= job < self.state.n_jobs:
            raise InvalidDecision(f"{decision!r}: there are jobs 0 to {self.state.n_jobs - 1}")
        status = int(self.state.status[job])
        if status in (codes.PENDING, codes.DONE):
            word = "has not arrived yet" if status == codes.PENDING else "has finished"
            raise InvalidDecision(f"{decision!r}: job {self.workload.job_id[job]} {word}")
        return int(job)

    def _expect_group(self, decision: Any, group: Any) -> None:
        s = self.state
        if not is_whole(group) or not 0 <= group < len(s.is_group) or not s.is_group[group]:
            raise InvalidDecision(f"{decision!r}: there is no group {group!r}; there are {self.view.groups.tolist()}")

    def subtasks(self, group: int, seconds: float) -> list[Subtask]:
        """The group's subtasks that end in the next seconds, undecided, at most `state.TRACED`: Figures 5 and 8."""
        copy = self.records.copy()
        group_calls.look_ahead(copy, 0, group, float(self.state.now_s) + seconds)
        s = copy[0]
        columns = (s[name][: s.trace_count].tolist() for name in TRACE)
        return [Subtask(job, KINDS[kind], begin, end) for job, kind, begin, end in zip(*columns, strict=True)]

    def metrics(self, among: np.ndarray | None = None) -> dict[str, float]:
        """Totals of the run so far, by the names of `metrics.py`; of the jobs in `among`, bool (jobs,), or of all."""
        return group_totals(self.raw.record, among)

    def jobs(self) -> dict[str, np.ndarray]:
        """One row a job; see `metrics.group_job_table`."""
        return group_job_table(self.state, self.workload)


TRACE = ("trace_job", "trace_kind", "trace_begin_s", "trace_end_s")


class Subtask(NamedTuple):
    """One subtask: whose, which (`COMP`, `COMM`, `PULL`, `PUSH`), and from when to when it had its resource."""

    job: int
    kind: str
    begin_s: float
    end_s: float


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
