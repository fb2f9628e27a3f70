"""What every environment keeps to, whatever it is about; tests/support/env_terms.py says what differs between them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete

from clustergym import policies
from clustergym.agents.playing.windows import interface_of
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.env_terms import TERMS, differences, made

SHORT = {env_id: env_id.removeprefix("clustergym/").removesuffix("-v0") for env_id in ENVIRONMENTS}
VARIANTS = [(env_id, name) for env_id, terms in TERMS.items() for name in terms.variants]
SLOW = {word for word, entry in policies.registry.POLICIES.items() if entry.only_named}
LESS = {
    "oracle": "oracle:steps=400",
    "pollux": "pollux:individuals=10,generations=5",
}  # by default they look for a plan for a second
PLAYED = [
    pytest.param(env_id, setting, word, marks=[pytest.mark.slow] if word in SLOW else [])
    for env_id, terms in TERMS.items()
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
    """On every step of an episode of random legal actions, the last one too.

    The same seed gives the same one, also on an environment that has played another.
    """
    terms, seen = TERMS[env_id], []
    for is_used in (False, True):
        env, rng = made(env_id, **terms.random, **terms.variants[variant]), np.random.default_rng(4)
        if is_used:
            env.reset(seed=2)
            env.step(drawn(env, np.random.default_rng(0)))
        observation, info = env.reset(seed=1)
        trail, terminated, truncated = [], False, False
        while not (terminated or truncated):
            assert env.observation_space.contains(observation)
            mask = env.action_masks()
            assert mask.dtype == np.bool_ and info["action_mask"].dtype == np.int8
            assert np.array_equal(info["action_mask"], mask)
            observation, reward, terminated, truncated, info = env.step(drawn(env, rng))
            assert not info["invalid_action"]
            told = {key: value for key, value in info.items() if key != "action_mask"}
            trail.append((flat(observation).tobytes(), mask.tobytes(), reward, repr(told)))
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


@pytest.mark.parametrize("env_id", TERMS)
def test_an_action_that_is_not_legal_is_advance_but_for_the_flag(env_id):
    """The same state, observation, reward and ends; in the middle of an episode of legal actions too."""
    ends = []
    for is_legal in (False, True):
        env, rng = made(env_id), np.random.default_rng(6)
        env.reset(seed=0)
        outcomes = []
        for _ in range(8):
            *_, terminated, truncated, _ = env.step(drawn(env, rng))
            if terminated or truncated:
                break
            legal = env.action_masks()[: env.tables.candidates]
            if not legal[0] or legal.all():
                continue  # nothing is to come: then it plays the first legal one; or nothing is masked
            candidate = int(rng.choice(np.flatnonzero(~legal)))
            parts = [0 if is_legal else candidate, *([0] * len(env.tables.parts))]
            observation, *paid, info = env.step(parts)
            outcomes.append((flat(observation).tobytes(), repr(paid), env.simulator.snapshot().tobytes()))
            assert info["invalid_action"] is not is_legal
        ends.append(outcomes)
    assert ends[0] and ends[0] == ends[1]


@pytest.mark.parametrize("env_id", TERMS)
def test_a_window_on_the_simulator_alone_takes_the_same_actions_to_the_same_end(env_id):
    """So an agent plays there as it was trained: it sees what the environment shows, and decisions do what steps do."""
    terms, rng = TERMS[env_id], np.random.default_rng(2)
    env, window = made(env_id, **terms.random), interface_of(env_id, {**terms.small, **terms.random})
    env.reset(seed=2)
    alone = env.simulator.twin()
    alone.reset(env.simulator.workload, int(env.simulator.state.seed))
    window.attach(alone)

    def go_on():
        for decision in window.leaving():
            alone.apply(decision)
        alone.advance()

    terminated = truncated = False
    while not (terminated or truncated):
        features, mask = window.look()
        # At an instant at which something was decided, Grouping-v0 asks again whatever there is to do.
        while not window.can_act and not (terms.folder == "grouping" and alone.view.now_s == env.simulator.view.now_s):
            go_on()
            features, mask = window.look()
        assert np.array_equal(features, flat(env.observe())) and np.array_equal(mask, env.action_masks())
        action = drawn(env, rng)
        for decision in window.decisions(action):
            alone.apply(decision)
        *_, terminated, truncated, info = env.step(action)
    while terminated and not alone.ended:
        window.look()
        go_on()
    assert truncated or {k: repr(v) for k, v in alone.metrics().items()} == {
        k: repr(v) for k, v in info["metrics"].items()
    }


@pytest.mark.parametrize(
    ("short", "word"), [("TimeShift", "themis+cassini"), ("Geo", "mast:scan_s=0"), ("DataPlacement", "tetris-v2")]
)
def test_a_policy_may_take_over_and_leave_in_the_middle_of_an_episode(short, word):
    """Random actions, then a policy, then random ones: what it decides is offered at once, and no longer than that."""
    env_id = f"clustergym/{short}-v0"
    env, policy, rng = made(env_id, **TERMS[env_id].random), policies.make(word), np.random.default_rng(1)
    env.reset(seed=1)
    for number in range(120):
        action = policy.act(env) if number // 5 % 2 else drawn(env, rng)
        assert env.action_masks()[action[0] if isinstance(env.action_space, MultiDiscrete) else action]
        *_, ended, _, info = env.step(action)
        assert not info["invalid_action"]
        if ended:
            env.reset()
    if not number // 5 % 2:
        assert env.simulator.rule == env.rule


@pytest.mark.parametrize("env_id", TERMS)
def test_tables_have_the_columns_that_are_documented(env_id):
    env, terms = made(env_id), TERMS[env_id]
    tables, module = env.tables, terms.described
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
