"""Tuning a training: every trial is a training of its own, judged on its validation workloads.

A trial has the folder DIR/trials/0007, as `clustergym train --logdir` would make it. One that was killed goes on from
its checkpoint. A trial is stopped where its best agent so far is worse than the median of the others at the same of the
periodic evaluations.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ...agents.training.config import Config, assign, expect_fitting, make_config
from ...agents.training.what_is_read import read_in
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ..console.terminal import written_whole
from ..learning.training import TrainingLog, read_config, setting_of, write_config
from ..settings.evaluation_setting import Setting
from ..storing import identity
from .of_policy import kind_of_annotation
from .space import Kind
from .trial_search import Direction, Going, Outcome

if TYPE_CHECKING:
    from ...agents.training.trainer import Evaluated

TRIALS, BEST = "trials", "best.yaml"
# What trials are compared on must be the same for all.
YARDSTICKS = ("environment", "training", "validation", "validation_seeds", "reference", "evaluations")
PARTS = ("env", "net_options")  # keys with keys of their own


class _Behind(Exception):
    """The trial that is played is worse than others were at the same evaluation."""


@dataclass(frozen=True)
class TrainingParameters:
    """Values of a training's configuration.

    Attributes:
        values: the configuration, checked, but for what is chosen.
        folder: DIR.
        prunes: whether trials may be stopped early.
        quiet: say nothing of each evaluation.
    """

    values: Mapping[str, Any]
    folder: Path
    prunes: bool = True
    quiet: bool = True
    direction: Direction = "minimize"

    @property
    def config(self) -> Config:
        """The configuration as it is."""
        return self.config_of({})

    def about(self) -> dict[str, Any]:
        """All that trials must have in common."""
        return {
            "what": "training",
            **self.config.model_dump(mode="json"),
            "early stops": self.prunes,
            "content": read_in(self.config),
            "sources": identity.sources(*identity.PLAYING, *identity.LOOKING),
        }

    @property
    def fixed(self) -> Mapping[str, str]:
        """Nothing: what is not in the space is as the configuration has it."""
        return {}

    def kind_of(self, key: str) -> Kind:
        """What values a key of the configuration takes."""
        head, _, rest = key.partition(".")
        choose(head, [name for name in Config.model_fields if name not in YARDSTICKS], "key of the configuration:")
        if head in PARTS:
            if not rest:
                raise InputError(f"{key}: it has keys of its own; expected one of them, as {key}.NAME")
            return "either"
        if rest:
            raise InputError(f"{key}: {head} has no keys")
        return kind_of_annotation(Config.model_fields[head].annotation)

    def default_of(self, key: str) -> Any:
        """The value of a key as the configuration has it, given or not; None if it is not known."""
        head, _, rest = key.partition(".")
        value = getattr(self.config, head)
        if not rest:
            return value
        if rest in value:
            return value[rest]
        from ...agents.networks import network_class
        from ...envs.registration import env_class

        factory: Any = env_class(self.config.environment) if head == "env" else network_class(self.config.net)[0]
        found = inspect.signature(factory).parameters.get(rest)
        return None if found is None or found.default is found.empty else found.default

    def config_of(self, values: Mapping[str, str]) -> Config:
        """The configuration with these values."""
        changed = copy.deepcopy(dict(self.values))
        for key, text in values.items():
            assign(changed, key, text)
        return make_config(changed, "configuration")

    def check(self, values: Mapping[str, str]) -> None:
        """Build one environment and look at every key, as a training does before it begins."""
        expect_fitting(self.config_of(values))

    def agent(self, place: int) -> str:
        """The word of the best agent of a trial."""
        return f"{self.config.algo}:{self.folder_of(place) / 'best'}"

    def folder_of(self, place: int) -> Path:
        """Where a trial is."""
        return self.folder / TRIALS / f"{place:04d}"

    def settings(self) -> dict[str, Setting]:
        """What agents are judged on: the scenarios of the validation, by name."""
        config = self.config
        return {scenario.name: setting_of(config, scenario) for scenario in config.validation}

    def write_best(self, values: Mapping[str, str]) -> None:
        """Write DIR/best.yaml: the configuration with these values, for `clustergym train --config`."""
        with written_whole(self.folder / BEST) as draft:
            found = self.config_of(values).model_dump(mode="json")
            draft.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")

    def play(self, going: Going) -> Outcome:
        """One training, from its checkpoint if it was killed."""
        from ...agents.files.checkpoint import read_checkpoint
        from ...agents.files.folders import standing
        from ...agents.training.trainer import CHECKPOINT, Training

        config = self.config_of(going.values or {})
        folder = self.folder_of(going.place)
        folder.mkdir(parents=True, exist_ok=True)
        resume = standing(folder / CHECKPOINT).is_dir() and _is_of(folder, config)
        saved = read_checkpoint(folder / CHECKPOINT) if resume else None
        log = _Log(folder, config, saved.step if saved else None, going, self.quiet)
        if saved is not None:
            log.best = saved.data["best"].get("score", math.inf)
        training = Training(config, folder, log, command=f"trial {going.place} of clustergym tune")
        write_config(folder, config)
        try:
            best = training.run(resume)
        except _Behind as reason:
            return Outcome(str(folder), log.best, stopped=str(reason))
        log.finished(best)
        return Outcome(str(folder), float(best["score"]))


def _is_of(folder: Path, config: Config) -> bool:
    try:
        return read_config(folder) == config.model_dump(mode="json")
    except InputError:
        return False


class _Log(TrainingLog):
    """What a training writes, and how it stands beside the other trials."""

    def __init__(self, folder: Path, config: Config, resume_at: int | None, going: Going, quiet: bool) -> None:
        def show(step: float) -> None:
            going.progress(step / config.timesteps)

        super().__init__(folder, config, resume_at, show, quiet)
        self.going, self.best = going, math.inf

    def evaluated(self, evaluated: Evaluated, agent: Path) -> None:
        """Curves and pictures; then see whether to go on.

        Raises:
            _Behind: others were better at the same evaluation.
        """
        super().evaluated(evaluated, agent)
        self.best = min(self.best, evaluated.score)
        number = int(evaluated.step * self.config.evaluations / self.config.timesteps)
        self.going.report(number, self.best)
        if number < self.config.evaluations and self.going.is_behind():
            self.log.close()
            raise _Behind(f"behind half of the others at step {evaluated.step:,}")
