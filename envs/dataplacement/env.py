"""DataPlacement-v0: homes and replicas of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...policies.mast.mast import WorkloadPassPolicy
from ...simulator.base.codes import ASK
from ...simulator.cluster.topology import Topology
from ...simulator.compiler.compile_messages import about
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
    """Decide about tables at regular reviews: where each has its home and its replicas.

    Source       MAST (global scheduling of ML training across regions), its slow path;
                 docs/environments/data-placement.md.
    Observation  cluster (16,), queue (slots x 12,): the offered table and the next ones, running (running_slots x 6,):
                 copies on the way, regions (region_slots x 16,), and candidates ((2 + 3 region_slots) x 15,).
    Action       Discrete(2 + 3 region_slots). 0: done for now, workloads are placed and the clock advances. 1: on
                 to the next table. 2 + 3 r: the offered table's home moves to region r; 3 + 3 r: region r gets a
                 replica of it; 4 + 3 r: its replica there is dropped. The table stays on offer until 1.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        topology: as everywhere; it must have regions with storage.
        workload: as everywhere, of jobs of regions (`mast-like`, or a file).
        network: `none`: communication between a workload's parts is not simulated.
        scheduler: places workloads: the name of a policy for regions, or such a policy.
        tables_every_s: from one review of the tables to the next, seconds, > 0; the first is at the first pass.
        quota: share of the bytes of all tables that may be copied at one review.
        slots, running_slots: tables and copies on the way in the observation, 1 to 256 and 0 to 256.
        region_slots: regions that there is room for, 1 to 64.
        reward: also `queueing`, as in Geo-v0, and `placement`: the decrease of the cost of paper mast's Figure 4 by a
            decision, as a fraction of that cost at the beginning.
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
        config, common_options = self.configured(topology, network, given)
        interface = DataPlacementInterface(
            scheduler=scheduler,
            region_slots=region_slots,
            quota=quota,
            slots=slots,
            running_slots=running_slots,
            horizon_s=config.horizon_s,
        )
        weigh(interface.window, config.tariff, common_options.reward, cost_weight, carbon_weight, level_weights)
        super().__init__(config.build(interface.clock), interface, workload, common_options)

    def play(self) -> bool:
        """Play the action in the row, and run to the next decision; True if the row needs a look."""
        before = self.interface.cost
        needs_look = super().play()
        if self.reward == PLACEMENT:
            self._outcome[REWARD] = (before - self.interface.cost) / self.interface.first_cost
        return needs_look

    def _pass_over(self) -> None:
        scheduler = self.interface.scheduler
        if not (type(scheduler) is WorkloadPassPolicy and self._simulates(scheduler)):
            super()._pass_over()

    def _simulates(self, scheduler: WorkloadPassPolicy) -> bool:
        """Whether a kernel has run to the next review; False: MAST has to decide in Python now."""
        view = self.simulator.view
        compiled = scheduler.compiled(view)
        if compiled is None:
            return False
        self.simulator.install(scheduler)
        with about(f"{self.part}'s scheduler"):  # whose record has a capacity of its own
            code = simulate(self.stepper.rows.records, self.row, *compiled)
        scheduler.take_over(view)
        if code == ASK:
            return False
        self._stop(code)
        return True

    def as_text(self) -> str:
        """The cluster now, then the places of tables."""
        from ..rendering.scenes.table_scene import table_lines

        return "\n".join([super().as_text(), "", *table_lines(self.simulator)])

    def as_picture(self) -> np.ndarray:
        """The places of tables, uint8 (H, W, 3)."""
        from ..rendering.drawing.pen import SIZE
        from ..rendering.pictures.table_picture import draw_tables

        placement_review = self.interface.placement_review
        return draw_tables(
            self.simulator, SIZE, self.seen(), None if placement_review is None else placement_review.offered
        )

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`: the decision of `policy` about the offered table, even out of its own order."""
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self._is_expert_played = True
        return self._said(self.interface.demonstration(policy)), self._features.copy(), True


class DataPlacementVectorEnv(ClusterVectorEnv):
    """N environments `DataPlacementEnv`, stepped one after the other, since Python decides about tables."""

    env_class = DataPlacementEnv
