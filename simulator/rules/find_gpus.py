"""Asking the placers from outside the kernels."""

from __future__ import annotations

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..base.tiers import MACHINE, NETWORK, RACK
from .rule import PLACERS
from .rule_calls import find_gang, find_within


def find_gpus(states: np.recarray, job: int, placer: str) -> list[int] | None:
    """GPUs that the named placer would give the job now, or None; nothing is taken."""
    code = PLACERS[choose(placer, PLACERS, "placer")]
    return _gang(states) if find_gang(states, 0, job, code) else None


def find_gpus_within(states: np.recarray, job: int, tier: int) -> list[int] | None:
    """GPUs inside one machine, one rack, or anywhere, or None; nothing is taken."""
    if tier not in (MACHINE, RACK, NETWORK):
        raise InputError(f"tier {tier!r}: expected {MACHINE} (machine), {RACK} (rack) or {NETWORK} (network)")
    need = int(states[0].gpus[job])
    return _gang(states) if find_within(states, 0, need, tier) else None


def _gang(states: np.recarray) -> list[int]:
    return states[0].gang[: states[0].gang_size].tolist()
