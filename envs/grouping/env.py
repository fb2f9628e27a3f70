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
from .grouping_transition import step_rows
from .grouping_window import SPILLS


class GroupingEnv(ClusterEnv):
    """Decide which jobs on parameter servers share the machines of a group, and how many machines each group has.

    Source       Harmony (scheduling multiplexed distributed training); docs/environments/grouping.md.
    Observation  Dict of float32 Boxes in [0, 1], tables row by row: cluster (15,), queue (slots x 15,), running
                 (running_slots x 26,), groups (G x 17,), candidates ((1 + (1 + G) slots + (3 + G) running_slots + G)
                 x 24,); G = group_slots; columns in observation.py. `observation="flat"`: the five in one Box, in this
                 order.
    Action       MultiDiscrete([1 + (1 + G) slots + (3 + G) running_slots + G, 1 + machine_choices,
                 spill_choices]).
                 0: no more now, advance. 1 + (1 + G) i + k: waiting slot i opens a group (k = 0), or joins that of
                 group slot k - 1. 1 + (1 + G) slots + (3 + G) j + k: running slot j is paused (k = 0), moves to group
                 slot k - 1 (if that is its own: stays, with another spill ratio), opens a group (k = 1 + G), or waits
                 in favour of the shown waiting job that gains most in its place (k = 2 + G). The last G: group slot k
                 gets machines. The second part is the number of machines of a group that is opened or gets machines;
                 0: those on which its COMP takes as long as its COMM. The third is the share of its input that the job
                 which opens, joins or stays keeps on disk: 0: found by climbing, v: (v - 1) / 10.
    Mask         action_masks(): bool, the three parts in a row; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`: jct (default: minus the mean JCT in mean isolated run times, summed over the episode),
                 makespan, slowdown, slo; envs/reward.py. Decisions often take no time: train with gamma = 1.
    Episode      terminated when every job is done; truncated at `horizon_s` or after `max_decisions`, and then
                 charged for the jobs that it leaves (envs/reward.py).
    Info         active_jobs, waiting_jobs, running_jobs, finished_jobs, used_gpus; elapsed_s, action_mask,
                 invalid_action (the action was not legal: it counted as advance), forced_action
                 (and as the first legal candidate, since no time could pass), adjusted_action (machines or a ratio that
                 cannot be became the nearest that can); max_decisions of reset and on the last step; metrics on the
                 last step.
    Versions     v0 first release.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`; its machines count.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`, of jobs on parameter
            servers; or several of them in a list, one of which is drawn at each reset.
        network: `none`: the jobs' own times say what the network takes.
        comm, busy, loss, jitter, average_weight, model_error: subtasks and what is measured, as of `GroupConfig`.
        profile_iterations: as of `GroupConfig`, but jobs are measured when they come: 0.
        move_s, ram_gb, disk_mb_s, pass_fraction, pull_share: moves and machines, as of `GroupConfig`.
        expansion, gc_threshold, gc_slope: what memory costs, as of `GroupConfig`.
        group_slots: G, 1 to 32: groups in the window.
        machine_choices: most machines that can be asked for by number, 0 to 256; None: those of the cluster.
        spill_choices: values of the third part, 1 to 12: climbing, then 0, .1, and so on; 1: climbing only.
        slots, running_slots: waiting jobs and jobs in groups in the window, 1 to 256 and 0 to 256.
        order: which jobs the window shows first: `arrival` or `shortest` (isolated run time).
        max_decisions: truncate after so many steps, >= 1; None: 50 a job of the workload; `math.inf`: never.
        horizon_s: truncate so many seconds after the first arrival; None: never.
        skip_idle: pass over decision points where only advancing is legal.
        observation: `dict`, or `flat` for plain MLPs.
        action: `parts`, or `discrete`: a candidate alone, the other parts are 0 (envs/forms.py).
        mask: `info`, or also in the observation: `observation`, `KEY` or `KEY/MASK` (envs/forms.py).
        reward: `jct`, `makespan`, `slowdown` or `slo`; or a function (before, after) of two snapshots, or its word
            `py:FILE.py:NAME` (envs/snapshot.py).
        reference: with reward `jct`, whom a step's job-seconds are compared with, on the same workload: a policy's
            name or a policy; None: nobody.
        estimates: what policies and the observation know of run times: `exact`, `none`, `lognormal:sigma=1`, `user`, or
            `Estimates` (simulator/jobs/estimates.py); rewards go by what happens.
        mtbf_s, mttr_s: machine failures (simulator/events/initialise.py); 0 mean time between failures: none.
        render_mode: `ansi`, `rgb_array` or `human`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    part = "Grouping-v0"
    others = ("machines", "spill")
    step_rows = staticmethod(step_rows)

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
        config, manner = self.configured(topology, network, given)
        interface = GroupingInterface(
            topology=config.topology, group_slots=group_slots, machine_choices=machine_choices,
            spill_choices=spill_choices, slots=slots, running_slots=running_slots, order=order, skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )  # fmt: skip
        super().__init__(config.build(), interface, workload, manner)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `ClusterEnv`; where there are pictures, what they show of the past is as fine as there are steps."""
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
