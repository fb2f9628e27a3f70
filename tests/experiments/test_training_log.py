"""What a training logs: heuristics under every tag of a scenario that the agent has, and nothing of no critic."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("tensorboard")
pytest.importorskip("torch")

from clustergym.agents.training.trainer import Evaluated
from clustergym.agents.training.validation import Played
from clustergym.experiments.learning import training
from clustergym.experiments.learning.training import TrainingLog
from clustergym.experiments.storing.event_file import scalars_of
from clustergym.tests.support.tensorboard_rows import parameters_of

SCENARIOS = ("congested", "low-load")
METRICS = {"jct_p99": 9.0, "makespan": 20.0, "queueing_delay_mean": 1.0, "gpu_utilisation": 0.5, "failures": 0.0}


def played(jct_s: float, preemptions: float = 0.0) -> list[Played]:
    """Two seeds of two scenarios; the second takes twice as long."""
    return [
        Played(
            name,
            seed,
            {"jct_mean": factor * jct_s, "preemptions": preemptions, "jobs_finished": 3.0, **METRICS},
            factor * jct_s,
        )
        for factor, name in enumerate(SCENARIOS, 1)
        for seed in (0, 1)
    ]


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """A training without a critic that was to end after 10 steps and ended after 12; greedy is the reference."""
    scenarios = [
        SimpleNamespace(name=name, workloads=("poisson", name), topology="flat", network="none") for name in SCENARIOS
    ]
    config = SimpleNamespace(
        **{"variance": "group", "reference": "greedy", "validation": scenarios, "timesteps": 10, "algo": "ppo"},
        model_dump=lambda **more: {"gamma": 1.0},
    )
    monkeypatch.setattr(training, "setting_of", lambda config, scenario: None)

    def play(setting, word, seed, record=False):
        return training.Run(word, seed, played(4.0)[0].metrics, 3, training.np.array([4.0, 4.0, 4.0]))

    monkeypatch.setattr(training, "play", play)
    log = TrainingLog(tmp_path, config, None, lambda done: None, quiet=True)
    levels = {"greedy": played(4.0), "fifo": played(8.0), "las": played(6.0, preemptions=5.0)}
    log.heuristics(SimpleNamespace(play_heuristic=levels.__getitem__), ["fifo", "las"])
    ratios = {"argmax": {"congested": 1.0, "low-load": 0.5}, "sampled": {"congested": 2.0, "low-load": 2.0}}
    log.evaluated(Evaluated(12, {"argmax": played(4.0)}, ratios, "argmax", 0.75, True), Path("best"))
    log.scalars(12, {"train/loss": 1.0, "train/explained_variance": 0.0, "train/value_loss": 2.0})
    log.finished({"reference": "greedy", "ratios": ratios["argmax"]})
    return tmp_path


def test_heuristics_stand_under_every_tag_of_a_scenario_that_the_agent_has(logged):
    agent, fifo, las = (scalars_of(logged / name) for name in ("agent", "fifo", "las"))
    own = {name for name in agent if name.startswith(("train/", "mode/", "outcome/"))}
    assert set(agent) - own == set(fifo) == set(las)
    assert {"scenario/low-load/jct/mean_s", "against_greedy/low-load", "against_greedy/mean"} <= set(fifo)
    assert not (logged / "greedy").exists(), "the reference is only asked for, unless it is among the heuristics"


def test_rows_of_parameters_say_what_was_played_on(logged):
    """Of two scenarios each word once."""
    words = {"workload": f"poisson | {' | '.join(SCENARIOS)}", "topology": "flat", "network": "none"}
    for name in ("agent", "fifo"):
        assert parameters_of(logged / name).items() >= {f"about/{key}": word for key, word in words.items()}.items()


def test_ratios_of_heuristics_are_to_the_reference(logged):
    """fifo 8 and 16 s against greedy's 4 and 8: twice as long in both; the agent 1 and 1/2 of it, 3/4 in the mean."""
    fifo, agent = scalars_of(logged / "fifo"), scalars_of(logged / "agent")
    assert {fifo[f"against_greedy/{name}"][0][1] for name in (*SCENARIOS, "mean")} == {2.0}
    assert agent["against_greedy/mean"] == [(12, 0.75)] == agent["outcome/against_greedy/mean"]
    assert agent["mode/sampled_against_greedy"] == [(12, 2.0)]
    assert fifo["scenario/low-load/jct/mean_s"][0][1] == 16.0


def test_what_says_nothing_is_not_logged(logged):
    """Nothing fails and all jobs finish; las alone stops some, so the agent's 0 is worth a line; there is no critic."""
    agent = scalars_of(logged / "agent")
    assert agent["more/preemptions"] == [(12, 0.0)]
    assert not {"more/failures", "more/jobs_finished", "train/explained_variance", "train/value_loss"} & set(agent)


def test_level_lines_end_where_the_training_did(logged):
    assert [step for step, _ in scalars_of(logged / "fifo")["jct/mean_s"]] == [0, 10, 12]


def test_tensorboard_shows_an_agent_beside_four_heuristics():
    """The reference, fifo and the best two of the others, in the order given: five runs for seven colours."""
    from clustergym.experiments.learning.training import lines_of

    means = {"random": 3.0, "greedy": 1.0, "fifo": 2.5, "las": 1.4, "sjf": 1.2, "dally": 1.3}
    assert lines_of(means, "greedy") == ["greedy", "fifo", "sjf", "dally"]
    assert lines_of(means, "random") == ["random", "greedy", "fifo", "sjf"]
    assert lines_of({"mast": 1.0, "federated": 2.0}, "mast") == ["mast", "federated"]
