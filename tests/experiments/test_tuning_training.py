"""Tuning a training: trials are trainings of their own, go on after a kill, and end early where others were better."""

from __future__ import annotations

import json

import pytest
import yaml

pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")
optuna = pytest.importorskip("optuna", reason="needs the extra tune")

from clustergym.agents.training.trainer import Training  # noqa: E402
from clustergym.experiments.cli import run  # noqa: E402
from clustergym.experiments.tuning.space import parse, read_space  # noqa: E402
from clustergym.experiments.tuning.subjects import TrainingParameters  # noqa: E402
from clustergym.experiments.tuning.trial_search import NAME, Search  # noqa: E402

SCENARIO = {
    "name": "own",
    "topology": "dally:racks=1,machines=2",
    "network": "none",
    "workloads": ["poisson:jobs=12,backlog=6,load=1.2,median_s=600"],
}
TINY = {
    "training": [SCENARIO],
    "validation": [SCENARIO],
    "validation_seeds": 2,
    "num_envs": 8,
    "n_steps": 16,
    "batch_size": 64,
    "n_epochs": 1,
    "timesteps": 256,
    "evaluations": 2,
    "variance": "reference",
    "imitate": None,
}
SPACE = "learning_rate: {low: 1e-4, high: 1e-2, log: true}\nnet_options.width: [16, 32]\nn_epochs: {low: 1, high: 2}\n"


@pytest.fixture
def study(tmp_path) -> tuple[str, ...]:
    """The words of a tiny study, but for its folder."""
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    (tmp_path / "space.yaml").write_text(SPACE)
    files = ("--config", str(tmp_path / "tiny.yaml"), "--space", str(tmp_path / "space.yaml"))
    return ("tune", "Delay", "--train", *files, "--judge-seeds", "0-4", "--quiet", "--json")


def played(capsys, *arguments: object) -> dict:
    assert run([str(argument) for argument in arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_study_of_trainings_goes_on_in_the_middle_of_a_trial(capsys, tmp_path, study, monkeypatch):
    """The second trial is killed after its second evaluation: it goes on from its checkpoint.

    Trials, their scores and the weights of their agents are those of a study that was not killed.
    """
    whole = played(capsys, *study, "--trials", 2, "--logdir", tmp_path / "whole")
    assert [row["state"] for row in whole["trials"]] == ["played"] * 2
    assert whole["trials"][1]["net_options.width"] in ("16", "32")

    checkpoint, resumed = Training.checkpoint, []

    def killed(self):
        checkpoint(self)
        if self.folder.name == "0001" and self.step >= 128:
            raise KeyboardInterrupt

    monkeypatch.setattr(Training, "checkpoint", killed)
    parts = (*study, "--trials", 2, "--logdir", tmp_path / "parts")
    assert run(list(map(str, parts))) == 130
    capsys.readouterr()
    monkeypatch.setattr(Training, "checkpoint", checkpoint)
    begun = Training.run
    monkeypatch.setattr(Training, "run", lambda self, resume=False: resumed.append(resume) or begun(self, resume))
    after = played(capsys, *parts)
    assert resumed == [True]
    assert [row["value"] for row in after["trials"]] == [row["value"] for row in whole["trials"]]
    for name in ("0000", "0001"):
        here, there = (
            next((tmp_path / one / "trials" / name / "best").glob("*.safetensors")) for one in ("whole", "parts")
        )
        assert here.read_bytes() == there.read_bytes()


@pytest.mark.slow
def test_trainings_at_the_same_time_are_judged_and_the_best_values_are_kept(capsys, tmp_path, study):
    status = run([*study[:-1], "--trials", "3", "--logdir", str(tmp_path / "logs"), "--seed", "3", "-j", "2"])
    out = capsys.readouterr().out
    assert status == 0 and "score: mean JCT on the validation workloads / greedy's" in out
    if "own: jct_mean is" in out:
        found = yaml.safe_load((tmp_path / "logs" / "best.yaml").read_text())
        assert found["environment"] == "clustergym/Delay-v0" and found["timesteps"] == 256
        assert f"clustergym train Delay --config {tmp_path / 'logs' / 'best.yaml'}" in out
        assert "--workload poisson:jobs=12" in out
    assert [line.partition(",")[0] for line in (tmp_path / "logs" / "trials.csv").read_text().splitlines()[1:]] == list(
        "012"
    )


def subject_in(folder) -> TrainingParameters:
    from clustergym.agents.training.config import default_config, make_config

    config = make_config(default_config("Delay") | TINY, "test")
    return TrainingParameters(config.model_dump(mode="json"), folder)


def test_a_trial_behind_half_of_the_others_at_the_same_evaluation_is_stopped(tmp_path, monkeypatch):
    """Five trials score 1, 2, 3 at their three evaluations times 1.0; the sixth has 5 at its second and is stopped."""
    from clustergym.experiments.tuning import subjects

    class Fake:
        def __init__(self, config, folder, listener, command):
            self.log, self.factor = listener, 5.0 if folder.name == "0006" else 1.0

        def run(self, resume):
            for number in range(4):
                evaluated = type("E", (), {"step": number * 128, "score": self.factor * (4 - number)})
                subjects._Log.evaluated(self.log, evaluated, None)
            return {"score": self.factor, "reference": "greedy", "ratios": {}}

    monkeypatch.setattr("clustergym.agents.training.trainer.Training", Fake)
    monkeypatch.setattr(subjects.TrainingLog, "evaluated", lambda *arguments: None)
    subject = subject_in(tmp_path)
    space = parse({"learning_rate": {"low": "1e-4", "high": "1e-2", "log": "true"}}, "own", subject)
    search = Search(subject, space, None)
    search.begin()
    trials = list(search.run(range(7), lambda done: None))
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 6 + ["PRUNED"]
    assert trials[-1].user_attrs["why"] == "behind half of the others at step 128"
    assert trials[-1].value == 15.0


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("learning_rat: [0.1, 0.2]", "did you mean 'learning_rate'?"),
        ("reference: [fifo, las]", "unknown key of the configuration: 'reference'"),
        ("env: [1, 2]", "env: it has keys of its own"),
        ("gamma.x: [1, 2]", "gamma.x: gamma has no keys"),
        ("gamma: {low: 0.9, high: 1.5}", "gamma: 1.5: configuration: gamma = 1.5"),
        ("env.slotz: [1, 2]", "did you mean 'slots'?"),
        ("algo: [ppo, dqn]", "algo: dqn: configuration: algo = 'dqn'"),
        ("algo: {low: 1, high: 2}", "algo: it takes words"),
        ("n_epochs: {low: 0.5, high: 2}", "n_epochs: low = '0.5': expected a whole number"),
    ],
)
def test_a_bad_space_is_told_before_anything_is_trained(capsys, tmp_path, study, space, message):
    (tmp_path / "space.yaml").write_text(space)
    assert run([*study, "--logdir", str(tmp_path / "logs")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()


def test_a_study_of_trainings_needs_a_folder(capsys, study):
    assert run(list(study)) == 2
    assert "--train makes a folder a trial; give --logdir DIR" in capsys.readouterr().err


def test_the_shipped_space_fits_every_training(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingParameters, "check", TrainingParameters.config_of)  # which builds no environment
    from clustergym.agents.training.config import FOLDER, make_config, read_yaml

    for path in FOLDER.glob("*.yaml"):
        config = make_config(read_yaml(path), path.stem)
        subject = TrainingParameters(config.model_dump(mode="json"), tmp_path)
        said, source = read_space("training")
        assert parse({key: said[key] for key in said if key != "net_options.width"}, source, subject)


def test_the_name_of_the_study_is_known(tmp_path):
    Search(subject_in(tmp_path), (), tmp_path)
    assert [one.study_name for one in optuna.get_all_study_summaries(f"sqlite:///{tmp_path / 'study.db'}")] == [NAME]
