"""Grouping-v0: a job opens a group, joins one, makes room, or waits; groups get machines, jobs spill ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...simulator.cluster.topology import Topology
from ...simulator.workloads import Workload
from ..cluster_env import ClusterEnv
from ..vector import ClusterVectorEnv
from .grouping_interface import GROUP_SLOTS, RUNNING_SLOTS, SLOTS, GroupingInterface
from .grouping_window import SPILLS


class GroupingEnv(ClusterEnv):
    """Decide which jobs on parameter servers share the machines of a group, and how many machines each group has.

    Source       Harmony (scheduling multiplexed distributed training); docs/environments/grouping.md.
    Observation  cluster (15,), queue (slots x 15,), running (running_slots x 26,), groups (G x 17,), candidates ((1 +
                 (1 + G) slots + (3 + G) running_slots + G) x 24,); G = group_slots.
    Action       MultiDiscrete([1 + (1 + G) slots + (3 + G) running_slots + G, 1 + machine_choices,
                 spill_choices]).
                 0: no more now, advance. 1 + (1 + G) i + k: waiting slot i opens a group (k = 0), or joins that of
                 group slot k - 1. 1 + (1 + G) slots + (3 + G) j + k: running slot j is paused (k = 0), moves to group
                 slot k - 1 (if that is its own: stays, with another spill ratio), opens a group (k = 1 + G), or is
                 replaced by the shown waiting job that gains most (k = 2 + G). The last G: group slot k gets machines.
                 The second part is the number of machines of a group that is opened or gets machines; 0: those on
                 which its COMP takes as long as its COMM. The third is the share of its input that the job which
                 opens, joins or stays keeps on disk: 0: found by climbing, v: (v - 1) / 10.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        topology: as everywhere; only its machines count.
        workload: as everywhere, of jobs on parameter servers.
        network: `none`: the jobs' own times include the network.
        comm, busy, loss, jitter, average_weight, model_error: subtasks and measurements, as of `GroupConfig`.
        profile_iterations: as of `GroupConfig`, but jobs are measured when they come: 0.
        move_s, ram_gb, disk_mb_s, pass_fraction, pull_share: moves and machines, as of `GroupConfig`.
        expansion, gc_threshold, gc_slope: costs of memory, as of `GroupConfig`.
        group_slots: G, 1 to 32: groups in the window.
        machine_choices: largest number of machines in an action, 0 to 256; None: those of the cluster.
        spill_choices: values of the third part, 1 to 12: climbing, then 0, .1, and so on; 1: climbing only.
        order: of the window: `arrival` or `shortest` (isolated run time).
    """

    part = "Grouping-v0"
    others = ("machines", "spill")

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Any = None,
        *,
        group_slots: int = GROUP_SLOTS,
        machine_choices: int | None = None,
        spill_choices: int = SPILLS,
        slots: int = SLOTS,
        running_slots: int = RUNNING_SLOTS,
        order: str = "arrival",
        skip_idle: bool = True,
        **given: Any,
    ) -> None:
        config, common_options = self.configured(topology, network, given)
        interface = GroupingInterface(
            topology=config.topology, group_slots=group_slots, machine_choices=machine_choices,
            spill_choices=spill_choices, slots=slots, running_slots=running_slots, order=order, skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )  # fmt: skip
        super().__init__(config.build(), interface, workload, common_options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `ClusterEnv`; with pictures, it also records the past that they show."""
        outcome = super().step(action)
        if self.render_mode is not None:
            self.simulator.meter.look()
        return outcome

    def as_text(self) -> str:
        """The cluster now, as text."""
        from ..rendering.group_text import draw_group_text

        return draw_group_text(self.simulator)

    def as_picture(self) -> np.ndarray:
        """The cluster now, uint8 (H, W, 3)."""
        from ..rendering.pictures.group_picture import draw_groups

        self.simulator.meter.look()

        return draw_groups(self.simulator, seen=self.seen())


class GroupingVectorEnv(ClusterVectorEnv):
    """N environments `GroupingEnv`, stepped by one kernel call."""

    env_class = GroupingEnv
