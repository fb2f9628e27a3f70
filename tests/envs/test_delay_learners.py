"""Delay-v0 with Gymnasium's and stable-baselines3's own tools: checkers, wrappers, vectors, processes."""

from __future__ import annotations

import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit

import clustergym

DELAY = "clustergym/Delay-v0"
SMALL = {
    "topology": "dally:racks=2,machines=2",
    "workload": "poisson:jobs=30,backlog=10",
    "slots": 4,
    "running_slots": 2,
}
CANDIDATES = 1 + 5 * 4 + 3 * 2
OTHERS = 11 + 2  # delay buckets, tiers of a hold
ADVANCE = (0, 0, 0)


def test_make_by_both_names_and_with_gymnasiums_own_checks():
    """`module:id` imports the package; the passive checker of make() is silent on a random episode."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (DELAY, f"clustergym:{DELAY}"):
            env = gymnasium.make(name, **SMALL)
            env.reset(seed=1)
            rng, ended = np.random.default_rng(0), False
            while not ended:
                legal = np.flatnonzero(clustergym.action_masks(env)[:CANDIDATES])
                *_, terminated, truncated, info = env.step(np.array([rng.choice(legal), 0, 0]))
                ended = terminated or truncated
            assert terminated and info["metrics"]["jobs_finished"] == len(env.unwrapped.simulator.workload)
            env.close()


@pytest.mark.parametrize(
    "wrap",
    [lambda env: env, FlattenObservation, RecordEpisodeStatistics, lambda env: TimeLimit(FlattenObservation(env), 9)],
)
def test_action_masks_reach_through_wrappers(wrap):
    env = wrap(gymnasium.make(DELAY, **SMALL))
    _, info = env.reset(seed=1)
    mask = clustergym.action_masks(env)
    assert mask.dtype == np.bool_
    assert np.array_equal(mask, info["action_mask"])
    assert np.array_equal(mask, env.get_wrapper_attr("action_masks")())


def test_a_time_limit_truncates():
    env = gymnasium.make(DELAY, max_episode_steps=3, **SMALL)
    env.reset(seed=1)
    assert [env.step(ADVANCE)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_episode_statistics_record_the_return():
    env = RecordEpisodeStatistics(gymnasium.make(DELAY, max_decisions=7, **SMALL))
    env.reset(seed=1)
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, truncated, info = env.step(ADVANCE)
        rewards.append(reward)
        ended = terminated or truncated
    assert (info["episode"]["l"], info["episode"]["r"]) == (7, pytest.approx(sum(rewards)))


def random_rows(vector_env, masks, rng):
    return np.array([[rng.choice(np.flatnonzero(row[:CANDIDATES])), 0, 0] for row in masks])


@pytest.mark.parametrize("options", [{}, {"vectorization_mode": "sync"}])
def test_gymnasiums_vectors_make_step_and_restart_episodes(options):
    """Until both clusters have ended an episode and begun another; the mask is never empty on the way."""
    vector = gymnasium.make_vec(DELAY, num_envs=2, **options, **SMALL)
    vector.reset(seed=[1, 2])
    rng, ended = np.random.default_rng(0), np.zeros(2, np.int64)
    while ended.min() < 2:
        masks = clustergym.action_masks(vector)
        assert masks.shape == (2, CANDIDATES + OTHERS) and masks[:, :CANDIDATES].any(axis=1).all()
        observation, _, terminated, truncated, _ = vector.step(random_rows(vector, masks, rng))
        assert vector.observation_space.contains(observation)
        ended += terminated | truncated
    vector.close()


def test_the_spec_survives_copies_and_pickles():
    env = gymnasium.make(DELAY, **SMALL)
    first, _ = env.reset(seed=3)
    for spec in (copy.deepcopy(env.spec), pickle.loads(pickle.dumps(env.spec)), env.unwrapped.spec):
        again, _ = gymnasium.make(spec).reset(seed=3)
        assert all(np.array_equal(first[key], again[key]) for key in first)
    assert gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()).kwargs["slots"] == 4


def test_dummy_vec_env_and_monitor():
    """SB3's make_vec_env wraps in Monitor; masks come by env_method, the last observation and the episode by info."""
    pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env(DELAY, n_envs=2, seed=1, env_kwargs={**SMALL, "max_decisions": 6})
    env.reset()
    for step in range(6):
        masks = clustergym.action_masks(env)
        assert masks.shape == (2, CANDIDATES + OTHERS) and masks.dtype == np.bool_
        _, _, dones, infos = env.step(np.zeros((2, 3), np.int64))
        assert dones.tolist() == [step == 5] * 2
    assert all(info["episode"]["l"] == 6 and info["TimeLimit.truncated"] for info in infos)
    assert set(infos[0]["terminal_observation"]) == {"cluster", "queue", "running", "candidates"}
    assert "metrics" in infos[0]
    env.close()


def test_processes_of_stable_baselines3_play_the_same():
    """SubprocVecEnv, spawned: three steps of two clusters equal those of DummyVecEnv."""
    pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv

    def rewards(**options):
        env = make_vec_env(f"clustergym:{DELAY}", n_envs=2, seed=1, env_kwargs=SMALL, **options)
        env.reset()
        found = [env.step(np.zeros((2, 3), np.int64))[1] for _ in range(3)]
        masks = clustergym.action_masks(env)
        env.close()
        return np.stack(found), masks

    spawned = rewards(vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"})
    alone = rewards()
    assert spawned[0] == pytest.approx(alone[0], rel=1e-6)  # DummyVecEnv keeps rewards as float32
    assert np.array_equal(spawned[1], alone[1])


def test_ppo_learns_a_few_steps_on_the_flat_observation():
    """Not that it gets better: that the library's own learner accepts the environment."""
    stable_baselines3 = pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
    env = gymnasium.make(DELAY, observation="flat", **SMALL)
    learner = stable_baselines3.PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, device="cpu", seed=0)
    before = [weights.detach().clone() for weights in learner.policy.parameters()]
    learner.learn(128)
    assert learner.num_timesteps == 128
    assert any((old != new).any() for old, new in zip(before, learner.policy.parameters(), strict=True))
