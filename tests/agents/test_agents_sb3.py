"""Agents that the user trained with stable-baselines3 or sb3-contrib, and agents of other libraries, by one word."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `agents`")
pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import sb3_contrib
import stable_baselines3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import clustergym.agents
from clustergym import policies
from clustergym.agents import save_sb3, sb3_vec_env
from clustergym.agents.playing.sb3_description import Normaliser
from clustergym.agents.playing.sb3_player import Sb3Policy
from clustergym.agents.playing.sb3_zip import ALGORITHMS, recognised
from clustergym.experiments import cli
from clustergym.simulator.base.errors import InputError, MissingExtra

ONE_NUMBER = {"observation": "flat", "action": "discrete"}
SMALL = {
    "Delay": {"topology": "dally:racks=1,machines=2", "workload": "poisson:jobs=10,backlog=4", "slots": 5},
    "Sharing": {"workload": "philly-sample:jobs=10,hours=1", "slots": 4, "running_slots": 4, "partners": 1},
    "TimeShift": {"workload": "cassini-poisson:jobs=6,load=1", "slots": 4, "running_slots": 4, "candidates": 4},
    "Geo": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=10,days=0.1,tables=10",
        "slots": 3,
        "running_slots": 3,
        "clusters": 4,
    },
    "DataPlacement": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=10,days=0.1,tables=6",
        "slots": 3,
        "running_slots": 3,
    },
    "Grouping": {"workload": "harmony-like:jobs=4", "slots": 3, "running_slots": 3, "group_slots": 2},
}
FEW = {"n_steps": 16, "batch_size": 16, "n_epochs": 1}
CASES = {  # algorithm, environment, what it sees and says
    "ppo-delay": ("ppo", "Delay", {"observation": "flat"}, FEW),
    "ppo-sharing": ("ppo", "Sharing", ONE_NUMBER, FEW),
    "ppo-dict-geo": ("ppo", "Geo", {}, FEW),
    "a2c-timeshift": ("a2c", "TimeShift", {"observation": "flat"}, {"n_steps": 8}),
    "dqn-geo": ("dqn", "Geo", {"observation": "flat"}, {"learning_starts": 16, "buffer_size": 200}),
    "dqn-delay": ("dqn", "Delay", ONE_NUMBER, {"learning_starts": 16, "buffer_size": 200}),
    "qr-dqn-sharing": ("qr-dqn", "Sharing", ONE_NUMBER, {"learning_starts": 16, "buffer_size": 200}),
    "maskable-ppo-sharing": ("maskable-ppo", "Sharing", {}, FEW),
    "maskable-ppo-placement": ("maskable-ppo", "DataPlacement", {"observation": "flat"}, FEW),
    "maskable-ppo-seen-mask": ("maskable-ppo", "Delay", {**ONE_NUMBER, "mask": "obs/mask"}, FEW),
    "recurrent-ppo-delay": ("recurrent-ppo", "Delay", {"observation": "flat", "order": "shortest"}, FEW),
    "trpo-grouping": ("trpo", "Grouping", {"observation": "flat"}, {"n_steps": 16, "batch_size": 16}),
    "ars-delay": ("ars", "Delay", ONE_NUMBER, {"n_delta": 1}),
}


def model_of(algo: str, env, **options):
    """A model of an algorithm on an environment, untrained."""
    module, _, name = ALGORITHMS[algo].partition(":")
    kind = getattr(stable_baselines3 if module == "stable_baselines3" else sb3_contrib, name)
    seen = "MultiInput" if isinstance(env.observation_space, gymnasium.spaces.Dict) else "Mlp"
    policy = f"{seen}LstmPolicy" if algo == "recurrent-ppo" else f"{seen}Policy"
    small = {} if algo == "ars" else {"net_arch": [8]}
    small |= {"lstm_hidden_size": 8} if algo == "recurrent-ppo" else {}
    return kind(policy, env, seed=3, device="cpu", policy_kwargs=small, **options)


def trained(algo: str, name: str, seen: dict, options: dict):
    """A model that has learned for some 200 steps at most, in the user's own environment."""
    kwargs = {**SMALL[name], **seen, "max_decisions": 60}
    make = lambda: gymnasium.make(f"clustergym/{name}-v0", **kwargs)  # noqa: E731
    model = model_of(algo, DummyVecEnv([make]), **options)
    return model.learn(60 if algo != "ars" else 1)


def by_hand(model, name: str, seed: int, deterministic: bool = True, normalise=None, **kwargs):
    """The environment after an episode by `model.predict` and `env.step`, and its metrics."""
    env = gymnasium.make(f"clustergym/{name}-v0", **kwargs).unwrapped
    observation, _ = env.reset(seed=seed)
    state, ended, steps = None, False, 0
    while not ended:
        masks = {"action_masks": env.action_masks()} if isinstance(model, sb3_contrib.MaskablePPO) else {}
        if normalise is not None:
            observation = normalise.normalize_obs(observation)
        action, state = model.predict(
            observation, state=state, episode_start=np.array([steps == 0]), deterministic=deterministic, **masks
        )
        observation, _, terminated, truncated, info = env.step(action)
        ended, steps = terminated or truncated, steps + 1
    return env, info["metrics"]


def by_word(env, word: str, **options):
    """The metrics of the simulator of an environment, decided by the policy of a word."""
    policy = policies.make(word, allow_pickle=True, **options)
    simulator = env.simulator.twin()
    simulator.reset(env.simulator.workload, int(env.simulator.state.seed))
    return simulator.run(policy)


def assert_same(found, expected):
    assert {name: repr(value) for name, value in found.items()} == {n: repr(v) for n, v in expected.items()}


@pytest.mark.parametrize("case", CASES)
def test_the_word_plays_what_predict_and_step_play(case, tmp_path):
    algo, name, seen, options = CASES[case]
    kwargs = {**SMALL[name], **seen}
    model = trained(algo, name, seen, options)
    save_sb3(model, tmp_path / "mine.zip")
    assert recognised(tmp_path / "mine.zip") == algo
    env, expected = by_hand(model, name, 5, **kwargs)
    assert_same(by_word(env, f"sb3:{tmp_path / 'mine.zip'}"), expected)


@pytest.fixture(scope="module")
def sharing(tmp_path_factory):
    """PPO that has learned a little on Sharing-v0 in `sb3_vec_env`, over VecNormalize; its file and the model."""
    folder = tmp_path_factory.mktemp("agent: a, b")
    env = VecNormalize(sb3_vec_env("Sharing", 2, seed=0, max_decisions=60, **SMALL["Sharing"], **ONE_NUMBER))
    model = model_of("ppo", env, **FEW).learn(200)
    env.training = False
    model.save(folder / "bare.zip")
    env.save(str(folder / "statistics.pkl"))
    return save_sb3(model, folder / "mine"), model


def test_statistics_of_vec_normalize_stand_beside_it_or_in_their_pickle(sharing):
    """Both give the very run that `predict` gives on what `normalize_obs` gives; without them it is another one."""
    path, model = sharing
    bare = path.with_name("bare.zip")
    window = ",".join(f"{key}={value}" for key, value in SMALL["Sharing"].items() if key != "workload")
    word = f"sb3:{bare},{window}"
    normalise = model.get_vec_normalize_env()
    env, expected = by_hand(model, "Sharing", 5, normalise=normalise, **SMALL["Sharing"], **ONE_NUMBER)
    assert_same(by_word(env, f"sb3:{path}"), expected)
    said = {"environment": "Sharing"}
    assert_same(by_word(env, f"{word},normalise=statistics.pkl", **said), expected)
    assert by_word(env, word, **said)["jct_mean"] != expected["jct_mean"]


def test_what_is_drawn_hangs_on_the_seed_and_on_nothing_else(sharing):
    path, model = sharing
    env, _ = by_hand(model, "Sharing", 5, **SMALL["Sharing"], **ONE_NUMBER, normalise=model.get_vec_normalize_env())
    runs = [by_word(env, f"sb3:{path},mode={mode}") for mode in ("sampled", "argmax", "sampled")]
    assert_same(runs[0], runs[2])
    assert runs[0]["jct_mean"] != runs[1]["jct_mean"]


def test_copies_in_other_processes_play_the_same(sharing):
    path, model = sharing
    env, expected = by_hand(
        model, "Sharing", 5, **SMALL["Sharing"], **ONE_NUMBER, normalise=model.get_vec_normalize_env()
    )
    copy = pickle.loads(pickle.dumps(policies.make(f"sb3:{path}", allow_pickle=True)))
    simulator = env.simulator.twin()
    simulator.reset(env.simulator.workload, int(env.simulator.state.seed))
    assert_same(simulator.run(copy), expected)


def test_two_runs_in_turn_do_not_disturb_what_a_recurrent_one_remembers(tmp_path):
    algo, name, seen, options = CASES["recurrent-ppo-delay"]
    model = trained(algo, name, seen, options)
    word = f"sb3:{save_sb3(model, tmp_path / 'mine.zip')}"
    played = [by_hand(model, name, seed, **SMALL[name], **seen) for seed in (5, 6)]
    policy = policies.make(word, allow_pickle=True)
    runs = []
    for env, _ in played:
        runs.append(env.simulator.twin())
        runs[-1].reset(env.simulator.workload, int(env.simulator.state.seed))
    while not all(run.ended for run in runs):
        for run in runs:
            if not run.ended:
                run.apply(run.ask(policy))
    for run, (_, expected) in zip(runs, played, strict=True):
        assert_same(run.metrics(), expected)


def test_a_zip_alone_plays_in_the_environment_that_it_is_asked_to(sharing):
    path, _ = sharing
    word = f"sb3:{path.with_name('bare.zip')},slots=4,running_slots=4,partners=1"
    assert len(policies.make(word, allow_pickle=True).environments) == 6
    with pytest.raises(InputError, match=r"no environment is given for it to play in"):
        policies.make(word, allow_pickle=True).decide(type("View", (), {"simulator": None}))


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("", "expected sb3:PATH"),
        ("nothing.zip", "no such file"),
        ("{bare}", r"trained on observations \(\d+,\) and actions \d+; Sharing with .* has .*slots=8"),
        ("{bare},slots=many", "slots = 'many': expected a whole number"),
        ("{bare},slotz=4", "unknown parameter 'slotz'; did you mean 'slots'"),
        ("{bare},algo=best", "unknown algorithm 'best'"),
        ("{bare},algo=dqn", "cannot be opened as an agent of dqn"),
        ("{bare},mode=best", "mode of an agent"),
        ("{bare},normalise=nothing.pkl", "normalise = nothing.pkl: there is no such file"),
        ("{bare},normalise=bare.zip", "not what VecNormalize.save writes"),
        ("{bare},environment=Sharin", "did you mean 'Sharing'"),
    ],
)
def test_mistakes_are_one_sentence(sharing, rest, words):
    word = "sb3:" + rest.format(bare=sharing[0].with_name("bare.zip"))
    with pytest.raises(InputError, match=words) as refusal:
        policies.make(word, allow_pickle=True).playing_in("clustergym/Sharing-v0")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("others", ["another key", "another shape", "one number", "none"])
def test_statistics_of_other_observations_are_refused(sharing, others):
    """They would be left out, or stretched, without a word."""
    _, model = sharing
    statistics = pickle.loads(pickle.dumps(model.get_vec_normalize_env().obs_rms))
    key = next(iter(statistics)) if isinstance(statistics, dict) else ""
    mean = statistics[key].mean if key else statistics.mean
    found = {"another key": {"x": mean}, "another shape": {key: mean[:-1]}, "one number": {key: mean[:1]}, "none": {}}
    normaliser = Normaliser(found[others], found[others], 1e-8, 10.0)
    with pytest.raises(InputError, match=r"normalise: mean of observations .*; its observations are"):
        Sb3Policy(
            "mine", "ppo", model.policy, "clustergym/Sharing-v0", SMALL["Sharing"] | ONE_NUMBER, normaliser=normaliser
        )


def test_files_that_hold_pickles_are_opened_only_where_that_is_allowed(sharing):
    with pytest.raises(InputError, match="--trust-sb3-zip"):
        policies.make(f"sb3:{sharing[0]}")


def test_a_file_beside_it_names_no_code_without_trust(sharing, tmp_path):
    path = tmp_path / "mine.zip"
    path.write_bytes(sharing[0].read_bytes())
    description = {"schema_version": 1, "environment": "clustergym/TimeShift-v0"}
    path.with_suffix(".json").write_text(json.dumps({**description, "env_kwargs": {"scheduler": "py:a.py:A"}}))
    with pytest.raises(InputError, match=r"py:a\.py:A.*--trust-py"):
        policies.make(f"sb3:{path}", allow_pickle=True)
    path.with_suffix(".json").write_text(json.dumps({**description, "env_kwargs": {"os": "system"}}))
    with pytest.raises(InputError, match="key of env_kwargs"):
        policies.make(f"sb3:{path}", allow_pickle=True)


def test_what_cannot_be_played_is_not_saved(tmp_path):
    kwargs = {**SMALL["Delay"], **ONE_NUMBER}

    def scaled():
        env = gymnasium.make("clustergym/Delay-v0", **kwargs)
        return gymnasium.wrappers.TransformObservation(env, lambda seen: 2 * seen, env.observation_space)

    with pytest.raises(InputError, match="TransformObservation, which changes what it sees"):
        save_sb3(model_of("ppo", DummyVecEnv([scaled]), **FEW), tmp_path / "a.zip")
    model = model_of("ppo", gymnasium.make("CartPole-v1"), **FEW)
    with pytest.raises(InputError, match="does not say how it was made"):
        save_sb3(model, tmp_path / "a.zip")
    with pytest.raises(InputError, match="it was trained on observations"):
        save_sb3(model, tmp_path / "a.zip", "Delay", slots=5)
    assert not (tmp_path / "a.zip").exists()


ACTING = """
import numpy as np


class First:
    \"\"\"The first legal candidate but waiting, where there is one.\"\"\"

    env_kwargs = {"observation": "flat", "action": "discrete", "slots": 4, "running_slots": 4, "partners": 1}

    def __init__(self, last: bool = False) -> None:
        self.last = last

    def act(self, observation, mask):
        return np.flatnonzero(mask)[-1 if self.last else min(1, mask.sum() - 1)]
"""


@pytest.fixture
def acting(tmp_path, monkeypatch):
    """The folder, made the present one, of a file with an agent of no library."""
    (tmp_path / "mine.py").write_text(ACTING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTERGYM_TRUST_SB3_ZIP", "0")  # what a command in this process allows ends with the test
    return tmp_path


def test_both_stand_in_one_table_with_the_built_in_ones_by_one_command(sharing, acting, capsys):
    """Two processes and one give the same, also where they were there before; a second time all is there already."""
    copied = acting / "agent.zip"
    for suffix in (".zip", ".json"):
        copied.with_suffix(suffix).write_bytes(sharing[0].with_suffix(suffix).read_bytes())
    words = "sjf sb3:agent.zip py:mine.py:First,last=true"
    play = ["evaluate", "Sharing", "--policies", words, "--workload", SMALL["Sharing"]["workload"], "--seeds", "0-1"]
    play += ["--trust-sb3-zip", "--json", "--quiet", "--set", "horizon_s=200000"]
    before = [word for word in play if word != "--trust-sb3-zip"]
    before[before.index(words)] = "sjf"
    assert cli.run([*before, "-j", "2"]) == 0
    capsys.readouterr()
    found = []
    for more in (["-j", "1"], ["-j", "2", "--logdir", "runs"], ["--logdir", "runs"]):
        assert cli.run([*play, *more]) == 0
        found.append([(row["policy"], row["seed"], row["metrics"]) for row in json.loads(capsys.readouterr().out)])
    assert found[0] == found[1] == found[2]
    assert [row[:2] for row in found[0]] == [(word, seed) for word in words.split() for seed in (0, 1)]


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    for name in ("sb3_vec_env", "save_sb3", "load_agent"):
        with pytest.raises(MissingExtra, match=r'needs stable-baselines3; .*"clustergym\[agents\]"'):
            getattr(clustergym.agents, name)
    assert Path(clustergym.agents.__file__).is_file()
