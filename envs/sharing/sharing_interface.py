"""The window of Sharing-v0 on any simulator."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.decisions import Decision, Resize, Start
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.simulator import Simulator
from ..agent_interface import AgentInterface
from ..families.composing import composed, window_of
from ..families.hold import UntilOffer
from ..families.resize import Resizing
from ..families.share import MOST_STARTS, Sharing, write_exponents
from ..families.share_gangs import FREE_KIND
from ..observation_layout import Part
from ..window import force_gpus, unforce, unforce_gpus
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .observation import FIELDS, TABLES, SharedPreemption, look, observe_cluster

PARTNERS, EXPONENTS = 2, 16
FAMILIES = (Sharing, UntilOffer, SharedPreemption, Resizing)
KERNELS = composed(
    FAMILIES,
    TABLES,
    CANDIDATES,
    look=look,
    cluster=observe_cluster,
    cluster_columns=len(CLUSTER),
    parts=write_exponents,
    forget=unforce,
)


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    return window_of(FAMILIES, FIELDS, kinds=MOST_STARTS + 3)


class SharingInterface(AgentInterface):
    """The window of Sharing-v0; the arguments are those of `SharingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    kernels = KERNELS

    def __init__(
        self, *, partners: int = PARTNERS, exponents: int = EXPONENTS, elastic: bool = False, **window: Any
    ) -> None:
        families = Sharing(partners, exponents), UntilOffer(), SharedPreemption(), Resizing(elastic)
        super().__init__(families=families, others=(Part(exponents, CANDIDATES.takes_second),), **window)

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        simulator.list_partners()
        super().attach(simulator)

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: "free" or "resize" stands for the GPUs of a policy; InvalidDecision: illegal ones."""
        unforce_gpus(self.raw)
        if isinstance(decision, Start):
            check_gang(self.simulator, decision)
            force_gpus(self.raw, decision.job, FREE_KIND, decision.gpus)
        elif isinstance(decision, Resize):
            force_gpus(self.raw, decision.job, 0, decision.gpus)
