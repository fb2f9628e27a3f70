"""DataPlacement-v0: homes and replicas of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.engine.base_simulator import Decider
from ...simulator.workloads import Workload
from ..batch import Rows, Stepper
from ..cluster_env import ClusterEnv
from ..outcome import REWARD
from ..reward import JCT, REGION_REWARDS, weigh
from ..vector import ClusterVectorEnv
from .dataplacement_interface import QUOTA, SCHEDULER, DataPlacementInterface
from .dataplacement_transition import KERNELS
from .review import LEAVE
from .review_record import REVIEW

PLACEMENT = "placement"


class DataPlacementEnv(ClusterEnv):
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
    rewards: ClassVar[Mapping[str, int]] = {**REGION_REWARDS, PLACEMENT: JCT}  # its own is written by Python

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

    def _stepper(self, rows: Rows) -> Stepper:
        return Stepper(rows, self.part, KERNELS.step_rows, REVIEW)

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        super().join(stepper, row)
        self.interface.share(lambda: stepper.solvers_of(row))
        stepper.answers[row] = self.interface.answer
        if self.reward == PLACEMENT:
            stepper.reward_writers[row] = self._write_placement_reward

    def _write_placement_reward(self) -> None:
        w = self.interface.raw
        self._outcome[REWARD] = (w["paid_cost"] - w["table_cost"]) / w["first_table_cost"]
        w["paid_cost"] = w["table_cost"]

    def act_of(self, policy: Decider) -> Any:
        """The action that plays the next decision of `policy`; see `ClusterEnv`.

        InputError: the policy needs tables in every region, which it lacks here; InvalidDecision: no action stands for
        it.
        """
        if getattr(policy, "tables_everywhere", False):
            bound = f"policy {getattr(policy, 'name', policy)!s}: a bound, for which every table lies in every region"
            expected = "another in an environment, or this one as its reference=, or in clustergym evaluate"
            raise InputError(f"{bound}; expected {expected}")
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self.player = getattr(policy, "name", "")
        decision = self.interface.next_decision(policy)
        self.simulator.use(self.rule)
        rows = self.stepper.rows
        run = rows.records, rows.windows, rows.solvers, self.row
        self.stepper.call(KERNELS.turn, *run, self._features, self._mask)
        return self._said(self.interface.action(decision))

    def as_text(self) -> str:
        """The cluster now, then the places of tables."""
        from ..rendering.scenes.table_scene import table_lines

        return "\n".join([super().as_text(), "", *table_lines(self.simulator)])

    def as_picture(self) -> np.ndarray:
        """The places of tables, uint8 (H, W, 3)."""
        from ..rendering.drawing.pen import SIZE
        from ..rendering.pictures.table_picture import draw_tables

        return draw_tables(self.simulator, SIZE, self.seen(), self.interface.offered)

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`: the decision of `policy` about the offered table, even out of its own order."""
        self._expect_reset()
        self.simulator.expect_decider(policy)
        decision = self.interface.decision_about_offered(policy)
        self.simulator.use(self.rule)
        action = np.array([LEAVE], np.int64) if decision is None else self.interface.action(decision)
        return self._said(action), self._features.copy(), True

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        return {**super().python_state(), "instant": self.interface.python_state()}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        super().take_python_state(python_state)
        self.interface.take_python_state(python_state["instant"])


class DataPlacementVectorEnv(ClusterVectorEnv):
    """N environments `DataPlacementEnv`, stepped by one kernel call."""

    env_class = DataPlacementEnv
