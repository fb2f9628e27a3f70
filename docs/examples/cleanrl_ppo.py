"""PPO with action masks in one file, in the manner of CleanRL: Gymnasium's vector environment and plain torch.

python docs/examples/cleanrl_ppo.py --updates 50
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn

import clustergym

GAMMA = 1.0  # most decisions take no time: a discount per decision would say nothing about time
LAMBDA, CLIP, EPOCHS, BATCH, ENTROPY, VALUE = 0.95, 0.2, 4, 512, 0.003, 0.5


class Agent(nn.Module):
    """Logits of both parts of the action, side by side, and a value; illegal ones get no probability."""

    def __init__(self, features: int, parts: list[int]) -> None:
        super().__init__()
        self.parts = parts
        self.actor = nn.Sequential(nn.Linear(features, 128), nn.Tanh(), nn.Linear(128, sum(parts)))
        self.critic = nn.Sequential(nn.Linear(features, 128), nn.Tanh(), nn.Linear(128, 1))

    def distributions(self, observation: torch.Tensor, mask: torch.Tensor) -> list[torch.distributions.Categorical]:
        """One a part of the action."""
        logits = self.actor(observation).masked_fill(~mask, -1e9)
        return [torch.distributions.Categorical(logits=part) for part in logits.split(self.parts, 1)]

    def judge(self, observation: torch.Tensor, mask: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Log probability of the actions, entropy, and value."""
        parts = self.distributions(observation, mask)
        log_probability = sum(part.log_prob(action[:, i]) for i, part in enumerate(parts))
        return log_probability, sum(part.entropy() for part in parts), self.critic(observation).squeeze(1)


def train(updates: int, num_envs: int = 16, steps: int = 128, seed: int = 0) -> list[float]:
    """Train; returns the mean return of the episodes that ended in each update (against `sjf`: 0 is as good)."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    envs = clustergym.make_vec(
        "Delay",
        num_envs,
        autoreset_mode="same-step",
        observation="flat",
        slots=8,
        running_slots=4,
        preemption=False,
        reference="sjf",
        workload="poisson:jobs=48,backlog=24,load=1.3",
    )
    agent = Agent(envs.single_observation_space.shape[0], envs.single_action_space.nvec.tolist())
    optimiser = torch.optim.Adam(agent.parameters(), lr=1e-3)
    observation, _ = envs.reset(seed=seed)
    totals, curve = np.zeros(num_envs), []
    for _ in range(updates):
        played, returns = [], []
        for _ in range(steps):
            seen, mask = torch.as_tensor(observation), torch.as_tensor(envs.action_masks())
            with torch.no_grad():
                action = torch.stack([part.sample() for part in agent.distributions(seen, mask)], 1)
                log_probability, _, value = agent.judge(seen, mask, action)
            observation, reward, terminated, truncated, _ = envs.step(action.numpy())
            done = terminated | truncated  # one that is cut off has paid for what it leaves: no bootstrap
            totals += reward
            returns += totals[done].tolist()
            totals[done] = 0.0
            played.append((seen, mask, action, log_probability, value, torch.as_tensor(reward).float(), done))
        improve(agent, optimiser, played, torch.as_tensor(observation))
        curve.append(float(np.mean(returns)) if returns else float("nan"))
    envs.close()
    return curve


def improve(agent: Agent, optimiser: torch.optim.Optimizer, played: list[tuple], last: torch.Tensor) -> None:
    """One PPO update on what was played."""
    with torch.no_grad():
        following, advantage, advantages = agent.critic(last).squeeze(1), torch.zeros(len(last)), []
        for *_, value, reward, done in reversed(played):
            goes_on = torch.as_tensor(~done).float()
            delta = reward + GAMMA * following * goes_on - value
            advantage = delta + GAMMA * LAMBDA * goes_on * advantage
            advantages.insert(0, advantage)
            following = value
    columns = [torch.cat([row[i] for row in played]) for i in range(5)]
    seen, mask, action, old, value = columns
    gain = torch.cat(advantages)
    target, gain = gain + value, (gain - gain.mean()) / (gain.std() + 1e-8)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(seen)).split(BATCH):
            log_probability, entropy, now = agent.judge(seen[rows], mask[rows], action[rows])
            ratio = (log_probability - old[rows]).exp()
            surrogate = torch.min(ratio * gain[rows], ratio.clamp(1 - CLIP, 1 + CLIP) * gain[rows])
            loss = -surrogate.mean() - ENTROPY * entropy.mean() + VALUE * (now - target[rows]).pow(2).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=50)
    for number, mean in enumerate(train(parser.parse_args().updates), 1):
        print(f"update {number}: mean return {mean:.3f}")  # noqa: T201
