"""The last question to a decider, and what has happened since: its decision, another one, or nothing.

Planners that hand a plan out decision by decision ask this each time (policies/planning.py, the compiled rule's pass).
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple


class Happened(Enum):
    """What has happened since the last question.

    Attributes:
        NEW_INSTANT: the clock has moved on, or it is another run.
        NOTHING: no decision was carried out.
        ONE_DECISION: one was: the one that was handed out, if any.
        MORE: other decisions were made at this instant too.
    """

    NEW_INSTANT = 0
    NOTHING = 1
    ONE_DECISION = 2
    MORE = 3


class LastAsked(NamedTuple):
    """The run and instant of the last question, None: never, and the decisions carried out before it."""

    at: Hashable = None
    decisions: int = -1

    def since(self, now: LastAsked) -> Happened:
        """What has happened until now."""
        if now.at != self.at:
            return Happened.NEW_INSTANT
        if now.decisions == self.decisions:
            return Happened.NOTHING
        return Happened.ONE_DECISION if now.decisions == self.decisions + 1 else Happened.MORE


NEVER = LastAsked()
