"""PPO, A2C or DQN of stable-baselines3 with its evaluation callback: `python sb3.py DQN`."""

import sys

import gymnasium
import stable_baselines3
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor

import clustergym  # registers the environments


def make():
    form = {"action": "discrete", "observation": "flat"}
    return Monitor(gymnasium.make("clustergym/Delay-v0", **form, slots=8, preemption=False))


name = sys.argv[1]
settings = {"buffer_size": 20_000} if name == "DQN" else {}  # by default a million observations: gigabytes
model = getattr(stable_baselines3, name)("MlpPolicy", make(), gamma=1.0, **settings)
model.learn(2_000, callback=EvalCallback(make(), eval_freq=1_000, n_eval_episodes=1))
print(f"{name}: {model.num_timesteps} steps")
