"""The window of Sharing-v0 on any simulator."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Decision, Hold, Preempt, Resize, Start
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.simulator import Simulator
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part
from ..window import force_gpus, running_candidate, unforce_gpus, waiting_candidate
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .gangs import FREE_KIND
from .sharing_transition import KERNELS
from .sharing_window import MAX_EXPONENTS, MAX_PARTNERS, PER_RUNNING, PREEMPT_KIND, RESIZE_KIND, starts_of, window_dtype

PARTNERS, EXPONENTS = 2, 16


class SharingInterface(AgentInterface):
    """The window of Sharing-v0; the arguments are those of `SharingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    kernels = KERNELS

    def __init__(
        self, *, partners: int = PARTNERS, exponents: int = EXPONENTS, elastic: bool = False, **window: Any
    ) -> None:
        check_range("partners", partners, 0, MAX_PARTNERS)
        check_range("exponents", exponents, 1, MAX_EXPONENTS)
        super().__init__(
            kinds=(4 + partners, PER_RUNNING), others=(Part(exponents, CANDIDATES.takes_second),), **window
        )
        self.window.partners, self.window.n_exponents, self.window.elastic = partners, exponents, elastic

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        simulator.list_partners()
        super().attach(simulator)
        unforce_gpus(self.raw)

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: "free" or "resize" stands for the GPUs of a policy; InvalidDecision: illegal ones."""
        unforce_gpus(self.raw)
        if isinstance(decision, Start):
            check_gang(self.simulator, decision)
            force_gpus(self.raw, decision.job, FREE_KIND, decision.gpus)
        elif isinstance(decision, Resize):
            force_gpus(self.raw, decision.job, RESIZE_KIND, decision.gpus)

    def actions_for(self, decision: Any) -> Iterator[tuple[int, ...]]:
        """The actions (candidate, sub-batch exponent) that may play `decision`."""
        w = self.window
        if isinstance(decision, Start):
            first, exponent = waiting_candidate(w, slot_of(w.waiting_job, decision), 0), self._exponent(decision)
            others, gpu_load = range(FREE_KIND + 1, starts_of(w)), self.simulator.raw.record["gpu_load"]
            shares = any(gpu_load[gpu] > 0 for gpu in decision.gpus)
            for kind in (*others, FREE_KIND) if shares else (FREE_KIND, *others):
                yield first + kind, exponent
        elif isinstance(decision, Hold):
            yield waiting_candidate(w, slot_of(w.waiting_job, decision), starts_of(w)), 0
        elif isinstance(decision, Preempt):
            yield running_candidate(w, slot_of(w.running_job, decision), PREEMPT_KIND), 0
        elif isinstance(decision, Resize):
            candidate = running_candidate(w, slot_of(w.running_job, decision), RESIZE_KIND)
            for exponent in range(int(w.n_exponents)) if w.elastic else (self._exponent(decision),):
                yield candidate, exponent

    def hint(self, decision: Any, likely: list[Any] | None) -> str:
        """What to do where no action plays `decision`."""
        if isinstance(decision, Hold) and (decision.until_s, decision.tier) != (None, None):
            return "; a hold here lasts until the next offer, for no tier"
        if not likely or not isinstance(decision, Start | Resize):
            return ""
        if decision.gpus != likely[0].gpus:
            return "; give it the policy's placer, or more partners" if isinstance(decision, Start) else ""
        return "; a sub-batch is the batch, halved until it fits or more often; or give it more exponents"

    def _exponent(self, decision: Start | Resize) -> int:
        """How often the batch is halved, at most as often as an action can say."""
        sub_batch = decision.sub_batch or check_gang(self.simulator, decision)[1]
        batch, exponent = int(self.simulator.raw.record["batch"][decision.job]), 0
        while batch >> exponent > sub_batch and exponent < self.parts[1] - 1:
            exponent += 1
        return exponent
