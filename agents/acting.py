"""Agents of any other library as policies: objects with `act(observation, mask)`.

    class Mine:
        env_kwargs = {"observation": "flat", "action": "discrete", "slots": 8}

        def __init__(self, weights: str = "mine.pt") -> None:
            self.net = torch.load(weights)

        def act(self, observation, mask):
            scores = self.net(torch.as_tensor(observation)).detach().numpy()
            return np.where(mask, scores, -np.inf).argmax()

`py:mine.py:Mine,weights=best.pt` names it wherever a policy's name is taken. It is asked at the moments, and shown the
observations and masks, of an environment with these keyword arguments; what it answers is carried out as `env.step`
does, an illegal action too.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs.registration import env_class, resolve
from ..simulator.errors import InputError
from ..simulator.names import choose
from .playing import PlayedAgent
from .windows import Window


class ActingPolicy(PlayedAgent):
    """An object with `act(observation, mask)` that decides.

    Args:
        thing: the object. What else it may have: `env_kwargs`, keyword arguments of the environment that it was trained
            in; `environment` or `environments`, where it plays (ids or short names); `begin(seed)`, called when a run
            begins, for who remembers something; `files`, paths of what it reads, so that stored results notice edits.
        said: how to call it in an error.
        files: those that it is written in.

    Raises:
        InputError: what it has is not as it should be.
    """

    def __init__(self, thing: Any, said: str, files: Sequence[Path] = ()) -> None:
        self.thing = thing
        env_kwargs = getattr(thing, "env_kwargs", {})
        if not isinstance(env_kwargs, Mapping):
            raise InputError(f"{said}: env_kwargs = {env_kwargs!r:.60}: expected keyword arguments in a dict")
        _expect_two_arguments(thing.act, said)
        places = [resolve(name) for name in _places(thing)]
        only = places[0] if len(places) == 1 else None
        super().__init__(type(thing).__name__, only, env_kwargs, tuple(files), said)
        self.environments = tuple(places) or self.environments

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, also those in other processes, look at runs of their own."""
        return ActingPolicy, (self.thing, self._source, self.files), {"name": self.name}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    def _enter(self, environment: str) -> None:
        for key in self.env_kwargs:
            choose(key, inspect.signature(env_class(environment)).parameters, f"key of env_kwargs of {self._source}:")
        super()._enter(environment)

    def _begin(self, seed: int) -> None:
        super()._begin(seed)
        if callable(getattr(self.thing, "begin", None)):
            self.thing.begin(seed)

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> Any:
        return window.read(self.thing.act(*window.observed()))


def acting_policy(thing: Any, said: str, files: tuple[Path, ...] = ()) -> ActingPolicy:
    """The policy that an object with `act(observation, mask)` is; see `ActingPolicy`."""
    return ActingPolicy(thing, said, files)


def _places(thing: Any) -> Sequence[str]:
    """Where it says that it plays."""
    told = getattr(thing, "environments", None) or getattr(thing, "environment", None) or ()
    return (told,) if isinstance(told, str) else tuple(told)


def _expect_two_arguments(act: Any, said: str) -> None:
    try:
        inspect.signature(act).bind(None, None)
    except ValueError:  # compiled: nothing is known of it
        return
    except TypeError as error:
        raise InputError(f"{said}: act is to take two arguments, the observation and the mask: {error}") from None
