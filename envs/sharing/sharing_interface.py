"""The window of Sharing-v0 on any simulator: what an agent would see and may do there now."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Decision, Resize, Start
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.simulator import Simulator
from ..agent_interface import AgentInterface
from ..dictated import dictate, undictate
from ..observation_layout import Part
from .codec import decode, encode
from .gangs import FREE_KIND
from .observation import CANDIDATES, CLUSTER, QUEUE, RUNNING, SECOND_COLUMN
from .sharing_transition import turn
from .sharing_window import MAX_EXPONENTS, MAX_PARTNERS, PER_RUNNING, RESIZE_KIND, window_dtype

PARTNERS, EXPONENTS = 2, 16


class SharingInterface(AgentInterface):
    """The window of Sharing-v0; the arguments are those of `SharingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = (CLUSTER, QUEUE, RUNNING, CANDIDATES)
    turn = staticmethod(turn)

    def __init__(
        self,
        *,
        partners: int = PARTNERS,
        exponents: int = EXPONENTS,
        elastic: bool = False,
        **window: Any,
    ) -> None:
        check_range("partners", partners, 0, MAX_PARTNERS)
        check_range("exponents", exponents, 1, MAX_EXPONENTS)
        super().__init__(
            kinds=(4 + partners, PER_RUNNING),
            others=(Part(exponents, SECOND_COLUMN),),
            **window,
        )
        self.window.partners, self.window.n_exponents, self.window.elastic = partners, exponents, elastic

    def lay(self, simulator: Simulator) -> None:
        """Start looking at a run, whatever its state; its window is put into this one's order."""
        simulator.list_partners()
        super().lay(simulator)
        undictate(self.plain)

    def dictate(self, decision: Decision | None) -> None:
        """Modify the window: "free", or "resize", stands for the very GPUs that a policy names; None: for nobody's.

        Raises:
            InvalidDecision: the job cannot have them.
        """
        undictate(self.plain)
        if isinstance(decision, Start):
            check_gang(self.simulator, decision)
            dictate(self.plain, decision.job, FREE_KIND, decision.gpus)
        elif isinstance(decision, Resize):
            dictate(self.plain, decision.job, RESIZE_KIND, decision.gpus)

    def action(self, decision: Decision) -> np.ndarray:
        """The action (candidate, sub-batch exponent), int64 (2,), that plays `decision`; see `codec.encode`."""
        return encode(self.simulator, self.window, decision)

    def decision(self, action: Any) -> Decision:
        """The decision that an action stands for now; see `codec.decode`."""
        return decode(self.simulator, self.window, action)
