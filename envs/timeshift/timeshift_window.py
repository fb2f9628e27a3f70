"""The window of TimeShift-v0, and which jobs it shows: compiled.

Which candidates there are is decided in Python, by the scheduler that proposes them;
`timeshift_interface.py` keeps them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...simulator.compiler.jit import entry
from ..window import common_fields, fill_slots, may_advance


@cache
def window_dtype() -> np.dtype:
    """One window."""
    return np.dtype(common_fields(), align=True)


@entry
def show(states, windows, row):
    """Modify the window in `row`: the jobs of the present; True if the clock can go on, or the episode has ended.

    A job on the network has no event of its own, but it ends.
    """
    s, w = states[row], windows[row]
    fill_slots(s, w)
    return s.running > 0 or may_advance(s, w)
