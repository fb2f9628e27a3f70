"""The cluster in the logs of a user's own training, and fixed sets of episodes for its evaluations."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra agents")

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import clustergym
from clustergym.agents import MetricsCallback, sb3_vec_env
from clustergym.agents.training.validation import FIRST_SEED
from clustergym.experiments.storing.event_file import scalars_of
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.said_once import SettingWarning

FORM = {"action": "discrete", "observation": "flat", "slots": 8, "preemption": False}
SMALL = {**FORM, "topology": "dally:racks=1,machines=2", "network": "none", "workload": "poisson:jobs=6,backlog=3"}
TAGS = {"jct/mean_s", "queueing_delay/mean_s", "gpu_utilisation", "makespan_s"}


def model_of(env, **settings) -> PPO:
    return PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, gamma=1.0, seed=0, device="cpu", **settings)


def single():
    return Monitor(gymnasium.make("clustergym/Delay-v0", **SMALL), info_keywords=("jct_mean", "gpu_utilisation"))


def played(env, seed: int, policy: str) -> dict[str, float]:
    """The metrics of a policy in a single environment, step by step."""
    agent, info = clustergym.policies.make(policy), env.reset(seed=seed)[1]
    while "metrics" not in info:
        info = env.step(agent.act(env))[4]
    return info["metrics"]


@pytest.mark.parametrize("batched", [True, False])
def test_the_log_has_metrics_of_training_episodes_and_level_lines_of_baselines(tmp_path, batched):
    """A level is the mean of the baseline over seeds 10000 to 10019, as it plays the environment step by step."""
    env = VecNormalize(VecMonitor(sb3_vec_env("Delay", 2, seed=0, **SMALL)) if batched else DummyVecEnv([single] * 2))
    model_of(env, tensorboard_log=str(tmp_path)).learn(512, callback=MetricsCallback(("greedy", "fifo")))
    agent = scalars_of(tmp_path / "PPO_1")
    assert agent.keys() >= TAGS | {"rollout/invalid_actions", "rollout/ep_rew_mean", "more/jobs_finished"}
    assert all(0.0 < share < 1.0 for _, share in agent["rollout/invalid_actions"])
    alone = gymnasium.make("clustergym/Delay-v0", **SMALL)
    for policy in ("greedy", "fifo"):
        level = scalars_of(tmp_path / "PPO_1" / policy)
        steps = [step for step, _ in level["jct/mean_s"]]
        assert level.keys() >= TAGS and steps == [0, *(step for step, _ in agent["jct/mean_s"])]
        mean = np.mean([played(alone, seed, policy)["jct_mean"] for seed in range(FIRST_SEED, FIRST_SEED + 20)])
        assert {value for _, value in level["jct/mean_s"]} == {float(np.float32(mean))}


def test_a_value_is_the_mean_over_the_episodes_that_ended():
    """With a window of two episodes it is the mean of the last two that Monitor has."""
    model = model_of(VecMonitor(sb3_vec_env("Delay", 2, seed=0, **SMALL), info_keywords=("jct_mean",)))
    model._stats_window_size = 2
    logged = []
    callback = MetricsCallback()
    callback._on_rollout_end = lambda: logged.append(model.logger.name_to_value["jct/mean_s"])
    model.learn(512, callback=callback)
    assert logged[-1] == pytest.approx(np.mean([one["jct_mean"] for one in model.ep_info_buffer]))


def test_it_works_with_a_learner_that_keeps_a_replay_buffer():
    callback = MetricsCallback()
    DQN("MlpPolicy", single(), buffer_size=2000, learning_starts=50, seed=0).learn(300, callback=callback)
    assert callback.logger.name_to_value["jct/mean_s"] > 0.0


@pytest.mark.parametrize(
    ("rows", "said"), [(1, "in 64 decisions; give"), (2, "in 128 decisions of 2 environments; give")]
)
def test_a_training_in_which_no_episode_ends_says_that_nothing_was_logged(rows, said):
    """Of 400 jobs none of the episodes is over after 64 decisions; what was played before does not count."""
    model = model_of(sb3_vec_env("Delay", rows, seed=0, **{**SMALL, "workload": "batch:jobs=400"}))
    model.learn(64 * rows)
    with pytest.warns(SettingWarning, match=f"no metrics were logged, since no episode ended {said} learn"):
        model.learn(64 * rows, callback=MetricsCallback(), reset_num_timesteps=False)


def test_metrics_stand_by_name_in_the_last_info_so_that_monitor_takes_them():
    """No other key of an info has the name of a metric: all keys are those of the step before and the metrics'."""
    env = single()
    _, info = env.reset(seed=3)
    while "metrics" not in info:
        before, info = info, env.step(np.flatnonzero(info["action_mask"])[0])[4]
    metrics = info["metrics"]
    assert not before.keys() & metrics.keys()
    assert info.keys() == before.keys() | metrics.keys() | {"metrics", "max_decisions", "episode"}
    assert all(info[name] == value for name, value in metrics.items())
    assert info["episode"]["jct_mean"] == metrics["jct_mean"]


def test_six_evaluations_with_learning_rate_0_are_equal_to_the_bit(tmp_path):
    fixed = VecMonitor(sb3_vec_env("Delay", 3, seeds=range(100, 110), **SMALL))
    callback = EvalCallback(fixed, n_eval_episodes=10, eval_freq=64, log_path=str(tmp_path), verbose=0)
    model_of(VecMonitor(sb3_vec_env("Delay", 2, seed=0, **SMALL)), learning_rate=0.0).learn(768, callback=callback)
    found = np.load(tmp_path / "evaluations.npz")["results"]
    assert found.shape == (6, 10) and len(np.unique(found[0])) > 5
    assert all(np.array_equal(row, found[0]) for row in found)


def test_a_fixed_set_is_played_in_turn_each_seed_once_an_evaluation():
    """Ten seeds on three rows: evaluate_policy asks rows for 3, 3 and 4 episodes; rows play 3, 3 and 4 seeds."""
    envs = sb3_vec_env("Delay", 3, seeds=range(100, 110), **SMALL)
    alone = gymnasium.make("clustergym/Delay-v0", **SMALL)
    expected = {played(alone, seed, "fifo")["jct_mean"] for seed in range(100, 110)}
    fifo = clustergym.policies.make("fifo")
    for _ in range(2):
        envs.reset()
        found: list[list[float]] = [[], [], []]
        while any(len(mine) < most for mine, most in zip(found, (3, 3, 4), strict=True)):
            infos = envs.step(fifo.act(envs))[3]
            for mine, info in zip(found, infos, strict=True):
                mine += [info["jct_mean"]] if "metrics" in info else []
        assert sorted([*found[0][:3], *found[1][:3], *found[2][:4]]) == sorted(expected)
        assert found[0][3:] == found[0][: len(found[0]) - 3]


def test_a_state_keeps_the_place_in_a_fixed_set():
    fifo = clustergym.policies.make("fifo")

    def ends(envs, count: int) -> list[float]:
        found: list[float] = []
        while len(found) < count:
            found += [info["jct_mean"] for info in envs.step(fifo.act(envs))[3] if "metrics" in info]
        return found

    one, other = (sb3_vec_env("Delay", 1, seeds=range(100, 105), **SMALL) for _ in range(2))
    one.reset()
    ends(one, 2)
    other.set_state(*one.get_state())
    assert ends(one, 5) == ends(other, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": range(2)}, "seeds: 2 for 3 rows; expected one a row at least, or fewer rows"),
        ({"seeds": range(9), "seed": 1}, "seeds are of a fixed set of episodes: give them without seed and replicas"),
        ({"seeds": range(9), "replicas": 3}, "seeds are of a fixed set of episodes: give them without"),
        ({"seeds": [1, 2, -3]}, "-3"),
    ],
    ids=str,
)
def test_seeds_that_do_not_fit_are_refused_in_one_sentence(given, message):
    with pytest.raises(InputError, match=message):
        sb3_vec_env("Delay", 3, **given, **SMALL)


@pytest.mark.parametrize(
    ("env", "baselines", "message"),
    [
        (lambda: sb3_vec_env("Delay", 1, **SMALL), "greedy", "this model has none: give it tensorboard_log=DIR, or"),
        (lambda: gymnasium.make("CartPole-v1"), (), "the environment is CartPoleEnv, expected one of clustergym's"),
    ],
    ids=["no TensorBoard", "another environment"],
)
def test_what_the_callback_cannot_log_it_says_at_the_start(env, baselines, message):
    with pytest.raises(InputError, match=message):
        model_of(env()).learn(64, callback=MetricsCallback(baselines))
