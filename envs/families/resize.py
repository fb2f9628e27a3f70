"""Resize a running job: larger passes, for example when a partner has left, or another number of GPUs if elastic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...simulator.base.decisions import Resize
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.resizing import resize, set_passes, wider_passes
from ..window import can_stop, running_candidate
from .family import Family
from .share import HINT_EXPONENTS, OFFER_COLUMNS, admit_exponents, exponent_of
from .share_gangs import can_resize, find_resized, most_size_exponent, wider_exponent_taken, wider_exponents_of
from .share_offers import describe_wider


@kernel
def mark(s, w, m, first):
    """Modify `w`: elastic jobs, and those with larger passes. The latter ask an agent only when a partner has left."""
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        here = running_candidate(w, slot, first)
        if w.elastic and can_stop(s, job) and can_resize(s, job):
            w.legal[here] = 1
            w.can_act = 1
            admit_exponents(w, 0, most_size_exponent(s, job))
        if not w.elastic and _may_widen(s, job):
            w.legal[here] = 1
            w.can_act |= s.is_eased[job]
            least, most = wider_exponents_of(s, job)
            admit_exponents(w, least, most)


@kernel
def _may_widen(s, job):
    return wider_passes(s, job) > 0 and can_stop(s, job)


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write the job as it runs; if it gets larger passes, with the largest that fit."""
    offer[to.resize] = offer[to.takes_second] = 1.0
    offer[to.tier] = shown[of.tier]
    offer[to.slowdown] = shown[of.slowdown]
    offer[to.suffered] = shown[of.suffered]
    offer[to.time_left] = shown[of.time_left]
    offer[to.gpus] = shown[of.gpus]
    offer[to.free_after] = w.free_share
    if not w.elastic:
        describe_wider(s, w, job, wider_passes(s, job), offer[to.tier : to.tier + OFFER_COLUMNS])


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: resize a job; True if to another sub-batch, or number of GPUs, than asked for."""
    exponent = action[1]
    if not w.elastic:
        nearest = wider_exponent_taken(s, job, exponent)
        set_passes(s, job, s.batch[job] >> nearest)
        return nearest != exponent
    is_asked = find_resized(s, w, job, exponent)
    resize(s, job, -(-s.batch[job] * s.gpus[job] // s.gang_size))
    return not is_asked


@kernel
def may_act(s, w):
    """True if jobs are elastic, or partners have left some."""
    return w.elastic or s.n_eased > 0


@kernel
def acts_beyond(s, w):
    """True if a job that the window does not show could get larger passes since a partner has left."""
    if s.running > w.running_slots > 0:
        for i in range(s.n_eased):
            if _may_widen(s, s.eased[i]):
                return True
    return False


class Resizing(Family):
    """Give a running job larger passes, or an elastic one 2^e GPUs; e is the part of an action of `Sharing`."""

    name, table, kinds, stands_for = "resize", "running", ("resize",), (Resize,)
    fields = (("elastic", "i8"),)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act, acts_beyond = staticmethod(may_act), staticmethod(acts_beyond)

    def __init__(self, elastic: bool) -> None:
        self.elastic = elastic

    def set_up(self, window: Any) -> None:
        """Modify the window: whether jobs are elastic."""
        window.elastic = self.elastic

    def actions_for(self, window: Any, decision: Resize) -> Iterator[tuple[int, ...]]:
        """Of an elastic job every number of GPUs, since a policy may name other ones."""
        for exponent in range(window.parts[1]) if self.elastic else (exponent_of(window, decision),):
            yield 0, exponent

    def hint(self, window: Any, decision: Resize, likely: list[Any] | None) -> str:
        """Which sub-batches there are."""
        return HINT_EXPONENTS if likely and decision.gpus == likely[0].gpus else ""
