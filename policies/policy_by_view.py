"""One name for several policies: a compiled rule where jobs run on GPUs, others in groups or in regions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

from ..simulator.base.capabilities import environments, resolve
from ..simulator.base.decisions import Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.simulator import Simulator
from ..simulator.groups.group_simulator import GroupSimulator
from ..simulator.groups.group_view import GroupView
from ..simulator.rules.semantics import Semantics
from .base import Policy, RulePolicy

# One of these decisions tells where an environment is.
PLACES = {
    "on GPUs": ("start", "plan"),
    "where jobs run in groups": ("group",),
    "in regions": ("region", "tables"),
}


class PolicyByView(RulePolicy):
    """A rule on GPUs, and another policy elsewhere; the view says where.

    Args:
        rule: plays on GPUs.
        groups: makes the policy among groups on parameter servers; None: the rule.
        for_groups: names of the parameters that only `groups` takes.
        for_gpus: names of the parameters that only the rule takes.
        regions: makes the policy in regions; None: there is none.
        for_regions: names of the parameters that only `regions` takes.
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
        self.acts_in = {
            name: [decision for where, names in self._only.items() if name in names for decision in PLACES[where]]
            for name in frozenset().union(*self._only.values())
        }

    @cached_property
    def _groups(self) -> Policy:
        assert self._make_groups is not None
        return self._make_groups()

    @cached_property
    def in_regions(self) -> Policy | None:
        """The policy in regions."""
        return None if self._make_regions is None else self._make_regions()

    @property
    def fast(self) -> Policy | None:
        """Its fast path, in regions."""
        return getattr(self.in_regions, "fast", None)

    @property
    def slow(self) -> Policy | None:
        """Its slow path, in regions."""
        return getattr(self.in_regions, "slow", None)

    def among_groups(self) -> Policy:
        """The policy among groups. Raises InputError for a given parameter that it does not take."""
        if self._make_groups is None:
            return self
        self._expect_taken("where jobs run in groups")
        self._groups.name, self._groups.given = self.name, self.given
        return self._groups

    def playing_in(self, env_id: str) -> Policy:
        """The policy in an environment. Raises InputError for a given parameter that it does not take."""
        offered = environments()[resolve(env_id)].decisions
        if not offered.isdisjoint(PLACES["where jobs run in groups"]):
            return self.among_groups()
        if self._make_regions is None or offered.isdisjoint(PLACES["in regions"]):
            return self
        self._expect_taken("in regions")
        found = self._make_regions()
        found.name, found.given = self.name, self.given
        return found

    def rule_under(self, semantics: Semantics) -> Any:
        """The rule on GPUs. Raises InputError for a given parameter that it does not take."""
        self._expect_taken("on GPUs")
        return super().rule_under(semantics)

    def clock_for(self, view: Any) -> Any:
        """The rule, or the clock of the policy there."""
        if isinstance(view, GroupView):
            return self.among_groups().clock_for(view)
        found = self._where(view)
        return super().clock_for(view) if found is None else found.clock_for(view)

    def decider(self, simulator: Simulator | GroupSimulator) -> Policy | None:
        """The policy that must be asked there, or None."""
        if isinstance(simulator, GroupSimulator):
            return self.among_groups().decider(simulator)
        return super().decider(simulator)

    def decide(self, view: Any) -> Decision:
        """The next decision of the policy there."""
        found = self._where(view)
        return super().decide(view) if found is None else found.decide(view)

    def why(self, view: Any, decision: Decision) -> str:
        """The reason of the policy there."""
        found = self._where(view)
        return super().why(view, decision) if found is None else found.why(view, decision)

    def _where(self, view: Any) -> Policy | None:
        """The policy in place of the rule, in groups and in regions."""
        if isinstance(view, GroupView):
            return self._groups if self._make_groups is not None else None
        if self.in_regions is None or view.topology.region_network is None or view.workload.geo is None:
            return None
        self._expect_taken("in regions")
        return self.in_regions

    def _expect_taken(self, where: str) -> None:
        taken = self._only[where]
        for elsewhere, names in self._only.items():
            for name in sorted(self.given & (names - taken)) if elsewhere != where else ():
                expected = ", ".join(sorted(taken)) or "none"
                raise InputError(f"policy {self.name}: {name} is a parameter {elsewhere}; {where} expected {expected}")
