"""Move a running job: to a better tier, or to the fullest place with room at its own (move_search.py)."""

from __future__ import annotations

from typing import Any

from ...simulator.base.decisions import Migrate
from ...simulator.base.tiers import NETWORK
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.running.gpu_allocation import tier_of_gang
from ..window import MAX_SLOTS, is_forced, running_candidate, scaled_slowdown, write_forced
from .family import Family
from .make_room import may_act
from .move_search import can_move, find_defragment, find_fuller, find_move
from .start import slowdown_of_gang, target_of

BETTER, FULLER = 0, 1  # kinds


@kernel
def mark(s, w, m, first):
    """Modify `w`: jobs that can move, and the tier to which."""
    if not may_act(s, w):
        return
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        if not can_move(s, job):
            continue
        here = running_candidate(w, slot, first)
        if job == w.forced_job:
            w.legal[here + w.forced_kind] = 1
            w.can_act = 1
        if _find(s, w, job, BETTER):
            w.legal[here + BETTER] = 1
            w.can_act = 1
            w.move_tier[slot] = tier_of_gang(s)
            w.move_slowdown[slot] = slowdown_of_gang(s, job)
        if find_fuller(s, job, w.most_machine, w.most_rack):
            w.legal[here + FULLER] = 1
            w.can_act = 1


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the place that the job would move to; in its row, the better tier."""
    if kind == BETTER:
        better = w.move_tier[slot]
        is_shaped = s.net_models > 0  # then a gang has a slowdown of its own at a tier
        offer[to.migrate] = 1.0
        offer[to.slowdown] = w.move_slowdown[slot] if is_shaped else tier_slowdown(s, job, better)
        offer[to.tier] = shown[of.better_tier] = better / NETWORK
    else:
        offer[to.defragment] = 1.0
        offer[to.slowdown] = shown[of.slowdown]
        offer[to.tier] = shown[of.tier]
    offer[to.time_left] = shown[of.time_left]
    offer[to.gpus] = shown[of.gpus]
    offer[to.free_after] = w.free_share


@kernel
def tier_slowdown(s, job, tier):
    """Slowdown of a job at a tier, as a feature, where that says all."""
    return scaled_slowdown(s.tier_factor[s.profile[job], tier] * s.compute_iteration_s[job] / s.base_iteration_s[job])


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: move the job."""
    _find(s, w, job, kind)
    lifecycle.migrate(s, job)
    return False


@kernel
def _find(s, w, job, kind):
    """Modify `s.gang`: the GPUs to which a running job would move; False if there are none."""
    if is_forced(w, job, kind):
        write_forced(s, w)
        return True
    return find_move(s, w, job) if kind == BETTER else find_defragment(s, job)


@kernel
def acts_beyond(s, w):
    """True if a job that the window does not show could move."""
    if may_act(s, w) and s.running > w.running_slots > 0:
        for i in range(s.running):
            if can_move(s, s.runner[i]) and find_move(s, w, s.runner[i]):
                return True
    return False


class Moving(Family):
    """Move a running job to a better tier, or to the fullest place with room at its own.

    The window has the most free GPUs of a machine, `most_machine`, and of a rack, `most_rack`.
    """

    name, table, kinds, stands_for = "move", "running", ("migrate", "defragment"), (Migrate,)
    fields = (
        ("move_tier", "i8", (MAX_SLOTS,)),  # to which a running job could move now
        ("move_slowdown", "f8", (MAX_SLOTS,)),
    )
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act, acts_beyond = staticmethod(may_act), staticmethod(acts_beyond)

    def hint(self, window: Any, decision: Migrate, likely: list[Any] | None) -> str:
        """When jobs can move."""
        if likely:
            return "; give it the policy's placer" if likely[0].gpus != decision.gpus else ""
        if not window.window.preemption:
            return "; give the environment preemption=True"
        if not window.simulator.state.migrates and not window.simulator.state.waiting:
            return "; give the environment migration=True, or move jobs only while others wait"
        return "; leave jobs alone that have started, or lost their GPUs, at this instant, or whose lease runs"


def kind_of(target: int, tier: int) -> int:
    """The kind that stands for a move to a target (`start.target_of`) of a job at a tier."""
    return BETTER if target < target_of(tier) else FULLER
