"""Hold a waiting job: until GPUs are freed, or for a while, in which it starts by itself where a tier has room."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...policies.dally import timer_end_s
from ...policies.loop.decision_loop import next_s
from ...policies.passes.tier_holds import hold_for_tier
from ...simulator.base.arguments import numbers
from ...simulator.base.decisions import Hold
from ...simulator.base.errors import InputError
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle import lifecycle
from ..window import waiting_candidate
from .family import Family

MAX_DELAYS = 32
UNTIL_OFFER, UNTIL_TIMER = 0, 1  # the first delay buckets
HOLD_TIERS = 2  # the third part of the action: the worst tier at which a hold starts by itself, machine or rack


@kernel
def mark(s, w, m, first):
    """Modify `w`: every waiting job can be held, if an event is to come."""
    more = next_s(s) < math.inf
    for slot in range(w.waiting_shown):
        w.legal[waiting_candidate(w, slot, first)] = more


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write a hold."""
    if is_new:
        offer[to.hold] = 1.0
        offer[to.time_left] = shown[of.time_left]
        offer[to.gpus] = shown[of.gpus]
    offer[to.free_after] = w.free_share


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: hold the job until GPUs are freed."""
    lifecycle.hold(s, job, math.inf)
    return False


@kernel
def carry_out_timed(s, w, m, slot, job, kind, action):
    """Modify `s`: hold the job, by delay bucket and tier; True if with another of them than asked for."""
    delay, tier = action[1], action[2]
    until_s, worst = hold_of(s, w, job, delay, tier)
    if until_s == math.inf:
        lifecycle.hold(s, job, until_s)
    else:
        hold_for_tier(s, job, until_s, worst)
    return delay < 0 or delay >= w.n_delays or worst != MACHINE + tier


@kernel
def hold_of(s, w, job, delay, tier):
    """End of a hold, seconds, infinity: the next offer, and the worst tier of a start by itself; both are clipped."""
    delay = min(max(delay, 0), w.n_delays - 1)
    tier = MACHINE + min(max(tier, 0), HOLD_TIERS - 1)
    if delay == UNTIL_TIMER:
        return timer_end_s(s, job, tier), tier
    return s.now_s + w.delay_s[delay], tier


@kernel
def write_parts(w, mask, at):
    """Write the mask of delay buckets and tiers from `at` on: where no job can be held, only the first of each."""
    holdable = w.waiting_shown > 0 and w.legal[waiting_candidate(w, 0, w.per_waiting - 1)] != 0  # all can, or none
    for i in range(at, at + w.n_delays + HOLD_TIERS):
        mask[i] = holdable
    mask[at] = 1
    mask[at + w.n_delays] = 1


class UntilOffer(Family):
    """Hold a job until GPUs are freed."""

    name, table, kinds, stands_for = "hold", "queue", ("hold",), (Hold,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)

    def hint(self, window: Any, decision: Hold, likely: list[Any] | None) -> str:
        """That it lasts until the next offer."""
        is_plain = (decision.until_s, decision.tier) == (None, None)
        return "" if is_plain else "; a hold here lasts until the next offer, for no tier"


class TimedHold(UntilOffer):
    """Hold a job until GPUs are freed, until its own delay timer runs out, or for one of `delays`, seconds > 0.

    Its candidate is the last one of a row; two parts of an action belong to it: the delay bucket, and the tier.
    """

    fields = (("n_delays", "i8"), ("delay_s", "f8", (MAX_DELAYS,)))
    carry_out = staticmethod(carry_out_timed)

    def __init__(self, delays: tuple[float, ...]) -> None:
        delays = numbers("delays", delays)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        self.delay_s = (math.inf, math.inf, *delays)

    def set_up(self, window: Any) -> None:
        """Modify the window: its delays."""
        window.n_delays = len(self.delay_s)
        window.delay_s[: len(self.delay_s)] = self.delay_s

    def actions_for(self, window: Any, decision: Hold) -> Iterator[tuple[int, ...]]:
        """The timer's bucket, and those whose delay is near the decision's."""
        if decision.until_s is None:
            yield 0, UNTIL_OFFER, 0
        elif decision.tier in (MACHINE, RACK):
            delay_s = _delay_s(window, decision)
            near = [bucket for bucket, one_s in enumerate(self.delay_s) if math.isclose(one_s, delay_s)]
            for bucket in (UNTIL_TIMER, *near):
                yield 0, bucket, decision.tier - MACHINE

    def hint(self, window: Any, decision: Hold, likely: list[Any] | None) -> str:
        """Which holds there are."""
        if decision.until_s is None or decision.tier not in (MACHINE, RACK):
            tiers = f"the tier {MACHINE} (machine) or {RACK} (rack)"
            return f"; a hold until the next offer has no tier here, and any other starts by itself at {tiers}"
        known = ", ".join(f"{delay:g}" for delay in self.delay_s[UNTIL_TIMER + 1 :])
        return f"; give it delays=(..., {_delay_s(window, decision):g}), not only {known}" if likely else ""


def _delay_s(window: Any, decision: Hold) -> float:
    return float(decision.until_s or math.inf) - float(window.simulator.raw.record["now_s"])
