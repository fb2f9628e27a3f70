"""DataPlacement-v0: where tables have their homes and their replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...policies.mast.mast import Passes
from ...simulator.base.codes import ASK
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.engine.base_simulator import Decider
from ...simulator.workloads import Workload
from ..outcome import REWARD
from ..python_step import PythonStepEnv
from ..reward import JCT, REGION_REWARDS, weigh
from ..vector import ClusterVectorEnv
from .dataplacement_interface import QUOTA, SCHEDULER, DataPlacementInterface
from .dataplacement_transition import simulate

PLACEMENT = "placement"


class DataPlacementEnv(PythonStepEnv):
    """Decide about tables, every so often: where each has its home and its replicas.

    Source       MAST (global scheduling of ML training across regions), its slow path;
                 docs/environments/data-placement.md.
    Observation  Dict of float32 Boxes in [0, 1]: cluster (16,), queue (slots x 12,): the offered table and those whose
                 turn is next, running (running_slots x 6,): copies on the way, regions (region_slots x 16,), and
                 candidates ((2 + 3 region_slots) x 15,); columns in observation.py. `observation="flat"`: the five in
                 one Box.
    Action       Discrete(2 + 3 region_slots). 0: done for now, workloads are placed and the clock goes on. 1: on
                 to the next table. 2 + 3 r: the offered table's home moves to region r; 3 + 3 r: region r gets a
                 replica of it; 4 + 3 r: its replica there is dropped. The table stays on offer until 1.
    Mask         action_masks(): bool; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`: jct (default: minus the mean JCT in mean isolated run times, summed over the episode),
                 makespan, slowdown, slo, queueing, the last two by level if told (envs/reward.py); placement: what a
                 decision takes off the cost of paper mast's Figure 4, as a fraction of that cost at the beginning. Many
                 decisions take no time: train with gamma = 1.
    Episode      terminated when every workload is done; truncated at `horizon_s` or after `max_decisions`, and
                 then charged for the workloads that it leaves (envs/reward.py).
    Info         active_jobs, waiting_jobs, running_jobs, finished_jobs, used_gpus; elapsed_s, action_mask,
                 invalid_action (the action was not legal: it counted as 0), forced_action
                 (always False: 0 is always legal), adjusted_action (always False: the action has one part);
                 max_decisions of reset and on the last step; metrics on the last step.
    Versions     v0 first release.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`; it must have regions with storage.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`; or several of them in a
            list, one of which is drawn at each reset. Its jobs must be those of regions (`mast-like`, or a file).
        network: `none`: what a workload's parts say to each other is not simulated.
        scheduler: who places workloads: the name of a policy for regions, or such a policy.
        tables_every_s: from one look at the tables to the next, seconds, > 0; the first is at the first pass.
        quota: share of the bytes of all tables that may be copied at one look.
        slots, running_slots: tables and copies on the way in the observation, 1 to 256 and 0 to 256.
        region_slots: regions that there is room for, 1 to 64.
        max_decisions: truncate after so many steps, >= 1; None: 50 a workload; `math.inf`: never.
        horizon_s: truncate so many seconds after the first arrival; None: never.
        observation: `dict`, or `flat` for plain MLPs.
        action: `parts` or `discrete`, here the same: the action has one part (envs/forms.py).
        mask: `info`, or also in the observation: `observation`, `KEY` or `KEY/MASK` (envs/forms.py).
        reward: `jct`, `makespan`, `slowdown`, `slo`, `queueing` or `placement`; or a function (before, after) of two
            snapshots, or its word `py:FILE.py:NAME` (envs/snapshot.py).
        reference: with reward `jct`, whom a step's job-seconds are compared with, on the same workload: a policy's
            name or a policy; None: nobody.
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

    part = "DataPlacement-v0"
    interface: DataPlacementInterface
    rewards: ClassVar[Mapping[str, int]] = {**REGION_REWARDS, PLACEMENT: JCT}  # its own is paid in Python

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Network | str | None = None,
        *,
        scheduler: str | Decider = SCHEDULER,
        quota: float = QUOTA,
        slots: int = 32,
        running_slots: int = 16,
        region_slots: int = 8,
        cost_weight: float = 0.0,
        carbon_weight: float = 0.0,
        level_weights: tuple[float, ...] | None = None,
        **given: Any,
    ) -> None:
        config, manner = self.configured(topology, network, given)
        interface = DataPlacementInterface(
            scheduler=scheduler,
            region_slots=region_slots,
            quota=quota,
            slots=slots,
            running_slots=running_slots,
            horizon_s=config.horizon_s,
        )
        weigh(interface.window, config.tariff, manner.reward, cost_weight, carbon_weight, level_weights)
        super().__init__(config.build(interface.clock), interface, workload, manner)

    def play(self) -> bool:
        """Play the action in the row, and go on to the next decision; True if the row needs a look."""
        before = self.interface.cost
        needs_look = super().play()
        if self.reward == PLACEMENT:
            self._outcome[REWARD] = (before - self.interface.cost) / self.interface.first_cost
        return needs_look

    def _pass_over(self) -> None:
        """Go on to the next look at the tables, or to the next instant; see `PythonStepEnv`."""
        scheduler = self.interface.scheduler
        if not (type(scheduler) is Passes and self._simulates(scheduler)):
            super()._pass_over()

    def _simulates(self, scheduler: Passes) -> bool:
        """Whether a kernel has gone on to the next look at the tables; False: MAST is to be asked at the present."""
        view = self.simulator.view
        compiled = scheduler.compiled(view)
        if compiled is None:
            return False
        self.simulator.install(scheduler)
        code = self.stepper.call(simulate, self.stepper.rows.records, self.row, *compiled)
        scheduler.take_over(view)
        if code == ASK:
            return False
        self._stop(code)
        return True

    def as_text(self) -> str:
        """The cluster now, then what lies where."""
        from ..rendering.scenes.table_scene import table_lines

        return "\n".join([super().as_text(), "", *table_lines(self.simulator)])

    def as_picture(self) -> np.ndarray:
        """What lies where, uint8 (H, W, 3)."""
        from ..rendering.drawing.pen import SIZE
        from ..rendering.pictures.table_picture import draw_tables

        day = self.interface.day
        return draw_tables(self.simulator, SIZE, self.seen(), None if day is None else day.offered)

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`: what `policy` does about the offered table, whenever it would turn to it by itself."""
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self._is_expert_played = True
        return self._said(self.interface.demonstration(policy)), self._features.copy(), True


class DataPlacementVectorEnv(ClusterVectorEnv):
    """N environments `DataPlacementEnv`, stepped one after the other: what is decided about tables is Python's."""

    env_class = DataPlacementEnv
