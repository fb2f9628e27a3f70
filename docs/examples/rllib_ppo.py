"""PPO with action masks in RLlib (new API stack): the masked environment, registered, and RLlib's own masking module.

pip install "ray[rllib]"; python docs/examples/rllib_ppo.py --iterations 10
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np

import clustergym  # registers the environments, in every worker that imports this file


class Masked(gymnasium.Wrapper):
    """Observations as RLlib's masking module wants them: {"observations", "action_mask"}."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        size = int(env.action_space.nvec.sum())
        mask = gymnasium.spaces.Box(0.0, 1.0, (size,), np.float32)
        self.observation_space = gymnasium.spaces.Dict({"observations": env.observation_space, "action_mask": mask})

    def _with_mask(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        return {"observations": observation, "action_mask": clustergym.action_masks(self.env).astype(np.float32)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """As the environment's, with the mask."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """As the environment's, with the mask."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(observation), float(reward), terminated, truncated, info


def make(config: dict[str, Any]) -> gymnasium.Env:
    """The environment of a worker; `config` holds keyword arguments."""
    return Masked(gymnasium.make("clustergym/Delay-v0", observation="flat", disable_env_checker=True, **config))


def algorithm(**settings: Any) -> Any:
    """PPO on a small Delay-v0; `settings` are those of `PPOConfig.training`."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
    from ray.tune.registry import register_env

    register_env("masked-delay", make)
    small = {"slots": 8, "running_slots": 4, "preemption": False, "reference": "sjf"}
    config = (
        PPOConfig()
        .environment("masked-delay", env_config={**small, "workload": "poisson:jobs=48,backlog=24,load=1.3"})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .training(gamma=1.0, **settings)
    )
    return config.build_algo()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=10)
    ppo = algorithm(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4)
    for number in range(1, parser.parse_args().iterations + 1):
        mean = ppo.train()["env_runners"].get("episode_return_mean", float("nan"))
        print(f"iteration {number}: mean return {mean:.3f}")  # noqa: T201
    ppo.stop()
