"""The examples of docs/examples run as they stand."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from types import ModuleType

import pytest

from clustergym.tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_cleanrl_ppo_plays_whole_episodes():
    pytest.importorskip("torch")
    curve = example("cleanrl_ppo").train(updates=3, num_envs=8, steps=128)
    assert len(curve) == 3 and all(-20.0 < mean < 1.0 for mean in curve if not math.isnan(mean))
    assert not math.isnan(curve[-1])


def test_cleanrl_ppo_is_deterministic():
    pytest.importorskip("torch")
    module = example("cleanrl_ppo")
    assert module.train(updates=2, num_envs=4, steps=64) == pytest.approx(
        module.train(updates=2, num_envs=4, steps=64), abs=0.0, nan_ok=True
    )


def test_rollout_search_is_never_worse_than_its_base_policy(capsys):
    ratios = example("rollout_search").main(workloads=2, jobs=6)
    assert max(ratios) <= 1.0
    assert "better on" in capsys.readouterr().out.splitlines()[-1]


def test_a_composed_environment_is_played_by_a_heuristic_a_rule_and_an_agent():
    """The environment of docs/tutorials/compose.md, registered in a process of its own."""
    pytest.importorskip("sb3_contrib")
    words = [sys.executable, "-c", "import spread_env; spread_env.main(decisions=512)"]
    done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert "  machine: 2 candidates of a row of queue" in lines, done.stderr
    means = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(("shortest", "fifo", "agent"))]
    assert len(means) == 3 and 0.0 < means[0] < means[1]
