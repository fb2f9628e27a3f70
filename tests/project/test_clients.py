"""Learners of other libraries train on the environments by the commands of docs/tutorials/clients.md, as they are."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from packaging.requirements import Requirement

import clustergym
from clustergym.tests.support.docs_blocks import ROOT, blocks

PAGE = ROOT / "docs" / "tutorials" / "clients.md"
FOLDER = ROOT / "docs" / "examples" / "clients"
GLUE_LINES = 10
FORM = {"action": "discrete", "observation": "flat", "slots": 4, "preemption": False}
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
    return installed(*next(names for word, names in NEEDS.items() if word in line), "gymnasium", "torch")


def installed(*needed: str) -> str:
    """Their versions; skips the test where one is not installed."""
    found = []
    for wanted in map(Requirement, needed):
        try:
            version = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        if version is None or version not in wanted.specifier:
            pytest.skip(f"{wanted} is not installed: `make test-clients` has a virtual environment with it")
        found.append(f"{wanted.name} {version}")
    return ", ".join(found)


@contextmanager
def upstream(*names: str) -> Iterator[None]:
    """What the pages say of these libraries: whatever fails in it, one of them has changed.

    Skips the test where one is not installed.
    """
    found = installed(*names, "gymnasium", "torch")
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        raise AssertionError(f"changed upstream: {found}; correct this test and docs/tutorials") from error
    print(found)


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


@pytest.mark.clients
@upstream("tianshou>=2")
def test_tianshous_masks_are_heeded_by_q_learning_policies_only():
    """Scores 1, 2, 3 and a mask that admits the first action alone: an actor takes the third."""
    import torch
    from tianshou.algorithm.modelfree.discrete_sac import DiscreteSACPolicy
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
    from tianshou.data import Batch

    class Scores(torch.nn.Module):
        output_dim = 3

        def forward(self, seen, state=None, info=None):
            return torch.tensor([[1.0, 2.0, 3.0]]).repeat(len(getattr(seen, "obs", seen)), 1), state

    space, scores = gymnasium.spaces.Discrete(3), Scores()
    chosen = {"action_space": space, "actor": scores, "deterministic_eval": True}
    seen = Batch(obs=np.zeros((2, 5), np.float32), mask=np.array([[1, 0, 0]] * 2, np.int8))
    for policy, action in (
        (DiscreteQLearningPolicy(model=scores, action_space=space), 0),
        (DiscreteActorPolicy(dist_fn=lambda each: torch.distributions.Categorical(logits=each), **chosen), 2),  # of PPO
        (DiscreteSACPolicy(**chosen), 2),
    ):
        acts = policy(Batch(obs=seen, info={})).act
        assert [int(act) for act in acts] == [action] * 2, type(policy).__name__


def torchrl_batch(**options):
    """Three rows whose episodes end after 12, 17 and 23 decisions: 4, 2 and 2 ends in 50 steps."""
    from torchrl.envs import GymWrapper

    limits = [{"max_decisions": each} for each in (12, 17, 23)]
    env = GymWrapper(clustergym.make_vec("Delay", 3, variants=limits, **options), categorical_action_encoding=True)
    env.set_seed(0)
    return env


def torchrl_rollout(**options):
    """Fifty steps in which each row plays its last legal action."""
    import torch

    def last_legal(td):  # of this name: then it is given the whole
        mask = td["action_mask"].bool()
        return td.set("action", (mask * torch.arange(mask.shape[-1])).argmax(-1))

    return torchrl_batch(**FORM, **options).rollout(50, last_legal, break_when_any_done=False)


@pytest.mark.clients
@upstream("torchrl", "tensordict")
@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({}, RuntimeError, "must be one of SAME_STEP or DISABLED"),
        ({"autoreset_mode": "same-step"}, KeyError, "max_decisions"),
        (  # it iterates over a table without rows; tensordict says so in words that differ by version
            {"autoreset_mode": "same-step", "full_infos": True, "mask": "observation"},
            (TypeError, RuntimeError),
            "0-d tensordict|StopIteration",
        ),
    ],
    ids=["next-step", "same-step without full_infos", "same-step with two tables"],
)
def test_torchrl_takes_no_batch_of_other_modes_keys_and_forms(options, error, part):
    """Its reader of infos remembers the keys of the first, and reads final observations of one table only."""
    with pytest.raises(error, match=part):
        torchrl_rollout(**options)


@pytest.mark.clients
@upstream("torchrl", "tensordict")
def test_torchrls_gym_env_gives_every_environment_a_frameskip_which_ours_refuse():
    from torchrl.envs import GymEnv

    GymEnv("CartPole-v1")  # refused by Python's own TypeError, it is left out
    with pytest.raises(clustergym.InputError, match="frameskip"):
        GymEnv("clustergym/Delay-v0", **FORM)


@pytest.mark.clients
@upstream("torchrl", "tensordict")
def test_torchrl_sees_the_same_under_same_step_as_under_disabled():
    """Same-step has the mask from infos."""
    same = torchrl_rollout(autoreset_mode="same-step", full_infos=True)
    disabled = torchrl_rollout(autoreset_mode="disabled", mask="observation")
    assert int(same["next", "done"].sum()) == 8 and not same["next", "invalid_action"].any()
    for key in ("observation", "action_mask", "action", *(("next", key) for key in ("observation", "reward", "done"))):
        assert bool((same[key] == disabled[key]).all()), key


@pytest.mark.clients
@upstream("torchrl", "tensordict")
@pytest.mark.parametrize("form", [{}, {"observation": "flat", "mask": "obs/mask"}, {"mask": "observation"}], ids=str)
def test_torchrl_takes_batches_of_other_forms_under_disabled(form):
    played = torchrl_batch(autoreset_mode="disabled", **form).rollout(50, break_when_any_done=False)
    assert int(played["next", "done"].sum()) == 8


def normalised(**options):
    """Of 2 rows with the mask in the observation, after five steps."""
    from stable_baselines3.common.vec_env import VecNormalize

    from clustergym.agents import sb3_vec_env

    envs = VecNormalize(sb3_vec_env("Delay", 2, seed=0, mask="observation", **FORM), **options)
    envs.reset()
    for _ in range(5):
        seen, *_ = envs.step(np.zeros(2, np.int64))
    return envs, seen["action_mask"]


@pytest.mark.clients
@upstream("stable-baselines3")
def test_vec_normalize_scales_a_mask_in_the_observation_unless_norm_obs_keys_leaves_it_out():
    envs, mask = normalised()
    assert not np.isin(mask, (0, 1)).all()
    envs, mask = normalised(norm_obs_keys=["observation"])
    assert np.array_equal(mask, envs.venv.env_method("action_masks"))


@pytest.mark.clients
@upstream("stable-baselines3")
def test_vec_normalize_refuses_a_mask_that_is_multi_binary():
    from stable_baselines3.common.vec_env import VecNormalize

    from clustergym.agents import sb3_vec_env

    envs = sb3_vec_env("Delay", 2, seed=0, mask="observation", **FORM)
    envs.observation_space["action_mask"] = gymnasium.spaces.MultiBinary(69)
    with pytest.raises(ValueError, match="action_mask is of type MultiBinary"):
        VecNormalize(envs)


@pytest.mark.clients
@upstream("stable-baselines3")
def test_vec_normalize_keeps_its_own_gamma_of_0_99_whatever_the_learner_has():
    """Rewards are divided by the spread of returns under it."""
    from stable_baselines3 import PPO

    envs, _mask = normalised(norm_obs_keys=["observation"])
    PPO("MultiInputPolicy", envs, gamma=1.0, n_steps=32)
    assert envs.gamma == 0.99
    assert normalised(norm_obs_keys=["observation"], gamma=1.0)[0].gamma == 1.0


@pytest.mark.clients
@upstream()
@pytest.mark.parametrize(("ours", "lengths"), [(False, [0, 0]), (True, [0, 3])], ids=["SyncVectorEnv", "ours"])
def test_statistics_of_all_rows_are_zeroed_at_a_reset_mask_in_gymnasiums_own_vector_environment(ours, lengths):
    """Three steps, then row 0 is reset. SyncVectorEnv takes the mask out of the caller's options before they look."""
    sync = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": AutoresetMode.DISABLED}}
    envs = gymnasium.make_vec("clustergym/Delay-v0", 2, **({"autoreset_mode": "disabled"} if ours else sync), **FORM)
    envs = RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.zeros(2, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.episode_lengths.tolist() == lengths
