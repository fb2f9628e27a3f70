"""Training steps per second of the shipped configuration, and what part of a rollout the environment takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from clustergym.agents.training.config import default_config, make_config
from clustergym.agents.training.learners import make_env, make_learner

TARGETS = {"mlp": 18_000.0, "candidates": 5_000.0}  # training steps per second
MOST_SHARE = 0.15  # of a rollout, in the environment
ROLLOUTS = 4


class Clock:
    """CPU seconds of this thread inside the functions that it times."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, timed."""

        def run(*arguments: Any, **named: Any) -> Any:
            began_s = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                self.spent_s += time.thread_time() - began_s

        return run


def measure(net: str, seed: int, quick: bool) -> dict[str, Any]:
    """One row: MaskablePPO with `net` and the defaults of Delay, one thread, after a first rollout."""
    torch.set_num_threads(1)
    small = {"num_envs": 4, "replicas": 2, "n_steps": 16, "batch_size": 32} if quick else {}
    config = make_config({**default_config("Delay"), "net": net, "seed": seed, **small}, "benchmark")
    env = make_env(config)
    learner = make_learner(config, env)
    learner.learn(config.rollout, reset_num_timesteps=False)
    inside, rollouts = Clock(), Clock()
    for name in ("reset", "play", "action_masks"):
        setattr(env, name, inside.timed(getattr(env, name)))
    learner.collect_rollouts = rollouts.timed(learner.collect_rollouts)
    before = learner.num_timesteps
    began_s = time.thread_time()
    learner.learn((2 if quick else ROLLOUTS) * before, reset_num_timesteps=False)  # as many as fit
    spent_s = time.thread_time() - began_s
    steps = learner.num_timesteps - before  # whole episodes, where a group is the baseline
    share = inside.spent_s / rollouts.spent_s
    return {
        "learner": f"MaskablePPO, {net}",
        "parameters": sum(parameter.numel() for parameter in learner.policy.parameters()),
        "environments": config.num_envs,
        "steps_per_s": steps / spent_s,
        "target": TARGETS[net],
        "ok": bool(steps / spent_s >= TARGETS[net]),
        "share_of_rollout": share,
        "share_ok": bool(share < MOST_SHARE),
    }
