"""One name for several policies: a compiled rule where jobs run on GPUs, others in groups or in regions."""

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
from .registry import DATA_PLACEMENT, GEO


class Twofold(RulePolicy):
    """Plays on GPUs as a rule, and elsewhere as another policy; the view says where.

    Args:
        rule: the one on GPUs.
        groups: makes the one among groups on parameter servers, when it is asked for; None: the rule's own.
        for_groups: names of the parameters that only that one takes.
        for_gpus: and of those that only the rule takes.
        regions: makes the one in regions; None: there is none.
        for_regions: names of the parameters that only that one takes.
    """

    def __init__(
        self,
        rule: RulePolicy,
        groups: Callable[[], Policy] | None = None,
        for_groups: Collection[str] = (),
        for_gpus: Collection[str] = (),
        regions: Callable[[], Policy] | None = None,
        for_regions: Collection[str] = (),
    ) -> None:
        super().__init__(rule.name, rule.rule, rule.at_auctions)
        self._make_groups, self._make_regions = groups, regions
        self._only = {
            "on GPUs": frozenset(for_gpus),
            "where jobs run in groups": frozenset(for_groups),
            "in regions": frozenset(for_regions),
        }

    @cached_property
    def _groups(self) -> Policy:
        assert self._make_groups is not None
        return self._make_groups()

    @cached_property
    def in_regions(self) -> Policy | None:
        """The one that plays in regions."""
        return None if self._make_regions is None else self._make_regions()

    @property
    def fast(self) -> Policy | None:
        """Its half that places workloads, in regions."""
        return getattr(self.in_regions, "fast", None)

    @property
    def slow(self) -> Policy | None:
        """Its half that places tables, in regions."""
        return getattr(self.in_regions, "slow", None)

    def among_groups(self) -> Policy:
        """The one that plays where jobs run in groups on parameter servers.

        Raises:
            InputError: a parameter was given that it does not take.
        """
        if self._make_groups is None:
            return self
        self._expect_taken("where jobs run in groups")
        self._groups.name, self._groups.given = self.name, self.given
        return self._groups

    def playing_in(self, env_id: str) -> Policy:
        """The one that plays in regions, in their environments.

        Raises:
            InputError: a parameter was given that it does not take.
        """
        if self._make_regions is None or env_id not in (GEO, DATA_PLACEMENT):
            return self
        self._expect_taken("in regions")
        found = self._make_regions()
        found.name, found.given = self.name, self.given
        return found

    def rule_under(self, semantics: Semantics) -> Any:
        """The rule on GPUs; see `RulePolicy`.

        Raises:
            InputError: a parameter was given that it does not take.
        """
        self._expect_taken("on GPUs")
        return super().rule_under(semantics)

    def clock_for(self, view: Any) -> Any:
        """The rule, or the terms of whoever plays there."""
        if isinstance(view, GroupView):
            return self.among_groups().clock_for(view)
        found = self._where(view)
        return super().clock_for(view) if found is None else found.clock_for(view)

    def decider(self, simulator: Simulator | GroupSimulator) -> Policy | None:
        """The one that plays there, where it must be asked."""
        if isinstance(simulator, GroupSimulator):
            return self.among_groups().decider(simulator)
        return super().decider(simulator)

    def decide(self, view: Any) -> Decision:
        """The next decision of whoever plays there."""
        found = self._where(view)
        return super().decide(view) if found is None else found.decide(view)

    def why(self, view: Any, decision: Decision) -> str:
        """What whoever plays there says."""
        found = self._where(view)
        return super().why(view, decision) if found is None else found.why(view, decision)

    def _where(self, view: Any) -> Policy | None:
        """Whoever plays in place of the rule, where the view is of something else than GPUs."""
        if isinstance(view, GroupView):
            return self._groups if self._make_groups is not None else None
        if self.in_regions is None or view.topology.lands is None or view.workload.geo is None:
            return None
        self._expect_taken("in regions")
        return self.in_regions

    def _expect_taken(self, where: str) -> None:
        """InputError if a parameter was given that is for elsewhere alone."""
        taken = self._only[where]
        for elsewhere, names in self._only.items():
            for name in sorted(self.given & (names - taken)) if elsewhere != where else ():
                expected = ", ".join(sorted(taken)) or "none"
                raise InputError(f"policy {self.name}: {name} is a parameter {elsewhere}; {where} expected {expected}")
