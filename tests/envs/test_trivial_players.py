"""Doing nothing never pays, and every episode ends: players without a thought, in every environment.

A player that starts nothing, or acts at random without a look at the mask, must fall behind one that plays legal
actions at random, and behind every policy; and learners' own evaluation callbacks must come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.episode_env import DECISIONS_A_JOB
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.small_envs import SMALL

IDS = list(ENVIRONMENTS)
# Other parts are numbers that cost more if they are drawn than doing nothing costs: of these candidates are drawn only.
DEAR_NUMBERS = ("clustergym/Grouping-v0",)
ELASTIC = ("pollux",)  # its jobs are elastic in Sharing-v0: not the defaults
ALONE = ("ideal", "themis+crux", "themis+mltcp", "everywhere")  # on links, or tables, of their own kind
# Beside CASSINI in tests/policies/test_best_rotations.py and test_lookahead.py; they play much out.
BOUNDS = ("best-rotations", "lookahead")
Choice = Callable[[np.random.Generator, np.ndarray, list[int]], list[int]]


def rest(sizes: list[int]) -> list[int]:
    """The other parts of an action whose first part is all that counts."""
    return [0] * (len(sizes) - 1)


def random_legal(rng: np.random.Generator, mask: np.ndarray, sizes: list[int]) -> list[int]:
    """Each part drawn from the legal values."""
    ends = np.cumsum(sizes)
    return [int(rng.choice(np.flatnonzero(mask[end - n : end]))) for n, end in zip(sizes, ends, strict=True)]


def random_candidate(rng: np.random.Generator, mask: np.ndarray, sizes: list[int]) -> list[int]:
    """A legal candidate is drawn."""
    return [random_legal(rng, mask, sizes)[0], *rest(sizes)]


PLAYERS: dict[str, Choice] = {
    "always 0": lambda rng, mask, sizes: [0, *rest(sizes)],
    "always illegal": lambda rng, mask, sizes: [int(np.argmin(mask[: sizes[0]])), *rest(sizes)],
    "the last candidate": lambda rng, mask, sizes: [sizes[0] - 1, *rest(sizes)],
    "the last legal one": lambda rng, mask, sizes: [int(np.flatnonzero(mask[: sizes[0]])[-1]), *rest(sizes)],
    "random without a mask": lambda rng, mask, sizes: [int(rng.integers(n)) for n in sizes],
    "random legal": random_legal,
}
IDLE = ("always 0", "always illegal")


def returns(env_id: str, player: Choice | str, seeds: int, **options: Any) -> list[float]:
    """The return of an episode a seed, of a player or of a policy by its word; each ends."""
    env: Any = gymnasium.make(env_id, **options).unwrapped
    sizes = list(env.form.parts[: env.form.outer_parts])
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        policy = policies.make(player) if isinstance(player, str) else None
        _, info = env.reset(seed=seed)
        most, total, ended, steps = info["max_decisions"], 0.0, False, 0
        while not ended:
            action = player(rng, info["action_mask"], sizes) if callable(player) else env.act_of(policy)
            _, reward, terminated, truncated, info = env.step(action)
            assert policy is None or not (info["invalid_action"] or truncated)
            total, ended, steps = total + reward, terminated or truncated, steps + 1
            assert steps <= most
        assert policy is None or steps <= most / 3, f"{player}: {steps} of {most} decisions"
        found.append(total)
    return found


def expect_nothing_gained(env_id: str, seeds: int, **options: Any) -> None:
    """What this file claims, of the means over seeds."""
    mean = {name: float(np.mean(returns(env_id, play, seeds, **options))) for name, play in PLAYERS.items()}
    legal = mean.pop("random legal")
    if env_id in DEAR_NUMBERS:
        legal = float(np.mean(returns(env_id, random_candidate, seeds, **options)))
    for name, value in mean.items():
        assert value < legal + (0.0 if name in IDLE else 0.1 * abs(legal)), (name, value, legal)
    for word in policies.list(env_id):
        if word in (*ALONE, *BOUNDS) or (word in ELASTIC and env_id == "clustergym/Sharing-v0"):
            continue
        played = float(np.mean(returns(env_id, word, seeds, **options)))
        assert max(mean[name] for name in IDLE) < played, (word, mean, played)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_nothing_is_gained_by_doing_nothing(env_id):
    """On the defaults, over 20 seeds; and no policy needs more than a third of the decisions that it may make."""
    expect_nothing_gained(env_id, seeds=20)


@pytest.mark.parametrize("env_id", IDS)
def test_nothing_is_gained_by_doing_nothing_on_small_workloads(env_id):
    """But in Sharing-v0: of few jobs each may as well run alone, and tiny sub-batches cost more than that."""
    options = {} if env_id == "clustergym/Sharing-v0" else SMALL[env_id]
    expect_nothing_gained(env_id, seeds=2, **options)


@pytest.mark.parametrize("env_id", IDS)
def test_by_default_an_episode_is_cut_off_after_50_decisions_a_job(env_id):
    """None is that, infinity is never, other numbers count as they are; `info` tells at both ends of an episode."""
    most = {}
    for limit in (None, math.inf, 3):
        env: Any = gymnasium.make(env_id, max_decisions=limit, **SMALL[env_id]).unwrapped
        _, info = env.reset(seed=1)
        most[limit] = info["max_decisions"]
    assert most == {None: DECISIONS_A_JOB * len(env.simulator.workload), math.inf: math.inf, 3: 3.0}
    for step in range(1, 4):
        *_, terminated, truncated, info = env.step([0] * env.form.outer_parts)
        assert (truncated, info.get("max_decisions")) == (
            (True, 3.0) if step == 3 and not terminated else (False, None)
        )
        if terminated:
            break


@pytest.mark.parametrize("limit", [0, -1, 2.5, math.nan, True])
def test_a_limit_that_is_no_number_of_decisions_is_refused(limit):
    with pytest.raises(InputError, match="max_decisions = "):
        gymnasium.make("clustergym/Delay-v0", max_decisions=limit)


@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if "DataPlacement" not in env_id])
def test_where_no_time_can_pass_an_illegal_action_plays_the_first_legal_candidate(env_id):
    """By always 0: each time it is illegal, the step does what the first legal candidate does, and `info` says so."""
    one, other = (gymnasium.make(env_id, observation="flat", **SMALL[env_id]).unwrapped for _ in range(2))
    others = [0] * (one.form.outer_parts - 1)
    forced, ended, info = 0, False, one.reset(seed=2)[1]
    other.reset(seed=2)
    while not ended:
        first = int(np.flatnonzero(info["action_mask"])[0])
        seen, reward, terminated, truncated, info = one.step([0, *others])
        same_seen, same_reward, *_, same_info = other.step([first, *others])
        assert info["forced_action"] == info["invalid_action"] == (first > 0)
        assert not (same_info["forced_action"] or same_info["invalid_action"])
        assert np.array_equal(seen, same_seen) and reward == same_reward
        forced, ended = forced + info["forced_action"], terminated or truncated
    assert forced > 0


def test_in_data_placement_time_can_always_pass():
    """Candidate 0, done for now, is legal at every decision."""
    env: Any = gymnasium.make("clustergym/DataPlacement-v0", **SMALL["clustergym/DataPlacement-v0"]).unwrapped
    ended, info = False, env.reset(seed=0)[1]
    while not ended:
        assert info["action_mask"][0]
        illegal = np.flatnonzero(info["action_mask"] == 0)
        _, _, terminated, truncated, info = env.step([illegal[0] if len(illegal) else 0])
        assert info["invalid_action"] == (len(illegal) > 0) and not info["forced_action"]
        ended = terminated or truncated


@cache
def learners() -> dict[str, tuple[Any, Any]]:
    """Plain and masked PPO, each with its evaluation callback."""
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback

    return {"plain": (PPO, EvalCallback), "masked": (MaskablePPO, MaskableEvalCallback)}


@pytest.mark.parametrize("kind", ["plain", "masked"])
@pytest.mark.parametrize("env_id", IDS)
def test_evaluation_callbacks_come_back(env_id, kind):
    """A deterministic policy that has learnt nothing, evaluated after 8 steps on two episodes."""
    learner, evaluation = learners()[kind]
    from stable_baselines3.common.monitor import Monitor

    def make() -> Any:
        return Monitor(gymnasium.make(env_id, observation="flat", **SMALL[env_id]))

    callback = evaluation(make(), n_eval_episodes=2, eval_freq=8, deterministic=True, verbose=0)
    model = learner("MlpPolicy", make(), n_steps=16, batch_size=16, n_epochs=1, gamma=1.0, seed=0, device="cpu")
    model.learn(16, callback=callback)
    assert math.isfinite(callback.last_mean_reward)
