"""The records of a training: TensorBoard curves, heuristics as level lines, pictures, configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...envs.configured import options_of
from ...policies import able
from ...policies.own import PolicyFailed
from ...simulator.base.errors import InputError
from ...simulator.files.regular_files import expect_plain_file
from ..console.terminal import say, written_whole
from ..playing.evaluation import play
from ..playing.runs import Run
from ..settings.evaluation_setting import Setting
from .tensorboard_log import HEADLINES, AgentLog, applying, extend_heuristics, tag, write_heuristics

if TYPE_CHECKING:
    from ...agents.training.config import Config, Scenario
    from ...agents.training.imitation import Imitated
    from ...agents.training.trainer import Evaluated
    from ...agents.training.validation import Played, Validation

CONFIG = "config.json"
AGENT = "agent"
LINES = 4  # heuristics in the first view of TensorBoard


def lines_of(means: Mapping[str, float], reference: str) -> list[str]:
    """The heuristics that TensorBoard shows beside an agent, of mean ratios by name, in the order given.

    They are the reference, `fifo`, and the best others. With the agent they are five: it has seven colours for runs.
    """
    chosen = sorted(means, key=lambda word: (word not in (reference, "fifo"), means[word]))[:LINES]
    return [word for word in means if word in chosen]


class TrainingLog:
    """The listener of a training: TensorBoard, progress and one line an evaluation.

    The tags of an evaluation are those of heuristics, over the workloads of the first validation scenario; the main
    ones of another have its name in front, `scenario/low-load/jct/mean_s`. `against_greedy/low-load` is the ratio of
    mean JCTs to the reference's, `against_greedy/mean` the mean over scenarios, by which the best agent is chosen.
    `resume_at` is the training step to go on from, or None.
    """

    def __init__(
        self, folder: Path, config: Config, resume_at: int | None, progress: Callable[[float], None], quiet: bool
    ) -> None:
        self.folder, self.config, self.quiet = folder, config, quiet
        self.progressed = progress
        self.log = AgentLog(folder / AGENT, resume_at, critic=config.variance != "group")
        self.beside: list[Run] = []

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Figures of an update."""
        self.log.scalars(step, values)

    def imitated(self, imitated: Imitated) -> None:
        """Figures of the warm start, and a line on stderr."""
        counts = {f"imitation/{fate}": float(sum(kinds.values())) for fate, kinds in imitated.decisions.items()}
        self.log.scalars(0, {"imitation/agreement": imitated.agreement, **counts})
        if not self.quiet:
            say(str(imitated))

    def evaluated(self, evaluated: Evaluated, agent: Path) -> None:
        """Curves, pictures and a line on stderr."""
        played = evaluated.played[evaluated.mode]
        first = self.config.validation[0]
        word = f"{self.config.algo}:{agent}"
        setting = setting_of(self.config, first)
        seeds = [one.seed for one in played if one.scenario == first.name]
        seen = self._seen(setting, word, seeds[0])
        self.log.evaluation(evaluated.step, _runs(AGENT, played, first.name, seen), self._beside(setting, seeds[0]))
        self.log.scalars(evaluated.step, self._levels(played, evaluated.ratios[evaluated.mode]))
        for mode, ratios in evaluated.ratios.items():
            self.log.scalars(evaluated.step, {f"mode/{mode}_{self._against}": _mean(ratios)})
        if not self.quiet:
            parts = ", ".join(f"{name} {value:.3f}" for name, value in evaluated.ratios[evaluated.mode].items())
            best = " (best so far)" if evaluated.is_best else ""
            say(f"{evaluated.step:,} steps: mean JCT / {self.config.reference}'s: {parts}; {evaluated.mode}{best}")

    def _seen(self, setting: Setting, word: str, seed: int) -> Run | None:
        """The agent's run with its timeline; None if it does not end, which may happen early in a training."""
        try:
            return play(setting, word, seed, record=True)
        except PolicyFailed as error:
            if not self.quiet:
                say(f"no pictures of this evaluation: {error}")
            return None

    def heuristics(self, validation: Validation, words: Sequence[str]) -> None:
        """Write some heuristics as level lines, under the tags of all scenarios that the agent has: `lines_of`."""
        from ...agents.training.validation import ratios

        first = self.config.validation[0].name
        played = {word: validation.play_heuristic(word) for word in dict.fromkeys([self.config.reference, *words])}
        reference = played[self.config.reference]
        found = {word: ratios(played[word], reference) for word in words}
        drawn = lines_of({word: _mean(one) for word, one in found.items()}, self.config.reference)
        runs = [run for word in drawn for run in _runs(word, played[word], first)]
        more = {word: self._levels(played[word], found[word]) for word in drawn}
        self.log.show(applying(runs))
        write_heuristics(runs, self.folder, self.config.timesteps, more, places_of(self.config))

    def finished(self, best: dict[str, Any]) -> None:
        """Write the run's row of the HParams page."""
        config = self.config.model_dump(mode="json", exclude={"training", "validation"})
        self.log.hparams(config, {f"{self._against}/mean": _mean(best["ratios"])}, places_of(self.config))
        self.log.close()
        extend_heuristics(self.folder, self.log.last_step)

    @property
    def _against(self) -> str:
        return f"against_{self.config.reference}"

    def _levels(self, played: Sequence[Played], ratios: Mapping[str, float]) -> dict[str, float]:
        """Beside the metrics of the first scenario: ratios to the reference, and the main metrics of the others."""
        levels = {f"{self._against}/{name}": ratio for name, ratio in ratios.items()}
        levels[f"{self._against}/mean"] = _mean(ratios)
        for scenario in self.config.validation[1:]:
            mine = [one.metrics for one in played if one.scenario == scenario.name]
            for metric in HEADLINES:
                mean = float(np.mean([metrics[metric] for metrics in mine]))
                levels[f"scenario/{scenario.name}/{tag(metric)}"] = mean
        return levels

    def _beside(self, setting: Setting, seed: int) -> list[Run]:
        if not self.beside:
            self.beside = [play(setting, self.config.reference, seed)]
        return self.beside


def _runs(word: str, played: Sequence[Played], scenario: str, seen: Run | None = None) -> list[Run]:
    """`played` in one scenario as runs; times of jobs and the timeline are those of `seen`, on its seed."""
    runs = []
    for one in played:
        if one.scenario == scenario:
            shown = seen if seen is not None and seen.seed == one.seed else None
            jct_s = shown.jct_s if shown else np.empty(0)
            timeline = shown.timeline if shown else None
            runs.append(Run(word, one.seed, one.metrics, int(one.metrics["jobs_finished"]), jct_s, (), timeline))
    return runs


def _mean(ratios: Mapping[str, float]) -> float:
    return float(np.mean(list(ratios.values())))


def setting_of(config: Config, scenario: Scenario) -> Setting:
    """The setting of a scenario of a training; the first of several workloads."""
    options = {key: config.env[key] for key in options_of(config.environment) if key in config.env}
    return Setting.of(config.environment, scenario.topology, scenario.workloads[0], scenario.network, **options)


def places_of(config: Config) -> dict[str, str]:
    """Workload, topology and network of the validation, in words: each once, of several scenarios."""
    scenarios = config.validation
    words = {
        "workload": [word for one in scenarios for word in one.workloads],
        "topology": [one.topology for one in scenarios],
        "network": [one.network for one in scenarios],
    }
    return {name: " | ".join(dict.fromkeys(mine)) for name, mine in words.items()}


def words_beside(config: Config) -> list[str]:
    """The policies whose level lines stand beside a training."""
    # Policies of elastic jobs play another game unless the environment's jobs are elastic too.
    plain = not config.env.get("elastic", False)
    return able(config.environment, config.env.get("estimates", "exact"), plain)


def write_config(folder: Path, config: Config) -> None:
    """Keep the configuration of a training in its folder."""
    with written_whole(folder / CONFIG) as draft:
        draft.write_text(json.dumps(config.model_dump(mode="json"), indent=2) + "\n", encoding="utf-8")


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of the training in `folder`; InputError if there is none, or it is no JSON."""
    path = folder / CONFIG
    expect_plain_file(path)
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: no training to go on with ({error.strerror}); without --resume one begins") from None
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{path}: this is not the configuration of a training") from None
