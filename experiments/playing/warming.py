"""Compile the kernels of an environment and its policies, by using them a little."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ...policies import able as policies_of
from ...policies import make_for
from ...simulator.base.errors import InvalidDecision
from ...simulator.compiler.compile_messages import about
from ...simulator.compiler.interpreting import compile_at_once
from ...simulator.compiler.jit import cache_folder
from ..settings.evaluation_setting import Setting, workload_of
from .evaluation import simulator_of

STEPS = 60
DECISIONS = 200


@dataclass(frozen=True)
class Part:
    """An environment itself, or one of its policies."""

    environment: str
    policy: str | None


def parts_of(environments: list[str]) -> list[Part]:
    """The parts of these environments, by id; policies that take minutes are left out."""
    return [Part(env_id, policy) for env_id in environments for policy in (None, *policies_of(env_id))]


def warm_environment(item: tuple[str, bool]) -> tuple[str, int, float]:
    """Compile an environment by id, `large` or not, and its policies; returns id, number of parts, and seconds."""
    (env_id, large), began = item, time.monotonic()
    parts = parts_of([env_id])
    for part in parts:
        warm(part, large)
    return env_id, len(parts), time.monotonic() - began


def warm(part: Part, large: bool) -> None:
    """Compile what `use` needs."""
    compile_at_once()
    use(part, large)


def use(part: Part, large: bool) -> None:
    """Play a little on the default workload and cluster; `large`: on records for up to 16,392 jobs and 8,200 GPUs."""
    if part.policy is None:
        _step(part.environment, large)
    else:
        _decide(part.environment, part.policy, large)


def cache_bytes() -> int:
    """Size of the files of compiled code of this version."""
    return sum(path.stat().st_size for path in cache_folder().rglob("*") if path.is_file())


def _step(env_id: str, large: bool) -> None:
    env = gymnasium.make(env_id)
    own: Any = env.unwrapped
    if large:
        own.simulator.room = lambda capacity: own.stepper.make_room(capacity.large, lost=(0,))
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        _, _, terminated, truncated, _ = env.step(_legal(own, rng))
        if terminated or truncated:
            env.reset()
    env.reset(seed=0)
    with suppress(InvalidDecision):  # not every decision of a policy is an action
        env.step(own.act_of(make_for("greedy", env_id)))  # imitation does so
    env.close()


def _legal(env: Any, rng: np.random.Generator) -> Any:
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(rng.choice(np.flatnonzero(env.action_masks())))
    parts = np.split(env.action_masks(), np.cumsum(space.nvec)[:-1])
    return np.array([rng.choice(np.flatnonzero(part)) for part in parts])


def _decide(env_id: str, word: str, large: bool) -> None:
    setting = Setting.of(env_id)
    policy = make_for(word, env_id)
    simulator: Any = simulator_of(setting.config, policy)
    if large:
        simulator.room = lambda capacity: simulator.move_to(capacity.large.empty(), capacity.large, keep=False)
    simulator.reset(workload_of(setting, 0), 0)
    decider = policy.decider(simulator)
    with about(f"policy {word} for up to {simulator.capacity.words}"):
        if decider is None:
            simulator.run()
            return
        for _ in range(DECISIONS):
            if simulator.ended:
                break
            simulator.apply(simulator.ask(decider))
        simulator.metrics()
