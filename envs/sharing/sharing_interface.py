"""The window of Sharing-v0 on any simulator."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Advance, Decision, Hold, Preempt, Resize, Start
from ...simulator.base.errors import InvalidDecision
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.simulator import Simulator
from ...simulator.events.initialise import gpus_of
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part
from ..window import choice_of, force_gpus, running_candidate, unforce_gpus, waiting_candidate
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .gangs import (
    FREE_KIND,
    exponent_taken,
    exponents_of,
    find_resized,
    find_start,
    wider_exponent_taken,
    wider_exponents_of,
)
from .sharing_transition import turn
from .sharing_window import MAX_EXPONENTS, MAX_PARTNERS, PER_RUNNING, PREEMPT_KIND, RESIZE_KIND, starts_of, window_dtype

PARTNERS, EXPONENTS = 2, 16


class SharingInterface(AgentInterface):
    """The window of Sharing-v0; the arguments are those of `SharingEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    turn = staticmethod(turn)

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

    def action(self, decision: Decision) -> np.ndarray:
        """The action (candidate, sub-batch exponent), int64 (2,), that plays `decision` in the present window.

        InvalidDecision: the job is not shown, no candidate has these GPUs, or the sub-batch is no halving of the batch.
        """
        simulator, window = self.simulator, self.window
        if isinstance(decision, Advance):
            return np.zeros(2, np.int64)
        if isinstance(decision, Start) and decision.batch is None:
            first = waiting_candidate(window, slot_of(window.waiting_job, decision), 0)
            kind = _kind_of(simulator, window, decision, first)
            s, job = simulator.state, decision.job
            least, most = exponents_of(s, job)  # on the GPUs in `gang`
            exponent = _halvings(int(s.batch[job]), decision, int(least), int(most), int(window.n_exponents))
            return np.array([first + kind, exponent], np.int64)
        if isinstance(decision, Hold) and decision.until_s is None:
            candidate = waiting_candidate(window, slot_of(window.waiting_job, decision), starts_of(window))
        elif isinstance(decision, Preempt | Resize) and getattr(decision, "batch", None) is None:
            kind = PREEMPT_KIND if isinstance(decision, Preempt) else RESIZE_KIND
            candidate = running_candidate(window, slot_of(window.running_job, decision), kind)
        else:
            raise InvalidDecision(f"{decision!r}: no candidate of this environment stands for it")
        if not window.legal[candidate]:
            raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now")
        exponent = _resized_exponent(simulator, window, decision) if isinstance(decision, Resize) else 0
        return np.array([candidate, exponent], np.int64)

    def decision(self, action: Any) -> Decision:
        """The decision of `action` (candidate, sub-batch exponent); an exponent out of range becomes the nearest."""
        simulator, window = self.simulator, self.window
        candidate, exponent = int(action[0]), int(action[1])
        s = simulator.state
        if not 0 < candidate < window.candidates or not window.legal[candidate]:
            return Advance()
        is_waiting, _, job, kind = choice_of(window, candidate)
        if is_waiting and kind == starts_of(window):
            return Hold(job)
        if is_waiting:
            find_start(s, window, job, kind)
            gpus = s.gang[: s.gang_size].tolist()
            return Start(job, gpus, int(s.batch[job]) >> exponent_taken(s, job, exponent))
        if kind == PREEMPT_KIND:
            return Preempt(job)
        if not window.elastic:
            sub_batch = int(s.batch[job]) >> wider_exponent_taken(s, job, exponent)
            return Resize(job, gpus_of(s, job), sub_batch=sub_batch)
        find_resized(s, window, job, exponent)
        return Resize(job, s.gang[: s.gang_size].tolist())


def _kind_of(simulator: Simulator, window: np.record, decision: Start, first: int) -> int:
    """Modify `gang`: the kind of the first candidate with the GPUs of `decision`."""
    s = simulator.state
    others = range(FREE_KIND + 1, starts_of(window))
    shares = any(s.gpu_load[gpu] > 0 for gpu in decision.gpus)
    for kind in (*others, FREE_KIND) if shares else (FREE_KIND, *others):
        found = window.legal[first + kind] and find_start(s, window, decision.job, kind)
        if found and tuple(s.gang[: s.gang_size].tolist()) == decision.gpus:
            return kind
    hint = "give the environment the policy's placer, or more partners"
    raise InvalidDecision(f"{decision!r}: none of the job's legal candidates has these GPUs; {hint}")


def _resized_exponent(simulator: Simulator, window: np.record, decision: Resize) -> int:
    s = simulator.state
    if not window.elastic:
        least, most = wider_exponents_of(s, decision.job)
        return _halvings(int(s.batch[decision.job]), decision, int(least), int(most), int(window.n_exponents))
    for exponent in range(min(int(window.n_exponents), MAX_EXPONENTS)):
        find_resized(s, window, decision.job, exponent)
        if tuple(s.gang[: s.gang_size].tolist()) == decision.gpus:
            return exponent
    raise InvalidDecision(f"{decision!r}: no number of GPUs that this environment offers gives these")


def _halvings(batch: int, decision: Start | Resize, least: int, most: int, exponents: int) -> int:
    """The number of halvings of the batch for the sub-batch of `decision`: `least` to `most`, below `exponents`."""
    if decision.sub_batch in (None, batch >> least):  # what a lower exponent becomes, too
        return min(least, exponents - 1)
    for exponent in range(least, min(most, exponents - 1) + 1):
        if batch >> exponent == decision.sub_batch:
            return exponent
    halved = f"the batch of {batch} samples a GPU, halved {least} to {most} times"
    raise InvalidDecision(f"{decision!r}: its sub-batch is not {halved}; or give the environment more exponents")
