"""Asking the placers from outside the kernels."""

from __future__ import annotations

import numpy as np

from .errors import InputError
from .names import choose
from .rules.placers import find_gang, find_within
from .rules.rule import PLACERS
from .tiers import MACHINE, NETWORK, RACK


def find_gpus(s: np.record, job: int, placer: str) -> list[int] | None:
    """GPUs that the named placer would give the job now, or None; nothing is taken."""
    code = PLACERS[choose(placer, PLACERS, "placer")]
    return s.gang[: s.gang_size].tolist() if find_gang(s, job, code) else None


def find_gpus_within(s: np.record, job: int, tier: int) -> list[int] | None:
    """GPUs inside one machine, one rack, or anywhere, or None; nothing is taken."""
    if tier not in (MACHINE, RACK, NETWORK):
        raise InputError(f"tier {tier!r}: expected {MACHINE} (machine), {RACK} (rack) or {NETWORK} (network)")
    return s.gang[: s.gang_size].tolist() if find_within(s, s.gpus[job], tier) else None
