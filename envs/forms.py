"""The outer form of an environment: the forms of actions and observations, and the place of the mask.

Inside, an action is a row of whole numbers (the candidate, then the other parts), an observation a row of features,
and the mask a row of 0 and 1 for all parts of the action. docs/tutorials/batched.md has the outer forms of the
arguments `action`, `observation` and `mask`. A part that is missing is 0, which is safe: a hold lasts until GPUs are
freed, sub-batches are the largest that fit, a shift is none, a group gets the machines that balance it and spills by
climbing.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from ..simulator.base.errors import InputError
from ..simulator.base.names import choose
from .observation_layout import places_of

OBSERVATIONS = ("dict", "flat")
ACTIONS = ("parts", "discrete")
INFO = "info"
KEYS = ("observation", "action_mask")
FARTHEST = 1 << 32  # no part of an action means anything beyond it
NUMBERS = ("no", "one", "two", "three", "four")

# By the length of an action: numbers from 0 to 2**32 - 1 are written at once, as int64; others are read one by one.
WORD = "I4x" if sys.byteorder == "little" else "4xI"
WRITERS: tuple[Callable[..., None], ...] = tuple(
    struct.Struct("=" + count * WORD).pack_into for count in range(len(NUMBERS))
)


class Shape(Protocol):
    """The features of each table, by name and in order, and the sizes of the parts, as of an `AgentInterface`."""

    sizes: dict[str, int]
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """The outer form of an environment whose window is known."""

    parts: tuple[int, ...]  # sizes of all parts of the action
    places: Mapping[str, slice]  # the features of each table
    is_flat: bool  # whether the tables are in one Box
    is_single: bool  # whether an action is one number, the candidate
    keys: tuple[str, str] | None  # of observation and mask; None: the mask is not in the observation
    outer_parts: int  # how many parts an outer action has, the first ones
    names: tuple[str, ...] = ()  # of the parts after the candidate, for messages

    @classmethod
    def of(
        cls,
        shape: Shape,
        observation: str = "dict",
        action: str = "parts",
        mask: str | Mapping[str, str] = INFO,
        names: tuple[str, ...] = (),
    ) -> Form:
        """The form that these arguments of an environment ask for; InputError for a value that does not fit."""
        choose(observation, OBSERVATIONS, "value of observation")
        choose(action, ACTIONS, "value of action")
        is_single = action == "discrete" or len(shape.parts) == 1
        parts, places = tuple(shape.parts), places_of(shape.sizes)
        outer_parts = 1 if is_single else len(parts)
        return cls(parts, places, observation == "flat", is_single, keys_of(mask), outer_parts, names)

    @property
    def masked(self) -> int:
        """Length of the mask."""
        return self.parts[0] if self.is_single else sum(self.parts)

    @property
    def features(self) -> int:
        """Number of features."""
        return max(place.stop for place in self.places.values())

    def spaces(self) -> tuple[gym.Space[Any], gym.Space[Any]]:
        """Spaces of observations and of actions."""
        return self.observation_space, self.action_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """The space of actions."""
        return gym.spaces.Discrete(self.parts[0]) if self.is_single else gym.spaces.MultiDiscrete(list(self.parts))

    @property
    def observation_space(self) -> gym.Space[Any]:
        """The space of observations."""
        space: gym.Space[Any] = gym.spaces.Box(0.0, 1.0, (self.features,), np.float32)
        if not self.is_flat:
            sizes = {key: place.stop - place.start for key, place in self.places.items()}
            space = gym.spaces.Dict({key: gym.spaces.Box(0.0, 1.0, (n,), np.float32) for key, n in sizes.items()})
        if self.keys is None:
            return space
        seen, mask = self.keys
        return gym.spaces.Dict({seen: space, mask: gym.spaces.Box(0, 1, (self.masked,), np.int8)})

    def observed(self, features: np.ndarray, masks: np.ndarray) -> Any:
        """Features (F,) or (n, F), with masks of all parts (M,) or (n, M), as the observation space has them: views."""
        seen: Any = features
        if not self.is_flat:  # plain slices cost a third less
            row = features.ndim == 1
            seen = {key: features[place] if row else features[:, place] for key, place in self.places.items()}
        return seen if self.keys is None else {self.keys[0]: seen, self.keys[1]: self.mask(masks)}

    def copied(self, features: np.ndarray, mask: np.ndarray) -> Any:
        """As `observed`, of one row: of copies."""
        copied = features.copy()
        seen: Any = copied
        if not self.is_flat:  # to copy them one by one takes longer, and so does a comprehension
            seen = {}
            for key, place in self.places.items():
                seen[key] = copied[place]
        return seen if self.keys is None else {self.keys[0]: seen, self.keys[1]: self.mask(mask).copy()}

    def mask(self, masks: np.ndarray) -> np.ndarray:
        """The outer mask, a view (m,) or (n, m), of masks of all parts, (M,) or (n, M)."""
        return masks[..., : self.parts[0]] if self.is_single else masks

    def read(self, action: Any, parts: np.ndarray) -> None:
        """Modify `parts`, int64 (parts,): the values of `action`, of the action space; InputError if it is none.

        Parts after the candidate may be out of range.
        """
        said = action.tolist() if isinstance(action, np.ndarray) else action
        if self.is_single and not isinstance(said, list | tuple):
            said = [said]
        if type(said) is list:
            try:
                WRITERS[self.outer_parts](parts, 0, *said)  # in a third of the time
                if said[0] < self.parts[0]:
                    return
            except struct.error:
                pass  # not that many whole numbers in this range: one by one, which says what is wrong
        try:
            if len(said) != self.outer_parts:
                raise self._refusal(action)
            for part in range(self.outer_parts):
                value = index(said[part])
                parts[part] = value if -1 <= value <= FARTHEST else FARTHEST if value > 0 else -1
        except (TypeError, ValueError, IndexError, KeyError):
            raise self._refusal(action) from None
        if not 0 <= parts[0] < self.parts[0]:
            raise self.no_candidate(action, index(said[0]))

    def read_all(self, actions: Any, parts: np.ndarray) -> None:
        """Modify `parts`, int64 (n, parts): as `read`, for actions of a batch, whole numbers (n, parts), or (n,)."""
        said = np.asarray(actions)
        written = parts[:, 0] if self.is_single else parts
        if self.is_single and said.shape == (len(parts), 1):
            said = said[:, 0]
        if said.shape != written.shape or said.dtype.kind not in "iu":
            wanted = " x ".join(map(str, written.shape))
            raise InputError(f"actions of shape {said.shape}, {said.dtype}: expected {wanted} whole numbers")
        written[:] = said

    def said(self, parts: np.ndarray) -> Any:
        """The action of the action space for all parts (parts,), or for a batch (n, parts)."""
        if not self.is_single:
            return parts
        return parts[0] if parts.ndim == 1 else parts[:, 0]

    def no_candidate(self, action: Any, candidate: int) -> InputError:
        """The error for an action whose candidate is out of range, and so not even an illegal one."""
        return InputError(f"action {action!r}: candidate {candidate}: expected 0 to {self.parts[0] - 1}")

    def _refusal(self, action: Any) -> InputError:
        if self.is_single:
            return InputError(f"action {action!r}: expected a whole number, the candidate")
        count = NUMBERS[len(self.parts)]
        names = ", ".join(("candidate", *self.names))
        return InputError(f"action {action!r}: expected {count} whole numbers, ({names})")


def keys_of(mask: str | Mapping[str, str]) -> tuple[str, str] | None:
    """The keys of observation and mask for the argument `mask`; None: no mask in the observation. InputError: else."""
    expected = f"expected 'info', 'observation', 'KEY' or 'KEY/MASK', or the names {' and '.join(KEYS)} with their keys"
    if isinstance(mask, Mapping):
        if set(mask) - set(KEYS) or not all(isinstance(key, str) for key in mask.values()):
            raise InputError(f"mask = {dict(mask)!r}: {expected}")
        keys = mask.get(KEYS[0], KEYS[0]), mask.get(KEYS[1], KEYS[1])
    elif isinstance(mask, str):
        if mask == INFO:
            return None
        first, has_second, second = mask.partition("/")
        keys = first, second if has_second else KEYS[1]
    else:
        raise InputError(f"mask = {mask!r}: {expected}")
    if not all(keys) or keys[0] == keys[1]:
        raise InputError(f"mask = {mask!r}: {expected}; two different ones")
    return keys
