"""One name for two policies: a compiled rule where jobs run on GPUs, and another one where they run in groups."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

from ..simulator.base.decisions import Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.simulator import Simulator
from ..simulator.groups.group_simulator import GroupSimulator
from ..simulator.groups.group_view import GroupView
from ..simulator.rules.semantics import Semantics
from .base import Policy, RulePolicy


class Twofold(RulePolicy):
    """Plays on GPUs as a rule, and among groups on parameter servers as a policy of theirs; the view says which.

    Args:
        rule: the one on GPUs.
        groups: makes the one among groups, when it is asked for.
        for_groups: names of the parameters that only that one takes.
        for_gpus: and of those that only the rule takes.
    """

    def __init__(
        self,
        rule: RulePolicy,
        groups: Callable[[], Policy],
        for_groups: Collection[str] = (),
        for_gpus: Collection[str] = (),
    ) -> None:
        super().__init__(rule.name, rule.rule, rule.at_auctions)
        self._make_groups, self._for_groups, self._for_gpus = groups, frozenset(for_groups), frozenset(for_gpus)

    @cached_property
    def _groups(self) -> Policy:
        return self._make_groups()

    def among_groups(self) -> Policy:
        """The one that plays where jobs run in groups on parameter servers.

        Raises:
            InputError: a parameter was given that it does not take.
        """
        for name in sorted(self.given & self._for_gpus):
            expected = ", ".join(sorted(self._for_groups)) or "none"
            raise InputError(
                f"policy {self.name}: {name} is a parameter on GPUs; where jobs run in groups expected {expected}"
            )
        self._groups.name, self._groups.given = self.name, self.given
        return self._groups

    def rule_under(self, semantics: Semantics) -> Any:
        """The rule on GPUs; see `RulePolicy`.

        Raises:
            InputError: a parameter was given that it does not take.
        """
        for name in sorted(self.given & self._for_groups):
            expected = ", ".join(sorted(self._for_gpus)) or "none"
            raise InputError(
                f"policy {self.name}: {name} is a parameter where jobs run in groups; on GPUs expected {expected}"
            )
        return super().rule_under(semantics)

    def clock_for(self, view: Any) -> Any:
        """The rule, or the terms of whoever plays among groups."""
        return self.among_groups().clock_for(view) if isinstance(view, GroupView) else super().clock_for(view)

    def decider(self, simulator: Simulator | GroupSimulator) -> Policy | None:
        """The one that plays there, where it must be asked."""
        if isinstance(simulator, GroupSimulator):
            return self.among_groups().decider(simulator)
        return super().decider(simulator)

    def decide(self, view: Any) -> Decision:
        """The next decision of whoever plays there."""
        if isinstance(view, GroupView):
            return self.among_groups().decide(view)
        return super().decide(view)

    def why(self, view: Any, decision: Decision) -> str:
        """What whoever plays there says."""
        return self.among_groups().why(view, decision) if isinstance(view, GroupView) else super().why(view, decision)
