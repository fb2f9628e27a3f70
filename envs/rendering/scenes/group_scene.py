"""Job groups at an instant, for pictures and text: machines, jobs, and the next subtasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....simulator.groups.group_simulator import GroupSimulator, Subtask
from ....simulator.groups.use import UseOverTime
from .seen import mean_jct_s

ROUNDS = 3.0  # of the slowest group that are shown
SHORTEST_S, LONGEST_S = 5.0, 3600.0


@dataclass(frozen=True)
class GroupLane:
    """One group."""

    group: int
    machines: int
    members: tuple[int, ...]
    loading: frozenset[int]  # members that load
    round_s: float  # predicted (paper harmony, Eq. 1), nan where times are not measured
    cpu: float  # its use by that, 0 to 1
    net: float
    memory: float  # share in use
    subtasks: tuple[Subtask, ...]  # by end


@dataclass(frozen=True)
class GroupScene:
    """All groups."""

    now_s: float
    seconds: float  # length of the shown future
    machines: int
    free: int
    down: int
    lanes: tuple[GroupLane, ...]
    waiting: tuple[int, ...]  # jobs
    running: int
    done: int
    jobs: int
    past: UseOverTime  # use of all machines
    jct_s: float  # mean JCT of finished jobs; nan: none is

    @property
    def cpu(self) -> float:
        """Predicted CPU use of all machines."""
        return sum(lane.cpu * lane.machines for lane in self.lanes) / self.machines

    @property
    def net(self) -> float:
        """Predicted network use of all machines."""
        return sum(lane.net * lane.machines for lane in self.lanes) / self.machines


def read_groups(simulator: GroupSimulator) -> GroupScene:
    """The groups of a simulator now, and their next subtasks without further decisions."""
    view, s = simulator.view, simulator.raw.record
    groups = view.groups.tolist()
    rounds = {group: view.cycle_s(group) for group in groups}
    longest_s = max((seconds for seconds in rounds.values() if math.isfinite(seconds)), default=0.0)
    seconds = min(LONGEST_S, max(SHORTEST_S, ROUNDS * longest_s))
    until_s = seconds + longest_s  # with those that last beyond the end
    lanes = tuple(_lane(simulator, group, rounds[group], until_s) for group in groups)
    return GroupScene(
        now_s=view.now_s,
        seconds=seconds,
        machines=int(s["n_machines"]),
        free=view.free_machines,
        down=int(s["down_machines"]),
        lanes=lanes,
        waiting=tuple(view.queue.tolist()),
        running=len(view.running),
        done=int(s["done"]),
        jobs=int(s["n_jobs"]),
        past=simulator.meter.over_time(),
        jct_s=mean_jct_s(s),
    )


def _lane(simulator: GroupSimulator, group: int, round_s: float, until_s: float) -> GroupLane:
    view = simulator.view
    machines, members = view.machines_of(group), view.members(group)
    cpu = net = 0.0
    if math.isfinite(round_s):
        cpu = sum(view.comp_machine_s(job) for job in members) / machines / round_s
        net = sum(view.comm_s(job) for job in members) / round_s
    return GroupLane(
        group=group,
        machines=machines,
        members=tuple(members),
        loading=frozenset(job for job in members if view.is_loading(job)),
        round_s=round_s,
        cpu=cpu,
        net=net,
        memory=float(simulator.raw.record["group_occupancy"][group]),
        subtasks=tuple(simulator.subtasks(group, until_s)) if not simulator.ended else (),
    )
