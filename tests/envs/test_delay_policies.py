"""Delay-v0: every policy played through `env.step` gives exactly the metrics of the simulator alone."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.delay.columns import CANDIDATES, QUEUE
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.rules.semantics import load_semantics
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import env_terms

DELAY = "clustergym/Delay-v0"
DALLY = "dally:racks=2,machines=3"


def crowded() -> Workload:
    """60 jobs of 1 to 48 GPUs, models of either skew, whole seconds and so many ties, a load of 1.2 on 48 GPUs."""
    rng = np.random.default_rng(5)
    gpus, duration_s = np.minimum(2 ** rng.integers(0, 7, 60), 48), np.ceil(rng.lognormal(6, 1.2, 60))
    arrival_s = np.floor(np.sort(rng.uniform(0, (gpus * duration_s).sum() / 48 / 1.2, 60)))
    models = rng.choice(["VGG11", "ResNet50", "BERT-large", ""], 60)
    return Workload.from_arrays("crowded", arrival_s, gpus, duration_s, iterations=duration_s, model=models)


SETTINGS = {
    "default": {},
    "poisson": {"topology": "flat", "workload": "poisson:jobs=150,load=1.2", "network": "none"},
    "crowded": {"topology": DALLY, "workload": crowded(), "network": "penalty:default=1/1.2/1.5"},
}
VARIANTS = (
    "head=strict",
    "placer=consolidated,preemption_cost=30",
    "placer=tier,preemption_cost=40/60",
    "placer=random,head=strict",
    "placer=skew,round=300",
    "lease=600",
    "lease=300,round=120,placer=tier,preemption_cost=40/60",
)


ORDERED = ("random", "fifo", "sjf", "edf", "srtf", "srsf", "las", "tiresias")
NETWORK_SENSITIVE = (
    "greedy",
    "greedy:margin=0,placer=first,preemption_cost=20/30",
    "greedy:margin=1.2,round=120",
    "greedy:preempt=on,preemption_cost=30",
    "greedy:preempt=on,margin=0,placer=first,preemption_cost=20/30,round=120,theta=0.8",
    "dally:lease=300",
    "dally:lease=100,history=3,initial=0.5/2,placer=first,preemption_cost=20/30",
    "dally:lease=100,floors=1/3,history=6,deviation=population,placer=first",
    "dally:round=120",
    "dally-manual:timers=200/900,lease=300",
    "dally-manual:timers=inf/50,lease=300,placer=first",
    "dally-nowait:lease=200,placer=first,preemption_cost=40",
    "dally-consolidated:lease=200",
    "gandiva:preemption_cost=15/25",
    "gandiva:fallback=last,lease=300,round=60",
    "gandiva:slicing=120,preemption_cost=15/25",
)
AT_AUCTIONS = (  # where leases and rounds are those of the semantics
    *("greedy", "greedy:margin=0,placer=first,preemption_cost=20/30", "greedy:margin=1.2"),
    *("dally", "dally:history=3,initial=0.5/2,placer=first,preemption_cost=20/30"),
    *("dally:floors=1/3,history=6,deviation=population,placer=first", "dally-manual:timers=200/900"),
    *("dally-manual:timers=inf/50,placer=first", "dally-nowait:preemption_cost=40", "dally-consolidated"),
    *("gandiva:preemption_cost=15/25", "gandiva:fallback=last"),
)


def by_steps(policy, seed=11, **options):
    """The metrics of an episode in which `policy` acts; none of its actions may be masked."""
    env = gymnasium.make(DELAY, **options)
    env.reset(seed=seed)
    base = env.unwrapped
    ended = False
    while not ended:
        action = policy.act(env)
        assert base.action_masks()[action[0]]
        *_, terminated, truncated, info = env.step(action)
        assert not (info["invalid_action"] or info["adjusted_action"])
        ended = terminated or truncated
    assert terminated
    return info["metrics"]


def differences(policy, **options):
    """Names of metrics and job columns in which the environment and the simulator alone differ."""
    return env_terms.differences(DELAY, lambda: policy, **options)[0]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", policies.list("Delay"))
def test_a_policy_through_steps_is_the_simulator_alone(name, setting):
    assert differences(policies.make(name), **SETTINGS[setting]) == []


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ORDERED)
def test_with_its_parameters_too(name, variant):
    assert differences(policies.make(f"{name}:{variant}"), **SETTINGS["crowded"]) == []


@pytest.mark.parametrize("network", ["penalty:default=1/1.2/1.5", "allreduce:calibration=artist,default=ResNet18"])
@pytest.mark.parametrize("word", NETWORK_SENSITIVE)
def test_delay_timers_and_migration_with_their_parameters_too(word, network):
    assert differences(policies.make(word), **SETTINGS["crowded"] | {"network": network}) == []


@pytest.mark.parametrize("word", [*ORDERED, *AT_AUCTIONS])
def test_under_the_semantics_of_artist_sim_too(word):
    semantics = load_semantics("artist-sim:lease_s=400,chunk=20")
    options = SETTINGS["crowded"] | {"network": "allreduce:calibration=artist,default=BERT", "semantics": semantics}
    assert differences(policies.make(word), **options) == []


@pytest.mark.parametrize("name", policies.able("Delay"))
def test_with_failures_too(name):
    options = {"mtbf_s": 5000.0, "mttr_s": 1000.0, "checkpoint_s": 300.0, **SETTINGS["crowded"]}
    assert differences(policies.make(name, preemption_cost=(30.0,)), **options) == []


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("name", policies.list("Delay"))
def test_with_a_small_window_too(name, slots):
    """The window turns to the job of the decision, and stops where any waiting job could start, shown or not."""
    options = {**SETTINGS["crowded"], "slots": slots, "running_slots": 1}
    assert differences(policies.make(name), **options) == []


@pytest.mark.parametrize("name", ["random", "fifo", "sjf"])
def test_without_preemption_and_with_a_small_window_too(name):
    """`sjf` starts jobs far back in the queue: no instant may be skipped because the window shows no start."""
    options = {**SETTINGS["crowded"], "slots": 2, "preemption": False}
    assert differences(policies.make(name), **options) == []


@pytest.mark.parametrize(
    "options", [{"skip_idle": False}, {"order": "smallest"}, {"observation": "flat"}, {"placer": "count"}]
)
@pytest.mark.parametrize("name", ["sjf", "tiresias"])
def test_whatever_the_environments_own_options(name, options):
    assert differences(policies.make(name), **SETTINGS["crowded"], **options) == []


def test_a_policy_acts_in_wrapped_environments_and_in_vectors_of_them():
    """SyncVectorEnv and DummyVecEnv, two clusters of other seeds; the same trajectory as alone."""
    expected = [by_steps(policies.make("srtf"), seed=seed, **SETTINGS["crowded"]) for seed in (3, 4)]
    policy = policies.make("srtf")
    vector = gymnasium.make_vec(DELAY, num_envs=2, vectorization_mode="sync", **SETTINGS["crowded"])
    vector.reset(seed=3)
    found = {}
    while len(found) < 2:
        *_, terminated, _, info = vector.step(policy.act(vector))
        for i in np.flatnonzero(terminated):
            found.setdefault(int(i), {key: value[i] for key, value in info["metrics"].items() if key[0] != "_"})
    assert repr([{key: float(found[i][key]) for key in expected[i]} for i in (0, 1)]) == repr(expected)


def test_a_decision_that_the_environment_does_not_know_is_refused_with_the_reason():
    class Stops(policies.Policy):
        def decide(self, view):
            from clustergym.simulator.base.decisions import Preempt

            return Preempt(0)

    workload = Workload.from_arrays("two", [0.0, 1.0], [2, 2], [5.0, 5.0])
    env = gymnasium.make(DELAY, workload=workload, network="none", preemption=False)
    env.reset(seed=0)
    with pytest.raises(InvalidDecision, match="preempt"):
        Stops().act(env)


def test_an_action_belongs_to_the_turned_window_and_leaves_what_was_handed_out_alone():
    """`act` turns the window: mask and observation are new arrays, and show the job that the action is about first."""
    env = gymnasium.make(DELAY)
    observation, info = env.reset(seed=0)
    policy, base = policies.make("sjf:placer=tier"), env.unwrapped
    turned = 0
    for _ in range(200):
        handed_out = info["action_mask"].copy(), observation["queue"].copy()
        action = policy.act(env)
        assert np.array_equal(info["action_mask"], handed_out[0]) and np.array_equal(
            observation["queue"], handed_out[1]
        )
        shown = env.get_wrapper_attr("observe")()
        assert shown in env.observation_space and base.action_masks()[action[0]]
        candidate = shown["candidates"].reshape(-1, len(CANDIDATES))[action[0]]
        assert candidate[CANDIDATES.legal] == 1.0
        turned += not np.array_equal(shown["queue"], observation["queue"])
        observation, _, terminated, _, info = env.step(action)
        if terminated:
            break
    assert turned > 10


def test_at_the_end_of_an_episode_advancing_is_legal_whatever_a_policy_is_asked():
    env = gymnasium.make(DELAY, workload="batch:jobs=3", network="none")
    env.reset(seed=0)
    policy = policies.make("las")
    while not env.step(policy.act(env))[2]:
        pass
    assert policy.act(env).tolist() == [0, 0, 0] and env.unwrapped.action_masks()[0]


def test_features_of_a_waiting_job_follow_it_through_an_undone_stop():
    """3 of 10 h run, stopped and back at once, then 4 h more: what is left and attained is shown, not remembered."""
    hour = 3600.0
    jobs = Workload.from_arrays("three", [0.0, 3 * hour, 7 * hour], [8, 8, 8], [10 * hour, hour, hour])
    env = gymnasium.make(DELAY, topology="flat:machines=1", workload=jobs, network="none").unwrapped
    env.reset(seed=0)
    env.step((1, 0, 0))  # job 0 starts at 0; the next decision is at 3 h
    first_running = 1 + 5 * 32
    env.step((first_running, 0, 0))
    shown = env.observe()["queue"].reshape(32, len(QUEUE))
    slot = int(np.flatnonzero(shown[:, QUEUE.has_run] == 1.0)[0])
    env.step((1 + 5 * slot, 0, 0))  # back on its GPUs
    while env.view.now_s < 7 * hour:
        env.step((0, 0, 0))
    observation = env.step((first_running, 0, 0))[0]["queue"].reshape(32, len(QUEUE))
    row = observation[np.flatnonzero(observation[:, QUEUE.has_run] == 1.0)[0]]
    scale = np.log1p(30 * 86400.0)
    assert row[QUEUE.time_left] == pytest.approx(np.log1p(3 * hour) / scale, abs=1e-6)
    assert row[7] == pytest.approx(np.log1p(7 * hour * 8) / scale, abs=1e-6)


@pytest.mark.parametrize(
    "action", [(10**30, 0, 0), (-(10**30), 0, 0), (0, 10**30, 0), (5, -(10**30), 0), (5, 0, 10**30)]
)
def test_a_huge_action_is_no_crash(action):
    """A candidate that does not exist is refused; another part is adjusted, where the candidate has one."""
    env = gymnasium.make(DELAY)
    env.reset(seed=0)
    if abs(action[0]) > 5:
        with pytest.raises(InputError, match="expected 0 to 208"):
            env.unwrapped.step(action)
        return
    *_, info = env.unwrapped.step(action)
    assert not info["invalid_action"] and info["adjusted_action"] == (action[0] == 5)
