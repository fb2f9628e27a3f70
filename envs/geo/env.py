"""Geo-v0: in which region and cluster a workload runs, and whom it displaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...simulator.base.codes import ASK
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.engine.base_simulator import Decider
from ...simulator.workloads import Workload
from ..batch import Stepper
from ..outcome import GOES_ON
from ..python_step import PythonStepEnv
from ..reward import REGION_REWARDS, weigh
from ..vector import ClusterVectorEnv
from .geo_interface import BRINGS, ROUND_S, TABLES, GeoInterface
from .geo_transition import step_row


class GeoEnv(PythonStepEnv):
    """Decide for waiting workloads in which region and cluster they run, with or without preempting others.

    Source       MAST (global scheduling of ML training across regions), its fast path; docs/environments/geo.md.
    Observation  Dict of float32 Boxes in [0, 1]: cluster (14,), queue (slots x 18,), running (running_slots x 10,),
                 regions (region_slots x 12,), candidates ((1 + (2 K + 1 + B) slots) x 24,); K = clusters, B = brings;
                 columns in observation.py. `observation="flat"`: the five in one Box, in this order.
    Action       Discrete(1 + S slots), S = 2 K + 1 + B. 0: no more now, advance. 1 + S i + 2 k + p: the workload
                 in waiting slot i starts in the k-th cluster that it is offered (p = 0), or does and others leave for
                 it (p = 1); 1 + S i + 2 K: it is held until units are freed; 1 + S i + 2 K + 1 + b: the tables that it
                 lacks are copied to the b-th region that it is offered. The cluster is that of its first part; where
                 in it, where the others go in the same region, and who leaves is RMS's best plan.
    Mask         action_masks(): bool; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`: jct (default: minus the mean JCT in mean isolated run times, summed over the episode),
                 makespan, slowdown, slo (minus the share of workloads with a limit that start too late), queueing
                 (minus the mean time without units, in those), the last two by level if told; envs/reward.py.
                 Decisions often take no time: train with gamma = 1.
    Episode      terminated when every workload is done; truncated at `horizon_s` or after `max_decisions`, and
                 then charged for the workloads that it leaves (envs/reward.py).
    Info         active_jobs, waiting_jobs, running_jobs, finished_jobs, used_gpus; elapsed_s, action_mask,
                 invalid_action (the action was not legal: it counted as advance), forced_action
                 (and as the first legal candidate, since no time could pass), adjusted_action (always False: the
                 action has one part); max_decisions of reset and on the last step; metrics on the last step.
    Versions     v0 first release.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`; it must have regions with storage.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`; or several of them in a
            list, one of which is drawn at each reset. Its jobs must be those of regions (`mast-like`, or a file).
        network: `none`: what a workload's parts say to each other is not simulated.
        tables: who decides about tables every `tables_every_s`: the name of a policy with a slow half, such an object,
            or None. Workloads that no region can run have their tables copied in any case.
        tables_every_s: seconds, > 0.
        round: seconds; decision points come at its multiples only (0: at every event).
        clusters: K, 1 to 16: clusters that a waiting workload is offered; of more those with the best scores.
        brings: B, 0 to 8: regions to which a waiting workload may have its tables brought; of more those with the least
            demand for its first part's type over their supply; 0: nothing is brought but what no region has together.
        region_slots: regions that there is room for in the observation, 1 to 64; a cluster with more is refused.
        slots, running_slots: waiting and running workloads in the window, 1 to 256 and 0 to 256.
        order: which workloads the window shows first: `priority`, then by arrival; `arrival`; `shortest` (isolated run
            time) or `smallest` (units).
        preempts: whom a start in place of others may stop: `lower`, workloads whose priority counts for less; `any`,
            whoever did not start at the same instant, those with most time left x GPUs first, as far as that is known.
        max_decisions: truncate after so many steps, >= 1; None: 50 a workload; `math.inf`: never.
        horizon_s: truncate so many seconds after the first arrival; None: never.
        skip_idle: pass over decision points where only advancing or holding is legal; the first of an episode never.
        observation: `dict`, or `flat` for plain MLPs.
        action: `parts` or `discrete`, here the same: the action has one part (envs/forms.py).
        mask: `info`, or also in the observation: `observation`, `KEY` or `KEY/MASK` (envs/forms.py).
        reward: `jct`, `makespan`, `slowdown`, `slo` or `queueing`; or a function (before, after) of two snapshots, or
            its word `py:FILE.py:NAME` (envs/snapshot.py).
        reference: with reward `jct`, whom a step's job-seconds are compared with, on the same workload: a policy's
            name or a policy; None: nobody.
        estimates: what policies and the observation know of run times: `exact`, `none`, `lognormal:sigma=1`, `user`, or
            `Estimates` (simulator/jobs/estimates.py); rewards go by what happens.
        mtbf_s, mttr_s, checkpoint_s: machine failures (simulator/events/initialise.py); 0 mean time between failures:
            none.
        region_mtbf_s, region_mttr_s: outages of regions; 0: none.
        outages, fault_groups, group_mtbf_s, group_mttr_s: a csv of outages, with notice or without, and what fails
            together (simulator/events/outage_list.py); None: none.
        prices, watts, egress_per_gb, storage_per_tb_month: what electricity, traffic and storage cost
            (simulator/costs/tariff.py); metrics then say what was spent. None: nothing is said of costs.
        speeds: how fast models are on types of GPUs: `gavel`, or a csv (simulator/configuration/unit_speeds.py); none:
            all types are as fast.
        copy_time: how long a copy of a table takes: as its share of the links allows (`bandwidth`), or a time drawn
            from those of paper mast (`published`). copy_order: copies on a link are equals (`equal`), or those on
            demand and for jobs of high priority go first (`urgent`). replica_lag_s: how far replicas are behind their
            home (simulator/regions/region_starts.py); None: workloads that need fresh data run at home alone.
        cost_weight, carbon_weight: with prices, what a reward that has a name is charged for each $ and for each kg of
            CO2 (envs/reward.py); 0: nothing.
        level_weights: with reward `slo` or `queueing`, what a workload of each priority level, 0 to 6, counts, >= 0;
            None: all levels alike.
        render_mode: `ansi`, `rgb_array` or `human`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    part = "Geo-v0"
    rewards: ClassVar[Mapping[str, int]] = REGION_REWARDS
    interface: GeoInterface

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Network | str | None = None,
        *,
        tables: str | Decider | None = TABLES,
        round: float = ROUND_S,
        clusters: int = 6,
        brings: int = BRINGS,
        region_slots: int = 8,
        slots: int = 16,
        running_slots: int = 16,
        order: str = "priority",
        preempts: str = "lower",
        skip_idle: bool = True,
        cost_weight: float = 0.0,
        carbon_weight: float = 0.0,
        level_weights: tuple[float, ...] | None = None,
        **given: Any,
    ) -> None:
        config, manner = self.configured(topology, network, given)
        interface = GeoInterface(
            tables=tables,
            round=round,
            clusters=clusters,
            brings=brings,
            region_slots=region_slots,
            slots=slots,
            running_slots=running_slots,
            order=order,
            preempts=preempts,
            skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )
        weigh(interface.window, config.tariff, manner.reward, cost_weight, carbon_weight, level_weights)
        super().__init__(config.build(interface.clock), interface, workload, manner)

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        super().join(stepper, row)
        self.interface.share(self._features, self._mask)

    def play(self) -> bool:
        """Play the action in the row, and go on to the next decision; True if the row needs a look.

        A kernel does, but where the action is that of a policy: what one decides is said in Python.
        """
        look = self.interface
        if look.expert is not None:
            if self._is_expert_played:
                return super().play()
            look.part_with_guest()
            self.simulator.use(self.rule)
        self._is_expert_played = False
        rows, call = self.stepper.rows, self.stepper.call
        row = rows.records, rows.windows, rows.references, self.row, look.regions, look.ranking
        step = look.slow_half is not None, self._action, self._outcome, self._features, self._mask
        odd = call(step_row, *row, *step)
        while odd == ASK:
            for decision in look.leaving():
                self.simulator.apply(decision)
            look.plain["begins"] = GOES_ON
            odd = call(step_row, *row, *step)
        return odd > 0

    def act_of(self, policy: Decider) -> Any:
        """The action that plays what `policy` does next; see `PythonStepEnv`."""
        self.interface.is_lesson = False
        return super().act_of(policy)

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `PythonStepEnv`; it is shown what `policy` does wherever an agent would be asked, nothing too."""
        self.interface.is_lesson = True
        action = super().act_of(policy)
        return action, self._features.copy(), not self.interface.is_expert_only and self._is_said


class GeoVectorEnv(ClusterVectorEnv):
    """N environments `GeoEnv`, stepped one after the other, each by a kernel; tables are decided about in Python."""

    env_class = GeoEnv
