"""Makes, resets, plays, copies and evaluates environments of every kind for a while, and watches the memory.

`python tests/hunt/soak.py 30` does so for 30 minutes (`make hunt-soak`), prints what the process holds over time, and
says whether that is flat: resident memory, objects that Python counts, and open files. Caches that have a bound are
emptied before objects are counted: they fill for hours, as each round has workloads of its own.
"""

from __future__ import annotations

import copy
import functools
import gc
import os
import pickle
import resource
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import clustergym
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.policies.tetris import table_search as search
from clustergym.tests.support.small_envs import SMALL, random_actions

POLICIES = {
    "clustergym/Delay-v0": ["fifo", "dally"],
    "clustergym/Sharing-v0": ["sjf-bsbf"],
    "clustergym/TimeShift-v0": ["themis+cassini"],
    "clustergym/Geo-v0": ["mast:scan_s=0"],
    "clustergym/Grouping-v0": ["isolated"],
}
STEPS = 60
LINES = 30
SHARE, LEAST_MB, OBJECTS = 0.02, 5.0, 0.01  # growth from the second quarter to the last that is none


@dataclass(frozen=True)
class Held:
    """What the process holds."""

    at_s: float
    rounds: int
    rss_mb: float
    objects: int
    files: int


def held(began_s: float, rounds: int) -> Held:
    """Now, caches empty and garbage collected."""
    for cache in (
        one for one in gc.get_objects() if type(one) is functools._lru_cache_wrapper
    ):  # proxies have other types
        if cache.__module__.startswith("clustergym.") and cache.cache_parameters()["maxsize"] is not None:
            cache.cache_clear()
    search._kept.clear()
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    rss_mb = pages * resource.getpagesize() / 2**20
    return Held(time.monotonic() - began_s, rounds, rss_mb, len(gc.get_objects()), len(os.listdir("/proc/self/fd")))


def play(env: Any, rng: np.random.Generator, steps: int = STEPS) -> None:
    """Random legal actions, through the ends of episodes."""
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(random_actions(rng, env.action_masks()[None], env.action_space)[0])
        if terminated or truncated:
            env.reset()


def one_round(env_id: str, number: int) -> None:
    """Everything that is done with an environment, once."""
    rng, options = np.random.default_rng(number), SMALL[env_id]
    env = gymnasium.make(env_id, **options).unwrapped
    env.reset(seed=number)
    play(env, rng)
    copied, sent, saved_state = copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.snapshot()
    for one in (copied, sent, env):
        play(one, rng, STEPS // 3)
    env.restore(saved_state)
    env.metrics = env.simulator.metrics()
    for one in (copied, sent, env):
        one.close()
    envs = clustergym.make_vec(env_id, 3, **options)
    envs.reset(seed=number)
    for _ in range(STEPS // 3):
        envs.step(random_actions(rng, envs.action_masks(), envs.single_action_space))
    envs.close()
    if env_id in POLICIES:
        setting = described_setting(env_id, options["workload"], options.get("topology"))
        evaluate(setting, POLICIES[env_id], [number % 5], record="all")


def soak(seconds: float, lines: int = LINES) -> list[Held]:
    """What the process holds over time, printed; the clock starts when everything has been compiled once."""
    ids, told = list(SMALL), list[Held]()
    for number, env_id in enumerate(ids):
        one_round(env_id, number)
    began_s, rounds = time.monotonic(), len(ids)
    while True:
        passed_s = time.monotonic() - began_s
        if passed_s >= seconds * len(told) / lines and rounds % len(ids) == 0:
            told.append(now := held(began_s, rounds))
            print(
                f"{now.at_s:7.0f} s {now.rounds:6d} rounds {now.rss_mb:8.1f} MB {now.objects:9,d} objects "
                f"{now.files} files",
                flush=True,
            )
        if passed_s >= seconds:
            return told
        one_round(ids[rounds % len(ids)], rounds)
        rounds += 1


def verdict(told: list[Held]) -> tuple[bool, str]:
    """Whether the last quarter holds no more than the second one, and the figures.

    What comes first is what compilers and caches keep, which is why nothing is said of the first quarter.
    """
    quarter = max(1, len(told) // 4)
    early, late = told[quarter : 2 * quarter] or told[:1], told[-quarter:]

    def means(name: str) -> tuple[float, float]:
        return tuple(float(np.mean([getattr(one, name) for one in part])) for part in (early, late))  # type: ignore[return-value]

    rss, objects, files = means("rss_mb"), means("objects"), means("files")
    flat = (
        rss[1] - rss[0] <= max(LEAST_MB, SHARE * rss[0])
        and objects[1] - objects[0] <= OBJECTS * objects[0]
        and files[1] <= files[0] + 1
    )
    said = (
        f"second quarter to last: {rss[0]:.1f} to {rss[1]:.1f} MB, {objects[0]:,.0f} to {objects[1]:,.0f} objects, "
        f"{files[0]:.0f} to {files[1]:.0f} files"
    )
    return flat, said


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    flat, said = verdict(soak(60.0 * float(sys.argv[1])))
    print(f"{said}: {'flat' if flat else 'NOT FLAT'}")
    sys.exit(not flat)
