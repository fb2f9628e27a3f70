"""The group baseline: PPO whose advantage is the difference to other runs of the same workload.

Rows come in groups of replicas that play the same workload under different random choices. A rollout is one whole
episode of every row. The advantage of a decision at time t is the row's return from t on, less the mean return of the
other replicas from t on, in units of the spread of these differences within the group, so that a workload of large
differences counts no more than others. There are no discounts, bootstrapped values or value network.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBufferSamples
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecEnv

from ..vec_env import ClusterVecEnv

LARGEST_SEED = 2**31 - 1
SMALL = 1e-8
LEAST_ROOM = 4096  # decisions


class Episodes:
    """The steps of one rollout, with the interface of a rollout buffer for PPO's update; with masks if `masked`."""

    def __init__(self, masked: bool) -> None:
        self.masked = masked
        self.count = 0
        self._room: dict[str, np.ndarray] = {}

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """By name, one row a decision, in the order of play; views."""
        return {name: column[: self.count] for name, column in self._room.items()}

    def clear(self) -> None:
        """Forget the steps, but keep their memory: fresh pages cost as much as a step of the environment."""
        self.count = 0

    def add(self, **columns: np.ndarray) -> None:
        """One step of some rows: `row` (k,), and arrays (k, ...) by name."""
        end = self.count + len(columns["row"])
        for name, column in columns.items():
            self._column(name, end, column)[self.count : end] = column
        self.count = end

    def _column(self, name: str, size: int, like: np.ndarray) -> np.ndarray:
        room = self._room.get(name)
        if room is None or len(room) < size:
            larger = np.empty((max(LEAST_ROOM, size + size // 2), *like.shape[1:]), like.dtype)
            if room is not None:
                kept = min(self.count, len(room))
                larger[:kept] = room[:kept]
            self._room[name] = room = larger
        return room

    def finish(self, replicas: int) -> None:
        """Compute returns and advantages once every row has ended."""
        columns = self.columns
        order = np.argsort(columns["row"], kind="stable")
        row, reward, after_s = (columns[name][order] for name in ("row", "reward", "after_s"))
        returns, advantages = np.empty(len(row)), np.empty(len(row))
        bounds = np.searchsorted(row, np.arange(row[-1] + 2))
        parts = [slice(first, last) for first, last in pairwise(bounds)]
        for part in parts:
            returns[part] = np.cumsum(reward[part][::-1])[::-1]
        # Remaining return of a row as a function of time: at each decision, and 0 at its end.
        curves = [(np.concatenate([[0.0], after_s[part]]), np.concatenate([returns[part], [0.0]])) for part in parts]
        for number, part in enumerate(parts):
            group = number - number % replicas
            before_s = curves[number][0][:-1]
            others = [np.interp(before_s, *curves[j]) for j in range(group, group + replicas) if j != number]
            advantages[part] = returns[part] - np.mean(others, axis=0)
        for first in range(0, len(parts), replicas):
            members = slice(parts[first].start, parts[first + replicas - 1].stop)
            advantages[members] /= advantages[members].std() + SMALL
        for name, found in (("return", returns), ("advantage", advantages)):
            self._column(name, self.count, found.astype(np.float32))[order] = found

    @property
    def values(self) -> np.ndarray:
        """Of the value network, for the log."""
        return self.columns["value"]

    @property
    def returns(self) -> np.ndarray:
        """The returns."""
        return self.columns["return"]

    def get(self, batch_size: int) -> Iterator[Any]:
        """The steps once, in random order, `batch_size` at a time."""
        columns = self.columns
        order = np.random.permutation(self.count)  # noqa: NPY002  as SB3's own buffers, whose state we keep
        names = ["observation", "action", "value", "log_prob", "advantage", "return"] + ["mask"] * self.masked
        kind = MaskableRolloutBufferSamples if self.masked else RolloutBufferSamples
        tensors = [torch.as_tensor(columns[name]) for name in names]
        for first in range(0, len(order), batch_size):
            pick = torch.as_tensor(order[first : first + batch_size])
            if len(pick) < 2:
                break  # one sample has no spread to be scaled by
            yield kind(*[tensor.index_select(0, pick) for tensor in tensors])


class _Grouped:
    """The common part of both learners.

    Attributes:
        replicas: rows in a group.
        each: expected decisions of an episode: the longest of the last rollout; 0: unknown.
    """

    replicas: int
    each: float = 0.0
    masked: bool
    policy: Any
    num_timesteps: int
    _total_timesteps: int
    rollout_buffer: Any
    ep_info_buffer: Any

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int, *_: Any, **__: Any
    ) -> bool:
        """Play one episode of every row, or of as many as fit; a row that has ended waits for the others."""
        assert isinstance(env, ClusterVecEnv)
        left = self._total_timesteps - self.num_timesteps
        count = rows_of_rollout(env.num_envs, self.replicas, self.each, left, self.num_timesteps == 0)
        if not count:
            return False
        callback.on_rollout_start()
        self.policy.set_training_mode(False)
        env.seed(int(np.random.randint(LARGEST_SEED)))  # noqa: NPY002
        rows = np.arange(count)
        observation = env.reset()[:count]
        episodes = self._episodes = getattr(self, "_episodes", None) or Episodes(self.masked)
        episodes.clear()
        clock_s, total, length = (np.zeros(count) for _ in range(3))
        while len(rows):
            masks = env.action_masks(rows) if self.masked else None
            with torch.no_grad():
                drawn = self.policy(torch.as_tensor(observation), **({"action_masks": masks} if self.masked else {}))
            actions, values, log_probs = (tensor.numpy() for tensor in drawn)
            step = {"row": rows, "observation": observation, "action": actions, "log_prob": log_probs}
            step |= {"value": values[:, 0]} | ({} if masks is None else {"mask": masks})
            observation, rewards, ended, elapsed_s = env.play(rows, actions)
            clock_s[rows] += elapsed_s
            total[rows] += rewards
            length[rows] += 1
            episodes.add(**step, reward=rewards, after_s=clock_s[rows])
            self.num_timesteps += len(rows)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            if ended.any():
                rows, observation = rows[~ended], observation[~ended]
        episodes.finish(min(self.replicas, count))
        self.each = float(length.max())
        self.ep_info_buffer.extend({"r": r, "l": n, "t": 0.0} for r, n in zip(total, length, strict=True))
        self.rollout_buffer = episodes
        callback.on_rollout_end()
        return True


def rows_of_rollout(rows: int, replicas: int, each: float, left: int, is_first: bool) -> int:
    """The number of rows of a rollout, so that no more decisions are taken than are `left`.

    All `rows`, or as many whole groups of `replicas` as fit, if an episode of a row takes `each` decisions (0:
    unknown). The first rollout is always played: by a part of a group, at least two rows, if no whole one fits.
    """
    fitting = rows if each * rows <= left else int(left / each)
    if fitting >= replicas or not is_first:
        return fitting - fitting % replicas
    return max(2, fitting)


class GroupMaskablePPO(_Grouped, MaskablePPO):
    """MaskablePPO with the group baseline."""

    masked = True


class GroupPPO(_Grouped, PPO):
    """PPO with the group baseline."""

    masked = False
