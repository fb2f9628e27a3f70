"""Geo-v0: the region and cluster of each workload, and the workloads that it displaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...policies.mast.mast_record import MAST
from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.engine.base_simulator import Decider
from ...simulator.workloads import Workload
from ..batch import Rows, Stepper
from ..cluster_env import ClusterEnv
from ..reward import REGION_REWARDS, weigh
from ..vector import ClusterVectorEnv
from .geo_interface import BRINGS, ROUND_S, TABLES, GeoInterface
from .geo_transition import KERNELS


class GeoEnv(ClusterEnv):
    """Decide for waiting workloads in which region and cluster they run, with or without preempting others.

    Source       MAST (global scheduling of ML training across regions), its fast path; docs/environments/geo.md.
    Observation  cluster (14,), queue (slots x 18,), running (running_slots x 10,), regions (region_slots x 12,),
                 candidates ((1 + (2 K + 1 + B) slots) x 24,); K = clusters, B = brings.
    Action       Discrete(1 + S slots), S = 2 K + 1 + B. 0: no more now, advance. 1 + S i + 2 k + p: the workload
                 in waiting slot i starts in the k-th cluster offered (p = 0), or others leave for it (p = 1);
                 1 + S i + 2 K: it is held until units are freed; 1 + S i + 2 K + 1 + b: the tables that it lacks are
                 copied to the b-th region that it is offered. The cluster is that of its first part; RMS's best plan
                 places it there and the others in the same region, and chooses the workloads that leave.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        topology: as everywhere; it must have regions with storage.
        workload: as everywhere, of jobs of regions (`mast-like`, or a file).
        network: `none`: communication between a workload's parts is not simulated.
        tables: decides about tables every `tables_every_s`: the name of a policy with a slow half, such an object, or
            None. Tables of workloads that no region can run are copied in any case.
        tables_every_s: seconds, > 0.
        round: seconds; decision points come at its multiples only (0: at every event).
        clusters: K, 1 to 16: clusters that a waiting workload is offered, those with the best scores.
        brings: B, 0 to 8: regions to which a waiting workload may have its tables copied, those with the least demand
            for its first part's type over their supply; 0: only tables that no region has together are copied.
        region_slots: regions that there is room for in the observation, 1 to 64; a cluster with more is refused.
        slots, running_slots: waiting and running workloads in the window, 1 to 256 and 0 to 256.
        order: of the window: `priority`, then by arrival; `arrival`; `shortest` (isolated run time) or `smallest`
            (units).
        preempts: workloads that a start may stop: `lower`, those whose priority counts for less; `any`, all that did
            not start at the same instant, those with most time left x GPUs first, as far as that is known.
        skip_idle: pass over decision points where only advancing or holding is legal, except the first of an episode.
        reward: also `queueing` (minus the mean time without units, in mean isolated run times); `slo` is minus the
            share of workloads with a limit that start too late.
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
        config, common_options = self.configured(topology, network, given)
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
        weigh(interface.window, config.tariff, common_options.reward, cost_weight, carbon_weight, level_weights)
        super().__init__(config.build(interface.clock), interface, workload, common_options)

    def _stepper(self, rows: Rows) -> Stepper:
        return Stepper(rows, self.part, KERNELS.step_rows, MAST)

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        super().join(stepper, row)
        stepper.answers[row] = self.interface.answer
        self.interface.solvers_in = partial(stepper.solvers_of, row)

    def act_of(self, policy: Decider) -> Any:
        """The action that plays the next turn of `policy`; see `ClusterEnv` and `GeoInterface`.

        The next steps pass over instants at which it starts and holds nothing, and carry out what it decides about
        tables, until a step plays another action than this method returned, or without asking it. InputError: the
        policy needs tables in every region, which it lacks here.
        """
        return self._act_of(policy, is_lesson=False)

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`; it also shows instants where an agent is asked and `policy` does nothing.

        There is nothing to learn where the turn of `policy` is no candidate of its own.
        """
        action = self._act_of(policy, is_lesson=True)
        return action, self._features.copy(), not self._window.is_turned and self._is_said

    def _act_of(self, policy: Decider, is_lesson: bool) -> Any:
        if getattr(policy, "tables_everywhere", False):
            bound = f"policy {getattr(policy, 'name', policy)!s}: a bound, for which every table lies in every region"
            expected = "another in an environment, or this one as its reference=, or in clustergym evaluate"
            raise InputError(f"{bound}; expected {expected}")
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self.player = getattr(policy, "name", "")
        self.interface.follow(policy, is_lesson)
        self._turn()
        return self._said(np.array([self.interface.said()], np.int64))

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        return {**super().python_state(), "instant": self.interface.python_state()}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        super().take_python_state(python_state)
        self.interface.take_python_state(python_state["instant"])


class GeoVectorEnv(ClusterVectorEnv):
    """N environments `GeoEnv`, stepped by one kernel call; Python decides about tables."""

    env_class = GeoEnv
