"""Learners of other libraries train on the environments by the commands of docs/tutorials/clients.md, as they are."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from packaging.requirements import Requirement

import clustergym
from clustergym.tests.support.docs_blocks import ROOT, blocks

PAGE = ROOT / "docs" / "tutorials" / "clients.md"
FOLDER = ROOT / "docs" / "examples" / "clients"
GLUE_LINES = 10
NEEDS = {  # by a word of the command
    "sb3.py": ("stable-baselines3",),
    "contrib.py": ("sb3-contrib", "stable-baselines3"),
    "maskable_ppo_delay.py": ("sb3-contrib", "stable-baselines3"),
    "metrics_ppo.py": ("sb3-contrib", "stable-baselines3", "tensorboard"),
    "rl_zoo3": ("rl_zoo3", "stable-baselines3"),
    "cleanrl": ("tyro", "tensorboard"),
    "torchrl_dqn.py": ("torchrl", "tensordict"),
    "tianshou_dqn.py": ("tianshou>=2",),
    "rllib_ppo.py": ("ray",),
}


def lines() -> list[str]:
    """What the page tells to type, but for what fetches, sets and shows."""
    texts = [each.text for each in blocks(PAGE) if each.language == "bash"]
    others = ("git ", "export ", "tensorboard ")
    return [line for text in texts for line in text.splitlines() if not line.startswith(others)]


def trainings() -> list[str]:
    """The commands that train with the library's own loop for some 2,000 steps."""
    return [line for line in lines() if "enjoy" not in line and "taskset" not in line]


def short(line: str) -> str:
    """`sb3 DQN`, of its command."""
    return re.sub(r".*?(\w+)(\.py|\.train)( [A-Z]\w+)?.*", r"\1\3", line)


def versions(line: str) -> str:
    """Of what the command needs; skips the test where it is not installed."""
    needed = next(names for word, names in NEEDS.items() if word in line)
    found = []
    for wanted in map(Requirement, (*needed, "gymnasium", "torch")):
        try:
            version = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        if version is None or version not in wanted.specifier:
            pytest.skip(f"{wanted} is not installed: `make test-clients` has a virtual environment with it")
        found.append(f"{wanted.name} {version}")
    return ", ".join(found)


def typed(line: str, folder: Path) -> str:
    """Type the line in an empty folder beside the docs; returns what it printed."""
    words = shlex.split(line.replace("docs/examples/clients", str(FOLDER)))
    path = [os.environ.get("PYTHONPATH", "")]
    if "cleanrl/cleanrl" in line:
        if "CLUSTERGYM_CLEANRL" not in os.environ:
            pytest.skip("CLUSTERGYM_CLEANRL is not set: the folder of a clone of https://github.com/vwxyzjn/cleanrl")
        clone = Path(os.environ["CLUSTERGYM_CLEANRL"]).resolve()
        words = [str(clone / word.removeprefix("cleanrl/")) if word.startswith("cleanrl/") else word for word in words]
        path += [str(FOLDER), str(clone)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "OMP_NUM_THREADS": "1"}
    assert words[0] == "python"
    outcome = subprocess.run(
        [sys.executable, *words[1:]], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=3600
    )
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return outcome.stdout


def steps(line: str, printed: str) -> int:
    """How many steps were trained, as the example or the library says."""
    if "cleanrl/ppo.py" in line:
        return 512 * printed.count("SPS:")  # one a rollout of 4 x 128
    if "cleanrl/dqn.py" in line:
        return 100 * (printed.count("SPS:") + 6)  # every hundred, from the 500th on
    found = re.findall(r"(?:(\d+) steps$|total_timesteps +\| (\d+))", printed, re.MULTILINE)
    return max(int(number) for pair in found for number in pair if number)


@pytest.mark.clients
@pytest.mark.parametrize("line", trainings(), ids=short)
def test_a_learner_trains_for_2000_steps_by_the_lines_of_the_page(line, tmp_path):
    found = versions(line)
    count = steps(line, typed(line, tmp_path))
    assert count >= 2_000
    print(f"{count} steps; {found}: {line}")


@pytest.mark.clients
def test_rl_zoo_plays_what_it_has_trained(tmp_path):
    train, play = (line for line in lines() if "rl_zoo3." in line)
    versions(train)
    typed(train, tmp_path)
    assert "Mean reward" in typed(play, tmp_path)


@pytest.mark.clients
def test_maskable_ppo_beats_fifo_on_seeds_that_it_has_not_seen(tmp_path):
    """The script of the page with a fifth of its steps."""
    found = versions("maskable_ppo_delay.py")
    text = (FOLDER / "maskable_ppo_delay.py").read_text()
    assert "2_000_000" in text and sum(1 for line in text.splitlines() if line) <= 20
    (tmp_path / "shorter.py").write_text(text.replace("2_000_000", "400_000"))
    printed = typed("python shorter.py", tmp_path)
    fifo, agent = (float(number.replace(",", "")) for number in re.findall(r"mean JCT ([\d,]+) s", printed))
    assert agent < 0.85 * fifo
    print(f"{found}: {printed}")


def test_the_page_shows_or_links_the_files_that_are_run():
    shown = [each.text for each in blocks(PAGE) if each.language in ("python", "yaml")]
    names = re.findall(r"\]\(\.\./examples/clients/(\S+)\)", PAGE.read_text())
    linked = [(FOLDER / name).read_text() for name in names]
    assert sorted(shown + linked) == sorted(path.read_text() for path in FOLDER.iterdir() if path.is_file())


def test_glue_is_at_most_ten_lines():
    """Lines that name clustergym or an argument of its environments, and `make`, where there is one."""
    for path in FOLDER.glob("*.py"):
        body = path.read_text().partition('"""\n')[2]
        glue = [line for line in body.splitlines() if re.search(r"clustergym|form\b|mask|def make", line)]
        assert len(glue) <= GLUE_LINES, f"{path.name}: {glue}"


def test_gymnasium_hands_vector_kwargs_to_its_own_vector_environments():
    """For those that batch themselves it takes them as plain arguments, and refuses the others by itself."""
    mode = {"autoreset_mode": AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec("clustergym/Delay-v0", 2, vectorization_mode="sync", vector_kwargs=mode)
    assert isinstance(envs, SyncVectorEnv) and envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    envs = gymnasium.make_vec("clustergym/Delay-v0", 2, autoreset_mode="same-step")
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    with pytest.raises(gymnasium.error.Error, match="vector_kwargs"):
        gymnasium.make_vec("clustergym/Delay-v0", 2, vector_kwargs=mode)
    envs = clustergym.make_vec("Delay", 2, vector_kwargs={"autoreset_mode": "same-step"})
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
