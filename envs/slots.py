"""Finding a decision's job in the window."""

from __future__ import annotations

import numpy as np

from ..simulator.decisions import Hold, Migrate, Preempt, Resize, Start
from ..simulator.errors import InvalidDecision


def slot_of(shown: np.ndarray, decision: Start | Hold | Preempt | Migrate | Resize) -> int:
    """The slot that shows the job of a decision.

    Raises:
        InvalidDecision: none does.
    """
    slots = np.flatnonzero(shown == decision.job)
    if len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show job {decision.job}; give it more slots")
    return int(slots[0])
