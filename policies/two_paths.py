"""The two paths of paper mast as one policy: a slow one that places tables, a fast one that places workloads."""

from __future__ import annotations

from typing import Any

from ..simulator.base.decisions import TABLE_DECISIONS, Advance, Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.protocols import policy_of
from ..simulator.engine.view import ClusterView
from .base import Policy
from .planning import PlanningPolicy

SCHEDULER = "mast"  # default of the fast path
SLOW = "tetris-v2"  # default of the slow path
SCAN_S = 34.0  # between passes; paper mast, Sec. 5.4, has this as the mean length of a pass, not as its interval


class TwoPathPolicy(Policy):
    """Asks the slow path whenever tables are due (`view.tables_due`), then the fast path.

    Args:
        name: in tables and logs.
        fast: decides about workloads, at every instant.
        slow: decides about tables, where they are due; None: tables stay.
    """

    def __init__(self, name: str, fast: Policy, slow: PlanningPolicy | None) -> None:
        self.name = name
        self.fast, self.slow = fast, slow
        self.knows_run_times = fast.knows_run_times

    def clock_for(self, view: Any) -> Any:
        """The clock of the fast path."""
        return self.fast.clock_for(view)

    def decide(self, view: ClusterView) -> Decision:
        """The next decision about tables, then about workloads."""
        if self.slow is not None and view.tables_due:
            decision = self.slow.decide(view)
            if not isinstance(decision, Advance):
                return decision
        return self.fast.decide(view)

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The reason of the path that decided."""
        of_tables = self.slow is not None and isinstance(decision, TABLE_DECISIONS) and view.tables_due
        path = self.slow if of_tables and self.slow is not None else self.fast
        return path.why(view, decision)


def fast_half(name: str, scheduler: str) -> Policy:
    """The fast path of a word's policy; `name`: the policy in errors. Raises InputError if there is none."""
    fast = getattr(policy_of(scheduler), "fast", None)
    if not isinstance(fast, Policy):
        raise InputError(f"policy {name}: scheduler={scheduler}: expected one for regions, such as mast")
    return fast


class Everywhere(TwoPathPolicy):
    """A bound on the value of data: `scheduler` plays with every table in every region, free and fresh, from time 0."""

    tables_everywhere = True

    def __init__(self, scheduler: str = SCHEDULER) -> None:
        super().__init__("everywhere", fast_half("everywhere", scheduler), None)
