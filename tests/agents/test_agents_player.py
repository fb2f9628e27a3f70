"""Agents as policies: through steps, by decisions, by their words, on any cluster, and again and again the same."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import sys
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import policies
from clustergym.experiments import cli
from clustergym.simulator.base.errors import InputError, InvalidDecision, MissingExtra
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import open_workload

torch = pytest.importorskip("torch", reason="needs the extra `agents`")
pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from clustergym.agents import shipped  # noqa: E402
from clustergym.agents.files.saved import Normalisation, save_agent  # noqa: E402
from clustergym.agents.playing import player  # noqa: E402
from clustergym.agents.playing.player import AgentPolicy  # noqa: E402
from clustergym.agents.playing.windows import INTERFACES  # noqa: E402
from clustergym.tests.support.small_agents import DELAY, WINDOW, agent  # noqa: E402

SMALL = {"topology": "dally:racks=2,machines=2", "workload": "poisson:jobs=16,backlog=8"}
SECONDS = replace(open_workload("poisson:jobs=16,backlog=8", seed=11, cluster_gpus=32), iterations_known=True)
PENALTY = {"network": "penalty:default=1/1.2/1.5"}
WINDOWS = {
    "as it comes": WINDOW,
    "shortest first": {"slots": 6, "running_slots": 3, "order": "shortest"},
    "no preemption": {"slots": 4, "running_slots": 0, "order": "smallest", "preemption": False},
    "own delays": {"slots": 3, "running_slots": 2, "delays": [30.0, 400.0]},
    "idle points too": {"slots": 4, "running_slots": 2, "skip_idle": False},
    "first GPUs": {"slots": 4, "running_slots": 2, "placer": "first"},
    "random GPUs": {"slots": 4, "running_slots": 2, "placer": "random"},
    "costs and moves": {"slots": 4, "running_slots": 6, "preemption_cost": [20.0, 60.0], "migration": True},
}
CLUSTERS = {
    "two racks": SMALL | PENALTY,
    "one flat machine": {"topology": "flat", "workload": "poisson:jobs=30,load=1.2", "network": "none"},
    "allreduce": {
        "topology": "dally:racks=3",
        "workload": "dally-like:jobs=20",
        "network": "allreduce:calibration=artist,default=BERT",
    },
    "many racks": {"topology": "dally:racks=8", "workload": "poisson:jobs=30,backlog=20", **PENALTY},
    "auctions": {
        **SMALL,
        "workload": SECONDS,
        "network": "allreduce:calibration=artist,default=BERT",
        "semantics": "artist-sim:lease_s=400,chunk=20",
    },
    "failures": {**SMALL, **PENALTY, "mtbf_s": 5000.0, "mttr_s": 900.0, "checkpoint_s": 300.0, "horizon_s": 60_000.0},
}

HORIZON_S = 100_000.0


def by_steps(policy, seed=11, **options):
    """The environment after an episode in which `policy` acts, and its metrics; no action is masked or adjusted."""
    env = gymnasium.make(DELAY, **options).unwrapped
    env.reset(seed=seed)
    ended = False
    while not ended:
        action = policy.act(env)
        assert env.action_masks()[action[0]]
        _, _, terminated, truncated, info = env.step(action)
        assert not (info["invalid_action"] or info["adjusted_action"])
        ended = terminated or truncated
    return env, info["metrics"]


def alone(env, policy):
    """The metrics of the simulator on an environment's workload and seed, decided by `policy`."""
    theirs = env.simulator
    simulator = Simulator(
        theirs.topology,
        theirs.network,
        semantics=theirs.semantics,
        failures=theirs.config.failures,
        horizon_s=theirs.config.horizon_s,
    )
    simulator.reset(theirs.workload, int(theirs.state.seed))
    return simulator.run(policy), simulator


def assert_same(metrics, expected):
    assert {name: repr(value) for name, value in metrics.items()} == {n: repr(v) for n, v in expected.items()}


@pytest.mark.parametrize("mode", ["argmax", "sampled"])
@pytest.mark.parametrize("window", WINDOWS)
def test_through_steps_it_does_what_it_does_alone(window, mode):
    """Metrics and every job's times, bit for bit, in its own environment."""
    policy = AgentPolicy(agent(env_kwargs=WINDOWS[window], mode=mode, seed=1))
    env, metrics = by_steps(policy, **SMALL, **PENALTY, **{**WINDOWS[window], "delays": _delays(window)})
    again = AgentPolicy(agent(env_kwargs=WINDOWS[window], mode=mode, seed=1))
    expected, simulator = alone(env, again)
    assert_same(metrics, expected)
    for name in ("first_start_s", "finish_s", "tier", "preemptions"):
        assert env.simulator.jobs()[name].tolist() == simulator.jobs()[name].tolist()


def _delays(window):
    from clustergym.envs.delay.delay_interface import DELAYS_S

    return tuple(WINDOWS[window].get("delays", DELAYS_S))


@pytest.mark.parametrize("mode", ["argmax", "sampled"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_on_other_clusters_too(cluster, mode):
    options = CLUSTERS[cluster]
    policy = AgentPolicy(agent(mode=mode, seed=2))
    env, metrics = by_steps(policy, **options, **WINDOW)
    assert_same(metrics, alone(env, policy)[0])


@pytest.mark.parametrize("algo", ["ppo", "maskable-ppo"])
@pytest.mark.parametrize("network", ["candidates", "mlp"])
def test_it_plays_what_stable_baselines3s_predict_says_on_the_environments_own_observations(network, algo):
    one = agent(algo=algo, network=network, seed=3)
    env = gymnasium.make(DELAY, observation="flat", **SMALL, **PENALTY, **WINDOW).unwrapped
    observation, info = env.reset(seed=5)
    ended = False
    while not ended:
        masks = {} if algo == "ppo" else {"action_masks": info["action_mask"]}
        action, _ = one.policy.predict(observation, deterministic=True, **masks)
        observation, _, terminated, truncated, info = env.step(action)
        assert not info["invalid_action"]
        ended = terminated or truncated
    assert_same(info["metrics"], alone(env, AgentPolicy(one))[0])


def test_agents_hold_preempt_and_wait_in_these_tests():
    """Else they would show little."""
    seen = set()
    for mode in ("argmax", "sampled"):
        policy = AgentPolicy(agent(mode=mode, seed=1))
        simulator = Simulator("dally:racks=2,machines=2", "penalty:default=1/1.2/1.5")
        simulator.reset(open_workload(SMALL["workload"], seed=11, cluster_gpus=64), 11)
        while not simulator.ended:
            decision = simulator.ask(policy)
            seen.add(type(decision).__name__)
            simulator.apply(decision)
    assert seen >= {"Start", "Hold", "Preempt", "Advance"}


def fresh(seed=0, workload_seed=0):
    """A simulator at the first decision point of a small run."""
    simulator = Simulator("dally:racks=2,machines=2", "penalty:default=1/1.2/1.5")
    simulator.reset(open_workload(SMALL["workload"], seed=workload_seed, cluster_gpus=64), seed)
    return simulator


@pytest.mark.parametrize("order", ["arrival", "shortest"])
def test_the_same_policy_on_run_after_run(order):
    """A new simulator, one that is reset after a few decisions or at once, and one that goes back to a snapshot."""
    window = {**WINDOW, "order": order}
    expected = fresh(4).run(AgentPolicy(agent(env_kwargs=window, mode="sampled")))
    policy = AgentPolicy(agent(env_kwargs=window, mode="sampled"))
    for _ in range(2):
        assert_same(fresh(4).run(policy), expected)
    simulator = fresh(4)
    for decisions in (0, 1, 20):
        for _ in range(decisions):
            simulator.apply(simulator.ask(policy))
        simulator.ask(policy)
        if decisions == 20:
            snapshot = simulator.snapshot()
            rest = simulator.run(policy)
            simulator.restore(snapshot)
            assert_same(simulator.run(policy), rest)
        simulator.reset(simulator.workload, 4)
    assert_same(simulator.run(policy), expected)


def test_two_runs_in_turn_do_not_disturb_each_other():
    policy = AgentPolicy(agent(mode="sampled"))
    expected = [fresh(seed, seed).run(policy) for seed in (1, 2)]
    runs = [fresh(seed, seed) for seed in (1, 2)]
    while not all(run.ended for run in runs):
        for run in runs:
            if not run.ended:
                run.apply(run.ask(policy))
    for run, metrics in zip(runs, expected, strict=True):
        assert_same(run.metrics(), metrics)


def test_samples_differ_by_seed_and_argmax_does_not():
    for mode, count in (("argmax", 1), ("sampled", 4)):
        policy = AgentPolicy(agent(mode=mode))
        assert len({fresh(seed).run(policy)["jct_mean"] for seed in range(4)}) == count


def test_samples_have_the_probabilities_that_the_policy_gives():
    """The first decision of 4,000 seeds against the probabilities, within four standard deviations."""
    policy = AgentPolicy(agent(mode="sampled", seed=1))
    simulator = fresh()
    simulator.ask(policy)
    window = policy._window
    candidates = window.interface.candidates
    own = policy._scores(window.features, window.mask)[:candidates]
    scores = np.where(window.mask[:candidates] > 0, own, -np.inf)
    probability = np.exp(scores) / np.exp(scores).sum()
    count = 4000
    drawn = [int((scores + player._gumbel(seed, 1, 0, 0, candidates)).argmax()) for seed in range(count)]
    found = np.bincount(drawn, minlength=candidates) / count
    assert (np.abs(found - probability) <= 4 * np.sqrt(probability * (1 - probability) / count)).all()
    assert (probability > 0.02).sum() >= 3


def test_no_two_actions_of_a_run_are_drawn_with_the_same_numbers(monkeypatch):
    """Nor where many are taken in turn that decide nothing: on to the next table."""
    drawn, gumbel = [], player._gumbel
    monkeypatch.setattr(player, "_gumbel", lambda *key: drawn.append(key) or gumbel(*key))
    simulator = Simulator("mast:regions=4,gpus=256", tables_every_s=43_200.0)
    simulator.reset(open_workload("mast-like:jobs=12,days=0.1,tables=20", seed=0), 0)
    simulator.run(AgentPolicy(policies.make("zoo:DataPlacement").agent, mode="sampled"))
    assert len(drawn) >= 20 and len(set(drawn)) == len(drawn)


def test_copies_in_other_processes_play_the_same():
    policy = AgentPolicy(agent(mode="sampled"), name="mine")
    expected = fresh(3).run(policy)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.name == "mine"
    assert_same(fresh(3).run(copy), expected)


def test_a_vector_of_environments():
    """One policy for all of them: each ends as it would alone."""
    policy = AgentPolicy(agent(mode="sampled"))
    vector = gymnasium.make_vec(DELAY, num_envs=2, vectorization_mode="sync", **SMALL, **PENALTY, **WINDOW)
    vector.reset(seed=[11, 12])
    ended = {}
    while len(ended) < 2:
        _, _, terminated, _, info = vector.step(policy.act(vector))
        for row in np.flatnonzero(terminated):
            ended.setdefault(int(row), info["metrics"]["jct_mean"][row])
    for row in range(2):
        assert ended[row] == by_steps(policy, 11 + row, **SMALL, **PENALTY, **WINDOW)[1]["jct_mean"]


def test_in_an_environment_with_another_window():
    """With more slots and another order it does what it does alone; with too few delays it says so."""
    policy = AgentPolicy(agent(mode="sampled", seed=1))
    env, metrics = by_steps(policy, **SMALL, **PENALTY, slots=9, running_slots=5, order="smallest")
    assert_same(metrics, alone(env, policy)[0])
    with pytest.raises(InvalidDecision, match="delays"):
        for seed in range(20):
            by_steps(policy, seed, **SMALL, **PENALTY, delays=(77.0,))


def test_observations_are_normalised_as_stable_baselines3_does():
    from stable_baselines3.common.running_mean_std import RunningMeanStd
    from stable_baselines3.common.vec_env import VecNormalize

    plain = agent()
    size = plain.policy.observation_space.shape[0]
    rng = np.random.default_rng(0)
    scaling = Normalisation(mean=rng.random(size).tolist(), var=(rng.random(size) * 0.01).tolist(), clip=2.0)
    described = plain.description.model_copy(update={"normalisation": scaling})
    policy = AgentPolicy(type(plain)(plain.policy, described, ()))
    fresh().ask(policy)

    theirs = VecNormalize.__new__(VecNormalize)
    theirs.epsilon, theirs.clip_obs = scaling.epsilon, scaling.clip
    spread = RunningMeanStd(shape=(size,))
    spread.mean, spread.var = np.array(scaling.mean), np.array(scaling.var)
    window = policy._window
    expected = theirs._normalize_obs(window.features[None], spread).astype(np.float32)
    with torch.no_grad():
        logits = plain.policy.get_distribution(torch.from_numpy(expected), window.mask).distributions[0].logits[0]
    assert policy._scores(window.features, window.mask)[: len(logits)] == pytest.approx(
        logits.double().numpy(), abs=1e-4
    )


@pytest.fixture
def folder(tmp_path):
    """A saved agent in a folder whose name needs care."""
    path = tmp_path / "a:b,c=d"
    one = agent(mode="sampled")
    save_agent(path, one.policy, one.description)
    return path


def test_words_name_agents(folder):
    policy = policies.make(f"maskable-ppo:{folder}")
    assert policy.name == f"maskable-ppo:{folder}" and policy.rule is None and policy.mode == "sampled"
    assert policy.environments == policies.environments_of(f"maskable-ppo:{folder}") == (DELAY,)
    assert sorted(path.name for path in policy.files) == ["agent.json", "weights.safetensors"]
    assert_same(fresh(1).run(policy), fresh(1).run(AgentPolicy(agent(mode="sampled"))))
    assert policies.make(f"maskable-ppo:{folder}", mode="argmax").mode == "argmax"
    assert not set(INTERFACES) - set(clustergym.envs.registration.ENVIRONMENTS)


def test_a_changed_agent_is_loaded_anew(folder):
    before = fresh(1).run(policies.make(f"maskable-ppo:{folder}"))["jct_mean"]
    one = agent(seed=9)
    save_agent(folder, one.policy, one.description)
    assert fresh(1).run(policies.make(f"maskable-ppo:{folder}"))["jct_mean"] != before


def test_words_that_name_no_agent(folder, tmp_path):
    for word, sentence in (
        (f"ppo:{folder}", "was trained with maskable-ppo, not ppo"),
        (f"ppo:{tmp_path / 'nothing'}", "no such folder"),
        ("ppo", "ppo:PATH"),
        ("maskable-ppo:", "maskable-ppo:PATH"),
        (f"maskableppo:{folder}", "unknown policy|key=value"),
    ):
        with pytest.raises(InputError, match=sentence):
            policies.make(word)
    with pytest.raises(InputError, match="unknown parameter 'speed'"):
        policies.make(f"maskable-ppo:{folder}", speed=1)
    with pytest.raises(InputError, match="mode"):
        policies.make(f"maskable-ppo:{folder}", mode="best")


@pytest.mark.parametrize(
    ("env_kwargs", "words"),
    [
        ({"slots": 5, "running_slots": 2}, "observations"),
        ({"slots": 4, "running_slots": 2, "delays": [1.0]}, "actions"),
        ({"slots": "4"}, "slots"),
        ({"slots": 4, "running_slots": 2, "order": "os.system"}, "order"),
        ({"slots": 4, "running_slots": 2, "horizon_s": "soon"}, "env_kwargs"),
        ({"slots": 4, "running_slots": 2, "preemption_cost": "much"}, "env_kwargs"),
        ({"slots": 4, "running_slots": 2, "placer": "os.system"}, "placer"),
    ],
)
def test_windows_that_do_not_fit(folder, env_kwargs, words):
    path = folder / "agent.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "env_kwargs": env_kwargs}))
    with pytest.raises(InputError, match=words) as refusal:
        policies.make(f"maskable-ppo:{folder}")
    assert "agent.json" in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A zoo with one agent."""
    one = agent()
    save_agent(tmp_path / "zoo" / "delay", one.policy, one.description)
    monkeypatch.setattr(shipped, "ZOO", tmp_path / "zoo")
    return tmp_path / "zoo"


def test_the_zoo(zoo):
    for word in ("zoo:Delay", "zoo:clustergym/Delay-v0"):
        assert policies.make(word).files[0].parent == zoo / "delay"
    with pytest.raises(InputError, match=r"Dely.*did you mean 'Delay'"):
        policies.make("zoo:Dely")
    assert [(row["name"], row["environments"]) for row in policies.shipped()] == [("zoo:Delay", [DELAY])]


def test_an_empty_zoo(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "ZOO", tmp_path)
    assert policies.shipped() == []
    with pytest.raises(InputError, match="no agent comes with"):
        policies.make("zoo:Delay")


def test_without_torch_one_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'needs torch; .*"clustergym\[agents\]"'):
        policies.make(f"maskable-ppo:{folder}")


def command(*arguments):
    """What `clustergym` with `arguments` says in this process, and its exit status."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run([*map(str, arguments)])
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def test_commands_play_agents(folder, tmp_path):
    """Two processes and one give the same rows, those of the library; decisions are written."""
    word = f"maskable-ppo:{folder}"
    where = ("--workload", SMALL["workload"], "--topology", SMALL["topology"], "--network", PENALTY["network"])
    # An agent that was never trained may wait for ever.
    where += ("--set", f"horizon_s={HORIZON_S}")
    options = ("--policies", f"sjf {word}", *where, "--seeds", "0-1", "--json", "--quiet")
    one = command("evaluate", "Delay", *options, "--decisions", tmp_path / "decisions.csv")
    two = command("evaluate", "Delay", *options, "-j", 2)
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    rows = json.loads(one.stdout)
    assert [row["metrics"] for row in rows] == [row["metrics"] for row in json.loads(two.stdout)]
    assert [(row["policy"], row["seed"]) for row in rows] == [("sjf", 0), ("sjf", 1), (word, 0), (word, 1)]
    simulator = Simulator(SMALL["topology"], PENALTY["network"], horizon_s=HORIZON_S)
    simulator.reset(open_workload(SMALL["workload"], seed=1, cluster_gpus=simulator.topology.num_gpus), 1)
    assert rows[3]["metrics"]["jct_mean"] == simulator.run(policies.make(word))["jct_mean"]
    assert f'"{word}",1,' in (tmp_path / "decisions.csv").read_text()


def test_the_command_refuses_what_it_may_not_open(tmp_path):
    import stable_baselines3

    env = gymnasium.make(DELAY, observation="flat", **SMALL)
    stable_baselines3.PPO("MlpPolicy", env, n_steps=2, batch_size=2, device="cpu").save(tmp_path / "a.zip")
    play = ("evaluate", "Delay", "--policies", f"ppo:{tmp_path / 'a.zip'}", "--seed", 0, "--quiet", "--json")
    where = ("--workload", "poisson:jobs=10", "--topology", SMALL["topology"], "--set", f"horizon_s={HORIZON_S}")
    refused = command(*play, *where)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and "--trust-sb3-zip" in refused.stderr
    played = command(*play, *where, "--trust-sb3-zip")
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout)[0]["metrics"]["makespan"] <= HORIZON_S
    missing = command("evaluate", "Delay", "--policies", f"ppo:{tmp_path / 'b'}", "--seed", 0)
    assert missing.returncode == 2 and "no such folder" in missing.stderr


def test_an_agent_is_drawn(folder, tmp_path):
    drawn = command(
        *("render", "Delay", "--policy", f"maskable-ppo:{folder}", "--out", tmp_path / "a.png", "--quiet"),
        *("--workload", "poisson:jobs=10", "--topology", SMALL["topology"]),
    )
    if "needs" in drawn.stderr:
        pytest.skip("needs the extra `render`")
    assert drawn.returncode == 0 and (tmp_path / "a.png").stat().st_size > 1000, drawn.stderr
