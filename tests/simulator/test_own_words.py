"""A user's own workload generator, topology and network: by a word, as an object, in commands and environments."""

import json
import sys

import gymnasium
import numpy as np
import pytest

from clustergym import Topology, Workload, open_workload
from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.settings.evaluation_setting import Setting, workload_of
from clustergym.experiments.storing import store
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.engine.simulator import Simulator

MINE = """
import numpy as np
from clustergym import Topology, Workload


def bursts(rng, jobs=8, cluster_gpus=8):
    gpus = rng.integers(1, cluster_gpus // 4 + 1, jobs)
    return Workload.from_arrays("bursts", np.sort(rng.random(jobs)), gpus, 60.0 + rng.random(jobs))


def ragged(rng):
    return {"jobs": 3}


def raising(rng):
    return 1 / 0


def racks(machines=2):
    return Topology.load(f"dally:racks=1,machines={machines}")


class Slow:
    name = "slow"

    def __init__(self, factor=1.5, duration="isolated"):
        self.factor, self.duration = factor, duration

    def describe(self):
        return f"slow:factor={self.factor:g},duration={self.duration}"

    def tier_factors(self, workload, topology):
        return np.zeros(len(workload.gpus), np.int64), np.array([[1.0, 1.0, self.factor, self.factor]])
"""


def bursts(rng, jobs=8, cluster_gpus=8):
    """As that of the file."""
    gpus = rng.integers(1, cluster_gpus // 4 + 1, jobs)
    return Workload.from_arrays("bursts", np.sort(rng.random(jobs)), gpus, 60.0 + rng.random(jobs))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("arrival_s", "gpus", "duration_s"))


def test_a_generator_is_handed_random_numbers_of_the_seed(folder):
    drawn = open_workload("py:mine.py:bursts,jobs=5", seed=3)
    assert same(drawn, bursts(np.random.default_rng(3), 5))
    assert same(drawn, open_workload(lambda rng: bursts(rng, jobs=5), seed=3))
    assert not same(drawn, open_workload("py:mine.py:bursts,jobs=5", seed=4))


def test_a_generator_that_asks_for_it_is_told_how_large_the_cluster_is(folder):
    assert same(
        open_workload("py:mine.py:bursts", seed=1, cluster_gpus=64), bursts(np.random.default_rng(1), cluster_gpus=64)
    )
    own = open_workload("py:mine.py:bursts,cluster_gpus=4", seed=1, cluster_gpus=64)
    assert same(own, bursts(np.random.default_rng(1), cluster_gpus=4))


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("py:mine.py:ragged", "it gave a dict; expected a Workload"),
        ("py:mine.py:raising", r"ZeroDivisionError: division by zero \(mine.py, line 16\)"),
        ("py:mine.py:burst", "did you mean 'bursts'"),
        ("py:mine.py:bursts,jobs=few", "jobs = 'few': expected a"),
    ],
)
def test_a_generator_that_gives_no_workload_is_one_sentence(folder, word, sentence):
    with pytest.raises(InputError, match=sentence):
        open_workload(word, seed=0)
    with pytest.raises(InputError, match="it is for files"):
        open_workload("py:mine.py:bursts", format="philly")


def test_a_topology_comes_from_a_function(folder):
    assert Topology.load("py:mine.py:racks,machines=3").num_gpus == 24
    assert Topology.load(lambda: Topology.load("flat:machines=2")).num_machines == 2
    with pytest.raises(InputError, match="it gave a Workload; expected a Topology"):
        Topology.load(lambda: open_workload("poisson:jobs=2"))


def test_a_network_comes_from_a_class_and_learns_what_durations_mean(folder):
    found = load_network("py:mine.py:Slow,factor=2", "compute")
    assert found.describe() == "slow:factor=2,duration=compute"
    assert load_network(type(found)).describe() == "slow:factor=1.5,duration=isolated"
    with pytest.raises(InputError, match="it gave a Topology; expected an object with name, describe"):
        load_network("py:mine.py:racks")


def test_all_of_them_play_in_one_command_and_edits_are_noticed(folder, capsys):
    words = ["evaluate", "Delay", "--policies", "fifo", "--seeds", "0-1", "--logdir", "out"]
    words += ["--workload", "py:mine.py:bursts", "--topology", "py:mine.py:racks", "--network", "py:mine.py:Slow"]
    assert run([*words, "-j", "2", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "py:mine.py:racks (16 GPUs, 2 machines, 1 rack)" in out and "slow:factor=1.5" in out
    assert "py:mine.py:bursts (8 jobs; drawn anew for each seed" in out
    (folder / "mine.py").write_text(MINE + "# more\n")
    assert run(words) == 0
    assert "the workload, topology and network have changed" in capsys.readouterr().err


def test_a_setting_takes_the_functions_themselves(folder):
    setting = Setting.of("clustergym/Delay-v0", Topology.load("dally:racks=1,machines=2"), bursts, load_network("none"))
    words = Setting.of("clustergym/Delay-v0", "dally:racks=1,machines=2", "py:mine.py:bursts", "none")
    assert setting.is_drawn and words.is_drawn
    assert same(workload_of(setting, 1), workload_of(words, 1))
    runs = [evaluate(one, ["fifo"], [0, 1]) for one in (setting, words)]
    assert [run.metrics for run in runs[0]] == [run.metrics for run in runs[1]]
    assert [run.metrics for run in evaluate(setting, ["fifo"], [0, 1], processes=2)] == [run.metrics for run in runs[0]]
    kept = evaluate(setting, ["fifo"], [0], store=store.open_store(folder / "out", setting, ["fifo"]))
    found = store.read(folder / "out")
    assert found.runs[0].metrics == kept[0].metrics
    assert found.setting.workload.endswith(":bursts")


def test_environments_take_them_too(folder):
    made = []
    for workload in ("py:mine.py:bursts", bursts):
        env = gymnasium.make(
            "clustergym/Delay-v0", workload=workload, topology="py:mine.py:racks", network="py:mine.py:Slow,factor=3"
        )
        made.append(env.reset(seed=5)[0])
    assert all(np.array_equal(made[0][key], made[1][key]) for key in made[0])


def test_the_workload_commands_draw_and_show_them(folder, capsys):
    assert run(["workload", "generate", "py:mine.py:bursts", "--jobs", "3", "--seed", "5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["gpus"] for row in rows] == bursts(np.random.default_rng(5), 3).gpus.tolist()
    assert run(["workload", "inspect", "py:mine.py:bursts,jobs=9", "--topology", "py:mine.py:racks"]) == 0
    assert "offered load" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("profile", "factors", "sentence"),
    [
        ([0, 0], [[1.0, 1.0, float("nan"), 1.0]], "factors from nan to nan; expected finite numbers > 0"),
        ([0, 0], [[1.0, 1.0, -1.0, 1.0]], "factors from -1.0 to 1.0; expected finite numbers > 0"),
        ([0], [[1.0, 1.0, 1.0, 1.0]], r"arrays of shapes \(1,\) and \(1, 4\); expected \(2,\) and \(P, 4\)"),
        ([0, 0], [[1.0, 1.0]], r"arrays of shapes \(2,\) and \(1, 2\)"),
        ([0, 1], [[1.0, 1.0, 1.0, 1.0]], "profiles from 0 to 1; there are 1"),
    ],
)
def test_a_network_that_tells_no_slowdowns_is_one_sentence(profile, factors, sentence):
    class Odd:
        name = "odd"
        describe = lambda self: "odd"  # noqa: E731
        tier_factors = lambda self, workload, topology: (np.array(profile), np.array(factors))  # noqa: E731

    simulator = Simulator("dally:racks=1", Odd())
    with pytest.raises(InputError, match=f"network 'odd': tier_factors gave {sentence}"):
        simulator.reset(Workload.from_arrays("two", [0.0, 1.0], [1, 1], [5.0, 5.0]))
