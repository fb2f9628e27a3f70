"""The policies of DataPlacement-v0: a slow half of Tetris (slow.py) beside a scheduler of workloads."""

from __future__ import annotations

from ...simulator.base.errors import InputError
from ...simulator.engine.protocols import policy_of
from ..base import Policy
from ..paths import Paths
from . import slow
from .slow import QUOTA, SlowPath

SCHEDULER = "mast"


def static(scheduler: str = SCHEDULER, quota: float = QUOTA) -> Paths:
    """V0; `scheduler`: the policy that places workloads; the rest: slow.py."""
    return _beside("static", scheduler, slow.static(quota))


def tetris_v1(scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None) -> Paths:
    """V1."""
    return _beside("tetris-v1", scheduler, slow.tetris_v1(quota, kicks))


def tetris_v2(scheduler: str = SCHEDULER, quota: float = QUOTA, kicks: int | None = None) -> Paths:
    """V2."""
    return _beside("tetris-v2", scheduler, slow.tetris_v2(quota, kicks))


def milp(scheduler: str = SCHEDULER, quota: float = QUOTA) -> Paths:
    """The best homes, then replicas as V2."""
    return _beside("milp", scheduler, slow.milp(quota))


def _beside(name: str, scheduler: str, half: SlowPath) -> Paths:
    found = policy_of(scheduler)
    fast = getattr(found, "fast", None)
    if not isinstance(fast, Policy):
        raise InputError(f"policy {name}: scheduler={scheduler}: expected one for regions, such as mast")
    return Paths(name, fast, half)
