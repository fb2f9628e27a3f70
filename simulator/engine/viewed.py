"""The simulator behind a view: what a view and those who decide by it ask of one, so that a view needs no simulator."""

from __future__ import annotations

from typing import Any, Protocol

from ..base.decisions import Decision
from ..jobs.estimates import Estimates
from ..network.simulated import Simulated
from ..rules.rule import Rule
from ..rules.semantics import Semantics
from ..sharing.sharing_model import Sharing


class Viewed(Simulated, Protocol):
    """`Simulator` (simulator.py) is one; what its attributes and methods mean is said there."""

    rule: Rule
    semantics: Semantics
    sharing: Sharing | None
    estimates: Estimates

    @property
    def coming(self) -> tuple[Decision, ...]:
        """The decisions of its rule at this instant that have not been handed out."""

    def twin(self) -> Any:
        """A simulator on the same terms that has not run yet."""

    def pass_ahead(self) -> list[Decision]:
        """The decisions that its rule would take now; nothing happens."""

    def next_decision(self) -> Decision:
        """The next decision of its rule."""
