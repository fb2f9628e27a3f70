"""What every environment keeps to, whatever it is about; tests/support/env_terms.py says what differs between them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete

from clustergym import policies
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.env_terms import TERMS, differences, made

SHORT = {env_id: env_id.removeprefix("clustergym/").removesuffix("-v0") for env_id in ENVIRONMENTS}
VARIANTS = [(env_id, name) for env_id, terms in TERMS.items() for name in terms.variants]
SLOW = {word for word, entry in policies.registry.POLICIES.items() if entry.is_slow}
LESS = {
    "oracle": "oracle:steps=400",
    "pollux": "pollux:individuals=10,generations=5",
}  # by default they look for a plan for a second
# Delay-v0's, in more settings and with more of what is told: test_delay_policies.py
PLAYED = [
    pytest.param(env_id, setting, word, marks=[pytest.mark.slow] if word in SLOW else [])
    for env_id, terms in TERMS.items()
    if terms.folder != "delay"
    for setting, options in terms.settings.items()
    for name in (*policies.list(SHORT[env_id]), *terms.words)
    for word in [LESS.get(name, name)]
    if not terms.left_out(policies.make(word), options)
]


def drawn(env, rng):
    """A legal action."""
    mask = env.action_masks()
    parts = (
        np.split(mask, np.cumsum(env.action_space.nvec)[:-1]) if isinstance(env.action_space, MultiDiscrete) else [mask]
    )
    assert all(part.any() for part in parts)
    return [rng.choice(np.flatnonzero(part)) for part in parts]


def flat(observation):
    return observation if isinstance(observation, np.ndarray) else np.concatenate(list(observation.values()))


def test_every_environment_is_held_to_it():
    assert set(TERMS) == set(ENVIRONMENTS)


@pytest.mark.parametrize(("env_id", "variant"), VARIANTS)
def test_masks_are_never_empty_and_observations_lie_in_their_space(env_id, variant):
    """On every step of an episode of random legal actions, the last one too; and the same seed gives the same one."""
    terms, seen = TERMS[env_id], []
    for _ in range(2):
        env, rng = made(env_id, **terms.random, **terms.variants[variant]), np.random.default_rng(4)
        observation, info = env.reset(seed=1)
        trail, terminated, truncated = [], False, False
        while not (terminated or truncated):
            assert env.observation_space.contains(observation)
            mask = env.action_masks()
            assert mask.dtype == np.bool_ and info["action_mask"].dtype == np.int8
            assert np.array_equal(info["action_mask"], mask)
            observation, reward, terminated, truncated, info = env.step(drawn(env, rng))
            assert not info["invalid_action"]
            trail.append((flat(observation).tobytes(), reward))
        assert (terminated or not terms.terminates) and env.observation_space.contains(observation)
        assert not terminated or info["metrics"]["jobs_finished"] == len(env.simulator.workload)
        seen.append(trail)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("action", [(1, 2, 3, 4), None, "advance", [], [1.0], [1.0, 0.0], [1.0, 0.0, 0.0], {"a": 1}])
@pytest.mark.parametrize("env_id", TERMS)
def test_an_action_that_is_none_is_one_sentence(env_id, action):
    env = made(env_id)
    env.reset(seed=0)
    with pytest.raises(InputError, match=TERMS[env_id].action):
        env.step(action)


@pytest.mark.parametrize("env_id", TERMS)
def test_too_few_parts_are_no_action(env_id):
    env = made(env_id)
    if isinstance(env.action_space, MultiDiscrete):
        env.reset(seed=0)
        for action in (3, *([1] * parts for parts in range(1, len(env.action_space.nvec)))):
            with pytest.raises(InputError, match=TERMS[env_id].action):
                env.step(action)


@pytest.mark.parametrize("env_id", TERMS)
def test_random_unmasked_actions_never_crash(env_id):
    options, steps = TERMS[env_id].unmasked
    env = made(env_id, **options)
    env.action_space.seed(5)
    env.reset(seed=5)
    invalid = 0
    for _ in range(steps):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        invalid += info["invalid_action"]
        if terminated or truncated:
            env.reset()
    assert steps / 10 < invalid < steps


@pytest.mark.parametrize("action", [10_000, -1])
@pytest.mark.parametrize("env_id", TERMS)
def test_a_number_out_of_the_space_is_advance_but_for_the_flag(env_id, action):
    ends = []
    for chosen in (action, 0):
        env = made(env_id)
        env.reset(seed=0)
        *_, info = env.step([chosen, *([0] * (len(getattr(env.action_space, "nvec", [0])) - 1))])
        ends.append((info["invalid_action"], env.simulator.snapshot().tobytes()))
    assert ends[0][0] and ends[0][1] == ends[1][1]


@pytest.mark.parametrize("env_id", TERMS)
def test_tables_have_the_columns_that_are_documented(env_id):
    env, terms = made(env_id), TERMS[env_id]
    tables, module = env.tables, terms.observation
    assert tables.cluster == len(module.CLUSTER) and tables.candidate_columns == len(module.CANDIDATES)
    assert [table.columns for table in tables.tables] == [len(getattr(module, name)) for name in terms.tables]
    assert tables.size == sum(space.shape[0] for space in env.observation_space.values())
    parts = getattr(env.action_space, "nvec", None)
    assert tables.candidates == (env.action_space.n if parts is None else parts[0]) == terms.candidates
    assert [part.size for part in tables.parts] == ([] if parts is None else parts[1:].tolist())


@pytest.mark.parametrize(("env_id", "setting", "word"), PLAYED)
def test_a_policy_through_steps_is_the_simulator_alone(env_id, setting, word):
    assert differences(env_id, partial(policies.make, word), **TERMS[env_id].settings[setting])[0] == []


@pytest.mark.parametrize("env_id", [env_id for env_id, terms in TERMS.items() if terms.baseline])
def test_the_return_against_a_reference_is_the_share_of_its_jct_that_is_saved(env_id):
    """1 - (own sum of JCTs) / (its sum); others, with horizons: test_batched.py and test_dataplacement_env.py."""
    word, player, options = TERMS[env_id].baseline
    env, policy = made(env_id, reference=word, **options), policies.make(player)
    env.reset(seed=3)
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, _, _ = env.step(policy.act(env))
        total += reward
    own, other = env.simulator, policies.make(word)
    alone = TERMS[env_id].alone(own, other)
    alone.reset(own.workload, int(own.state.seed))
    alone.run(None if TERMS[env_id].is_ruled and other.rule else other)
    expected = 1.0 - float(own.state.active_integral) / float(alone.state.active_integral)
    assert total == pytest.approx(expected, abs=1e-9)
