"""Finding a decision's job in the window."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..simulator.base.errors import InvalidDecision


class OfJob(Protocol):
    """A decision about a job."""

    @property
    def job(self) -> int:
        """Which."""


def slot_of(shown: np.ndarray, decision: OfJob) -> int:
    """The slot that shows the job of a decision.

    Raises:
        InvalidDecision: none does.
    """
    slots = np.flatnonzero(shown == decision.job)
    if len(slots) == 0:
        raise InvalidDecision(f"{decision!r}: the window does not show job {decision.job}; give it more slots")
    return int(slots[0])
