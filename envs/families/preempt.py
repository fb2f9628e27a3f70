"""Stop a running job, which waits anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...simulator.base.decisions import Preempt
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..window import can_stop, running_candidate, scaled_gpus
from .family import Family


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job as it runs, and the GPUs that it frees."""
    offer[to.preempt] = 1.0
    offer[to.slowdown] = shown[of.slowdown]
    offer[to.time_left] = shown[of.time_left]
    offer[to.gpus] = shown[of.gpus]
    offer[to.tier] = shown[of.tier]
    offer[to.free_after] = scaled_gpus(w, s.free_gpus + s.gpus[job])


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: stop the job."""
    lifecycle.preempt(s, job)
    return False


@kernel
def may_act(s, w):
    """True if jobs wait, and others may be stopped for them."""
    return w.preemption and s.waiting > 0


class Stops(NamedTuple):
    """The kernels of a family whose jobs can be stopped while `may_act` holds."""

    mark: Callable[..., Any]
    may_act: Callable[..., Any]
    acts_beyond: Callable[..., Any]


def stopping(may_act: Callable[..., Any]) -> Stops:
    """The kernels that mark running jobs while `may_act` (s, w) holds."""

    @kernel
    def mark(s, w, m, first):
        if not may_act(s, w):
            return
        for slot in range(w.running_shown):
            if can_stop(s, w.running_job[slot]):
                w.legal[running_candidate(w, slot, first)] = 1
                w.can_act = 1

    @kernel
    def acts_beyond(s, w):
        if may_act(s, w) and s.running > w.running_slots > 0:
            for i in range(s.running):
                if can_stop(s, s.runner[i]):
                    return True
        return False

    return Stops(mark, may_act, acts_beyond)


class Preemption(Family):
    """Stop a running job while others wait."""

    name, table, kinds, stands_for = "preempt", "running", ("preempt",), (Preempt,)
    mark, may_act, acts_beyond = map(staticmethod, stopping(may_act))
    describe, carry_out = staticmethod(describe), staticmethod(carry_out)

    def hint(self, window: Any, decision: Preempt, likely: list[Any] | None) -> str:
        """When jobs can be stopped."""
        if likely:
            return ""
        if not window.window.preemption:
            return "; give the environment preemption=True"
        if not window.simulator.state.waiting:
            return "; stop jobs only while others wait"
        return "; leave jobs alone that have started, or lost their GPUs, at this instant, or whose lease runs"
