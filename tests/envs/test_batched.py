"""Batched environments are N single ones: the same observations, rewards, masks, ends and infos, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import clustergym
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.tests.support import geo_small
from clustergym.tests.support.env_terms import EQUAL_PATHS
from clustergym.tests.support.small_envs import random_actions, same

MODES = {"next-step": AutoresetMode.NEXT_STEP, "same-step": AutoresetMode.SAME_STEP}
SMALL: dict[str, dict[str, Any]] = {
    "clustergym/Delay-v0": {
        "workload": ["poisson:jobs=30,backlog=20", "batch:jobs=12"],
        "slots": 8,
        "running_slots": 4,
    },
    "clustergym/Sharing-v0": {
        "workload": ["philly-sample:jobs=20,hours=1", "bsbf-physical:jobs=12"],
        "slots": 8,
        "running_slots": 4,
    },
    "clustergym/TimeShift-v0": {
        "workload": ["cassini-poisson:jobs=10,load=1.5", "cassini-snapshot:id=2"],
        "slots": 4,
        "running_slots": 6,
        "max_decisions": 12,
    },
    "clustergym/Geo-v0": {
        "topology": "mast:regions=4,gpus=256",
        "workload": ["mast-like:jobs=30,days=0.2,tables=20", "mast-like:jobs=12,days=0.1,tables=20"],
        "slots": 4,
        "running_slots": 4,
        "max_decisions": 5,
        "tables_every_s": 7200.0,
        "reference": "federated:scan_s=0,slow=none",  # a compiled rule places nothing in regions
    },
    "clustergym/Grouping-v0": {
        "workload": ["harmony-like:jobs=12,gap_min=15", "harmony-like:jobs=6,length_sigma=0.6"],
        "slots": 4,
        "running_slots": 6,
        "group_slots": 3,
        "reference": "isolated",
    },
    "clustergym/DataPlacement-v0": {
        "topology": geo_small.small_topology(),
        "workload": geo_small.small_workload(),
        "region_slots": 4,
        "tables_every_s": 612.0,
        "quota": 0.5,
        "max_decisions": 5,
        "reference": None,
    },
}
STEPS = {
    "clustergym/TimeShift-v0": 280,
    "clustergym/Geo-v0": 180,
    "clustergym/DataPlacement-v0": 180,
}  # much is decided in Python; else 4,000


def singles(env_id: str, n: int, mode: str, **kwargs: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gymnasium.make(env_id, **kwargs)] * n, autoreset_mode=MODES[mode])


FORMS = [(1, "dict"), (7, "flat"), (7, "dict"), (16, "flat")]
FAST = {(1, "dict", "next-step"), (7, "flat", "same-step"), (7, "dict", "same-step"), (16, "flat", "next-step")}


@pytest.mark.parametrize(
    ("env_id", "n", "observation", "mode"),
    [
        pytest.param(env_id, *form, mode, marks=() if (*form, mode) in fast else pytest.mark.slow)
        for env_id in SMALL
        for fast in [FAST - {(7, "flat", "same-step")} if env_id in STEPS else FAST]
        for form in FORMS
        for mode in MODES
    ],
)
def test_a_batch_is_n_single_environments(env_id, n, observation, mode):
    """Some thousand legal random steps for each number of rows and mode, episodes ending on the way."""
    kwargs = {"max_decisions": 150, "reference": "fifo", **SMALL[env_id], "observation": observation}
    check_rows(env_id, n, mode, STEPS.get(env_id, 4_000), **kwargs)


@pytest.mark.parametrize(
    "options",
    [
        {"network": "contention:link_mtbf_s=5000,link_mttr_s=100"},
        {"network": "contention:routes=least,rates=crux,link_mtbf_s=5000,link_mttr_s=100", "topology": EQUAL_PATHS},
    ],
    ids=["failing links", "least congested paths"],
)
def test_a_batch_whose_jobs_change_their_links_is_n_single_environments(options):
    kwargs = {**SMALL["clustergym/TimeShift-v0"], **options}
    check_rows("clustergym/TimeShift-v0", 4, "next-step", 280, **kwargs)


def test_a_batch_whose_workloads_choose_among_types_is_n_single_environments(tmp_path):
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("model,type,speed\n*,H100,2.5\n*,V100,0.5\n")
    workload = ["mast-like:jobs=30,days=0.2,tables=20,any_type=1", "mast-like:jobs=12,days=0.1,tables=20,any_type=0.5"]
    options = {**SMALL["clustergym/Geo-v0"], "workload": workload, "speeds": str(speeds)}
    check_rows("clustergym/Geo-v0", 2, "next-step", 130, **options)


def check_rows(env_id: str, n: int, mode: str, steps: int, **kwargs: Any) -> None:
    """So many legal random steps of a batch of n rows are those of n environments; many episodes end."""
    one, all_at_once = singles(env_id, n, mode, **kwargs), clustergym.make_vec(env_id, n, autoreset_mode=mode, **kwargs)
    assert all_at_once.observation_space == one.observation_space
    assert all_at_once.action_space == one.action_space
    for a, b in zip(one.reset(seed=3), all_at_once.reset(seed=3), strict=True):
        assert same(a, b)
    rng, ends = np.random.default_rng(n), 0
    for _ in range(-(-steps // n)):
        masks = all_at_once.action_masks()
        assert np.array_equal(masks, np.stack(one.call("action_masks")))
        actions = random_actions(rng, masks, all_at_once.single_action_space)
        expected, found = one.step(actions), all_at_once.step(actions)
        for name, a, b in zip(
            ("observation", "reward", "terminated", "truncated", "info"), expected, found, strict=True
        ):
            assert same(a, b), name
        ends += int((found[2] | found[3]).sum())
    assert ends > 20


@pytest.mark.parametrize("env_id", [env_id for env_id in SMALL if "DataPlacement" not in env_id])  # its tests go on too
def test_the_sb3_environment_is_dummy_vec_env(env_id):
    """With all infos; a state that goes through JSON is taken over by other environments in the middle."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    from clustergym.agents import sb3_vec_env

    kwargs = {"max_decisions": 150, "reference": "fifo", **SMALL[env_id], "observation": "flat"}
    one = vec_env.DummyVecEnv([lambda: gymnasium.make(env_id, **kwargs)] * 7)
    batch = sb3_vec_env(env_id, 7, full_infos=True, **kwargs)
    one.seed(5)
    batch.seed(5)
    assert same(one.reset(), batch.reset())
    rng, ends = np.random.default_rng(0), 0
    rounds = STEPS.get(env_id, 4900) // 7
    for k in range(rounds):
        assert same(one.reset_infos[0], batch.reset_infos[0])
        masks = np.stack(batch.env_method("action_masks"))
        assert np.array_equal(masks, np.stack(one.env_method("action_masks")))
        actions = random_actions(rng, masks, batch.action_space)
        if k == rounds // 2:
            arrays, data = batch.get_state()
            told = batch.reset_infos
            batch = sb3_vec_env(env_id, 7, full_infos=True, **kwargs)
            batch.set_state(arrays, json.loads(json.dumps(data)))
            batch.reset_infos = told
        expected, found = one.step(actions), batch.step(actions)
        for name, a, b in zip(("observation", "reward", "done"), expected, found, strict=False):
            assert same(a, b), name
        assert all(same(a, b) for a, b in zip(expected[3], found[3], strict=True))
        ends += int(found[2].sum())
    assert ends > 20


def test_infos_are_empty_but_for_rows_that_ended():
    pytest.importorskip("stable_baselines3")
    from clustergym.agents import sb3_vec_env

    envs = sb3_vec_env("Delay", 3, seed=0, observation="flat", max_decisions=4, **SMALL["clustergym/Delay-v0"])
    envs.reset()
    for k in range(1, 5):
        _, _, done, infos = envs.step(np.zeros((3, 3), np.int64))
        assert envs.elapsed_s.shape == (3,) and envs.elapsed_s.min() >= 0.0
        if k < 4:
            assert not done.any() and infos == [{}, {}, {}] and infos[0] is not infos[1]
    assert done.all() and all(info["TimeLimit.truncated"] for info in infos)
    assert set(infos[0]) > {"terminal_observation", "metrics", "action_mask", "elapsed_s"}


def test_masked_ppo_learns_over_vec_normalize_and_vec_monitor():
    sb3 = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from clustergym.agents import sb3_vec_env

    raw = sb3_vec_env("Delay", 8, seed=1, observation="flat", max_decisions=40, **SMALL["clustergym/Delay-v0"])
    envs = VecNormalize(VecMonitor(raw))
    assert is_masking_supported(envs) and raw.has_attr("action_masks") and not raw.has_attr("nonsense")
    model = sb3.MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=128, n_epochs=1, seed=0).learn(1024)
    assert np.array_equal(get_action_masks(envs), raw.action_masks())
    assert len(model.ep_info_buffer) > 5
    assert raw.env_is_wrapped(gymnasium.Wrapper) == [False] * 8


def test_policies_act_in_batches_as_in_single_environments():
    """Played by `act`, every row ends with the metrics of the simulator alone."""
    policy = clustergym.policies.make("sjf", placer="tier")
    envs = clustergym.make_vec("Delay", 3, autoreset_mode="same-step", workload="poisson:jobs=40,backlog=20", slots=40)
    envs.reset(seed=4)
    done: dict[int, dict[str, float]] = {}
    alone = []
    for env in envs.envs:
        simulator = Simulator(env.simulator.topology, env.simulator.network, rule=policy.rule)
        simulator.reset(env.simulator.workload, seed=int(env.simulator.state.seed))
        alone.append(simulator.run())
    while len(done) < 3:
        infos = envs.step(policy.act(envs))[4]
        for i in np.flatnonzero(infos.get("_final_info", [])):
            final = infos["final_info"]["metrics"]
            done.setdefault(int(i), {name: float(final[name][i]) for name in alone[0]})
    assert [done[i] for i in range(3)] == alone


def test_a_larger_workload_moves_all_rows_and_changes_nothing():
    """One row draws a workload of the next size class while others are in the middle of theirs, machines failing."""
    kwargs = {"slots": 8, "running_slots": 4, "mtbf_s": 2e5, "max_decisions": 60}
    workloads = ["poisson:jobs=30,backlog=20", "poisson:jobs=30,backlog=20", "poisson:jobs=200,backlog=20"]
    envs = clustergym.make_vec("Delay", 2, autoreset_mode="same-step", workload=workloads, **kwargs)
    one = singles("clustergym/Delay-v0", 2, "same-step", workload=workloads, **kwargs)
    envs.reset(seed=0)
    one.reset(seed=0)
    rng, seen = np.random.default_rng(1), {envs.batch.rows.capacity.jobs}
    for _ in range(1500):
        actions = random_actions(rng, envs.action_masks(), envs.single_action_space)
        for a, b in zip(one.step(actions), envs.step(actions), strict=True):
            assert same(a, b)
        seen.add(envs.batch.rows.capacity.jobs)
    assert len(seen) == 2


@pytest.mark.parametrize("reference", [None, "fifo"])
@pytest.mark.parametrize("network", ["penalty:default=1/1.2/1.5", "allreduce:calibration=artist"])
def test_replicas_take_over_what_their_first_has_drawn(network, reference):
    """They are environments that draw for themselves from the same seed, also in the episodes after the first."""
    kwargs = {**SMALL["clustergym/Delay-v0"], "observation": "flat", "network": network, "reference": reference}
    kwargs |= {"workload": ["dally-like:jobs=20", "dally-like:jobs=9"], "mtbf_s": 1e6, "max_decisions": 60}
    group = clustergym.make_vec("Delay", 6, replicas=3, autoreset_mode="disabled", **kwargs)
    alone = clustergym.make_vec("Delay", 6, autoreset_mode="disabled", **kwargs)
    rng = np.random.default_rng(0)
    for episode in range(4):
        seeds = [None] * 6 if episode else [7, 7, 7, 8, 8, 8]
        found, expected = group.reset(seed=seeds), alone.reset(seed=seeds)
        assert all(map(same, found, expected))
        for _ in range(40 + 5 * episode):
            actions = random_actions(rng, group.action_masks(), group.single_action_space)
            found, expected = group.step(actions), alone.step(actions)
            assert all(map(same, found, expected))
            if (found[2] | found[3]).any():
                break


def test_replicas_play_the_same_workloads_and_variants_repeat():
    variants = [{"topology": "dally:racks=2,machines=4"}, {"topology": "dally:racks=4,machines=2"}]
    envs = clustergym.make_vec("Delay", 8, replicas=4, variants=variants, **SMALL["clustergym/Delay-v0"])
    envs.reset(seed=7)
    seeds = [int(env.simulator.state.seed) for env in envs.envs]
    assert len(set(seeds[:4])) == 1 and len(set(seeds[4:])) == 1 and seeds[0] != seeds[4]
    racks = [env.simulator.topology.num_racks for env in envs.envs]
    assert racks == [2, 4] * 4
    names = [env.simulator.workload.arrival_s.tolist() for env in envs.envs]
    assert names[0] == names[3] != names[4]


@pytest.mark.parametrize("horizon_s", [None, 30_000.0])
@pytest.mark.parametrize("reference", ["fifo", "sjf:placer=tier", "dally-nowait"])
def test_the_return_against_a_reference_is_the_share_of_its_jct_that_is_saved(reference, horizon_s):
    """1 - (own sum of JCTs) / (its sum of JCTs); at a horizon both pay for the jobs that are left as if alone."""
    env = gymnasium.make("clustergym/Delay-v0", reference=reference, horizon_s=horizon_s, slots=8).unwrapped
    policy = clustergym.policies.make(reference)
    rng = np.random.default_rng(0)
    for seed in range(2):
        _, info = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            legal = np.flatnonzero(info["action_mask"][: env.action_space.nvec[0]])
            _, reward, terminated, truncated, info = env.step([rng.choice(legal[legal <= 5 * 8]), 0, 0])
            total, ended = total + reward, terminated or truncated
        alone = Simulator(
            env.simulator.topology, env.simulator.network, rule=policy.rule, horizon_s=horizon_s or float("inf")
        )
        alone.reset(env.simulator.workload, seed=int(env.simulator.state.seed))
        alone.run()
        theirs, own = (
            float(one.state.active_integral) + sum(one.view.remaining_s(job) for job in range(len(one.workload)))
            for one in (alone, env.simulator)
        )
        assert total == pytest.approx(1.0 - own / theirs, abs=1e-9)


def test_a_reference_that_decides_in_python_gives_the_rewards_of_the_rule_that_it_is():
    class Wrapped(clustergym.policies.Policy):
        def __init__(self, inner):
            self.inner, self.clock = inner, inner.rule

        def decide(self, view):
            return self.inner.decide(view)

    policy = clustergym.policies.make("sjf")
    rewards = []
    for reference in (policy.rule, Wrapped(policy)):
        env = gymnasium.make("clustergym/Delay-v0", reference=reference, workload="poisson:jobs=30,backlog=10")
        env.reset(seed=0)
        rewards.append([env.step([0, 0, 0])[1] for _ in range(20)])
    assert rewards[0] == pytest.approx(rewards[1], abs=1e-12)


def test_some_rows_are_reset_by_a_mask_as_single_ones_are():
    kwargs = {**SMALL["clustergym/Delay-v0"], "observation": "flat"}
    one, batch = singles("clustergym/Delay-v0", 3, "next-step", **kwargs), clustergym.make_vec("Delay", 3, **kwargs)
    for envs in (one, batch):
        envs.reset(seed=0)
        envs.step(np.zeros((3, 3), np.int64))
    mask = np.array([True, False, True])
    found = [envs.reset(seed=[9, None, 8], options={"reset_mask": mask}) for envs in (one, batch)]
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


@pytest.mark.parametrize("mode", MODES)
def test_full_infos_have_the_same_keys_at_every_step_but_for_ends(mode):
    """Ends after 3 and 5 decisions; what is there without the option stays as it is."""
    limits = [{"max_decisions": 3}, {"max_decisions": 5}]
    made = [clustergym.make_vec("Delay", 2, autoreset_mode=mode, variants=limits, full_infos=b) for b in (False, True)]
    _usual, full = (envs.reset(seed=0)[1] for envs in made)
    keys = set(full)
    assert {"invalid_action", "max_decisions", "action_mask"} < keys and not full["_invalid_action"].any()
    for _ in range(20):
        usual, full = (envs.step(np.zeros((2, 3), np.int64))[4] for envs in made)
        assert keys <= set(full) and set(full) - keys <= set(usual)
        assert full["max_decisions"].tolist() == [3, 5] and full["_max_decisions"].all()
        assert all(same(usual[key], full[key]) for key in set(usual) - {"max_decisions", "_max_decisions"})


def test_gymnasium_makes_them_and_attributes_pass_through():
    envs = gymnasium.make_vec("clustergym/Delay-v0", num_envs=3, workload="poisson:jobs=20,backlog=9")
    assert type(envs).__name__ == "DelayVectorEnv"
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    envs.reset(seed=1)
    assert clustergym.action_masks(envs).shape == (3, int(envs.single_action_space.nvec.sum()))
    envs.set_attr("note", ["a", "b", "c"])
    assert envs.get_attr("note") == ("a", "b", "c")
    assert envs.call("observe")[0]["cluster"].shape == (11,)
    envs.close()


@pytest.mark.parametrize(
    ("kwargs", "part"),
    [
        ({"num_envs": 0}, "num_envs = 0: expected a whole number of at least 1"),
        ({"num_envs": 4, "replicas": 3}, "expected a divisor of num_envs = 4"),
        ({"num_envs": 2, "autoreset_mode": "same-stop"}, "did you mean 'same-step'?"),
        ({"num_envs": 2, "variants": [{"slots": 4}, {"slots": 5}]}, "the spaces of row 1 differ"),
        ({"num_envs": 2, "full_infos": True, "vectorization_mode": "sync"}, "full_infos: single environments"),
        ({"num_envs": 1, "workload": []}, "expected at least one workload"),
        ({"num_envs": 1, "reference": "tiresia"}, "did you mean 'tiresias'?"),
        ({"num_envs": 1, "reference": 3}, "expected the name of a policy"),
        ({"num_envs": 1, "reference": "fifo", "reward": "slo"}, "expected reward = 'jct'"),
    ],
)
def test_a_mistake_is_one_sentence(kwargs, part):
    with pytest.raises(InputError) as error:
        clustergym.make_vec("Delay", **kwargs)
    assert part in str(error.value) and "\n" not in str(error.value)


def test_wrong_actions_seeds_and_states_are_one_sentence():
    pytest.importorskip("stable_baselines3")
    from clustergym.agents import sb3_vec_env

    envs = clustergym.make_vec("Delay", 2, **SMALL["clustergym/Delay-v0"])
    with pytest.raises(InputError, match="3 seeds given; expected one for each of 2"):
        envs.reset(seed=[1, 2, 3])
    envs.reset(seed=0)
    with pytest.raises(InputError, match="expected 2 x 3 whole numbers"):
        envs.step(np.zeros((3, 3), np.int64))
    with pytest.raises(InputError, match="expected 2 x 3 whole numbers"):
        envs.step(np.zeros((2, 3)))
    batch = sb3_vec_env("Delay", 2, **SMALL["clustergym/Delay-v0"])
    with pytest.raises(InputError, match="reset them first"):
        batch.get_state()
    batch.reset()
    arrays, data = batch.get_state()
    with pytest.raises(InputError, match="it has 2 environments; expected 3"):
        sb3_vec_env("Delay", 3, **SMALL["clustergym/Delay-v0"]).set_state(arrays, data)
    with pytest.raises(InputError, match="of another version"):
        sb3_vec_env("Delay", 2).set_state(arrays, data)
    batch.set_options({"workload": "batch:jobs=5"})
    batch.reset()
    with pytest.raises(InputError, match="plays a workload that was given to reset"):
        batch.get_state()


FINGERPRINT = """
import hashlib, numpy as np, clustergym
envs = clustergym.make_vec("Delay", 3, autoreset_mode="same-step", observation="flat", slots=4, running_slots=2,
                           workload="poisson:jobs=8,backlog=6", reference="sjf")
seen = hashlib.sha256(envs.reset(seed=0)[0].tobytes())
rng = np.random.default_rng(0)
for _ in range(60):
    masks = envs.action_masks()[:, :27]
    actions = np.array([[rng.choice(np.flatnonzero(row)), 0, 0] for row in masks])
    observation, reward, ended, _, _ = envs.step(actions)
    for array in (observation, reward, ended):
        seen.update(array.tobytes())
print(seen.hexdigest())
"""


def test_the_same_bits_without_compilation():
    def fingerprint(**environment: str) -> str:
        run = subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            check=False,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert fingerprint() == fingerprint(NUMBA_DISABLE_JIT="1")
