"""The state of one cluster of job groups: a single structured record, as record/state.py has it for GPU clusters.

Common fields carry the same names, so rewards, deadlines, estimates and the event heap are the same kernels. Times are
seconds, work is iterations; COMP is machine-seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ..base.errors import InputError
from ..numerics.bitset import words
from ..record.extents import Block, blocks_of, used_parts
from ..record.field_axes import GPU, JOB, LOGGED, RUN, Axis, Field, dtype_of
from ..record.raw_record import CalledRecord
from ..record.region_fields import region_fields
from ..record.state import clock_fields, estimate_fields, failure_fields
from ..record.zeroed import zeroed

SMALL = (40, 40)  # of workloads and clusters that both are as small as those that agents train on
JOB_SIZES = (16_392, 131_072)
MACHINE_SIZES = (8_200, 131_072)
PARTS = 3  # subtasks of an iteration, at most
LOG_ENTRIES = 4096  # at least
TRACED = 1024  # subtasks that are remembered for a look ahead
MACHINE, GROUP, LOGGED_MACHINE = "machine", "group", "logged machine"  # what arrays have entries for, beside jobs


@dataclass(frozen=True)
class GroupCapacity:
    """The shape of a record: how many jobs and machines it can hold. There are never more groups than machines."""

    jobs: int
    machines: int

    @property
    def groups(self) -> int:
        """Groups that there can be at once, with one more while a job changes places."""
        return min(self.jobs + 1, self.machines)

    @property
    def entries(self) -> int:
        """Decisions that the log of an instant has room for."""
        return max(8 * self.jobs, LOG_ENTRIES)

    @property
    def large(self) -> GroupCapacity:
        """The class that all but the smallest workloads and clusters need."""
        return GroupCapacity(max(self.jobs, JOB_SIZES[0]), max(self.machines, MACHINE_SIZES[0]))

    @property
    def words(self) -> str:
        """In a sentence."""
        return f"{self.jobs:,} jobs on {self.machines:,} machines"

    @classmethod
    def fitting(cls, jobs: int, machines: int) -> GroupCapacity:
        """The smallest size class that holds them; InputError beyond the largest."""
        if jobs <= SMALL[0] and machines <= SMALL[1]:
            return cls(*SMALL)
        return cls(_class_of(jobs, JOB_SIZES, "jobs"), _class_of(machines, MACHINE_SIZES, "machines"))

    def empty(self, n: int = 1) -> np.recarray:
        """`n` zeroed records."""
        return zeroed(n, group_dtype(self))


def _class_of(wanted: int, sizes: tuple[int, ...], noun: str) -> int:
    for size in sizes:
        if wanted <= size:
            return size
    raise InputError(f"{wanted} {noun}: one simulator of job groups holds at most {sizes[-1]}; split the workload")


JOB_FLOATS = (
    "arrival_s",
    "deadline_s",  # absolute; inf = none
    "iterations",
    "base_iteration_s",  # alone on `gpus` machines
    "iterations_left",  # whole ones that are not over, as of its group's `at_s`: at decision points, of now
    "since_s",  # 0, and infinity: what is left is what `iterations_left` says (rules/orders.left_now)
    "iteration_s",
    "waiting_since_s",
    "queued_s",  # time outside groups since arrival
    "first_start_s",
    "finish_s",
    "restore_s",  # time of loading
    "exposed_s",  # time in groups beyond that which COMP alone takes on the machines there
    "comp_machine_s",  # COMP of one iteration, machine-seconds
    "comm_s",  # COMM of one iteration, seconds
    "input_bytes",
    "model_bytes",
    "seen_comp",  # both times as measured: moving averages
    "seen_comm",
    "comp_error",  # factors of what is measured
    "comm_error",
    "alpha",  # share of its input on disk
    "alpha_asked",  # -1: found by climbing
    "model_spill",  # share of its model on disk
    "disk_s",  # to load what is on disk, once
    "loaded_s",  # when the pass over the input that it needs next is loaded
    "owed_s",  # of loading, once its iteration is over: its group has got other machines
    "part_begin_s",  # when its present subtask began
    "work_end_s",  # on the CPU: when it is through if the disk lets it
    "comp_cost",  # and the machine-seconds that its COMP costs
    "comm_cost",  # the machine-seconds that its COMM costs
    "part_left",  # naive: seconds of the present subtask that are left, alone on the resource
    "saved_left",  # iterations left at the last checkpoint
)
JOB_INTEGERS = (
    "gpus",  # machines that its isolated run time is meant on
    "status",
    "epoch_iterations",
    "goal",  # group that it is to be in; NONE = it waits
    "at",  # group that it is in
    "is_dirty_job",  # it is in `dirty_jobs` (kernels/group_life.py): 0 = no
    "place",  # what it does there (codes)
    "part",  # subtask of its iteration
    "rounds",  # iterations that it has ended since its group last changed
    "profile_left",  # iterations until its metrics are known
    "starts",
    "preempted",
    "migrated",
    "next_member",  # of its group: jobs that are executed there, in order of entry
    "queue_next",  # in its resource's queue
    "spilt_at",  # number of the decision point at which it was last asked to have a spill ratio
    "rank",  # place in the window's order, and back:
    "job_at_rank",
    "due",
)


def _job_fields(jobs: Axis) -> list[Field]:
    columns: list[Field] = [(name, "f8", (jobs,)) for name in JOB_FLOATS]
    columns += [(name, "i8", (jobs,)) for name in JOB_INTEGERS]
    columns += [("part_end_s", "f8", (jobs, PARTS)), ("part_step_s", "f8", (jobs, PARTS))]
    return columns


def _group_fields(groups: Axis) -> list[Field]:
    floats = (
        "at_s",  # until when it has been executed
        "period_s",  # of a steady one: everything recurs after that; 0 = not yet
        "cpu_end_s",
        "net_end_s",
        "second_end_s",
        "disk_free_s",  # when it has loaded all that is asked of it,
        "disk_before_s",  # and what that was one iteration ago
        "group_gc",  # how many times longer COMP takes
        "group_occupancy",  # of its memory
    )
    integers = (
        "is_group",
        "group_machines",
        "machines_before",  # at the beginning of the instant
        "is_dirty_group",  # 1: it is in `dirty_groups`
        "n_at",  # jobs whose `at` it is,
        "n_goal",  # and whose `goal`
        "n_members",
        "first_member",
        "last_member",
        "cpu_job",
        "net_job",
        "second_job",
        "cpu_head",
        "cpu_tail",
        "net_head",
        "net_tail",
        "sized_at",  # number of the decision point at which it last got machines
    )
    columns: list[Field] = [(name, "f8", (groups,)) for name in floats]
    return columns + [(name, "i8", (groups,)) for name in integers]


def _scalars() -> list[Field]:
    floats = (
        "busy",
        "loss",
        "jitter",
        "average_weight",
        "move_s",
        "ram_bytes",
        "expansion",
        "gc_threshold",
        "gc_slope",
        "disk_bandwidth",
        "pass_fraction",
        "pull_share",
        "held_integral",  # machine-seconds in groups
        "groups_integral",
        "executed_integral",  # job-seconds of members
        "cpu_busy_s",  # machine-seconds of COMP, collecting garbage included
        "comp_done_s",  # of these the work that is kept
        "comp_lost_s",  # work that failures undid
        "net_busy_s",  # machine-seconds of COMM
        "disk_bytes",  # loaded from disk
        "moving_integral",  # job-seconds of loading
    )
    integers = (
        "n_machines",
        "n_gpus",  # the same
        "free_machines",
        "down_machines",
        "n_groups",
        "group_end",  # no group has a number from here on, nor has had one
        "n_executed",  # members of all groups
        "n_loading",
        "execution",
        "comm",
        "spills",
        "profile_iterations",
        "out_of_memory",
        "moves",
        "subtasks",  # that have ended, and of these those that steady groups leapt over
        "leapt",
        "happened",  # something that a decision may be due after
        "n_dirty_jobs",
        "n_dirty_groups",
        "first_group_event",
        "first_machine_event",
        "n_crowds",
        "trace_on",
        "trace_count",
        "log_on",
        "log_count",
        "log_gpus",
        "log_overflow",
    )
    return [*((name, "f8") for name in floats), *((name, "i8") for name in integers)]


def _list_fields(jobs: Axis, machines: Axis, groups: Axis, entries: Axis) -> list[Field]:
    low, mid, top = words(jobs.length)
    ids = jobs.length + 2 * machines.length
    return [
        ("event_key", "f8", (ids,)),  # ids: jobs that load, groups, machines
        ("event_item", "i8", (ids,)),
        ("event_position", "i8", (ids,)),
        ("event_count", "i8"),
        ("dirty_jobs", "i8", (jobs,)),
        ("dirty_groups", "i8", (groups,)),
        ("machine_group", "i8", (machines,)),  # NONE = free, DOWN = failed
        ("machine_failures", "i8", (machines,)),
        ("crowd", "i8", (4 * jobs.length,)),  # jobs that ran out of memory together: number of the time, job
        ("crowd_job", "i8", (4 * jobs.length,)),
        ("window_low", "i8", (low,)),  # waiting jobs, in window order
        ("window_mid", "i8", (mid,)),
        ("window_top", "i8", (top,)),
        ("running_low", "i8", (low,)),  # and those that are to be in a group
        ("running_mid", "i8", (mid,)),
        ("running_top", "i8", (top,)),
        ("trace_kind", "i8", (TRACED,)),  # subtasks as they ended, while `trace_on`
        ("trace_job", "i8", (TRACED,)),
        ("trace_begin_s", "f8", (TRACED,)),
        ("trace_end_s", "f8", (TRACED,)),
        ("log_kind", "i8", (entries,)),
        ("log_job", "i8", (entries,)),
        ("log_first", "i8", (entries,)),
        ("log_size", "i8", (entries,)),
        ("log_gpu", "i8", (Axis(LOGGED_MACHINE, 2 * entries.length),)),
        ("log_seconds", "f8", (entries,)),
        ("log_time_s", "f8", (entries,)),
    ]


@cache
def group_fields(capacity: GroupCapacity) -> tuple[Field, ...]:
    """All fields of the record of one size class."""
    jobs, machines, groups = Axis(JOB, capacity.jobs), Axis(MACHINE, capacity.machines), Axis(GROUP, capacity.groups)
    return (
        ("n_jobs", "i8"),
        *clock_fields(),
        *_scalars(),
        *failure_fields(),
        *_job_fields(jobs),
        *estimate_fields(jobs),
        *_group_fields(groups),
        *_list_fields(jobs, machines, groups, Axis(LOGGED, capacity.entries)),
        *region_fields(Axis(JOB, 1), Axis(GPU, 1), 0, 0, 0),
    )


@cache
def group_dtype(capacity: GroupCapacity) -> np.dtype:
    """The whole record for one size class."""
    return dtype_of(group_fields(capacity))


class GroupExtent(NamedTuple):
    """How much of a record is in use: of arrays with an entry for each of them, the first so many."""

    jobs: int
    machines: int
    decisions: int  # of the log,
    machines_logged: int  # and their machines

    @property
    def used(self) -> dict[str, int]:
        """Entries in use by what they are of; there are no more groups than machines."""
        logged = {LOGGED: self.decisions, LOGGED_MACHINE: self.machines_logged}
        return {JOB: self.jobs, MACHINE: self.machines, GROUP: self.machines, **logged}


@cache
def _blocks(capacity: GroupCapacity) -> list[Block]:
    return blocks_of(group_fields(capacity), group_dtype(capacity), GroupExtent(0, 0, 0, 0).used, (RUN,))


class RawGroupRecord(CalledRecord):
    """The only record of an array, by item and by byte, as `RawRecord` of simulator/record/raw_record.py."""

    def __init__(self, records: np.recarray, capacity: GroupCapacity) -> None:
        super().__init__(records, capacity)
        array = records.view(np.ndarray)
        self.data = array.view(np.uint8)
        self.record: np.void = array.view(group_dtype(capacity))[0]

    @property
    def extent(self) -> GroupExtent:
        """How much is in use."""
        s = self.record
        return GroupExtent(int(s["n_jobs"]), int(s["n_machines"]), int(s["log_count"]), int(s["log_gpus"]))

    def clear(self) -> None:
        """As good as new."""
        for part in self.running_parts(self.extent):
            part.fill(0)

    def take_over(self, other: RawGroupRecord) -> None:
        """Become as `other`, a record of the same capacity."""
        extent = GroupExtent(*map(max, self.extent, other.extent))
        for part, their in zip(self.running_parts(extent), other.running_parts(extent), strict=True):
            part[...] = their

    become = take_over

    def running_parts(self, extent: GroupExtent) -> list[np.ndarray]:
        """Views of the bytes in use."""
        return used_parts(self.data, _blocks(self.capacity), extent.used)
