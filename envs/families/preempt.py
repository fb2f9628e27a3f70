"""Stop a running job, which waits anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...simulator.base.decisions import Preempt
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..window import can_stop, running_candidate, scaled_gpus
from .family import Family


@kernel
def mark(s, w, m, first):
    """Modify `w`: jobs can be stopped while others wait."""
    if not may_act(s, w):
        return
    for slot in range(w.running_shown):
        if can_stop(s, w.running_job[slot]):
            w.legal[running_candidate(w, slot, first)] = 1
            w.can_act = 1


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


@kernel
def acts_beyond(s, w):
    """True if a job that the window does not show could be stopped."""
    if may_act(s, w) and s.running > w.running_slots > 0:
        for i in range(s.running):
            if can_stop(s, s.runner[i]):
                return True
    return False


class Preemption(Family):
    """Stop a running job while others wait."""

    name, table, kinds, stands_for = "preempt", "running", ("preempt",), (Preempt,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act, acts_beyond = staticmethod(may_act), staticmethod(acts_beyond)

    def actions_for(self, window: Any, decision: Preempt) -> Iterator[tuple[int, ...]]:
        """The only one."""
        yield (0,)

    def hint(self, window: Any, decision: Preempt, likely: list[Any] | None) -> str:
        """When jobs can be stopped."""
        if likely:
            return ""
        if not window.window.preemption:
            return "; give the environment preemption=True"
        if not window.simulator.state.waiting:
            return "; stop jobs only while others wait"
        return "; leave jobs alone that have started, or lost their GPUs, at this instant, or whose lease runs"
