"""Steps per CPU second of batched environments, through every interface that learners use, and of training.

One core. Legal actions are drawn once, recorded, and replayed through each interface.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from _measure import Row, bench

import clustergym
from clustergym.agents import sb3_vec_env
from clustergym.agents.training.config import default_config, make_config
from clustergym.agents.training.learners import make_env, make_learner

ENV_ID = "clustergym/Delay-v0"
KWARGS: dict[str, Any] = {"observation": "flat", "preemption": False, "slots": 16, "running_slots": 16}  # of the agents


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, environments, training)


def environments(options: Any) -> Iterator[Row]:
    """Delay-v0 as agents have it, random legal actions: steps per CPU second, resets included (but in `kernel`)."""
    for n in (1, 4) if options.quick else (1, 64, 256, 1024):
        steps = 200 if options.quick else max(200, 40_000 // n)
        actions = _recorded(n, steps, options.seed)
        for name, play in PLAYS.items():
            best_s = min(play(n, actions, options.seed) for _ in range(1 if steps <= 200 else 3))
            yield {"interface": name, "environments": n, "steps_per_s": n * steps / best_s}


def training(options: Any) -> Iterator[Row]:
    """MaskablePPO with the defaults of Delay, one thread, after a first rollout."""
    import torch

    torch.set_num_threads(1)
    small = {"num_envs": 4, "replicas": 2, "n_steps": 16, "batch_size": 32} if options.quick else {}
    for net in ("mlp", "candidates"):
        config = make_config({**default_config("Delay"), "net": net, "seed": options.seed, **small}, "benchmark")
        env = make_env(config)
        learner = make_learner(config, env)
        learner.learn(config.rollout, reset_num_timesteps=False)
        spent_s = {"environment": 0.0, "rollouts": 0.0}
        for name in ("reset", "play", "action_masks"):
            setattr(env, name, _timed(getattr(env, name), spent_s, "environment"))
        learner.collect_rollouts = _timed(learner.collect_rollouts, spent_s, "rollouts")
        before, began_s = learner.num_timesteps, time.thread_time()
        learner.learn((2 if options.quick else 4) * before, reset_num_timesteps=False)  # as many as fit
        yield {
            "network": net,
            "parameters": sum(parameter.numel() for parameter in learner.policy.parameters()),
            "environments": config.num_envs,
            "steps_per_s": (learner.num_timesteps - before) / (time.thread_time() - began_s),
            "environment_share_of_rollout": spent_s["environment"] / spent_s["rollouts"],
        }


def _timed(function: Callable[..., Any], spent_s: dict[str, float], key: str) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        began_s = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            spent_s[key] += time.thread_time() - began_s

    return run


def _recorded(n: int, steps: int, seed: int) -> list[np.ndarray]:
    """Random legal actions, (n, 3) each; holds are rare, as with agents."""
    rng = np.random.default_rng(seed)
    envs = sb3_vec_env(ENV_ID, n, **KWARGS)
    envs.seed(seed)
    envs.reset()
    candidates = int(envs.action_space.nvec[0])
    rare = np.zeros(candidates, np.bool_)
    rare[5 : 1 + 5 * KWARGS["slots"] : 5] = True
    actions = []
    for _ in range(steps):
        legal = envs.action_masks()[:, :candidates]
        legal[:, rare] &= rng.random((len(legal), 1)) < 0.02
        legal[:, 0] |= ~legal.any(axis=1)
        chosen = np.zeros((len(legal), 3), np.int64)
        chosen[:, 0] = (legal * rng.random(legal.shape, dtype=np.float32)).argmax(axis=1)
        actions.append(chosen)
        envs.step(chosen)
    return actions


def _kernel_s(n: int, actions: list[np.ndarray], seed: int) -> float:
    """The kernel alone, without resets."""
    batch = sb3_vec_env(ENV_ID, n, **KWARGS).batch
    batch.reset(batch.stepper.every_row, batch.seeds(seed))
    spent_s = 0.0
    for chosen in actions:
        batch.rows.actions[:] = chosen
        began_s = time.thread_time()
        ended = batch.stepper.step(batch.stepper.every_row)
        spent_s += time.thread_time() - began_s
        if ended:
            batch.reset(np.flatnonzero(batch.terminated | batch.truncated))
    return spent_s


def _vector_s(n: int, actions: list[np.ndarray], seed: int) -> float:
    envs = clustergym.make_vec(ENV_ID, n, autoreset_mode="same-step", **KWARGS)
    envs.reset(seed=seed)
    began_s = time.thread_time()
    for chosen in actions:
        envs.step(chosen)
    return time.thread_time() - began_s


def _sb3_s(n: int, actions: list[np.ndarray], seed: int) -> float:
    return _stepped_s(sb3_vec_env(ENV_ID, n, seed=seed, **KWARGS), actions)


def _dummy_s(n: int, actions: list[np.ndarray], seed: int) -> float:
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = DummyVecEnv([lambda: gymnasium.make(ENV_ID, disable_env_checker=True, **KWARGS)] * n)
    envs.seed(seed)
    return _stepped_s(envs, actions)


def _stepped_s(envs: Any, actions: list[np.ndarray]) -> float:
    envs.reset()
    envs.env_method("action_masks")
    began_s = time.thread_time()
    for chosen in actions:
        envs.env_method("action_masks")
        envs.step(chosen)
    return time.thread_time() - began_s


PLAYS: dict[str, Callable[[int, list[np.ndarray], int], float]] = {
    "kernel": _kernel_s,
    "VectorEnv of gymnasium": _vector_s,
    "VecEnv of stable-baselines3": _sb3_s,
    "DummyVecEnv, one at a time": _dummy_s,
}
