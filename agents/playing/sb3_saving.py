"""Saving a model of stable-baselines3 with the data that playing needs: `save_sb3`."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ...envs.registration import ENVIRONMENTS, env_class, resolve
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from .sb3_description import Description, Normaliser, Statistics
from .sb3_player import Sb3Policy
from .sb3_zip import algorithm_of
from .windows import play_keys


def save_sb3(
    model: Any, path: str | Path, environment: str | None = None, *, mode: str = "argmax", **env_kwargs: Any
) -> Path:
    """Save a model of stable-baselines3 so that `sb3:PATH` names it wherever a policy's name is taken.

    Beside PATH (`mine.zip`) it writes the training environment (`mine.json`), with the statistics of a `VecNormalize`.

    Args:
        model: of any algorithm of stable-baselines3 or sb3-contrib.
        path: of the .zip; the suffix may be left out.
        environment: id or short name; None: that of the model's own environment.
        mode: of playing: `argmax` (deterministic) or `sampled`.
        env_kwargs: keyword arguments of the environment, where the model's own does not give them.

    Returns:
        The path of the .zip.

    Raises:
        InputError: its environment is none of ours, or is wrapped in something that changes observations or actions.
    """
    path = Path(path) if str(path).endswith(".zip") else Path(f"{path}.zip")
    env = model.get_env()
    found, given = (None, {}) if env is None else _made_with(env)
    said = resolve(environment) if environment is not None else found
    if said is None:
        call = "save_sb3(model, path, 'Sharing', slots=8, ...)"
        raise InputError(f"{path}: the model's environment does not say how it was made; say so: {call}")
    if said == found:
        env_kwargs = {**given, **env_kwargs}
    known = inspect.signature(env_class(said)).parameters
    for key in env_kwargs:
        choose(key, known, f"keyword argument of {said}")
    plain = {key: _plain(key, env_kwargs[key]) for key in sorted(play_keys(said) & env_kwargs.keys())}
    wrapper = model.get_vec_normalize_env()
    normaliser = None if wrapper is None else Normaliser.of(wrapper)
    # Raises now, not at play, if its window does not fit.
    player = Sb3Policy(f"sb3:{path}", algorithm_of(model), model.policy, said, plain, normaliser=normaliser, mode=mode)
    description = Description(
        environment=said,
        env_kwargs=plain,
        columns=player.seen_columns,
        mode=mode,  # type: ignore[arg-type]
        normalise=None if normaliser is None else Statistics(**normaliser.to_json()),
        steps=int(model.num_timesteps),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    path.with_suffix(".json").write_text(description.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def _made_with(env: Any) -> tuple[str | None, dict[str, Any]]:
    """Id and keyword arguments of a model's environment, None if unknown; InputError: a wrapper changes spaces."""
    base = env.unwrapped
    if hasattr(base, "env_id"):
        return base.env_id, dict(base.env_kwargs)
    for one in getattr(base, "envs", ()):
        _expect_plain_wrappers(one)
    spec = base.get_attr("spec", 0)[0]
    if spec is None or spec.id not in ENVIRONMENTS:
        return None, {}
    return spec.id, {key: value for key, value in spec.kwargs.items() if key != "render_mode"}


def _expect_plain_wrappers(env: Any) -> None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.ObservationWrapper | gym.ActionWrapper | gym.wrappers.NormalizeObservation):
            wrapped = f"wrapped in {type(env).__name__}, which changes what it sees or says"
            own = (
                "py:FILE.py:NAME, with a function act(observation, mask) that does the same (docs/tutorials/agents.md)"
            )
            raise InputError(f"the model's environment is {wrapped}; play it by {own}")
        env = env.env


def _plain(key: str, value: Any) -> Any:
    """A keyword argument as JSON data; InputError: an object that has no word."""
    if key == "elastic":
        return value is not False
    if isinstance(value, np.generic):
        value = value.item()
    if key == "estimates" and hasattr(value, "describe"):
        return value.describe()
    if is_dataclass(value) and not isinstance(value, type) and key == "tuner":
        return asdict(value)
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        name = getattr(value, "name", None)
        word = f"its word, as {name!r}" if isinstance(name, str) else "its word"
        raise InputError(f"{key} = {value!r:.60}: a file cannot hold it; give the environment {word}") from None
