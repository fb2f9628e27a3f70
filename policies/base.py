"""Base classes: a policy, and a policy that is a compiled rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    import numpy as np

    from ..simulator.engine.simulator import Simulator
    from ..simulator.engine.view import ClusterView
    from ..simulator.groups.group_config import GroupTerms
    from ..simulator.groups.group_simulator import GroupSimulator
    from ..simulator.jobs.estimates import Estimates
    from ..simulator.jobs.workload import Workload
    from ..simulator.network.simulated import RateProvider


class Policy:
    """Decides at decision points. Subclass it and write `decide`; see docs/tutorials/write-a-policy.md.

    Attributes:
        name: in tables and logs.
        rule: the compiled rule that it is; None: it decides in Python.
        elastic: its jobs are elastic; their simulator needs a rate provider of simulator/elastic/elastic.py.
        dedicated: every job has its links alone: the network is put into the mode `dedicated`.
        on_links: options of network contention while it plays, by name (transports.py).
        tables_everywhere: in regions every table lies in every region, free, from time 0.
        tunes_workers: it changes the number of workers of data-parallel jobs: `contention:workers=elastic`.
        given: names of the parameters that were given when it was made by name (registry.py).
        clock: for a policy in Python: a rule with the preemption cost, rounds and leases; of job groups their terms.
        acts_in: decisions, one of which an environment must offer for a parameter, by name, to mean something there; a
            parameter that is missing means something in all.
        knows_run_times: it reads run times, as far as they are known (simulator/jobs/estimates.py).
        files: files of a trained agent, or of a user's policy; stores of results compare their content.
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
    acts_in: Mapping[str, Collection[str]] = MappingProxyType({})
    files: tuple[Path, ...] = ()

    def rule_under(self, semantics: Semantics) -> Rule | None:
        """The compiled rule under these semantics, or None."""
        return self.rule

    def clock_for(self, view: Any) -> Rule | GroupTerms | None:
        """The rule or the clock that a runner installs, or None. Raises InputError if it needs unknown run times."""
        self.expect_known(view.estimates)
        return self.clock if self.rule is None else self.rule_under(view.semantics)

    def playing_in(self, env_id: str) -> Policy:
        """The policy of this name in an environment. Raises InputError if it cannot play there."""
        return self

    def workload_for(self, workload: Workload) -> Workload:
        """The workload that it plays instead. Raises InputError if tables are to lie everywhere and there are none."""
        if not self.tables_everywhere:
            return workload
        if workload.geo is None:
            raise InputError(f"policy {self.name}: workload {workload.name!r} has no tables that could lie everywhere")
        return workload.with_geo(workload.geo.everywhere())

    def decider(self, simulator: Simulator | GroupSimulator) -> Policy | None:
        """Itself where it must be asked; None where its compiled rule plays, which is never in regions.

        Call it after `reset`. Raises InputError if it needs run times, and none are known.
        """
        self.expect_known(simulator.estimates)
        return None if self.rule is not None and simulator.workload.geo is None else self

    def expect_known(self, estimates: Estimates) -> None:
        """Raise InputError if it needs run times, and none are known."""
        if self.knows_run_times:
            estimates.expect_known(f"policy {self.name}")

    def measured(self, simulator: Simulator, counted: np.ndarray | None = None) -> dict[str, float]:
        """Figures of a run under it that has ended, beside the metrics, by names that no metric has.

        `counted`, bool (jobs,): the jobs of the window that the metrics are of; None: all.
        """
        return {}

    def why(self, view: Any, decision: Decision) -> str:
        """Why it decides so, in a few words; may be empty; `decision` was just given, and not carried out."""
        return ""

    def whys(self, view: ClusterView, decisions: Sequence[Decision]) -> list[str]:
        """Why its compiled rule decides so: a text for each of some decisions of one pass.

        `view` is the cluster before the first of them; whatever happens to this view is forgotten.
        """
        return [self.why(view, decision) for decision in decisions]

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """The rest of the decision just given, if it is several, in order; `decide` is asked for what comes next."""
        return ()

    def rate_provider(self, gpu: str) -> RateProvider | None:
        """The speed of its jobs on GPUs of a type, by the fits of the profiles; None: they are not elastic."""
        if not self.elastic:
            return None
        from ..simulator.elastic.applications import fitted_applications
        from ..simulator.elastic.elastic import TrainingRates

        return TrainingRates(fitted_applications(gpu))

    def decide(self, view: Any) -> Decision:
        """The next decision at this instant, on a `ClusterView` or `GroupView`; `Advance()` ends the instant."""
        raise InputError(f"{type(self).__name__} does not say what it decides: define decide(self, view)")

    def act(self, env: Any) -> Any:
        """The action, or for a vector the array of actions, that plays the next decision in a Gymnasium environment."""
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
        name: in tables and logs.
        rule: the rule.
        at_auctions: another rule for semantics with auctions (`artist-sim`).
    """

    def __init__(self, name: str, rule: Rule, at_auctions: Rule | None = None) -> None:
        self.name = name
        self.rule: Rule = rule
        self.at_auctions = at_auctions or rule
        self.knows_run_times = self.rule.needs_run_times or self.at_auctions.needs_run_times
        self._under: tuple[Semantics, Rule] | None = None  # the last answer of `rule_under`

    def rule_under(self, semantics: Semantics) -> Rule:
        """The rule under these semantics. Raises InputError if they override a given parameter."""
        if not semantics.auctions:
            return self.rule
        self.at_auctions.expect_alone(f"with auctions; leave semantics={semantics.name} out")
        if self._under is None or semantics != self._under[0]:
            semantics.expect_played(self.rule, f"policy {self.name}", self.given, self.at_auctions)
            usual = {name: getattr(Rule, name) for name in semantics.in_place if name not in self.given}
            self._under = semantics, replace(self.at_auctions, **usual)
        return self._under[1]

    def decide(self, view: ClusterView) -> Decision:
        """The next decision of the rule's pass. Raises InputError if another rule is installed."""
        self.expect_known(view.estimates)
        if view.rule != self.rule_under(view.semantics):
            raise InputError(
                f"policy {self.name}: the simulator plays by another rule ({view.rule.describe()}); expected to be "
                "asked by simulator.run, simulator.ask or an environment, or by one with its rule as `clock`"
            )
        return view.next_decision()

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """The rest of a preemption: the other jobs that make way, and the start that needs them."""
        coming = view.coming if self.rule.preempt else ()
        places = [place for place, decision in enumerate(coming) if isinstance(decision, Start)]
        return coming[: places[0] + 1] if places else ()

    def why(self, view: Any, decision: Decision) -> str:
        """The job's place in the order, the GPUs that it accepts, the jobs that are passed over."""
        return self.whys(view, (decision, *view.coming))[0]

    def whys(self, view: ClusterView, decisions: Sequence[Decision]) -> list[str]:
        """`why` for each decision of a pass."""
        from .reasons import reasons

        return reasons(view, self.rule_under(view.semantics), decisions)

    def __repr__(self) -> str:
        return f"{self.name}: {self.rule}"
