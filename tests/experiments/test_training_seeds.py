"""Trainings over seeds: in pieces, elsewhere, with the weights of trainings in one go."""

from __future__ import annotations

import json

import pytest
import yaml

pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from clustergym.experiments.cli import run
from clustergym.experiments.learning.training_seeds import progress_of, train_piece, train_seeds

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
    "timesteps": 384,
    "evaluations": 2,
    "variance": "reference",
    "imitate": None,
}


class Here:
    """An executor that works here, and counts."""

    count, worked = 1, 0

    def each(self, work, items):
        """See `Executor`."""
        for item in items:
            self.worked += 1
            yield work(item)


@pytest.fixture
def tiny(tmp_path) -> str:
    """The path of a tiny configuration."""
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return str(tmp_path / "tiny.yaml")


def test_a_training_in_pieces_ends_with_the_weights_of_one_in_one_go(tmp_path, tiny, capsys):
    """A rollout is 8 x 16 = 128 decisions: 384 of them in pieces of 0 s are three pieces or more."""
    from clustergym.experiments.commands.train import configured

    config = configured("Delay", tmp_path / "tiny.yaml", {"seed": 3}, {}, ())
    executor = Here()
    best = train_seeds({3: config}, tmp_path / "pieces", executor, piece_s=0.0)
    assert executor.worked >= 3
    assert run(["train", "Delay", "--config", tiny, "--seed", "3", "--logdir", str(tmp_path / "whole"), "-q"]) == 0
    capsys.readouterr()
    ours, whole = tmp_path / "pieces" / "seed=3", tmp_path / "whole"
    for name in ("best/weights.safetensors", "checkpoint/tensors.safetensors"):
        assert (ours / name).read_bytes() == (whole / name).read_bytes(), name
    assert progress_of(ours, config).best == best[3]


def test_the_same_command_goes_on_where_it_was_stopped(tmp_path, tiny, capsys, monkeypatch):
    """Ctrl-C after the first of two trainings: the second is trained by the next command, the first is not again."""
    words = ["train", "Delay", "--config", tiny, "--seeds", "1-2", "--logdir", str(tmp_path / "both"), "--json", "-q"]
    trained = []

    def stopped(piece):
        if trained == [1]:
            trained.append(0)
            raise KeyboardInterrupt
        trained.append(piece.seed)
        return train_piece(piece)

    monkeypatch.setattr(
        "clustergym.experiments.playing.executors.Processes.each", lambda self, work, items: map(work, items)
    )
    monkeypatch.setattr("clustergym.experiments.learning.training_seeds.train_piece", stopped)
    assert run(words) == 130
    assert f"is in {tmp_path / 'both'}. Go on with: clustergym train Delay" in capsys.readouterr().err
    assert run(words) == 0
    assert trained == [1, 0, 2]
    assert [row["seed"] for row in json.loads(capsys.readouterr().out)] == [1, 2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-j", "2"], "--jobs goes with --seeds"),
        (["--ray", "auto"], "--ray goes with --seeds"),
        (["--seeds", "0-1", "--seed", "3"], "--seed goes without --seeds"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path, tiny, capsys, words, said):
    assert run(["train", "Delay", "--config", tiny, "--logdir", str(tmp_path / "x"), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_training_does_not_go_on_after_an_edit_of_its_trace(tmp_path, tiny, capsys, monkeypatch):
    """Neither one alone nor one of several, and one that has ended is not told as one of the other trace."""
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "t.csv"
    rows = "".join(f"{job},{100 * job},8,{300 + 100 * job}\n" for job in range(6))
    trace.write_text(f"job_id,arrival_s,gpus,duration_s\n{rows}")
    begin = ["train", "Delay", "--config", tiny, "--workload", "t.csv", "--set", "timesteps=128", "--quiet"]
    one, each = [*begin, "--logdir", "one"], [*begin, "--logdir", "each", "--seeds", "1"]
    assert run(one) == run(each) == 0
    trace.write_text(trace.read_text().replace(",8,300", ",8,900"))
    capsys.readouterr()
    for again in (["train", "Delay", "--logdir", "one", "--resume", "--quiet"], each):
        assert run(again) == 1
        said = capsys.readouterr().err
        assert "what the training reads has changed since it began (workload 1 of training scenario own," in said
        assert said.count("\n") == 1
