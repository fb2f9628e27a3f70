"""What stable-baselines3's `VecNormalize` does to observations, for who plays an agent that was trained with it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ..simulator.base.errors import InputError
from .sb3_zip import FLAG, VARIABLE


@dataclass(frozen=True)
class Normaliser:
    """The statistics of a `VecNormalize`, at work.

    Attributes:
        mean, var: of the features, by key of a Dict; where the observation is one Box the key is "".
        epsilon, clip: as there.
    """

    mean: Mapping[str, np.ndarray]
    var: Mapping[str, np.ndarray]
    epsilon: float
    clip: float

    @classmethod
    def of(cls, wrapper: Any) -> Normaliser | None:
        """That of a `VecNormalize`; None if it leaves observations as they are."""
        if not wrapper.norm_obs:
            return None
        kept = wrapper.obs_rms if isinstance(wrapper.obs_rms, dict) else {"": wrapper.obs_rms}
        mean, var = ({key: np.array(getattr(one, name)) for key, one in kept.items()} for name in ("mean", "var"))
        return cls(mean, var, float(wrapper.epsilon), float(wrapper.clip_obs))

    def expect_fitting(self, space: spaces.Space[Any], source: str) -> None:
        """InputError where these are not the statistics of observations of a space: of another agent's, perhaps."""
        parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
        expected = {key: part.shape for key, part in parts.items()}
        for what, kept in (("mean", self.mean), ("var", self.var)):
            found = {key: one.shape for key, one in kept.items()}
            if kept.keys() != self.mean.keys() or not found or not found.items() <= expected.items():
                raise InputError(
                    f"{source}: normalise: {what} of observations {_shapes(found)}; its observations are "
                    f"{_shapes(expected)}"
                )

    def __call__(self, observation: Any) -> Any:
        """The observation as the network has learned to see it, float32."""
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


def read_normaliser(path: Path, allow_pickle: bool) -> Normaliser | None:
    """The statistics in a file that `VecNormalize.save` wrote. It is a pickle: opening it can run any code.

    Raises:
        InputError: it may not be opened, or is something else.
    """
    if not path.is_file():
        raise InputError(f"normalise = {path}: there is no such file; expected what VecNormalize.save wrote")
    if not allow_pickle:
        raise InputError(
            f"{path}: this is a pickle, which can run any code when opened; if you trust who wrote it, allow it with "
            f"{FLAG} (or {VARIABLE}=1, or allow_pickle=True)"
        )
    try:
        with path.open("rb") as file:
            return Normaliser.of(pickle.load(file))
    except Exception as error:  # a pickle has a hundred ways to fail
        raise InputError(f"{path}: this is not what VecNormalize.save writes ({type(error).__name__})") from None
