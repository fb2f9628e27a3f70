"""The instants at which passes may be made: every one, or the multiples of a period."""

import math

from ..compiler.jit import kernel
from ..numerics.rounding import NEAR


@kernel
def next_round_s(s):
    """The first instant from now on at which a pass may be made."""
    return round_from_s(s, s.now_s)


@kernel
def round_from_s(s, time_s):
    """The first instant from `time_s` on at which a pass may be made."""
    if s.round_s <= 0.0:
        return time_s
    # The clock may stand a rounding error before or behind the very multiple that it stands on.
    tick_s = math.ceil(time_s / s.round_s - NEAR) * s.round_s
    return time_s if tick_s <= time_s + NEAR * s.round_s else tick_s
