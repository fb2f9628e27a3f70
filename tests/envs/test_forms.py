"""An environment has the form that its learner asks for: how actions are said, and where the mask is."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import clustergym
from clustergym import policies
from clustergym.envs.forms import keys_of
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.small_envs import SMALL, random_actions, same

IDS = list(ENVIRONMENTS)
DELAY = "clustergym/Delay-v0"
ONE_PART = ("clustergym/Geo-v0", "clustergym/DataPlacement-v0")
FORMS: list[dict[str, Any]] = [
    {"action": "discrete"},
    {"mask": "observation", "observation": "flat"},
    {"action": "discrete", "mask": "obs/mask", "observation": "flat"},
    {"action": "discrete", "mask": {"observation": "observations"}, "observation": "dict"},
    {},
    {"observation": "flat"},
]


def made(env_id: str, **options: Any) -> Any:
    return gymnasium.make(env_id, **{**SMALL[env_id], **options})


@pytest.mark.parametrize("form", FORMS, ids=json.dumps)
@pytest.mark.parametrize("env_id", IDS)
def test_the_checkers_of_gymnasium_and_stable_baselines3_find_nothing(env_id, form):
    """Not a warning; that of SB3 knows no Dict in a Dict."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(env_id, **form).unwrapped, skip_render_check=True)
        if form.get("observation") == "flat" or not form:
            checker = pytest.importorskip("stable_baselines3.common.env_checker")
            checker.check_env(made(env_id, **form), warn=True)


@pytest.mark.parametrize("env_id", IDS)
def test_a_discrete_action_is_the_candidate_with_0_in_all_other_parts(env_id):
    """And the mask is the candidates' part, in `info`, in the observation and from `action_masks`."""
    one, other = made(env_id).unwrapped, made(env_id, action="discrete", mask="obs/legal").unwrapped
    n = other.action_space.n
    assert isinstance(one.action_space, gymnasium.spaces.Discrete) == (env_id in ONE_PART)
    assert n == one.interface.candidates and len(other.observation_space["legal"].low) == n
    (seen, info), (other_seen, other_info) = one.reset(seed=1), other.reset(seed=1)
    rng, rest = np.random.default_rng(0), [0] * (len(one.form.parts) - 1)
    for _ in range(60):
        mask = info["action_mask"][:n]
        assert same(seen, other_seen["obs"]) and np.array_equal(mask, other_seen["legal"])
        assert np.array_equal(mask, other_info["action_mask"])
        assert np.array_equal(mask.astype(bool), other.action_masks())
        assert other.observation_space.contains(other_seen)
        candidate = int(rng.choice(np.flatnonzero(mask)))
        seen, reward, ended, _, info = one.step([candidate, *rest])
        other_seen, other_reward, other_ended, _, other_info = other.step(candidate)
        assert (reward, ended) == (other_reward, other_ended)
        if ended:
            break


def test_a_number_may_come_as_an_int_or_in_an_array_of_one():
    """All are candidate 1: the job in slot 0 starts inside a machine."""
    rewards = set()
    for action in (1, np.int64(1), np.array(1), np.array([1]), [1], (np.int32(1),)):
        env = made(DELAY, action="discrete")
        env.reset(seed=0)
        env.step(action)
        rewards.add(int(env.unwrapped.simulator.state.first_start_s.argmax()))
        assert env.unwrapped.simulator.state.running == 1
    assert len(rewards) == 1


@pytest.mark.parametrize("action", [[1, 0, 0], 1.5, "1", None, {}, []])
def test_what_is_no_number_is_refused(action):
    env = made(DELAY, action="discrete").unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"^action .*: expected a whole number, the candidate$"):
        env.step(action)


@pytest.mark.parametrize(
    ("mask", "keys"),
    [
        ("info", None),
        ("observation", ("observation", "action_mask")),
        ("obs", ("obs", "action_mask")),
        ("obs/mask", ("obs", "mask")),
        ({"observation": "observations"}, ("observations", "action_mask")),
        ({"action_mask": "m"}, ("observation", "m")),
    ],
)
def test_the_word_of_a_mask_names_the_keys(mask, keys):
    assert keys_of(mask) == keys


@pytest.mark.parametrize("mask", ["", "obs/", "/m", "a/a", {"obs": "x"}, {"observation": 3}, None, 1])
def test_keys_that_cannot_be_are_refused(mask):
    with pytest.raises(InputError, match=r"^mask = "):
        keys_of(mask)


def test_other_actions_are_refused():
    with pytest.raises(InputError, match="did you mean 'discrete'"):
        gymnasium.make(DELAY, action="discret")


@pytest.mark.parametrize("form", FORMS[1:3], ids=json.dumps)
@pytest.mark.parametrize("mode", ["same-step", "next-step"])
@pytest.mark.parametrize("env_id", IDS)
def test_a_batch_has_the_form_of_its_single_environments(env_id, mode, form):
    """Bit for bit, through episodes that end."""
    options = {**SMALL[env_id], "max_decisions": 7, **form}
    batch = clustergym.make_vec(env_id, 3, autoreset_mode=mode, **options)
    modes = {"same-step": AutoresetMode.SAME_STEP, "next-step": AutoresetMode.NEXT_STEP}
    one = SyncVectorEnv([lambda: gymnasium.make(env_id, **options)] * 3, autoreset_mode=modes[mode])
    assert batch.observation_space == one.observation_space and batch.action_space == one.action_space
    assert all(map(same, one.reset(seed=4), batch.reset(seed=4)))
    rng, ends = np.random.default_rng(0), 0
    for _ in range(30):
        assert np.array_equal(batch.action_masks(), np.stack(one.call("action_masks")))
        actions = random_actions(rng, batch.action_masks(), batch.single_action_space)
        expected, found = one.step(actions), batch.step(actions)
        assert all(map(same, expected, found))
        ends += int((found[2] | found[3]).sum())
    assert ends >= 6


@pytest.mark.parametrize("env_id", [DELAY, "clustergym/Geo-v0"])
def test_the_sb3_environment_has_the_form_of_dummy_vec_env(env_id):
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    from clustergym.agents import sb3_vec_env

    options = {**SMALL[env_id], "max_decisions": 7, **FORMS[2]}
    one = vec_env.DummyVecEnv([lambda: gymnasium.make(env_id, **options)] * 3)
    batch = sb3_vec_env(env_id, 3, full_infos=True, **options)
    one.seed(5)
    batch.seed(5)
    assert same(dict(one.reset()), batch.reset())
    rng = np.random.default_rng(0)
    for _ in range(30):
        masks = np.stack(batch.env_method("action_masks"))
        assert np.array_equal(masks, np.stack(one.env_method("action_masks")))
        actions = random_actions(rng, masks, batch.action_space)
        for expected, found in zip(one.step(actions), batch.step(actions), strict=True):
            assert all(map(same, expected, found)) if isinstance(found, list) else same(expected, found)


@pytest.mark.parametrize(
    ("env_id", "word"),
    [
        (DELAY, "dally"),
        ("clustergym/Sharing-v0", "sjf-bsbf"),
        ("clustergym/TimeShift-v0", "themis+cassini"),
        ("clustergym/Geo-v0", "mast"),
        ("clustergym/DataPlacement-v0", "tetris-v2"),
        ("clustergym/Grouping-v0", "harmony"),
    ],
)
def test_a_policy_plays_the_same_where_only_its_candidates_are_said(env_id, word):
    """What it says beside them (sub-batches, shifts, machines) is known to the step that plays the candidate."""
    found = []
    for action in ("parts", "discrete"):
        env, policy = made(env_id, action=action), policies.make(word)
        env.reset(seed=2)
        ended, rewards = False, []
        while not ended:
            chosen = policy.act(env)
            assert env.action_space.contains(chosen)
            _, reward, ended, _, info = env.step(chosen)
            rewards.append(reward)
        found.append((rewards, repr(info["metrics"])))
    assert found[0] == found[1]


def test_a_policy_plays_a_batch_of_discrete_actions():
    """Row by row as single environments."""
    name, options = "clustergym/Sharing-v0", {**SMALL["clustergym/Sharing-v0"], "action": "discrete"}
    batch, policy = clustergym.make_vec(name, 2, autoreset_mode="same-step", **options), policies.make("sjf-bsbf")
    batch.reset(seed=0)
    metrics: dict[int, Any] = {}
    while len(metrics) < 2:
        *_, infos = batch.step(policy.act(batch))
        for row in np.flatnonzero(infos.get("_final_info", [])).tolist():
            metrics.setdefault(row, infos["final_info"]["metrics"]["jct_mean"][row])
    for row in range(2):
        env = made(name)
        env.reset(seed=row)
        ended = False
        while not ended:
            *_, ended, _, info = env.step(policies.make("sjf-bsbf").act(env))
        assert metrics[row] == info["metrics"]["jct_mean"]


def test_what_a_policy_says_beside_a_candidate_is_forgotten_if_another_one_is_played():
    """The stop at candidate 0 leaves nothing for the next step that plays the policy's candidate."""
    env = made("clustergym/Sharing-v0", action="discrete").unwrapped
    env.reset(seed=0)
    env.stepper.whole_actions[0] = np.array([1, 3])
    env.step(0)
    assert env.stepper.whole_actions == {} and env.stepper.rows.actions[0].tolist() == [0, 0]


def test_vector_kwargs_go_to_the_batch():
    """As does what stands among the keyword arguments."""
    envs = clustergym.make_vec("Delay", 2, vector_kwargs={"autoreset_mode": "same-step", "copy": False}, slots=4)
    assert envs.autoreset_mode is AutoresetMode.SAME_STEP and not envs.copy


def test_wrappers_are_put_around_single_environments():
    envs = clustergym.make_vec(
        "Delay",
        2,
        autoreset_mode="same-step",
        wrappers=[lambda env: TimeLimit(env, 3)],
        action="discrete",
        **SMALL[DELAY],
    )
    envs.reset(seed=0)
    ends = [bool(envs.step(np.array([1, 1]))[3].all()) for _ in range(3)]
    assert ends == [False, False, True]
    with pytest.raises(InputError, match=r"^replicas: single environments"):
        clustergym.make_vec("Delay", 2, wrappers=[lambda env: env], replicas=2)
