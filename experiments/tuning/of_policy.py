"""Tuning the parameters of a policy: every trial plays the same seeds, and is compared with the defaults seed by seed.

A trial that is clearly worse is stopped early: after every `FEW` seeds the interval of its ratio to the best trial so
far is looked at, paired by seed, and it is stopped where all of that is on the wrong side of 1.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...policies import make_for, maker_of, parameters_of, spelt
from ...simulator.base.names import choose, kinds_of
from ...simulator.engine.metric_registry import METRICS, MORE
from ..comparing.intervals import FEWEST_TO_TELL, paired_ratio
from ..playing.evaluation import evaluate
from ..playing.executors import Executor
from ..playing.runs import Run
from ..settings.evaluation_setting import Setting
from ..storing import identity
from .space import Kind
from .trial_search import Direction, Going, Outcome, Refused

FEW = FEWEST_TO_TELL  # seeds between two looks


def direction_of(metric: str) -> Direction:
    """Which end of a metric is sought."""
    return "maximize" if metric in METRICS and METRICS[metric].better == MORE else "minimize"


@dataclass(frozen=True)
class PolicyParameters:
    """Parameters of a policy in a setting.

    Attributes:
        setting: what is played on.
        policy: the word of the policy, with the parameters that are not to be chosen.
        seeds: what a trial is played on.
        metric: by its name in `simulator/engine/metrics.py`.
        prunes: whether trials may be stopped early.
        processes: how many play the seeds of a trial.
        executor: who plays them, in place of processes of this machine.
    """

    setting: Setting
    policy: str
    seeds: tuple[int, ...]
    metric: str = "jct_mean"
    prunes: bool = True
    processes: int = 1
    executor: Executor | None = None

    @property
    def direction(self) -> Direction:
        """Which end of the metric is sought."""
        return direction_of(self.metric)

    def about(self) -> dict[str, Any]:
        """All that trials must have in common."""
        return {
            "what": f"policy {self.policy}",
            **self.setting.words(),
            "seeds": list(self.seeds),
            "metric": self.metric,
            "early stops": self.prunes,
            "content": {**identity.content(self.setting), "policy": identity.of_policy(self._made(self.policy))},
            "sources": identity.sources(*identity.PLAYING),
        }

    @property
    def fixed(self) -> Mapping[str, str]:
        """The parameters that the word of the policy gives."""
        return maker_of(self.policy)[1]

    def kind_of(self, key: str) -> Kind:
        """What values a parameter takes, by its annotation."""
        factory = maker_of(self.policy)[0]
        named = parameters_of(factory)
        choose(key, named, f"parameter of policy {self.policy}:")
        return kind_of_annotation(kinds_of(factory, named).get(key))

    def default_of(self, key: str) -> Any:
        """The default of a parameter; None if it has none."""
        default = parameters_of(maker_of(self.policy)[0])[key].default
        return None if default is inspect.Parameter.empty else default

    def word(self, values: Mapping[str, str]) -> str:
        """The word of the policy with these values."""
        return spelt(self.policy, dict(values))

    def check(self, values: Mapping[str, str]) -> None:
        """Make the policy, as who plays it does."""
        self._made(self.word(values)).rule_under(self.setting.config.semantics)

    def play(self, going: Going) -> Outcome:
        """The seeds, a few at a time, as long as it is not clearly worse than the best so far."""
        word = self.policy if going.values is None else self.word(going.values)
        for trial in going.finished:  # few choices come again; a run of the same is the same
            if trial.outcome.word == word and not trial.refused:
                going.report(len(trial.outcome.per_seed), trial.outcome.value)
                return trial.outcome
        seeds = self.seeds
        defaults = None if going.values is None else going.finished[0].outcome
        runs: list[Run] = []
        while len(runs) < len(seeds):
            runs += self._runs(word, seeds, len(runs), going)
            if not runs[0].is_drawn:
                runs, seeds = runs[:1], seeds[:1]
            outcome = self._outcome(word, runs, defaults)
            going.report(len(runs), outcome.value)
            if self.prunes and len(runs) < len(seeds) and self._is_worse(outcome, going):
                return replace(outcome, stopped=f"clearly worse than the best after {len(runs)} seeds")
        return outcome

    def _runs(self, word: str, seeds: Sequence[int], done: int, going: Going) -> list[Run]:
        """The next few seeds after so many."""

        def show(played: float) -> None:
            going.progress((done + played) / len(seeds))

        part = seeds[done : done + FEW]
        return evaluate(self.setting, [word], part, processes=self.processes, executor=self.executor, progress=show)

    def _outcome(self, word: str, runs: Sequence[Run], defaults: Outcome | None) -> Outcome:
        """What runs come to, beside the defaults on the same seeds."""
        found = tuple(_value(run, self.metric) for run in runs)
        jobs = tuple(run.metrics["jobs_finished"] for run in runs)
        if defaults is None:
            return Outcome(word, 1.0, found, jobs)
        ours, theirs = (sum(counts) for counts in _paired(jobs, defaults.jobs))
        if ours < theirs:  # those that do not finish are in no JCT
            raise Refused(f"{ours:g} jobs finished, with the defaults {theirs:g}")
        value = paired_ratio(*_paired(found, defaults.per_seed)).mean
        if not math.isfinite(value):
            raise Refused(f"the defaults have a {self.metric} of 0: nothing can be compared with it")
        return Outcome(word, value, found, jobs)

    def _is_worse(self, outcome: Outcome, going: Going) -> bool:
        if going.best is None:
            return False
        ratio = paired_ratio(*_paired(outcome.per_seed, going.best.outcome.per_seed))
        if self.direction == "minimize":
            return ratio.runs >= FEW and ratio.low > 1.0
        return ratio.is_below(1.0)

    def _made(self, word: str) -> Any:
        return make_for(word, self.setting.environment)


def _value(run: Run, metric: str) -> float:
    choose(metric, run.metrics, "metric")
    value = run.metrics[metric]
    if not math.isfinite(value):
        raise Refused(f"seed {run.seed}: there is no {metric}")
    return value


def _paired(found: Sequence[float], others: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Both on the same seeds; one run that stands for all seeds is there for each."""
    if len(others) == 1:
        return found, [others[0]] * len(found)
    if len(found) == 1:
        return [found[0]] * len(others), others
    return found, others[: len(found)]


def kind_of_annotation(annotation: Any) -> Kind:
    """What values a parameter of this type takes; of several types any that fits a range."""
    parts = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, types.UnionType) else ()
    kinds = {_one_kind(part) for part in parts or (annotation,) if part is not type(None)}
    if "number" in kinds and "whole" in kinds:
        return "either"
    for kind in ("number", "whole", "either"):
        if kind in kinds:
            return kind
    return "word"


def _one_kind(annotation: Any) -> Kind:
    if annotation is None or annotation is Any:
        return "either"
    if annotation is int:
        return "whole"
    is_list = typing.get_origin(annotation) is tuple  # of numbers: one of them
    if annotation is float or (is_list and typing.get_args(annotation)[0] is float):
        return "number"
    return "word"
