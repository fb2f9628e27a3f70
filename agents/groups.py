"""The group baseline: PPO whose advantage is the difference to other runs of the same workload.

Rows come in groups of replicas that play the same workload under different random choices. A rollout is one whole
episode of every row. The advantage of a decision at time t is what the row gets from t on, less the mean of what the
other replicas of its workload get from t on, in units of the spread of these differences within the group: a workload
on which much can go wrong counts no more than a calm one. Nothing is discounted, and no value is bootstrapped; the
value network learns along, for the logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBufferSamples
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecEnv

LARGEST_SEED = 2**31 - 1
SMALL = 1e-8


class Episodes:
    """The steps of one rollout, row after row, with what PPO's update asks of a rollout buffer.

    Args:
        masked: whether the samples carry masks.
    """

    def __init__(self, masked: bool) -> None:
        self.masked = masked
        self._steps: list[dict[str, np.ndarray]] = []
        self.columns: dict[str, np.ndarray] = {}

    def add(self, **columns: np.ndarray) -> None:
        """One step of some rows: `row` (k,), and arrays (k, ...) by name."""
        self._steps.append(columns)

    def finish(self, replicas: int) -> None:
        """Compute returns and advantages once every row has ended."""
        columns = {name: np.concatenate([step[name] for step in self._steps]) for name in self._steps[0]}
        order = np.argsort(columns["row"], kind="stable")
        self.columns = {name: column[order] for name, column in columns.items()}
        self._steps = []
        row, reward, after_s = (self.columns[name] for name in ("row", "reward", "after_s"))
        returns, advantages = np.empty(len(row)), np.empty(len(row))
        bounds = np.searchsorted(row, np.arange(row[-1] + 2))
        parts = [slice(first, last) for first, last in pairwise(bounds)]
        for part in parts:
            returns[part] = np.cumsum(reward[part][::-1])[::-1]
        # What a row still gets, as a function of time: at each decision, and nothing at its end.
        curves = [(np.concatenate([[0.0], after_s[part]]), np.concatenate([returns[part], [0.0]])) for part in parts]
        for number, part in enumerate(parts):
            group = number - number % replicas
            before_s = curves[number][0][:-1]
            others = [np.interp(before_s, *curves[j]) for j in range(group, group + replicas) if j != number]
            advantages[part] = returns[part] - np.mean(others, axis=0)
        for first in range(0, len(parts), replicas):
            members = slice(parts[first].start, parts[first + replicas - 1].stop)
            advantages[members] /= advantages[members].std() + SMALL
        self.columns["return"], self.columns["advantage"] = returns, advantages

    @property
    def values(self) -> np.ndarray:
        """Of the value network, for the log."""
        return self.columns["value"]

    @property
    def returns(self) -> np.ndarray:
        """What was reached."""
        return self.columns["return"]

    def get(self, batch_size: int) -> Iterator[Any]:
        """The steps once, in random order, `batch_size` at a time."""
        order = np.random.permutation(len(self.columns["row"]))  # noqa: NPY002  as SB3's own buffers, whose state we keep
        names = ("observation", "action", "value", "log_prob", "advantage", "return")
        for first in range(0, len(order), batch_size):
            pick = order[first : first + batch_size]
            if len(pick) < 2:
                break  # one sample has no spread to be scaled by
            tensors = [torch.as_tensor(self.columns[name][pick].astype(np.float32)) for name in names]
            if self.masked:
                tensors.append(torch.as_tensor(self.columns["mask"][pick]))
                yield MaskableRolloutBufferSamples(*tensors)
            else:
                yield RolloutBufferSamples(*tensors)


class _Grouped:
    """What both learners share.

    Attributes:
        replicas: rows in a group.
    """

    replicas: int
    masked: bool
    policy: Any
    num_timesteps: int
    rollout_buffer: Any

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int, *_: Any, **__: Any
    ) -> bool:
        """Play one episode of every row; a row that has ended plays on unheard until all have."""
        callback.on_rollout_start()
        self.policy.set_training_mode(False)
        env.seed(int(np.random.randint(LARGEST_SEED)))  # noqa: NPY002
        observation = env.reset()
        episodes = Episodes(self.masked)
        clock_s = np.zeros(env.num_envs)
        playing = np.ones(env.num_envs, np.bool_)
        while playing.any():
            rows = np.flatnonzero(playing)
            masks = get_action_masks(env) if self.masked else None
            with torch.no_grad():
                drawn = self.policy(torch.as_tensor(observation), **({"action_masks": masks} if self.masked else {}))
            actions, values, log_probs = (tensor.numpy() for tensor in drawn)
            seen = observation
            observation, rewards, ended, infos = env.step(actions)
            clock_s += env.elapsed_s  # type: ignore[attr-defined]
            step = {"observation": seen, "action": actions, "value": values[:, 0], "log_prob": log_probs}
            step |= {"reward": rewards, "after_s": clock_s} | ({} if masks is None else {"mask": masks})
            episodes.add(row=rows, **{name: column[rows] for name, column in step.items()})
            self.num_timesteps += len(rows)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            playing &= ~ended
        episodes.finish(self.replicas)
        self.rollout_buffer = episodes
        callback.on_rollout_end()
        return True


class GroupMaskablePPO(_Grouped, MaskablePPO):
    """MaskablePPO with the group baseline."""

    masked = True


class GroupPPO(_Grouped, PPO):
    """PPO with the group baseline."""

    masked = False
