"""A warm start: clone a heuristic's decisions, then soften them so that there is something left to explore."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...policies import make_for
from ..networks import LOWEST
from ..vec_env import ClusterVecEnv
from .config import Config

BATCH = 1024
RATE = 1e-3
IMPOSSIBLE = 0.5 * LOWEST  # a log-probability below this is that of an action that is never taken


def clone(policy: Any, env: ClusterVecEnv, config: Config) -> float:
    """Modify `policy`: imitate `config.imitate` on decisions that it takes in `env`, then divide logits by `soften`.

    A decision that no candidate of the window stands for, or that the agent may not take (`holds`), is played, but not
    learned from.

    Args:
        policy: of `policies.py`.
        env: where the heuristic plays; it is reset.
        config: whom, on how many decisions, how often, how softly.

    Returns:
        The share of the decisions, of those learned from, that the clone takes too (before it is softened).
    """
    assert config.imitate is not None
    observations, actions = _decisions(env, config.imitate, config.environment, config.imitation_steps)
    with torch.no_grad():
        likely = [policy.evaluate_actions(observations[pick], actions[pick])[1] for pick in _batches(len(actions))]
    possible = torch.cat(likely) > IMPOSSIBLE
    observations, actions = observations[possible], actions[possible]
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    for _ in range(config.imitation_epochs):
        for pick in torch.randperm(len(actions)).split(BATCH):
            log_prob = policy.evaluate_actions(observations[pick], actions[pick])[1]
            loss = -log_prob.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        agreed = [
            (_candidates(policy._predict(observations[pick], deterministic=True)) == _candidates(actions[pick])).float()
            for pick in _batches(len(actions))
        ]
    if hasattr(policy.network, "soften"):
        policy.network.soften(config.soften)
    return float(torch.cat(agreed).mean())


def _candidates(actions: torch.Tensor) -> torch.Tensor:
    """The first part of actions, (n,)."""
    return actions.view(len(actions), -1)[:, 0]


def _batches(count: int) -> tuple[torch.Tensor, ...]:
    """The numbers of so many decisions, in order, some at a time."""
    return torch.arange(count).split(BATCH)


def _decisions(env: ClusterVecEnv, word: str, environment: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Observations (count, F) and the actions (count, ...) that the policy `word` takes there.

    Every row has a policy of its own: many keep what they know of a run.
    """
    policies = [make_for(word, environment) for _ in range(env.num_envs)]
    observations, actions = [], []
    learned = 0
    env.reset()
    while learned < count:
        demonstrations = [one.demonstration(policy) for one, policy in zip(env.envs, policies, strict=True)]
        played, seen, known = (np.stack(column) for column in zip(*demonstrations, strict=True))
        observations.append(seen[known])
        actions.append(played[known])
        learned += int(known.sum())
        env.step(played)
    return torch.as_tensor(np.concatenate(observations)[:count]), torch.as_tensor(np.concatenate(actions)[:count])
