"""MaskablePPO, RecurrentPPO, TRPO or QRDQN of sb3-contrib with its evaluation callback: `python contrib.py TRPO`."""

import sys

import gymnasium
import sb3_contrib
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor

import clustergym  # registers the environments


def make():
    form = {"action": "discrete", "observation": "flat"}
    return Monitor(gymnasium.make("clustergym/Delay-v0", **form, slots=8, preemption=False))


name = sys.argv[1]
settings = {
    "QRDQN": {"buffer_size": 20_000},  # by default a million observations: gigabytes
    "RecurrentPPO": {"policy_kwargs": {"lstm_hidden_size": 32}},  # by default 256: minutes
}
policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
callback = MaskableEvalCallback if name == "MaskablePPO" else EvalCallback  # finds env.action_masks by itself
model = getattr(sb3_contrib, name)(policy, make(), gamma=1.0, **settings.get(name, {}))
model.learn(2_000, callback=callback(make(), eval_freq=1_000, n_eval_episodes=1))
print(f"{name}: {model.num_timesteps} steps")
