"""The subjects of tuning: the parameters of a policy, or the configuration of a training.

Every trial of a policy plays the same seeds and is compared with the defaults seed by seed. It is stopped where it is
clearly worse than the best so far: optuna's WilcoxonPruner looks after every `FEW` seeds.

Every trial of a training is a training of its own in DIR/trials/0007, as `clustergym train --logdir` would make it, and
goes on from its checkpoint. It is stopped where its best agent so far is worse than the median of the others at the
same evaluation: optuna's MedianPruner.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import yaml

from ...agents.training.config import Config, assign, expect_fitting, make_config
from ...agents.training.what_is_read import read_in
from ...policies import make_for, maker_of, parameters_of, spelt
from ...simulator.base.errors import InputError
from ...simulator.base.names import ANYTHING, choose, convert, kinds_of
from ...simulator.engine.metric_registry import METRICS, MORE
from ..comparing.intervals import FEWEST_TO_TELL, paired_ratio
from ..console.terminal import written_whole
from ..learning.training import TrainingLog, setting_of, write_config
from ..learning.training_seeds import progress_of
from ..playing.evaluation import evaluate
from ..playing.executors import Executor
from ..playing.runs import Run
from ..settings.evaluation_setting import Setting
from ..storing import identity

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from ...agents.training.trainer import Evaluated

Reader = Callable[[str], Any]  # the value of a parameter from its text; InputError for one that it does not take
VALUES, PER_SEED, JOBS = "values", "per_seed", "jobs"  # attributes of a trial
FEW = FEWEST_TO_TELL  # seeds between two looks
TRIALS, BEST = "trials", "best.yaml"
# Trainings are compared on these keys, the same for all; other keys may be chosen, those of PARTS by their own keys.
YARDSTICKS = ("environment", "training", "validation", "validation_seeds", "reference", "evaluations")
PARTS = ("env", "net_options")


def direction_of(metric: str) -> Literal["minimize", "maximize"]:
    """Which end of a metric is sought."""
    return "maximize" if metric in METRICS and METRICS[metric].better == MORE else "minimize"


@dataclass(frozen=True)
class PolicyParameters:
    """Parameters of a policy in a setting."""

    setting: Setting
    policy: str  # its word, with the parameters that are not to be chosen
    seeds: tuple[int, ...]  # of every trial
    metric: str = "jct_mean"
    prunes: bool = True  # whether trials may be stopped early
    processes: int = 1  # of this machine, for the seeds of a trial
    executor: Executor | None = None  # in place of these processes
    pruner: ClassVar = {"name": "WilcoxonPruner", "p_threshold": 0.05, "n_startup_steps": FEW}

    def about(self) -> dict[str, Any]:
        """All that trials must have in common, in the types of JSON."""
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

    def reader_of(self, key: str) -> Reader:
        """The reader of a parameter's text, by its annotation; InputError if there is no such parameter."""
        factory = maker_of(self.policy)[0]
        named = parameters_of(factory)
        choose(key, named, f"parameter of policy {self.policy}:")
        return partial(convert, kind=kinds_of(factory, named).get(key, ANYTHING), what=key)

    def check(self, values: Mapping[str, str]) -> None:
        """Make the policy, as a run does."""
        self._made(spelt(self.policy, values)).rule_under(self.setting.config.semantics)

    def word(self, trial: optuna.Trial | FrozenTrial) -> str:
        """The word of the policy with the values of a trial."""
        return spelt(self.policy, trial.user_attrs[VALUES])

    def settings(self) -> dict[str, Setting]:
        """The settings that the best is judged on."""
        return {"": self.setting}

    def play(self, trial: optuna.Trial, progress: Callable[[float], None]) -> float:
        """Play the seeds, a few at a time; returns the ratio of the metric to that of the defaults.

        TrialPruned: it is clearly worse than the best so far. InputError: it cannot be compared with the defaults.
        """
        import optuna

        word, seeds, runs = self.word(trial), self.seeds, list[Run]()
        while len(runs) < len(seeds):
            few, show = seeds[len(runs) : len(runs) + FEW], partial(_further, progress, len(runs), len(seeds))
            who = {"processes": self.processes, "executor": self.executor, "progress": show}
            runs += evaluate(self.setting, [word], few, **who)  # type: ignore[arg-type]
            if not runs[0].is_drawn:
                runs, seeds = runs[:1], seeds[:1]
            value = self._value(trial, runs)
            if len(runs) < len(seeds) and trial.should_prune():
                trial.report(value, len(self.seeds))  # optuna keeps the last reported value
                raise optuna.TrialPruned(f"clearly worse than the best after {len(runs)} seeds")
        return value

    def _value(self, trial: optuna.Trial, runs: Sequence[Run]) -> float:
        found, jobs = [self._metric(run) for run in runs], [run.metrics["jobs_finished"] for run in runs]
        trial.set_user_attr(PER_SEED, found)
        trial.set_user_attr(JOBS, jobs)
        defaults = trial.study.get_trials(deepcopy=False)[0].user_attrs
        ours, theirs = (sum(counts) for counts in _paired(jobs, defaults[JOBS]))
        if ours < theirs:  # those that do not finish are in no JCT
            raise InputError(f"{ours:g} jobs finished, with the defaults {theirs:g}")
        pairs = _paired(found, defaults[PER_SEED])
        ratio = paired_ratio(*pairs).mean
        if not math.isfinite(ratio):
            raise InputError(f"the defaults have a {self.metric} of 0: nothing can be compared with it")
        for step, (mine, other) in list(enumerate(zip(*pairs, strict=True)))[-FEW:]:
            trial.report(mine / other if other else math.nan, step)  # a seed is a step
        return ratio

    def _metric(self, run: Run) -> float:
        value = run.metrics[choose(self.metric, run.metrics, "metric")]
        if not math.isfinite(value):
            raise InputError(f"seed {run.seed}: there is no {self.metric}")
        return value

    def _made(self, word: str) -> Any:
        return make_for(word, self.setting.environment)


def _further(progress: Callable[[float], None], before: int, seeds: int, done: float) -> None:
    progress((before + done) / seeds)


def _paired(found: Sequence[float], others: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Both on the same seeds; one run that stands for all seeds is there for each."""
    if len(others) == 1:
        return found, [others[0]] * len(found)
    if len(found) == 1:
        return [found[0]] * len(others), others
    return found, others[: len(found)]


@dataclass(frozen=True)
class TrainingParameters:
    """Values of a training's configuration."""

    values: Mapping[str, Any]  # the configuration, checked, but for the chosen values
    folder: Path  # DIR
    prunes: bool = True  # whether trials may be stopped early
    metric: ClassVar[str] = "jct_mean"
    fixed: ClassVar[Mapping[str, str]] = {}
    pruner: ClassVar = {"name": "MedianPruner", "n_startup_trials": 4, "n_warmup_steps": 1, "n_min_trials": 3}

    @property
    def config(self) -> Config:
        """The configuration as it is."""
        return self.config_of({})

    def about(self) -> dict[str, Any]:
        """All that trials must have in common, in the types of JSON."""
        return {
            "what": "training",
            **self.config.model_dump(mode="json"),
            "early stops": self.prunes,
            "content": read_in(self.config),
            "sources": identity.sources(*identity.PLAYING, *identity.LOOKING),
        }

    def reader_of(self, key: str) -> Reader:
        """The reader of the text of a configuration's key; InputError if there is no such key."""
        head, _, rest = key.partition(".")
        choose(head, [name for name in Config.model_fields if name not in YARDSTICKS], "key of the configuration:")
        if head in PARTS and not rest:
            raise InputError(f"{key}: it has keys of its own; expected one of them, as {key}.NAME")
        if head not in PARTS and rest:
            raise InputError(f"{key}: {head} has no keys")
        return yaml.safe_load if rest else partial(convert, kind=Config.model_fields[head].annotation, what=key)

    def config_of(self, values: Mapping[str, str]) -> Config:
        """The configuration with these values."""
        changed = copy.deepcopy(dict(self.values))
        for key, text in values.items():
            assign(changed, key, text)
        return make_config(changed, "configuration")

    def check(self, values: Mapping[str, str]) -> None:
        """Build one environment and check every key, as a training does before it begins."""
        expect_fitting(self.config_of(values))

    def folder_of(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / TRIALS / f"{number:04d}"

    def word(self, trial: optuna.Trial | FrozenTrial) -> str:
        """The word of the best agent of a trial."""
        return f"{self.config.algo}:{self.folder_of(trial.number) / 'best'}"

    def settings(self) -> dict[str, Setting]:
        """The settings that agents are judged on: the scenarios of the validation, by name."""
        return {scenario.name: setting_of(self.config, scenario) for scenario in self.config.validation}

    def write_best(self, values: Mapping[str, str]) -> None:
        """Write DIR/best.yaml: the configuration with these values, for `clustergym train --config`."""
        with written_whole(self.folder / BEST) as draft:
            found = self.config_of(values).model_dump(mode="json")
            draft.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")

    def play(self, trial: optuna.Trial, progress: Callable[[float], None]) -> float:
        """One training, from its checkpoint if it was killed; the score of its best agent. TrialPruned: see `_Log`."""
        from ...agents.training.trainer import Training

        config, folder = self.config_of(trial.user_attrs[VALUES]), self.folder_of(trial.number)
        at = progress_of(folder, config).step
        folder.mkdir(parents=True, exist_ok=True)
        log = _Log(folder, config, at or None, lambda step: progress(step / config.timesteps), quiet=True)
        log.trial = trial
        training = Training(config, folder, log, command=f"trial {trial.number} of clustergym tune")
        write_config(folder, config)
        best = training.run(at > 0)
        log.finished(best)
        return float(best["score"])


Subject = PolicyParameters | TrainingParameters


class _Log(TrainingLog):
    """The listener of a trial's training, which compares it with the other trials."""

    trial: optuna.Trial

    def evaluated(self, evaluated: Evaluated, agent: Path) -> None:
        import optuna

        super().evaluated(evaluated, agent)
        before = self.trial.study.get_trials(deepcopy=False)[self.trial.number].intermediate_values
        number = int(evaluated.step * self.config.evaluations / self.config.timesteps)
        self.trial.report(min([evaluated.score, *before.values()]), number)
        if number < self.config.evaluations and self.trial.should_prune():
            self.log.close()
            raise optuna.TrialPruned(f"behind half of the others at step {evaluated.step:,}")
