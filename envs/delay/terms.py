"""The rule of Delay-v0 for every policy: costs, rounds, leases, and delay timers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.rules.rule import Rule, Tuner

TUNER = Tuner()


def terms(
    *,
    placer: str = "tier",
    preemption_cost: Any = 0.0,
    round: float = 0.0,
    lease: float = 0.0,
    migration: bool = False,
    tuner: Any = TUNER,
) -> Rule:
    """The rule of an environment with these keyword arguments, as given or read from JSON; see `DelayEnv`."""
    if isinstance(tuner, Mapping):
        try:
            tuner = Tuner(**tuner)
        except TypeError:
            raise InputError(f"tuner = {dict(tuner)!r}: expected history, initial, deviation, floors") from None
    if not (tuner is None or isinstance(tuner, Tuner)):
        raise InputError(f"tuner = {tuner!r}: expected a Tuner, its arguments in a dict, or None")
    cost = tuple(preemption_cost) if isinstance(preemption_cost, list) else preemption_cost
    clock: dict[str, Any] = {"round": round, "lease": lease, "tuner": tuner, "advisory": tuner is not None}
    return Rule("fifo", placer=placer, preemption_cost=cost, migrates=migration, **clock)
