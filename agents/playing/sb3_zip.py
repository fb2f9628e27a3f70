"""Agents in the .zip files of stable-baselines3. They hold pickles: opening one can run any code."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, loaded

if TYPE_CHECKING:
    from stable_baselines3.common.policies import BasePolicy

FLAG, VARIABLE = "--trust-sb3-zip", "CLUSTERGYM_TRUST_SB3_ZIP"
MOST_BYTES = 2**26  # of the description in a file; it may contain a user's policy
ALGORITHMS = {  # module and class of each
    "ppo": "stable_baselines3:PPO",
    "a2c": "stable_baselines3:A2C",
    "dqn": "stable_baselines3:DQN",
    "maskable-ppo": "sb3_contrib:MaskablePPO",
    "recurrent-ppo": "sb3_contrib:RecurrentPPO",
    "trpo": "sb3_contrib:TRPO",
    "qr-dqn": "sb3_contrib:QRDQN",
    "ars": "sb3_contrib:ARS",
}
ONE_ANSWER = ("dqn", "qr-dqn", "ars")  # they have no probabilities to draw from
OF_ONE = {"n_quantiles": "qr-dqn", "exploration_fraction": "dqn", "cg_max_steps": "trpo", "n_delta": "ars"}


def load_zip(path: Path, allow_pickle: bool, algo: str | None = None) -> tuple[str, BasePolicy]:
    """The algorithm that wrote a .zip by `model.save`, and its policy, on the CPU, in evaluation mode.

    `allow_pickle`: open it; `algo`: the algorithm, None: recognised. InputError: it may not be opened, or cannot be.
    """
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; expected a .zip of stable-baselines3")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected a .zip of stable-baselines3")
    if path.suffix != ".zip":
        raise InputError(f"{path}: this is a file; expected the folder of an agent, or a .zip of stable-baselines3")
    found = choose(algo, ALGORITHMS, "algorithm") if algo is not None else recognised(path)
    if not allow_pickle:
        what = "files of stable-baselines3 hold pickles, which can run any code when opened"
        allow = f"allow it with {FLAG} (or {VARIABLE}=1, or allow_pickle=True)"
        raise InputError(f"{path}: {what}; if you trust its author, {allow}")
    try:
        policy: Any = loaded(ALGORITHMS[found]).load(path, device="cpu", custom_objects=_not_needed()).policy
    except Exception as error:  # zip files, pickles and torch can fail in any way
        raise InputError(f"{path}: it cannot be opened as an agent of {found} ({_line(error)})") from None
    policy.set_training_mode(False)
    return found, policy


def recognised(path: Path) -> str:
    """The algorithm that wrote a .zip, by the names of its contents, without a pickle; InputError: unknown."""
    data = _described(path)
    for key, algo in OF_ONE.items():
        if key in data:
            return algo
    classes = [data.get(key) for key in ("policy_class", "rollout_buffer_class")]
    modules = [str(one.get("__module__", "")) for one in classes if isinstance(one, dict)]
    for part, algo in (("maskable", "maskable-ppo"), ("recurrent", "recurrent-ppo")):
        if any(part in module for module in modules):
            return algo
    if "clip_range" in data:
        return "ppo"
    if "gae_lambda" in data:
        return "a2c"
    expected = f"expected one of {', '.join(ALGORITHMS)}, or algo=... that says which it is"
    raise InputError(f"{path}: it is of no algorithm that can play here; {expected}")


def _described(path: Path) -> dict[str, Any]:
    """The values in a file by name; pickled ones are dicts with text about them."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("data").file_size > MOST_BYTES:
                raise InputError(f"{path}: its description has more than {MOST_BYTES:,} bytes")
            data = json.loads(archive.read("data"))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is no .zip of stable-baselines3 ({_line(error)})") from None
    if not isinstance(data, dict) or "policy_class" not in data:
        raise InputError(f"{path}: this is no .zip of stable-baselines3 (nothing in it says what its policy is)")
    return data


def _not_needed() -> dict[str, Any]:
    """Replacements for contents that a player does not need: schedules, and room for experience."""
    schedules = ("lr_schedule", "clip_range", "exploration_schedule", "delta_std_schedule")
    classes = ("clip_range_vf", "replay_buffer_class", "rollout_buffer_class")
    state = ("_last_obs", "_last_original_obs", "_last_episode_starts", "ep_info_buffer", "ep_success_buffer")
    values = {"learning_rate": 0.0, "buffer_size": 1, "n_envs": 1}
    return {**values, **dict.fromkeys(schedules, _none), **dict.fromkeys((*classes, *state))}


def _none(progress: float) -> float:
    return 0.0


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def algorithm_of(model: Any) -> str:
    """The algorithm of a model in memory; InputError: none of `ALGORITHMS`."""
    for kind in type(model).__mro__:
        for algo, place in ALGORITHMS.items():
            module, _, name = place.partition(":")
            if kind.__name__ == name and kind.__module__.partition(".")[0] == module:
                return algo
    raise InputError(f"{type(model).__name__}: expected a model of {', '.join(ALGORITHMS)}")
