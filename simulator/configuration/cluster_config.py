"""What a simulated GPU cluster is, as one value: `Simulator` simulates it, and whoever else needs one asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from ..base.arguments import seconds
from ..network.simulated import Pace
from ..sharing.sharing_model import Sharing
from .cluster_options import REGIONS, SHARING, UNSAID, SimulatedCluster
from .network_choice import Contention, load_network, network_for


@dataclass(frozen=True)
class ClusterConfig(SimulatedCluster):
    """A GPU cluster.

    Args:
        network: the network fidelity (`"none"`, `"penalty:table=chronus"`) or a `Network`; text that does not say what
            `duration_s` means (network/isolated.py) takes it as the semantics does.
        sharing: several jobs a GPU; None: a job has its GPUs to itself.
        tables_every_s: in regions, seconds from one instant at which tables may move to the next: there is a decision
            point then, although no job waits (`ClusterView.tables_due`), the first at the first arrival; None: none.
        pace: who says how fast a job runs on its GPUs (network/simulated.py); None: the network's, if it has one, else
            what the workload, the network and the partners give.

    Raises:
        InputError: a value that does not fit.
    """

    simulator: ClassVar[str] = "clustergym.simulator.engine.simulator:Simulator"

    sharing: Sharing | None = field(default=None, metadata={"group": Sharing, "feature": SHARING})
    tables_every_s: float = field(default=float("inf"), metadata={"feature": REGIONS})
    pace: Pace | None = field(default=None, hash=False, metadata=UNSAID)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            sharing=None if self.sharing is None else Sharing.load(self.sharing),
            tables_every_s=seconds("tables_every_s", self.tables_every_s),
        )

    def check(self) -> None:
        """See `SimulatedCluster`."""
        if self.sharing is not None:
            self.sharing.slowdowns  # noqa: B018 - opened when it is asked for

    def on_network_for(self, policy: Any) -> Self:
        """The cluster on the network on which a policy is played; see `network_for`."""
        network = load_network(self.network, self.semantics.duration)
        return replace(self, network=network_for(policy, network))

    def for_policy(self, policy: Any) -> Self:
        """The cluster as it is while a policy plays: on its network, and elastic jobs run as fast as it says.

        Raises:
            InputError: the network is not one on which it plays.
        """
        there = self.on_network_for(policy)
        if self.pace is not None or isinstance(there.network, Contention):
            return there
        return replace(there, pace=policy.pace(Sharing.gpu if self.sharing is None else self.sharing.gpu))
