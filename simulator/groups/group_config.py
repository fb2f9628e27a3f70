"""The configuration of a cluster of job groups: machines, subtasks, memory, moves; and the terms of a policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..base.errors import InputError
from ..base.names import bind, choose
from ..cluster.topology import Topology
from ..configuration.cluster_config import RUN_TIMES, SimulatedCluster
from ..configuration.network_choice import NoNetwork
from ..events.initialise import Failures
from .group_codes import MERGED, NAIVE, SPLIT, SUBTASKS
from .group_memory import DISK_BANDWIDTH, EXPANSION, GC_SLOPE, GC_THRESHOLD, PASS_FRACTION, RAM_BYTES

EXECUTIONS = {"subtasks": SUBTASKS, "naive": NAIVE}
COMMS = {"merged": MERGED, "split": SPLIT}
GB, MB = 1e9, 1e6


@dataclass(frozen=True)
class GroupTerms:
    """What a policy brings along.

    Args:
        execution: `subtasks`: one COMP and one COMM at a time (paper harmony, Sec. IV-A); `naive`: all at once.
        spills: input, and models if need be, go to disk where memory is short (Sec. IV-C); False: too much of it is an
            out-of-memory error, and the group fails (Sec. II-B).
    """

    execution: str = "subtasks"
    spills: bool = True

    def __post_init__(self) -> None:
        choose(self.execution, EXECUTIONS, "value of execution")

    def write_into(self, s: np.void) -> None:
        """Write them into a record."""
        s["execution"], s["spills"] = EXECUTIONS[self.execution], self.spills


@dataclass(frozen=True)
class GroupConfig:
    """A cluster of equal machines for jobs on parameter servers. Numbers without another source are choices of ours.

    Args:
        comm: `merged`: one COMM an iteration, for which Eq. 1 is exact; `split`: PULL, COMP, PUSH.
        busy: share of its time for which a COMM alone keeps the links busy, .5 to 1; below 1 a secondary one moves in
            the gaps. The paper has secondary ones, but no rate.
        loss: of naive co-location: subtasks that share a resource are slower by this share, 0 to < 1. The paper has no
            number; 0 is what fits its row of naive co-location best (`reproduce harmony-calibration`).
        jitter: coefficient of variation of a subtask's duration (lognormal), 0 to 1.
        average_weight: of the newest measurement in the moving averages, in (0, 1].
        model_error: what is measured is off by this share, up or down by job and resource, 0 to < 1.
        profile_iterations: iterations until a job's metrics are known, >= 0; 0: when it arrives.
        move_s: seconds that a job loads when it enters a group; where a group gets other machines its jobs load the
            share of their partitions that changes machines.
        ram_gb: of a machine (m4.2xlarge, Sec. V-B).
        disk_mb_s: of a machine.
        expansion: bytes in memory for a raw one.
        gc_threshold: occupancy above which collecting garbage costs.
        gc_slope: how much it costs (group_memory.py).
        pass_fraction: share of its input that an iteration reads.
        pull_share: PULL's share of an iteration's COMM.
    """

    comm: str = "merged"
    busy: float = 1.0
    loss: float = 0.0
    jitter: float = 0.0
    average_weight: float = 0.1
    model_error: float = 0.0
    profile_iterations: int = 3
    move_s: float = 60.0
    ram_gb: float = RAM_BYTES / GB
    disk_mb_s: float = DISK_BANDWIDTH / MB
    expansion: float = EXPANSION
    gc_threshold: float = GC_THRESHOLD
    gc_slope: float = GC_SLOPE
    pass_fraction: float = PASS_FRACTION
    pull_share: float = 0.5

    def __post_init__(self) -> None:
        choose(self.comm, COMMS, "value of comm")
        for name, (low, high, expected) in RANGES.items():
            value = getattr(self, name)
            if not (isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high):
                raise InputError(f"{name} = {value!r}: expected {expected}")
        if self.comm == "merged" and self.pull_share != GroupConfig.pull_share:
            raise InputError(f"pull_share = {self.pull_share!r}: it means nothing with comm=merged; give comm=split")
        if self.profile_iterations != int(self.profile_iterations):
            raise InputError(f"profile_iterations = {self.profile_iterations!r}: expected a whole number >= 0")

    @classmethod
    def load(cls, source: GroupConfig | dict[str, Any] | str | None) -> GroupConfig:
        """One as it is, from its arguments, from `key=value,...`, or the defaults for None; InputError: a bad one."""
        if isinstance(source, GroupConfig):
            return source
        if isinstance(source, str):
            pairs = [pair.partition("=") for pair in source.split(",") if pair]
            source = {key.strip(): value.strip() for key, _, value in pairs}
        if not isinstance(source, dict | None):
            raise InputError(f"groups = {source!r:.100}: expected GroupConfig(...), its arguments by name, or None")
        unknown = set(source or {}) - {field.name for field in fields(cls)}
        if unknown:
            choose(min(unknown), [field.name for field in fields(cls)], "setting of job groups")
        found: GroupConfig = bind(cls, source or {}, "job groups")
        return found

    @classmethod
    def of(cls, **given: Any) -> GroupConfig:
        """One from some of its fields."""
        return cls(**given)

    def write_into(self, s: np.void) -> None:
        """Write it into a record."""
        s["comm"] = COMMS[self.comm]
        for name in COPIED:
            s[name] = getattr(self, name)
        s["ram_bytes"] = self.ram_gb * GB
        s["disk_bandwidth"] = self.disk_mb_s * MB


BELOW_ONE = math.nextafter(1.0, 0.0)
LEAST, MOST = 1e-9, 1e9
RANGES = {
    "busy": (0.5, 1.0, "a share from 0.5 to 1"),
    "loss": (0.0, BELOW_ONE, "a share from 0 to less than 1"),
    "jitter": (0.0, 1.0, "a coefficient of variation from 0 to 1"),
    "average_weight": (LEAST, 1.0, "a weight > 0, at most 1"),
    "model_error": (0.0, BELOW_ONE, "a share from 0 to less than 1"),
    "profile_iterations": (0, MOST, "a whole number >= 0"),
    "move_s": (0.0, MOST, "seconds >= 0"),
    "ram_gb": (LEAST, MOST, "GB > 0"),
    "disk_mb_s": (LEAST, MOST, "MB/s > 0"),
    "expansion": (LEAST, MOST, "a number > 0"),
    "gc_threshold": (0.0, BELOW_ONE, "a share from 0 to less than 1"),
    "gc_slope": (0.0, MOST, "a number >= 0"),
    "pass_fraction": (0.0, 1.0, "a share from 0 to 1"),
    "pull_share": (LEAST, BELOW_ONE, "a share between 0 and 1"),
}
COPIED = tuple(name for name in RANGES if name not in ("model_error", "ram_gb", "disk_mb_s"))


@dataclass(frozen=True)
class GroupClusterConfig(SimulatedCluster):
    """A cluster of equal machines on which jobs on parameter servers run in groups.

    Args:
        topology: `harmony:machines=100`, or another of equal machines, of which only the number counts.
        network: none: jobs bring the times of their COMM along.
        groups: machines, subtasks, memory and moves.

    Raises:
        InputError: a value that does not fit.
    """

    simulator: ClassVar[str] = "clustergym.simulator.groups.group_simulator:GroupSimulator"
    unit: ClassVar[str] = "machines"
    features: ClassVar[frozenset[str]] = frozenset({RUN_TIMES})

    groups: GroupConfig = field(default=GroupConfig(), metadata={"group": GroupConfig})

    @staticmethod
    def gang_room(topology: Topology) -> int:
        """See `SimulatedCluster`."""
        return topology.num_machines

    def __post_init__(self) -> None:
        super().__post_init__()
        name = getattr(self.network, "name", self.network)
        if not isinstance(name, str) or name != NoNetwork.name:
            raise InputError(
                f"network = {self.network!r}: expected 'none', for jobs bring the times of their COMM along"
            )
        self._keep(groups=GroupConfig.load(self.groups))

    def check(self) -> None:
        """See `SimulatedCluster`."""
        super().check()
        if self.failures is not None and self.failures.checkpoint_s != Failures.checkpoint_s:
            raise InputError(
                f"checkpoint_s = {self.failures.checkpoint_s:g}: job groups write one at each end of an epoch; "
                "expected none"
            )
        topology = Topology.load(self.topology)
        several = [
            what
            for what, kinds in (("regions", topology.region_names), ("types of units", topology.cluster_gpu_type))
            if len(set(kinds)) > 1
        ]
        if topology.region_network is not None or several or len(set(topology.machine_gpus.tolist())) > 1:
            raise InputError(
                f"topology {topology.name!r}: job groups run on equal machines, which its are not; expected such as "
                "harmony:machines=100"
            )
