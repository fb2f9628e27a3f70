"""What a policy is, and the policies that are compiled rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..simulator.base.decisions import Decision, Start
from ..simulator.base.errors import InputError
from ..simulator.base.names import called
from ..simulator.rules.rule import Rule
from ..simulator.rules.semantics import Semantics

if TYPE_CHECKING:
    from ..simulator.engine.simulator import Simulator
    from ..simulator.engine.view import ClusterView
    from ..simulator.groups.group_config import GroupTerms
    from ..simulator.groups.group_simulator import GroupSimulator
    from ..simulator.jobs.estimates import Estimates
    from ..simulator.jobs.workload import Workload
    from ..simulator.network.simulated import Pace


class Policy:
    """Decides at decision points. Subclass it and write `decide`; see docs/tutorials/write-a-policy.md.

    Attributes:
        name: how tables and logs call it.
        rule: the compiled rule that it is, or None for a policy that decides in Python.
        elastic: its jobs must be elastic: their simulator needs a pace that lets them (simulator/elastic/elastic.py).
        dedicated: its jobs are to meet nobody on their links: the network is put into the mode `dedicated` for it.
        on_links: options of network contention that hold while it plays, by name (transports.py); {}: as it is.
        tables_everywhere: in regions it plays with every table in every region, free, from time 0 (everywhere.py).
        tunes_workers: it gives data-parallel jobs on links other numbers of workers than they ask: the network is one
            that lets them (`contention:workers=elastic`) for it.
        given: names of the parameters that whoever made it by name gave (registry.py).
        clock: what holds while one plays that decides in Python, if it says so: a rule, whose preemption cost, rounds
            and leases the simulator keeps; of job groups their terms.
        knows_run_times: it asks how long jobs run, as far as that is known (simulator/jobs/estimates.py).
        files: of a trained agent, all files that it was loaded from, of a user's policy those that it is written in:
            who keeps results compares their content.
    """

    name: str = "policy"
    rule: Rule | None = None
    clock: Rule | GroupTerms | None = None
    elastic: bool = False
    dedicated: bool = False
    on_links: Mapping[str, Any] = MappingProxyType({})
    tables_everywhere: bool = False
    tunes_workers: bool = False
    knows_run_times: bool = False
    given: frozenset[str] = frozenset()
    files: tuple[Path, ...] = ()

    def rule_under(self, semantics: Semantics) -> Rule | None:
        """The compiled rule that it is under these semantics, or None."""
        return self.rule

    def clock_for(self, view: Any) -> Rule | GroupTerms | None:
        """What a runner installs before it asks: the compiled rule that it is there, or its clock; None: neither.

        Raises:
            InputError: it needs run times, of which nothing is known there.
        """
        self.expect_known(view.estimates)
        return self.clock if self.rule is None else self.rule_under(view.semantics)

    def among_groups(self) -> Policy:
        """Who plays under this name where jobs run in groups on parameter servers: itself, unless it says otherwise."""
        return self

    def playing_in(self, env_id: str) -> Policy:
        """Who plays under this name in the environment with this id: itself; an agent may have to take its seat first.

        Raises:
            InputError: it cannot play there.
        """
        return self

    def workload_for(self, workload: Workload) -> Workload:
        """What it plays where others play `workload`: the same, unless its tables lie everywhere.

        Raises:
            InputError: a workload without tables, whose tables should lie everywhere.
        """
        if not self.tables_everywhere:
            return workload
        if workload.geo is None:
            raise InputError(f"policy {self.name}: workload {workload.name!r} has no tables that could lie everywhere")
        return workload.with_geo(workload.geo.everywhere())

    def decider(self, simulator: Simulator | GroupSimulator) -> Policy | None:
        """Itself where it must be asked; None where the compiled rule that it is plays. Call it after `reset`.

        Compiled rules place nothing in regions.

        Raises:
            InputError: it needs run times, of which nothing is known there.
        """
        self.expect_known(simulator.estimates)
        return None if self.rule is not None and simulator.workload.geo is None else self

    def expect_known(self, estimates: Estimates) -> None:
        """InputError if it needs run times, of which nothing is known."""
        if self.knows_run_times:
            estimates.expect_known(f"policy {self.name}")

    def why(self, view: Any, decision: Decision) -> str:
        """Why it decides so, in a few words; empty if it does not say.

        Args:
            view: as `decide` saw it when it gave the decision, which has not been carried out.
            decision: one that it has just given.
        """
        return ""

    def whys(self, view: ClusterView, decisions: Sequence[Decision]) -> list[str]:
        """Why its compiled rule decides so: a text for each of some decisions that follow each other.

        Args:
            view: the cluster before the first of them, and unlike the present one whatever happens to it is forgotten.
            decisions: of one pass.
        """
        return [self.why(view, decision) for decision in decisions]

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """What belongs to the decision that it has just given, in order: the rest of one that is several.

        Whoever asks carries them out, and asks `decide` for what comes after them.
        """
        return ()

    def pace(self, gpu: str) -> Pace | None:
        """How fast its jobs run on GPUs of a type, where they must be elastic: by the fits of the profiles."""
        if not self.elastic:
            return None
        from ..simulator.elastic.applications import fitted_applications
        from ..simulator.elastic.elastic import TrainingPace

        return TrainingPace(fitted_applications(gpu))

    def decide(self, view: Any) -> Decision:
        """The next decision at this instant; `Advance()` when there is nothing more to do.

        `view` is a `ClusterView`, or a `GroupView` where jobs run in groups on parameter servers.
        Called again and again, each time on the cluster as the last decision left it.
        """
        raise InputError(f"{type(self).__name__} does not say what it decides: define decide(self, view)")

    def act(self, env: Any) -> Any:
        """The action that plays the next decision in `env`: a Gymnasium environment, wrapped or not, or a vector.

        Returns:
            An action of the environment; for a vector environment an array of actions, one a row.
        """
        if hasattr(env, "get_wrapper_attr") and not hasattr(env, "num_envs"):
            return env.get_wrapper_attr("act_of")(self)
        import numpy as np

        call = getattr(env, "env_method", None) or getattr(env, "call", None)
        if call is None:
            raise InputError(
                f"act: {called(env)}: expected an environment, or a vector of them; a simulator is run(policy)"
            )
        return np.stack(call("act_of", self))


class RulePolicy(Policy):
    """A compiled rule under a paper's name: an order, a head rule, a placer, and the cost of preemption.

    Args:
        name: how tables and logs call it.
        rule: what it is.
        at_auctions: what it is under semantics with auctions (`artist-sim`), if something else.
    """

    def __init__(self, name: str, rule: Rule, at_auctions: Rule | None = None) -> None:
        self.name = name
        self.rule: Rule = rule
        self.at_auctions = at_auctions or rule
        self.knows_run_times = self.rule.needs_run_times or self.at_auctions.needs_run_times
        self._under: tuple[Semantics, Rule] | None = None  # what it was found to be last

    def rule_under(self, semantics: Semantics) -> Rule:
        """The rule under these semantics.

        Raises:
            InputError: a parameter was given that these semantics set aside.
        """
        if not semantics.auctions:
            return self.rule
        self.at_auctions.expect_alone(f"with auctions; leave semantics={semantics.name} out")
        if self._under is None or semantics != self._under[0]:
            semantics.expect_played(self.rule, f"policy {self.name}", self.given, self.at_auctions)
            usual = {name: getattr(Rule, name) for name in semantics.in_place if name not in self.given}
            self._under = semantics, replace(self.at_auctions, **usual)
        return self._under[1]

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of the rule's pass at this instant.

        Raises:
            InputError: another rule is installed there.
        """
        self.expect_known(view.estimates)
        if view.rule != self.rule_under(view.semantics):
            raise InputError(
                f"policy {self.name}: the simulator plays by another rule ({view.rule.describe()}); expected to be "
                "asked by simulator.run, simulator.ask or an environment, or by one with its rule as `clock`"
            )
        return view.next_decision()

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """Of a rule that makes room, what else makes way, and the start that it is for."""
        coming = view.coming if self.rule.preempt else ()
        places = [place for place, decision in enumerate(coming) if isinstance(decision, Start)]
        return coming[: places[0] + 1] if places else ()

    def why(self, view: Any, decision: Decision) -> str:
        """The terms of the rule: the job's place in the order, the GPUs that it accepts, who is passed over and why."""
        return self.whys(view, (decision, *view.coming))[0]

    def whys(self, view: ClusterView, decisions: Sequence[Decision]) -> list[str]:
        """The same for a pass."""
        from .reasons import reasons

        return reasons(view, self.rule_under(view.semantics), decisions)

    def __repr__(self) -> str:
        return f"{self.name}: {self.rule}"
