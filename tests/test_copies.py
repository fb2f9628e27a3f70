"""A copy of an environment in the middle of an episode goes on as the original would, to the last bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym.simulator.errors import InputError

from .small_envs import SMALL, random_actions, same


def made(env_id: str, **kwargs: Any) -> Any:
    return gymnasium.make(env_id, **(SMALL[env_id] | kwargs)).unwrapped


def story(env: Any, seed: int, steps: int) -> list[Any]:
    """What random actions come to: all that steps and resets tell, and the clock."""
    rng, told = np.random.default_rng(seed), []
    for _ in range(steps):
        action = random_actions(rng, env.action_masks()[None], env.action_space)[0]
        told.append((*env.step(action), env.view.now_s, env.action_masks()))
        if told[-1][2] or told[-1][3]:
            told.append(env.reset())
    return told


def vector_story(envs: Any, seed: int, steps: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        (*envs.step(random_actions(rng, envs.action_masks(), envs.single_action_space)), envs.action_masks())
        for _ in range(steps)
    ]


def alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        same(a, b) for told, again in zip(one, other, strict=True) for a, b in zip(told, again, strict=True)
    )


def check_places(env_id: str, places: int, steps: int, **kwargs: Any) -> None:
    """At random places of episodes: copies of every kind, the environment gone back, and another one put there."""
    env, other, rng = made(env_id, **kwargs), made(env_id, **kwargs), np.random.default_rng(7)
    other.reset(seed=1234)
    for place in range(places):
        if place % 10 == 0:
            env.reset(seed=place)
        story(env, place, int(rng.integers(1, 60)))
        copied, sent, moment = copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.snapshot()
        by_post = pickle.loads(pickle.dumps(moment))
        told = story(env, 1000 + place, steps)
        for name, one in (("deepcopy", copied), ("pickle", sent)):
            assert alike(told, story(one, 1000 + place, steps)), (name, place)
        assert alike(told[:0] + story(copied, 3, 5), story(sent, 3, 5)), place
        after = env.snapshot()
        env.restore(moment)
        assert alike(told, story(env, 1000 + place, steps)), ("restore", place)
        other.restore(by_post if place % 2 else moment)
        assert alike(told, story(other, 1000 + place, steps)), ("restore in another", place)
        env.restore(after)


@pytest.mark.parametrize("env_id", SMALL)
def test_copies_go_on_as_the_original(env_id: str):
    check_places(env_id, places=3, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", SMALL)
def test_copies_at_a_hundred_places_go_on_as_the_original(env_id: str):
    check_places(env_id, places=100, steps=200)
