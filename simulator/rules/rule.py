"""A compiled scheduler as a value: an order, a head rule, a placer, and what preemption, rounds and leases cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..kernels import codes

ORDERS = {
    "fifo": codes.FIFO,
    "sjf": codes.SJF,
    "srtf": codes.SRTF,
    "srsf": codes.SRSF,
    "las": codes.LAS,
    "random": codes.RANDOM,
}
PLACERS = {
    "count": codes.COUNT,
    "consolidated": codes.CONSOLIDATED,
    "tier": codes.TIER,
    "skew": codes.SKEW,
    "random": codes.SCATTER,
}
PREEMPTIVE_ORDERS = ("srtf", "srsf", "las")
COST_SPLIT_GPUS = 8
SHORTEST_S = 0.001  # of rounds and leases: shorter ones would be a step a nanosecond


@dataclass(frozen=True)
class Rule:
    """What one compiled scheduler does; the words are those of the command line.

    Args:
        order: who comes first: `fifo` (arrival), `sjf` (isolated run time), `srtf` (isolated run time left), `srsf`
            (GPU-seconds left), `las` (attained service), `random` (a random order, drawn from the seed).
        head: `strict` (nobody passes a job that does not fit) or `skip` (every job in order that fits starts).
        placer: which GPUs: `count`, `consolidated`, `tier`, `skew` (consolidated for skewed models, else count) or
            `random`; rules/placers.py has the definitions.
        preemption_cost: seconds without progress when a stopped or moved job starts anew; one number, or two: for
            gangs of up to 8 GPUs and for larger ones.
        thresholds: GPU-seconds of attained service at which a job is demoted, ascending; empty: `las` orders by
            attained service itself.
        quantum: seconds; demotions happen at its multiples (0: at once).
        round: seconds; passes happen only at its multiples (0: at every event).
        lease: seconds; a started job cannot be stopped before its lease ends, and can then, whatever the order
            (0: no leases).
    """

    order: str
    head: str = "skip"
    placer: str = "count"
    preemption_cost: tuple[float, ...] = (0.0,)
    thresholds: tuple[float, ...] = ()
    quantum: float = 1.0
    round: float = 0.0
    lease: float = 0.0

    def __post_init__(self) -> None:
        for name in ("preemption_cost", "thresholds"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        _choice("order", self.order, ORDERS)
        _choice("placer", self.placer, PLACERS)
        _choice("head", self.head, ("strict", "skip"))
        if len(self.preemption_cost) not in (1, 2):
            raise InputError(f"preemption_cost = {_slashed(self.preemption_cost)}: expected SECONDS or SMALL/LARGE")
        for name in ("preemption_cost", "thresholds"):
            for value in getattr(self, name):
                _not_negative(name, value)
        for name in ("quantum", "round", "lease"):
            (value,) = _numbers(name, getattr(self, name))
            _not_negative(name, value)
            if 0.0 < value < SHORTEST_S:
                raise InputError(f"{name} = {value:g}: expected 0, or at least {SHORTEST_S:g} seconds")
        if list(self.thresholds) != sorted(set(self.thresholds)):
            raise InputError(f"thresholds = {_slashed(self.thresholds)}: expected GPU-seconds in ascending order")
        if len(self.thresholds) >= codes.MAX_LEVELS:
            raise InputError(f"thresholds: {len(self.thresholds)} given, at most {codes.MAX_LEVELS - 1} are possible")

    @property
    def preemptive(self) -> bool:
        """Whether running jobs stand in the order too."""
        return self.order in PREEMPTIVE_ORDERS


def _choice(name: str, value: Any, known: Collection[str]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} = {value!r}: expected one of {', '.join(known)}")


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """One number or several, as floats."""
    try:
        return tuple(float(item) for item in (value if isinstance(value, tuple | list) else (value,)))
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: expected seconds") from None


def _not_negative(name: str, value: float) -> None:
    if not 0.0 <= value < float("inf"):
        raise InputError(f"{name} = {value:g}: expected a finite number >= 0")


def _slashed(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:g}" for value in values)
