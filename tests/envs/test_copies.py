"""A copy of an environment in the middle of an episode goes on as the original would, to the last bit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym.envs.delay.env import DelayEnv
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.small_envs import SMALL, random_actions, same


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
        copied, sent, saved_state = copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.snapshot()
        by_post = pickle.loads(pickle.dumps(saved_state))
        told = story(env, 1000 + place, steps)
        for name, one in (("deepcopy", copied), ("pickle", sent)):
            assert alike(told, story(one, 1000 + place, steps)), (name, place)
        assert alike(told[:0] + story(copied, 3, 5), story(sent, 3, 5)), place
        after = env.snapshot()
        env.restore(saved_state)
        assert alike(told, story(env, 1000 + place, steps)), ("restore", place)
        other.restore(by_post if place % 2 else saved_state)
        assert alike(told, story(other, 1000 + place, steps)), ("restore in another", place)
        env.restore(after)


@pytest.mark.parametrize("env_id", SMALL)
def test_copies_go_on_as_the_original(env_id: str):
    check_places(env_id, places=3, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", SMALL)
def test_copies_at_a_hundred_places_go_on_as_the_original(env_id: str):
    check_places(env_id, places=100, steps=200)


@pytest.mark.parametrize("mode", ["next-step", "same-step"])
@pytest.mark.parametrize("env_id", ["clustergym/Delay-v0", "clustergym/Geo-v0"])
def test_copies_of_batches_go_on_as_the_original(env_id: str, mode: str):
    envs = clustergym.make_vec(env_id, 4, autoreset_mode=mode, replicas=2, **SMALL[env_id] | {"max_decisions": 30})
    envs.reset(seed=3)
    vector_story(envs, 0, 50)
    copied, sent, moments = copy.deepcopy(envs), pickle.loads(pickle.dumps(envs)), envs.snapshot()
    told = vector_story(envs, 1, 60)
    assert alike(told, vector_story(copied, 1, 60))
    assert alike(told, vector_story(sent, 1, 60))
    envs.restore(moments)
    assert alike(told, vector_story(envs, 1, 60))
    assert copied.envs[0] is not envs.envs[0] and copied.envs == copied.batch.envs


def test_a_moment_goes_into_every_row_of_a_batch():
    """Also where the records of the batch have more room than that of the environment."""
    env_id = "clustergym/Delay-v0"
    env = made(env_id)
    env.reset(seed=5)
    story(env, 0, 40)
    envs = clustergym.make_vec(env_id, 3, **SMALL[env_id])
    envs.reset(seed=9, options={"workload": "poisson:jobs=200,backlog=10"})
    before = envs.envs[1].snapshot()
    envs.restore([env.snapshot(), None, env.snapshot()])
    assert envs.envs[0].simulator.capacity.jobs > env.simulator.capacity.jobs
    told = story(env, 1, 30)
    assert alike(told[:20], story(envs.envs[2], 1, 30)[:20])
    envs.envs[1].restore(before)
    assert same(envs.envs[1].observe(), envs._observed() and {k: v[1] for k, v in envs._observed().items()})


def test_a_moment_of_another_kind_is_refused_in_a_sentence():
    one, other = made("clustergym/Delay-v0"), made("clustergym/Delay-v0", slots=4)
    one.reset(seed=0), other.reset(seed=0)
    with pytest.raises(InputError, match="made alike"):
        one.restore(other.snapshot())
    with pytest.raises(InputError, match=r"snapshot\(\)"):
        one.restore("there")
    for name, value in (
        ("mtbf_s", 3600.0),
        ("network", "none"),
        ("horizon_s", 5e3),
        ("topology", "flat:machines=8"),
        ("reward", "makespan"),
    ):
        other = made("clustergym/Delay-v0", **{name: value})
        other.reset(seed=0)
        with pytest.raises(InputError, match=r"a snapshot of an environment with .*, this one has .* made alike"):
            one.restore(other.snapshot())
    with pytest.raises(gymnasium.error.ResetNeeded):
        made("clustergym/Delay-v0").snapshot()


def test_a_copy_of_an_environment_that_has_not_begun_begins_alike():
    env = made("clustergym/Delay-v0")
    env.action_space.seed(4)
    copied = copy.deepcopy(env)
    assert same(env.reset(seed=3)[0], copied.reset(seed=3)[0])
    assert same(env.action_space.sample(), copied.action_space.sample())


class Counting(DelayEnv):
    """A user's own: with an attribute, and another order of arguments."""

    def __init__(self, label: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.label, self.seen = label, [0]

    def step(self, action: Any) -> Any:
        self.seen[0] += 1
        return super().step(action)


def test_what_a_user_has_set_comes_along():
    env = Counting("mine", **SMALL["clustergym/Delay-v0"])
    env.reset(seed=0)
    story(env, 0, 7)
    env.max_decisions = 5
    for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert (type(copied), copied.label, copied.seen, copied.max_decisions) == (Counting, "mine", [7], 5)
        copied.step([0, 0, 0])
        assert (env.seen, copied.seen) == ([7], [8])


def test_a_wrapped_environment_is_copied_with_its_wrappers():
    env = gymnasium.make("clustergym/Delay-v0", max_episode_steps=20, **SMALL["clustergym/Delay-v0"])
    env.reset(seed=0)
    for _ in range(15):
        env.step([0, 0, 0])
    copied = copy.deepcopy(env)
    assert [env.step([0, 0, 0])[3] for _ in range(5)] == [copied.step([0, 0, 0])[3] for _ in range(5)]
    assert copied.unwrapped is not env.unwrapped and copied.unwrapped.spec is env.unwrapped.spec


def test_a_reward_of_ones_own_goes_on_and_is_shared():
    calls = []

    def reward(before: Any, after: Any) -> float:
        calls.append(after.time_s)
        return before.time_s - after.time_s

    env = made("clustergym/Delay-v0", reward=reward)
    env.reset(seed=0)
    story(env, 0, 20)
    copied, saved_state = copy.deepcopy(env), env.snapshot()
    told = story(env, 1, 30)
    n = len(calls)
    assert alike(told, story(copied, 1, 30)) and len(calls) > n
    env.restore(saved_state)
    assert alike(told, story(env, 1, 30))


WITH_MEMORIES = [
    ("clustergym/Sharing-v0", {"elastic": True, "workload": "philly-sample:jobs=8,hours=1"}),
    ("clustergym/DataPlacement-v0", {"scheduler": "federated:slow=none"}),
    (
        "clustergym/Delay-v0",
        {"mtbf_s": 50_000.0, "lease": 600.0, "preemption_cost": 30.0, "estimates": "lognormal:sigma=1"},
    ),
    ("clustergym/Delay-v0", {"action": "discrete", "mask": "observation", "reference": "fifo"}),
]


@pytest.mark.parametrize(("env_id", "options"), WITH_MEMORIES)
def test_what_is_remembered_outside_the_record_comes_along(env_id: str, options: dict[str, Any]):
    """Elastic jobs know what they saw, workloads to which region they are bound, machines when they fail."""
    check_places(env_id, places=2, steps=40, **options)


POLICIES = {
    "clustergym/Delay-v0": "dally",
    "clustergym/Sharing-v0": "sjf-bsbf",
    "clustergym/TimeShift-v0": "themis+cassini",
    "clustergym/Geo-v0": "mast:scan_s=0",
    "clustergym/Grouping-v0": "isolated",
}


@pytest.mark.parametrize("env_id", POLICIES)
def test_a_policy_that_is_played_is_played_on_in_copies(env_id: str):
    """Copies in mid-episode, some between two decisions of one instant; policies that remember nothing of a run."""

    def played(env: Any, policy: Any, steps: int) -> list[Any]:
        told = []
        for _ in range(steps):
            told.append((*env.step(env.act_of(policy)), env.view.now_s))
            if told[-1][2] or told[-1][3]:
                told.append(env.reset())
        return told

    def make() -> Any:
        return clustergym.policies.make(POLICIES[env_id])

    env, policy = made(env_id), make()
    env.reset(seed=2)
    played(env, policy, 9)
    copied, sent, saved_state = copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.snapshot()
    told = played(env, policy, 25)
    for one in (copied, sent):
        assert alike(told, played(one, make(), 25))
    env.restore(saved_state)
    assert alike(told, played(env, make(), 25))
