"""The file beside an agent of stable-baselines3: its training environment, and the scaling of its observations.

`save_sb3(model, "mine.zip")` (sb3_saving.py) writes FILE.json beside FILE.zip, with plain values: reading it runs
nothing. The file of `VecNormalize.save` is a pickle, opened only with the user's permission.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field

from ...envs.registration import ENVIRONMENTS
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.files.user_code import expect_trusted
from ...simulator.files.yaml_files import validated
from .sb3_zip import FLAG, VARIABLE
from .windows import play_keys

SCHEMA_VERSION = 1
MOST_BYTES = 2**24

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Statistics(BaseModel):
    """Of observations; see `Normaliser`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: dict[str, list[Finite]]
    var: dict[str, list[Annotated[float, Field(ge=0.0, allow_inf_nan=False)]]]
    epsilon: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    clip: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class Description(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    environment: str  # the id of its training environment
    env_kwargs: dict[str, Any] = Field(default_factory=dict)  # those that its window and its terms depend on
    columns: dict[str, list[str]] | None = None  # of its observations, by part and name; None: of an older version
    mode: Literal["argmax", "sampled"] = "argmax"
    normalise: Statistics | None = None  # of a `VecNormalize` around its environment
    steps: int = 0  # of the training


@dataclass(frozen=True)
class Normaliser:
    """The statistics of a `VecNormalize`, and their use."""

    mean: Mapping[str, np.ndarray]  # of the features, by key of a Dict; of one Box the key is ""
    var: Mapping[str, np.ndarray]
    epsilon: float
    clip: float

    @classmethod
    def of(cls, wrapper: Any) -> Normaliser | None:
        """The statistics of a `VecNormalize`; None if it does not scale observations."""
        if not wrapper.norm_obs:
            return None
        kept = wrapper.obs_rms if isinstance(wrapper.obs_rms, dict) else {"": wrapper.obs_rms}
        mean, var = ({key: np.array(getattr(one, name)) for key, one in kept.items()} for name in ("mean", "var"))
        return cls(mean, var, float(wrapper.epsilon), float(wrapper.clip_obs))

    def expect_fitting(self, space: spaces.Space[Any], source: str) -> None:
        """InputError if these are not statistics of observations of this space."""
        parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
        expected = {key: part.shape for key, part in parts.items()}
        for what, kept in (("mean", self.mean), ("var", self.var)):
            found = {key: one.shape for key, one in kept.items()}
            if kept.keys() != self.mean.keys() or not found or not found.items() <= expected.items():
                own = f"its observations are {_shapes(expected)}"
                raise InputError(f"{source}: normalise: {what} of observations {_shapes(found)}; {own}")

    def __call__(self, observation: Any) -> Any:
        """The observation as the network expects it, float32."""
        if not isinstance(observation, dict):
            return self._scaled("", observation)
        return {key: self._scaled(key, value) if key in self.mean else value for key, value in observation.items()}

    def _scaled(self, key: str, seen: np.ndarray) -> np.ndarray:
        scaled = (seen - self.mean[key]) / np.sqrt(self.var[key] + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        plain = {name: {key: one.tolist() for key, one in getattr(self, name).items()} for name in ("mean", "var")}
        return {**plain, "epsilon": self.epsilon, "clip": self.clip}


def _shapes(found: Mapping[str, Any]) -> str:
    return str(found[""] if found.keys() == {""} else dict(sorted(found.items())))


@dataclass(frozen=True)
class Sb3Description:
    """The description, and its path."""

    path: Path
    environment: str
    env_kwargs: dict[str, Any]
    columns: dict[str, list[str]] | None
    mode: str
    normaliser: Normaliser | None


def read_sb3_description(path: Path) -> Sb3Description | None:
    """The description beside the agent in `path`; None if there is none. InputError: invalid or untrusted."""
    file = path.with_suffix(".json")
    if not file.is_file():
        return None
    try:
        if file.stat().st_size > MOST_BYTES:
            raise InputError(f"{file}: {file.stat().st_size:,} bytes; expected at most {MOST_BYTES:,}")
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: this is not what save_sb3 writes ({error})") from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: this is not what save_sb3 writes (expected keys and values)")
    found = validated(Description, content, str(file))
    expect_trusted(found.env_kwargs, f"{file}: env_kwargs")
    choose(found.environment, ENVIRONMENTS, f"environment in {file}:")
    for key in found.env_kwargs:
        choose(key, play_keys(found.environment), f"key of env_kwargs in {file}:")
    normaliser = None
    if found.normalise is not None:
        kept = found.normalise.mean, found.normalise.var
        mean, var = ({key: np.array(one) for key, one in values.items()} for values in kept)
        normaliser = Normaliser(mean, var, epsilon=found.normalise.epsilon, clip=found.normalise.clip)
    return Sb3Description(file, found.environment, found.env_kwargs, found.columns, found.mode, normaliser)


def read_normaliser(path: Path, allow_pickle: bool) -> Normaliser | None:
    """The statistics in a file of `VecNormalize.save`, a pickle; InputError: not allowed, or something else."""
    if not path.is_file():
        raise InputError(f"normalise = {path}: there is no such file; expected what VecNormalize.save wrote")
    if not allow_pickle:
        allow = f"allow it with {FLAG} (or {VARIABLE}=1, or allow_pickle=True)"
        raise InputError(
            f"{path}: this is a pickle, which can run any code when opened; if you trust its author, {allow}"
        )
    try:
        with path.open("rb") as file:
            return Normaliser.of(pickle.load(file))
    except Exception as error:  # a pickle can fail in any way
        raise InputError(f"{path}: this is not what VecNormalize.save writes ({type(error).__name__})") from None
