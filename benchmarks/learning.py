"""Steps per CPU second of batched environments, through every interface that learners use, against one at a time.

Resets included, on one core. Legal actions are drawn once, recorded, and replayed through each interface.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from _measure import arguments_of, print_document, print_table, verdict
from _training import MOST_SHARE
from _training import TARGETS as TARGETS_OF_TRAINING
from _training import measure as measure_training

import clustergym
from clustergym.agents import sb3_vec_env
from clustergym.experiments.console.terminal import progress

ENV_ID = "clustergym/Delay-v0"
KWARGS: dict[str, Any] = {"observation": "flat", "preemption": False, "slots": 16, "running_slots": 16}  # of the agents
COUNTS = (1, 64, 256, 1024)
TARGETS = {("kernel", 64): 1e6, ("VecEnv of stable-baselines3", 64): 5e5}  # steps per second


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table or the JSON document."""
    options = arguments_of(__doc__.splitlines()[0], argv)
    counts = (1, 4) if options.quick else COUNTS
    found: list[dict[str, Any]] = []
    with progress("bench learning", len(counts), options.quiet) as show:
        for n in counts:
            found += measure(n, 200 if options.quick else max(200, 40_000 // n), options.seed)
            show(len(found) // len(PLAYS))
        training = [measure_training(net, options.seed, options.quick) for net in TARGETS_OF_TRAINING]
    (print_document if options.json else _print_tables)({"environments": found, "training": training})
    return 0


def measure(n: int, steps: int, seed: int) -> list[dict[str, Any]]:
    """One row an interface, for `n` environments."""
    envs = sb3_vec_env(ENV_ID, n, **KWARGS)
    actions, episodes = _recorded(envs, steps, seed)
    rows = []
    for name, play in PLAYS.items():
        best = min(play(n, actions, seed) for _ in range(1 if steps <= 200 else 3))
        target = TARGETS.get((name, n))
        rows.append(
            {
                "interface": name,
                "environments": n,
                "features": int(envs.observation_space.shape[0]),
                "episodes": episodes,
                "steps_per_s": n * steps / best,
                "target": target,
                "ok": None if target is None else bool(n * steps / best >= target),
            }
        )
    return rows


def _recorded(envs: Any, steps: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Random legal actions, (n, 3) each; holds are rare, as in what agents do. And how many episodes ended."""
    rng = np.random.default_rng(seed)
    envs.seed(seed)
    envs.reset()
    candidates = int(envs.action_space.nvec[0])
    rare = np.zeros(candidates, np.bool_)
    rare[5 : 1 + 5 * KWARGS["slots"] : 5] = True
    actions, episodes = [], 0
    for _ in range(steps):
        legal = envs.action_masks()[:, :candidates]
        legal[:, rare] &= rng.random((len(legal), 1)) < 0.02
        legal[:, 0] |= ~legal.any(axis=1)
        chosen = np.zeros((len(legal), 3), np.int64)
        chosen[:, 0] = (legal * rng.random(legal.shape, dtype=np.float32)).argmax(axis=1)
        actions.append(chosen)
        episodes += int(envs.step(chosen)[2].sum())
    return actions, episodes


def _kernel_s(n: int, actions: list[np.ndarray], seed: int) -> float:
    """The kernel alone: what resets take is not counted."""
    batch = sb3_vec_env(ENV_ID, n, **KWARGS).batch
    batch.reset(batch.stepper.every_row, batch.seeds(seed))
    spent_s = 0.0
    for chosen in actions:
        batch.rows.actions[:] = chosen
        began_s = time.thread_time()
        odd = batch.stepper.step(batch.stepper.every_row)
        spent_s += time.thread_time() - began_s
        if odd:
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
    envs = sb3_vec_env(ENV_ID, n, seed=seed, **KWARGS)
    return _stepped_s(envs, actions)


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


def _print_tables(document: dict[str, Any]) -> None:
    rows = document["environments"]
    slow = {row["environments"]: row["steps_per_s"] for row in rows if row["interface"].startswith("Dummy")}
    print_table(
        "Delay-v0 as agents have it, random legal actions: thousand steps per CPU second, one core",
        ("interface", "environments", "steps", "x DummyVecEnv", "episodes", "target", ""),
        [
            (
                row["interface"],
                row["environments"],
                f"{row['steps_per_s'] / 1e3:,.0f}",
                f"{row['steps_per_s'] / slow[row['environments']]:.1f}",
                row["episodes"],
                row["target"] and f"{row['target'] / 1e3:,.0f}",
                verdict(row["ok"]),
            )
            for row in rows
        ],
    )
    print_table(
        "training with the defaults, one thread: steps per CPU second, and the environment's part of a rollout",
        (
            "learner",
            "parameters",
            "environments",
            "steps",
            "target",
            "",
            "environment's share of a rollout",
            "limit",
            "",
        ),
        [
            (
                row["learner"],
                f"{row['parameters']:,}",
                row["environments"],
                f"{row['steps_per_s']:,.0f}",
                f"{row['target']:,.0f}",
                verdict(row["ok"]),
                f"{100 * row['share_of_rollout']:.1f} %",
                f"{100 * MOST_SHARE:.0f} %",
                verdict(row["share_ok"]),
            )
            for row in document["training"]
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
