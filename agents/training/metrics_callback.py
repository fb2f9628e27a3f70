"""The cluster in the log of a training with stable-baselines3: metrics of episodes, level lines of baselines."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from ...envs.cluster_env import ClusterEnv
from ...envs.common_options import NAMESPACE
from ...policies import make_for
from ...simulator.base.errors import InputError
from ...simulator.base.said_once import say_once
from ...simulator.engine.metric_registry import METRICS
from .validation import FIRST_SEED, play_alone

SHOWN = [metric for metric in METRICS.values() if metric.own_tag or metric.name == "jobs_finished"]
INVALID = "rollout/invalid_actions"
WORKLOADS = 20  # that a baseline plays


class MetricsCallback(BaseCallback):
    """Log what a training does to the cluster, with the tags of `clustergym train`: `jct/mean_s`, `gpu_utilisation`...

    A value is the mean over the training episodes that ended last, as many as `rollout/ep_rew_mean` is of;
    `rollout/invalid_actions` is the share of illegal actions since the log was last written. An episode that is cut off
    has the JCTs of the jobs that finished: see `more/jobs_finished`. Until an episode has ended there are no metrics; a
    training in which none ended warns of that.

    Args:
        baselines: names of policies, also in one text with spaces between. Each plays 20 workloads as those of the
            training, of other seeds, and its means are level lines with the same tags, in a TensorBoard run of its own
            below the model's: `PPO_1/greedy`. They need the model's `tensorboard_log`.

    Raises:
        InputError: at the start of the training: its environment is none of ours, a baseline does not play there, or
            there is no TensorBoard log.
    """

    def __init__(self, baselines: str | Sequence[str] = ()) -> None:
        super().__init__()
        self.baselines = baselines.split() if isinstance(baselines, str) else list(baselines)
        self._episodes: deque[Mapping[str, float]] = deque()
        self._have_ended = False  # episodes, in this rollout
        self._began_at = 0  # decision of the model
        self._lines: list[tuple[Logger, dict[str, float]]] = []

    def _on_training_start(self) -> None:
        self._began_at = self.num_timesteps
        ended = self.model.ep_info_buffer
        self._episodes = deque(self._episodes, maxlen=None if ended is None else ended.maxlen)
        rows = self.training_env.get_attr("unwrapped")
        for env in rows:
            if not isinstance(env, ClusterEnv):
                found = f"the environment is {type(env).__name__}"
                raise InputError(f"MetricsCallback: {found}, expected one of clustergym's")
        if self.baselines:
            self._lines = self._level_lines(rows)
            self._draw()

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        invalid = getattr(self.training_env, "invalid_action", None)  # of a batch
        if invalid is None:
            invalid = [info["invalid_action"] for info in infos]
        self.logger.record_mean(INVALID, float(np.mean(invalid)))
        ended = [info["metrics"] for info in infos if "metrics" in info]
        if ended:
            self._have_ended = True
            self._episodes.extend(ended)
            for tag, mean in _means(self._episodes).items():
                self.logger.record(tag, mean)
        return True

    def _on_rollout_end(self) -> None:
        if self._have_ended:
            self._draw()
        self._have_ended = False

    def _on_training_end(self) -> None:
        for log, _ in self._lines:
            log.close()
        if not self._episodes:
            made, rows = self.num_timesteps - self._began_at, self.training_env.num_envs
            of_rows = f" of {rows} environments" if rows > 1 else ""
            say_once(
                f"MetricsCallback: no metrics were logged, since no episode ended in {made:,} decisions{of_rows}; give "
                "learn() more timesteps, or the environment a smaller workload, as workload=batch:jobs=16"
            )

    def _draw(self) -> None:
        """Draw lines to here: of fewer or more points than the model's, TensorBoard would take one for outliers."""
        for log, levels in self._lines:
            for tag, level in levels.items():
                log.record(tag, level)
            log.dump(self.num_timesteps)

    def _level_lines(self, rows: Sequence[ClusterEnv]) -> list[tuple[Logger, dict[str, float]]]:
        if not any(isinstance(one, TensorBoardOutputFormat) for one in self.logger.output_formats):
            without = "this model has none: give it tensorboard_log=DIR, or leave the baselines out"
            raise InputError(f"MetricsCallback: baselines are lines of a TensorBoard log, and {without}")
        envs = [type(env)(*env.given[0], **env.given[1]) for env in rows[:WORKLOADS]]  # copies: the training's play on
        lines = []
        for word in self.baselines:
            levels = _means([_played(word, envs[i % len(envs)], FIRST_SEED + i) for i in range(WORKLOADS)])
            folder = str(Path(self.logger.dir or "") / word.replace("/", ","))
            lines.append((Logger(folder, [TensorBoardOutputFormat(folder)]), levels))
        return lines


def _played(word: str, env: Any, seed: int) -> Mapping[str, float]:
    """The metrics of a policy on the workload of `seed`."""
    policy = make_for(word, f"{NAMESPACE}{env.part}")
    env.draw(seed, None)
    return play_alone(env.simulator, env.simulator.workload, policy)[0]


def _means(episodes: Sequence[Mapping[str, float]] | deque[Mapping[str, float]]) -> dict[str, float]:
    """By tag; episodes that lack a metric, or have no finished job, do not count."""
    found = {}
    for metric in SHOWN:
        values = [value for one in episodes if math.isfinite(value := one.get(metric.name, math.nan))]
        if values:
            found[metric.tag] = float(np.mean(values))
    return found
