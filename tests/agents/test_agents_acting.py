"""Agents of any library: an object with act(observation, mask), by its word and as an object."""

from __future__ import annotations

import pickle

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.playing.evaluation import evaluate, play
from clustergym.simulator.base.errors import InputError

WORDS = {
    "topology": "dally:racks=1,machines=2",
    "workload": "poisson:jobs=8,backlog=4",
    "network": "penalty:default=1/1.2/1.5",
}
MINE = """
import numpy as np


class Mine:
    env_kwargs = {"slots": 4, "running_slots": 2, "preemption": False, "observation": "flat", "action": "discrete"}

    def act(self, observation, mask):
        legal = np.flatnonzero(mask)
        return int(legal[int(1000 * observation.sum()) % len(legal)])


class Broken(Mine):
    def act(self, observation, mask):
        return [1, 2, 3]


class One(Mine):
    def act(self, observation):
        return 0


class Misspelt(Mine):
    env_kwargs = {"slot": 4}


class Home(Mine):
    environments = ("Sharing",)


class Nowhere(Mine):
    environments = ("Sharin",)


class Crashing(Mine):
    def act(self, observation, mask):
        return {}["nothing"]


class Counting(Mine):
    def begin(self, seed):
        self.asked = 0

    def act(self, observation, mask):
        assert observation.shape == (observation.size,) and mask.dtype == bool
        self.asked += 1
        return np.flatnonzero(mask)[-1] if self.asked == 1 else super().act(observation, mask)
"""


@pytest.fixture
def file(tmp_path):
    """Some agents."""
    (tmp_path / "agents_of_mine.py").write_text(MINE)
    return tmp_path / "agents_of_mine.py"


def test_a_word_plays_what_its_act_plays_by_steps(file):
    """In an environment made with its env_kwargs, on the same workload: every metric to the bit."""
    space = {}
    exec(MINE, space)
    mine = space["Mine"]()
    env = gymnasium.make("clustergym/Delay-v0", **WORDS, **mine.env_kwargs)
    observation, info = env.reset(seed=5)
    while "metrics" not in info:
        observation, _, _, _, info = env.step(mine.act(observation, env.unwrapped.action_masks()))
    seed = int(env.unwrapped.simulator.state.seed)
    setting = described_setting("Delay", **WORDS)
    for player in (f"py:{file}:Mine", mine):
        found = play(setting, player, seed).metrics
        assert {key for key in found if not np.array_equal(found[key], info["metrics"][key], equal_nan=True)} == set()


def test_a_table_has_it_beside_others_also_in_other_processes(file):
    setting = described_setting("Delay", **WORDS)
    words = ["greedy", f"py:{file}:Mine"]
    one, two = (list(evaluate(setting, words, range(2), processes=n)) for n in (1, 2))
    assert [(run.policy, run.seed, run.metrics["jct_mean"]) for run in one] == [
        (run.policy, run.seed, run.metrics["jct_mean"]) for run in two
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Broken", r"expected a whole number, the candidate"),
        ("One", "act is to take two arguments"),
        ("Misspelt", "env_kwargs: unknown parameter 'slot'; did you mean 'slots'"),
        ("Nowhere", "did you mean 'clustergym/Sharing-v0'"),
        ("Crashing", r"seed 0: KeyError: 'nothing' \(.*agents_of_mine\.py, line 37\)"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(file, name, sentence):
    with pytest.raises(InputError, match=sentence) as refusal:
        play(described_setting("Delay", **WORDS), f"py:{file}:{name}", 0)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).count("agents_of_mine.py:") == 1


def test_it_says_where_it_plays(file):
    assert policies.make(f"py:{file}:Home").environments == ("clustergym/Sharing-v0",)


def test_it_hears_when_a_run_begins_and_copies_play_alike(file):
    """Two runs in turn by one policy, and one by a copy as another process gets it, are the same three times."""
    setting = described_setting("Delay", **WORDS)
    policy = policies.make_for(f"py:{file}:Counting", setting.environment)
    assert policy.files == (file,)
    players = (policy, policy, pickle.loads(pickle.dumps(policy)))
    first, second, copied = (play(setting, player, 0).metrics for player in players)
    assert {key for key in first if not np.array_equal(first[key], second[key], equal_nan=True)} == set()
    assert {key for key in first if not np.array_equal(first[key], copied[key], equal_nan=True)} == set()
